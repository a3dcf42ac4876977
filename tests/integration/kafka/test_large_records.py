"""A row that is larger than the topic takes is named, what came before it is published, and a raised limit lets it through."""

from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.followup import read_undone
from tablestore.table.logs import PUBLISHERS, publish_log
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.early import make, told


def row(number: int, text: str) -> pa.Table:
    return pa.table({"id": [number], "v": [text]})


def test_a_row_over_the_limit_is_named_and_is_published_once_the_limit_is_raised(
    tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"log.consistency": "transactional", "write-only": "true", "bucket": "1"}
    table = make(tmp_path, broker, "large-records", **options)
    table.upsert(row(1, "a"))
    table.upsert(pa.table({"id": [2, 3, 4], "v": ["b", "x" * 1_500_000, "c"]}))
    assert 'the row with key {"id":3} makes a record of' in caplog.text
    (undone,) = read_undone(table.context.files)
    assert (undone.chore, undone.error_kind) == ("publish", "log-record-too-large")
    assert sorted(told(table, broker.servers)) == [1, 2], "what comes before it is there"
    table.upsert(row(5, "d"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert len(table.snapshots()) > 1, "what is not published is kept"
    raised = table.alter(ts.SetOption("log.kafka.message.max.bytes", "4000000"))
    PUBLISHERS.close()
    publish_log(raised.context)
    assert sorted(told(raised, broker.servers)) == [1, 2, 3, 4, 5]
    raised.upsert(row(6, "e"))
    assert read_undone(raised.context.files) == ()
    PUBLISHERS.close()


def test_a_table_may_begin_with_a_larger_limit(tmp_path: Path, broker: KafkaBroker) -> None:
    options = {"log.consistency": "transactional", "log.kafka.message.max.bytes": "4000000", "bucket": "1"}
    table = make(tmp_path, broker, "large-from-the-start", **options)
    table.upsert(row(1, "x" * 3_000_000))
    assert sorted(told(table, broker.servers)) == [1]
    PUBLISHERS.close()
