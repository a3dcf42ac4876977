"""Statements about materialized tables: their values, and the place of what is wrong with them."""

import pytest

import tablestore as ts
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements import materialized as m
from tablestore.sql.statements.alter import ResetOptions, SetOptions
from tablestore.sql.statements.anystatement import Explain
from tablestore.sql.statements.session import Show, ShowKind

TABLE = Path(("c", "d", "t"))
FULL = """
CREATE OR ALTER MATERIALIZED TABLE c.d.t (CONSTRAINT pk PRIMARY KEY (id, day) NOT ENFORCED)
COMMENT 'all of it'
DISTRIBUTED BY HASH (id) INTO 4 BUCKETS
PARTITIONED BY (day)
WITH ('write-only' = 'true', 'partition.fields.day.date-formatter' = 'yyyy-MM-dd')
FRESHNESS = INTERVAL '5' MINUTES
REFRESH_MODE = FULL
AS SELECT id, day FROM orders WHERE v > ';'
"""


def test_all_clauses_of_create_or_alter_are_read() -> None:
    assert parse_statement(FULL) == m.CreateMaterializedTable(
        path=TABLE,
        query=Fragment("SELECT id, day FROM orders WHERE v > ';'"),
        or_alter=True,
        primary_key=("id", "day"),
        constraint="pk",
        comment="all of it",
        partitioned_by=("day",),
        options={
            "bucket": "4",
            "bucket-key": "id",
            "write-only": "true",
            "partition.fields.day.date-formatter": "yyyy-MM-dd",
        },
        freshness=m.Interval(interval="5", unit="MINUTES"),
        refresh_mode="FULL",
    )


def test_nothing_but_a_name_and_a_query_has_to_be_said() -> None:
    plain = m.CreateMaterializedTable(path=Path(("t",)), query=Fragment("VALUES (1)"))
    assert parse_statement("create materialized table t as VALUES (1)") == plain
    assert parse_statement("CREATE MATERIALIZED TABLE t () AS VALUES (1);") == plain


@pytest.mark.parametrize(
    ("clause", "options"),
    [
        ("DISTRIBUTED INTO 3 BUCKETS", {"bucket": "3"}),
        ("DISTRIBUTED BY (a) INTO 3 BUCKETS", {"bucket": "3", "bucket-key": "a"}),
        ("DISTRIBUTED BY HASH (a, b)", {"bucket-key": "a,b"}),
        (
            "DISTRIBUTED BY RANGE (a, b) INTO 3 BUCKETS",
            {
                "bucket": "-1",
                "clustering.columns": "a,b",
                "clustering.strategy": "order",
                "clustering.incremental": "true",
                "tablestore.clustering.ranges": "3",
            },
        ),
    ],
)
def test_a_distribution_becomes_options(clause: str, options: dict[str, str]) -> None:
    found = parse_statement(f"CREATE MATERIALIZED TABLE t {clause} AS SELECT 1 AS a, 2 AS b")
    assert isinstance(found, m.CreateMaterializedTable) and found.options == options


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("AS SELECT 2", m.SetQuery(query=Fragment("SELECT 2"))),
        ("SET ('a' = '1', 'b' = '2', 'a' = '3')", SetOptions(options={"a": "3", "b": "2"})),
        ("RESET ('a', 'b')", ResetOptions(keys=("a", "b"))),
        ("SET FRESHNESS = INTERVAL '1' DAY", m.SetFreshness(freshness=m.Interval(interval="1", unit="DAY"))),
        ("SET REFRESH_MODE = CONTINUOUS", m.SetRefreshMode(refresh_mode="CONTINUOUS")),
        ("SUSPEND", m.Suspend()),
        ("RESUME", m.Resume()),
        ("RESUME WITH ('x' = '1')", m.Resume(options={"x": "1"})),
        ("REFRESH", m.Refresh()),
        ("REFRESH PARTITION (day = '2026-01-01')", m.Refresh(partition={"day": "2026-01-01"})),
        ("REFRESH VERIFY", m.Refresh(verify=True)),
        ("REFRESH PARTITION (day = 'x') VERIFY", m.Refresh(partition={"day": "x"}, verify=True)),
        ("STAGE AS SELECT 1", m.Stage(declared=m.CreateMaterializedTable(path=TABLE, query=Fragment("SELECT 1")))),
        (
            "STAGE () COMMENT 'c' DISTRIBUTED INTO 2 BUCKETS AS SELECT 1",
            m.Stage(
                declared=m.CreateMaterializedTable(path=TABLE, query=Fragment("SELECT 1"), comment="c", options={"bucket": "2"}),
                given=frozenset({"(", "COMMENT", "DISTRIBUTED"}),
            ),
        ),
        ("COMPARE", m.Compare()),
        ("PROMOTE", m.Promote()),
        ("ROLLBACK", m.Rollback()),
        ("DISCARD", m.Discard()),
    ],
)
def test_actions_of_alter(text: str, action: m.MaterializedAction) -> None:
    assert parse_statement(f"ALTER MATERIALIZED TABLE c.d.t {text}") == m.AlterMaterializedTable(path=TABLE, action=action)


def test_drop_show_and_explain() -> None:
    assert parse_statement("DROP MATERIALIZED TABLE IF EXISTS t") == m.DropMaterializedTable(path=Path(("t",)), if_exists=True)
    assert parse_statement("DROP MATERIALIZED TABLE t") == m.DropMaterializedTable(path=Path(("t",)))
    shown = Show(kind=ShowKind.MATERIALIZED_TABLES, path=Path(("d",)), like="a%")
    assert parse_statement("SHOW MATERIALIZED TABLES IN d LIKE 'a%'") == shown
    created = Show(kind=ShowKind.CREATE_MATERIALIZED_TABLE, path=Path(("t",)))
    assert parse_statement("SHOW CREATE MATERIALIZED TABLE t") == created
    explained = parse_statement(f"EXPLAIN {FULL}")
    assert isinstance(explained, Explain) and isinstance(explained.statement, m.CreateMaterializedTable)


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("CREATE MATERIALIZED TABLE t", "expected AS, COMMENT, DISTRIBUTED, PARTITIONED, WITH, FRESHNESS or REFRESH_MODE", ""),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = 5 AS SELECT 1", "expected INTERVAL", "5"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL SECOND AS SELECT 1", "expected a number of units", "SECOND"),
        ("CREATE MATERIALIZED TABLE t REFRESH_MODE = AUTO AS SELECT 1", "expected CONTINUOUS or FULL", "AUTO"),
        ("CREATE MATERIALIZED TABLE t COMMENT 'a' COMMENT 'b' AS SELECT 1", "the clause COMMENT stands here twice", "COMMENT"),
        ("CREATE MATERIALIZED TABLE t AS DELETE FROM x", "expected a query", "DELETE"),
        ("CREATE OR ALTER TABLE t AS SELECT 1", "expected MATERIALIZED", "TABLE"),
        ("ALTER MATERIALIZED TABLE t STOP", "expected AS, SET, RESET, SUSPEND, RESUME, REFRESH, STAGE", "STOP"),
        ("ALTER MATERIALIZED TABLE t STAGE COMMENT 'a'", "expected AS, COMMENT, DISTRIBUTED, PARTITIONED", ""),
        ("ALTER MATERIALIZED TABLE t PROMOTE NOW", "expected the end of the statement", "NOW"),
        ("ALTER MATERIALIZED TABLE t SET ()", "expected an option", ")"),
        ("ALTER MATERIALIZED TABLE t RESET ()", "expected an option", ")"),
        ("ALTER MATERIALIZED TABLE t SUSPEND NOW", "expected the end of the statement", "NOW"),
        ("DROP MATERIALIZED VIEW t", "expected TABLE", "VIEW"),
        ("SHOW MATERIALIZED VIEWS", "expected TABLES", "VIEWS"),
    ],
)
def test_what_is_wrong_is_marked(text: str, message: str, marked: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        parse_statement(text)
    assert message in str(error.value)
    line, mark = str(error.value).splitlines()[-2:]
    assert line[mark.index("^") : mark.rindex("^") + 1] == marked
