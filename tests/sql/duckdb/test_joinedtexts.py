"""Texts and orders that Spark makes without being asked, of floats, moments, bytes and arrays. The values are Spark 4.3's."""

from collections.abc import Iterator

import duckdb
import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.sqltypes import BINARY, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, array, decimal, struct
from tablestore.sql.duckdb.functions.textvalues import jaro_winkler
from tablestore.sql.duckdb.transpile import to_duckdb

KINDS = {
    "t": [
        ("i", INT),
        ("s", STRING),
        ("d", DOUBLE),
        ("f", FLOAT),
        ("at", TIMESTAMP),
        ("b", BINARY),
        ("p", decimal(4, 1)),
        ("a", array(INT)),
        ("doubles", array(DOUBLE)),
        ("moments", array(TIMESTAMP)),
        ("arrays", array(array(INT))),
        ("st", struct(x=INT)),
    ]
}
ROWS = """CREATE TABLE t AS SELECT (-2147483648)::INT AS i, 'abc' AS s, 'NaN'::DOUBLE AS d, 1e7::FLOAT AS f,
    TIMESTAMPTZ '2024-01-31 10:11:12+00' AS "at", 'a'::BLOB AS b, 1.5::DECIMAL(4, 1) AS p, [1, NULL]::INT[] AS a,
    [-0.0::DOUBLE] AS doubles, [TIMESTAMPTZ '2024-01-31 10:11:12+00', NULL] AS moments, [[1]] AS arrays, {'x': 1::INT} AS st"""


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(ROWS)
        yield connection


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("at || ''", "2024-01-31 10:11:12"),
        ("concat('<', at, '>')", "<2024-01-31 10:11:12>"),
        ("concat_ws('|', at, s)", "2024-01-31 10:11:12|abc"),
        ("array_join(moments, '-')", "2024-01-31 10:11:12"),
        ("array_join(moments, '-', '?')", "2024-01-31 10:11:12-?"),
        ("s || b", "abca"),
        ("b || b", b"aa"),
        ("concat_ws('-', b, s)", "a-abc"),
        ("array_join(array(X'c3a9'), '-')", "\u00e9"),
        ("concat(i, '', p, true, date'2024-01-31')", "-21474836481.5true2024-01-31"),
        ("concat_ws('-', a, s)", "1-abc"),
        ("repeat(b, 2)", "aa"),
        ("repeat(X'61', 2)", "aa"),
        ("array_join(array(CAST(NULL AS INT)), '-')", ""),
        ("array_join(array(CAST(NULL AS INT)), '-', 'x')", "x"),
        ("array_join(CAST(NULL AS ARRAY<INT>), '-')", None),
        ("array_join(array(), '-')", ""),
        ("array_join(a, '-')", "1"),
        ("reverse('e\u0301x\U0001f600\\n')", "\n\U0001f600x\u0301e"),
        ("reverse('')", ""),
        ("reverse(array('e\u0301'))[0]", "e\u0301"),
        ("substr(s, i)", "ab"),
        ("substr('a', i)", ""),
        ("substr('a', i + 1)", "a"),
        ("substr('abc', -2147483648)", "ab"),
        ("round(try_add(p, NULL), -1)", None),
        ("try_subtract(NULL, p)", None),
        ("try_multiply(p, NULL)", None),
        ("typeof(try_add(p, NULL))", "decimal(5,1)"),
        ("r'a' 'b'", "ab"),
        ("'a' r'b'", "ab"),
        ("r'it''s'", "its"),
        (r"r'a\n' '\n'", "a\\n\n"),
        ("r\"a\"'b'", "ab"),
    ],
)
def test_values_are_sparks(connection: duckdb.DuckDBPyConnection, expression: str, value: object) -> None:
    assert connection.sql(to_duckdb(f"SELECT {expression} AS r FROM t", KINDS)).fetchall() == [(value,)]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    "expression",
    [
        "map_keys(map(doubles[0], 1))[0]",
        "map_keys(map(CAST(doubles[0] AS FLOAT), 1))[0]",
        "map_keys(map(-0.0D, 1))[0]",
        "array_distinct(array(doubles, doubles))[0][0]",
        "array_union(array(doubles), array(doubles))[0][0]",
        "array_except(array(doubles), array(array(1D)))[0][0]",
        "array_intersect(array(doubles), array(doubles))[0][0]",
        "array_distinct(array(named_struct('x', doubles[0])))[0].x",
    ],
)
def test_zeros_have_no_signs(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    ((value,),) = connection.sql(to_duckdb(f"SELECT {expression} AS r FROM t", KINDS)).fetchall()
    assert str(value) == "0.0"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("s || d", "the cast of a float to a text"),
        ("concat(s, f)", "the cast of a float to a text"),
        ("concat_ws('-', s, d)", "the cast of a float to a text"),
        ("array_join(doubles, '-')", "the cast of a float to a text"),
        ("array_join(array(1F), '-')", "the cast of a float to a text"),
        ("repeat(d, 2)", "the cast of a float to a text"),
        ("s || st", "the cast of a row to a text"),
        ("s || map(1, 2)", "the cast of a map to a text"),
        ("concat_ws('-', moments)", "concat_ws of"),
        ("s || unknown", "the text of a value whose type is not known"),
        ("greatest(a, a)", "an order of rows or arrays"),
        ("least(st, st)", "an order of rows or arrays"),
        ("a BETWEEN a AND a", "an order of rows or arrays"),
        ("max_by(i, a)", "an order of rows or arrays"),
        ("min_by(i, st)", "an order of rows or arrays"),
        ("max_by(i, a) OVER ()", "an order of rows or arrays"),
        ("min_by(i, a) FILTER (WHERE i > 1)", "an order of rows or arrays"),
        ("max_by(i, a, 2)", "an order of rows or arrays"),
        ("sort_array(arrays)", "sort_array of rows or arrays"),
        ("sort_array(array(st), false)", "sort_array of rows or arrays"),
    ],
)
def test_what_is_written_or_ordered_otherwise_is_refused(expression: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"DuckDB does not run {message}"):
        to_duckdb(f"SELECT {expression} FROM t", KINDS)


def test_arrays_are_no_texts_in_an_array() -> None:
    with pytest.raises(InvalidInputError, match="expected a value that can be STRING, found ARRAY<INT>"):
        to_duckdb("SELECT array_join(arrays, '-') FROM t", KINDS)


def test_zeros_in_keys_that_are_arrays_keep_their_signs(connection: duckdb.DuckDBPyConnection) -> None:
    ((value,),) = connection.sql(to_duckdb("SELECT map_keys(map(doubles, 1))[0][0] AS r FROM t", KINDS)).fetchall()
    assert str(value) == "-0.0"


def test_values_of_nested_types_are_still_chosen(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT max_by(a, i) AS m, max(sort_array(a)[1]) AS s, max(greatest(i, 1)) AS g FROM t"
    assert connection.sql(to_duckdb(query, KINDS)).fetchall() == [([1, None], 1, 1)]


def test_similarity_counts_the_units_of_utf_16() -> None:
    assert jaro_winkler("\U0001f600\u00e9", "\U0001f600x") == pytest.approx(0.8222222222222222, abs=0)
    assert jaro_winkler("a\U0001f600", "\U0001f600a") == 0.0
