"""The environment with Spark as its engine: the statements of tests/environment/test_rows.py, as one story."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

pytestmark = pytest.mark.spark


@pytest.fixture
def env(spark: Any, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as made:
        yield made


def rows_of(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.to_arrow().to_pylist()]


def test_statements_run_on_spark(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(
        "CREATE TABLE t (id BIGINT, day STRING, v INT, twice AS v * 2, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)"
    )
    env.execute_sql("CREATE TABLE log (id BIGINT, text STRING DEFAULT 'none')")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'b', 30)")
    env.execute_sql("INSERT INTO log (id) SELECT id FROM t")
    assert rows_of(env.execute_sql("SELECT text, count(*) FROM log GROUP BY 1")) == [("none", 3)]
    assert rows_of(env.execute_sql("SELECT id, twice FROM t WHERE id = :id", id=2)) == [(2, 40)]
    env.execute_sql("UPDATE t SET v = v + ? WHERE twice = ?", 1, 40)
    env.execute_sql("DELETE FROM log WHERE id IN (SELECT id FROM t WHERE day = 'a')")
    env.execute_sql(
        "MERGE INTO t USING log ON t.id = log.id WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 7 "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
    )
    assert rows_of(env.execute_sql("SELECT id, v FROM t ORDER BY id")) == [(1, 0), (2, 7)]
    assert rows_of(env.execute_sql("SELECT v FROM t VERSION AS OF 1 WHERE id = 3")) == [(30,)]
    env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT t.id, text FROM t JOIN log ON t.id = log.id")
    assert rows_of(env.execute_sql("SELECT * FROM v")) == [(2, "none")]
    env.execute_sql("INSERT OVERWRITE t PARTITION (day = 'b') VALUES (9, 9)")
    assert rows_of(env.execute_sql("SELECT id, day FROM t ORDER BY id")) == [(1, "a"), (9, "b")]
    assert rows_of(env.execute_sql("SELECT commit_kind FROM t$snapshots ORDER BY snapshot_id"))[-1] == ("OVERWRITE",)
    changes = rows_of(env.execute_sql("SELECT _row_kind, id FROM table_changes('t', 1, 2) ORDER BY 1"))
    assert changes == [("+U", 2), ("-U", 2)]
    env.execute_sql("ALTER TABLE t PARTITION (day = 'a') COMPACT")
    (plan,) = env.execute_sql("EXPLAIN SELECT text FROM log WHERE id = 1").to_arrow().column("plan").to_pylist()
    assert "all columns, filter `id` = 1" in plan
    env.execute_sql(f"CREATE TABLE f (id BIGINT, day STRING) USING csv OPTIONS (path '{tmp_path / 'f'}', header 'true')")
    env.execute_sql("INSERT INTO f SELECT id, day FROM t WHERE id > 1")
    env.execute_sql("INSERT OVERWRITE f (day, id) SELECT day, id FROM t")
    assert sorted(rows_of(env.execute_sql("SELECT * FROM f"))) == [(1, "a"), (9, "b")]
    env.execute_sql("SET 'spark.sql.shuffle.partitions' = '3'")
    assert rows_of(env.execute_sql("SET 'spark.sql.shuffle.partitions'")) == [("spark.sql.shuffle.partitions", "3")]
    env.execute_sql("RESET")
    with pytest.raises(ts.NotFoundError, match="did you mean 'log'"):
        env.execute_sql("SELECT * FROM logs")
    with pytest.raises(ts.TablestoreError, match="line 2, column"):
        env.execute_sql("SELECT id\n, nope FROM t")
