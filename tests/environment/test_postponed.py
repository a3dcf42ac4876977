"""SQL on tables with ``bucket = -2``: rows of INSERT and of streams wait, statements that read what they change compact first."""

from collections.abc import Callable
from typing import Any

import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '-2')")
    return duck


def test_statements_on_duckdb(env: ts.TableEnvironment, rows_of: Rows) -> None:
    def rows() -> list[tuple[Any, ...]]:
        return rows_of(env.execute_sql("SELECT * FROM t ORDER BY id"))

    env.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    assert rows() == [] and rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]
    env.execute_sql("UPDATE t SET v = concat(v, 'x') WHERE id < 3")
    assert rows() == [(1, "a"), (2, "b"), (3, "c")], "the update waits"
    env.execute_sql("DELETE FROM t WHERE v = 'bx'")
    env.execute_sql(
        "MERGE INTO t USING (SELECT 3 AS id, 'm' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    env.execute_sql("CALL sys.compact('t')")
    assert rows() == [(1, "ax"), (3, "m")]
    env.execute_sql("INSERT OVERWRITE t SELECT 7, 'o'")
    assert rows() == []
    env.execute_sql("ALTER TABLE t COMPACT")
    assert rows() == [(7, "o")]
    assert "'bucket' = '-2'" in str(rows_of(env.execute_sql("SHOW CREATE TABLE t")))


def test_a_stream_into_such_a_table(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE source (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO source VALUES (1, 'a'), (2, 'b')")
    table = env.catalog().table("default.t")
    assert isinstance(table, ts.Table)
    env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    job = env.execute_sql("INSERT INTO t SELECT * FROM source").job
    env.execute_sql("RESET 'execution.runtime-mode'")
    assert job is not None
    while not table.snapshots():
        assert not job.wait(0.01), job.result()
    job.cancel()
    job.wait()
    assert table.refresh().scan().count() == 0
    table.compact()
    assert table.refresh().scan(filter="id = 2").to_arrow().to_pylist() == [{"id": 2, "v": "b"}]


def test_a_materialized_table_is_refused(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.TablestoreError, match=r"materialized table that postpones the choice of buckets"):
        env.execute_sql(
            "CREATE OR ALTER MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '-2') "
            "FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL AS SELECT * FROM t"
        )
