"""The suite of everybody who follows a table, on tables with a topic. The same runs on the file store in tests/log/follow."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.testing.contracts.following import Following, make_table
from tablestore.testing.kafka import KafkaBroker

TOPICS = count()


class TestKafka(Following):
    @pytest.fixture
    def new_table(self, tmp_path: Path, broker: KafkaBroker) -> Callable[..., ts.Table]:
        def make(**how: Any) -> ts.Table:
            kafka = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": f"conformance-{next(TOPICS)}"}
            return make_table(str(tmp_path), **kafka, **how)

        return make
