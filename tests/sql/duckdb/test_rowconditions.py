"""Which conditions of a query may fail on a row."""

import pytest

from tablestore.sql.duckdb.rowconditions import RowConditions, row_conditions

COMPUTING = (
    "CAST(v AS INT) > 2", "v::INT > 2", "10 / w > 1", "w % 2 = 0", "w DIV 2 = 0", "a + b > 1", "-a > 1", "a - 1 > 0", "a * b > 1",
    "a[0] = 1", "`f`(a) > 1", "upper(s) = 'A'", "a -1 > 0",
)  # fmt: skip
COMPARING = (
    "g = 5",
    "g > -1",
    "g IN (1, -2)",
    "s LIKE 'a%'",
    "g BETWEEN 1 AND 2 OR s IS NULL",
    "NOT (g = 1)",
    "EXISTS (SELECT 1 FROM u)",
)


@pytest.mark.parametrize("condition", COMPUTING)
def test_a_condition_of_something_computed_may_fail_on_any_value(condition: str) -> None:
    assert row_conditions(f"SELECT id FROM t WHERE {condition}") == RowConditions(filters=True, computes=True)


@pytest.mark.parametrize("condition", COMPARING)
def test_a_comparison_of_columns_computes_nothing(condition: str) -> None:
    text = f"SELECT *, t.*, count(*) AS n, sum(DISTINCT x) FROM t WHERE {condition}"
    assert row_conditions(text) == RowConditions(filters=True)


def test_a_condition_is_also_one_of_what_a_query_below_it_computes() -> None:
    outer, inner = row_conditions("SELECT * FROM v WHERE n > 2"), row_conditions("SELECT CAST(s AS INT) AS n FROM t")
    assert not inner.filters and inner.inside(outer) == RowConditions(filters=True, computes=True)
    assert row_conditions("SELECT sum(x) FROM t") == RowConditions()
