"""Aliases that are used beside the expressions that they name. ``tests/sql/corpus/aliases.sql`` compares them with Spark."""

from itertools import count

import duckdb
import pytest

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import INT, STRING, SqlType, struct
from tablestore.sql.duckdb.lateralaliases import PREFIX
from tablestore.sql.duckdb.transpile import to_duckdb
from tablestore.sql.query.functions import FUNCTION_PREFIX

TABLES = {"t": [("id", INT), ("s", STRING)]}


def _chain(steps: int) -> str:
    parts = (f"upper(right(c{place} || c{place}, 3)) AS c{place + 1}" for place in range(steps))
    return f"SELECT upper(s) AS c0, {', '.join(parts)} FROM t WHERE id > 0 ORDER BY c{steps}, id"


def test_a_chain_of_aliases_that_are_used_twice_grows_by_a_step_for_each() -> None:
    lengths = [len(to_duckdb(_chain(steps), TABLES)) for steps in (10, 20, 30, 60)]
    assert lengths[2] - lengths[1] <= 1.2 * (lengths[1] - lengths[0]), "twice the steps, twice the text"
    assert lengths[3] < 2.5 * lengths[2]


def test_a_chain_of_thirty_aliases_that_are_used_twice_has_its_values() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, 'xyz' AS s")
        (row,) = connection.execute(to_duckdb(_chain(30), TABLES)).fetchall()
    assert row == ("XYZ",) * 31


def test_what_an_alias_names_is_computed_once() -> None:
    values, name = count(), f"{FUNCTION_PREFIX}next"
    with duckdb.connect() as connection:
        connection.create_function(name, lambda: next(values), [], "INTEGER", side_effects=True)  # type: ignore[arg-type]
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, 'a' AS s")
        sql = to_duckdb(f"SELECT {name}() AS n, n AS same, CASE WHEN n >= 0 THEN n END AS again FROM t", TABLES)
        ((first, second, third),) = connection.execute(sql).fetchall()
    assert first == second == third


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id + 1 AS n, id FROM t ORDER BY n",
        "SELECT id + 1 AS n, count(*) AS c FROM t GROUP BY n HAVING n > 1 ORDER BY n",
        "SELECT upper(s) AS s, s || 'x' AS c FROM t",
        "SELECT id AS n, m AS c FROM t, u",
    ],
)
def test_a_query_without_such_a_use_or_with_unknown_names_stays_as_it_is(query: str) -> None:
    assert PREFIX not in to_duckdb(query, TABLES)


def test_an_alias_that_two_expressions_have_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the alias `b` is ambiguous: 2 expressions before it have it"):
        to_duckdb("SELECT upper(s) AS b, lower(s) AS B, b || 'x' AS c FROM t", TABLES)


NUMBERS: dict[str, list[tuple[str, SqlType]]] = {"t": [("id", INT), ("a", INT), ("b", INT)]}


def _rows(query: str) -> list[tuple[object, ...]]:
    """The rows of a query, in its order; Spark 4.3 gives those that the tests expect."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 3, 0), (2, NULL, 0), (3, 0, 1), (4, 1, 1), (5, 3, 1)) v(id, a, b)"
        )
        return connection.execute(to_duckdb(query, NUMBERS)).fetchall()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a AS x, x + x AS y FROM t GROUP BY a ORDER BY a", [(None, None), (0, 0), (1, 2), (3, 6)]),
        ("SELECT count(*) AS n, n + 1 AS m FROM t GROUP BY a ORDER BY a", [(1, 2), (1, 2), (1, 2), (2, 3)]),
        ("SELECT count(*) AS n, n + 1 AS m FROM t GROUP BY a + 1 ORDER BY a + 1", [(1, 2), (1, 2), (1, 2), (2, 3)]),
        ("SELECT count(*) AS n, n * sum(id) FILTER (WHERE a > 0) AS m FROM t GROUP BY b ORDER BY b", [(2, 2), (3, 27)]),
        ("SELECT count(*) AS n, n + 1 AS m FROM t GROUP BY a ORDER BY a DESC", [(2, 3), (1, 2), (1, 2), (1, 2)]),
    ],
)
def test_rows_are_ordered_by_what_they_are_grouped_by(query: str, rows: list[tuple[object, ...]]) -> None:
    assert _rows(query) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id, 10 - a AS a FROM t WHERE a IS NOT NULL ORDER BY a + 1, id LIMIT 2", [(1, 7), (5, 7)]),
        ("SELECT id, 10 - a AS a, a + 1 AS z, z * 2 AS y FROM t WHERE a > 0 ORDER BY a + 1, id LIMIT 1", [(1, 7, 4, 8)]),
        ("SELECT -a AS a, a + 1 AS k FROM t WHERE a IS NOT NULL GROUP BY a ORDER BY a + 1", [(-3, 4), (-1, 2), (0, 1)]),
        ("SELECT sum(a) AS x, count(*) AS id FROM t GROUP BY b ORDER BY abs(id)", [(3, 2), (4, 3)]),
        ("SELECT sum(a) AS a, b FROM t GROUP BY b HAVING coalesce(a, 0) > 1 ORDER BY -a", [(4, 1), (3, 0)]),
    ],
)
def test_an_alias_that_hides_a_column_counts_in_expressions_of_order_by(query: str, rows: list[tuple[object, ...]]) -> None:
    assert _rows(query) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT b AS x, count(*) AS a, x AS y FROM t GROUP BY b HAVING a > 2", [(1, 3, 1)]),
        ("SELECT b AS x, sum(a) AS a, x AS y FROM t GROUP BY b HAVING max(a) > 0 AND a > 3", [(1, 4, 1)]),
        ("SELECT b AS x, x + x + x AS y, y AS id FROM t GROUP BY x HAVING id > x", [(1, 3, 3)]),
        ("SELECT -b AS b, count(*) AS c, c + 1 AS d FROM t GROUP BY b HAVING b > 0", [(-1, 3, 4)]),
        ("SELECT id % 2 AS x, x + 1 AS y, max(b) AS id FROM t GROUP BY 1 HAVING id < x + 1", [(1, 2, 1)]),
        (
            "SELECT b AS x, sum(id) FILTER (WHERE a > 0) AS a, x AS y FROM t GROUP BY b HAVING sum(id) FILTER (WHERE a > 0) > 1",
            [(1, 9, 1)],
        ),
    ],
)
def test_an_alias_that_hides_a_column_counts_in_having_if_the_rows_are_not_grouped_by_it(
    query: str, rows: list[tuple[object, ...]]
) -> None:
    assert _rows(query) == rows


ROWS = "CREATE TABLE t AS SELECT 1 AS id, {'p': 3, 'q': {'r': 1}} AS st UNION ALL SELECT 2, {'p': 1, 'q': {'r': 5}}"
ROW_TYPES = {"t": [("id", INT), ("st", struct(p=INT, q=struct(r=INT)))]}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT struct(id AS p) AS s2 FROM t ORDER BY s2.p DESC", [({"p": 2},), ({"p": 1},)]),
        ("SELECT st.p AS n, st AS z FROM t ORDER BY Z.P", [(1, {"p": 1, "q": {"r": 5}}), (3, {"p": 3, "q": {"r": 1}})]),
        ("SELECT st AS z, z.p AS zz, z.q.r AS r FROM t ORDER BY z.q.r + 1 DESC", [(..., 1, 5), (..., 3, 1)]),
        ("SELECT struct(-id AS p) AS st FROM t ORDER BY st.p", [({"p": -2},), ({"p": -1},)]),
        ("SELECT struct(-id AS p) AS t FROM t ORDER BY t.p", [({"p": -2},), ({"p": -1},)]),
        ("SELECT DISTINCT struct(id AS p) AS s2 FROM t ORDER BY s2.p DESC", [({"p": 2},), ({"p": 1},)]),
        ("SELECT struct(id AS p) AS s2 FROM t UNION ALL SELECT struct(9 AS p) ORDER BY s2.p DESC LIMIT 1", [({"p": 9},)]),
        ("SELECT *, struct(-id AS p) AS z FROM t ORDER BY z.p LIMIT 1", [(2, ..., {"p": -2})]),
        ("SELECT struct(max(id) AS a) AS z FROM t HAVING z.a > 1", [({"a": 2},)]),
        ("SELECT struct(max(id) AS a) AS z FROM t HAVING z.a > 2", []),
        (
            "SELECT id AS k, struct(sum(st.p) AS a) AS z FROM t GROUP BY id HAVING z.a > 0 ORDER BY z.a",
            [(2, {"a": 1}), (1, {"a": 3})],
        ),
        ("SELECT struct(id AS p) AS z, count(*) AS c FROM t GROUP BY z HAVING z.p > 1 ORDER BY z.p", [({"p": 2}, 1)]),
        ("SELECT st AS z FROM t AS x ORDER BY x.st.p DESC LIMIT 1", [({"p": 3, "q": {"r": 1}},)]),
    ],
)
def test_a_field_of_an_alias_orders_rows_and_chooses_groups(query: str, rows: list[tuple[object, ...]]) -> None:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        found = connection.execute(to_duckdb(query, ROW_TYPES)).fetchall()
    assert [
        tuple(... if want is ... else value for value, want in zip(*pair, strict=True)) for pair in zip(found, rows, strict=True)
    ] == rows
