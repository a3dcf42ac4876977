"""Ingests over Spark: ranges of a topic's partitions are tasks on executors, the driver commits what they have written.

    import pyspark_tablestore
    print(pyspark_tablestore.ingest(spark, "shop.orders", "db.public.orders", warehouse="/data/warehouse", servers="kafka:9092"))

Executors need the connector of Kafka (extra ``kafka``), a way to the brokers, and the secrets of the client in
their own environment (``TABLESTORE_KAFKA_…``). Nothing of Spark's own for Kafka is used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

import tablestore as ts
from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.query.queryerrors import query_errors
from pyspark_tablestore.sourceoptions import parse_options, placed
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.tasks import run_each
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestReport, IngestRequest
from tablestore.cdc.topicsource import TopicSource
from tablestore.distributed.ingest.ingestrounds import IngestRounds, IngestTarget
from tablestore.distributed.ingest.ingesttask import IngestJob, RangeDone, decode_range, encode_range, ingest_range
from tablestore.distributed.ingest.topicranges import TopicRange
from tablestore.distributed.spec import TableSpec
from tablestore.errors import TablestoreError
from tablestore.table.table import Table


class SparkIngest:
    """The tasks of an ingest in one Spark session. ``storage_options``: of the file system of the tables."""

    def __init__(self, spark: SparkSession, storage_options: Mapping[str, Any]) -> None:
        self._spark, self._storage = spark, storage_options

    def commits(
        self,
        table: Table,
        open_source: Callable[[], TopicSource],
        request: IngestRequest,
        dead_letters: Table | None,
        stop: Callable[[], bool],
    ) -> Iterator[IngestCommit]:
        """Ingests, commit by commit; ``stop`` is asked between them. Raises tablestore's errors."""
        spark, place = self._spark, self._place(table)
        rounds = IngestRounds(
            place,
            open_source,
            request,
            None if dead_letters is None else self._place(dead_letters),
            run=partial(_run, spark, f"ingesting into {table.name}"),
            tasks=_parallelism(spark),
            log_of=lambda newest: spark_log(spark, place.spec, newest),
        )
        return rounds.commits(stop)

    def _place(self, table: Table) -> IngestTarget:
        return IngestTarget(table, TableSpec(location=table.location, storage_options=self._storage, branch=table.branch_name))


def ingest(
    spark: SparkSession,
    table: str,
    topic: str,
    *,
    warehouse: str | None = None,
    dead_letters: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> IngestReport:
    """``tablestore.ingest`` with Spark tasks. ``table`` and ``dead_letters`` are paths, or with ``warehouse`` names.

    The other arguments, and the result, are those of ``tablestore.ingest``, whose progress it shares: each goes on where the other
    has stopped. A commit takes up to ``commit_records`` records, in about as many tasks as Spark runs at once. Raises tablestore's
    errors.
    """
    check_server(spark)
    handle, spec = parse_options(placed(table, warehouse, storage_options)).open()
    letters = None if dead_letters is None else parse_options(placed(dead_letters, warehouse, storage_options)).open()[0]
    return ts.ingest(handle, topic, dead_letters=letters, engine=SparkIngest(spark, spec.storage_options), **options)


def _run(
    spark: SparkSession, operation: str, job: IngestJob, ranges: Sequence[TopicRange]
) -> tuple[list[RangeDone], TablestoreError | None]:
    tasks = [encode_range(chosen, place) for place, chosen in enumerate(ranges)]
    with query_errors(operation):
        outputs, error = run_each(spark, tasks, partial(_run_range, job))
    return [RangeDone.from_bytes(data) for data in outputs], error


def _run_range(job: IngestJob, task: bytes) -> bytes:
    return ingest_range(job, *decode_range(task)).to_bytes()


def _parallelism(spark: SparkSession) -> int:
    if is_remote():
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return spark.sparkContext.defaultParallelism
