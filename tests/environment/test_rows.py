"""Queries, INSERT, DELETE, UPDATE and MERGE through an environment, run by DuckDB."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts
from tablestore.distributed.read import ReadPin, pin_read
from tablestore.distributed.spec import TableSpec
from tablestore.environment.rows import relations
from tablestore.environment.rows.literalrows import LEAST_ROWS

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE t (id BIGINT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)")
    duck.execute_sql("CREATE TABLE log (at DATE, text STRING DEFAULT 'none')")
    return duck


def test_a_query_sees_what_the_statement_before_it_wrote(env: ts.TableEnvironment, rows_of: Rows) -> None:
    result = env.execute_sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)")
    assert (result.kind, result.snapshot.id, rows_of(result)) == ("snapshot", 1, [(1, 2, 2, 0, 0)])  # type: ignore[union-attr]
    assert rows_of(env.execute_sql("SELECT id, v FROM t ORDER BY id")) == [(1, 10), (2, 20)]
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 11)")
    assert rows_of(env.execute_sql("SELECT v FROM default.t WHERE id = :id", id=1)) == [(11,)]
    assert rows_of(env.execute_sql("SELECT v FROM `tablestore`.`default`.`t` WHERE id = ? AND v = ?", 2, 20)) == [(20,)]


def test_an_alias_with_the_name_of_a_column_is_not_that_column(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    """Spark's types of averages and quotients of decimals, and what a cast cuts off, go by the column."""
    duck.execute_sql("CREATE TABLE s (e DECIMAL(10, 2), f STRING)")
    duck.execute_sql("CREATE TABLE u (e STRING, f DOUBLE)")
    duck.execute_sql("INSERT INTO s VALUES (1.25, '7'), (2.5, '8')")
    duck.execute_sql("INSERT INTO u VALUES ('x', 2.9)")
    found = duck.execute_sql("SELECT avg(e) AS e, max(f) AS f FROM s").to_arrow()
    assert found.schema.field("e").type == pa.decimal128(14, 6) and found.to_pylist() == [{"e": Decimal("1.875000"), "f": "8"}]
    query = "SELECT CAST(u.f AS INT) AS e, CAST(s.f AS INT) + CAST(s.e AS INT) AS f FROM s, u WHERE s.e > 2 ORDER BY e"
    assert rows_of(duck.execute_sql(query)) == [(2, 10)]


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("name", ["__tablestore_0", "__relation_0", "__RELATION_1", "__relation_0_"])
def test_a_value_and_a_column_that_are_called_like_a_relation_stay_what_they_are(
    duck: ts.TableEnvironment, rows_of: Rows, name: str
) -> None:
    escaped = name.replace("a", "\\u0061", 1)
    duck.execute_sql(f"CREATE TABLE k (id INT PRIMARY KEY NOT ENFORCED, `{name}` STRING)")
    duck.execute_sql(f"CREATE TABLE p (id INT, `{name}` STRING) PARTITIONED BY (`{name}`)")
    duck.execute_sql("INSERT INTO k VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    duck.execute_sql(f"UPDATE k SET `{name}` = '{name}' WHERE id = 1")
    duck.execute_sql(f"INSERT INTO p SELECT id, CASE WHEN id = 2 THEN '{escaped}' ELSE `{name}` END FROM k")
    duck.execute_sql(f"MERGE INTO k USING p ON k.id = p.id WHEN MATCHED AND p.`{name}` = '{name}' THEN UPDATE SET *")
    assert rows_of(duck.execute_sql("SELECT * FROM k ORDER BY id")) == [(1, name), (2, name), (3, "z")]
    assert rows_of(duck.execute_sql(f"SELECT id FROM p WHERE `{name}` = '{escaped}' ORDER BY id")) == [(1,), (2,)]
    shadowed = f"WITH `{name}` AS (SELECT 7 AS id) SELECT k.id, x.id FROM k, `{name}` AS x /* {name} */ WHERE k.id = 3"
    assert rows_of(duck.execute_sql(shadowed)) == [(3, 7)]


def test_a_query_that_is_kept_reads_the_table_as_it_is_then(env: ts.TableEnvironment) -> None:
    query, result = env.sql_query("SELECT count(*) AS n FROM t"), env.execute_sql("SELECT count(*) AS n FROM t")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 10)")
    assert query.to_arrow().to_pylist() == [{"n": 1}]
    assert result.to_arrow().to_pylist() == [{"n": 0}], "its snapshot was fixed before"
    assert env.from_path("default.t").to_arrow().num_rows == 1


def test_one_statement_sees_one_snapshot_of_a_table(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 10)")
    result = env.execute_sql("SELECT a.v, b.v, (SELECT max(v) FROM t) FROM t AS a JOIN t AS b ON a.id = b.id")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 99)")
    assert rows_of(result) == [(10, 10, 10)]


def test_a_commit_while_a_statement_is_made_ready_is_in_none_of_its_tables(
    env: ts.TableEnvironment, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 10)")
    other = env.catalog().table("default.t")
    assert isinstance(other, ts.Table)
    values = count(11)

    def pin_and_commit(table: ts.Table, spec: TableSpec, **at: Any) -> ReadPin:
        found = pin_read(table, spec, **at)
        other.upsert([{"id": 1, "day": "a", "v": next(values)}])
        return found

    monkeypatch.setattr(relations, "pin_read", pin_and_commit)
    env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT * FROM t")
    ((one, two, three),) = rows_of(
        env.execute_sql("SELECT a.v, b.v, (SELECT max(v) FROM w) FROM t AS a JOIN t AS b ON a.id = b.id")
    )
    assert one == two == three


def test_time_travel_by_snapshot_tag_and_time(env: ts.TableEnvironment, rows_of: Rows) -> None:
    for value in (1, 2, 3):
        env.execute_sql(f"INSERT INTO t VALUES (1, 'a', {value})")
    env.execute_sql("CALL sys.create_tag('t', 'v1', 1)")
    middle = env.catalog().table("default.t").snapshots()[1].time_millis
    cases = [
        ("t VERSION AS OF 1", 1),
        ("t VERSION AS OF '2'", 2),
        ("t VERSION AS OF 'v1'", 1),
        ("t FOR VERSION AS OF 2", 2),
        (f"t FOR SYSTEM_TIME AS OF TIMESTAMP '{datetime.fromtimestamp(middle / 1000).isoformat(' ')}'", 2),
        (f"t TIMESTAMP AS OF {middle // 1000 + 100}", 3),
        (f"t TIMESTAMP AS OF CAST('{datetime.fromtimestamp(middle / 1000).isoformat(' ')}' AS TIMESTAMP) + INTERVAL 1 DAY", 3),
        ("`t$branch_b`", 1),
    ]
    env.execute_sql("CALL sys.create_branch('t', 'b', tag => 'v1')")
    for reference, expected in cases:
        assert rows_of(env.execute_sql(f"SELECT v FROM {reference}")) == [(expected,)], reference
    assert rows_of(env.execute_sql("SELECT v FROM t VERSION AS OF :tag", tag="v1")) == [(1,)]
    at = datetime.fromtimestamp(middle / 1000, UTC)
    assert rows_of(env.execute_sql("SELECT v FROM t TIMESTAMP AS OF ?", at)) == [(2,)]
    env.execute_sql("CALL sys.expire_snapshots('t', retain_min => 1, older_than => '0 ms')")
    assert rows_of(env.execute_sql("SELECT v FROM t VERSION AS OF 'v1'")) == [(1,)], "a tag outlives its snapshot"
    with pytest.raises(ts.NotFoundError, match="line 1, column"):
        env.execute_sql("SELECT v FROM t VERSION AS OF 1")
    with pytest.raises(ts.UnsupportedError, match="no snapshots to look back to"):
        env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT 1 AS a")
        env.execute_sql("SELECT * FROM w VERSION AS OF 1")


def test_a_branch_is_written_and_read_by_its_name(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
    env.execute_sql("CALL sys.create_branch('t', 'b')")
    env.execute_sql("INSERT INTO `t$branch_b` VALUES (2, 'a', 2)")
    env.execute_sql("UPDATE `t$branch_b` SET v = 7 WHERE id = 1")
    assert rows_of(env.execute_sql("SELECT id, v FROM `t$branch_b` ORDER BY id")) == [(1, 7), (2, 2)]
    assert rows_of(env.execute_sql("SELECT id, v FROM t")) == [(1, 1)]
    assert len(rows_of(env.execute_sql("SELECT * FROM `t$branch_b$snapshots`"))) == 3


def test_system_tables_and_changes_are_tables_of_a_query(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2)")
    env.execute_sql("UPDATE t SET v = 5 WHERE id = 2")
    assert rows_of(env.execute_sql("SELECT commit_kind, count(*) FROM t$snapshots GROUP BY 1")) == [("APPEND", 2)]
    assert rows_of(env.execute_sql("SELECT sum(record_count) FROM t$files"))[0][0] == 3
    changes = "SELECT _row_kind, id, v FROM table_changes('t', {}) ORDER BY _row_kind, id"
    assert rows_of(env.execute_sql(changes.format("1, 2"))) == [("+U", 2, 5), ("-U", 2, 2)]
    assert rows_of(env.execute_sql(changes.format("0, 1"))) == [("+I", 1, 1), ("+I", 2, 2)]
    assert len(rows_of(env.execute_sql(changes.format("0")))) == 4
    with pytest.raises(ts.InvalidInputError, match=r"expected table_changes\('table', from_snapshot"):
        env.execute_sql("SELECT * FROM table_changes('t', 'x')")
    env.execute_sql("ALTER TABLE t COMPACT")
    assert rows_of(env.execute_sql("SELECT id, v FROM t$ro WHERE v > 3")) == [(2, 5)]


def test_computed_columns_are_computed_when_the_table_is_read(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE c (id INT, price DOUBLE, twice AS price * 2, name STRING)")
    assert [row[:2] for row in rows_of(env.execute_sql("DESCRIBE c"))][2] == ("twice", "DOUBLE")
    env.execute_sql("INSERT INTO c VALUES (1, 1.5, 'a'), (2, 2.5, 'b')")
    assert rows_of(env.execute_sql("SELECT * FROM c ORDER BY id")) == [(1, 1.5, 3.0, "a"), (2, 2.5, 5.0, "b")]
    env.execute_sql("UPDATE c SET name = 'big' WHERE twice > 4")
    env.execute_sql("DELETE FROM c WHERE twice = 3")
    assert rows_of(env.execute_sql("SELECT id, twice, name FROM c")) == [(2, 5.0, "big")]
    (plan,) = env.execute_sql("EXPLAIN SELECT twice FROM c WHERE id = 2").to_arrow().column("plan").to_pylist()
    assert "columns id, price, filter id = 2" in plan, "what is asked and the condition reach the table below"
    env.execute_sql("CREATE TEMPORARY VIEW v (a, b, n) AS SELECT twice + 1, c.price, name FROM c WHERE id > 0")
    assert rows_of(env.execute_sql("SELECT v.a, c.name FROM v JOIN c ON v.b = c.price")) == [(6.0, "big")]
    query = "SELECT o.name FROM c AS o WHERE o.id IN (SELECT id FROM c)"
    (plan,) = env.execute_sql(f"EXPLAIN {query}").to_arrow().column("plan").to_pylist()
    assert "columns id, name" in plan and "columns id\n" in plan
    assert rows_of(env.execute_sql("SELECT count(*) FROM c")) == [(1,)]
    with pytest.raises(ts.InvalidInputError, match="twice is computed from it"):
        env.execute_sql("ALTER TABLE c DROP COLUMN price")
    env.execute_sql("ALTER TABLE c DROP COLUMN twice")
    assert rows_of(env.execute_sql("SELECT * FROM c")) == [(2, 2.5, "big")]
    with pytest.raises(ts.InvalidInputError, match="line 1, column"):
        env.execute_sql("CREATE TABLE d (id INT, x AS nope + 1)")


def test_a_computed_column_that_another_one_is_made_of_is_read_with_it(
    env: ts.TableEnvironment, rows_of: Rows, tmp_path: Path
) -> None:
    # CREATE TABLE refuses it; other writers may not.
    made = {"1.name": "twice", "1.expr": "price * 2", "2.name": "more", "2.expr": "twice + 1"}
    options = {f"schema.{key}": value for key, value in made.items()} | {f"schema.{n}.data-type": "DOUBLE" for n in (1, 2)}
    schema = pa.schema({"price": pa.float64(), "name": pa.string()})
    ts.open_catalog(str(tmp_path / "wh")).create_table("default.c", schema=schema, options=options)
    env.execute_sql("INSERT INTO c VALUES (1.5, 'a')")
    assert rows_of(env.execute_sql("SELECT more FROM c")) == [(4.0,)]


def test_insert_takes_columns_by_place_by_list_and_by_name(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO log (at) VALUES (DATE '2026-01-01')")
    env.execute_sql("INSERT INTO log (text, at) VALUES ('b', DATE '2026-01-02')")
    env.execute_sql("INSERT INTO log BY NAME SELECT 'c' AS text, DATE '2026-01-03' AS at")
    env.execute_sql("INSERT INTO log VALUES (DATE '2026-01-04', DEFAULT)")
    assert rows_of(env.execute_sql("SELECT * FROM log ORDER BY at")) == [
        (date(2026, 1, 1), "none"), (date(2026, 1, 2), "b"), (date(2026, 1, 3), "c"), (date(2026, 1, 4), "none"),
    ]  # fmt: skip
    with pytest.raises(ts.InvalidInputError, match="did you mean 'text'"):
        env.execute_sql("INSERT INTO log (txt) VALUES ('x')")


def test_insert_of_changes_applies_them_by_their_kind(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2)")
    env.execute_sql(
        "INSERT INTO t BY NAME SELECT * FROM (VALUES ('-D', 1, 'a', 1), ('+U', 2, 'a', 9)) AS r (`_row_kind`, id, day, v)"
    )
    assert rows_of(env.execute_sql("SELECT id, v FROM t")) == [(2, 9)]


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("INSERT OVERWRITE t VALUES (9, 'b', 9)", [(1, "a"), (9, "b")]),
        ("INSERT OVERWRITE t PARTITION (day = 'a') VALUES (9, 9)", [(2, "b"), (9, "a")]),
        ("INSERT OVERWRITE t PARTITION (day) VALUES (9, 'b', 9)", [(1, "a"), (9, "b")]),
        ("INSERT OVERWRITE t PARTITION (day = 'a') SELECT id, v FROM t WHERE false", [(2, "b")]),
    ],
)
def test_overwrite_replaces_the_partitions_that_it_names_or_that_the_rows_fall_into(
    env: ts.TableEnvironment, rows_of: Rows, statement: str, left: list[tuple[Any, ...]]
) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    env.execute_sql(statement)
    assert sorted(rows_of(env.execute_sql("SELECT id, day FROM t"))) == left


def test_overwrite_of_an_unpartitioned_table_replaces_all_rows(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO log VALUES (DATE '2026-01-01', 'a')")
    env.execute_sql("INSERT OVERWRITE log SELECT DATE '2026-01-02', 'b'")
    assert rows_of(env.execute_sql("SELECT text FROM log")) == [("b",)]
    env.execute_sql("ALTER TABLE t SET ('dynamic-partition-overwrite' = 'false')")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
    env.execute_sql("INSERT OVERWRITE t VALUES (2, 'b', 2)")
    assert rows_of(env.execute_sql("SELECT id FROM t")) == [(2,)]


def test_delete_update_and_merge_on_keyed_and_append_tables(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE plain (id BIGINT, day STRING, v INT)")
    for name in ("t", "plain"):
        env.execute_sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
        env.execute_sql(f"DELETE FROM {name} WHERE id = 1")
        env.execute_sql(f"UPDATE {name} AS x SET v = x.v * 10 WHERE v >= ?", 3)
        env.execute_sql(
            f"""MERGE INTO {name} AS g USING (SELECT * FROM VALUES (2, 'a', 7), (4, 'c', 8) AS s (id, day, v)) AS s
            ON g.id = s.id AND g.day = s.day
            WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *
            WHEN NOT MATCHED BY SOURCE AND g.id = 3 THEN DELETE"""
        )
        assert rows_of(env.execute_sql(f"SELECT * FROM {name} ORDER BY id")) == [(2, "a", 7), (4, "c", 8)]
        with pytest.raises(ts.InvalidInputError) as caught:
            env.execute_sql(
                f"MERGE INTO {name} g USING (SELECT * FROM VALUES (2, 1), (2, 2) AS s (id, v)) s ON g.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v"
            )
        assert caught.value.kind == "second-match"
        assert env.execute_sql(f"DELETE FROM {name} WHERE id = 99").snapshot is None


def test_columns_of_a_merge_may_be_called_as_words_of_sql(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    """Their names are words of the language where they stand without backticks: END, NULL, DAY."""
    duck.execute_sql("CREATE TABLE k (id INT, `end` INT, `null` STRING, `day` TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO k VALUES (1, 10, 'a', TIMESTAMP '2024-01-01'), (2, 20, 'b', TIMESTAMP '2024-01-31')")
    duck.execute_sql(
        "MERGE INTO k AS t USING (SELECT 1 AS id, 11 AS v) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET `end` = v "
        "WHEN NOT MATCHED BY SOURCE AND CASE WHEN id > 0 THEN TRUE END THEN UPDATE SET "
        "`end` = CASE WHEN `end` > 5 THEN `end` + t.`end` END, `null` = NULL, `day` = day + INTERVAL '1' DAY"
    )
    assert rows_of(duck.execute_sql("SELECT id, `end`, `null`, day(`day`) FROM k ORDER BY id")) == [
        (1, 11, "a", 1),
        (2, 40, None, 1),
    ]


def test_values_of_updates_and_merges_are_cast_as_those_of_inserts(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE c (id INT, n INT, a ARRAY<INT>, s STRUCT<x: INT, y: INT>, PRIMARY KEY (id) NOT ENFORCED)")
    values = "1.7D, array(1.5, -1.5), named_struct('x', 2.5, 'y', 3)"
    expected = [(1, [1, -1], {"x": 2, "y": 3})]
    env.execute_sql(f"INSERT INTO c SELECT 1, {values}")
    assert rows_of(env.execute_sql("SELECT n, a, s FROM c")) == expected
    env.execute_sql("UPDATE c SET n = 0.5D, a = array(0.7), s.x = 9.9 WHERE id = 1")
    assert rows_of(env.execute_sql("SELECT n, a, s FROM c")) == [(0, [0], {"x": 9, "y": 3})]
    for matched in ("WHEN MATCHED THEN UPDATE SET *", "WHEN MATCHED AND t.n < 5 THEN UPDATE SET *"):
        source = f"(SELECT 1 AS id, * FROM VALUES ({values}) AS v (n, a, s))"
        env.execute_sql(f"MERGE INTO c AS t USING {source} AS v ON t.id = v.id {matched} WHEN NOT MATCHED THEN INSERT *")
        assert rows_of(env.execute_sql("SELECT n, a, s FROM c")) == expected
        env.execute_sql("UPDATE c SET n = 0, a = NULL, s = NULL")


def test_a_change_that_others_made_stale_is_planned_again(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
    engine = env.engine
    assert engine is not None
    real, calls = engine.change, []

    def overtaken(query: Any, target: Any) -> Any:
        calls.append(target.pin.snapshot_id)
        if len(calls) == 1:
            target.table.upsert(pa.table({"id": [1], "day": ["a"], "v": pa.array([100], pa.int32())}))
        return real(query, target)

    engine.change = overtaken  # type: ignore[method-assign]
    env.execute_sql("UPDATE t SET v = v + CAST('1' AS INT) WHERE id = 1")
    assert calls == [1, 2]
    assert rows_of(env.execute_sql("SELECT v FROM t")) == [(101,)]


def test_explain_shows_the_pruned_scans(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
    (plan,) = env.execute_sql("EXPLAIN SELECT v FROM t WHERE id = 1").to_arrow().column("plan").to_pylist()
    assert "tablestore.default.t: snapshot 1, columns id, v, filter id = 1" in plan
    for statement in ("INSERT INTO t SELECT * FROM t", "DELETE FROM t WHERE id = 1", "UPDATE t SET v = 2"):
        (plan,) = env.execute_sql(f"EXPLAIN {statement}").to_arrow().column("plan").to_pylist()
        assert "tablestore.default.t: snapshot 1" in plan, statement
    assert len(env.catalog().table("default.t").snapshots()) == 1  # type: ignore[union-attr]
    with pytest.raises(ts.UnsupportedError, match="EXPLAIN is for queries"):
        env.execute_sql("EXPLAIN DROP TABLE t")


def test_a_statement_set_that_fails_says_what_has_landed(env: ts.TableEnvironment, rows_of: Rows) -> None:
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (1, 'a', 1); INSERT INTO log VALUES ({}, 'x'); END"
    result = env.execute_sql(text.format("DATE '2026-01-01'"))
    assert [row[:3] for row in rows_of(result)] == [("tablestore.default.t", 1, 1), ("tablestore.default.log", 1, 1)]
    with pytest.raises(ts.InvalidInputError, match="INSERT 2 of 2; landed before it: nothing"):
        env.execute_sql(text.format("true"))
    with pytest.raises(ts.InvalidInputError, match=r"INSERT 2 of 2; landed before it: tablestore.default.t \(snapshot 2\)"):
        env.execute_sql(text.format("CAST(concat('no ', 'date') AS DATE)"))


def test_a_temporary_view_hides_a_table_and_follows_it(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
    env.execute_sql("CREATE TEMPORARY VIEW v (n) AS SELECT v FROM t")
    env.execute_sql("CREATE DATABASE other")
    env.execute_sql("CREATE TEMPORARY VIEW log AS SELECT n + 1 AS m FROM v")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 5)")
    env.execute_sql("USE other")
    assert rows_of(env.execute_sql("SELECT * FROM default.log")) == [(6,)]
    with pytest.raises(ts.InvalidInputError, match=r"Temporary view with identifier '`tablestore`\.`default`\.`log`' exists"):
        env.execute_sql("DROP TABLE default.log")
    env.execute_sql("DROP TEMPORARY VIEW default.log")
    assert rows_of(env.execute_sql("SELECT count(*) FROM default.log")) == [(0,)]
    with pytest.raises(ts.NotFoundError, match="View with identifier"):
        env.execute_sql("DROP TEMPORARY VIEW nope")


def test_a_table_of_the_engine_stays_the_engine_s(tmp_path: Path, rows_of: Rows) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE own AS SELECT 1 AS id, 'x' AS tag").complete()
        env = ts.TableEnvironment.create(tmp_path / "wh", engine=open_engine(connection))
        env.execute_script("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
        assert rows_of(env.execute_sql("SELECT tag FROM t JOIN own ON t.id = own.id")) == [("x",)]
        with pytest.raises(ts.InvalidInputError, match="a table of the query engine itself"):
            env.execute_sql("DELETE FROM own")


@pytest.mark.parametrize(
    ("statement", "message", "place"),
    [
        ("SELECT *\nFROM tt", "did you mean 't'", "line 2, column 6"),
        ("INSERT INTO t\nSELECT * FROM nope", "does not exist", "line 2, column 15"),
        ("INSERT INTO nope VALUES (1)", "does not exist", "line 1, column 13"),
        ("DELETE FROM t\nWHERE id IN (SELECT id FROM nope)", "does not exist", "line 2, column 29"),
        ("MERGE INTO t USING nope ON t.id = nope.id WHEN MATCHED THEN DELETE", "does not exist", "line 1, column 20"),
        ("UPDATE t SET vv = 1", "did you mean 'v'", "line 1, column 14"),
        ("INSERT INTO t PARTITION (dya = 'a') VALUES (1, 1)", "did you mean 'day'", "line 1, column 26"),
        ("INSERT OVERWRITE log PARTITION (at = '2026-01-01') VALUES ('x')", "it has none", "line 1, column 33"),
        ("EXPLAIN SELECT * FROM t VERSION AS OF 'nope'", "nope", "line 1, column"),
        ("SELECT * FROM t WHERE id = :n", "has no value", "line 1, column 28"),
    ],
)
def test_names_in_queries_are_marked_where_they_stand(env: ts.TableEnvironment, statement: str, message: str, place: str) -> None:
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(statement)
    assert message in str(caught.value)
    assert place in str(caught.value)


def test_two_environments_write_one_table_and_no_update_is_lost(env: ts.TableEnvironment, tmp_path: Any, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 0)")

    def add() -> None:
        with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as other:
            for _ in range(3):
                other.execute_sql("UPDATE t SET v = v + 1 WHERE id = 1")

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows_of(env.execute_sql("SELECT v FROM t")) == [(6,)]


def test_a_null_in_a_new_row_takes_the_default_and_an_update_sets_null(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE d (id INT, v STRING DEFAULT 'dflt')")
    duck.execute_sql("INSERT INTO d VALUES (1, DEFAULT), (2, NULL)")
    duck.execute_sql("INSERT INTO d (id) VALUES (3)")
    duck.execute_sql(
        "MERGE INTO d USING (SELECT 4 AS id) s ON d.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, NULL)"
    )
    assert rows_of(duck.execute_sql("SELECT * FROM d ORDER BY id")) == [(number, "dflt") for number in (1, 2, 3, 4)]
    duck.execute_sql("UPDATE d SET v = NULL WHERE id = 2")
    duck.execute_sql("ALTER TABLE d ALTER COLUMN v DROP DEFAULT")
    duck.execute_sql("INSERT INTO d VALUES (5, NULL)")
    assert rows_of(duck.execute_sql("SELECT id FROM d WHERE v IS NULL ORDER BY id")) == [(2,), (5,)]


def test_an_insert_casts_as_cast_does(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE n (v BIGINT) AS SELECT CAST(-12.7 AS DOUBLE) AS v")
    duck.execute_sql("INSERT INTO n VALUES (0.5), (1.5), (-0.7), (NULL)")
    duck.execute_sql("INSERT INTO n VALUES " + ", ".join(["(2.5)"] * LEAST_ROWS))
    found = rows_of(duck.execute_sql("SELECT v, count(*) FROM n GROUP BY v ORDER BY v"))
    assert found == [(None, 1), (-12, 1), (0, 2), (1, 1), (2, LEAST_ROWS)]


def test_an_insert_casts_the_parts_of_a_value_by_their_place(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE n (a ARRAY<INT>, r ROW<x INT, `y z` STRING>, m MAP<BIGINT, ARRAY<ROW<i INT>>>)")
    duck.execute_sql(
        "INSERT INTO n SELECT array(1.5, NULL, -2.5), named_struct('y z', 0.9, 'x', 'a'), "
        "map(1.5D, array(named_struct('j', 2.9D), NULL))"
    )
    duck.execute_sql("INSERT INTO n SELECT CAST(NULL AS ARRAY<DOUBLE>), CAST(NULL AS STRUCT<x: DOUBLE, y: STRING>), NULL")
    whole = ([1, None, -2], {"x": 0, "y z": "a"}, [(1, [{"i": 2}, None])])
    assert rows_of(duck.execute_sql("SELECT * FROM n")) == [whole, (None, None, None)]


@pytest.mark.parametrize("value", ["CAST(1e20 AS DOUBLE)", "array(CAST(1e20 AS DOUBLE))"])
def test_an_insert_refuses_what_a_cast_refuses(duck: ts.TableEnvironment, value: str) -> None:
    column = "ARRAY<STRING>" if "array" in value else "STRING"
    with pytest.raises(ts.UnsupportedError, match="the cast of a float to a text"):
        duck.execute_sql(f"CREATE TABLE n (v {column}) AS SELECT {value} AS v")


def test_a_text_with_a_fraction_is_no_whole_number(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"expected the digits of a whole number, found '12\.7'"):
        duck.execute_sql("SELECT CAST('12.7' AS INT)")
    assert rows_of(duck.execute_sql("SELECT CAST(' -12 ' AS INT), TRY_CAST('1.5' AS INT)")) == [(-12, None)]


def test_parameters_may_have_any_name(duck: ts.TableEnvironment) -> None:
    assert duck.execute_sql("SELECT :text AS a, :self AS b", text="x", self=2).to_arrow().to_pylist() == [{"a": "x", "b": 2}]
    assert duck.sql_query("SELECT :text AS a", text="x").to_arrow().to_pylist() == [{"a": "x"}]


@pytest.mark.parametrize(
    "statement", ["SELECT 1", "SELECT :p", "INSERT INTO t VALUES (1)", "DELETE FROM t", "CREATE TABLE n (a INT)"]
)
def test_a_parameter_that_no_column_has_is_refused_used_or_not(duck: ts.TableEnvironment, statement: str) -> None:
    duck.execute_sql("CREATE TABLE t (a INT)")
    for run in (duck.execute_sql, duck.sql_query):
        if run == duck.sql_query and not statement.startswith("SELECT"):
            continue
        with pytest.raises(
            ts.InvalidInputError, match="the parameter :p has a value of type object, which no column has"
        ) as caught:
            run(statement, p=object())
        assert caught.value.kind == "parameters"
    assert duck.execute_sql("SELECT count(*) FROM t").to_arrow().column(0)[0].as_py() == 0
    assert duck.list_tables() == ("t",)


def test_parameters_with_more_digits_than_a_bigint_are_decimals(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    found = rows_of(duck.execute_sql("SELECT :x AS x, CAST(:y AS BIGINT) AS y", x=2**126, y=Decimal(2**62)))
    assert found == [(Decimal(2**126), 2**62)]
    for value in (2**127, Decimal(10) ** 38, Decimal("1e-39"), Decimal("NaN"), Decimal("-Infinity")):
        with pytest.raises(ts.InvalidInputError, match="a number that is no DECIMAL"):
            duck.execute_sql("SELECT :x AS x", x=value)


def test_parameters_of_numpy_and_ids_are_values(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (a BIGINT, s STRING, day DATE) PARTITIONED BY (day)")
    day, id = np.datetime64("2024-01-31"), UUID(int=7)
    duck.execute_sql("INSERT INTO t SELECT :a, :s, :day", a=np.int64(3), s=id, day=day)
    assert rows_of(
        duck.execute_sql("SELECT a FROM t WHERE s = ? AND day = ? AND array_contains(?, a)", id, day, np.array([3, 4]))
    ) == [(3,)]
