"""Manifests say how much a log lacks: of the slot that is furthest behind, and no further than anybody asks."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.log.logprogress import LogProgress, SlotProgress
from tablestore.log.publish.backlog import Backlog, log_backlog
from tablestore.log.settings import LogSettings, log_settings

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
ENDLESS = Backlog(rows=2**60, bytes=2**60)


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"bucket": "4", "write-only": "true"}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


def settings(table: ts.Table, **more: str) -> LogSettings:
    schema = table.table_schema
    given = {"log.kafka.bootstrap.servers": "set", "tablestore.log.publisher-slots": "2", **more}
    return log_settings(replace(schema, options={**schema.options, **given}), name="t")


def upsert(table: ts.Table, start: int, end: int) -> int:
    """Returns the bytes of the files."""
    snapshot = table.upsert(pa.table({"id": range(start, end), "v": ["x"] * (end - start)}, schema=SCHEMA))
    assert snapshot is not None
    return sum(entry.file.file_size for entry in table.context.manifests.delta(snapshot))


def published(table: ts.Table, slot: int, snapshot_id: int) -> None:
    progress = SlotProgress(snapshot_id=snapshot_id, snapshot_uuid=None, incarnation="one", offsets={})
    LogProgress(table.context.files).record(slot, 2, progress)


def test_rows_and_bytes_of_all_that_the_last_slot_has_not_sent(table: ts.Table) -> None:
    assert log_backlog(table.context, settings(table), enough=ENDLESS) == Backlog(rows=0, bytes=0)
    sizes = [upsert(table, 0, 100), upsert(table, 50, 90), upsert(table, 7, 8)]
    assert log_backlog(table.context, settings(table), enough=ENDLESS) == Backlog(rows=141, bytes=sum(sizes))
    published(table, 0, 3)
    assert log_backlog(table.context, settings(table), enough=ENDLESS).rows == 141
    published(table, 1, 1)
    assert log_backlog(table.context, settings(table), enough=ENDLESS) == Backlog(rows=41, bytes=sum(sizes[1:]))
    published(table, 1, 3)
    assert log_backlog(table.context, settings(table), enough=ENDLESS) == Backlog(rows=0, bytes=0)


def test_what_does_not_tell_its_changes_is_not_counted(table: ts.Table) -> None:
    upsert(table, 0, 10)
    table.overwrite(pa.table({"id": range(500), "v": ["o"] * 500}, schema=SCHEMA))
    table.compact(full=True)
    upsert(table, 0, 3)
    assert log_backlog(table.context, settings(table), enough=ENDLESS).rows == 13


def test_lookups_count_the_rows_that_they_are_for(table: ts.Table) -> None:
    upsert(table, 0, 100)
    upsert(table, 0, 5)
    assert log_backlog(table.context, settings(table, **{"log.changelog-mode": "all"}), enough=ENDLESS).rows == 105


def test_counting_ends_when_it_is_enough(table: ts.Table) -> None:
    for _ in range(3):
        upsert(table, 0, 10)
    assert log_backlog(table.context, settings(table), enough=Backlog(rows=11, bytes=2**60)).rows == 20
    assert log_backlog(table.context, settings(table), enough=Backlog(rows=2**60, bytes=1)).rows == 10
