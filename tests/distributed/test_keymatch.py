"""Rows that are matched by their keys in tasks are those of a scan."""

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed import keymatch
from tablestore.distributed.keymatch import KeyMatch, match_by_key, matched_rows, task_of
from tablestore.distributed.read import pin_read
from tablestore.distributed.spec import TableSpec
from tablestore.store.context import Shared
from tablestore.store.scan import lookupcache
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


def matched(table: Table, keys: Mapping[str, Any], columns: Sequence[str] | None = None) -> KeyMatch | None:
    pin = pin_read(table, TableSpec(location=table.location, storage_options={}))
    places = [list(keys).index(name) for name in table.primary_key]
    return match_by_key(pin, pa.table(keys).schema, places, columns or table.table_schema.field_names)


def looked_up(
    table: Table, keys: Mapping[str, Any], columns: Sequence[str] | None = None, tasks: int = 2, shared: Shared | None = None
) -> list[Any] | None:
    """The rows as the tasks find them, each once; None if they are not looked up. All given rows come out, each once."""
    match = matched(table, keys, columns)
    if match is None:
        return None
    given = pa.table(keys)
    of_key = [given.column(name).combine_chunks() for name in table.primary_key]
    place = task_of(match, of_key, tasks).to_pylist() if tasks > 1 else [0] * given.num_rows
    found: dict[str, Any] = {}
    out: list[Any] = []
    for task in range(tasks):
        of_task = given.filter(pa.array([one == task for one in place])).to_batches(max_chunksize=40)
        for rows, beside in matched_rows(match, of_task, shared):
            out += rows.to_pylist()
            for key, row in zip(rows.to_pylist(), beside.to_pylist() if beside else [], strict=beside is not None):
                assert all(row.get(name, key[name]) == key[name] for name in table.primary_key)
                assert found.setdefault(str(key), row) == row
    assert sorted(out, key=str) == sorted(given.to_pylist(), key=str)
    return sorted(found.values(), key=str)


def scanned(table: Table, filter: str, columns: Sequence[str] | None = None) -> list[Any]:
    return sorted(table.scan(columns=columns, filter=filter).to_arrow().to_pylist(), key=str)


@pytest.mark.deep_after(1)
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
def test_what_is_looked_up_is_what_a_scan_reads_also_where_a_process_keeps_what_it_decoded(
    catalog: ts.Catalog, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookupcache, "LEAST_FILE_BYTES", 0)
    table, shared = made(catalog, **options), Shared()
    draw = random.Random(5)
    table.upsert(rows(range(0, 2000, 2)))
    table.compact(full=True)
    for x in (1, None, 3):
        table.upsert(rows(sorted(draw.sample(range(2200), 150)), x))
    if not options or "deletion_vectors.enabled" in options:
        table.delete(pa.table({"id": pa.array(draw.sample(range(2000), 100), pa.int32())}))
    if options:
        table.compact()
    for count in (0, 1, 300, 300):
        ids = draw.sample(range(-50, 2500), count)
        chosen = f"id IN ({', '.join(map(str, ids))})" if ids else "id < -50"
        for columns in (None, ["x"], ["name", "id"]):
            keys = {"id": pa.array([*ids, *ids[:7], None], pa.int64())}
            assert looked_up(table, keys, columns) == scanned(table, chosen, columns)
            assert looked_up(table, keys, columns, shared=shared) == scanned(table, chosen, columns)
        if count:
            table.upsert(rows(range(count, count + 50), x=count))
    assert shared.once(keymatch._cache).used_bytes > 0
    assert looked_up(table, {"id": [2**31, -(2**40), 2]}) == scanned(table, "id = 2")


def test_keys_of_several_columns_name_their_partitions(catalog: ts.Catalog) -> None:
    table = made(catalog, key=("name", "day"), by=("day",))
    table.upsert(rows(range(40)))
    table = table.alter(AddColumn("y", pa.int64()))
    table.upsert(rows(range(20, 60, 2)).append_column("y", pa.array([5] * 20)))
    keys = {"day": [DAYS[0], DAYS[1], DAYS[1], DAYS[0], None], "name": ["ä30", "ä31", "ä30", "ä2", "ä4"], "more": [1] * 5}
    found = looked_up(table, keys)
    assert found == scanned(table, "name IN ('ä30', 'ä31', 'ä2')")
    assert {row["name"]: row["y"] for row in found or []} == {"ä2": None, "ä30": 5, "ä31": None}
    assert looked_up(table, keys, ["id"]) == [{"id": 2}, {"id": 30}, {"id": 31}]


def test_a_match_keeps_to_its_snapshot(catalog: ts.Catalog) -> None:
    table = made(catalog)
    before = matched(table, {"id": [1]})
    table.upsert(rows(range(3), x=1))
    match = matched(table, {"id": [1]})
    table.upsert(rows(range(5), x=2))
    assert before is not None and match is not None
    batches = pa.table({"id": [1, 4]}).to_batches()
    assert [found for _, found in matched_rows(before, batches)] == [None]
    assert [found and found.column("x").to_pylist() for _, found in matched_rows(match, batches)] == [[1], None]


def test_large_tables_are_worth_several_tasks(catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablestore.distributed.keymatch._ROWS_OF_A_TASK", 10)
    table = made(catalog)
    for count, expected in ((0, 1), (9, 1), (29, 2)):
        table.upsert(rows(range(count)))
        match = matched(table, {"id": [1]})
        assert match is not None
        assert (match.tasks(8), match.tasks(1)) == (expected, 1)


def test_keys_that_sql_takes_for_others_are_not_looked_up(catalog: ts.Catalog) -> None:
    table = made(catalog)
    assert looked_up(table, {"id": [3]}) == []
    for keys in (["3"], [3.0], [True], [DAYS[0]]):
        assert looked_up(table, {"id": keys}) is None
    append = catalog.create_table("shop.append", schema=ROWS, options={"bucket": "-1"})
    append.append(rows(range(4)))
    assert looked_up(append, {"id": [3]}) is None


def test_tables_without_a_fixed_number_of_buckets_are_looked_into_too(catalog: ts.Catalog) -> None:
    table = made(catalog, bucket="-1")
    table.upsert(rows(range(40)))
    match = matched(table, {"id": [3]})
    assert match is not None
    assert looked_up(table, {"id": [3, 50]}, tasks=match.tasks(8)) == scanned(table, "id = 3")
