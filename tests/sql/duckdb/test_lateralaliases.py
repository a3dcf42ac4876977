"""Aliases that are used beside the expressions that they name. ``tests/sql/corpus/aliases.sql`` compares them with Spark."""

from itertools import count

import duckdb
import pytest

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import INT, STRING
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
