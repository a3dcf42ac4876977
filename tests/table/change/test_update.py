"""table.update does what SQL's UPDATE does: to twins of one table, with values at the edges of their types."""

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.paths import snapshot_path

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "day": pa.array(["a", "b"] * 4),
        "i": pa.array([1, -7, 0, None, 2**31 - 1, -(2**31), 5, 5], pa.int32()),
        "x": pa.array([1.5, math.nan, -0.0, 0.0, None, -math.inf, math.inf, 2.5], pa.float64()),
        "m": pa.array(["1.25", "-2.75", None, "0.00", "99999999.99", "3.00", "-99999999.99", "2.00"]).cast(pa.decimal128(10, 2)),
        "s": pa.array(["ink", " Pen ", "", None, "äÖ%_", "a\nb", "it's", "x"]),
        "odd `name": pa.array([1, 2, 3, None, 5, 6, 7, 8], pa.int32()),
    }
)
SHAPES: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ["id"]},
    "keyed by two": {"primary_key": ["id", "day"], "partition_by": ["day"], "options": {"bucket": "2"}},
    "input": {"primary_key": ["id"], "options": {"changelog-producer": "input"}},
    "vectors": {"primary_key": ["id"], "options": {"deletion-vectors.enabled": "true"}},
    "append": {},
    "append with vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "append by day": {"partition_by": ["day"]},
}
CASES: list[tuple[dict[str, Any], str | None]] = [
    ({"i": "coalesce(i, 0) - 1"}, "i > -5"),
    ({"s": "upper(s) || '!'", "x": "x * 2"}, "x <> 0 OR s LIKE '%n%'"),
    ({"m": "m * 0.5 + i"}, "i BETWEEN -100 AND 100"),
    ({"S": "CASE WHEN i > 0 THEN 'up' WHEN i < 0 THEN NULL ELSE s END"}, None),
    ({"i": "`odd ``name`", "`odd": "1"}, None),
    ({"x": "i", "i": "m", "m": "7"}, "i BETWEEN 0 AND 10"),
    ({"s": "id"}, "upper(s) = 'INK'"),
    ({"x": "nullif(x, x)"}, "x = CAST('NaN' AS DOUBLE) OR x = 0"),
    ({"i": "1"}, "id > 100"),
]


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("wh"), engine="duckdb") as env:
        env.catalog().create_database("default", ignore_if_exists=True)
        yield env


def twins(sql: ts.TableEnvironment, shape: str) -> tuple[ts.Table, ts.Table]:
    found = []
    for name in ("py", "tosql"):
        sql.catalog().drop_table(f"default.{name}", ignore_if_not_exists=True)
        table = sql.catalog().create_table(f"default.{name}", ROWS.schema, **SHAPES[shape])
        for part in (ROWS.slice(0, 5), ROWS.slice(5)):
            table.upsert(part) if table.primary_key else table.append(part)
        found.append(table)
    return found[0], found[1]


def content(table: ts.Table) -> list[str]:
    return sorted(map(str, table.to_arrow().to_pylist()))


@pytest.mark.deep
@pytest.mark.parametrize("shape", SHAPES)
def test_an_update_does_what_the_same_update_in_sql_does(sql: ts.TableEnvironment, shape: str) -> None:
    mine, other = twins(sql, shape)
    # All of it where rows have a key and where they have none; the other shapes differ in how rows are written.
    for given, where in CASES if shape in ("keyed", "append") else CASES[:3]:
        given = {"odd `name" if name == "`odd" else name: value for name, value in given.items()}
        assignments = ", ".join(f"`{name.replace('`', '``')}` = {value}" for name, value in given.items())
        landed = mine.update(given, where)
        result = sql.execute_sql(f"UPDATE tosql SET {assignments}" + (f" WHERE {where}" if where else ""))
        assert content(mine) == content(other), (given, where)
        assert (landed is None) == (result.snapshot is None)
    assert mine.refresh().snapshots()[-1].commit_kind == other.refresh().snapshots()[-1].commit_kind
    if shape == "input":
        changes = [sorted(map(str, t.changes(0).to_arrow().to_pylist())) for t in (mine, other)]
        assert changes[0] == changes[1]


def test_a_decimal_in_a_double_is_the_nearest_number(sql: ts.TableEnvironment) -> None:
    mine, _ = twins(sql, "keyed")
    mine.update({"x": "0.35"}, "id = 1")
    mine.update({"x": "i * 0.07"}, "id = 0")
    assert mine.scan(["x"], "id = 1").to_arrow().column("x").to_pylist() == [0.35]
    assert mine.scan(["id"], "x + 0 = 0.35 OR x = 0.07").count() == 2


def test_values_of_python_are_literals(sql: ts.TableEnvironment) -> None:
    mine, _ = twins(sql, "keyed")
    mine.update({"m": Decimal("1.5"), "s": pa.scalar("i"), "x": None, "i": 3}, pc.field("id") == 1)
    row = mine.scan(["m", "s", "x", "i"], "id = 1").to_arrow().to_pylist()[0]
    assert row == {"m": Decimal("1.50"), "s": "i", "x": None, "i": 3}


NESTED = pa.schema(
    {
        "id": pa.int32(),
        "tags": pa.list_(pa.int32()),
        "at": pa.struct({"x": pa.int32(), "name": pa.string()}),
        "by": pa.map_(pa.string(), pa.int64()),
        "wide": pa.decimal128(38, 0),
    }
)


@pytest.fixture
def nested(sql: ts.TableEnvironment) -> ts.Table:
    sql.catalog().drop_table("default.nested", ignore_if_not_exists=True)
    table = sql.catalog().create_table("default.nested", NESTED, primary_key=["id"])
    table.upsert([{"id": 1, "tags": [1], "at": {"x": 1, "name": "a"}, "by": [("k", 1)], "wide": 1}])
    return table


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"tags": [2, None]}, {"tags": [2, None]}),
        ({"tags": []}, {"tags": []}),
        ({"tags": pa.scalar([7], pa.list_(pa.int32()))}, {"tags": [7]}),
        ({"at": {"name": None, "x": 5}}, {"at": {"x": 5, "name": None}}),
        ({"by": {"a": 2}}, {"by": [("a", 2)]}),
        ({"by": []}, {"by": []}),
        ({"wide": 10**37, "by": None}, {"wide": Decimal(10**37), "by": None}),
    ],
)
def test_lists_structs_and_maps_of_python_are_values(nested: ts.Table, given: Any, stored: dict[str, Any]) -> None:
    nested.update(given)
    assert nested.scan(list(stored)).to_arrow().to_pylist() == [stored]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tags": [2**40]}, "does not fit"),
        ({"tags": ["a"]}, "takes INT"),
        ({"at": {"x": 5}}, "lacks name"),
        ({"at": {"x": 5, "name": "a", "z": 1}}, "'z'"),
        ({"by": {"a": 2**70}}, "expected SQL text or a value"),
        ({"wide": [1]}, "takes no ARRAY"),
    ],
)
def test_nested_values_that_do_not_fit_are_refused(nested: ts.Table, given: Any, message: str) -> None:
    before = nested.to_arrow()
    with pytest.raises(InvalidInputError, match=message):
        nested.update(given)
    assert nested.to_arrow() == before


@pytest.mark.deep_after(8)
@pytest.mark.parametrize(
    ("given", "where", "message"),
    [
        ({}, None, "expected the columns"),
        ("i = 1", None, "expected the columns"),
        ({"nope": "1"}, None, "no column 'nope'"),
        ({"i": "1", "I": "2"}, None, "set twice"),
        ({"id": "id + 1"}, None, "identifies a row"),
        ({"i": "'x'"}, None, "takes no STRING"),
        ({"i": "s"}, None, "takes no STRING"),
        ({"i": "x > 1"}, None, "takes no BOOLEAN"),
        ({"i": "i + 1"}, "i > 2147483646", "overflow"),
        ({"i": "x"}, "x > 1e300", "does not fit"),
        ({"m": "m * 10"}, "i = 2147483647", "does not fit"),
        ({"i": "i / (i - i)"}, "i = 1", "division by zero"),
        ({"s": object()}, None, "SQL text or a value"),
        ({"i": "i +"}, None, "such as"),
        ({"i": "1"}, "i +", "such as"),
        ({"i": "sum(i)"}, None, "TableEnvironment"),
    ],
)
def test_an_update_that_cannot_be_leaves_the_table_as_it_is(
    sql: ts.TableEnvironment, given: Any, where: str | None, message: str
) -> None:
    mine, _ = twins(sql, "keyed")
    before, snapshots = content(mine), len(mine.snapshots())
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        mine.update(given, where)
    assert (content(mine), len(mine.snapshots())) == (before, snapshots)


def test_an_update_sees_the_rows_that_others_wrote_before_it_landed(
    sql: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, _ = twins(sql, "keyed")
    from tablestore.table.change import update

    once = [mine]
    apply = update.run_changes

    def after_another(*given: Any) -> Any:
        if once:
            once.pop().upsert([{**ROWS.slice(0, 1).to_pylist()[0], "i": 41}])
        return apply(*given)

    monkeypatch.setattr(update, "run_changes", after_another)
    mine.update({"i": "i + 1"}, "i >= 40 AND i < 100")
    assert mine.scan(["i"], "id = 0").to_arrow().column("i").to_pylist() == [42]


def test_an_update_sees_that_its_snapshot_was_rolled_back_and_another_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tablestore.table.change import update

    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT NOT NULL, i INT", primary_key=["id"])
    for i in (1, 2):
        table.upsert([{"id": 1, "i": i}])
    once, read = [catalog.table("shop.orders")], update.updated_rows

    def before_a_rollback(*given: Any) -> Iterator[pa.Table]:
        yield from read(*given)
        if once:
            # Other engines roll back by removing the newest snapshots, and use their ids again.
            table.context.files.delete(snapshot_path(2))
            once.pop().upsert([{"id": 1, "i": 40}])

    monkeypatch.setattr(update, "updated_rows", before_a_rollback)
    table.update({"i": "i + 1"}, "id = 1")
    assert table.to_arrow()["i"].to_pylist() == [41]


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("filter", ["upper(s) = 'INK'", "x * 2 > 4", "i = `odd ``name`", "length(s) > 2 AND id < 5", "i % 2 = 1"])
@pytest.mark.parametrize("shape", ["keyed", "append by day"])
def test_filters_with_functions_keep_the_rows_that_sql_keeps(sql: ts.TableEnvironment, shape: str, filter: str) -> None:
    mine, _ = twins(sql, shape)
    wanted = sorted(row["id"] for row in sql.execute_sql(f"SELECT id FROM py WHERE {filter}").to_arrow().to_pylist())
    assert sorted(mine.scan(["id"], filter).to_arrow().column("id").to_pylist()) == wanted
    assert mine.scan(filter=filter).count() == len(wanted)
    mine.delete(filter)
    assert mine.scan().count() == ROWS.num_rows - len(wanted)
