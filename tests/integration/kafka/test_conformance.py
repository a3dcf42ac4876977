"""The suite of everybody who follows a table, on tables with a topic. The same runs on the file store in tests/log/follow."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.testing.contracts.following import SCHEMA, Following
from tablestore.testing.kafka import KafkaBroker

TOPICS = count()


class TestKafka(Following):
    @pytest.fixture
    def new_table(self, tmp_path: Path, broker: KafkaBroker) -> Callable[..., ts.Table]:
        def make(*, keyed: bool = True, by_day: bool = False, **options: Any) -> ts.Table:
            catalog = ts.open_catalog(str(tmp_path))
            catalog.create_database("shop", ignore_if_exists=True)
            key = ["day", "id"] if by_day else ["id"]
            given = {**({"bucket": "1"} if keyed else {}), "write-only": "true", **options}
            return catalog.create_table(
                "shop.t",
                schema=SCHEMA,
                primary_key=key if keyed else (),
                partition_by=["day"] if by_day else (),
                options={"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": f"conformance-{next(TOPICS)}", **given},
            )

        return make
