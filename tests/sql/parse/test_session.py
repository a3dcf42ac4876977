"""What looks around, sets the session and calls procedures: text -> value."""

import pytest

from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.alter import AnalyzeTable
from tablestore.sql.statements.anystatement import Explain, Statement
from tablestore.sql.statements.rows import ExecuteStatementSet, Insert, Query
from tablestore.sql.statements.session import (
    Argument,
    CallProcedure,
    Describe,
    DescribeFunction,
    DescribeHistory,
    EngineStatement,
    RefreshTable,
    ResetSessionOption,
    SetSessionOption,
    Show,
    ShowKind,
    UseNames,
)


def path(text: str) -> Path:
    return Path(tuple(text.split(".")))


def show(kind: ShowKind, of: str | None = None, **more: object) -> Show:
    return Show(kind=kind, path=None if of is None else path(of), **more)  # type: ignore[arg-type]


INSERT = Insert(target=path("t"), query=Fragment("SELECT 1"))
GOLDEN: list[tuple[str, Statement]] = [
    ("SHOW CATALOGS", show(ShowKind.CATALOGS)),
    ("show catalogs like 'a%'", show(ShowKind.CATALOGS, like="a%")),
    ("SHOW DATABASES", show(ShowKind.DATABASES)),
    ("SHOW SCHEMAS IN c NOT LIKE 'x'", show(ShowKind.DATABASES, "c", like="x", not_like=True)),
    ("SHOW NAMESPACES FROM `a.b`", Show(kind=ShowKind.DATABASES, path=Path(("a.b",)))),
    ("SHOW TABLES", show(ShowKind.TABLES)),
    ("SHOW TABLES FROM c.d LIKE 'o*'", show(ShowKind.TABLES, "c.d", like="o*")),
    ("SHOW TABLES IN d 'o*'", show(ShowKind.TABLES, "d", like="o*")),
    ("SHOW TABLES ILIKE 'O_%'", show(ShowKind.TABLES, like="O_%", like_ignores_case=True)),
    ("SHOW TEMPORARY TABLES", show(ShowKind.TABLES, temporary=True)),
    ("SHOW TEMPORARY VIEWS IN d", show(ShowKind.VIEWS, "d", temporary=True)),
    ("SHOW VIEWS", show(ShowKind.VIEWS)),
    ("SHOW FUNCTIONS LIKE 'f'", show(ShowKind.FUNCTIONS, like="f")),
    ("SHOW USER FUNCTIONS", show(ShowKind.FUNCTIONS, user=True)),
    ("SHOW ALL FUNCTIONS", show(ShowKind.FUNCTIONS, text=Fragment("SHOW ALL FUNCTIONS"))),
    ("SHOW COLUMNS FROM t", show(ShowKind.COLUMNS, "t")),
    ("SHOW COLUMNS IN t FROM c.d LIKE 'x'", show(ShowKind.COLUMNS, "c.d.t", like="x")),
    ("SHOW PARTITIONS t", show(ShowKind.PARTITIONS, "t")),
    ("SHOW PARTITIONS c.d.t PARTITION (a = 1, b = NULL)", show(ShowKind.PARTITIONS, "c.d.t", partition={"a": "1", "b": None})),
    ("SHOW PARTITIONS t WHERE a > 1", show(ShowKind.PARTITIONS, "t", where=Fragment("a > 1"))),
    ("SHOW SNAPSHOTS t", show(ShowKind.SNAPSHOTS, "t")),
    ("SHOW SNAPSHOTS FROM d.t", show(ShowKind.SNAPSHOTS, "d.t")),
    ("SHOW TAGS IN t", show(ShowKind.TAGS, "t")),
    ("SHOW BRANCHES t$branch_x", show(ShowKind.BRANCHES, "t$branch_x")),
    ("SHOW OPTIONS", show(ShowKind.OPTIONS)),
    ("SHOW OPTIONS FROM t", show(ShowKind.OPTIONS, "t")),
    ("SHOW TBLPROPERTIES t", show(ShowKind.OPTIONS, "t")),
    ("SHOW TBLPROPERTIES t ('a.b')", show(ShowKind.OPTIONS, "t", key="a.b")),
    ("SHOW TBLPROPERTIES t (a.b-c)", show(ShowKind.OPTIONS, "t", key="a.b-c")),
    ("SHOW PROCEDURES IN sys LIKE '%x'", show(ShowKind.PROCEDURES, "sys", like="%x")),
    ("SHOW JOBS", show(ShowKind.JOBS)),
    ("SHOW CREATE TABLE c.d.t", show(ShowKind.CREATE_TABLE, "c.d.t")),
    ("SHOW CREATE VIEW v", show(ShowKind.CREATE_VIEW, "v")),
    ("SHOW CREATE CATALOG c", show(ShowKind.CREATE_CATALOG, "c")),
    ("SHOW CURRENT CATALOG", show(ShowKind.CURRENT_CATALOG)),
    ("SHOW CURRENT DATABASE", show(ShowKind.CURRENT_DATABASE)),
    ("SHOW CURRENT SCHEMA", show(ShowKind.CURRENT_DATABASE)),
    ("DESCRIBE t", Describe(path=path("t"))),
    ("DESC TABLE d.t", Describe(path=path("d.t"))),
    ("DESCRIBE EXTENDED t", Describe(path=path("t"), extended=True)),
    ("DESCRIBE TABLE EXTENDED c.d.t", Describe(path=path("c.d.t"), extended=True)),
    (
        "DESCRIBE FORMATTED t PARTITION (a = DATE '2024-01-31')",
        Describe(path=path("t"), extended=True, partition={"a": "2024-01-31"}),
    ),
    ("DESCRIBE DATABASE EXTENDED d", Describe(path=path("d"), what="database", extended=True)),
    ("DESCRIBE SCHEMA c.d", Describe(path=path("c.d"), what="database")),
    ("DESCRIBE CATALOG c", Describe(path=path("c"), what="catalog")),
    ("DESCRIBE table", Describe(path=path("table"))),
    ("DESCRIBE extended", Describe(path=path("extended"))),
    ("DESCRIBE HISTORY c.d.t", DescribeHistory(path=path("c.d.t"))),
    ("DESC HISTORY t LIMIT 3", DescribeHistory(path=path("t"), limit=3)),
    ("DESCRIBE HISTORY TABLE t", DescribeHistory(path=path("t"))),
    ("DESCRIBE history", Describe(path=path("history"))),
    ("DESCRIBE history PARTITION (a = 1)", Describe(path=path("history"), partition={"a": "1"})),
    ("DESCRIBE FUNCTION upper", DescribeFunction(path=path("upper"), text=Fragment("DESCRIBE FUNCTION upper"))),
    ("DESC FUNCTION EXTENDED d.f", DescribeFunction(path=path("d.f"), text=Fragment("DESC FUNCTION EXTENDED d.f"), extended=True)),
    ("USE d", UseNames(what="any", path=path("d"))),
    ("USE c.d", UseNames(what="any", path=path("c.d"))),
    ("USE CATALOG c", UseNames(what="catalog", path=path("c"))),
    ("USE DATABASE c.d", UseNames(what="database", path=path("c.d"))),
    ("USE SCHEMA d", UseNames(what="database", path=path("d"))),
    ("USE catalog", UseNames(what="any", path=path("catalog"))),
    ("SET", show(ShowKind.OPTIONS)),
    ("SET -v", show(ShowKind.OPTIONS)),
    ("SET 'table-storage.bucket' = '4'", SetSessionOption(key="table-storage.bucket", value="4")),
    ("SET table-storage.bucket = 4", SetSessionOption(key="table-storage.bucket", value="4")),
    ("SET spark.sql.x=a b, 'c' ", SetSessionOption(key="spark.sql.x", value="a b, 'c'")),
    ('SET k = "it\\\'s"', SetSessionOption(key="k", value="it's")),
    ("SET k = ''", SetSessionOption(key="k", value="")),
    ("SET a.*.b:c=1", SetSessionOption(key="a.*.b:c", value="1")),
    ("SET a.b", SetSessionOption(key="a.b", value=None)),
    ("SET 'a.b'", SetSessionOption(key="a.b", value=None)),
    ("SET TIME ZONE 'UTC'", EngineStatement(text=Fragment("SET TIME ZONE 'UTC'"))),
    ("SET VARIABLE x = 1", EngineStatement(text=Fragment("SET VARIABLE x = 1"))),
    ("SET time = 1", SetSessionOption(key="time", value="1")),
    ("RESET", ResetSessionOption()),
    ("RESET 'a.b'", ResetSessionOption(key="a.b")),
    ("RESET table-storage.log.system", ResetSessionOption(key="table-storage.log.system")),
    ("CALL p()", CallProcedure(procedure=path("p"))),
    (
        "CALL sys.rollback_to('d.t', 3)",
        CallProcedure(procedure=path("sys.rollback_to"), arguments=(Argument(value="d.t"), Argument(value=3))),
    ),
    (
        "CALL c.sys.p(1, b => -2.5e1, `c` => TRUE, d => null, e = TIMESTAMP '2024-01-01 00:00:00')",
        CallProcedure(
            procedure=path("c.sys.p"),
            arguments=(
                Argument(value=1),
                Argument(name="b", value=-25.0),
                Argument(name="c", value=True),
                Argument(name="d", value=None),
                Argument(name="e", value="2024-01-01 00:00:00"),
            ),
        ),
    ),
    (
        "CALL p(ARRAY('a', 'b'), array[], MAP('k', 1, 'l', ARRAY(2)), map())",
        CallProcedure(
            procedure=path("p"),
            arguments=tuple(Argument(value=value) for value in [("a", "b"), (), (("k", 1), ("l", (2,))), ()]),
        ),
    ),
    ("EXPLAIN SELECT 1", Explain(statement=Query(query=Fragment("SELECT 1")))),
    ("EXPLAIN PLAN FOR SELECT 1", Explain(statement=Query(query=Fragment("SELECT 1")))),
    ("EXPLAIN FORMATTED INSERT INTO t SELECT 1", Explain(statement=INSERT, mode="formatted")),
    ("EXPLAIN STATEMENT SET BEGIN INSERT INTO t SELECT 1; END", Explain(statement=ExecuteStatementSet(inserts=(INSERT,)))),
    ("CACHE TABLE x", EngineStatement(text=Fragment("CACHE TABLE x"))),
    ("REFRESH TABLE d.x;", RefreshTable(path=path("d.x"), text=Fragment("REFRESH TABLE d.x"))),
    ("REFRESH FUNCTION x", EngineStatement(text=Fragment("REFRESH FUNCTION x"))),
    ("REFRESH 'folder'", EngineStatement(text=Fragment("REFRESH 'folder'"))),
    ("ANALYZE TABLES IN d COMPUTE STATISTICS;", EngineStatement(text=Fragment("ANALYZE TABLES IN d COMPUTE STATISTICS"))),
    ("ANALYZE TABLE x COMPUTE STATISTICS;", AnalyzeTable(path=path("x"))),
    ("ANALYZE TABLE d.x COMPUTE STATISTICS FOR ALL COLUMNS", AnalyzeTable(path=path("d.x"), columns=None)),
    ("ANALYZE TABLE x COMPUTE STATISTICS FOR COLUMNS a, `b c`, a", AnalyzeTable(path=path("x"), columns=("a", "b c"))),
    ("ANALYZE TABLE x PARTITION (a = 1) COMPUTE STATISTICS", AnalyzeTable(path=path("x"), refused="PARTITION")),
    ("ANALYZE TABLE x COMPUTE STATISTICS NOSCAN", AnalyzeTable(path=path("x"), refused="NOSCAN")),
]


@pytest.mark.parametrize(("text", "value"), GOLDEN, ids=[text for text, _ in GOLDEN])
def test_text_becomes_its_value(text: str, value: Statement) -> None:
    assert parse_statement(text) == value
