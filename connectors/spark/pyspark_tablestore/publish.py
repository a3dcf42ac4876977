"""Publishes over Spark: every publisher slot of a table's log is a task on an executor.

    from pyspark_tablestore.publish import publish
    for report in publish(spark, "/data/warehouse/shop.db/orders"):
        print(report)

A task opens its slot, which fences an earlier holder, sends what the snapshots have and the log lacks, and closes it again. The log
says itself how far it is: a task that Spark repeats or runs twice, two jobs at once, an executor that dies in the middle, all leave
every change in the log once. The lock that keeps publishers from fencing each other holds on one host; across hosts the one that
is fenced steps back.

Executors need the connector of the log system (extra ``kafka``), a way to the brokers, and the secrets of the
client in their own environment (``TABLESTORE_KAFKA_…``).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_tablestore.sourceoptions import parse_options, placed
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.tasks import Batches, run_tasks
from tablestore.distributed.publish import publish_slot
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.taskjson import decode_task, encode_task
from tablestore.errors import StorageError
from tablestore.log.port import ChangeLog
from tablestore.log.publish.backlog import Backlog, log_backlog
from tablestore.log.publish.publisher import PublishReport
from tablestore.table.table import Table
from tablestore.telemetry.tracing import traced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# From here on tasks are worth the second or two that they take to begin: a process sends some 100,000 records a second.
PARALLEL_BACKLOG = Backlog(rows=500_000, bytes=64 * 1024 * 1024)

_REPORT, _FIELDS = "publish report", tuple(field.name for field in fields(PublishReport))
_NAMES_AN_ERROR = re.compile(r"^(?:: )?([\w.$]+(?:Error|Exception)\b.*)$", re.MULTILINE)


def publish(
    spark: "SparkSession", table: str, *, look: bool = False, storage_options: Mapping[str, Any] | None = None
) -> tuple[PublishReport, ...]:
    """Publishes what the snapshots of the table at this path have and its log lacks, one Spark task per publisher slot.

    ``look`` and the result are those of ``tablestore log publish``: a report per slot, none if the log is the file store.
    ``storage_options`` are the options of the file system. Every slot is tried; then the first error is raised. Raises
    tablestore's errors, StorageError for tasks that Spark gave up.
    """
    check_server(spark)
    handle, spec = parse_options(placed(table, storage_options=storage_options)).open()
    return _publish_slots(spark, spec, handle, look=look)


def spark_log(spark: "SparkSession", spec: TableSpec, table: Table) -> ChangeLog:
    """The log of a table for a writer with a session: after a commit much is published as tasks; little, or a single slot, here."""
    log = table.change_log

    def publish_written() -> object:
        if log.slots == 1:
            return log.publish()
        backlog = log_backlog(table.context, log.settings, enough=PARALLEL_BACKLOG)
        if backlog.rows < PARALLEL_BACKLOG.rows and backlog.bytes < PARALLEL_BACKLOG.bytes:
            return log.publish()
        return _publish_slots(spark, spec, table, look=False)

    return log.publishing(publish_written)


def _publish_slots(spark: "SparkSession", spec: TableSpec, table: Table, *, look: bool) -> tuple[PublishReport, ...]:
    log = table.change_log
    if not log.slots:
        return ()
    # The tasks are about to fence those that are open here.
    log.close()
    with traced(table.context.shared.observers.tracer, "publish", table.location) as span:
        reports = _published(spark, spec, log.slots, look=look)
        span.record(rows=sum(report.records for report in reports))
    return reports


def _published(spark: "SparkSession", spec: TableSpec, slots: int, *, look: bool) -> tuple[PublishReport, ...]:
    # As many partitions as rows: a task each.
    numbers = spark.range(0, slots, 1, slots)
    try:
        reports, error = run_tasks(numbers, partial(_publish, partial(publish_slot, spec, slots, look=look)))
    # Classic sessions and Spark Connect raise errors of different trees.
    except Exception as raised:
        raise StorageError(
            f"publishing {spec.location} as Spark tasks: Spark gave the job up ({_reason(raised)}); what was sent is in the log "
            "once. Repeat it, or run `tablestore log publish`",
            kind="spark",
        ) from raised
    if error is not None:
        raise error
    return tuple(sorted(map(_report, reports), key=lambda report: report.slot))


def _publish(publish_one: Callable[[int], PublishReport], batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        for slot in batch.column("id").to_pylist():
            yield encode_task(_REPORT, asdict(publish_one(slot)))


def _report(data: bytes) -> PublishReport:
    parsed = decode_task(_REPORT, data, _FIELDS)
    return PublishReport(**{name: parsed[name] for name in _FIELDS})


def _reason(error: Exception) -> str:
    """The line of a trace, Python's or Java's, that names the error."""
    match = _NAMES_AN_ERROR.search(str(error))
    return (match[1] if match else f"{type(error).__name__}: {error}")[:500]
