"""Streaming mode on Spark: managed tables in FROM are streams, which Structured Streaming runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


@pytest.fixture
def env(spark: "SparkSession", warehouse: str, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(warehouse=warehouse, spark=spark) as env:
        for name, key in (("t", ", PRIMARY KEY (id) NOT ENFORCED"), ("k", ", PRIMARY KEY (id) NOT ENFORCED"), ("a", ""), ("u", "")):
            env.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING{key}) WITH ('write-only' = 'true')")
        table(env, "t").upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        table(env, "a").append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        env.execute_sql(f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoints'}'")
        yield env


def table(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def begin(env: ts.TableEnvironment, statement: str) -> Job[ts.Result]:
    job = env.execute_sql(statement).job
    assert job is not None
    return job


def until(job: Job[ts.Result], holds: Callable[[], bool]) -> None:
    while not holds():
        assert not job.wait(0.05), job.result()


def pairs(env: ts.TableEnvironment, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table(env, name).to_arrow().to_pylist())


def test_an_insert_follows_a_keyed_table_with_its_deletes(env: ts.TableEnvironment) -> None:
    statement = "INSERT INTO k SELECT id, upper(v) AS v FROM t WHERE v <> 'gone'"
    job = begin(env, statement)
    until(job, lambda: pairs(env, "k") == [(1, "A"), (2, "B")])
    table(env, "t").write_changes(pa.table({"_row_kind": ["-D"], "id": [2], "v": ["b"]}))
    until(job, lambda: pairs(env, "k") == [(1, "A")])
    job.cancel()
    job.wait()
    table(env, "t").upsert([{"id": 1, "v": "gone"}, {"id": 3, "v": "c"}])
    job = begin(env, statement)
    until(job, lambda: pairs(env, "k") == [(3, "C")])
    job.cancel()


def test_a_source_that_gets_a_column_is_followed_and_one_that_loses_one_ends_the_job(env: ts.TableEnvironment) -> None:
    job = begin(env, "INSERT INTO k SELECT * FROM t")
    until(job, lambda: len(pairs(env, "k")) == 2)
    table(env, "t").alter(ts.AddColumn("w", "INT"))
    table(env, "t").upsert([{"id": 3, "v": "c", "w": 7}])
    until(job, lambda: pairs(env, "k") == [(1, "a"), (2, "b"), (3, "c")])
    table(env, "t").alter(ts.RenameColumn("v", to="x"))
    table(env, "t").upsert([{"id": 4, "x": "d", "w": 8}])
    table(env, "t").alter(ts.DropColumn("x"))
    table(env, "t").upsert([{"id": 5, "w": 9}])
    with pytest.raises(ts.ConflictError, match="Run the statement again") as ended:
        job.result(60)
    assert ended.value.kind == "schema-changed" and "Traceback" not in str(ended.value)


def test_create_table_as_a_hint_and_a_look_up(env: ts.TableEnvironment) -> None:
    job = begin(
        env,
        "CREATE TABLE made AS SELECT a.id, t.v FROM a /*+ OPTIONS('log.scan' = 'latest') */ "
        "JOIN t FOR SYSTEM_TIME AS OF now() ON a.id = t.id",
    )
    # The stream begins behind what is there when its first batch is planned.
    until(job, lambda: len(table(env, "a").consumers()) > 0)
    table(env, "a").append([{"id": 2, "v": "later"}])
    until(job, lambda: pairs(env, "made") == [(2, "b")])
    job.cancel()


def test_a_query_with_state_runs_over_new_rows_and_is_refused_over_changes(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE counts (v STRING, n BIGINT, PRIMARY KEY (v) NOT ENFORCED) WITH ('write-only' = 'true')")
    job = begin(env, "INSERT INTO counts SELECT v, count(*) FROM a GROUP BY v")
    until(job, lambda: pairs(env, "counts") == [("a", 1), ("b", 1)])
    job.cancel()
    job.wait()
    env.execute_sql("SET 'pipeline.name' = 'another'")
    for statement, message in (
        ("INSERT INTO counts SELECT v, count(*) FROM t GROUP BY v", "rows of tablestore.default.t change and go"),
        ("INSERT INTO u SELECT id, v FROM t", "WITH a PRIMARY KEY"),
        ("INSERT INTO u SELECT id, v FROM a ORDER BY id LIMIT 3", "stream"),
    ):
        with pytest.raises((ts.UnsupportedError, ts.InvalidInputError), match=message) as refused:
            begin(env, statement).result(60)
        assert "py4j" not in str(refused.value) and "AnalysisException" not in str(refused.value)


def test_a_select_gives_rows_and_changes(env: ts.TableEnvironment) -> None:
    result = env.execute_sql("SELECT id, v FROM t")
    batches = result.to_reader()
    assert batches.read_next_batch().to_pydict() == {"_row_kind": ["+I", "+I"], "id": [1, 2], "v": ["a", "b"]}
    table(env, "t").upsert([{"id": 1, "v": "x"}])
    assert batches.read_next_batch().column("_row_kind").to_pylist() == ["-U", "+U"]
    result.cancel()
