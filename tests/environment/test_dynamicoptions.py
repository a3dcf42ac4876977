"""``FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */``: what one reference reads, and what is refused with its place."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.engine import ConnectorRelation
from tablestore.environment.rows.relations import Relations

Rows = Callable[[Any], list[tuple[Any, ...]]]
TIMES = ("'log.scan.timestamp-mills' = '1'", "'log.scan.timestamp-millis' = '1'")
FIRST = "/*+ OPTIONS('scan.snapshot-id' = '1') */"


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    """A table of one row in its first snapshot, and of two now."""
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING, w AS id + 1, PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO t VALUES (1, 'a')")
    duck.catalog().table("default.t").create_tag("first")  # type: ignore[union-attr]
    duck.execute_sql("INSERT INTO t VALUES (2, 'b')")
    return duck


def millis_of_first(env: ts.TableEnvironment) -> int:
    return env.catalog().table("default.t").snapshots()[0].time_millis  # type: ignore[union-attr]


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT count(*) FROM t {FIRST}",
        f"SELECT count(*) FROM t {FIRST} AS a WHERE a.id > 0",
        f"SELECT count(*) FROM t {FIRST} a WHERE a.w > 0",
        f"SELECT count(*) FROM t {FIRST} WHERE t.id > 0 AND default.t.id > 0",
        f"SELECT count(*) FROM default.`t`{FIRST}",
        f"SELECT count(*) FROM t {FIRST} TABLESAMPLE (100 PERCENT)",
        f"SELECT count(*) FROM (SELECT * FROM t {FIRST})",
        f"SELECT (SELECT count(*) FROM t {FIRST})",
        f"WITH c AS (SELECT * FROM t {FIRST}) SELECT count(*) FROM c",
        f"SELECT count(*) FROM t JOIN t {FIRST} AS b ON t.id = b.id",
        f"SELECT count(*) FROM t AS a, t {FIRST} AS b WHERE a.id = b.id",
        f"SELECT count(*) FROM t WHERE id IN (SELECT id FROM t {FIRST})",
        f"SELECT count(*) FROM t$files {FIRST}",
        f"SELECT count(*) FROM IDENTIFIER('t') {FIRST}",
        """SELECT count(*) FROM t /*+ options ( "scan.tag-name" = 'first' ) */""",
        "SELECT count(*) FROM t /*+ OPTIONS('scan.timestamp-millis' = '{millis}') */",
        "SELECT count(*) FROM t /*+ OPTIONS('scan.timestamp' = '{time}') */",
        "SELECT count(*) FROM t /*+ OPTIONS('log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{millis}') */",
        "SELECT count(*) FROM t /*+ OPTIONS('log.scan.timestamp-millis' = '{millis}', 'log.scan' = 'from-timestamp') */",
        "SELECT count(*) FROM t$files /*+ OPTIONS('log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{millis}') */",
        "SELECT count(*) FROM t VERSION AS OF 1 /*+ OPTIONS('log.scan' = 'full', 'consumer-id' = 'c') */",
        "SELECT count(*) FROM viewed",
    ],
)
def test_a_reference_with_options_reads_the_snapshot_that_they_name(env: ts.TableEnvironment, rows_of: Rows, query: str) -> None:
    env.execute_sql(f"CREATE TEMPORARY VIEW viewed AS SELECT * FROM t {FIRST}")
    millis = millis_of_first(env)
    query = query.format(millis=millis, time=datetime.fromtimestamp(millis / 1000, UTC).isoformat())
    assert rows_of(env.execute_sql(query)) == [(1,)]
    assert rows_of(env.sql_query(query)) == [(1,)]


def test_a_full_scan_is_what_a_query_reads_anyway(env: ts.TableEnvironment, rows_of: Rows) -> None:
    assert rows_of(env.execute_sql("SELECT count(*) FROM t /*+ OPTIONS('log.scan' = 'full') */")) == [(2,)]
    both = "SELECT count(*) FROM t /*+ OPTIONS('log.scan' = 'FULL', 'scan.snapshot-id' = '1') */"
    assert rows_of(env.execute_sql(both)) == [(1,)]


def test_a_query_reads_the_newest_snapshot_for_readers_of_changes_and_says_where_these_are_followed(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    table = env.catalog().table("default.t")
    env.execute_sql("CREATE TEMPORARY TABLE scratch (id BIGINT)")
    env.execute_sql("INSERT INTO scratch SELECT id FROM t")
    env.execute_sql("CREATE TEMPORARY VIEW viewed AS SELECT * FROM t /*+ OPTIONS('log.scan' = 'LATEST') */")
    env.execute_sql("CREATE TEMPORARY VIEW twice AS SELECT * FROM viewed")
    for query, heeded in (
        ("SELECT id FROM t /*+ OPTIONS('log.scan' = 'latest') */", "log.scan = latest"),
        ("SELECT id FROM t /*+ OPTIONS('consumer-id' = 'billing') */", "consumer-id = billing"),
        (
            "SELECT id FROM scratch /*+ OPTIONS('consumer-id' = 'b', 'log.scan' = 'latest') */",
            "consumer-id = b and log.scan = latest",
        ),
        ("WITH c AS (SELECT * FROM t /*+ OPTIONS('log.scan' = 'latest') */) SELECT id FROM c", "log.scan = latest"),
        ("SELECT id FROM twice", "log.scan = LATEST"),
    ):
        result = env.execute_sql(query)
        assert sorted(rows_of(result)) == [(1,), (2,)], query
        (notice,) = result.notices
        assert str(notice.kind) == "one-snapshot"
        assert f"so {heeded} changed nothing; table.consume()" in notice.message
    for statement in (
        "INSERT INTO t SELECT id, v FROM t /*+ OPTIONS('consumer-id' = 'billing') */",
        "CREATE TABLE made AS SELECT id FROM t /*+ OPTIONS('consumer-id' = 'billing') */",
        "DELETE FROM t WHERE id NOT IN (SELECT id FROM t /*+ OPTIONS('consumer-id' = 'billing') */)",
    ):
        assert [str(notice.kind) for notice in env.execute_sql(statement).notices] == ["one-snapshot"], statement
    assert table.consumers() == ()  # type: ignore[union-attr]


def test_a_query_takes_a_time_of_the_table_s_own_as_a_reader_of_changes_does(env: ts.TableEnvironment, rows_of: Rows) -> None:
    millis = millis_of_first(env)
    env.execute_sql(f"ALTER TABLE t SET ('log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{millis}')")
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(2,)]
    assert rows_of(env.execute_sql("SELECT count(*) FROM t /*+ OPTIONS('log.scan' = 'from-timestamp') */")) == [(1,)]


def test_options_are_those_of_one_reference_and_one_statement(env: ts.TableEnvironment, rows_of: Rows) -> None:
    both = f"SELECT a.id, b.id FROM t AS a LEFT JOIN t {FIRST} AS b ON a.id = b.id ORDER BY a.id"
    assert rows_of(env.execute_sql(both)) == [(1, 1), (2, None)]
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(2,)]
    assert rows_of(env.execute_sql(f"TABLE t {FIRST}")) == [(1, "a", 2)]
    assert "snapshot 1," in env.execute_sql(f"EXPLAIN SELECT id FROM t {FIRST}").text  # type: ignore[operator]


def test_statements_that_write_read_with_options(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(f"CREATE TABLE made AS SELECT id, v FROM t {FIRST}")
    env.execute_sql(f"INSERT INTO made SELECT id + 10, v FROM t {FIRST}")
    assert rows_of(env.execute_sql("SELECT id FROM made ORDER BY id")) == [(1,), (11,)]
    env.execute_sql(f"MERGE INTO t USING t {FIRST} AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'")
    env.execute_sql(f"UPDATE t SET v = 'other' WHERE id NOT IN (SELECT id FROM t {FIRST})")
    assert rows_of(env.execute_sql("SELECT id, v FROM t ORDER BY id")) == [(1, "merged"), (2, "other")]
    env.execute_sql(f"DELETE FROM t WHERE EXISTS (SELECT 1 FROM t {FIRST} AS s WHERE s.id = t.id)")
    assert rows_of(env.execute_sql("SELECT id FROM t")) == [(2,)]


REFUSED = [
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-i' = '1') */", 29, "did you mean 'scan.snapshot-id'"),
    ("SELECT * FROM t /*+ OPTIONS('bucket' = '4') */", 29, r"ALTER TABLE t SET \('bucket' = '4'\)"),
    ("SELECT * FROM t /*+ OPTIONS('scan.mode' = 'latest') */", 29, "readers that follow the changes.*table_changes"),
    ("SELECT * FROM t /*+ OPTIONS('log.scan' = 'earliest') */", 29, "expected one of full, latest, from-timestamp"),
    ("SELECT * FROM t /*+ OPTIONS('log.scan' = 'from-timestamp') */", 29, "Must specify a timestamp"),
    ("SELECT * FROM t /*+ OPTIONS('log.scan.timestamp-mills' = '1') */", 29, "goes with log.scan = from-timestamp"),
    ("SELECT * FROM t /*+ OPTIONS('log.scan' = 'latest', 'log.scan.timestamp-millis' = '1') */", 29, "found 'latest'"),
    (f"SELECT * FROM t /*+ OPTIONS({', '.join(TIMES)}) */", 29, "timestamp-mills and log.scan.timestamp-millis are one option"),
    (
        f"SELECT * FROM t /*+ OPTIONS('log.scan' = 'from-timestamp', {TIMES[0]}, 'scan.snapshot-id' = '1') */",
        29,
        "give one of them",
    ),
    ("SELECT * FROM t /*+ OPTIONS('log.scan' = 'latest', 'scan.tag-name' = 'first') */", 29, "give one of them"),
    ("SELECT * FROM t VERSION AS OF 1 /*+ OPTIONS('log.scan' = 'latest') */", 45, "log.scan and VERSION AS OF"),
    ("SELECT * FROM t /*+ OPTIONS('consumer-id' = 'a/b') */", 29, "'a/b' is not a valid consumer name"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '1', 'scan.tag-name' = 'first') */", 29, "give one of them"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */ /*+ OPTIONS('scan.snapshot-id' = '1') */", 70, "given twice"),
    (f"SELECT * FROM t {FIRST} VERSION AS OF 1", 29, "scan.snapshot-id and VERSION AS OF"),
    (f"SELECT * FROM t TIMESTAMP AS OF '2999-01-01' {FIRST}", 58, "scan.snapshot-id and TIMESTAMP AS OF"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = 'x') */", 29, "expected a number"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = 1) */", 50, "between quotes"),
    ("SELECT * FROM t /*+ OPTIONS(scan.snapshot-id = '1') */", 29, "between quotes"),
    ("SELECT * FROM t /*+ OPTIONS() */", 29, "the key of an option"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '1'), BROADCAST(t) */", 56, "expected OPTIONS"),
    ("SELECT * FROM t /*+ OPTIONS('scan.timestamp' = 'noon') */", 29, "expected scan.timestamp such as"),
    ("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '9') */", 15, "no snapshot 9"),
    (f"SELECT * FROM t AS a {FIRST}", 22, "directly behind its name"),
    (f"SELECT {FIRST} * FROM t", 8, "directly behind its name"),
    (f"SELECT * FROM (SELECT * FROM t) {FIRST}", 33, "directly behind its name"),
    (f"WITH c AS (SELECT 1) SELECT * FROM c {FIRST}", 38, "a name of WITH"),
    (f"SELECT * FROM v {FIRST}", 15, "a view has those that stand in its query"),
    (f"SELECT * FROM table_changes('t', 0) {FIRST}", 29, "table_changes takes no OPTIONS"),
    (f"INSERT INTO t {FIRST} VALUES (1, 'x')", 15, "OPTIONS behind the name of a table that is read"),
    (f"DELETE FROM t {FIRST} WHERE id = 1", 15, "OPTIONS behind the name of a table that is read"),
    (f"UPDATE t {FIRST} SET v = 'x'", 10, "OPTIONS behind the name of a table that is read"),
    (f"MERGE INTO t {FIRST} USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE", 14, "OPTIONS behind the name"),
    (f"CREATE MATERIALIZED TABLE m AS SELECT * FROM t {FIRST}", 46, "VERSION AS OF"),
]


@pytest.mark.deep_after(8)
@pytest.mark.parametrize(("statement", "column", "message"), REFUSED)
def test_other_options_and_places_are_refused_by_name_with_the_place(
    env: ts.TableEnvironment, statement: str, column: int, message: str
) -> None:
    env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS id")
    before = env.catalog().table("default.t").scan().to_arrow()
    with pytest.raises(ts.TablestoreError, match=rf"(?s){message}.*line 1, column {column}:"):
        env.execute_sql(statement)
    with pytest.raises(ts.TablestoreError, match="directly behind its name"):
        env.execute_sql(f"DELETE FROM t WHERE id = 1 {FIRST}")
    assert env.catalog().table("default.t").scan().to_arrow() == before
    assert env.list_tables() == ("t",)


def test_a_table_with_a_connector_takes_options_of_its_connector_for_one_statement(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE fs (a STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '/p', 'sep' = ',')")
    relations = Relations(session=env._session)
    (first, second) = relations.bind("SELECT * FROM fs /*+ OPTIONS('sep' = ';', 'header' = 'true') */, fs AS b").relations
    assert isinstance(first, ConnectorRelation) and isinstance(second, ConnectorRelation)
    assert (first.options["sep"], first.options["header"], second.options["sep"]) == (";", "true", ",")


def test_hints_of_spark_are_left_out_and_the_result_says_so(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TEMPORARY VIEW hinted AS SELECT /*+ BROADCAST(a) */ id FROM t AS a")
    env.execute_sql("CREATE TEMPORARY VIEW outer_view AS SELECT * FROM hinted")
    statements = (
        "SELECT id FROM hinted JOIN hinted AS again USING (id)",
        "SELECT id FROM t WHERE id IN (SELECT id FROM outer_view)",
        "SELECT /*+ BROADCAST(a) */ a.id FROM t AS a JOIN t AS b ON a.id = b.id",
        "INSERT INTO t SELECT /*+ BROADCAST(a) */ id, v FROM t AS a",
        "CREATE TABLE u AS SELECT /*+ BROADCAST(a) */ id FROM t AS a",
        f"EXPLAIN SELECT /*+ BROADCAST(a) */ id FROM t {FIRST} AS a",
        "DELETE FROM t WHERE id IN (SELECT /*+ BROADCAST(a) */ id FROM t AS a)",
    )
    for statement in statements:
        (notice,) = env.execute_sql(statement).notices
        assert str(notice.kind) == "hints-left-out"
        assert notice.message == "the engine duckdb takes no hints of Spark; left out: /*+ BROADCAST(a) */"
    assert env.execute_sql(f"SELECT id FROM t {FIRST}").notices == ()
