"""What reads and changes rows: text -> value."""

import pytest

from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.anystatement import Statement
from tablestore.sql.statements.rows import (
    Assignment,
    Delete,
    ExecuteStatementSet,
    Insert,
    Match,
    Merge,
    MergeAction,
    MergeClause,
    Query,
    Update,
)

T, S = Path(("t",)), Path(("s",))
QUERY = Fragment("SELECT 1")


def insert(query: str = "SELECT 1", target: Path = T, **more: object) -> Insert:
    return Insert(target=target, query=Fragment(query), **more)  # type: ignore[arg-type]


def assign(column: str, value: str | None) -> Assignment:
    return Assignment(column=tuple(column.split(".")), value=None if value is None else Fragment(value))


def merge(*clauses: MergeClause, on: str = "t.a = s.a", **more: object) -> Merge:
    return Merge(target=T, on=Fragment(on), clauses=clauses, **({"source": Fragment("s")} | more))  # type: ignore[arg-type]


QUERIES = [
    "SELECT 1",
    "select * from `a``b` where c = ';' -- ;\n order by 1",
    "WITH a AS (SELECT 1), b (x, y) AS (SELECT 2) SELECT * FROM a",
    "WITH RECURSIVE a (n) MAX RECURSION LEVEL 5 AS (SELECT 1) SELECT * FROM a",
    "WITH insert AS (SELECT 1) SELECT * FROM insert",
    "VALUES (1, 'a'), (2, 'b')",
    "TABLE t",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "FROM t |> WHERE a > 1 |> SELECT a",
    "FROM t SELECT a",
    "SELECT /*+ BROADCAST(t) */ a FROM t TABLESAMPLE (10 PERCENT) QUALIFY row_number() OVER (ORDER BY a) = 1",
    "SELECT a:b.c[0]::int, x -> x + 1, :p, ?, {d} FROM t LATERAL VIEW explode(m) e AS k, v",
    "SELECT '; \\' -- /* ' , r'\\', \"it''s\" /* ; /* ; */ */ FROM t",
]
GOLDEN: list[tuple[str, Statement]] = [
    *((text, Query(query=Fragment(text))) for text in QUERIES),
    ("/* a */ SELECT 1 /* b */ ; -- c", Query(query=QUERY)),
    ("INSERT INTO t SELECT 1", insert()),
    ("insert into table c.d.t values (1)", insert("values (1)", Path(("c", "d", "t")))),
    ("INSERT OVERWRITE t SELECT 1", insert(overwrite=True)),
    ("INSERT OVERWRITE TABLE t TABLE s", insert("TABLE s", overwrite=True)),
    ("INSERT INTO `table` VALUES (1)", insert("VALUES (1)", Path(("table",)))),
    ("INSERT INTO t (a, `b c`) SELECT 1", insert(columns=("a", "b c"))),
    ("INSERT INTO t (select, values) SELECT 1", insert(columns=("select", "values"))),
    ("INSERT INTO t BY NAME SELECT 1", insert(by_name=True)),
    ("INSERT INTO t (SELECT 1)", insert("(SELECT 1)")),
    ("INSERT INTO t ((SELECT 1) UNION (SELECT 2))", insert("((SELECT 1) UNION (SELECT 2))")),
    ("INSERT INTO t (a) (SELECT 1)", insert("(SELECT 1)", columns=("a",))),
    ("INSERT INTO t FROM s |> SELECT a", insert("FROM s |> SELECT a")),
    ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", insert("WITH x AS (SELECT 1) SELECT * FROM x")),
    (
        "INSERT OVERWRITE t PARTITION (a = 1, b = DATE '2024-01-31', c) (d) SELECT 1",
        insert(overwrite=True, partition={"a": Fragment("1"), "b": Fragment("DATE '2024-01-31'"), "c": None}, columns=("d",)),
    ),
    (
        "INSERT INTO t PARTITION (a = 'x', b = NULL, c = -1, d = :p, e = ?) SELECT 1",
        insert(partition={key: Fragment(value) for key, value in zip("abcde", ("'x'", "NULL", "-1", ":p", "?"), strict=True)}),
    ),
    (
        "WITH x AS (SELECT 1) INSERT INTO t (a)\nSELECT * FROM x",
        insert("WITH x AS (SELECT 1)                  \nSELECT * FROM x", columns=("a",)),
    ),
    ("DELETE FROM t", Delete(target=T)),
    (
        "DELETE FROM t WHERE a = (SELECT max(a) FROM s WHERE b)",
        Delete(target=T, where=Fragment("a = (SELECT max(a) FROM s WHERE b)")),
    ),
    ("DELETE FROM t AS x WHERE x.a > 1", Delete(target=T, alias="x", where=Fragment("x.a > 1"))),
    ("DELETE FROM t x", Delete(target=T, alias="x")),
    ("UPDATE t SET a = 1", Update(target=T, assignments=(assign("a", "1"),))),
    (
        "UPDATE t AS x SET x.a = x.a + 1, s.b = DEFAULT, c = f(1, 2), d = CASE WHEN a THEN ',' END WHERE a IN (1, 2)",
        Update(
            target=T,
            alias="x",
            assignments=(
                assign("x.a", "x.a + 1"),
                assign("s.b", None),
                assign("c", "f(1, 2)"),
                assign("d", "CASE WHEN a THEN ',' END"),
            ),
            where=Fragment("a IN (1, 2)"),
        ),
    ),
    (
        "UPDATE t SET a = b IS NOT DISTINCT FROM c, d = extract(YEAR FROM e)",
        Update(target=T, assignments=(assign("a", "b IS NOT DISTINCT FROM c"), assign("d", "extract(YEAR FROM e)"))),
    ),
    ("UPDATE t x SET a = ARRAY[1, 2]", Update(target=T, alias="x", assignments=(assign("a", "ARRAY[1, 2]"),))),
    (
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        merge(MergeClause(match=Match.MATCHED, action=MergeAction.DELETE)),
    ),
    (
        "MERGE INTO t AS x USING (SELECT 1) AS y (a, b) ON x.a = y.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        merge(
            MergeClause(match=Match.MATCHED, action=MergeAction.UPDATE),
            MergeClause(match=Match.NOT_MATCHED, action=MergeAction.INSERT),
            on="x.a = y.a",
            alias="x",
            source=Fragment("(SELECT 1)"),
            source_alias="y",
            source_columns=("a", "b"),
        ),
    ),
    (
        "MERGE INTO t x USING c.d.s y ON x.a = y.a AND CASE WHEN y.b THEN 1 END = 1\n"
        "WHEN MATCHED AND CASE WHEN y.c THEN TRUE END THEN UPDATE SET x.b = y.b + 1, c = DEFAULT\n"
        "WHEN MATCHED AND y.d THEN DELETE\n"
        "WHEN NOT MATCHED BY TARGET AND y.e THEN INSERT (a, s.b) VALUES (y.a, DEFAULT)\n"
        "WHEN NOT MATCHED THEN INSERT (a) VALUES (f(y.a, 1))\n"
        "WHEN NOT MATCHED BY SOURCE AND x.f THEN UPDATE SET b = 1\n"
        "WHEN NOT MATCHED BY SOURCE THEN DELETE",
        merge(
            MergeClause(
                match=Match.MATCHED,
                action=MergeAction.UPDATE,
                condition=Fragment("CASE WHEN y.c THEN TRUE END"),
                assignments=(assign("x.b", "y.b + 1"), assign("c", None)),
            ),
            MergeClause(match=Match.MATCHED, action=MergeAction.DELETE, condition=Fragment("y.d")),
            MergeClause(
                match=Match.NOT_MATCHED,
                action=MergeAction.INSERT,
                condition=Fragment("y.e"),
                assignments=(assign("a", "y.a"), assign("s.b", None)),
            ),
            MergeClause(match=Match.NOT_MATCHED, action=MergeAction.INSERT, assignments=(assign("a", "f(y.a, 1)"),)),
            MergeClause(
                match=Match.NOT_MATCHED_BY_SOURCE,
                action=MergeAction.UPDATE,
                condition=Fragment("x.f"),
                assignments=(assign("b", "1"),),
            ),
            MergeClause(match=Match.NOT_MATCHED_BY_SOURCE, action=MergeAction.DELETE),
            on="x.a = y.a AND CASE WHEN y.b THEN 1 END = 1",
            alias="x",
            source=Fragment("c.d.s"),
            source_alias="y",
        ),
    ),
    *(
        (
            f"MERGE INTO t USING {source} AS s ON t.a = s.a WHEN NOT MATCHED THEN INSERT *",
            merge(MergeClause(match=Match.NOT_MATCHED, action=MergeAction.INSERT), source=Fragment(source), source_alias="s"),
        )
        for source in (
            "x VERSION AS OF 3",
            "x FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-31 00:00:00'",
            "x TIMESTAMP AS OF now()",
            "x VERSION AS OF 'tag'",
            "table_changes('x', 1, 2)",
            "(VALUES (1, 2))",
        )
    ),
    (
        "EXECUTE STATEMENT SET BEGIN\n"
        "INSERT INTO t SELECT CASE a WHEN 1 THEN 2 END; WITH y AS (TABLE x) INSERT INTO s TABLE y; END;",
        ExecuteStatementSet(
            inserts=(
                insert("SELECT CASE a WHEN 1 THEN 2 END"),
                insert("WITH y AS (TABLE x)               TABLE y", S),
            )
        ),
    ),
    (
        "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO s SELECT 1; END",
        ExecuteStatementSet(inserts=(insert(), insert(target=S))),
    ),
]


@pytest.mark.parametrize(("text", "value"), GOLDEN, ids=[text for text, _ in GOLDEN])
def test_text_becomes_its_value(text: str, value: Statement) -> None:
    assert parse_statement(text) == value
