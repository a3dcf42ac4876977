"""Expressions mean what they mean in SQL: the same values as DuckDB's through an environment, over values at the edges."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression
from tablestore.types.expression.expression import constants_of, expression_text
from tablestore.types.expression.sqlexpression import column_finder, parse_expression_text

NAN, INF = math.nan, math.inf
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "i": pa.array([1, -7, 0, None, 2**31 - 10, -(2**31) + 10], pa.int32()),
        "l": pa.array([3, 5, -2, 0, None, 2**62], pa.int64()),
        "tiny": pa.array([1, -128, 127, None, 0, 5], pa.int8()),
        "x": pa.array([1.5, NAN, -0.0, INF, None, -INF], pa.float64()),
        "y": pa.array([2.5, NAN, 0.0, NAN, 1.0, 0.5], pa.float64()),
        "m": pa.array(["1.25", "-2.75", None, "0.00", "99999999.99", "3.00"]).cast(pa.decimal128(10, 2)),
        "w": pa.array(["1" + "0" * 30, None, "-1.5", "0.00001", "0", "7"]).cast(pa.decimal128(38, 5)),
        "s": pa.array(["ink", " Pen ", "", None, "äÖ%_", "a\nb"]),
        "u": pa.array(["i", "x", "", "y", None, "ä"]),
        "d": pa.array(["2024-01-31", "0001-01-01", "9999-12-31", None, "1969-12-31", "2024-02-29"]).cast(pa.date32()),
        "t": pa.array(["2024-01-31 23:59:59.999999", None, *["1969-12-31 01:02:03"] * 4]).cast(pa.timestamp("us")),
        "b": pa.array([True, False, None, True, False, None]),
        "odd `name": pa.array([1, 2, 3, None, 5, 6], pa.int32()),
    }
)  # fmt: skip
SAME_AS_SQL = """
i + 1 | i - l | CAST(tiny AS INT) + 1 | i * 2L | l - 1 | i / 4 | x / 2 | i % 4 | l % 3 | -i | x + y | x * 2 | abs(i) | abs(x)
m + 1 | m - 0.5 | m * 2 | m * 1.5 | m + m | m / 4 | w + 1 | w * 2 | m + w | i + m | l * 1.5 | i + 0.5 | x + m | -m | abs(m)
x = y | x <> y | x < y | x <= y | x > y | x >= y | x <=> y | i = l | tiny < i | m < w | m = 1.25 | i = 1.0 | x > m
i < 1 OR l > 2 | NOT b | b AND i > 0 | b = TRUE | b IS TRUE | b IS NOT FALSE | s IS NULL | x IS NOT NULL | i <=> NULL
i BETWEEN tiny AND l | i IN (1, 0, l) | i NOT IN (1, NULL) | i IS DISTINCT FROM l
upper(s) | lower(s) | trim(s) | ltrim(s) | rtrim(s) | length(s) | s || u | concat(s, '-', u) | concat(s, i)
substring(s, 2) | substring(s, 1, 2) | substring(s, -2) | replace(s, 'n', 'NN')
x % 2 | startswith(s, 'i') | endswith(s, 'n ') | contains(s, 'n')
s LIKE '%n%' | s NOT LIKE 'i_k' | s LIKE 'a_b' | upper(s) = 'INK' | s < u | s = ''
coalesce(i, l, 0) | coalesce(m, 1) | nvl(s, u) | nullif(i, 1) | nullif(x, y)
if(b, i, l) | if(i > 0, 'a', s) | greatest(i, l) | least(i, l, 3)
greatest(x, y) | least(x, y) | greatest(s, u)
CASE WHEN i > 0 THEN i WHEN l > 0 THEN l END | CASE i WHEN 1 THEN 'one' WHEN 0 THEN 'none' ELSE s END
CASE WHEN i <> 0 THEN l / i ELSE 0 END | CASE WHEN b THEN NULL ELSE 1.5 END
year(d) | month(t) | day(d) | hour(t) | minute(t) | second(t)
d = '2024-01-31' | d < t | t >= '2024-01-31 00:00:00' | d > DATE '2000-01-01'
CAST(i AS BIGINT) | CAST(m AS INT) | CAST(m AS DECIMAL(12, 1)) | CAST(i AS STRING) | CAST(i AS DOUBLE)
CAST(t AS DATE) | CAST('5' AS INT) + i
CAST(d AS TIMESTAMP_NTZ) | CAST(tiny AS DECIMAL(5, 1)) | CAST(b AS STRING) | CAST(b AS INT) | CAST(m AS DOUBLE)
round(m, 1) | round(x) | round(i) | floor(m) | ceil(m) | `odd ``name` + 1 | -9223372036854775808 + abs(l) | -128 - CAST(tiny AS INT)
"""
TEXTS = [text.strip() for line in SAME_AS_SQL.strip().splitlines() for text in line.split(" | ")]
COLUMN_OF = column_finder({"": ROWS.schema.names}, "expression")


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("wh"), engine="duckdb") as env:
        env.catalog().create_database("default", ignore_if_exists=True)
        env.catalog().create_table("default.t", ROWS.schema, primary_key=["id"]).upsert(ROWS)
        yield env


def value_of(text: str) -> pa.Array:
    rows = ColumnValues(ROWS.num_rows, lambda column: ROWS.column(column.name).combine_chunks())
    return evaluate_expression(parse_expression_text(text, COLUMN_OF), rows)


def known(values: list[Any]) -> list[Any]:
    """Values that compare: NaN is itself, and a number is one in whatever type."""
    return ["NaN" if isinstance(v, float) and math.isnan(v) else float(v) if isinstance(v, (Decimal, float)) else v for v in values]


@pytest.mark.deep_after(28)
@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_the_values_that_it_has_in_sql(sql: ts.TableEnvironment, text: str) -> None:
    wanted = sql.execute_sql(f"SELECT {text} AS v FROM t ORDER BY id").to_arrow().column("v").to_pylist()
    assert known(value_of(text).to_pylist()) == known(wanted)


@pytest.mark.deep_after(55)
@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_as_text_is_the_same_expression(text: str) -> None:
    expression = parse_expression_text(text, COLUMN_OF)
    again = parse_expression_text(expression_text(expression), COLUMN_OF)
    assert expression_text(again) == expression_text(expression)
    rows = ColumnValues(ROWS.num_rows, lambda column: ROWS.column(column.name).combine_chunks())
    assert str(evaluate_expression(again, rows)) == str(value_of(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i * 2", None),
        ("i * i", "overflow"),
        ("l * 4", "overflow"),
        ("tiny + CAST(1 AS TINYINT)", "overflow"),
        ("i / i", "division by zero"),
        ("i % i", "division by zero"),
        ("CAST(x AS INT)", "does not fit"),
        ("CAST(s AS INT)", "does not fit"),
        ("CAST(l AS INT)", "does not fit"),
        ("w * w", "not computed|does not fit"),
        ("m + s", "takes numbers"),
        ("upper(i)", "takes texts"),
        ("i = s", "do not go together"),
        ("b AND i", "takes conditions"),
        ("d = 'x'", "2024-01-31"),
        ("d = b", "do not go together"),
        ("year(i)", "dates and timestamps"),
        ("nope + 1", "does not exist"),
        ("i +", "such as"),
        ("sum(i)", "not computed here"),
        ("TRY_CAST(s AS INT)", "not computed here"),
        ("rand()", "not computed here"),
        ("(SELECT 1)", "not computed here"),
        ("substring(s, i)", "literal"),
        ("1" * 39, "38 digits"),
        ("round(x, 99999999999)", "does not fit"),
        ("round(x, 1.5)", "whole number of digits"),
        ("s || '\ud800'", "Unicode"),
        (" + ".join(["i"] * 1001), "1001 levels"),
    ],
)
def test_what_cannot_be_computed_is_an_error_of_ours(text: str, message: str | None) -> None:
    if message is None:
        with pytest.raises(InvalidInputError, match="overflow"):
            value_of(text)
    else:
        with pytest.raises((InvalidInputError, UnsupportedError), match=message):
            value_of(text)


@pytest.mark.deep
def test_long_sums_and_lists_are_computed() -> None:
    texts = ", ".join(f"'{number}'" for number in range(5000))
    assert value_of(f"upper(s) IN ({texts}, 'INK')").to_pylist() == [True, False, False, None, False, False]
    assert value_of(" OR ".join(["i + 0 = 1"] * 5000)).to_pylist() == [True, False, False, None, False, False]
    assert value_of(" + ".join(["id"] * 1000)).to_pylist() == [1000 * number for number in range(6)]


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("a + 2", ["2"]),
        ("1 / 0", ["(1 / 0)"]),
        ("CASE WHEN a > 0 THEN a ELSE 1 / 0 END", ["(1 / 0)", "0"]),
        ("CAST(7 AS BIGINT) * (a + 1)", ["1", "CAST(7 AS BIGINT)"]),
        ("a + a", []),
    ],
)
def test_constants_are_the_largest_parts_without_a_column(text: str, constants: list[str]) -> None:
    expression = parse_expression_text(text, column_finder({"": ["a"]}, "expression"))
    assert sorted(map(expression_text, constants_of(expression))) == sorted(constants)


def test_a_float_as_a_decimal_has_the_digits_that_it_is_written_with_rounded_half_away_from_zero() -> None:
    floats = [0.125, -0.125, 2.675, 1.005, 0.015, 99999999.99, 1e-300, 5e-324, -0.0, None, 12345678.125]
    rows = ColumnValues(len(floats), lambda column: pa.array(floats, pa.float64()))
    found = evaluate_expression(parse_expression_text("CAST(x AS DECIMAL(10, 2))", COLUMN_OF), rows).to_pylist()
    wanted = ["0.13", "-0.13", "2.68", "1.01", "0.02", "99999999.99", "0.00", "0.00", "0.00", None, "12345678.13"]
    assert [None if value is None else str(value) for value in found] == wanted
    assert value_of("CAST(1.5e-37 AS DECIMAL(38, 38))").to_pylist()[0] == Decimal("1.5e-37")
    for wrong in ("1e8", "CAST('NaN' AS DOUBLE)", "CAST('-inf' AS DOUBLE)", "1e300"):
        with pytest.raises(InvalidInputError, match="does not fit"):
            value_of(f"CAST({wrong} AS DECIMAL(10, 2))")


def test_a_decimal_as_a_float_is_the_nearest_one() -> None:
    cents = [Decimal(number).scaleb(-2) for number in range(-2000, 2000)] + [Decimal("1e-30"), Decimal("99999999.999999999")]
    for kind in (pa.decimal128(38, 30), pa.decimal256(60, 40)):
        rows = ColumnValues(len(cents), lambda _, kind=kind: pa.array(cents, kind))  # type: ignore[misc]
        found = evaluate_expression(parse_expression_text("CAST(x AS DOUBLE)", COLUMN_OF), rows)
        assert found.to_pylist() == [float(value) for value in cents]
    assert value_of("CAST(0.35 AS DOUBLE)").to_pylist()[0] == 0.35
    assert value_of("x - x + 0.35 = 0.35E0").to_pylist() == [True, False, True, False, None, False]


def test_types_are_checked_without_rows() -> None:
    rows = ColumnValues(0, lambda column: ROWS.column(column.name).combine_chunks().slice(0, 0))
    found = {text: str(evaluate_expression(parse_expression_text(text, COLUMN_OF), rows).type) for text in TEXTS}
    assert found["i + 1"] == "int32" and found["i / 4"] == "double" and found["m * 2"] == "decimal128(12, 2)"
    with pytest.raises(TablestoreError, match="takes texts"):
        evaluate_expression(parse_expression_text("CASE WHEN b THEN upper(i) ELSE s END", COLUMN_OF), rows)


def test_years_of_any_date_are_whole() -> None:
    days = pa.array([0, -1, 11_240_000, 11_250_000, 20_000_000, 2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32())
    rows = ColumnValues(len(days), lambda _: days)
    expression = parse_expression_text("year(d)", COLUMN_OF)
    assert evaluate_expression(expression, rows).to_pylist() == [1970, 1969, 32744, 32771, 56728, 5881580, -5877641, None]
