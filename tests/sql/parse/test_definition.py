"""What makes and removes tables, databases and catalogs: text -> value."""

import pytest

from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.anystatement import Statement
from tablestore.sql.statements.definition import (
    ComputedColumn,
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    DropCatalog,
    DropDatabase,
    LikeClause,
    MetadataColumn,
    PhysicalColumn,
    Watermark,
)
from tablestore.sql.statements.session import EngineStatement
from tablestore.types.datatypes import AtomicType, DataType, TypeRoot
from tablestore.types.typestring import parse_type


def path(text: str) -> Path:
    return Path(tuple(text.split(".")))


def column(name: str, type: str | DataType, **more: str | None) -> PhysicalColumn:
    return PhysicalColumn(name=name, type=parse_type(type) if isinstance(type, str) else type, **more)  # type: ignore[arg-type]


def table(*columns: PhysicalColumn | ComputedColumn | MetadataColumn, of: str = "t", **more: object) -> CreateTable:
    return CreateTable(path=path(of), columns=columns or None, **more)  # type: ignore[arg-type]


QUERY = Fragment("SELECT 1")
COUNT = "tablestore.clustering.ranges"
RANGES = {"bucket": "-1", "clustering.columns": "a", "clustering.strategy": "order", "clustering.incremental": "true"}
A = column("a", "INT")
B = column("b", "STRING")
LTZ = AtomicType(root=TypeRoot.TIMESTAMP_LTZ, precision=6)

COLUMNS: list[tuple[str, Statement]] = [
    ("CREATE TABLE t (a INT)", table(A)),
    ("create table t(a int, b string);", table(A, B)),
    ("CREATE TABLE IF NOT EXISTS c.d.t (a INT)", table(A, of="c.d.t", if_not_exists=True)),
    ("CREATE TEMPORARY TABLE t (a INT)", table(A, temporary=True)),
    ("CREATE OR REPLACE TABLE t (a INT)", table(A, replace=True)),
    ("REPLACE TABLE t (a INT)", table(A, replace=True, must_exist=True)),
    ("CREATE TABLE `my``table` (`a.b` INT)", CreateTable(path=Path(("my`table",)), columns=(column("a.b", "INT"),))),
    ("CREATE TABLE t (a INT NOT NULL, b STRING NULL)", table(column("a", "INT NOT NULL"), B)),
    ("CREATE TABLE t (a INT COMMENT 'x' NOT NULL)", table(column("a", "INT NOT NULL", comment="x"))),
    ("CREATE TABLE t (a INT DEFAULT 5)", table(column("a", "INT", default="5"))),
    ("CREATE TABLE t (a INT DEFAULT -5 COMMENT 'x')", table(column("a", "INT", default="-5", comment="x"))),
    ("CREATE TABLE t (b STRING DEFAULT 'it''s')", table(column("b", "STRING", default="it's"))),
    ("CREATE TABLE t (b STRING DEFAULT '\\'x\\'')", table(column("b", "STRING", default="''x''"))),
    ("CREATE TABLE t (b STRING DEFAULT '')", table(column("b", "STRING", default=""))),
    ("CREATE TABLE t (a INT DEFAULT NULL)", table(A)),
    ("CREATE TABLE t (b DATE DEFAULT DATE '2024-01-31')", table(column("b", "DATE", default="2024-01-31"))),
    ("CREATE TABLE t (b BOOLEAN DEFAULT true)", table(column("b", "BOOLEAN", default="true"))),
    ("CREATE TABLE t (b DOUBLE DEFAULT 1.5e3D)", table(column("b", "DOUBLE", default="1.5e3"))),
    ("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED)", table(A, primary_key=("a",))),
    ("CREATE TABLE t (a INT PRIMARY KEY NOT NULL)", table(column("a", "INT NOT NULL"), primary_key=("a",))),
    ("CREATE TABLE t (a INT, b STRING, PRIMARY KEY (a, b) NOT ENFORCED)", table(A, B, primary_key=("a", "b"))),
    ("CREATE TABLE t (a INT, CONSTRAINT k PRIMARY KEY (a))", table(A, primary_key=("a",), constraint="k")),
    (
        "CREATE TABLE t (a INT, c AS a + f(a, 'x,y') COMMENT 'z', PRIMARY KEY (a))",
        table(A, ComputedColumn(name="c", expression=Fragment("a + f(a, 'x,y')"), comment="z"), primary_key=("a",)),
    ),
    (
        "CREATE TABLE t (a INT, c AS CASE WHEN a > 1 THEN ARRAY[1, 2][0] END)",
        table(A, ComputedColumn(name="c", expression=Fragment("CASE WHEN a > 1 THEN ARRAY[1, 2][0] END"))),
    ),
    (
        "CREATE TABLE t (a INT METADATA, m BIGINT METADATA FROM 'offset' VIRTUAL COMMENT 'x')",
        table(
            MetadataColumn(name="a", type=parse_type("INT")),
            MetadataColumn(name="m", type=parse_type("BIGINT"), key="offset", virtual=True, comment="x"),
        ),
    ),
    (
        "CREATE TABLE t (a INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
        table(A, watermark=Watermark(column="ts", expression=Fragment("ts - INTERVAL '5' SECOND"))),
    ),
    (
        "CREATE TABLE t (watermark INT, primary INT, constraint INT, comment STRING, date DATE, `select` INT)",
        table(
            *(column(name, "INT") for name in ("watermark", "primary", "constraint")),
            column("comment", "STRING"),
            column("date", "DATE"),
            column("select", "INT"),
        ),
    ),
    ("CREATE TABLE t -- (b INT)\n(/* c INT, /* nested */ */ a INT)", table(A)),
]

CLAUSES: list[tuple[str, Statement]] = [
    ("CREATE TABLE t (a INT) COMMENT 'x'", table(A, comment="x")),
    ("CREATE TABLE t (a INT, b STRING) PARTITIONED BY (b, `a`)", table(A, B, partitioned_by=("b", "a"))),
    ("CREATE TABLE t (a INT) WITH ('bucket' = '4')", table(A, options={"bucket": "4"})),
    ("CREATE TABLE t (a INT) WITH (bucket = 4, file.format='x')", table(A, options={"bucket": "4", "file.format": "x"})),
    ("CREATE TABLE t (a INT) WITH (change-tracking = false, 'k' 'v')", table(A, options={"change-tracking": "false", "k": "v"})),
    (
        "CREATE TABLE t (a INT) USING tablestore OPTIONS (path 'x', n -1)",
        table(A, provider="tablestore", options={"path": "x", "n": "-1"}),
    ),
    ("CREATE TABLE t (a INT) TBLPROPERTIES ('a'='b') OPTIONS ('c'='d')", table(A, options={"a": "b", "c": "d"})),
    ("CREATE TABLE t USING parquet LOCATION '/x'", table(provider="parquet", options={"path": "/x"})),
    ("CREATE TABLE t WITH ('connector' = 'kafka')", table(options={"connector": "kafka"})),
    (
        "CREATE TABLE t (a INT) WITH ('x'='y') PARTITIONED BY (a) COMMENT 'c' USING tablestore",
        table(A, options={"x": "y"}, partitioned_by=("a",), comment="c", provider="tablestore"),
    ),
    ("CREATE TABLE t (a INT) DISTRIBUTED BY (a) INTO 4 BUCKETS", table(A, options={"bucket": "4", "bucket-key": "a"})),
    ("CREATE TABLE t (a INT) DISTRIBUTED BY HASH (a) INTO 4 BUCKETS", table(A, options={"bucket": "4", "bucket-key": "a"})),
    ("CREATE TABLE t (a INT) CLUSTERED BY (a, b) INTO 2 BUCKETS", table(A, options={"bucket": "2", "bucket-key": "a,b"})),
    ("CREATE TABLE t (a INT) DISTRIBUTED BY RANGE (a) INTO 4 BUCKETS", table(A, options={**RANGES, COUNT: "4"})),
    ("CREATE TABLE t (a INT) DISTRIBUTED BY RANGE (a)", table(A, options={**RANGES, COUNT: "0"})),
    ("CREATE TABLE t (a INT) DISTRIBUTED INTO 8 BUCKETS", table(A, options={"bucket": "8"})),
    ("CREATE TABLE t LIKE d.s", table(like=LikeClause(source=path("d.s")))),
    (
        "CREATE TABLE t (a INT) WITH ('x'='y') LIKE s (INCLUDING ALL OVERWRITING OPTIONS, EXCLUDING PARTITIONS)",
        table(
            A,
            options={"x": "y"},
            like=LikeClause(source=path("s"), choices={"all": "including", "options": "overwriting", "partitions": "excluding"}),
        ),
    ),
    ("CREATE TABLE t AS SELECT 1", table(query=QUERY)),
    ("CREATE TABLE t WITH ('a'='b') AS (SELECT 1)", table(options={"a": "b"}, query=Fragment("(SELECT 1)"))),
    ("CREATE TABLE t (b, a) AS SELECT 1", table(names=("b", "a"), query=QUERY)),
    (
        "CREATE TABLE t (PRIMARY KEY (a) NOT ENFORCED) PARTITIONED BY (b) AS SELECT 1",
        table(primary_key=("a",), partitioned_by=("b",), query=QUERY),
    ),
    (
        "CREATE OR REPLACE TABLE t USING tablestore AS WITH x AS (VALUES 1) TABLE x",
        table(provider="tablestore", replace=True, query=Fragment("WITH x AS (VALUES 1) TABLE x")),
    ),
    ("CREATE TEMPORARY TABLE t AS SELECT 1", table(temporary=True, query=QUERY)),
    (
        "CREATE TABLE t (a TIMESTAMP) AS SELECT using FROM s",
        table(column("a", "TIMESTAMP(6)"), query=Fragment("SELECT using FROM s")),
    ),
    ("CREATE TABLE t (a TIMESTAMP, b BINARY) USING x", table(column("a", LTZ), column("b", "BYTES"), provider="x")),
]

OTHERS: list[tuple[str, Statement]] = [
    ("CREATE TEMPORARY VIEW v AS SELECT 1", CreateView(path=path("v"), query=QUERY, temporary=True)),
    (
        "CREATE OR REPLACE TEMP VIEW c.d.v (a, b) COMMENT 'x' AS SELECT 1",
        CreateView(path=path("c.d.v"), query=QUERY, columns=("a", "b"), comment="x", temporary=True, replace=True),
    ),
    ("CREATE VIEW IF NOT EXISTS v AS VALUES 1", CreateView(path=path("v"), query=Fragment("VALUES 1"), if_not_exists=True)),
    (
        "CREATE TEMPORARY VIEW v USING csv OPTIONS (path 'x')",
        EngineStatement(text=Fragment("CREATE TEMPORARY VIEW v USING csv OPTIONS (path 'x')")),
    ),
    ("CREATE TEMPORARY VIEW v (a INT) USING csv", EngineStatement(text=Fragment("CREATE TEMPORARY VIEW v (a INT) USING csv"))),
    ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", EngineStatement(text=Fragment("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1"))),
    (
        "CREATE TEMPORARY FUNCTION IF NOT EXISTS d.f AS 'm.C' LANGUAGE PYTHON",
        CreateFunction(path=path("d.f"), class_name="m.C", language="python", temporary=True, if_not_exists=True),
    ),
    ("CREATE TEMPORARY SYSTEM FUNCTION f AS 'C'", CreateFunction(path=path("f"), class_name="C", temporary=True, system=True)),
    (
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN x",
        CreateFunction(
            path=path("f"),
            parameters=(("x", AtomicType(root=TypeRoot.INT)),),
            returns=AtomicType(root=TypeRoot.INT),
            body=Fragment("x"),
        ),
    ),
    ("CREATE FUNCTION f AS 'C' USING JAR 'x'", EngineStatement(text=Fragment("CREATE FUNCTION f AS 'C' USING JAR 'x'"))),
    ("CREATE DATABASE d", CreateDatabase(path=path("d"))),
    (
        "CREATE SCHEMA IF NOT EXISTS c.d COMMENT 'x' WITH ('a'='b')",
        CreateDatabase(path=path("c.d"), if_not_exists=True, comment="x", options={"a": "b"}),
    ),
    (
        "CREATE NAMESPACE d LOCATION '/x' WITH DBPROPERTIES (a=1)",
        CreateDatabase(path=path("d"), options={"location": "/x", "a": "1"}),
    ),
    ("CREATE CATALOG c WITH ('type'='memory')", CreateCatalog(name="c", options={"type": "memory"})),
    ("CREATE CATALOG IF NOT EXISTS `c d` COMMENT 'x'", CreateCatalog(name="c d", if_not_exists=True, comment="x")),
    ("DROP TABLE t", Drop(what="table", path=path("t"))),
    ("DROP TABLE IF EXISTS c.d.t PURGE", Drop(what="table", path=path("c.d.t"), if_exists=True)),
    ("DROP TEMPORARY TABLE t", Drop(what="table", path=path("t"), temporary=True)),
    ("DROP TEMPORARY VIEW IF EXISTS v", Drop(what="view", path=path("v"), temporary=True, if_exists=True)),
    ("DROP VIEW v", Drop(what="view", path=path("v"))),
    ("DROP TEMPORARY SYSTEM FUNCTION f", Drop(what="function", path=path("f"), temporary=True, system=True)),
    ("DROP FUNCTION d.f", Drop(what="function", path=path("d.f"))),
    ("DROP DATABASE d", DropDatabase(path=path("d"))),
    ("DROP SCHEMA IF EXISTS c.d CASCADE", DropDatabase(path=path("c.d"), if_exists=True, cascade=True)),
    ("DROP DATABASE d RESTRICT", DropDatabase(path=path("d"))),
    ("DROP CATALOG IF EXISTS c", DropCatalog(name="c", if_exists=True)),
]
GOLDEN = COLUMNS + CLAUSES + OTHERS


@pytest.mark.parametrize(("text", "value"), GOLDEN, ids=[text for text, _ in GOLDEN])
def test_text_becomes_its_value(text: str, value: Statement) -> None:
    assert parse_statement(text) == value
