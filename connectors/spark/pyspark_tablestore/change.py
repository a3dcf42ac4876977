"""UPDATE, DELETE and MERGE over Spark: tasks write what changes, the commit is made here.

    job = prepare_change(table, pin, change)
    snapshot = commit_rows(query, job, table)        # raises StalePlan where the query has to run again

What the rows of the query are: :mod:`tablestore.table.write.rowchange`. Those of a table with a fixed number of buckets are brought
together by bucket first, so that each bucket gets one sorted run and no key has to be looked for in the files of other tasks.
"""

import pickle
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.relation import clustered
from tablestore.distributed.change import (
    ChangeJob,
    abort_changes,
    change_partition,
    commit_changes,
    plan_rewrites,
    rewrite_task,
)
from tablestore.errors import TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.table.table import Table

Batches = Iterator[pa.RecordBatch]


def commit_rows(rows: DataFrame, job: ChangeJob, table: Table) -> Snapshot | None:
    """Apply the rows as the changes of a statement; None if they are none.

    Raises tablestore's errors for what it refuses, StalePlan among them, and Spark's for tasks that failed.
    """
    spark, context = rows.sparkSession, table.context
    if context.schema.is_keyed and context.settings.total_buckets > 0:
        rows = clustered(rows, job.pin.spec, job.pin.schema_id)
    messages = _run(table, rows, partial(_change, job))
    tasks = plan_rewrites(table, job, messages, parallelism=_parallelism(rows))
    if len(tasks) > 1:
        frame = spark.createDataFrame([(task,) for task in tasks], "task binary").repartition(len(tasks))
        messages += _run(table, frame, partial(_rewrite, job), messages)
    return commit_changes(table, job, messages, log=spark_log(spark, job.pin.spec, table))


def _parallelism(rows: DataFrame) -> int:
    return int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _run(
    table: Table, rows: DataFrame, work: Callable[[Batches], Iterator[bytes]], before: "list[bytes] | None" = None
) -> list[bytes]:
    """The messages of a job's tasks. If one failed, what all of them wrote is removed, what came ``before`` too."""
    outcomes = [pickle.loads(row["outcome"]) for row in rows.mapInArrow(partial(_outcomes, work), "outcome binary").collect()]
    messages = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    for outcome in outcomes:
        if isinstance(outcome, TablestoreError):
            abort_changes(table, [*(before or ()), *messages])
            raise outcome
    return messages


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
