"""Runs UPDATE, DELETE and MERGE over Spark: tasks write what changes, the commit is made here.

    job = prepare_change(table, pin, change)
    messages = change_messages(query, spec, job, table)
    snapshot = commit_changes(table.context, log, job, messages, prepared=True)     # StalePlan: the query has to run again

What the rows of the query are: :mod:`tablestore.table.write.rowchange`. Those of a table with a fixed number of buckets are brought
together by bucket first, so that each bucket gets one sorted run and no key has to be looked for in the files of other tasks. Few
rows are written by one task.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from pyspark_tablestore.relation import clustered
from pyspark_tablestore.tasks import Batches, run_each, run_tasks
from tablestore.distributed.change import RewriteTask, decode_messages, encode_message, plan_rewrites, run_rewrite
from tablestore.distributed.spec import TableSpec
from tablestore.options import MIB
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, ChangeMessage, abort_changes, write_changes

# One task reads and writes so much.
MOST_BYTES_OF_A_TASK = 32 * MIB


def change_messages(
    rows: DataFrame, spec: TableSpec, job: ChangeJob, table: Table, *, is_small: bool = False
) -> list[ChangeMessage]:
    """The messages of all tasks, for ``commit_changes``. ``is_small``: the rows are known to be few.

    Raises tablestore's errors for what it refuses and Spark's for tasks that failed; what the others wrote is removed then.
    """
    context, spark = table.context, rows.sparkSession
    if is_small or _is_small(rows):
        rows = rows.coalesce(1)
    elif context.schema.is_keyed and context.settings.total_buckets > 0:
        rows = clustered(rows, spec, job.schema_id)
    messages: list[ChangeMessage] = []
    try:
        outputs, error = run_tasks(rows, partial(_change, spec, job))
        messages += decode_messages(outputs)
        if error is not None:
            raise error
        parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        if tasks := plan_rewrites(table, job, messages, parallelism=parallelism):
            outputs, error = run_each(spark, [task.to_bytes() for task in tasks], partial(_rewrite, spec, job))
            messages += decode_messages(outputs)
            if error is not None:
                raise error
    except BaseException:
        abort_changes(context, messages)
        raise
    return messages


def _is_small(rows: DataFrame) -> bool:
    """True if Spark knows that all that the query reads is little."""
    if is_remote():
        return False
    plan: Any = rows
    return int(str(plan._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) <= MOST_BYTES_OF_A_TASK


def _change(spec: TableSpec, job: ChangeJob, batches: Batches) -> Iterator[bytes]:
    task, table = TaskContext.get(), spec.table(job.schema_id)
    yield encode_message(write_changes(table.context, table.change_log, job, batches, task.partitionId() if task else 0))


def _rewrite(spec: TableSpec, job: ChangeJob, task: bytes) -> bytes:
    return encode_message(run_rewrite(spec.table(job.schema_id), job, RewriteTask.from_bytes(task)))
