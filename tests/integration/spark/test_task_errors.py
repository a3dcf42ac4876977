"""An error of a task on Spark is the error that the same rows raise without Spark: its class, message and kind, at once."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark_tablestore.relation
import pytest
from pyspark_tablestore import write
from pyspark_tablestore.compact import compact

import tablestore as ts
from tablestore.distributed.write import WriteJob
from tablestore.errors import FormatError, InvalidInputError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32())])


@pytest.fixture
def table(catalog: ts.Catalog) -> ts.Table:
    table = catalog.create_table("shop.t", schema=ROWS, primary_key=["id"], options={"bucket": "2", "write-only": "true"})
    table.upsert(pa.table({"id": [1, 2], "v": [1, 2]}, schema=ROWS))
    return table


@pytest.fixture
def failed_tasks(spark: "SparkSession") -> Iterator[Callable[[], int]]:
    """How many attempts of tasks have failed in the jobs of this test."""
    context = spark.sparkContext
    context.setJobGroup("errors", "errors of tasks")

    def count() -> int:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("errors")]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numFailedTasks for stage in stages if stage is not None)

    yield count
    context.setLocalProperty("spark.jobGroup.id", "none")


def files(table: ts.Table) -> set[Path]:
    return set(Path(table.location).rglob("*.parquet"))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT id + 10 AS id, CAST(id AS INT) AS v FROM range(0, 90, 1, 3) UNION ALL SELECT CAST(NULL AS BIGINT), 1",
            pa.table({"id": pa.array([None], pa.int64()), "v": pa.array([1], pa.int32())}),
        ),
        (
            "SELECT id + 10 AS id, CAST(id AS DECIMAL(20)) AS v FROM range(0, 90, 1, 3) UNION ALL SELECT 5L, 99999999999BD",
            pa.table({"id": pa.array([5], pa.int64()), "v": pa.array([99999999999], pa.decimal128(20))}),
        ),
    ],
    ids=["not null", "overflow"],
)
def test_rows_that_do_not_fit(
    spark: "SparkSession", table: ts.Table, failed_tasks: Callable[[], int], query: str, rows: pa.Table
) -> None:
    with pytest.raises(InvalidInputError) as here:
        table.upsert(rows)
    before = files(table)
    with pytest.raises(InvalidInputError) as there:
        write(spark.sql(query), table.location)
    assert (there.value.message, there.value.kind) == (here.value.message, here.value.kind)
    assert files(table) == before and table.refresh().scan().count() == 2
    # A data frame's writer can only speak through Spark: the class, the message and the kind are in the text.
    with pytest.raises(Exception, match=rf"(?s)tablestore.errors.InvalidInputError.*\(kind {here.value.kind}\)") as said:
        spark.sql(query).write.format("tablestore").mode("append").save(table.location)
    assert here.value.message in str(said.value)
    assert files(table) == before
    assert failed_tasks() == 0


def test_a_statement_that_writes_what_does_not_fit(spark: "SparkSession", table: ts.Table, failed_tasks: Callable[[], int]) -> None:
    before = files(table)
    rows = "SELECT nullif(id, 0), 1 FROM range(0, 31, 1, 1) UNION ALL SELECT 100L + id, 2 FROM range(9)"
    with (
        ts.TableEnvironment.create(Path(table.location).parent.parent, spark=spark) as env,
        pytest.raises(InvalidInputError, match=r"'id'.*NOT NULL, found nulls in 1 of 31 rows") as caught,
    ):
        env.execute_sql(f"INSERT INTO shop.t {rows}")
    assert caught.value.kind == "null-in-not-null"
    assert files(table) == before
    assert failed_tasks() == 0


def test_a_disk_that_takes_no_more(
    spark: "SparkSession", table: ts.Table, failed_tasks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small_disk(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        from pyspark import TaskContext
        from pyspark_tablestore.writer import write_task

        task = TaskContext.get()
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        if task is not None and task.partitionId() == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, most[1]))
        try:
            yield write_task(job, batches)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)

    monkeypatch.setattr(pyspark_tablestore.relation, "_write_rows", small_disk)
    before = files(table)
    with pytest.raises(StorageError, match="File too large") as caught:
        write(spark.range(0, 1000, 1, 2).selectExpr("id", "1 AS v"), table.location)
    assert caught.value.kind == "exhausted"
    assert files(table) == before and table.refresh().scan().count() == 2
    assert failed_tasks() == 0


@pytest.mark.deep
def test_a_damaged_bucket_is_named_and_the_others_are_compacted(
    spark: "SparkSession", table: ts.Table, failed_tasks: Callable[[], int]
) -> None:
    table.upsert(pa.table({"id": list(range(100)), "v": [0] * 100}, schema=ROWS))
    damaged = next(path for path in files(table) if path.parent.name == "bucket-0" and pq.read_metadata(path).num_rows > 2)
    chunk = pq.read_metadata(damaged).row_group(0).column(2)
    data = bytearray(damaged.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 0xFF
    damaged.write_bytes(data)
    with pytest.raises(FormatError, match=f"(?s){damaged.name}.*buckets without an error: snapshot 3: 1 task") as there:
        compact(spark, table.location, full=True)
    with pytest.raises(FormatError) as here:
        table.refresh().compact(full=True)
    assert there.value.kind == here.value.kind
    levels = {(row["bucket"], row["level"]) for row in table.refresh().files().to_pylist()}
    assert levels == {(0, 0), (1, 5)}
    # Readers say the kind too.
    with ts.TableEnvironment.create(Path(table.location).parent.parent, spark=spark) as env:
        with pytest.raises(FormatError) as read:
            env.execute_sql("SELECT sum(v) FROM shop.t").to_arrow()
        assert read.value.kind == here.value.kind
    assert failed_tasks() <= 3
