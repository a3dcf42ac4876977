"""UPDATE, DELETE and MERGE over Spark: tasks write what changes, the commit is made here.

    job = prepare_change(table, pin, change)
    snapshot = commit_changes(table, job, change_messages(query, job, table))       # StalePlan: the query has to run again

What the rows of the query are: :mod:`tablestore.table.write.rowchange`. Those of a table with a fixed number of buckets are brought
together by bucket first, so that each bucket gets one sorted run and no key has to be looked for in the files of other tasks.
"""

import pickle
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from pyspark_tablestore.relation import clustered
from tablestore.distributed.change import ChangeJob, abort_changes, change_partition, plan_rewrites, rewrite_task
from tablestore.errors import TablestoreError
from tablestore.table.table import Table

Batches = Iterator[pa.RecordBatch]


def change_messages(rows: DataFrame, job: ChangeJob, table: Table) -> list[bytes]:
    """The messages of all tasks, for ``commit_changes``.

    Raises tablestore's errors for what it refuses and Spark's for tasks that failed; what the others wrote is removed then.
    """
    context, spark = table.context, rows.sparkSession
    if context.schema.is_keyed and context.settings.total_buckets > 0:
        rows = clustered(rows, job.pin.spec, job.pin.schema_id)
    messages: list[bytes] = []
    try:
        _run(rows, partial(_change, job), messages)
        if tasks := plan_rewrites(table, job, messages, parallelism=int(spark.conf.get("spark.sql.shuffle.partitions") or 1)):
            frame = spark.createDataFrame([(task,) for task in tasks], "task binary").repartition(len(tasks))
            _run(frame, partial(_rewrite, job), messages)
    except BaseException:
        abort_changes(table, messages)
        raise
    return messages


def _run(rows: DataFrame, work: Callable[[Batches], Iterator[bytes]], messages: list[bytes]) -> None:
    """Add the messages of a job's tasks. Raises the first error of ours, behind all messages."""
    outcomes = [pickle.loads(row["outcome"]) for row in rows.mapInArrow(partial(_outcomes, work), "outcome binary").collect()]
    messages += [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    for outcome in outcomes:
        if isinstance(outcome, TablestoreError):
            raise outcome


def _outcomes(work: Callable[[Batches], Iterator[bytes]], batches: Batches) -> Batches:
    """What became of a task. Errors of ours travel as values: Spark would make text of them, and try again what has no hope."""
    done: list[bytes | TablestoreError] = []
    try:
        done += work(batches)
    except TablestoreError as error:
        done.append(type(error)(error.message, kind=error.kind))
    yield pa.record_batch({"outcome": pa.array([pickle.dumps(one) for one in done], pa.binary())})


def _change(job: ChangeJob, batches: Batches) -> Iterator[bytes]:
    task = TaskContext.get()
    yield change_partition(job, batches, task.partitionId() if task else 0)


def _rewrite(job: ChangeJob, batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        for task in batch.column("task").to_pylist():
            yield rewrite_task(job, task)
