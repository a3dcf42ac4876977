"""What a query uses of its tables: columns, and a filter that is implied by its conditions."""

import datetime as dt
from decimal import Decimal

import pytest

from tablestore.sql.query.plan import QueryView, Replacement, plan_query
from tablestore.sql.query.tablereferences import find_references
from tablestore.sql.query.use import Use
from tablestore.types.datatypes import Field, RowType
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Comparison, Predicate, conjuncts
from tablestore.types.typestring import parse_type

TYPES = {
    "t": {
        "id": "BIGINT", "k": "INT", "name": "STRING", "day": "DATE", "price": "DECIMAL(10,2)", "x": "DOUBLE", "f": "FLOAT",
        "ok": "BOOLEAN", "at": "TIMESTAMP(6)", "zat": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "c": "CHAR(3)",
    },
    "u": {"id": "BIGINT", "k": "INT", "note": "STRING", "y": "DOUBLE"},
    "odd": {"A b": "INT", "a": "INT", "Count": "INT", "date": "DATE", "rest": "INT"},
}  # fmt: skip
FIELDS = {
    table: tuple(Field(id=i, name=name, type=parse_type(kind)) for i, (name, kind) in enumerate(columns.items()))
    for table, columns in TYPES.items()
}
FIELDS["t"] += (Field(id=99, name="s", type=RowType(fields=(Field(id=100, name="a", type=parse_type("INT")),))),)


def uses(text: str, parameters: object = ()) -> tuple[Use, ...]:
    references = find_references(text)
    made = [Replacement(path=found.path.parts, fields=FIELDS[found.path.parts[-1]]) for found in references]
    plan = plan_query(text, references, made, parameters)  # type: ignore[arg-type]
    for found, use in zip(references, plan.uses, strict=True):
        assert parse_filter(use.filter, FIELDS[found.path.parts[-1]]) == use.filter  # Table.scan takes it
    return plan.uses


def columns(text: str) -> list[str]:
    return ["*" if use.columns is None else " ".join(use.columns) for use in uses(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t", ["*"]),
        ("SELECT count(*) FROM t", ["id"]),
        ("SELECT count(*), count(*) OVER () FROM t WHERE ID = 1", ["id"]),
        ("SELECT count(DISTINCT *), 1 FROM u", ["*"]),
        ("SELECT struct(*) FROM u", ["*"]),
        ("SELECT t.id, note FROM t JOIN u USING (k)", ["id k", "k note"]),
        ("SELECT t.id FROM t NATURAL JOIN u", ["*", "*"]),
        ("SELECT u.* FROM t JOIN u ON t.k = u.k", ["k", "*"]),
        ("SELECT * EXCEPT (id) FROM u", ["*"]),
        ("SELECT s.a, upper(name) n FROM t WHERE day > '2024-01-01' ORDER BY x", ["name day x s"]),
        ("SELECT a.id FROM t a JOIN t b ON a.k = b.id", ["id k", "id"]),
        ("SELECT id FROM (SELECT * FROM t) q WHERE name = 'a'", ["id name"]),
        ("SELECT q.id FROM (SELECT DISTINCT * FROM u) q", ["*"]),
        ("SELECT id FROM (SELECT * FROM u ORDER BY 2)", ["*"]),
        ("SELECT id FROM ((SELECT * FROM u) ORDER BY y) q", ["*"]),
        ("SELECT z FROM (SELECT * FROM u) q(z, b, c, d)", ["*"]),
        (
            "WITH q AS (SELECT * FROM t), r AS (SELECT * FROM q WHERE k > 1) SELECT a.id, b.name FROM r a JOIN q b ON a.x = b.x",
            ["id k name x"],
        ),
        ("WITH q (a, b, c, d) AS (SELECT * FROM u) SELECT a FROM q", ["*"]),
        ("WITH q AS (SELECT id, k FROM t) SELECT id FROM q UNION SELECT id FROM u", ["id k", "id"]),
        ("SELECT * FROM u UNION ALL SELECT id, k, name, x FROM t", ["*", "id k name x"]),
        ("SELECT id FROM (SELECT * FROM u UNION SELECT * FROM u)", ["*", "*"]),
        ("SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.k AND name = note)", ["id k name", "id note"]),
        ("SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE y > x)", ["id k x", "k y"]),
        ("SELECT (SELECT max(y) FROM u WHERE u.id = t.id) FROM t", ["id y", "id"]),
        ("SELECT sum(x) OVER (PARTITION BY k ORDER BY day) FROM t QUALIFY row_number() OVER (ORDER BY id) = 1", ["id k day x"]),
        ("SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY k)", ["k x"]),
        ("SELECT * FROM u PIVOT (sum(y) FOR k IN (1, 2))", ["*"]),
        ("SELECT v FROM t LATERAL VIEW explode(array(k, id)) e AS v", ["id k"]),
        ("SELECT q.y FROM t, LATERAL (SELECT y FROM u WHERE u.id = t.id) q", ["id", "id y"]),
        ("SELECT transform(array(k), e -> e + id) FROM t", ["id k"]),
        ("SELECT a.id FROM (t a JOIN u b ON a.k = b.k) LEFT JOIN u c ON c.id = a.id", ["id k", "k", "id"]),
        ("SELECT k, count(*) FROM t GROUP BY ALL HAVING max(x) > 1", ["k x"]),
        ("SELECT `A B`, count(a), date '2024-01-01' FROM odd", ["A b a Count date"]),
        ("SELECT db.t.id FROM db.t", ["id"]),
        ("FROM t |> WHERE id = 1 |> SELECT k", ["*"]),
        ("TABLE u", ["*"]),
        ("SELECT k FROM t TABLESAMPLE (10 ROWS) VERSION", ["k"]),
        ("SELECT id FROM t, some new syntax ( that nobody knows", ["*"]),
        ("VALUES (1)", []),
    ],
)
def test_columns_are_those_that_the_query_may_mean(text: str, expected: list[str]) -> None:
    if "some new syntax" in text:
        text = text.replace("some new", "u some new")
        expected = [*expected, "*"]
    assert columns(text) == expected


def meant(table: str, text: str | None) -> Predicate | None:
    """The filter of a scan that is written so."""
    return parse_filter(text, FIELDS[table])


def where(condition: str, parameters: object = ()) -> Predicate | None:
    (use,) = uses(f"SELECT 1 FROM t WHERE {condition}", parameters)
    return use.filter


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 1", "`id` = 1"),
        ("1 < ID AND `Name` = 'it'", "`id` > 1 AND `name` = 'it'"),
        ("name = 'it''s' AND name <> 'a\\nb' AND name <> \"d\"\"q\"", "`name` = 'it''s' AND `name` <> 'a\nb' AND `name` <> 'd\"q'"),
        ("id BETWEEN 1 AND 5", "(`id` >= 1 AND `id` <= 5)"),
        ("NOT id BETWEEN -1 AND 5", "NOT ((`id` >= -1 AND `id` <= 5))"),
        ("id IN (1, 2, NULL) OR k IS NULL", "(`id` IN (1, 2, NULL) OR `k` IS NULL)"),
        ("id NOT IN (1, 2)", "NOT (`id` IN (1, 2))"),
        ("k IS NOT NULL AND id <=> 3", "NOT (`k` IS NULL) AND NOT (`id` IS NULL) AND `id` = 3"),
        ("k <=> NULL OR (k) IS NULL", "`k` IS NULL OR `k` IS NULL"),
        ("id IS DISTINCT FROM 3", "NOT (NOT (`id` IS NULL) AND `id` = 3)"),
        ("ok IS TRUE", "`ok` IS TRUE"),
        ("ok IS NOT FALSE", "NOT (`ok` IS FALSE)"),
        ("name LIKE 'a%' AND name NOT LIKE '%b_'", "`name` LIKE 'a%' AND NOT (`name` LIKE '%b_')"),
        ("startswith(name, 'a')", "`name` LIKE 'a%'"),
        ("ok AND NOT (ok = false)", "`ok` AND NOT (`ok` = FALSE)"),
        (
            "day >= '2024-01-01' AND day < date '2024-01-31' + interval '1' month",
            "`day` >= DATE '2024-01-01' AND `day` < DATE '2024-02-29'",
        ),
        ("day > cast('2024-03-01' as date) - interval 2 days", "`day` > DATE '2024-02-28'"),
        ("price > 1.50 AND price < 3", "`price` > 1.50 AND `price` < 3"),
        ("x = 0.1 AND f > 0.5", "`x` = 0.1 AND `f` > 0.5"),
        ("x < 1e-7", "`x` < 0.0000001"),
        ("(id = 1 AND rand() > 0.5) OR (id = 2 AND k = 3)", "(`id` = 1 OR `id` = 2 AND `k` = 3)"),
        ("id = 1 AND upper(name) = 'A' AND k = k", "`id` = 1"),
        ("at >= TIMESTAMP '2024-01-02 03:04:05'", "`at` >= TIMESTAMP '2024-01-01 03:04:05'"),
        ("zat < '2024-01-02 00:00:00'", "`zat` <= TIMESTAMP '2024-01-03 00:00:00Z'"),
        ("zat = date '2024-01-02'", "(`zat` >= TIMESTAMP '2024-01-01 00:00:00Z' AND `zat` <= TIMESTAMP '2024-01-03 00:00:00Z')"),
    ],
)
def test_conditions_that_scan_and_engine_see_alike_become_a_filter(condition: str, expected: str) -> None:
    assert where(condition) == meant("t", expected)


@pytest.mark.parametrize(
    "condition",
    [
        "id = '5'",  # cast by the engine
        "name = 5",
        "name = 'a\\\\b'",  # a backslash, which is written in two ways
        "c = 'ab'",  # padded
        "id = 1 OR name = upper('x')",
        "NOT (id = 1 AND name = upper('x'))",
        "NOT (at > TIMESTAMP '2024-01-01 00:00:00')",
        "id = 1e0",
        "f = 0.1",
        "f = 16777217",
        "x = 9007199254740993",
        "price = 1e0",
        "price > 12345678901234567890123456789012345678",
        "id IN (1, '2')",
        "day = '2024-02-30'",
        "day = '2024-1-1'",
        "day IN ('2024-01-01', date '2024-01-02')",
        "s.a = 1",
        "id = k",
        "id = NULL",
        "id IN (1, CAST(NULL AS DOUBLE))",
        "id IS TRUE",
        "NOT (at <=> '2024-01-02')",
        "id IN (SELECT 1)",
        "name LIKE 'a%' ESCAPE '!'",
        "name ILIKE 'a%'",
        "id = x.y",
        "day > date '9999-12-31' + interval 1 day",
        "at > '20240101'",
        "at > '2024-01-01 25:00:00'",
        "at > TIMESTAMP '0001-01-01 00:00:00'",
        "at > 5",
        "zat > TRUE",
    ],
)
def test_conditions_that_may_mean_something_else_are_left_to_the_engine(condition: str) -> None:
    assert where(condition) is None


def test_a_condition_of_many_levels_becomes_a_filter_and_one_of_hundreds_is_left_to_the_engine() -> None:
    few, many = ("(k = 1 AND NOT (k = 7 OR " * levels + "k = 9" + "))" * levels for levels in (9, 141))
    assert Comparison("=", "k", 1) in conjuncts(where(few)) and where(many) is None


def test_parameters_are_literals() -> None:
    for found, expected in (
        (where("id = :a AND name IN (:b, :c)", {"a": 7, "b": "x", "c": "it's"}), "`id` = 7 AND `name` IN ('x', 'it''s')"),
        (where("price <= ? AND day = ?", [Decimal("1.5"), dt.date(2024, 1, 2)]), "`price` <= 1.5 AND `day` = DATE '2024-01-02'"),
        (where("at > ?", [dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]), "`at` >= TIMESTAMP '2024-01-01 00:00:00'"),
    ):
        assert found == meant("t", expected)
    assert where("x = ? AND id = ? AND name = ?", [float("nan"), b"1", None]) is None


def read_as(text: str, expected: list[str | None]) -> bool:
    """True if a query has these filters of its tables."""
    tables = [found.path.parts[-1] for found in find_references(text)]
    return [use.filter for use in uses(text)] == [meant(*one) for one in zip(tables, expected, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM t JOIN u ON t.id = u.id AND t.k = 1 WHERE u.k = 2", ["`k` = 1", "`k` = 2"]),
        ("SELECT 1 FROM t, u WHERE t.k = 1 AND name = 'a' AND note = 'b'", ["`k` = 1 AND `name` = 'a'", "`note` = 'b'"]),
        ("SELECT 1 FROM t, u WHERE k = 1", [None, None]),
        ("SELECT 1 FROM t LEFT JOIN u ON t.k = 1 AND u.k = 2 WHERE t.id = 3 AND u.id = 4", ["`id` = 3", "`k` = 2"]),
        ("SELECT 1 FROM t RIGHT JOIN u ON t.k = 1 AND u.k = 2 WHERE t.id = 3 AND u.id = 4", ["`k` = 1", "`id` = 4"]),
        ("SELECT 1 FROM t FULL JOIN u ON t.k = 1 AND u.k = 2 WHERE t.id = 3 AND u.id = 4", [None, None]),
        ("SELECT 1 FROM t SEMI JOIN u ON t.k = 1 AND u.k = 2 WHERE k = 3", ["`k` = 1 AND `k` = 3", "`k` = 2"]),
        ("SELECT 1 FROM t LEFT SEMI JOIN u ON t.k = 1 AND u.k = 2", ["`k` = 1", "`k` = 2"]),
        ("SELECT 1 FROM t ANTI JOIN u ON t.k = 1 AND u.k = 2 WHERE k = 3", ["`k` = 3", "`k` = 2"]),
        ("SELECT 1 FROM t LEFT ANTI JOIN u ON t.k = 1 AND u.k = 2", [None, "`k` = 2"]),
        ("SELECT 1 FROM t LEFT JOIN u a ON t.id = a.id JOIN u b ON a.k = 1 AND b.k = 2 AND t.k = 3", ["`k` = 3", None, "`k` = 2"]),
        ("SELECT 1 FROM t JOIN u ON t.k = 1 FULL JOIN u v ON t.id = v.id WHERE t.x = 1.5", ["`k` = 1", None, None]),
        ("SELECT 1 FROM t TABLESAMPLE (5 ROWS) WHERE k = 1", [None]),
        ("SELECT 1 FROM t q(a, b) WHERE k = 1", [None]),
        ("SELECT 1 FROM t a JOIN t b ON a.id = b.k WHERE a.k = 1", ["`k` = 1", None]),
        (
            "SELECT 1 FROM t WHERE k = 1 AND EXISTS (SELECT 1 FROM u WHERE u.id = 2 AND k = 3 AND name = 'a')",
            ["`k` = 1", "`id` = 2 AND `k` = 3"],
        ),
        ("SELECT k FROM t WHERE id = 1 UNION ALL SELECT k FROM u WHERE id = 2", ["`id` = 1", "`id` = 2"]),
        ("SELECT k FROM t GROUP BY k HAVING k = 1", [None]),
        ("SELECT row_number() OVER (ORDER BY id) r FROM t QUALIFY r = 1 AND k = 2", [None]),
        ("WITH q AS (SELECT * FROM t WHERE k = 1) SELECT * FROM q JOIN q r USING (id)", ["`k` = 1"]),
        ("SELECT 1 FROM (t JOIN u ON t.id = u.id) WHERE t.k = 1", [None, None]),
        ("SELECT * FROM u PIVOT (sum(y) FOR k IN (1, 2)) WHERE id = 1", [None]),
        (
            "SELECT 1 FROM t WHERE (t.k = 1 AND t.id = 2) OR (t.k = 3 AND t.x > 4)",
            ["(`k` = 1 AND `id` = 2 OR `k` = 3 AND `x` > 4.0)"],
        ),
    ],
)
def test_a_filter_never_comes_from_the_side_that_an_outer_join_fills(text: str, expected: list[str | None]) -> None:
    assert read_as(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM (SELECT * FROM t) q WHERE k = 1 AND q.x > 2.5", ["`k` = 1 AND `x` > 2.5"]),
        ("SELECT a FROM (SELECT id AS a, k + 1 AS b FROM t WHERE ok) WHERE a = 1 AND b = 2", ["`ok` AND `id` = 1"]),
        ("WITH q AS (SELECT * FROM t), r AS (SELECT id, k AS z FROM q) SELECT id FROM r WHERE z = 1", ["`k` = 1"]),
        ("WITH q AS (SELECT * FROM t) SELECT 1 FROM q WHERE k = 1 UNION SELECT 1 FROM q WHERE k = 2", [None]),
        (
            "SELECT 1 FROM u LEFT JOIN (SELECT * FROM t) q ON q.id = u.id AND q.k = 1 WHERE q.x = 2.5 AND u.y = 1",
            ["`y` = 1.0", "`k` = 1"],
        ),
        ("SELECT 1 FROM (SELECT * FROM t LEFT JOIN u USING (id)) q WHERE q.x = 2.5 AND q.y = 1", ["`x` = 2.5", None]),
        ("SELECT 1 FROM (SELECT DISTINCT k FROM t) q WHERE k = 1", ["`k` = 1"]),
        ("SELECT 1 FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT max(k) AS k FROM t) WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT k, row_number() OVER (ORDER BY id) AS r FROM t) WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT * FROM t LIMIT 3) WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT * FROM t) TABLESAMPLE (5 ROWS) q WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT * FROM t) q (a, b, c, d, e, f, g, h, i, j, k) WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT * EXCEPT (x) FROM t) q WHERE k = 1", [None]),
        ("SELECT 1 FROM (SELECT k, id AS k2 FROM t UNION ALL SELECT k, id FROM u) WHERE k = 1", [None, None]),
        ("SELECT 1 FROM (SELECT * FROM t) q, u WHERE x = 2.5", [None, None]),
    ],
)
def test_conditions_go_down_into_derived_tables_that_neither_count_nor_cut(text: str, expected: list[str | None]) -> None:
    assert read_as(text, expected)


def test_a_view_is_read_as_its_reader_needs_it() -> None:
    inner = "SELECT *, x * 2 AS twice FROM t WHERE ok"
    (found,) = find_references(inner)
    made = Replacement(path=("t",), fields=FIELDS["t"])
    view = QueryView(text=inner, edits=plan_query(inner, [found], [made]).edits, replacements=(made,))
    text = "SELECT v.id, u.note FROM v JOIN u ON v.id = u.id AND v.k = 3 WHERE twice > 1 AND u.k = 4"
    replacements = [Replacement(path=("v",), view=view), Replacement(path=("u",), fields=FIELDS["u"])]
    plan = plan_query(text, find_references(text), replacements)
    assert plan.uses == (
        Use(columns=("id", "k", "x", "ok"), computed=(), filter=meant("t", "`ok` AND `k` = 3")),
        Use(columns=("id", "k", "note"), computed=(), filter=meant("u", "`k` = 4")),
    )


@pytest.mark.parametrize(
    ("text", "columns", "computed"),
    [
        ("SELECT * FROM u", None, ("Twice", "day")),
        ("SELECT count(*) FROM u", ("id",), ()),
        ("SELECT u.twice FROM u WHERE k = 1 ORDER BY date'2024-01-01'", ("k",), ("Twice",)),
        ("SELECT sum(q.twice) FROM (SELECT * FROM u) q GROUP BY q.note", ("note",), ("Twice",)),
        ("SELECT note FROM u WHERE day > 3", ("note",), ("day",)),
        ("SELECT u.* EXCEPT (day) FROM u", None, ("Twice", "day")),
        ("FROM u |> SELECT id", None, None),
    ],
)
def test_computed_columns_are_used_where_they_are_named(
    text: str, columns: tuple[str, ...] | None, computed: tuple[str, ...] | None
) -> None:
    made = Replacement(path=("u",), fields=FIELDS["u"], computed=("Twice", "day"))
    (use,) = plan_query(text, find_references(text), [made]).uses
    assert (use.columns, use.computed) == (columns, computed)
    assert use.filter in (None, meant("u", "`k` = 1"))
