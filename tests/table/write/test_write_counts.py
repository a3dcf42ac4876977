"""What a snapshot says that its commit did is what reading the table before and after it shows, or it is said to be unknown."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import COUNTS_PROPERTY, WriteCounts

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.int32(), nullable=False), ("v", pa.int64())])
DELETION_VECTORS = {"deletion-vectors.enabled": "true"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, partitioned": {"partition_by": "day"},
    "append, deletion vectors": {"options": DELETION_VECTORS},
    "append, partitioned, deletion vectors": {"partition_by": "day", "options": DELETION_VECTORS},
    "keyed": {"primary_key": "id", "options": {"bucket": "2"}},
    "keyed, partitioned": {"primary_key": ["id", "day"], "partition_by": "day", "options": {"bucket": "2"}},
    "keyed, deletion vectors": {"primary_key": "id", "options": {"bucket": "2", **DELETION_VECTORS}},
    "keyed, dynamic buckets": {"primary_key": "id", "options": {"bucket": "-1"}},
    "keyed, changelog of lookups": {"primary_key": "id", "options": {"bucket": "1", "changelog-producer": "lookup"}},
}
Make = Callable[..., ts.Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    catalog = ts.open_catalog(tmp_path / "wh")
    catalog.create_database("d")

    def table(layout: str, **options: str) -> ts.Table:
        settings = dict(LAYOUTS[layout])
        return catalog.create_table("d.t", SCHEMA, **{**settings, "options": {**settings.get("options", {}), **options}})

    return table


def rows(*ids: int, v: int = 0, day: int | None = None) -> pa.Table:
    days = [number % 2 if day is None else day for number in ids]
    return pa.table({"id": ids, "day": days, "v": [v] * len(ids)}, schema=SCHEMA)


def write(table: ts.Table, batch: pa.Table) -> Snapshot | None:
    return table.upsert(batch) if table.primary_key else table.append(batch)


def read(table: ts.Table, snapshot_id: int) -> dict[tuple[int, int], int]:
    found = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist() if snapshot_id else []
    return {(row["id"], row["day"]): row["v"] for row in found}


def files_of(table: ts.Table, snapshot_id: int) -> dict[str, int]:
    if not snapshot_id:
        return {}
    live = table.context.manifests.live(table.context.snapshots.read(snapshot_id))
    return {entry.file.file_name: entry.file.file_size for entry in live}


def checked(table: ts.Table, snapshot: Snapshot | None, changed: int = 0) -> WriteCounts:
    """The counts of a snapshot, after they were compared with what there was before and after it. ``changed``: rows that it changes
    without another value."""
    assert snapshot is not None
    counts, stored = snapshot.counts, table.context.snapshots.read(snapshot.id)
    assert stored.counts == counts
    before, after = (files_of(table, number) for number in (snapshot.id - 1, snapshot.id))
    added, removed = ({name: one[name] for name in one.keys() - other.keys()} for one, other in ((after, before), (before, after)))
    assert (counts.files_added, counts.bytes_added) == (len(added), sum(added.values()))
    assert (counts.files_removed, counts.bytes_removed) == (len(removed), sum(removed.values()))
    old, new = (read(table, number) for number in (snapshot.id - 1, snapshot.id))
    if not table.context.settings.skips_level_zero:
        assert counts.rows_inserted in (None, len(new.keys() - old.keys()))
        assert counts.rows_deleted in (None, len(old.keys() - new.keys()))
        updated = sum(old[key] != new[key] for key in old.keys() & new.keys()) + changed
        assert counts.rows_updated in (None, updated)
    return counts


def parts(counts: WriteCounts) -> tuple[int | None, ...]:
    return counts.rows_affected, counts.rows_inserted, counts.rows_updated, counts.rows_deleted


@pytest.mark.deep_after(6)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_write_says_its_rows_and_files(make: Make, layout: str) -> None:
    table = make(layout)
    assert parts(checked(table, write(table, rows(*range(10))))) == (10, 10, 0, 0)
    second = parts(checked(table, write(table, rows(10, 11, 12))))
    # Whether keys were there is not looked up.
    assert second == ((3, None, None, 0) if table.primary_key else (3, 3, 0, 0))
    assert parts(checked(table, table.update({"v": "v + 1"}, "id < 4"))) == (4, 0, 4, 0)
    assert parts(checked(table, table.delete("id IN (0, 1, 12)"))) == (3, 0, 0, 3)
    assert parts(checked(table, table.update({"v": "7"}, "id = 2"))) == (1, 0, 1, 0)
    assert parts(checked(table, table.delete("TRUE"))) == (10, 0, 0, 10)
    assert table.update({"v": "7"}) is None and table.delete("id = 2") is None


@pytest.mark.deep_after(6)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_overwrite_says_the_rows_that_come_and_those_that_go(make: Make, layout: str) -> None:
    table = make(layout)
    write(table, rows(*range(6)))
    counts = checked(table, table.overwrite(rows(*range(20, 24)), partition={}))
    assert (counts.rows_inserted, counts.rows_updated) == (4, 0)
    assert counts.rows_deleted == 6
    emptied = checked(table, table.overwrite(SCHEMA.empty_table(), partition={}))
    assert (emptied.rows_inserted, emptied.files_added, emptied.rows_deleted) == (0, 0, 4)


@pytest.mark.parametrize("layout", ["append, partitioned", "append, partitioned, deletion vectors", "keyed, partitioned"])
def test_an_overwrite_of_one_partition_says_the_rows_of_that_one(make: Make, layout: str) -> None:
    table = make(layout)
    write(table, rows(*range(6)))
    counts = checked(table, table.overwrite(rows(20, 22, day=0), partition={"day": 0}))
    assert parts(counts) == (5, 2, 0, 3)
    assert parts(checked(table, table.drop_partitions([{"day": 1}]).snapshot)) == (3, 0, 0, 3)


def test_an_overwrite_of_a_keyed_partition_with_versions_of_rows_does_not_guess_how_many_go(make: Make) -> None:
    table = make("keyed, partitioned")
    write(table, rows(*range(6)))
    write(table, rows(0, 2, 8))
    counts = checked(table, table.overwrite(rows(20, 22, day=0), partition={"day": 0}))
    assert parts(counts) == (None, 2, 0, None)
    assert counts.text == "2 rows inserted, rows deleted not counted"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_compaction_changes_files_and_no_row(make: Make, layout: str) -> None:
    table = make(layout)
    for start in range(0, 9, 3):
        write(table, rows(*range(start, start + 3)))
    for number in table.compact(full=True).snapshot_ids:
        counts = checked(table, table.context.snapshots.read(number))
        assert parts(counts) == (0, 0, 0, 0) and counts.text == "no row changed"


def test_an_upsert_that_looks_its_keys_up_says_which_rows_were_there(make: Make) -> None:
    table = make("keyed")
    table.upsert(rows(1, 2, 3))
    counts = checked(table, table.upsert(rows(2, 3, 4).drop_columns(["v"]), missing_columns="keep"), changed=2)
    assert parts(counts) == (3, 1, 2, 0)


def test_a_delete_by_key_does_not_say_that_the_keys_were_there(make: Make) -> None:
    table = make("keyed")
    table.upsert(rows(1, 2, 3))
    counts = checked(table, table.delete(pa.table({"id": [3, 4]})))
    assert parts(counts) == (2, 0, 0, None)
    assert counts.text == "up to 2 rows deleted"


def test_changes_of_kinds_are_written_rows(make: Make) -> None:
    table = make("keyed")
    table.upsert(rows(1, 2, 3))
    changes = rows(1, 2, 4, v=5).append_column("_row_kind", pa.array(["+U", "-D", "+I"]))
    counts = checked(table, table.write_changes(changes))
    assert parts(counts) == (3, None, None, None)
    assert counts.text == "3 rows written"


def test_keys_that_come_again_in_files_of_one_write_are_not_taken_for_new_rows(make: Make) -> None:
    table = make("keyed")
    with table.new_writer() as writer:
        for _ in range(2):
            writer.write(rows(1, 2, 3))
            writer.flush()
        counts = checked(table, writer.commit())
    assert parts(counts) == (6, None, None, 0)


def test_first_row_keeps_what_is_stored_so_an_upsert_says_no_more_than_what_it_wrote(make: Make) -> None:
    table = make("keyed", **{"merge-engine": "first-row", "changelog-producer": "lookup"})
    assert parts(checked(table, table.upsert(rows(1, 2)))) == (2, 2, 0, 0)
    assert parts(checked(table, table.upsert(rows(2, 3)))) == (2, None, None, 0)


@pytest.mark.parametrize("layout", ["append", "keyed"])
def test_a_commit_that_lost_a_race_counts_what_it_did_on_the_snapshot_that_it_landed_on(make: Make, layout: str) -> None:
    table = make(layout)
    write(table, rows(1, 2))
    with table.new_writer() as writer:
        writer.write(rows(3))
        write(table, rows(4))
        assert checked(table, writer.commit()).rows_affected == 1


@pytest.mark.parametrize("layout", ["append", "keyed"])
def test_a_rollback_says_files_and_does_not_guess_rows(make: Make, layout: str) -> None:
    table = make(layout)
    write(table, rows(1, 2))
    table.delete("id = 1")
    counts = checked(table, table.rollback_to(1))
    assert parts(counts) == (None, None, None, None) and counts.text == ""


def test_a_rescale_moves_rows_and_changes_none(make: Make) -> None:
    table = make("keyed")
    write(table, rows(*range(6)))
    table.rescale(3)
    counts = checked(table, table.snapshots()[-1])
    assert parts(counts) == (0, 0, 0, 0)
    assert counts.files_added and counts.files_removed


def test_a_replay_returns_the_counts_of_the_commit_that_landed(make: Make) -> None:
    table = make("append")
    counts = []
    for _ in range(2):
        with table.new_writer(commit_user="job") as writer:
            writer.write(rows(1, 2))
            snapshot = writer.commit(identifier=1)
            assert snapshot is not None
            counts.append(snapshot.counts)
    assert counts[0] == counts[1] and counts[0].rows_inserted == 2


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{", "3", '{"rows_inserted":-1}', '{"rows_inserted":"3"}', '{"files_added":true}']
)
def test_a_property_that_is_no_count_says_nothing(make: Make, text: str | None) -> None:
    table = make("append")
    landed = write(table, rows(1))
    assert landed is not None
    properties: Mapping[str, str] = {} if text is None else {COUNTS_PROPERTY: text}
    assert replace(landed, properties=properties).counts == WriteCounts()
