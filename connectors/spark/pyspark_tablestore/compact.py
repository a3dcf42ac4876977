"""Compacts tables over Spark: every bucket with work to do is a task on an executor, the driver commits what they have done.
Rows whose buckets are postponed (``bucket = -2``) are brought into buckets by the driver, before that.

    from pyspark_tablestore.compact import compact
    print(compact(spark, "/data/warehouse/shop.db/orders", full=True))

What reads and writes the table meanwhile is not disturbed; buckets that others have compacted first are dropped and counted.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.sourceoptions import parse_options, placed
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.tasks import run_each
from tablestore.distributed.compact import CompactTask, commit_tasks, plan_compaction, run_task
from tablestore.distributed.spec import TableSpec
from tablestore.errors import TablestoreError
from tablestore.store.context import Shared
from tablestore.store.message import CommitMessage
from tablestore.table.upkeep.aftercommit import after_compaction
from tablestore.table.upkeep.compaction import CompactReport
from tablestore.table.upkeep.postponed import compact_postponed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without ``full`` a bucket may need several steps, one after the other.
_ROUNDS = 20
# Shared in this Python worker, which Spark keeps for later tasks.
_SHARED = Shared()


def compact(
    spark: "SparkSession",
    table: str,
    *,
    full: bool = False,
    partitions: Iterable[Mapping[str, Any]] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CompactReport:
    """Compacts the table at this path, its buckets spread over the executors.

    ``full``, ``partitions`` and the result are those of ``Table.compact``; ``storage_options`` are the options of the file system.
    Raises the first error of a bucket, behind the commit of the other buckets of its round.
    """
    check_server(spark)
    handle, spec = parse_options(placed(table, storage_options=storage_options)).open()
    chosen = None if partitions is None else [dict(partition) for partition in partitions]
    report = compact_postponed(handle.refresh().context, chosen)
    error: TablestoreError | None = None
    for _ in range(1 if full else _ROUNDS):
        plan = plan_compaction(handle, full=full, partitions=chosen)
        if not plan.tasks:
            break
        messages, error = run_each(spark, [task.to_bytes() for task in plan.tasks], partial(_run_task, spec))
        part_report = commit_tasks(handle, [CommitMessage.from_bytes(data) for data in messages], full=full)
        report += part_report
        if error is not None or not part_report.tasks:
            break
    after_compaction(handle.context, lambda: spark_log(spark, spec, handle), report.snapshot_ids)
    if error is not None:
        raise type(error)(f"{error.message}; buckets without an error: {report}", kind=error.kind)
    return report


def _run_task(spec: TableSpec, task: bytes) -> bytes | None:
    # Found by its name in the worker: what is shared does not travel.
    message = run_task(spec.open(shared=_SHARED), CompactTask.from_bytes(task))
    return None if message is None else message.to_bytes()
