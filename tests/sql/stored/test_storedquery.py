"""What a stored query may say: one query, and nothing that reaches out of it."""

import pytest

import tablestore as ts
from tablestore.sql.duckdb.transpile import to_duckdb
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.stored.sparkreach import reaches
from tablestore.sql.stored.storedquery import MOST_CHARACTERS, check_stored_query
from tests.support.sql.hostile import NO_QUERIES, texts


@pytest.mark.parametrize("text", texts("/x"))
def test_what_is_no_plain_query_is_refused(text: str) -> None:
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError)):
        check_stored_query(text)


@pytest.mark.parametrize("text", [*NO_QUERIES, "SELECT 1 AS id INTO s FROM s"])
def test_duckdb_is_given_queries_alone(text: str) -> None:
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError)):
        to_duckdb(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, v FROM `a`.`b`.`c`",
        "(SELECT 1) UNION ALL (VALUES (2))",
        "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
        "FROM a.b.c |> WHERE x > 1",
        "TABLE a.b.c",
        "VALUES (1, 2)",
        "SELECT 1;",
        "SELECT delete FROM a.b.c",
        "SELECT `reflect`, reflect, o.`a/b`, json.a FROM a.b.o AS json JOIN a.b.c USING (`using`, x)",
        "SELECT transform(xs, x -> x + 1), '$', 'a ${', \"INSERT INTO\", 'reflect(' FROM a.b.c -- ; COPY\n",
        "SELECT insert(a, 1, 2, 'x'), replace(a, 'MERGE INTO', '') FROM IDENTIFIER('a.b.c')",
    ],
)
def test_queries_are_let_through(text: str) -> None:
    check_stored_query(text)


def test_a_query_without_end_is_refused() -> None:
    with pytest.raises(ts.InvalidInputError, match="at most 1,000,000 characters"):
        check_stored_query("SELECT '" + "x" * MOST_CHARACTERS + "'")
    with pytest.raises(ts.InvalidInputError, match="nested too deep"):
        check_stored_query("SELECT " + "(" * 5_000 + "1" + ")" * 5_000)


def test_the_place_of_what_reaches_out_is_known() -> None:
    text = "SELECT a, Reflect ('x') FROM t"
    (reach,) = reaches(Tokens(text))
    assert text[reach.span.start : reach.span.end] == "Reflect" and reach.what == "the function reflect"
