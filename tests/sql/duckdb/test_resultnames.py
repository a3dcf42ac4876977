"""Names of columns without an alias: Spark's (``tests/support/sql/names.py``), or the text of the expression."""

import duckdb
import pytest

from tablestore.sql.duckdb.resultnames import name_of_result
from tablestore.sql.duckdb.transpile import to_duckdb
from tests.support.sql.names import NAMES, ROW


def names(text: str) -> list[str]:
    """The columns of a query of ``T``, which runs."""
    with duckdb.connect() as connection:
        return connection.sql(to_duckdb(f"WITH T AS ({ROW}) {text}")).to_arrow_table().column_names


@pytest.mark.parametrize(("expression", "name"), NAMES.items())
def test_names_are_sparks(expression: str, name: str) -> None:
    assert name_of_result(expression, {"t"}) == name


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("sum( a )  OVER w -- each", "sum( a ) OVER w"),
        ("day + INTERVAL a  DAY", "day + INTERVAL a DAY"),
        ("substr(s FROM 1 OF (SELECT max(s) FROM __tablestore_0))", "substr(s FROM 1 OF (…))"),
        ("__tablestore_function_3_Net(a) OVER w", "Net(a) OVER w"),
        ("CASE WHEN a THEN b", "CASE WHEN a THEN b"),
        ("a b", "a b"),
        ("a +", "a +"),
    ],
)
def test_what_is_not_understood_is_named_by_its_own_text(expression: str, name: str) -> None:
    assert name_of_result(expression) == name


def test_functions_of_the_users_are_named_as_they_are_called() -> None:
    assert name_of_result("__tablestore_function_3_Net(a)") == "net(a)"


def test_parameters_are_named_as_they_are_written() -> None:
    assert name_of_result("a * :Rate") == "(a * :Rate)"
    assert name_of_result("a * :_1") == "(a * ?)"


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a+1, a AS k, b, count(*) FROM T GROUP BY ALL", ["(a + 1)", "k", "b", "count(1)"]),
        ("SELECT *, a + 1 FROM (SELECT a, upper(s) FROM T) AS q", ["a", "upper(s)", "(a + 1)"]),
        ("SELECT `sum(a)` + 1 FROM (SELECT sum(a) FROM T)", ["(sum(a) + 1)"]),
        ("SELECT q.`count(1)` FROM (SELECT count(*) FROM T) AS q", ["count(1)"]),
        ("SELECT a + 1 FROM T UNION ALL SELECT b FROM T ORDER BY `(a + 1)`", ["(a + 1)"]),
        ("SELECT DISTINCT year(day) FROM T ORDER BY year(day)", ["year(day)"]),
        ("SELECT year(day), sum(b) FROM T GROUP BY year(day) HAVING sum(b) > 0 ORDER BY sum(b)", ["year(day)", "sum(b)"]),
        ("SELECT avg(p), p / 3, arr[0] FROM T GROUP BY p, arr", ["avg(p)", "(p / 3)", "arr[0]"]),
        ("SELECT st.k, T.st.k FROM T", ["k", "k"]),
        ("SELECT explode(arr) FROM T", ["col"]),
        ("SELECT `a`, 1 FROM T GROUP BY 1, 2", ["a", "1"]),
        ("SELECT ''", ["''"]),
        ("SELECT CAST(a AS STRING), a FROM T", ["CAST(a AS STRING)", "a"]),
        ("SELECT CAST(a AS STRING), CAST(A AS DOUBLE) FROM T", ["a", "CAST(A AS DOUBLE)"]),
        ("SELECT *, CAST(a AS STRING) FROM (SELECT a FROM T)", ["a", "CAST(a AS STRING)"]),
        ("FROM T SELECT a, -a", ["a", "(- a)"]),
        ("SELECT * FROM (SELECT year(day), b FROM T) PIVOT (sum(b) FOR `year(day)` IN (2023, 2024))", ["2023", "2024"]),
    ],
)
def test_columns_of_queries(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_cast_is_sorted_by_its_name_only_where_nothing_else_has_it() -> None:
    rows = "VALUES (2), (10) AS t (a)"
    with duckdb.connect() as connection:
        texts = [
            connection.sql(to_duckdb(f"SELECT CAST(a AS STRING){more} FROM {rows} ORDER BY a")).fetchall() for more in ("", ", a")
        ]
    # Of one column of that name, its text is sorted, as in Spark.
    assert texts == [[("10",), ("2",)], [("2", 2), ("10", 10)]]
