"""Zeros of floats where equal rows become one: none has a sign, as in Spark 4.3, whose answers these are."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tablestore.sql.binding.sqltypes import DOUBLE, FLOAT, INT, array, struct
from tablestore.sql.duckdb.transpile import to_duckdb

KINDS = {"t": [("id", INT), ("f", DOUBLE), ("g", FLOAT), ("a", array(DOUBLE)), ("st", struct(p=array(FLOAT), q=INT))]}
ROWS = """CREATE TABLE t AS SELECT id, f::DOUBLE AS f, f::FLOAT AS g, [f::DOUBLE] AS a, {'p': [f::FLOAT], 'q': 7} AS st
    FROM (VALUES (1, '-0.0'), (2, '0.0'), (3, '3'), (4, 'NaN'), (5, 'NaN')) v (id, f)"""


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        yield connection


def answers(query: str, connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return connection.execute(to_duckdb(query, KINDS)).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT f FROM t WHERE id = 1",
        "SELECT DISTINCT g FROM t WHERE id = 1",
        "SELECT DISTINCT t.f FROM t WHERE id = 1 ORDER BY t.f, f + 1",
        "SELECT DISTINCT a[0] FROM t WHERE id = 1",
        "SELECT f FROM (SELECT DISTINCT * FROM t WHERE id = 1)",
        "SELECT st.p[0] FROM (SELECT DISTINCT x.* FROM t AS x WHERE id = 1)",
        "SELECT a[0] FROM (SELECT DISTINCT f, a FROM t WHERE id = 1)",
        "SELECT f FROM t WHERE id = 1 GROUP BY f",
        "SELECT t.f FROM t WHERE id = 1 GROUP BY f HAVING t.f = 0 ORDER BY t.f",
        "SELECT f AS x FROM t WHERE id = 1 GROUP BY x ORDER BY f",
        "SELECT -f AS x FROM t WHERE id = 2 GROUP BY 1 HAVING -f = 0 ORDER BY -f",
        "SELECT -f FROM t WHERE id = 2 GROUP BY -f",
        "SELECT st.p[0] FROM t WHERE id = 1 GROUP BY st",
        "SELECT f FROM t WHERE id = 1 GROUP BY ALL",
        "SELECT f FROM t WHERE id = 1 GROUP BY ROLLUP (f) HAVING f IS NOT NULL",
        "SELECT max(f) OVER () FROM t WHERE id = 1 GROUP BY f",
        "SELECT f * 2 FROM t WHERE id = 1 GROUP BY f",
        "SELECT f FROM t WHERE id = 1 UNION SELECT f FROM t WHERE id = 1",
        "SELECT f FROM t WHERE id = 1 UNION ALL SELECT f FROM t WHERE id = 1 UNION SELECT f FROM t WHERE id = 1",
        "(SELECT f FROM t WHERE id = 1 LIMIT 1) UNION VALUES (-0.0D)",
        "SELECT f FROM (SELECT * FROM t WHERE id = 1 UNION SELECT * FROM t WHERE id = 1)",
        "SELECT f FROM t WHERE id = 1 INTERSECT SELECT f FROM t WHERE id = 2",
        "SELECT f FROM t WHERE id = 1 INTERSECT ALL SELECT f FROM t WHERE id = 2",
        "SELECT f FROM t WHERE id = 1 EXCEPT SELECT f FROM t WHERE id = 3",
        "SELECT f FROM t WHERE id = 1 EXCEPT ALL SELECT f FROM t WHERE id = 3",
        "SELECT collect_set(f)[0] FROM t WHERE id = 1",
        "SELECT array_agg(DISTINCT f)[0] FROM t WHERE id = 1",
        "SELECT DISTINCT * FROM VALUES (-0.0D)",
    ],
)
def test_where_equal_rows_become_one_a_zero_has_no_sign(query: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert str(answers(query, connection)) == "[(0.0,)]"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT f FROM t WHERE id = 1",
        "SELECT f FROM t WHERE id = 1 UNION ALL SELECT f FROM t WHERE id = 4 AND id = 5",
        "SELECT first(f) FROM t WHERE id = 1 GROUP BY f",
        "SELECT max(DISTINCT f) FROM t WHERE id = 1",
        "SELECT collect_list(f)[0] FROM t WHERE id = 1",
        "SELECT -f FROM t WHERE id = 2 GROUP BY f",
    ],
)
def test_elsewhere_it_keeps_its_sign(query: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert str(answers(query, connection)) == "[(-0.0,)]"


def test_values_that_are_equal_are_one_row(connection: duckdb.DuckDBPyConnection) -> None:
    assert str(answers("SELECT DISTINCT f FROM t ORDER BY f", connection)) == "[(0.0,), (3.0,), (nan,)]"
    assert str(answers("SELECT f, count(*) FROM t GROUP BY f ORDER BY f", connection)) == "[(0.0, 2), (3.0, 1), (nan, 2)]"
    assert answers("SELECT f FROM t WHERE id = 1 EXCEPT SELECT f FROM t WHERE id = 2", connection) == []


def test_a_row_that_is_null_stays_null(connection: duckdb.DuckDBPyConnection) -> None:
    assert answers("SELECT DISTINCT if(id > 9, st, NULL) AS st, if(id > 9, a, NULL) AS a FROM t", connection) == [(None, None)]


def test_columns_of_rows_that_are_written_have_sparks_names(connection: duckdb.DuckDBPyConnection) -> None:
    assert answers("SELECT col2, v.col1 FROM VALUES (1, 2) AS v", connection) == [(2, 1)]
    assert connection.sql(to_duckdb("SELECT * FROM (SELECT * FROM VALUES 1, 2)")).columns == ["col1"]
