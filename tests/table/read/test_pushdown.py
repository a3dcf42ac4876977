"""What other libraries push down into a scan comes out as they would have it, and is not read for nothing."""

import datetime as dt
import math
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import tablestore as ts
from tablestore.table.read import dataset, lazyframe
from tablestore.table.read.scan import Scan
from tablestore.types.filter.predicate import Comparison
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.filter.weakening import push_expression

NAN, INF = math.nan, math.inf
DAY, NOON = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 12, 0, 0, 250_000)
# Of each type the ends of its range and what libraries compare in different ways.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "small": (pa.int8(), [None, 0, 1, -128, 127]),
    "x": (pa.float64(), [None, 0.0, -0.0, NAN, -NAN, INF, -INF, 0.1, 1.0, 5e-324]),
    "f": (pa.float32(), [None, 0.0, -0.0, NAN, INF, -INF, 0.5, 1.0]),
    "s": (pa.string(), [None, "", "a", "ab", "a%", "ü", "a\nb", "\U0001f600"]),
    "b": (pa.binary(), [None, b"", b"\x00", b"a", b"\xff"]),
    "d": (pa.decimal128(10, 2), [None, Decimal("0.10"), Decimal("-0.10"), Decimal("99999999.99"), Decimal("0.00")]),
    "wide": (pa.decimal128(38, 10), [None, Decimal("9" * 28 + ".9999999999"), Decimal("0.1000000000")]),
    "day": (pa.date32(), [None, DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "t": (pa.timestamp("us"), [None, NOON, dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]),
    "z": (pa.timestamp("ms", "UTC"), [None, NOON.replace(tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
    "clock": (pa.time32("ms"), [None, dt.time(0), dt.time(23, 59, 59, 999_000)]),
    "yes": (pa.bool_(), [None, True, False]),
    "row": (pa.struct([("a", pa.int32())]), [None, {"a": None}, {"a": 1}]),
}
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), *((name, kind) for name, (kind, _) in VALUES.items())])
TABLES: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ["id"], "options": {"bucket": "2", "write-only": "true"}},
    "keyed, partitioned": {"primary_key": ["id", "part"], "partition_by": ["part"], "options": {"write-only": "true"}},
    "append, partitioned": {"partition_by": ["part"]},
    "append, deletion vectors": {"options": {"deletion-vectors.enabled": "true", "write-only": "true"}},
}


def some_rows(chance: random.Random, ids: range) -> pa.Table:
    values = {name: pa.array([chance.choice(some) for _ in ids], kind) for name, (kind, some) in VALUES.items()}
    return pa.table({"id": list(ids), "part": ["pq"[i % 2] for i in ids], **values}, schema=SCHEMA)


def make(folder: Path, chance: random.Random, **how: Any) -> ts.Table:
    catalog = ts.open_catalog(str(folder / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.things", schema=SCHEMA, **how)
    # Runs that overlap, where there is a key.
    for ids in (range(200), range(100, 260), range(90, 300, 7)):
        rows = some_rows(chance, ids)
        table.upsert(rows) if table.primary_key else table.append(rows)
    table.delete("id < 30")
    return table


@dataclass(frozen=True)
class Question:
    """A filter in the languages of all, and some columns."""

    expression: pc.Expression
    polars: pl.Expr
    sql: str
    columns: list[str]


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
SQL_TYPES = {"x": "DOUBLE", "f": "FLOAT", "b": "BLOB", "day": "DATE", "t": "TIMESTAMP", "z": "TIMESTAMPTZ", "clock": "TIME"}


def question(chance: random.Random) -> Question:
    leaves = [leaf(chance) for _ in range(chance.randint(1, 4))]
    names = chance.sample(SCHEMA.names, chance.randint(1, 4))

    def joined(one: tuple[Any, Any, str], other: tuple[Any, Any, str]) -> tuple[Any, Any, str]:
        if chance.random() < 0.5:
            return one[0] & other[0], one[1] & other[1], f"({one[2]} AND {other[2]})"
        return one[0] | other[0], one[1] | other[1], f"({one[2]} OR {other[2]})"

    expression, frame, sql = reduce(joined, leaves)
    return Question(expression, frame, sql, names)


def leaf(chance: random.Random) -> tuple[pc.Expression, pl.Expr, str]:
    name = chance.choice([name for name in VALUES if name != "row"])
    kind, some = VALUES[name]
    values = [value for value in some if value is not None]
    field, column = pc.field(name), pl.col(name)
    wanted = chance.sample(values, min(2, len(values)))
    literal, typed = wanted[0], pa.scalar(wanted[0], kind)
    match chance.randrange(6):
        case 0:
            found = field.is_null(), column.is_null(), f"{name} IS NULL"
        case 1:
            is_in = column.is_in(pl.Series([wanted], dtype=pl.List(pl.from_arrow(pa.array(wanted, kind)).dtype)).first())  # type: ignore[union-attr]
            found = field.isin(pa.array(wanted, kind)), is_in, f"{name} IN ({', '.join(sql(name, value) for value in wanted)})"
        case 2 if name == "s":
            found = pc.starts_with(field, literal), column.str.starts_with(literal), f"starts_with(s, {sql(name, literal)})"
        case 3 if name in ("i", "x"):
            # Of another kind than the column, or of no column alone.
            found = field > 0.5 if name == "x" else field.cast("float64", safe=False) == 1.0, column * 2 > 1, f"{name} > 0.5"
        case 4:
            found = field == typed, column.eq_missing(literal), f"{name} IS NOT DISTINCT FROM {sql(name, literal)}"
        case _:
            op = chance.choice(list(OPERATORS))
            compare = OPERATORS[op]
            found = compare(field, typed), compare(column, literal), f"{name} {op} {sql(name, literal)}"
    return (~found[0], ~found[1], f"(NOT {found[2]})") if chance.random() < 0.3 else found


def sql(name: str, value: Any) -> str:
    match value:
        case bool() | int():
            return str(value)
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case Decimal():
            return f"{value}"
        case _:
            return f"'{value}'::{SQL_TYPES.get(name, 'VARCHAR')}"


def content(rows: pa.Table | pl.DataFrame) -> list[str]:
    found = rows.to_arrow() if isinstance(rows, pl.DataFrame) else rows
    return sorted(map(repr, found.to_pylist()))


def check_questions(table: ts.Table, chance: random.Random, count: int) -> None:
    scan = table.scan()
    whole, given, lazy = scan.to_arrow(), scan.to_dataset(), scan.scan_polars()
    plain, frame = ds.dataset(whole), pl.DataFrame(whole)
    connection = duckdb.connect()
    connection.register("whole", whole)
    scan.to_duckdb(connection, "given")
    for _ in range(count):
        asked = question(chance)
        arrow = plain.to_table(columns=asked.columns, filter=asked.expression)
        assert content(given.to_table(columns=asked.columns, filter=asked.expression)) == content(arrow), asked
        assert given.count_rows(filter=asked.expression) == arrow.num_rows, asked
        assert content(lazy.filter(asked.polars).select(asked.columns).collect()) == content(
            frame.filter(asked.polars).select(asked.columns)
        ), asked
        through = pl.scan_pyarrow_dataset(given).filter(asked.polars).select(asked.columns)
        assert content(through.collect()) == content(
            pl.scan_pyarrow_dataset(plain).filter(asked.polars).select(asked.columns).collect()
        ), asked
        text = f"SELECT {', '.join(asked.columns)} FROM {{}} WHERE {asked.sql}"
        assert content(connection.sql(text.format("given")).to_arrow_table()) == content(
            connection.sql(text.format("whole")).to_arrow_table()
        ), asked


@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_what_is_pushed_down_gives_the_rows_of_the_library_s_own_filter(tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    check_questions(make(tmp_path, chance, **TABLES[kind]), chance, 25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("seed", range(5))
def test_more_of_what_is_pushed_down(tmp_path: Path, kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    check_questions(make(tmp_path, chance, **TABLES[kind]), chance, 200)


@pytest.fixture
def keyed(tmp_path: Path) -> ts.Table:
    return make(tmp_path, random.Random(1), **TABLES["keyed"])


def pushed(table: ts.Table, expression: pc.Expression) -> str | None:
    """What of the expression is pushed down, as SQL."""
    fields = {field.name: field for field in table.table_schema.fields}
    found = push_expression(expression, fields).predicate
    return None if found is None else to_sql(found)


X, S = pc.field("x"), pc.field("s")


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (pc.field("i") == 55, "i = 55"),
        ((pc.field("i") > 5) & (pc.add(X, 1) > 2), "i > 5"),
        ((pc.field("i") > 5) | (pc.add(X, 1) > 2), None),
        (~((pc.field("i") > 5) | (pc.add(X, 1) > 2)), "i <= 5"),
        (
            pc.if_else(S.is_valid(), S.isin(["a"]), pa.scalar(None, pa.bool_())),
            "NOT (s IS NULL) AND NOT (s IS NULL) AND s IN ('a')",
        ),
        (X != X, "x = CAST('nan' AS DOUBLE)"),
        (pc.field("row", "a") == 1, None),
        # Arrow converts one side of these: what is equal then was not before, or the other way about.
        (pc.field("d") == 0.1, None),
        (pc.field("i") == 1.0, None),
        (pc.field("f") == 0.1, None),
        (pc.field("f") == 0.5, "f = 0.5"),
        (X == 2**53, None),
        (pc.field("day") == dt.datetime(2024, 1, 2), None),
        # Arrow's % does not match a line break.
        (~pc.match_like(S, "a%"), None),
    ],
    ids=str,
)
def test_what_a_predicate_says_exactly_is_pushed_down(keyed: ts.Table, expression: pc.Expression, wanted: str | None) -> None:
    assert pushed(keyed, expression) == wanted


def test_only_what_others_ask_for_is_read(keyed: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[tuple[str, ...], str | None]] = []
    batches = Scan.to_batches

    def noted(scan: Scan) -> Iterator[pa.RecordBatch]:
        read.append((scan.columns, None if scan.predicate is None else to_sql(scan.predicate)))
        return batches(scan)

    monkeypatch.setattr(Scan, "to_batches", noted)
    given = keyed.to_dataset()
    connection = duckdb.connect()
    keyed.scan(filter="id > 40").to_duckdb(connection, "given")
    assert given.to_table(columns=["s"], filter=pc.field("id") == 55).num_rows == 1
    assert (
        duckdb.sql("SELECT s FROM given WHERE id = 55").fetchall() == connection.sql("SELECT s FROM given WHERE id = 55").fetchall()
    )
    assert pl.scan_pyarrow_dataset(given).filter(pl.col("id") == 55).select("s").collect().height == 1
    assert keyed.scan_polars().filter(pl.col("id") == 55).select("s").collect().height == 1
    assert read == [(("id", "s"), "id = 55"), (("id", "s"), "id = 55"), (("id", "s"), "id > 40 AND id = 55"), *read[:2]]
    assert keyed.scan_polars().select("i").head(3).collect().height == 3
    assert given.scanner(columns={"twice": pc.field("id") * 2}).to_table().column_names == ["twice"]
    assert [columns for columns, _ in read[-2:]] == [("i",), ("id",)]


def test_a_scan_with_a_limit_is_filtered_after_it(keyed: ts.Table) -> None:
    scan = keyed.scan(columns=["id"], limit=20)
    wanted = [number for number in scan.to_arrow()["id"].to_pylist() if number > 60]
    assert scan.to_dataset().to_table(filter=pc.field("id") > 60)["id"].to_pylist() == wanted
    assert scan.scan_polars().filter(pl.col("id") > 60).collect()["id"].to_list() == wanted
    with pytest.raises(ts.UnsupportedError, match="has no splits"):
        scan.splits()


def test_a_dataset_reads_ahead_no_more_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.long", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10_000)}))
    monkeypatch.setattr(dataset, "PIECE_ROWS", 10)
    cut: list[int] = []
    pieces = dataset.slices_of
    monkeypatch.setattr(dataset, "slices_of", lambda *a, **b: (cut.append(piece.num_rows) or piece for piece in pieces(*a, **b)))
    reader = table.to_dataset().scanner(filter=pc.field("id") >= 0).to_reader()
    assert reader.read_next_batch().num_rows == 10
    assert len(cut) < 500
    assert sum(batch.num_rows for batch in reader) == 9_990
    assert len(cut) == 1_000


def test_a_dataset_does_what_those_of_arrow_do(keyed: ts.Table, tmp_path: Path) -> None:
    given = keyed.scan(columns=["id", "s"]).to_dataset()
    whole = ds.dataset(given.to_table())
    some = given.filter(pc.field("id") > 50).filter(pc.field("id") < 60)
    assert some.count_rows() == pickle.loads(pickle.dumps(some)).to_table().num_rows == 9
    assert given.head(3).num_rows == 3
    assert given.take([1, 2]).num_rows == 2
    assert given.count_rows() == given.scanner(columns=[]).count_rows() == whole.count_rows()
    assert given.sort_by("id").to_table() == whole.sort_by("id").to_table()
    assert given.join(given, "id", right_suffix="_too").count_rows() == whole.count_rows()
    assert given.to_table(columns=["s", "s", "__fragment_index"]).num_columns == 3
    ds.write_dataset(given, tmp_path / "copy", format="parquet")
    assert ds.dataset(tmp_path / "copy").to_table().sort_by("id").column("id") == whole.sort_by("id").to_table().column("id")
    for refused in (lambda: list(given.get_fragments()), lambda: given.replace_schema(given.schema)):
        with pytest.raises(ts.UnsupportedError):
            refused()
    # What looks past the scanner, into Arrow itself, gets an error and no rows.
    with pytest.raises(FileNotFoundError, match="is read by its methods"):
        ds.Scanner.from_dataset(given).to_table()


def test_what_is_not_there_is_named(keyed: ts.Table) -> None:
    given = keyed.scan(columns=["id", "small"]).to_dataset()
    for ask in (
        lambda: given.to_table(columns=["smal"]),
        lambda: given.to_table(filter=pc.field("smal") == 1),
        lambda: given.to_table(columns={"x": pc.field("smal")}),
    ):
        with pytest.raises(ts.InvalidInputError, match="no column 'smal' in this dataset; did you mean 'small'"):
            ask()
    with pytest.raises(ts.InvalidInputError, match="Arrow cannot evaluate"):
        given.to_table(filter=pc.field("small") == "x")


def test_what_polars_says_is_pushed_down_where_it_is_known(keyed: ts.Table) -> None:
    fields = {field.name: field for field in keyed.table_schema.fields}
    assert lazyframe.push_polars(pl.lit(5) < pl.col("i"), fields) == Comparison(">", "i", 5)
    assert lazyframe.push_polars((pl.col("i") == 5) & (pl.col("i") % 2 == 1), fields) == Comparison("=", "i", 5)
    nothing = [pl.col("i") == 1.0, pl.col("i").cast(pl.Float64) == 1.0, pl.col("i").is_in(pl.col("small").implode())]
    nothing += [pl.col("x").is_in(pl.lit(pl.Series([[0.0]]))), pl.col("i").eq_missing(1), pl.lit(True), pl.col("f") == 0.1]
    assert [lazyframe.push_polars(expression, fields) for expression in nothing] == [None] * len(nothing)
    deep = reduce(lambda made, _: ~(made & (pl.col("i") > 0)), range(300), pl.col("i") > 0)
    assert lazyframe.push_polars(deep, fields) is None


ALONE = "import pickle, sys; part = pickle.load(open(sys.argv[1], 'rb')); print(part.to_arrow()['id'].to_pylist())"


@pytest.mark.deep
def test_splits_are_read_by_other_processes(tmp_path: Path) -> None:
    table = make(tmp_path, random.Random(2), **TABLES["keyed, partitioned"])
    scan = table.scan(columns=["id"], filter="id > 40")
    splits = scan.splits()
    assert len(splits) > 1
    found = []
    for number, split in enumerate(splits):
        assert split.schema == scan.schema
        assert split.size_bytes > 0
        (tmp_path / str(number)).write_bytes(pickle.dumps(split))
        printed = subprocess.run([sys.executable, "-c", ALONE, str(tmp_path / str(number))], check=True, capture_output=True)
        found += eval(printed.stdout)
    assert sorted(found) == sorted(scan.to_arrow()["id"].to_pylist())
    assert table.scan(filter="id < 0").splits() == ()
