"""Functions and casts that DuckDB has under the same name with another meaning. The values are Spark 4.3's.

``tests/sql/corpus/meanings.sql`` compares more of them with Spark itself. An error is compared here.
"""

from collections.abc import Iterator
from datetime import date

import duckdb
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.sqltypes import BINARY, DATE, INT, STRING, TIMESTAMP, array, decimal, map_of
from tablestore.sql.duckdb.transpile import to_duckdb

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "s": pa.array(["12", "hello", None]),
        "a": pa.array([[1, None, 1], [], None], pa.list_(pa.int32())),
        "day": pa.array([date(2024, 1, 31), date(1969, 12, 31), None]),
    }
)
KINDS = {
    "t": [
        ("id", INT),
        ("s", STRING),
        ("a", array(INT)),
        ("day", DATE),
        ("m", map_of(STRING, INT)),
        ("at", TIMESTAMP),
        ("p", decimal(4, 1)),
    ],
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", ROWS)
        yield connection


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("7.5 DIV 2", [3, 3, 3]),
        ("-7.5 DIV 0.2", [-37, -37, -37]),
        ("left(s, id - 2)", ["", "", None]),
        ("right(s, -1)", ["", "", None]),
        ("substr(s, 2, -1)", ["", "", None]),
        ("array_contains(a, 1)", [True, False, None]),
        ("array_contains(a, 9)", [None, False, None]),
        ("flatten(array(a, a))", [[1, None, 1, 1, None, 1], [], None]),
        ("reverse(a)", [[1, None, 1], [], None]),
        ("cardinality(a)", [3, 0, None]),
        ("size(a)", [3, 0, None]),
        ("try_element_at(a, 2)", [None, None, None]),
        ("try_cast(s AS INT)", [12, None, None]),
        ("try_cast('1_0' AS DOUBLE)", [None, None, None]),
        ("try_cast('2024/01/05' AS DATE)", [None, None, None]),
        ("chr(id - 2)", ["", "\0", "\1"]),
        ("chr(id + 320)", ["A", "B", "C"]),
        ("replace(s, 'l')", ["12", "heo", None]),
        ("ln(id - 1)", [None, 0.0, 0.6931471805599453]),
        ("log10(0)", [None, None, None]),
        ("isnan(nullif(1.0D, 1.0D))", [False, False, False]),
        ("months_between(day, date'2023-12-17')", [1.4516129, -647.5483871, None]),
        ("timestampdiff(MONTH, day, date'2024-02-29')", [0, 649, None]),
        ("datediff(YEAR, day, date'2024-12-30')", [0, 54, None]),
        ("datediff(HOUR, timestamp'2024-01-01 00:30:00', timestamp'2024-01-02 00:00:00')", [23, 23, 23]),
        ("cast(timestamp'2024-05-05 10:00:00.5' AS STRING)", ["2024-05-05 10:00:00.5"] * 3),
        ("sequence(1, 3)", [[1, 2, 3]] * 3),
        ("sign(if(id = 1, CAST('NaN' AS DOUBLE), -id)) > 0", [True, False, False]),
        ("count(s, day) OVER ()", [2, 2, 2]),
        ("median(CAST(id AS DECIMAL(4, 0))) OVER (PARTITION BY id < 3)", [1.5, 1.5, 3.0]),
    ],
)
def test_values_are_sparks(connection: duckdb.DuckDBPyConnection, expression: str, values: list[object]) -> None:
    result = connection.sql(to_duckdb(f"SELECT {expression} AS r FROM t ORDER BY id", KINDS)).to_arrow_table()["r"]
    assert result.to_pylist() == values


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a[0]", "an array of 1 elements or more"),
        ("element_at(array(id, 2), 3)", "an array of 3 elements or more"),
        ("split_part(s, 'l', id - id)", "split_part counts from 1"),
        ("cast(s AS INT)", "Could not convert string 'hello'"),
        ("cast(concat(id, '_0') AS INT)", "a whole number, found '1_0'"),
        ("cast(concat(s, '_') AS DOUBLE)", "Could not convert|without underscores"),
        ("cast(nvl(s, '2024/01/05') AS DATE)", "yyyy-MM-dd, found"),
        ("to_date(nvl(s, '2024/01/05'))", "yyyy-MM-dd, found"),
        ("id DIV (id - id)", "division by zero"),
    ],
)
def test_an_error_is_one_in_duckdb_too(connection: duckdb.DuckDBPyConnection, expression: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        connection.sql(to_duckdb(f"SELECT {expression} AS r FROM t", KINDS)).to_arrow_table()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cast('1_0' AS DOUBLE)", "a number without underscores"),
        ("cast('2024/01/05' AS DATE)", "a day as yyyy-MM-dd"),
        ("element_at(a, 0)", "element_at counts from 1"),
        ("s LIKE r'\\x'", "behind each backslash of the pattern"),
        ("cardinality()", "the function `cardinality` takes more or fewer arguments"),
        ("pmod(id)", "the function `pmod` takes more or fewer arguments"),
    ],
)
def test_wrong_text_is_refused_before_it_runs(expression: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        to_duckdb(f"SELECT {expression} FROM t", KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t WHERE 1",
        "SELECT id FROM t WHERE id",
        "SELECT id FROM t WHERE id > 1 AND day",
        "SELECT id FROM t WHERE NOT (id)",
        "SELECT id FROM t GROUP BY id HAVING count(*)",
        "SELECT l.id FROM t AS l JOIN t AS r ON l.id",
        "SELECT if(id, 1, 2) FROM t",
        "SELECT CASE WHEN id + 1 THEN 1 END FROM t",
    ],
)
def test_a_number_is_no_condition(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a condition, found"):
        to_duckdb(text, KINDS)
    assert to_duckdb("SELECT CASE id WHEN 1 THEN 2 END FROM t WHERE (id = 1) OR NOT isnull(day) AND s LIKE 'a'", KINDS)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1.5D DIV 2", "DIV of"),
        ("date_format(at, 'g')", "a pattern of dates with the letter g"),
        ("date_format(at, s)", "a pattern that is computed"),
        ("months_between(at, day, id > 1)", "months_between with a computed third argument"),
        ("max(struct(id, s))", "an order of rows or arrays"),
        ("min(a)", "an order of rows or arrays"),
        ("a < array(1)", "an order of rows or arrays"),
        ("row_number() OVER (ORDER BY a)", "an order of rows or arrays"),
        ("named_struct('id', id) = other", "a comparison with a written row"),
        ("array_max(array(a))", "nested values"),
        ("cast(m AS STRING)", "the cast of a map to a text"),
        ("cast(a AS STRING)", "the cast of an array to a text"),
        ("cast(named_struct('a', 1) AS STRING)", "the cast of a row to a text"),
    ],
)
def test_what_duckdb_has_no_words_for_is_refused(expression: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        to_duckdb(f"SELECT {expression} FROM t", KINDS)


@pytest.mark.parametrize(
    "groups",
    ["ROLLUP (id)", "CUBE (id, s)", "id WITH ROLLUP", "GROUPING SETS ((id), ())", "GROUPING SETS ((), ())", "id, ROLLUP (s)"],
)
def test_sets_of_groups_of_no_rows_have_no_total(connection: duckdb.DuckDBPyConnection, groups: str) -> None:
    for having in ("", "HAVING count(*) < 2 OR max(id) IS NULL"):
        query = f"SELECT count(*) FROM t WHERE id > {{}} GROUP BY {groups} {having}"
        assert connection.sql(to_duckdb(query.format(9), KINDS)).fetchall() == []
        assert connection.sql(to_duckdb(query.format(2), KINDS)).fetchall()[0] == (1,)
    assert connection.sql(to_duckdb("SELECT count(*) FROM t WHERE id > 9 GROUP BY GROUPING SETS (())", KINDS)).fetchall() == [(0,)]


def test_texts_are_cast_to_their_bytes_in_utf8_and_back(connection: duckdb.DuckDBPyConnection) -> None:
    text = "é\\x41\U0001f600"
    rows = connection.register("texts", pa.table({"s": [text, "", None], "b": [text.encode(), b"", None]}))
    kinds = {"texts": [("s", STRING), ("b", BINARY)]}
    for name in ("cast", "try_cast"):
        query = f"SELECT {name}(s AS BINARY) AS b, {name}(b AS STRING) AS s, {name}('é' AS BINARY) AS c FROM texts"
        made = rows.sql(to_duckdb(query, kinds)).to_arrow_table().to_pydict()
        assert made == {"b": [text.encode(), b"", None], "s": [text, "", None], "c": ["é".encode()] * 3}
        with pytest.raises(duckdb.Error, match="bytes that are no UTF-8"):
            connection.sql(to_duckdb(f"SELECT {name}(X'FF' AS STRING)")).fetchall()


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("SELECT explode(map(1, 2))", ["key", "value"], [(1, 2)]),
        ("SELECT explode(map(1, 2)), 3 AS x", ["key", "value", "x"], [(1, 2, 3)]),
        ("SELECT DISTINCT explode(map('a', 2D)) AS (k, v), 3 AS x", ["k", "v", "x"], [("a", 2.0, 3)]),
        ("SELECT id, explode(map('a', id)) FROM t ORDER BY value DESC LIMIT 1", ["id", "key", "value"], [(3, "a", 3)]),
        ("SELECT key, value + 1 AS v FROM (SELECT explode(map('a', 1, 'b', 2)))", ["key", "v"], [("a", 2), ("b", 3)]),
        ("SELECT explode(CAST(NULL AS MAP<INT, INT>))", ["key", "value"], []),
        ("SELECT posexplode(map('a', 1, 'b', 2))", ["pos", "key", "value"], [(0, "a", 1), (1, "b", 2)]),
        ("SELECT * FROM explode(map(1, 2))", ["key", "value"], [(1, 2)]),
        ("SELECT v FROM explode(map(1, 2)) AS x (k, v)", ["v"], [(2,)]),
        ("SELECT x.* FROM t LATERAL VIEW explode(map(id, 2)) x WHERE id = 1", ["key", "value"], [(1, 2)]),
        ("SELECT k, v FROM t LATERAL VIEW explode(map(id, 2)) x AS k, v WHERE id = 1", ["k", "v"], [(1, 2)]),
    ],
)
def test_a_generator_gives_keys_and_values_of_a_map(
    query: str, names: list[str], rows: list[tuple[object, ...]], connection: duckdb.DuckDBPyConnection
) -> None:
    found = connection.sql(to_duckdb(query, KINDS))
    assert (found.columns, found.fetchall()) == (names, rows)


def test_entries_of_a_map_have_two_names() -> None:
    with pytest.raises(InvalidInputError, match=r"expected 2 names for the columns of a map \(key, value\), found 1"):
        to_duckdb("SELECT explode(map(1, 2)) AS a")
