"""A handle of a table that was dropped and made anew keeps its hands off the new one."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.table.system.systemkinds import SYSTEM_TABLES

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False)])

ACTS: dict[str, Callable[[ts.Table], object]] = {
    "rollback_to": lambda table: table.rollback_to(1),
    "rollback_to a tag": lambda table: table.rollback_to(tag="kept"),
    "fast_forward": lambda table: table.fast_forward("work", discard_newer=True),
    "tags": lambda table: table.tags(),
    "create_tag": lambda table: table.create_tag("mine"),
    "rename_tag": lambda table: table.rename_tag("kept", "mine"),
    "delete_tag": lambda table: table.delete_tag("kept"),
    "branches": lambda table: table.branches(),
    "branch": lambda table: table.branch("work"),
    "create_branch": lambda table: table.create_branch("mine"),
    "create_branch of a tag": lambda table: table.create_branch("mine", tag="kept"),
    "delete_branch": lambda table: table.delete_branch("work"),
    "consumers": lambda table: table.consumers(),
    "reset_consumer": lambda table: table.reset_consumer("billing", 1),
    "delete_consumer": lambda table: table.delete_consumer("billing"),
    "drop_partitions": lambda table: table.drop_partitions([{"day": "2020-01-01"}]),
    "drop_partitions, dry": lambda table: table.drop_partitions([{"day": "2020-01-01"}], dry_run=True),
    "expire_partitions": lambda table: table.expire_partitions(1),
    "expire_snapshots": lambda table: table.expire_snapshots(retain_min=1, retain_max=1),
    "remove_orphan_files": lambda table: table.remove_orphan_files(0, dry_run=False),
    "compact": lambda table: table.compact(full=True),
    "alter": lambda table: table.alter(ts.AddColumn("more", "INT")),
    "rescale": lambda table: table.rescale(2),
    "refresh": lambda table: table.refresh(),
    "snapshots": lambda table: table.snapshots(),
    "files": lambda table: table.files(),
    "partitions": lambda table: table.partitions(),
    "schema_history": lambda table: table.schema_history(),
    "position_after": lambda table: table.position_after(1),
    "scan": lambda table: table.scan(),
    "scan of a snapshot": lambda table: table.scan(snapshot_id=1),
    "scan of a snapshot that is not there": lambda table: table.scan(snapshot_id=9),
    "scan of a time": lambda table: table.scan(timestamp=1 << 50),
    "scan of a time before it": lambda table: table.scan(timestamp=1),
    "scan of a tag": lambda table: table.scan(tag="kept"),
    "files of a snapshot": lambda table: table.system("files").scan(snapshot_id=1),
    **{f"system table {name}": lambda table, name=name: table.system(name).to_arrow() for name in SYSTEM_TABLES},
}


def made(catalog: ts.Catalog) -> ts.Table:
    options = {"write-only": "true", "partition.timestamp-formatter": "yyyy-MM-dd"}
    table = catalog.create_table("shop.t", SCHEMA, primary_key=["id", "day"], partition_by=["day"], options=options)
    for number in range(3):
        table.upsert(pa.table({"id": [number], "day": ["2020-01-01"]}, schema=SCHEMA))
    table.create_tag("kept", 1)
    table.create_tag("fork", 1)
    table.create_branch("work", tag="fork")
    table.reset_consumer("billing", 2)
    # A handle that knows the history, which it does not look through again.
    table.scan()
    return table


@pytest.mark.deep
@pytest.mark.parametrize("what", ACTS)
def test_the_table_in_its_place_is_left_as_it_is(tmp_path: Path, what: str) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    old = made(catalog)
    catalog.drop_table("shop.t")
    made(catalog)
    orphan = tmp_path / "shop.db" / "t" / "day=2020-01-01" / "bucket-0" / "data-of-nobody-0.parquet"
    orphan.write_bytes(b"being written")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ts.ConflictError, match="dropped and created again") as refused:
        ACTS[what](old)
    assert refused.value.kind == "table-replaced"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.deep_after(18)
@pytest.mark.parametrize("what", ACTS)
def test_a_table_that_is_gone_is_not_begun_again(tmp_path: Path, what: str) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    old = made(catalog)
    catalog.drop_table("shop.t")
    with pytest.raises(ts.NotFoundError) as refused:
        ACTS[what](old)
    assert refused.value.kind == "no-such-table"
    assert not (tmp_path / "shop.db" / "t").exists()


Begun = Callable[[], object]
BEGUN: dict[str, Callable[[ts.Table], Begun]] = {
    "a scan": lambda table: table.scan().to_arrow,
    "a planned scan": lambda table: (scan := table.scan(), scan.plan)[0].to_arrow,  # type: ignore[return-value, union-attr]
    "a count": lambda table: table.scan().count,
    "a scan in progress": lambda table: after_first(table.scan().to_batches()),
    "changes": lambda table: table.changes(from_snapshot=0).to_arrow,
    "changes in progress": lambda table: after_first(table.changes(from_snapshot=0).to_batches()),
    "changes that are counted": lambda table: table.changes(from_snapshot=0, columns=["id"]).count,
    "consuming all rows": lambda table: after_first(table.consume(scan="full", follow=False)),
    "following": lambda table: after_first(table.consume(scan="full", follow=True)),
    "following with the next change": lambda table: after_first(table.consume(scan="from-timestamp", timestamp=0, follow=True)),
    "a batch to be committed": lambda table: next(table.consume(scan="full", consumer_id="mine")).commit,
}


def after_first(found: Iterator[object]) -> Begun:
    """What goes on behind the first batch."""
    first = next(found)
    return lambda: list(chain([first], found))


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("what", BEGUN)
def test_what_was_begun_before_says_that_the_table_was_replaced(tmp_path: Path, what: str, more: int) -> None:
    """Also where the new table has snapshots of the same numbers, and files of the same columns."""
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    old = made_of_buckets(catalog, 2)
    for number in range(3):
        old.upsert([{"id": id, "v": "old"} for id in range(number, 4000 + number)])
    begun = BEGUN[what](old)
    with catalog.stage_replacement("shop.t", KEYED, ["id"], options={"bucket": "3"}) as staged:
        for number in range(more + 1):
            staged.table.upsert([{"id": number, "v": "new"}])
        new = staged.publish()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ts.ConflictError, match="or replaced") as refused:
        begun()
    assert refused.value.kind == "table-replaced"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert new.scan().count() == more + 1


def test_what_was_begun_before_says_that_the_table_was_dropped(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    for what, begin in BEGUN.items():
        old = made_of_buckets(catalog, 2)
        old.upsert([{"id": 1, "v": "old"}])
        old.upsert([{"id": 2, "v": "old"}])
        begun = begin(old)
        catalog.drop_table("shop.t")
        with pytest.raises(ts.NotFoundError, match="it was dropped since it was opened") as refused:
            begun()
        assert refused.value.kind == "no-such-table", what


KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def made_of_buckets(catalog: ts.Catalog, buckets: int) -> ts.Table:
    return catalog.create_table("shop.t", KEYED, primary_key=["id"], options={"bucket": str(buckets), "write-only": "true"})
