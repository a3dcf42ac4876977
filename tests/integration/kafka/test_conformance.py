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


@pytest.mark.deep_but(
    "test_the_rows_come_first_then_every_change_once",
    "test_a_position_kept_with_the_results_is_exactly_once",
    "test_whatever_happens_the_changes_add_up_to_the_table",
    "test_expiry_keeps_what_a_named_consumer_still_has_to_read",
    "test_a_filter_lets_rows_enter_and_leave",
)
class TestKafka(Following):
    @pytest.fixture
    def new_table(self, tmp_path: Path, broker: KafkaBroker) -> Callable[..., ts.Table]:
        def make(**how: Any) -> ts.Table:
            kafka = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": f"conformance-{next(TOPICS)}"}
            return make_table(str(tmp_path), **kafka, **how)

        return make
