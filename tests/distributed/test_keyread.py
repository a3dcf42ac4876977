"""Rows looked up by their keys in tasks are those of a scan."""

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.keyread import plan_key_read, read_keys
from tablestore.distributed.read import pin_read
from tablestore.distributed.spec import TableSpec
from tablestore.errors import FormatError
from tablestore.table.table import Table
from tablestore.types.evolution.schemachanges import AddColumn

ROWS = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("name", pa.string()), ("x", pa.int64())])
DAYS = [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def made(catalog: ts.Catalog, key: Sequence[str] = ("id",), by: Sequence[str] = (), **options: str) -> Table:
    given = {"bucket": "2", "write-only": "true", **{name.replace("_", "-"): value for name, value in options.items()}}
    return catalog.create_table("shop.t", schema=ROWS, primary_key=key, partition_by=by, options=given)


def rows(ids: Sequence[int], x: int | None = 0) -> pa.Table:
    columns = {"id": ids, "day": [DAYS[n % 2] for n in ids], "name": [f"ä{n}" for n in ids], "x": [x] * len(ids)}
    return pa.table(columns, schema=ROWS)


def looked_up(table: Table, keys: Mapping[str, Any], columns: Sequence[str] | None = None, **how: Any) -> list[Any] | None:
    """The rows as the tasks find them; None if they are not looked up."""
    spec = TableSpec(location=table.location, storage_options={})
    tasks = plan_key_read(pin_read(table, spec), pa.table(keys), columns=columns, **how)
    if tasks is None:
        return None
    return sorted((row for task in tasks for batch in read_keys(spec, task) for row in batch.to_pylist()), key=str)


def scanned(table: Table, filter: str, columns: Sequence[str] | None = None) -> list[Any]:
    return sorted(table.scan(columns=columns, filter=filter).to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge_engine": "partial-update"},
        {"merge_engine": "aggregation", "fields.x.aggregate-function": "sum"},
        {"merge_engine": "first-row"},
        {"deletion_vectors.enabled": "true"},
    ],
    ids=str,
)
def test_what_is_looked_up_is_what_a_scan_reads(catalog: ts.Catalog, options: dict[str, str]) -> None:
    table = made(catalog, **options)
    draw = random.Random(5)
    table.upsert(rows(range(0, 2000, 2)))
    table.compact(full=True)
    for x in (1, None, 3):
        table.upsert(rows(sorted(draw.sample(range(2200), 150)), x))
    if not options or "deletion_vectors.enabled" in options:
        table.delete(pa.table({"id": pa.array(draw.sample(range(2000), 100), pa.int32())}))
    if options:
        table.compact()
    for count in (0, 1, 300):
        ids = draw.sample(range(-50, 2500), count)
        chosen = f"id IN ({', '.join(map(str, ids))})" if ids else "id < -50"
        for columns in (None, ["x"], ["name", "id"]):
            keys = {"id": pa.array([*ids, *ids[:7], None], pa.int64())}
            assert looked_up(table, keys, columns) == scanned(table, chosen, columns)
    assert looked_up(table, {"id": [2**31, -(2**40), 2]}) == scanned(table, "id = 2")


def test_keys_of_several_columns_name_their_partitions(catalog: ts.Catalog) -> None:
    table = made(catalog, key=("name", "day"), by=("day",))
    table.upsert(rows(range(40)))
    table = table.alter(AddColumn("y", pa.int64()))
    table.upsert(rows(range(20, 60, 2)).append_column("y", pa.array([5] * 20)))
    keys = {"day": [DAYS[0], DAYS[1], DAYS[1], DAYS[0], None], "name": ["ä30", "ä31", "ä30", "ä2", "ä4"], "more": [1] * 5}
    found = looked_up(table, keys, task_bytes=1)
    assert found == scanned(table, "name IN ('ä30', 'ä31', 'ä2')")
    assert {row["name"]: row["y"] for row in found or []} == {"ä2": None, "ä30": 5, "ä31": None}
    assert looked_up(table, keys, ["id"], filter="day = DATE '2024-02-29'") == [{"id": 31}]


def test_only_files_that_a_key_may_lie_in_are_read(catalog: ts.Catalog) -> None:
    table = made(catalog, bucket="1")
    for start in (0, 100, 200):
        table.upsert(rows(range(start, start + 100)))
    spec = TableSpec(location=table.location, storage_options={})
    near, far = (plan_key_read(pin_read(table, spec), pa.table({"id": ids}), task_bytes=1) for ids in ([5, 250], [-1, 300]))
    assert near is not None
    assert len(near) == 2
    assert far == ()
    with pytest.raises(FormatError, match="not a key read task"):
        read_keys(spec, b"{}")


def test_what_does_not_say_where_its_row_lies_is_not_looked_up(catalog: ts.Catalog) -> None:
    table = made(catalog)
    assert looked_up(table, {"id": [3]}) == []
    for keys in (["3"], [3.0], [True], [DAYS[0]]):
        assert looked_up(table, {"id": keys}) is None
    for name, key, by, bucket in (
        ("append", (), (), "2"),
        ("dynamic", ("id",), (), "-1"),
        ("partitioned", ("id", "day"), ("day",), "2"),
    ):
        options = {"bucket": bucket, "bucket-key": "id"} if bucket == "2" else {"bucket": bucket}
        other = catalog.create_table(f"shop.{name}", schema=ROWS, primary_key=key, partition_by=by, options=options)
        (other.upsert if key else other.append)(rows(range(4)))
        if name == "partitioned":
            assert looked_up(other, {"id": [1], "day": [DAYS[1]]}) == scanned(other, "id = 1")
        else:
            assert looked_up(other, {"id": [3]}) is None
