"""Statements that are nested deeply: they work, or a limit is named. Messages speak of the user's text alone."""

from collections.abc import Callable
from typing import Any

import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.mark.parametrize(
    "condition",
    [
        "NOT (" * 250 + "i = 1" + ")" * 250,
        "(i = 1 AND NOT (i = 7 OR " * 141 + "i = 9" + "))" * 141,
        "NOT " * 600 + "(i = 1)",
        " OR ".join(["i = 1"] * 900),
    ],
)
def test_conditions_may_be_nested_hundreds_of_levels_deep(duck: ts.TableEnvironment, rows_of: Rows, condition: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    duck.execute_sql("INSERT INTO t VALUES (1), (2)")
    assert rows_of(duck.execute_sql(f"SELECT i FROM t WHERE {condition}")) == [(1,)]
    duck.execute_sql(f"DELETE FROM t WHERE {condition}")
    assert rows_of(duck.execute_sql("SELECT i FROM t")) == [(2,)]
    duck.execute_sql("CREATE TABLE c (i INT, j AS " + "(" * 250 + "i" + ")" * 250 + ")")


@pytest.mark.parametrize("statement", ["SELECT {} AS x", "DELETE FROM t WHERE {}", "UPDATE t SET i = 1 WHERE {}"])
def test_what_is_nested_too_deep_is_refused_with_the_limit(duck: ts.TableEnvironment, statement: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    for nested in ("(" * 1000 + "true" + ")" * 1000, "NOT " * 5000 + "true"):
        with pytest.raises(InvalidInputError, match="at most 300 levels") as refused:
            duck.execute_sql(statement.format(nested))
        assert refused.value.kind == "limit"
