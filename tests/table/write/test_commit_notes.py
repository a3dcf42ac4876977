"""What a snapshot says of its rows (`CommitNote`): it lands with them, a compaction keeps it, and its guard may refuse it."""

from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import Snapshot
from tablestore.store.snapshots import CONTENT_PREFIX
from tablestore.table.write.committing import CommitNote, Origin
from tablestore.table.write.overwrite import overwrite

KEY = f"{CONTENT_PREFIX}cursor"


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(tmp_path / "wh")
    catalog.create_database("shop")
    return catalog.create_table("shop.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), primary_key=["id"])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": ids}, schema=pa.schema([("id", pa.int64()), ("v", pa.int64())]))


def committed(table: ts.Table, batch: pa.Table, note: CommitNote) -> Snapshot | None:
    with table.new_writer() as writer:
        writer.write(batch)
        return writer.commit(note=note)


def test_a_note_lands_with_the_rows_and_a_compaction_keeps_it(table: ts.Table) -> None:
    landed = committed(table, rows(1), CommitNote(properties={KEY: "a", "other": "x"}))
    assert landed is not None and landed.properties[KEY] == "a"
    table.compact(full=True)
    newest = table.snapshots()[-1]
    assert newest.commit_kind.name == "COMPACT"
    assert (newest.properties.get(KEY), newest.properties.get("other")) == ("a", None)


def test_rows_that_somebody_else_writes_do_not_carry_the_note_of_those_before(table: ts.Table) -> None:
    committed(table, rows(1), CommitNote(properties={KEY: "a"}))
    table.upsert(rows(2))
    table.compact(full=True)
    assert all(KEY not in snapshot.properties for snapshot in table.snapshots()[1:])


def test_a_note_is_published_where_no_row_changes(table: ts.Table) -> None:
    origin = Origin(user="refresh", note=CommitNote(properties={KEY: "a"}))
    landed = overwrite(table.context, table.change_log, rows(), {}, origin=origin)
    assert landed is not None and landed.properties[KEY] == "a"


def test_a_guard_sees_the_newest_snapshot_and_what_it_refuses_leaves_nothing(table: ts.Table) -> None:
    seen: list[int | None] = []

    def guard(latest: Snapshot | None) -> None:
        seen.append(latest.id if latest else None)
        if latest is not None:
            raise ts.ConflictError("another refresh came first", kind="superseded")

    note = CommitNote(properties={KEY: "a"}, guard=guard)
    assert committed(table, rows(1), note) is not None
    with pytest.raises(ts.ConflictError, match="another refresh came first"):
        committed(table, rows(2), note)
    assert seen == [None, 1]
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
    assert len(table.snapshots()) == 1
