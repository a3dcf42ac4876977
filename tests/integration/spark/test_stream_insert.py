"""INSERT INTO in streaming mode: a job that writes a table with each batch of a stream, once, until it is canceled."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.jobs import Job, JobStatus
from tests.integration.spark.feed import Feed, forget_last

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def feed(spark: "SparkSession", tmp_path: Path) -> Feed:
    (tmp_path / "feed").mkdir()
    return Feed(spark, tmp_path / "feed", ROWS)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def env(spark: "SparkSession", warehouse: str, checkpoints: Path, feed: Feed) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(warehouse=warehouse, spark=spark) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('write-only' = 'true')")
        env.execute_sql("CREATE TABLE names (id BIGINT, name STRING)")
        env.execute_sql("INSERT INTO names VALUES (1, 'one'), (2, 'two')")
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        env.execute_sql(f"SET 'execution.checkpointing.dir' = '{checkpoints}'")
        env.create_temporary_view("v", feed.read())
        yield env


def numbers(env: ts.TableEnvironment, table: str = "t") -> list[int]:
    return [one.commit_identifier for one in env.catalog().table(f"default.{table}").snapshots()]


def rows(env: ts.TableEnvironment, table: str = "t") -> list[dict[str, object]]:
    return env.catalog().table(f"default.{table}").scan().to_arrow().sort_by("id").to_pylist()


def begin(env: ts.TableEnvironment, statement: str) -> Job[ts.Result]:
    job = env.execute_sql(statement).job
    assert job is not None
    return job


def until(env: ts.TableEnvironment, job: Job[ts.Result], snapshots: int, table: str = "t") -> None:
    """Wait until the table has so many snapshots."""
    while len(numbers(env, table)) < snapshots:
        assert not job.wait(0.05), job.result()


def noted(checkpoints: Path, job: Job[ts.Result]) -> Path:
    """Wait until Spark has noted the first batch; the folder of its checkpoint."""
    while not list(checkpoints.glob("*/commits/0")):
        assert not job.wait(0.05), job.result()
    return next(checkpoints.iterdir())


@pytest.mark.deep
def test_insert_runs_as_a_job_until_it_is_canceled_and_goes_on_where_it_was(env: ts.TableEnvironment, feed: Feed) -> None:
    feed.add({1: 1})
    feed.add({2: 2})
    job = begin(env, "INSERT INTO t SELECT id, v * 10 FROM v")
    assert job.status is JobStatus.RUNNING
    with pytest.raises(ts.InvalidInputError, match="runs already: cancel its job first"):
        env.execute_sql("INSERT INTO t SELECT id, v FROM v")
    until(env, job, 2)
    assert job.cancel()
    with pytest.raises(ts.UnsupportedError, match="was canceled"):
        job.result()
    assert job.status is JobStatus.CANCELED
    feed.add({1: 7})
    again = begin(env, "INSERT INTO t SELECT id, v * 10 FROM v")
    until(env, again, 3)
    assert rows(env) == [{"id": 1, "v": 70}, {"id": 2, "v": 20}]
    assert numbers(env) == [0, 1, 2]
    # It ends with the environment at the latest.
    env.close()
    assert again.status is JobStatus.CANCELED


def test_batch_that_landed_before_a_crash_lands_once(env: ts.TableEnvironment, feed: Feed, checkpoints: Path) -> None:
    feed.add({1: 1})
    job = begin(env, "INSERT INTO t SELECT * FROM v")
    folder = noted(checkpoints, job)
    job.cancel()
    job.wait()
    forget_last(folder)
    feed.add({2: 2})
    until(env, begin(env, "INSERT INTO t SELECT * FROM v"), 2)
    assert numbers(env) == [0, 1]


def test_job_whose_checkpoint_another_process_uses_too_ends_with_the_way_out(
    env: ts.TableEnvironment, feed: Feed, checkpoints: Path
) -> None:
    feed.add({1: 1})
    job = begin(env, "INSERT INTO t SELECT * FROM v")
    offsets = noted(checkpoints, job) / "offsets"
    # What the other one leaves here when it begins the next batch.
    shutil.copy(offsets / "0", offsets / "1")
    feed.add({2: 2})
    with pytest.raises(ts.ConflictError, match="another process runs the same statement") as ended:
        job.result(60)
    assert ended.value.kind == "newer-run"


@pytest.mark.deep
def test_tables_are_joined_as_they_are_and_counts_are_upserted(env: ts.TableEnvironment, feed: Feed) -> None:
    env.execute_sql("CREATE TABLE counts (id STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('write-only' = 'true')")
    feed.add({1: 1, 2: 1})
    text = "INSERT INTO counts SELECT name, count(*) FROM v JOIN names TIMESTAMP AS OF now() ON v.id = names.id GROUP BY name"
    job = begin(env, text)
    until(env, job, 1, "counts")
    feed.add({1: 1})
    until(env, job, 2, "counts")
    job.cancel()
    assert rows(env, "counts") == [{"id": "one", "n": 2}, {"id": "two", "n": 1}]


@pytest.mark.deep
def test_error_of_a_batch_ends_the_job_with_it(env: ts.TableEnvironment, feed: Feed, checkpoints: Path) -> None:
    feed.add({1: 1})
    job = begin(env, "INSERT INTO t SELECT id, v FROM v")
    noted(checkpoints, job)
    env.catalog().drop_table("default.t")
    env.catalog().create_table("default.t", schema=ROWS)
    feed.add({2: 2})
    with pytest.raises(ts.ConflictError):
        job.result(60)
    assert job.status is JobStatus.FAILED
    with pytest.raises(ts.InvalidInputError, match="it was dropped and made again") as refused:
        begin(env, "INSERT INTO t SELECT id, v FROM v").result(60)
    assert refused.value.kind == "foreign-checkpoint"
    # What the query does to a row is Spark's to say.
    env.execute_sql(f"SET 'execution.checkpointing.dir' = '{feed.folder.parent / 'other'}'")
    with pytest.raises(ts.InvalidInputError, match="Division by zero"):
        begin(env, "INSERT INTO t SELECT id, id DIV (v - v) FROM v").result(60)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO t SELECT id, 1L FROM names VERSION AS OF 1", "the query reads no stream, so it would end"),
        ("INSERT OVERWRITE t SELECT * FROM v", "Streaming mode does not support overwrite"),
        ("INSERT INTO t SELECT id, nope FROM v", "nope"),
        ("INSERT INTO plain SELECT id, count(*) FROM v GROUP BY id", "has no primary key to find them again"),
        ("RESET 'execution.checkpointing.dir'; INSERT INTO t SELECT * FROM v", "You should enable the checkpointing for sinking"),
        ("RESET 'execution.runtime-mode'; INSERT INTO t SELECT * FROM v", "the query reads a stream, which does not end"),
    ],
)
def test_what_is_no_stream_is_refused_with_a_way_out(env: ts.TableEnvironment, statement: str, message: str) -> None:
    env.execute_sql("CREATE TABLE plain (id BIGINT, n BIGINT)")
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError), match=message):
        for one in statement.split("; ") if statement.startswith("RESET") else [statement]:
            env.execute_sql(one)
    assert numbers(env) == []


@pytest.mark.deep
@pytest.mark.parametrize("atomic", [False, True])
def test_table_of_a_stream_is_there_before_it_and_goes_with_it_where_that_is_asked_for(
    env: ts.TableEnvironment, feed: Feed, checkpoints: Path, atomic: bool
) -> None:
    env.execute_sql(f"SET 'table.ctas.atomicity-enabled' = '{str(atomic).lower()}'")
    feed.add({1: 1})
    job = begin(env, "CREATE TABLE made (PRIMARY KEY (id) NOT ENFORCED) WITH ('write-only' = 'true') AS SELECT * FROM v")
    assert "made" in env.list_tables()
    until(env, job, 1, "made")
    assert rows(env, "made") == [{"id": 1, "v": 1}]
    noted(checkpoints, job)
    job.cancel()
    job.wait()
    assert job.status is JobStatus.CANCELED
    assert ("made" in env.list_tables()) is not atomic
    with pytest.raises(ts.UnsupportedError, match="the query reads no stream"):
        env.execute_sql("CREATE TABLE other AS SELECT * FROM names VERSION AS OF 1")
    env.execute_sql(f"SET 'execution.checkpointing.dir' = '{feed.folder.parent / 'other'}'")
    failed = begin(env, "CREATE TABLE broken AS SELECT id DIV (v - v) AS id FROM v")
    with pytest.raises(ts.InvalidInputError, match="Division by zero"):
        failed.result(60)
    assert env.list_tables() == (("names", "t") if atomic else ("broken", "made", "names", "t"))
