"""Compaction over Spark: every bucket with work to do is a task on an executor, the driver commits what they have done.

    from pyspark_tablestore.compact import compact
    print(compact(spark, "/data/warehouse/shop.db/orders", full=True))

What reads and writes the table meanwhile is not disturbed; buckets that others have compacted first are dropped and counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.sourceoptions import parse_options, placed
from tablestore.distributed.compact import commit_tasks, plan_compaction, run_task
from tablestore.distributed.spec import TableSpec
from tablestore.table.upkeep.aftercommit import after_compaction
from tablestore.table.upkeep.compaction import CompactReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without ``full`` a bucket may need several steps, one after the other.
_ROUNDS = 20


def compact(
    spark: "SparkSession",
    table: str,
    *,
    full: bool = False,
    partitions: Iterable[Mapping[str, Any]] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CompactReport:
    """Compact the table at this path, its buckets spread over the executors.

    ``full``, ``partitions`` and the result are those of ``Table.compact``; ``storage_options`` are the options of the file system.
    """
    handle, spec = parse_options(placed(table, storage_options=storage_options)).open()
    chosen = None if partitions is None else [dict(one) for one in partitions]
    report = CompactReport()
    for _ in range(1 if full else _ROUNDS):
        plan = plan_compaction(handle, full=full, partitions=chosen)
        if not plan.tasks:
            break
        done = commit_tasks(handle, _run(spark, spec, plan.tasks), full=full)
        report += done
        if not done.tasks:
            break
    after_compaction(handle.context, lambda: spark_log(spark, spec, handle), report.snapshot_ids)
    return report


def _run(spark: "SparkSession", spec: TableSpec, tasks: Iterable[bytes]) -> list[bytes]:
    """The commit messages of the tasks, each done in a Spark task of its own."""
    listed = list(tasks)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for task in batch.column("task").to_pylist():
                message = run_task(spec, task)
                if message is not None:
                    yield pa.RecordBatch.from_pydict({"message": pa.array([message], pa.binary())})

    frame = spark.createDataFrame([(task,) for task in listed], "task binary").repartition(len(listed))
    return [bytes(row["message"]) for row in frame.mapInArrow(work, "message binary").collect()]
