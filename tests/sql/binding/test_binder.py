"""Which type of Spark's an expression has, and which column a name stands for."""

import json
import re
import sys
from pathlib import Path

import pytest
import sqlglot

from tablestore.sql.binding.binder import bind_types
from tablestore.sql.binding.sqltypes import DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal
from tablestore.sql.duckdb.functions.functiontable import BOUNDS, SIGNATURES
from tablestore.sql.query.dialect import Spark4

RECORDED = Path(__file__).parent / "types.jsonl"
COLUMNS = """
SELECT CAST(1 AS TINYINT) AS ti, CAST(2 AS SMALLINT) AS si, 3 AS i, 4L AS b, CAST(1.5 AS FLOAT) AS f, 2.5D AS d,
       CAST(1.25 AS DECIMAL(10, 2)) AS p, CAST(1 AS DECIMAL(38, 18)) AS w, DATE '2024-01-01' AS day, 'x' AS s, true AS bo,
       TIMESTAMP '2024-01-01 00:00:00' AS at, array(1, 2) AS a, array(1.5D) AS ad, map('k', 1.5D) AS m,
       named_struct('x', 2.7D, 'y', 1) AS st, INTERVAL 1 DAY AS iv, CAST('x' AS BINARY) AS bi
"""

TABLES = {
    "t": [("a", decimal(10, 2)), ("b", decimal(8, 4)), ("i", INT), ("d", DATE)],
    "u": [("A", DOUBLE), ("c", STRING)],
}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELECT avg(a) AS a FROM t", decimal(14, 6)),
        ("SELECT t.a, u.a AS b FROM t JOIN u", decimal(10, 2)),
        ("SELECT u.a, t.a AS b FROM t JOIN u", DOUBLE),
        ("SELECT x.a FROM t AS x", decimal(10, 2)),
        ("SELECT a FROM t, u", None),
        ("SELECT a FROM (SELECT c AS a FROM u), (SELECT a AS b FROM t)", STRING),
        ("SELECT d FROM (SELECT *, a AS e FROM t)", DATE),
        ("SELECT z FROM (SELECT i AS y, u.* FROM t, u) AS v (x, y, z)", STRING),
        ("SELECT b FROM (SELECT * FROM t) WHERE b IN (SELECT c FROM u)", decimal(8, 4)),
        ("SELECT (SELECT d) AS e FROM t", DATE),
        ("WITH u AS (SELECT a AS c FROM t) SELECT c FROM u", decimal(10, 2)),
        ("WITH t AS (SELECT d AS a FROM t) SELECT a FROM t", DATE),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r", INT),
        ("SELECT a FROM (SELECT a FROM t UNION ALL SELECT a FROM u)", DOUBLE),
        ("SELECT a FROM (SELECT a FROM t UNION ALL SELECT d FROM t)", None),
        ("SELECT i AS x, x AS y FROM t", INT),
        ("SELECT x FROM VALUES (1), (2.5), (NULL) AS v (x)", decimal(11, 1)),
        ("SELECT x FROM VALUES ('12.7'), (NULL) AS v (x)", STRING),
        ("SELECT col2 FROM VALUES (1, 2.5)", decimal(2, 1)),
        ("SELECT a FROM t LATERAL VIEW explode(array(1)) AS a", None),
        ("SELECT a FROM (SELECT t.a FROM t LEFT SEMI JOIN u ON t.i = u.c) AS q", decimal(10, 2)),
        ("SELECT q.c FROM (SELECT c FROM t JOIN u ON TRUE) AS q", STRING),
        ("SELECT c FROM (t JOIN u ON TRUE)", STRING),
        ("SELECT n FROM nobody", None),
    ],
)
def test_a_name_is_that_of_the_column_in_its_own_query(query: str, kind: SqlType | None) -> None:
    """And not of an alias, or of a column of another table, that has the same name."""
    tree = sqlglot.parse_one(query, read=Spark4)
    first = tree.selects[0]
    assert bind_types(tree, TABLES).of(first.unalias()) == kind


def test_a_name_in_order_by_is_the_alias_first() -> None:
    tree = sqlglot.parse_one("SELECT d AS a FROM t GROUP BY a ORDER BY a", read=Spark4)
    bound = bind_types(tree, TABLES)
    assert bound.of(tree.args["order"].expressions[0].this) == DATE
    assert bound.of(tree.args["group"].expressions[0]) == decimal(10, 2)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("a + b", decimal(13, 4)),
        ("a * b", decimal(19, 6)),
        ("a / b", decimal(23, 11)),
        ("a / 3", decimal(14, 6)),
        ("a / i", decimal(21, 13)),
        ("avg(a)", decimal(14, 6)),
        ("sum(a) / count(*)", decimal(38, 20)),
        ("sum(a) / sum(b)", decimal(38, 16)),
        ("a * 1e0", DOUBLE),
        ("i / 2", DOUBLE),
        ("i * 2", INT),
        ("d + INTERVAL 1 DAY", DATE),
        ("d - 3", DATE),
        ("d + INTERVAL 1 HOUR", TIMESTAMP),
        ("coalesce(d, current_date())", DATE),
        ("CASE WHEN i > 1 THEN a END", decimal(10, 2)),
        ("named", decimal(3, 2)),
        ("x", None),
    ],
)
def test_types_follow_sparks_rules(expression: str, wanted: SqlType | None) -> None:
    tree = sqlglot.parse_one(f"SELECT {expression} FROM t, (SELECT 1.25 AS named)", read=Spark4)
    assert bind_types(tree, TABLES).of(tree.selects[0]) == wanted


def recorded() -> list[tuple[str, str]]:
    """Expressions over one table, and Spark's types of them (``tests/integration/spark/test_expressiontypes.py`` asks Spark)."""
    return [tuple(json.loads(line)) for line in RECORDED.read_text().splitlines()]


def test_expressions_have_the_types_that_spark_says() -> None:
    table = sqlglot.parse_one(COLUMNS, read=Spark4)
    columns = bind_types(table, {}).columns(table)
    differ, unknown = {}, set()
    for expression, wanted in recorded():
        tree = sqlglot.parse_one(f"SELECT {expression} AS x FROM t", read=Spark4)
        found = bind_types(tree, {"t": columns}, signatures=SIGNATURES).columns(tree)
        kind = found[0][1] if found is not None else None
        if kind is None:
            unknown.add(expression)
        elif str(kind).lower().replace(" ", "") != wanted.partition(" ")[0]:
            differ[expression] = wanted, str(kind)
    assert not differ
    assert all(set(re.findall(r"\w+(?=\()", expression)) - BOUNDS.keys() for expression in unknown), "it has a type"


@pytest.mark.parametrize("width", [1, 3])
def test_binding_takes_time_in_proportion_to_the_query(width: int) -> None:
    """Whatever reads the columns of a query, it has been bound once."""

    def calls(levels: int) -> int:
        names = [f"x{place}" for place in range(width + 1)]
        parts = [f"c0 AS (SELECT {', '.join(f'a * {place} AS {name}' for place, name in enumerate(names))} FROM t)"]
        for level in range(1, levels):
            swapped = ", ".join(f"{other} + {name} AS {name}" for other, name in zip(names[1:] + names[:1], names, strict=True))
            parts.append(f"c{level} AS (SELECT {swapped} FROM c{level - 1} JOIN c{level - 1} AS o USING ({', '.join(names)}))")
        tree = sqlglot.parse_one(f"WITH {', '.join(parts)} SELECT * FROM c{levels - 1}", read=Spark4)
        counted = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            bind_types(tree, TABLES)
        finally:
            sys.setprofile(before)
        return counted

    assert calls(50) < 2.2 * calls(25)
