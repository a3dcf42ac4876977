"""Tables of tablestore in Spark.

    spark.read.format("tablestore").load("/data/warehouse/shop.db/orders")
    spark.read.format("tablestore").load("/data/warehouse/shop.db/orders$snapshots")
    spark.readStream.format("tablestore").option("row-kinds", "true").load("/data/warehouse/shop.db/orders")
    df.write.format("tablestore").mode("append").option("warehouse", "/data/warehouse").option("table", "shop.orders").save()
    df.writeStream.format("tablestore").option("checkpointLocation", "/data/streams/orders").start("/data/warehouse/shop.db/orders")
    CREATE TEMPORARY VIEW orders USING tablestore OPTIONS (path '/data/warehouse/shop.db/orders')

Spark imports every installed module whose name starts with ``pyspark_`` to find data sources, and gives up on all of them if one
fails. So this module stays small and loads nothing but Spark's own base class; the work is in ``reader``, ``writer`` and
``streaming``.

Where the code runs: ``schema``, ``reader``, ``writer``, ``partitions``, ``commit`` and ``abort`` in worker processes beside the
driver, ``read`` and ``write`` on executors. Only what is pickled crosses: options, the pinned snapshot, tasks, messages.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_tablestore.reader import TableReader
    from pyspark_tablestore.streaming.batches import BatchWriter
    from pyspark_tablestore.streaming.sink import StreamWriter
    from pyspark_tablestore.streaming.streamreader import StreamReader
    from pyspark_tablestore.systemtables import MetadataPin, MetadataReader
    from pyspark_tablestore.writer import SparkTableWriter
    from tablestore.cdc.ingest.ingestrequest import IngestReport
    from tablestore.distributed.read import ReadPin
    from tablestore.format.snapshot import Snapshot

__all__ = ["DefaultSource", "foreach_batch_writer", "ingest", "lookup", "read", "register", "write"]


_F = TypeVar("_F", bound=Callable[..., Any])


def _without_frames(method: _F) -> _F:
    """Removes the frames of errors that a method raises: Spark makes text of an error with all frames; of ours only this one is
    left, above the message."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        # The method loads it anyway; the module must not (see above).
        from tablestore.errors import TablestoreError

        try:
            return method(*args, **kwargs)
        except TablestoreError as error:
            plain_error = error
        raise plain_error.with_traceback(None) from None

    return call  # type: ignore[return-value]


class DefaultSource(DataSource):
    """The data source ``tablestore``. Its options are described in :mod:`pyspark_tablestore.sourceoptions`."""

    _pin: "ReadPin | MetadataPin | None" = None

    @classmethod
    def name(cls) -> str:
        return "tablestore"

    @_without_frames
    def schema(self) -> "StructType":
        """The table's columns. They are fixed here, and Spark keeps this object for the relation."""
        from pyspark_tablestore import reader

        self._pin, schema = reader.pinned_schema(self.options)
        return schema

    @_without_frames
    def reader(self, schema: "StructType") -> "TableReader | MetadataReader":
        from pyspark_tablestore import reader, sparkserver

        sparkserver.check_schema(schema)
        return reader.make_reader(self.options, schema, self._pin)

    @_without_frames
    def streamReader(self, schema: "StructType") -> "StreamReader":
        from pyspark_tablestore.sparkserver import check_schema
        from pyspark_tablestore.sparkversion import lacks, limits_batches

        check_schema(schema)
        if not limits_batches:
            raise lacks('readStream.format("tablestore")', "4.2", "read the changes with table.consume()")
        from pyspark_tablestore.streaming import streamreader

        return streamreader.make_stream_reader(self.options, schema, self._pin)

    @_without_frames
    def writer(self, schema: "StructType", overwrite: bool) -> "SparkTableWriter":
        from pyspark_tablestore import sparkserver, writer

        sparkserver.check_schema(schema)
        return writer.make_writer(self.options, schema, overwrite=overwrite)

    @_without_frames
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":
        from pyspark_tablestore.sparkserver import check_schema
        from pyspark_tablestore.streaming import sink

        check_schema(schema)
        return sink.make_stream_writer(self.options, schema, overwrite=overwrite)


def register(spark: "SparkSession") -> None:
    """Makes the data source known to a session that did not find it by its name: ``addPyFile`` instead of an install, or a
    ``python3`` that is not the driver's.

    Spark's workers run ``python3`` where ``PYSPARK_PYTHON`` names nothing else. Where they run beside the driver (``local``), they
    run the driver's interpreter from now on. Raises UnsupportedError for a server that is no Apache Spark.
    """
    from pyspark.errors import PySparkException

    from pyspark_tablestore.sparkserver import check_server

    check_server(spark)
    context = getattr(spark, "_sc", None)
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # pyspark itself would have taken this from the environment when the session began.
        context.pythonExec = sys.executable
    try:
        spark.dataSource.register(DefaultSource)
    except PySparkException as error:
        # Spark 4.0 refuses the name of a source that it has found by itself.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def read(spark: "SparkSession", table: str, **options: Any) -> "DataFrame":
    """See :func:`pyspark_tablestore.relation.read`."""
    from pyspark_tablestore import relation

    return relation.read(spark, table, **options)


def write(df: "DataFrame", table: str, mode: str = "append", **options: Any) -> "Snapshot | None":
    """See :func:`pyspark_tablestore.relation.write`."""
    from pyspark_tablestore import relation

    return relation.write(df, table, mode, **options)


def lookup(df: "DataFrame", table: str, **options: Any) -> "DataFrame":
    """See :func:`pyspark_tablestore.streaming.lookupjoin.lookup`."""
    from pyspark_tablestore.streaming import lookupjoin

    return lookupjoin.lookup(df, table, **options)


def ingest(spark: "SparkSession", table: str, topic: str, **options: Any) -> "IngestReport":
    """See :func:`pyspark_tablestore.streaming.ingest.ingest`."""
    from pyspark_tablestore.streaming import ingest

    return ingest.ingest(spark, table, topic, **options)


def foreach_batch_writer(table: str, **options: Any) -> "BatchWriter":
    """See :func:`pyspark_tablestore.streaming.batches.foreach_batch_writer`."""
    from pyspark_tablestore.streaming import batches

    return batches.foreach_batch_writer(table, **options)
