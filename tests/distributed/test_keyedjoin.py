"""Rows that are joined by key get the rows that a scan has, whatever the table is like."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.keyedjoin import JoinPin, join_batches, pin_join, prepare_join
from tablestore.distributed.spec import TableSpec
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError
from tablestore.store.context import Shared
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

PLAIN = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])
WIDE = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int64()),
        ("v", pa.string()),
    ]
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


def joined(
    table: Table,
    given: pa.Table,
    *,
    on: Any,
    shared: Shared | None = None,
    pin: JoinPin | None = None,
    batch_rows: int = 7,
    **how: Any,
) -> list[tuple[Any, ...]]:
    spec = TableSpec(location=table.location, storage_options={})
    join = prepare_join(table, spec, given.column_names, on=on, **how)
    batches = given.to_batches(max_chunksize=batch_rows)
    out = join_batches(join, pin or pin_join(join, shared), batches, shared)
    return [row for rows, found in out for row in zip(*(c.to_pylist() for c in (*rows.columns, *found.columns)), strict=True)]


def by_key(table: Table, key: list[str], columns: list[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = table.scan().to_arrow().to_pylist()
    found = {tuple(row[name] for name in key): tuple(row[name] for name in columns) for row in rows}
    assert len(found) == len(rows)
    return found


def check(table: Table, given: pa.Table, columns: list[str], **more: Any) -> None:
    """All rows of ``given``, whose columns are the key, with what a scan has for them."""
    stored = by_key(table, given.column_names, columns)
    keys = [tuple(row.values()) for row in given.to_pylist()]
    nothing = (None,) * len(columns)
    left = joined(table, given, on=given.column_names, columns=columns, **more)
    assert sorted(left, key=repr) == sorted(((*key, *stored.get(key, nothing)) for key in keys), key=repr)
    inner = joined(table, given, on=given.column_names, columns=columns, how="inner", **more)
    assert sorted(inner, key=repr) == sorted(((*key, *stored[key]) for key in keys if key in stored), key=repr)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "3"},
        {"bucket": "2", "write-only": "true"},
        {"bucket": "-1"},
        {"bucket": "2", "deletion-vectors.enabled": "true"},
        {"bucket": "2", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "write-only": "true"},
        {"bucket": "2", "merge-engine": "partial-update", "write-only": "true"},
        {"bucket": "2", "merge-engine": "first-row"},
    ],
    ids=str,
)
def test_rows_are_those_of_a_scan_in_tables_of_every_kind(catalog: Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"], options=options)
    rng = np.random.default_rng(7)
    for step in range(4):
        ids = rng.choice(200, 60, replace=False)
        table.upsert(pa.table({"id": ids, "v": [f"{step}-{i}" for i in ids], "n": np.full(60, step, np.int32)}, schema=PLAIN))
    if "merge-engine" not in options:
        table.delete("id < 40 and n = 3")
    given = pa.table({"id": pa.array([None, *rng.integers(-5, 230, 300).tolist(), 2**62], pa.int64())})
    shared = Shared()
    check(table, given, ["v", "n"], shared=shared)
    check(table, given, ["n"], shared=shared)
    table.compact(full=True)
    check(table, given, ["v", "n"], shared=shared)


@pytest.mark.parametrize(("primary_key", "bucket"), [(["day", "id"], "2"), (["id", "day", "n"], "3"), (["day", "n"], "-1")])
def test_keys_of_several_columns_are_found_in_their_partitions(catalog: Catalog, primary_key: list[str], bucket: str) -> None:
    days = [dt.date(2024, 1, 1 + n) for n in range(5)]
    options = {"bucket": bucket}
    table = catalog.create_table("shop.t", schema=WIDE, primary_key=primary_key, partition_by=["day"], options=options)
    rows = [{"day": days[n % 3], "id": f"k{n % 50}é", "n": n % 50, "v": str(n)} for n in range(250)]
    table.upsert(pa.Table.from_pylist(rows, schema=WIDE))
    values = [name for name in WIDE.names if name not in primary_key]
    given = [{"day": days[n % 5], "id": f"k{n % 60}é", "n": n % 50} for n in range(200)] + [{"day": None, "id": "k1é", "n": 1}]
    check(table, pa.Table.from_pylist([{name: row[name] for name in primary_key} for row in given]), values)
    # Given columns may have other names, and the table's too.
    some = pa.table({"other": ["x"], **{f"_{name}": [rows[0][name]] for name in primary_key}})
    (row,) = joined(table, some, on={f"_{name}": name for name in primary_key}, columns={"other v": "v"})
    assert row[-1] == by_key(table, primary_key, ["v"])[tuple(rows[0][name] for name in primary_key)][0]


def test_keys_that_the_type_of_the_column_cannot_hold_match_nothing(catalog: Catalog) -> None:
    schema = pa.schema(
        [pa.field("at", pa.timestamp("ms"), nullable=False), pa.field("x", pa.float64(), nullable=False), ("v", pa.int8())]
    )
    table = catalog.create_table("shop.t", schema=schema, primary_key=["at", "x"], options={"bucket": "2"})
    at = dt.datetime(2024, 5, 1, 12, 0, 0, 1000)
    floats = [0.0, -0.0, float("nan"), float("inf")]
    table.upsert(pa.table({"at": [at] * 4, "x": floats, "v": [0, 1, 2, 3]}, schema=schema))
    given = pa.table({"at": pa.array([at] * 4 + [at + dt.timedelta(microseconds=1)], pa.timestamp("us")), "x": [*floats, 0.0]})
    found = {(row[0].microsecond, repr(row[1])): row[2] for row in joined(table, given, on=["at", "x"])}
    assert found == {(1000, "0.0"): 0, (1000, "-0.0"): 1, (1000, "nan"): 2, (1000, "inf"): 3, (1001, "0.0"): None}


def test_a_row_that_many_rows_want_is_repeated_in_batches_of_bounded_size(catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    table.upsert([{"id": 1, "v": "x" * 20_000_000, "n": 1}, {"id": 2, "v": "y", "n": 2}])
    given = pa.table({"id": [1, 2] * 20})
    join = prepare_join(table, TableSpec(location=table.location, storage_options={}), ["id"], on="id")
    found = list(join_batches(join, pin_join(join), given.to_batches()))
    assert sum(rows.num_rows for rows, _ in found) == 40
    assert max(looked_up.nbytes for _, looked_up in found) < 80_000_000


def test_empty_rows_and_empty_tables_are_joined_with_nothing(catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    given = pa.table({"id": [1, 2]})
    assert joined(table, given, on="id") == [(1, None, None), (2, None, None)]
    assert joined(table, given, on="id", how="inner") == []
    table.upsert([{"id": 1, "v": "a", "n": 1}])
    assert joined(table, given.slice(0, 0), on="id") == []
    assert joined(table, given, on="id", columns=[], how="inner") == [(1,)]


def test_all_tasks_see_the_pinned_snapshot_and_the_next_pin_a_newer_one(catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    table.upsert([{"id": 1, "v": "a", "n": 1}])
    spec, given, shared = TableSpec(location=table.location, storage_options={}), pa.table({"id": [1, 2]}), Shared()
    join = prepare_join(table, spec, ["id"], on="id", columns=["v"])

    def values(pin: JoinPin) -> list[str | None]:
        return [row for _, found in join_batches(join, pin, given.to_batches(), shared) for row in found["v"].to_pylist()]

    first = pin_join(join, shared)
    table.upsert([{"id": 1, "v": "b", "n": 1}, {"id": 2, "v": "c", "n": 1}])
    assert values(first) == ["a", None]
    second = pin_join(join, shared)
    assert (values(second), values(first)) == (["b", "c"], ["a", None])
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(NotFoundError):
        values(first)


def test_a_join_goes_on_through_changes_of_the_table_that_leave_its_columns(catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    table.upsert([{"id": 1, "v": "a", "n": 1}])
    shared, given = Shared(), pa.table({"id": [1]})
    join = prepare_join(table, TableSpec(location=table.location, storage_options={}), ["id"], on="id", columns=["v"])

    def values() -> list[str | None]:
        return [
            row
            for _, found in join_batches(join, pin_join(join, shared), given.to_batches(), shared)
            for row in found["v"].to_pylist()
        ]

    assert values() == ["a"]
    with ts.TableEnvironment.create(warehouse=str(Path(table.location).parent.parent)) as env:
        env.execute_sql("ALTER TABLE shop.t ADD (w INT)")
        env.execute_sql("ALTER TABLE shop.t RENAME v TO text")
        env.execute_sql("ALTER TABLE shop.t DROP (n)")
        catalog.table("shop.t").upsert([{"id": 1, "text": "b", "w": 1}])
        assert values() == ["b"]
        env.execute_sql("ALTER TABLE shop.t DROP (text)")
    with pytest.raises(ConflictError, match="'v', which a look-up reads, was dropped"):
        values()
    catalog.drop_table("shop.t")
    catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    with pytest.raises(ConflictError, match="dropped and created again"):
        values()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"on": "v"}, r"expected on to name the whole primary key \(id\), found v; .* read the table as a DataFrame"),
        ({"on": []}, "found nothing"),
        ({"on": {"idd": "id"}}, "no such column; did you mean 'id'"),
        ({"on": "id", "how": "outer"}, "expected how = left or inner, found 'outer'"),
        ({"on": "id", "columns": ["vv"]}, "the table has no column 'vv'; did you mean 'v'"),
        ({"on": "id"}, r"both sides have a column 'V'|both sides have a column 'v'"),
        ({"on": "id", "columns": {"a": "n", "A": "n"}}, "would have one name"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_a_way_out(catalog: Catalog, how: dict[str, Any], message: str) -> None:
    table = catalog.create_table("shop.t", schema=PLAIN, primary_key=["id"])
    with pytest.raises(InvalidInputError, match=message):
        prepare_join(table, TableSpec(location=table.location, storage_options={}), ["id", "V"], **how)
    plain = catalog.create_table("shop.plain", schema=PLAIN)
    with pytest.raises(InvalidInputError, match="no primary key"):
        prepare_join(plain, TableSpec(location=plain.location, storage_options={}), ["id"], on="id")
