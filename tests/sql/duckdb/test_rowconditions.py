"""Which conditions of a query may fail on a row, and through which columns."""

import pytest

from tablestore.sql.binding.sqltypes import BIGINT, DATE, DOUBLE, INT, STRING, array, decimal
from tablestore.sql.duckdb.rowconditions import RowConditions
from tablestore.sql.duckdb.transpile import Known, translated

T = [
    ("id", INT), ("v", STRING), ("s", STRING), ("g", INT), ("w", BIGINT), ("f", DOUBLE), ("p", decimal(10, 2)), ("day", DATE),
    ("l", array(INT)), ("wide", decimal(38, 30)),
]  # fmt: skip
KNOWN = Known(tables={"t": T, "u": [("id", INT), ("k", INT)]})
COMPUTING = {
    "CAST(v AS INT) > 2": {"v"},
    "v::INT > 2": {"v"},
    "10 / w > 1": {"w"},
    "w % 2 = 0": {"w"},
    "w DIV 2 = g": {"w"},
    "g + w > 1": {"g", "w"},
    "-g > 1": {"g"},
    "l[0] = 1": {"l"},
    "upper(s) = 'A'": {"s"},
    "v > 97": {"v"},
    "97 >= v": {"v"},
    "v IN (1, 2)": {"v"},
    "v BETWEEN 1 AND 2": {"v"},
    "g = v": {"g", "v"},
    "day = v": {"day", "v"},
    "CAST(f AS INT) = 1": {"f"},
    "wide > w": {"wide", "w"},
    "s LIKE v": {"s", "v"},
    "g = 5 AND 10 / id > 1": {"id"},
    "g = 5 OR CASE WHEN v <> '' THEN 10 / w END > 1": {"w"},
    "g IN (SELECT k FROM u WHERE 10 / k > 1)": None,
}
COMPARING = (
    "g = 5",
    "g > -1",
    "g IN (1, -2)",
    "s LIKE 'a%'",
    "g BETWEEN 1 AND 2 OR s IS NULL",
    "NOT (g = 1)",
    "g = w AND w > p AND p <> f",
    "s = v AND s > 'x' AND s IN ('a', 'b')",
    "day > DATE '2024-01-01' AND day < '2025-01-01'",
    "CAST(g AS BIGINT) = w",
    "EXISTS (SELECT 1 FROM u)",
    "g IN (SELECT k FROM u)",
    "coalesce(s, v) = 'x'",
)


def _conditions(text: str) -> RowConditions:
    return translated(text, KNOWN).conditions


@pytest.mark.parametrize("condition", COMPUTING)
def test_a_condition_of_something_computed_may_fail_through_its_columns(condition: str) -> None:
    columns = COMPUTING[condition]
    failing = None if columns is None else frozenset(columns)
    assert _conditions(f"SELECT s FROM t WHERE {condition}") == RowConditions(failing=failing, filters=True, computes=True)


@pytest.mark.parametrize("condition", COMPARING)
def test_a_comparison_of_values_of_one_type_fails_on_no_row(condition: str) -> None:
    assert _conditions(f"SELECT *, t.g AS h, v AS x FROM t WHERE {condition}") == RowConditions(filters=True)


def test_what_only_the_list_computes_fails_through_no_condition() -> None:
    text = "SELECT upper(s) AS b, sum(10 / w) AS q FROM t WHERE g = 5 GROUP BY upper(s) ORDER BY 10 / max(w)"
    assert _conditions(text) == RowConditions(filters=True, computes=True)


def test_a_condition_may_fail_through_any_column_where_names_are_others() -> None:
    for text in (
        "SELECT id FROM (SELECT id, CAST(v AS INT) AS n FROM t) AS q WHERE n > 97",
        "SELECT s AS n FROM t GROUP BY s HAVING CAST(n AS INT) > 1",
        "SELECT id FROM t WHERE g = 5 UNION ALL SELECT 10 / id FROM t",
    ):
        assert _conditions(text).failing is None, text


def test_a_condition_is_also_one_of_what_a_query_below_it_computes() -> None:
    outer, inner = _conditions("SELECT k FROM u WHERE k > 2"), _conditions("SELECT CAST(v AS INT) AS k FROM t")
    assert not inner.filters and inner.inside(outer) == RowConditions(failing=None, filters=True, computes=True)
    assert _conditions("SELECT sum(g) FROM t") == RowConditions()
    plain = _conditions("SELECT g AS k FROM t")
    assert plain.inside(outer) == RowConditions(filters=True)
    assert plain.inside(_conditions("SELECT k FROM u WHERE 10 / k > 2")).failing is None


@pytest.mark.parametrize(
    ("query", "in_order"),
    [
        ("SELECT g <> 1 AND 10 / (g - 1) > 2 FROM t", True),
        ("SELECT g = 1 OR v > 2 FROM t", True),
        ("SELECT id FROM t WHERE NOT (g = 1 OR 10 / (g - 1) > 2)", True),
        ("SELECT g <> 1 AND w = 2 FROM t", False),
        ("SELECT 10 / (g - 1) > 2 AND g = 1 FROM t", False),
        ("SELECT id FROM t WHERE g <> 1 AND (id = 1 OR g - 1 > 2)", False),
        ("SELECT CASE WHEN g <> 1 AND g - 1 > 2 THEN 1 END FROM t", False),
        ("SELECT t.id FROM t LEFT JOIN u ON t.id = u.id AND u.k - 1 > 2", False),
    ],
)
def test_conditions_are_computed_in_order_where_a_later_one_may_fail_and_duckdb_computes_all(query: str, in_order: bool) -> None:
    sql = translated(query, KNOWN).sql
    assert ("THEN FALSE" in sql or "THEN TRUE" in sql) == in_order
