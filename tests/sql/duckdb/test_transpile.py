"""Spark's text for DuckDB: what is rewritten, and what is refused by name. The corpus compares rows."""

import sys
from contextlib import suppress
from random import Random

import duckdb
import pytest
import sqlglot

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.sqltypes import DATE, DOUBLE, INT, STRING, decimal
from tablestore.sql.depth import MOST_LEVELS
from tablestore.sql.duckdb.transpile import to_duckdb
from tablestore.sql.parse.tokens import Kind as TokenKind
from tablestore.sql.parse.tokens import text_of, tokenize
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.query.tablereferences import find_references
from tests.support.sql.corpus import statements


def run(text: str) -> object:
    """The only value of a query."""
    with duckdb.connect() as connection:
        row = connection.execute(to_duckdb(text)).fetchall()[0]
    return row[0]


@pytest.mark.parametrize("divided", ["1 / (x - x)", "1 DIV (x - x)", "1 % (x - x)", "pmod(1, x - x)", "1.5 / 0"])
def test_a_division_by_zero_is_an_error_as_in_spark(divided: str) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="division by zero"):
        run(f"SELECT {divided} FROM VALUES (1) AS t (x)")


@pytest.mark.deep_after(12)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3.5),
        ("-7 DIV 2", -3),
        ("substring('abc', x - x, 2)", "ab"),
        ("CAST(x + 0.9 AS INT)", 1),
        ("CAST(array(array(1.5, x), array(-0.5), NULL) AS ARRAY<ARRAY<INT>>)", [[1, 1], [0], None]),
        ("CAST(named_struct('a', 1.5, 'b', array(-2.5)) AS STRUCT<b: INT, a: ARRAY<BIGINT>>)", {"b": 1, "a": [-2]}),
        ("CAST(struct(2.5D, NULL) AS STRUCT<a: INT, b: INT>)", {"a": 2, "b": None}),
        ("CAST(map('1', 1.5, '2', NULL) AS MAP<INT, INT>)", {1: 1, 2: None}),
        ("CAST(map(1.5, struct(x + 0.5)) AS MAP<INT, STRUCT<n: INT>>)", {1: {"n": 1}}),
        ("CAST(CAST(' +12 ' AS STRING) AS INT) + coalesce(CAST(CAST(NULL AS STRING) AS BIGINT), 0)", 12),
        ("TRY_CAST(CAST('12.7' AS STRING) AS INT)", None),
        ("'a%' LIKE 'a\\\\%' AND NOT 'ab' LIKE 'a\\\\%'", True),
        ("array(5, 6)[1]", 6),
        ("concat('a', NULL)", None),
        ("timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:30:00', TIMESTAMP '2024-01-01 02:00:00')", 1),
        ("timestampdiff(MONTH, TIMESTAMP '2024-01-31 00:00:00', TIMESTAMP '2024-02-01 00:00:00')", 0),
        ("unix_timestamp(TIMESTAMP '2024-01-01 00:00:00.9') % 10", 0),
        ("count(DISTINCT x, NULL)", 0),
        ("any(x > 0) AND every(x > 0)", True),
        ("'it''s' || \"a\"\"b\"", "it'sa\"b"),
        ("regexp_replace('ab', '(a)(b)', '$2$1')", "ba"),
        ("r'a\\n' || upper(r\"\\t\")", "a\\n\\T"),
        ("regexp_like('a.b', r'a\\.b') AND NOT regexp_like('a-b', r'a\\.b')", True),
        ("CAST(r'\\1' AS STRING)", "\\1"),
        ("dayname(DATE '2024-01-01') || dayofweek(DATE '2024-01-01') || weekday(DATE '2024-01-01')", "Mon20"),
    ],
)
def test_values_are_sparks(expression: str, value: object) -> None:
    assert run(f"SELECT {expression} FROM VALUES (1) AS t (x)") == value


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT year(day) AS v FROM t", "INTEGER"),
        ("SELECT max(length(s)) AS v FROM t", "INTEGER"),
        ("SELECT v FROM (SELECT datediff(day, day) AS v FROM t) AS q ORDER BY v", "INTEGER"),
        ("SELECT q.v, count(*) FROM (SELECT datediff(day, day) AS v FROM t) AS q GROUP BY q.v", "INTEGER"),
        ("SELECT * FROM (SELECT datediff(day, day) AS v FROM t) AS q WHERE v < 5", "INTEGER"),
        ("SELECT q.d AS v FROM (SELECT datediff(day, day) AS d FROM t) AS q", "INTEGER"),
        ("SELECT v AS v FROM (SELECT v AS v FROM (SELECT size(array(1)) AS v) AS q) AS r", "INTEGER"),
        ("SELECT row_number() OVER (ORDER BY s) AS v FROM t QUALIFY v = 1", "INTEGER"),
        ("(SELECT ntile(2) OVER (ORDER BY s) AS v FROM t) UNION ALL SELECT rank() OVER (ORDER BY s) AS v FROM t", "INTEGER"),
        ("SELECT month(day) AS v, sum(n) AS n FROM t GROUP BY v HAVING v > 0 ORDER BY v", "INTEGER"),
        ("SELECT sum(n) AS v FROM t", "DECIMAL(20,2)"),
        ("SELECT sum(n) OVER (PARTITION BY s) * 2 AS v FROM t", "DECIMAL(22,2)"),
        ("SELECT n * n AS v FROM t", "DECIMAL(21,4)"),
        ("SELECT 7 DIV 2 AS v", "BIGINT"),
        ("SELECT x.v AS v FROM VALUES (CAST(1 AS BIGINT)) AS x (v), (SELECT year(DATE '2024-01-01') AS v) AS y", "BIGINT"),
        ("SELECT s AS v FROM t", "VARCHAR"),
    ],
)
def test_named_columns_of_a_result_have_sparks_types(text: str, name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT DATE '2024-02-01' AS day, 'a' AS s, 1.5::DECIMAL(10, 2) AS n")
        tables = {"t": (("day", DATE), ("s", STRING), ("n", decimal(10, 2)))}
        rows = connection.sql(to_duckdb(text, tables))
        assert str(rows.types[rows.columns.index("v")]) == name
        assert rows.fetchall()


def test_a_text_with_a_fraction_is_no_whole_number() -> None:
    with pytest.raises(duckdb.InvalidInputException, match=r"a whole number, found '12\.7'"):
        run("SELECT CAST(CAST('12.7' AS STRING) AS INT)")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FROM t |> WHERE x > 1", "pipes"),
        ("SELECT hash(x) FROM t", "the function hash"),
        ("SELECT x RLIKE '(?<=a)b' FROM t", "look-around"),
        ("SELECT x RLIKE y FROM t", "a regular expression that is computed"),
        ("SELECT a[i] FROM t", "a subscript that is computed"),
        ("SELECT exists(a, x -> x > 1) FROM t", "the function exists"),
        ("SELECT struct(*) FROM t", "a star inside of a function"),
        ("SELECT * FROM t LATERAL VIEW stack(x, 1, 2) AS x", "stack of a number of rows"),
        ("SELECT CAST(1.5D AS STRING)", "the cast of a float"),
        ("SELECT trunc(DATE '2024-01-01', lower('YEAR')) FROM t", "trunc to a unit that is computed"),
        ("SELECT sentences('x')", "sentences"),
        ("SELECT * FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (1)", "TABLESAMPLE with REPEATABLE"),
        ("SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 2 ON x)", "TABLESAMPLE of buckets"),
        ("SELECT count(DISTINCT *) FROM t", "columns that are not known"),
        ("SELECT sequence(x, 1) FROM t", "the function sequence of"),
        ("SELECT percentile_approx(x, 0.5) FROM t", "approx"),
        ("SELECT date_format(DATE '2024-01-01', 'g') FROM t", "a pattern of dates"),
        ("SELECT '1' UNION ALL SELECT 2", "UNION of STRING and INT in the column '1' without a CAST"),
        (
            "WITH q AS (SELECT 1.5 AS x) SELECT x FROM q EXCEPT SELECT 'a'",
            r"EXCEPT of STRING and DECIMAL\(2, 1\) in the column 'x'",
        ),
        ("SELECT * FROM (SELECT DATE '2024-01-01' AS d INTERSECT SELECT '2024-01-01')", "INTERSECT of STRING and DATE"),
        ("SELECT 1, upper(x) AS u FROM t UNION SELECT 2, 'a' UNION SELECT 3, year(x) FROM t", "STRING and INT in the column 'u'"),
    ],
)
def test_what_duckdb_does_not_do_as_spark_does_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedError, match=named) as refused:
        to_duckdb(text)
    assert refused.value.kind == "engine"
    assert "engine spark" in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lenght(x)", "there is no function `lenght`; did you mean 'length'?"),
        ("nobody_knows(x)", "there is no function `nobody_knows`$"),
        ("list_sort(x)", "there is no function `list_sort`"),
        ("epoch_ms(x)", "there is no function `epoch_ms`"),
        ("length()", "the function `length` takes more or fewer arguments"),
    ],
)
def test_a_call_that_spark_does_not_know_is_wrong_even_where_duckdb_does(call: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        to_duckdb(f"SELECT {call} FROM t")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("hll_sketch_agg(x)", "the function hll_sketch_agg "),
        ("sentences(x, ',')", "the function sentences "),
        ("approx_count_distinct(x, 0.1)", "the function approx_count_distinct of 2 arguments"),
        ("round(expr => x)", "the function round with names of arguments"),
    ],
)
def test_a_call_that_nobody_has_compared_is_refused_as_it_is_written(call: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        to_duckdb(f"SELECT {call} FROM t")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'a' UNION ALL SELECT NULL",
        "SELECT CAST('1' AS INT) UNION ALL SELECT 2",
        "SELECT 1 UNION ALL SELECT 2.5",
        "SELECT 'a' AS x, 1 AS y UNION BY NAME SELECT 1 AS y, 'a' AS x",
    ],
)
def test_sets_of_one_type_are_not_refused(text: str) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(to_duckdb(text)).fetchall()


def test_in_a_query_with_a_null_is_null_as_sql_has_it() -> None:
    # Spark 4.3 gives false, and its documents say NULL.
    assert run("SELECT 5 IN (SELECT * FROM VALUES (1), (NULL))") is None


def test_text_that_is_no_query_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be parsed"):
        to_duckdb("SELECT FROM WHERE")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("opened", "closed"), [("NOT (", ")"), ("concat('a', ", ")"), ("(SELECT ", ")"), ("CASE WHEN true THEN ", " END")]
)
def test_a_query_may_be_nested_hundreds_of_levels_deep(opened: str, closed: str) -> None:
    before = sys.getrecursionlimit()
    assert to_duckdb(f"SELECT {opened * MOST_LEVELS}true{closed * MOST_LEVELS} AS x").startswith("SELECT ")
    assert run(f"SELECT {opened * 40}true{closed * 40} AS x")
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "expression", ["(" * (MOST_LEVELS + 1) + "1" + ")" * (MOST_LEVELS + 1), "NOT " * 5000 + "true", "(" * 100_000]
)
def test_a_query_that_is_nested_too_deep_is_refused_with_the_limit(expression: str) -> None:
    with pytest.raises(InvalidInputError, match=f"at most {MOST_LEVELS} levels") as refused:
        to_duckdb(f"SELECT {expression} AS x")
    assert refused.value.kind == "limit"


@pytest.mark.parametrize("operator", ["/", "DIV", "%"])
def test_a_chain_of_quotients_grows_with_its_length(operator: str) -> None:
    known = {"t": [("a", INT), ("b", INT)]}
    short, long = (len(to_duckdb(f"SELECT a {f'{operator} (b + 1) ' * count} AS x FROM t", known)) for count in (10, 40))
    assert long < 8 * short


def test_a_quotient_of_null_by_zero_is_null_wherever_the_null_is() -> None:
    text = "SELECT (a * 2 - b) / z / 3 AS x FROM (VALUES (CAST(NULL AS INT), 1, 0), (1, CAST(NULL AS INT), 0)) AS t (a, b, z)"
    assert duckdb.sql(to_duckdb(text)).fetchall() == [(None,), (None,)]
    with pytest.raises(duckdb.Error, match="division by zero"):
        duckdb.sql(to_duckdb("SELECT (a * 2 - b) / z / 3 AS x FROM (VALUES (1, 1, 0)) AS t (a, b, z)")).fetchall()


@pytest.mark.deep
def test_calls_in_calls_that_have_too_many_parts_name_the_limit() -> None:
    with pytest.raises(InvalidInputError, match="name parts of it in a query below") as raised:
        to_duckdb(f"SELECT {'sign(' * 40}d{')' * 40} AS x FROM t", {"t": [("d", DOUBLE)]})
    assert raised.value.kind == "limit"


@pytest.mark.deep
def test_calls_in_calls_beside_each_other_are_counted_together() -> None:
    def columns(expression: str, count: int) -> str:
        return f"SELECT {', '.join(f'{expression} AS c{place}' for place in range(count))} FROM VALUES ('a') AS t (v)"

    nested = f"{'upper(' * 11}v{')' * 11}"
    assert to_duckdb(columns(nested, 1)) and to_duckdb(columns("upper(split(v, ',')[0])", 300))
    with pytest.raises(InvalidInputError, match="the query has more than") as raised:
        to_duckdb(columns(nested, 10))
    assert raised.value.kind == "limit"


@pytest.mark.parametrize(
    ("sorting", "ids"),
    [
        ("SORT BY n DESC", [2, 1, 3]),
        ("CLUSTER BY n", [3, 1, 2]),
        ("DISTRIBUTE BY id SORT BY n NULLS LAST", [1, 2, 3]),
    ],
)
def test_one_result_of_duckdb_is_one_part_that_sort_by_sorts(sorting: str, ids: list[int]) -> None:
    text = f"SELECT id FROM (VALUES (1, 10), (2, 20), (3, NULL)) AS t (id, n) {sorting} LIMIT 2"
    assert duckdb.sql(to_duckdb(text)).fetchall() == [(one,) for one in ids[:2]]


def test_hints_are_dropped_and_parameters_named() -> None:
    assert (
        to_duckdb("SELECT /*+ BROADCAST(t) */ * FROM t WHERE x = :_1 AND y = :name")
        == "SELECT * FROM t WHERE x = $_1 AND y = $name"
    )


def test_columns_of_values_are_cast_as_their_literals_are() -> None:
    for query, value in [
        ("SELECT CAST(x AS INT) FROM VALUES (2.7), (1) AS v (x)", 2),
        ("SELECT CAST(y AS BIGINT) FROM (SELECT -x AS y FROM (VALUES (2.7D)) AS v (x))", -2),
        ("WITH w (n) AS (SELECT 1 UNION ALL SELECT 2.5) SELECT max(CAST(n AS INT)) FROM w", 2),
        ("SELECT CAST(x AS INT) FROM VALUES ('12') AS v (x)", 12),
    ]:
        assert run(query) == value
    with pytest.raises(duckdb.InvalidInputException, match=r"found '12\.7'"):
        run("SELECT CAST(x AS INT) FROM VALUES ('12.7') AS v (x)")


@pytest.mark.parametrize(
    "text",
    [r"'a\\b'", r"'it''s'", r"'it\'s'", r'"a""b"', r"'\t\n\0'", r"'\u00fc\101'", r"'\%\_'", r"r'a\nb'", r"'a\qb'", "''", r"'\\'''"],
)
def test_sqlglot_reads_texts_as_our_tokens_do(text: str) -> None:
    (token, _) = tokenize(text)
    assert token.kind is TokenKind.TEXT
    assert sqlglot.parse_one(f"SELECT {text}", read=Spark4).selects[0].name == text_of(text, token)


def test_broken_text_gives_our_errors_only() -> None:
    chosen = Random(1)
    for text in chosen.choices([statement.text for statement in statements()], k=400):
        tokens = tokenize(text)[:-1]
        first, second = sorted(chosen.choices(tokens, k=2), key=lambda token: token.start)
        between = text[first.end : second.start]
        broken = chosen.choice(
            [
                text[: first.start] + text[first.end :],
                f"{text[: first.end]} {first.text} {text[first.end :]}",
                f"{text[: first.start]}{second.text}{between}{first.text if first is not second else ''}{text[second.end :]}",
            ]
        )
        with suppress(InvalidInputError, UnsupportedError):
            find_references(broken)
            to_duckdb(broken)


def test_whole_numbers_beyond_bigint_are_decimals_of_their_digits() -> None:
    assert to_duckdb("SELECT 9223372036854775808 AS n") == "SELECT CAST(9223372036854775808 AS DECIMAL(19, 0)) AS n"
    assert to_duckdb("SELECT 9223372036854775807 n, -9223372036854775808 m") == (
        "SELECT 9223372036854775807 AS n, -9223372036854775808 AS m"
    )
    with pytest.raises(InvalidInputError, match="39 digits"):
        to_duckdb(f"SELECT {'9' * 39}")


def test_a_cast_that_is_not_closed_is_refused() -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)):
        to_duckdb("SELECT CAST(qty AS STRING || '!', CAST(CAST(id AS STRING) AS BIGINT) FROM orders")


def test_what_cannot_be_written_for_duckdb_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="in this form"):
        to_duckdb("SELECT initcap(initcap(v)) AS x FROM VALUES ('a') AS t (v)")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("VALUES 1 AS t(x)", [(1,)]),
        ("VALUES 1, 2 t(x)", [(1,), (2,)]),
        ("VALUES 1 + 2, (4) AS t(x)", [(3,), (4,)]),
        ("VALUES CASE WHEN true THEN 4 END AS t(x)", [(4,)]),
    ],
)
def test_the_alias_behind_values_without_parentheses_is_that_of_the_table(rows: str, expected: list[tuple[int]]) -> None:
    assert duckdb.sql(to_duckdb(f"SELECT t.x FROM {rows}")).fetchall() == expected
