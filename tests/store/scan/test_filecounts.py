"""Rows are counted from manifests where that is exact, and read elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store import manifests as manifests_module
from tablestore.store.scan.filecounts import count_files

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.float64(), nullable=False), ("v", pa.string())])
Create = Callable[..., ts.Table]


@pytest.fixture(params=[0, 1000])
def create(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Create:
    """Creates a table, whose manifests are read as columns or as objects."""
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", request.param)

    def table(*key: str, **options: str) -> ts.Table:
        catalog = ts.open_catalog(str(tmp_path / "warehouse"))
        catalog.create_database("shop")
        options = {"bucket": "1" if key else "-1", "write-only": "true", **options}
        return catalog.create_table(
            "shop.t", COLUMNS, primary_key=key, options={n.replace("_", "-"): o for n, o in options.items()}
        )

    return table


def write(table: ts.Table, ids: range) -> None:
    rows = pa.table({"id": ids, "x": [float(i) for i in ids], "v": ["a"] * len(ids)}, COLUMNS)
    table.upsert(rows) if table.primary_key else table.append(rows)


def buckets_to_read(table: ts.Table) -> int:
    """The number of buckets that have to be read for a count, which is checked to be that of the rows."""
    assert table.scan().count() == table.to_arrow().num_rows
    snapshot = table.snapshots()[-1]
    return len(count_files(table.context, snapshot).to_read)


def test_files_without_a_key_in_common_are_not_read(create: Create) -> None:
    table = create("id")
    write(table, range(10))
    write(table, range(20, 30))
    assert buckets_to_read(table) == 0 and table.scan().count() == 20
    write(table, range(9, 12))
    assert buckets_to_read(table) == 1 and table.scan().count() == 22
    table.compact(full=True)
    assert buckets_to_read(table) == 0 and table.scan().count() == 22


def test_retractions_are_read(create: Create) -> None:
    table = create("id")
    write(table, range(10))
    table.delete(pa.table({"id": pa.array([77], pa.int64())}))
    assert buckets_to_read(table) == 1 and table.scan().count() == 10


def test_keys_without_a_known_order_are_read(create: Create) -> None:
    table = create("x")
    write(table, range(10))
    assert buckets_to_read(table) == 1


def test_keys_that_differ_in_the_second_column_only_are_read(create: Create) -> None:
    table = create("id", "x")
    write(table, range(10))
    table.upsert(pa.table({"id": [9], "x": [9.5], "v": ["b"]}, COLUMNS))
    assert buckets_to_read(table) == 1 and table.scan().count() == 11


@pytest.mark.parametrize("key", [(), ("id",)])
def test_deletion_vectors_count(create: Create, key: tuple[str, ...]) -> None:
    table = create(*key, **{"deletion-vectors.enabled": "true"})
    write(table, range(10))
    write(table, range(20, 30))
    table.delete("id in (3, 4, 25)")
    if key:
        table.compact(full=True)
    assert table.context.manifests.read_index(table.snapshots()[-1]) or key
    assert buckets_to_read(table) == 0 and table.scan().count() == 17


def test_a_snapshot_is_counted_once(create: Create, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create("id")
    write(table, range(10))
    assert table.scan().count() == 10
    with monkeypatch.context() as patch:
        patch.delattr(manifests_module.Manifests, "live_parts")
        assert table.scan().count() == 10
    write(table, range(10, 15))
    assert table.scan().count() == 15
    assert table.scan(snapshot_id=1).count() == 10
