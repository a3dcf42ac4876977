"""Which columns each column of a query is from, and what is left out where that is in doubt. Pure: trees of texts."""

import pytest

from tablestore.sql.query.columnlineage import ReadQuery, ReadTable, column_lineage
from tablestore.sql.sqldialect import SqlDialect
from tablestore.telemetry.lineage import LineageDataset

S = ReadTable(dataset=LineageDataset(location="/s"), columns=("id", "price", "Item"))
T = ReadTable(dataset=LineageDataset(location="/t"), columns=("id", "name"))
NOBODYS = ReadTable(dataset=None, columns=("id", "x"))
UNKNOWN = ReadTable(dataset=None, columns=())


def lineage(
    text: str, *relations: ReadTable | ReadQuery, dialect: SqlDialect = SqlDialect.SPARK
) -> tuple[dict[str, set[str]], set[str]]:
    """The sources of a, b and c, and of which rows there are: ``/s.id IDENTITY``."""
    found = column_lineage(ReadQuery(text=text, prefix="__r", dialect=dialect, relations=relations), ["a", "b", "c"])
    shown = {name: {f"{use.dataset.location}.{use.column} {use.how.name}" for use in uses} for name, uses in found.columns.items()}
    return shown, {f"{use.dataset.location}.{use.column} {use.how.name}" for use in found.rows}


@pytest.mark.parametrize(
    ("text", "a"),
    [
        ("SELECT id AS a FROM __r0", {"/s.id IDENTITY"}),
        ("SELECT ITEM AS A FROM __r0", {"/s.Item IDENTITY"}),
        ("SELECT s.id AS a FROM __r0 AS s", {"/s.id IDENTITY"}),
        ("SELECT id + price AS a FROM __r0", {"/s.id TRANSFORMATION", "/s.price TRANSFORMATION"}),
        ("SELECT max(price) AS a FROM __r0", {"/s.price AGGREGATION"}),
        ("SELECT max(price) + 1 AS a FROM __r0", {"/s.price AGGREGATION"}),
        ("SELECT sum(p) AS a FROM (SELECT price * 2 AS p FROM __r0) x", {"/s.price AGGREGATION"}),
        ("SELECT a FROM (SELECT *, id AS a FROM __r0) x", {"/s.id IDENTITY"}),
        ("WITH w AS (SELECT id AS a FROM __r0) SELECT * FROM w", {"/s.id IDENTITY"}),
        ("WITH w AS (SELECT id FROM __r0), v AS (SELECT id AS a FROM w) SELECT a FROM v", {"/s.id IDENTITY"}),
        ("SELECT a FROM (SELECT id FROM __r0) AS x (a)", {"/s.id IDENTITY"}),
        ("SELECT id AS a FROM __r0 UNION ALL SELECT price FROM __r0", {"/s.id IDENTITY", "/s.price IDENTITY"}),
        ("SELECT CASE WHEN id > 1 THEN price END AS a FROM __r0", {"/s.id CONDITIONAL", "/s.price TRANSFORMATION"}),
        ("SELECT IF(id > 1, price, 0) AS a FROM __r0", {"/s.id CONDITIONAL", "/s.price TRANSFORMATION"}),
        ("SELECT sum(price) OVER (PARTITION BY id ORDER BY item) AS a FROM __r0",
         {"/s.price AGGREGATION", "/s.id WINDOW", "/s.Item WINDOW"}),
        ("SELECT (SELECT max(price) FROM __r0) AS a FROM __r0", {"/s.price AGGREGATION"}),
        ("SELECT CAST(id AS STRING) AS a FROM __r0", {"/s.id TRANSFORMATION"}),
    ],
)  # fmt: skip
def test_a_column_is_followed_to_its_tables(text: str, a: set[str]) -> None:
    assert lineage(text, S)[0] == {"a": a}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id AS a FROM __r0 WHERE price > 1", {"/s.price FILTER"}),
        ("SELECT id AS a FROM __r0 GROUP BY id HAVING max(price) > 1", {"/s.id GROUP_BY", "/s.price FILTER"}),
        ("SELECT id AS a FROM __r0 ORDER BY price LIMIT 1", {"/s.price SORT"}),
        ("SELECT x.id AS a FROM __r0 x JOIN __r1 y ON x.id = y.id", {"/s.id JOIN", "/t.id JOIN"}),
        ("SELECT x.price AS a FROM __r0 x JOIN __r1 y USING (id)", {"/s.id JOIN", "/t.id JOIN"}),
        ("SELECT id AS a FROM __r0 WHERE id IN (SELECT id FROM __r1)", {"/s.id FILTER", "/t.id FILTER"}),
        ("SELECT id AS a FROM (SELECT * FROM __r0 WHERE price > 1) x", {"/s.price FILTER"}),
    ],
)
def test_columns_that_choose_rows_are_told(text: str, rows: set[str]) -> None:
    columns, told = lineage(text, S, T)
    assert columns
    assert told == rows


def test_a_view_is_looked_through() -> None:
    view = ReadQuery(
        text="SELECT id AS x, price AS y FROM __r0 WHERE price > 0", prefix="__r", dialect=SqlDialect.SPARK, relations=(S,)
    )
    columns, rows = lineage("SELECT v.x AS a, t.name AS b FROM __r0 AS v JOIN __r1 AS t ON v.x = t.id", view, T)
    assert columns == {"a": {"/s.id IDENTITY"}, "b": {"/t.name IDENTITY"}}
    assert rows == {"/s.price FILTER", "/s.id JOIN", "/t.id JOIN"}


def test_a_query_of_duckdb_is_read_in_its_words() -> None:
    columns, _ = lineage("SELECT id::VARCHAR AS a, * EXCLUDE (id) FROM __r0", S, dialect=SqlDialect.DUCKDB)
    assert columns["a"] == {"/s.id TRANSFORMATION"}


def test_rows_of_nobody_have_no_source() -> None:
    assert lineage("SELECT id AS a, x AS b FROM __r0", NOBODYS) == ({}, set())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM __r1",
        "SELECT id AS a, id AS a FROM __r0",
        "SELECT 1 AS a",
        "FROM __r0 |> SELECT id AS a |> WHERE",
        "SELECT nonsense.id AS a FROM __r0",
        "SELECT (((",
    ],
)
def test_what_is_in_doubt_is_left_out(text: str) -> None:
    assert lineage(text, S, UNKNOWN)[0] == {}


def test_a_column_in_doubt_leaves_the_others() -> None:
    columns, _ = lineage("SELECT id AS a, u.y AS b FROM __r0 CROSS JOIN __r1 u", S, UNKNOWN)
    assert columns == {"a": {"/s.id IDENTITY"}}
