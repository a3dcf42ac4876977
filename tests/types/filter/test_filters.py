"""Filters: the same rows as an independent engine keeps, or refused by name."""

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    StartsWith,
    evaluate,
)
from tablestore.types.filter.pruning import ColumnRange, may_match

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("tiny", pa.int8()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("m", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("ms", pa.timestamp("ms")),
        ("n", pa.timestamp("ns")),
        ("z", pa.timestamp("us", "UTC")),
        ("w", pa.time32("ms")),
        ("y", pa.binary()),
        ("st", pa.struct([("q", pa.int32())])),
        ("it's\n`", pa.int32()),
        ("Name", pa.string()),
        ("name", pa.string()),
        ("NAME2", pa.string()),
    ]
)
FIELDS, _ = fields_from_arrow(SCHEMA)
ALWAYS = Or((Not(IsNull("i")), UNKNOWN))
NEVER = And((IsNull("i"), UNKNOWN))

INSTANT = dt.datetime(2024, 1, 1, 12)
MICROSECOND = dt.timedelta(microseconds=1)
DAYS = ["1969-12-31", "2024-01-01", "2024-01-02", "0001-01-01", "9999-12-31", "2000-02-29"]
ROWS: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 1, 2, 2**31 - 1, None],
    "tiny": [-128, -1, 0, 1, 2, 127, None],
    "x": [-math.inf, -1.5, -0.0, 0.5, 2.0, math.nan, None],
    "f": [-math.inf, -1.5, 0.0, 0.5, 2.0, math.nan, None],
    "m": [Decimal("-999.99"), Decimal("-1.00"), Decimal(0), Decimal("0.50"), Decimal("1.50"), Decimal("999.99"), None],
    "s": ["", "a", "ab", "a%", "b_", "it's", None],
    "b": [True, False, True, False, True, False, None],
    "d": [*(dt.date.fromisoformat(day) for day in DAYS), None],
    "t": [INSTANT, INSTANT + MICROSECOND, dt.datetime(1969, 12, 31, 23, 59, 59, 1), *[INSTANT] * 3, None],
}
TABLE = pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in ROWS.items()})
LITERALS = {
    "i": ["-1", "0", "1.5", "2", "-2147483648", "99999999999", "-1e30", "0.0"],
    "tiny": ["-1", "1000", "-128", "127.5", "-129", "2"],
    "x": ["-1.5", "0", "0.5", "CAST('NaN' AS DOUBLE)", "2.0", "1e300"],
    "f": ["-1.5", "0", "0.5", "2.0"],
    "m": ["-1", "0.5", "0.505", "1.5", "99999", "-999.99", "-1000"],
    "s": ["''", "'a'", "'ab'", "'a%'", "'it''s'", "'zz'"],
    "b": ["TRUE", "FALSE"],
    "d": ["DATE '2024-01-01'", "DATE '1969-12-31'", "'2024-01-02'"],
    "t": ["TIMESTAMP '2024-01-01 12:00:00'", "'2024-01-01 12:00:00.000001'", "DATE '2024-01-01'"],
}
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def sql_leaves(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(LITERALS)))
    literal = st.sampled_from([*LITERALS[name], "NULL"])
    one, two, three = draw(literal), draw(literal), draw(literal)
    op = draw(st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="]))
    forms = [
        f"{name} {op} {one}",
        f"{one} {op} {name}",
        f"{name} IN ({one}, {two}, {three})",
        f"{name} NOT IN ({one}, {two})",
        f"{name} BETWEEN {one} AND {two}",
        f"{name} NOT BETWEEN {one} AND {two}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"{name} IS NOT DISTINCT FROM {one}",
        f"{name} IS DISTINCT FROM {one}",
        "b",
        "b IS TRUE",
        "b IS NOT FALSE",
        "s LIKE 'a%'",
        "s NOT LIKE '_'",
        "s LIKE '%!%' ESCAPE '!'",
        "s LIKE 'it''s'",
    ]
    return draw(st.sampled_from(forms))


sql = st.recursive(
    sql_leaves(),
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.register("arrow_rows", TABLE.append_column("row", pa.array(range(TABLE.num_rows))))
        opened.execute("CREATE TABLE rows AS SELECT * FROM arrow_rows")
        yield opened


@QUICK
@given(text=sql)
def test_sql_text_keeps_the_rows_that_duckdb_keeps(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    kept = connection.execute(f"SELECT row FROM rows WHERE {text} ORDER BY row").fetchall()
    mask = evaluate(parse_filter(text, FIELDS), TABLE).to_pylist()
    assert [row for row, keep in enumerate(mask) if keep] == [row for (row,) in kept], text


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> pc.Expression:
    if depth and draw(st.booleans()):
        left = draw(expressions(depth=depth - 1))
        kind = draw(st.integers(0, 2))
        if kind == 0:
            return ~left
        right = draw(expressions(depth=depth - 1))
        return left & right if kind == 1 else left | right
    name = draw(st.sampled_from(["i", "x", "m", "s", "b", "d", "t"]))
    field, values = pc.field(name), [v for v in ROWS[name] if v is not None]
    literal, other = draw(st.sampled_from(values)), draw(st.sampled_from([*values, None]))
    flipped = pc.scalar(pa.scalar(literal, SCHEMA.field(name).type)) <= field
    comparisons = [field == literal, field != literal, field < literal, field <= literal, field > literal, flipped]
    if name == "b":
        comparisons = [field == literal, field, field != literal]
    value_set = pa.array([literal, other], SCHEMA.field(name).type)
    nulls = [field.is_null(), field.is_valid(), field.isin(value_set), pc.is_in(field, value_set, skip_nulls=True)]
    texts = [pc.starts_with(pc.field("s"), "a"), pc.match_like(pc.field("s"), "_%"), pc.is_nan(pc.field("x"))]
    floats = [pc.field("x").is_null(nan_is_null=True), pc.field("x") >= math.nan, pc.field("x") != math.nan]
    return draw(st.sampled_from([*comparisons, *nulls, *texts, *floats]))


@QUICK
@given(expressions())
def test_arrow_expressions_keep_the_rows_that_arrow_keeps(expression: pc.Expression) -> None:
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    kept = ds.dataset(numbered).to_table(filter=expression).column("row").to_pylist()
    predicate = parse_filter(expression, FIELDS)
    mask = evaluate(predicate, TABLE).to_pylist()
    assert [r for r, keep in enumerate(mask) if keep] == kept, str(expression)
    for row, keep in enumerate(mask):
        alone = TABLE.slice(row, 1)
        ranges = {name: column_range(alone.column(name)[0].as_py()) for name in ("i", "x", "s", "b", "d")}
        assert not keep or may_match(predicate, ranges), f"{expression} prunes row {row}"


def column_range(value: Any) -> ColumnRange:
    return ColumnRange(min=value, max=value, null_count=int(value is None), row_count=1)


FLOATS = [0.0, -0.0, math.nan, -math.nan, 1.5, -1.5, math.inf, -math.inf, None]


WANTED = {"wanted": st.lists(st.sampled_from(FLOATS), max_size=4), "skip_nulls": st.booleans(), "negate": st.booleans()}


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@QUICK
@given(**WANTED)
def test_isin_of_floats_is_bit_for_bit_as_in_arrow(kind: pa.DataType, wanted: list[Any], skip_nulls: bool, negate: bool) -> None:
    rows = pa.table({"v": pa.array(FLOATS, kind)})
    fields = fields_from_arrow(rows.schema)[0]
    expression = pc.is_in(pc.field("v"), value_set=pa.array(wanted, kind), skip_nulls=skip_nulls)
    expression = ~expression if negate else expression
    kept = ds.dataset(rows.append_column("row", pa.array(range(len(FLOATS))))).to_table(filter=expression).column("row").to_pylist()
    predicate = parse_filter(expression, fields)
    assert np.flatnonzero(evaluate(predicate, rows).to_numpy(zero_copy_only=False)).tolist() == kept
    for row in kept:
        assert may_match(predicate, {"v": column_range(FLOATS[row])}), f"{expression} prunes {FLOATS[row]}"


@pytest.mark.parametrize("behaviour", [True, False])
def test_isin_with_null_in_the_set_follows_arrow(behaviour: bool) -> None:
    expression = pc.is_in(pc.field("i"), value_set=pa.array([1, None], pa.int32()), skip_nulls=behaviour)
    kept = TABLE.filter(expression).num_rows
    inverse = TABLE.filter(~expression).num_rows
    assert sum(evaluate(parse_filter(expression, FIELDS), TABLE).to_pylist()) == kept
    assert sum(evaluate(parse_filter(~expression, FIELDS), TABLE).to_pylist()) == inverse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 1.5", NEVER),
        ("i != 1.5", ALWAYS),
        ("i < 1.5", Comparison("<=", "i", 1)),
        ("i >= -1.5", Comparison(">", "i", -2)),
        ("i < 1e400", ALWAYS),
        ("i > -1e-999999", Comparison(">", "i", -1)),
        ("i < CAST('NaN' AS DOUBLE)", ALWAYS),
        ("i = '5'", Comparison("=", "i", 5)),
        ("i = CAST('1.9' AS INT)", Comparison("=", "i", 1)),
        ("m = 1.5BD", Comparison("=", "m", Decimal("1.50"))),
        ("m = CAST(1.005 AS DECIMAL(5, 2))", Comparison("=", "m", Decimal("1.01"))),
        ("i IN (1, 2.5, 300, 99999999999)", IsIn("i", (1, 300))),
        ("i IN (0.5)", NEVER),
        ("i IN (0.5, NULL)", UNKNOWN),
        ("i = NULL", UNKNOWN),
        ("f = 0.1", And((IsNull("f"), UNKNOWN))),
        ("f > 1e300", Comparison(">", "f", float(np.finfo(np.float32).max))),
        ("d < TIMESTAMP '2024-01-01 12:00:00'", Comparison("<=", "d", dt.date(2024, 1, 1))),
        ("d = CAST('2024-01-01 12:00:00' AS DATE)", Comparison("=", "d", dt.date(2024, 1, 1))),
        ("t = '2024-01-01T12:00'", Comparison("=", "t", INSTANT)),
        ("ms < '2024-01-01 12:00:00.0005'", Comparison("<=", "ms", INSTANT)),
        ("n = '2024-01-01 00:00:00.123456789'", Comparison("=", "n", np.datetime64("2024-01-01T00:00:00.123456789"))),
        ("n < '9999-01-01'", Or((Not(IsNull("n")), UNKNOWN))),
        ("z = '2024-01-01 13:00:00+01:00'", Comparison("=", "z", INSTANT.replace(tzinfo=dt.UTC))),
        ("z = '2024-01-01 12:00:00Z'", Comparison("=", "z", INSTANT.replace(tzinfo=dt.UTC))),
        ("w > '12:30:00.5'", Comparison(">", "w", dt.time(12, 30, 0, 500000))),
        ("y = X'00FF'", Comparison("=", "y", b"\x00\xff")),
        ("s LIKE 'a\\%%'", StartsWith("s", "a%")),
        ("s LIKE 'a#_' ESCAPE '#'", Comparison("=", "s", "a_")),
        ("s LIKE '%a_'", Like("s", "%a_")),
        ("s = \"x\" 'y'", Comparison("=", "s", "xy")),
        ("s = 'it\\'s'", Comparison("=", "s", "it's")),
        ("I <=> NULL", IsNull("i")),
        ("`it's\n``` = 1", Comparison("=", "it's\n`", 1)),
        ("st IS NULL", IsNull("st")),
        ("name = 'x'", Comparison("=", "name", "x")),
        ("name2 = 'x'", Comparison("=", "NAME2", "x")),
        ("1 = 1", TRUE),
        ("'a' > 'b'", FALSE),
        ("NULL", UNKNOWN),
    ],
)
def test_literals_are_bound_to_the_type_of_their_column(text: str, expected: object) -> None:
    assert repr(parse_filter(text, FIELDS)) == repr(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s[0] = 'A'", "Bracket"),
        ("i = (SELECT 1)", "SELECT"),
        ("i IN (SELECT 1)", "In"),
        ("st.q = 1", "whole columns"),
        ("st = 1", "nested types"),
        ("s RLIKE 'x'", "RegexpLike"),
        ("s LIKE s", "literal"),
        ("i > current_date()", "CurrentDate"),
        ("i = ?", "Placeholder"),
    ],
)
def test_sql_that_a_filter_cannot_say_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        parse_filter(text, FIELDS)


@pytest.mark.parametrize(
    ("least", "greatest"),
    [
        ("1", "2.5"),
        ("-1e3", "1"),
        ("1.5BD", "CAST('NaN' AS DOUBLE)"),
        ("'a'", "'b'"),
        ("FALSE", "TRUE"),
        ("X'00'", "X'01'"),
        ("DATE '2024-01-01'", "DATE '2024-01-02'"),
        ("DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:01'"),
        ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'"),
        ("TIMESTAMP_NTZ '2024-01-01 00:00:00'", "TIMESTAMP_NTZ '2025-01-01 00:00:00'"),
        ("TIMESTAMP_LTZ '2024-01-01 00:00:00'", "TIMESTAMP_LTZ '2025-01-01 00:00:00'"),
    ],
)
def test_two_literals_compare(least: str, greatest: str) -> None:
    for left, right, holding in (
        (least, greatest, {"<", "<=", "<>", "!="}),
        (greatest, least, {">", ">=", "<>", "!="}),
        (least, least, {"=", "==", "<=", ">=", "<=>"}),
        (greatest, greatest, {"=", "==", "<=", ">=", "<=>"}),
    ):
        for operator in ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"):
            assert parse_filter(f"{left} {operator} {right}", FIELDS) == (TRUE if operator in holding else FALSE), operator
    for text in (f"{least} = NULL", f"NULL <> {greatest}", f"{least} < NULL"):
        assert parse_filter(text, FIELDS) == UNKNOWN
    assert parse_filter(f"{least} IN ({greatest}, {least})", FIELDS) == TRUE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected"),
        ("i =", "expected a filter"),
        ("i = 1; i = 2", "one condition"),
        ("SELECT 1", "expected a filter"),
        ("nope = 1", "'nope', which does not exist"),
        ("Tinyy = 1", "did you mean 'tiny'"),
        ("nAmE = 'x'", "could be 'Name' or 'name'"),
        ("i = 'x'", "write a number"),
        ("i = TRUE", "write a number"),
        ("i", "write a number"),
        ("s = 1", "between quotes"),
        ("b = 1", "TRUE or FALSE"),
        ("y = 'a'", "X'"),
        ("d = '2024-02-30'", "2024-01-31"),
        ("d = DATE 'x'", "date or timestamp"),
        ("z > '2024-01-01 00:00:00'", "time zone"),
        ("t > '2024-01-01 00:00:00Z'", "no time zone"),
        ("w = '25:00'", "12:34"),
        ("i LIKE 'a%'", "text column"),
        ("s LIKE 'a\\\\'", "escape"),
        ("i = CAST(1e30 AS INT)", "does not fit"),
        ("NOT " * 3000 + "b", "nested"),
        ("(" * 5000 + "b" + ")" * 5000, "nested"),
    ],
)
def test_wrong_filters_are_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_filter(text, FIELDS)


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("i") + 1 == 2,
        pc.field("i") == pc.field("tiny"),
        pc.field("st", "q") == 1,
        pc.field(0) == 1,
        pc.field("i").cast("int64") == 1,
        pc.and_(pc.field("b"), pc.field("b")),
        pc.starts_with(pc.field("s"), "a", ignore_case=True),
        pc.utf8_upper(pc.field("s")) == "A",
    ],
    ids=str,
)
def test_arrow_functions_that_a_filter_cannot_say_are_refused(expression: pc.Expression) -> None:
    with pytest.raises(UnsupportedError, match="filter expression uses"):
        parse_filter(expression, FIELDS)


def test_arrow_names_and_texts_are_never_ambiguous() -> None:
    expression = (pc.field("it's\n`") == 3) & (pc.field("s") == 'call: "x" end)')
    assert parse_filter(expression, FIELDS) == And((Comparison("=", "it's\n`", 3), Comparison("=", "s", 'call: "x" end)')))


def test_arrow_instants_of_any_unit_are_bound() -> None:
    expression = pc.field("n") == pc.scalar(pa.scalar(5, pa.timestamp("ns")))
    assert parse_filter(expression, FIELDS) == Comparison("=", "n", np.datetime64(5, "ns"))
    with pytest.raises(InvalidInputError, match="time zone"):
        parse_filter(pc.field("z") == INSTANT, FIELDS)


def test_trees_made_by_hand_are_bound_too() -> None:
    assert parse_filter(Comparison("<", "tiny", 1.5), FIELDS) == Comparison("<=", "tiny", 1)
    assert parse_filter(Not(And((IsIn("I", (1, None)), TRUE))), FIELDS) == Not(And((IsIn("i", (1, None)), TRUE)))
    with pytest.raises(InvalidInputError, match="'nope'"):
        parse_filter(IsNull("nope"), FIELDS)


def test_no_filter_is_none_and_other_objects_are_refused() -> None:
    assert parse_filter(None, FIELDS) is None
    with pytest.raises(InvalidInputError, match="found int"):
        parse_filter(5, FIELDS)  # type: ignore[arg-type]


def test_long_chains_are_no_deep_nesting() -> None:
    predicate = parse_filter(" OR ".join(f"i = {i}" for i in range(2000)), FIELDS)
    assert isinstance(predicate, Or) and len(predicate.children) == 2000
    assert evaluate(predicate, TABLE).to_pylist() == [False, False, True, True, True, False, False]
