"""Runs INSERT INTO … SELECT over streams: a query that writes a table with each of its batches until it is stopped.

Rows that a query only adds are written in append mode. Where Spark cannot say that rows only come (aggregates without a watermark),
a table with a primary key takes the rows that changed, which it upserts, and one without is refused.
"""

import re

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_tablestore.query.queryerrors import error_of_worker, ours, query_errors
from pyspark_tablestore.streaming.batches import BatchWriter, running_checkpoints
from pyspark_tablestore.streaming.streamoptions import place_of
from tablestore.environment.engine import BoundQuery, InsertTarget
from tablestore.environment.streams.microbatches import of_statement
from tablestore.errors import ConflictError, InvalidInputError, StorageError, TablestoreError

_MODES = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
_TWICE = "CONCURRENT_STREAM_LOG_UPDATE"
_REASON = re.compile(r"terminated with exception: (.*?)(?: SQLSTATE: \w{5})?\s*(?:\n=== |\Z)", re.DOTALL)
_MOST = 2000


class StreamingInsert:
    """A query that runs: what an environment's job waits for and stops."""

    def __init__(self, query: StreamingQuery, writer: BatchWriter, what: str, bound: BoundQuery) -> None:
        self._query, self._writer, self._what, self._bound = query, writer, what, bound

    @property
    def id(self) -> str:
        """The query's id, which its checkpoint keeps."""
        return self._query.id

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end; True if it has come. Raises the error that the query ended with."""
        try:
            # Its annotation says whole seconds; it takes parts of one too.
            return bool(self._query.awaitTermination(timeout_s))  # type: ignore[arg-type]
        except Exception as error:
            raise self._ended(error) from error

    def stop(self) -> None:
        """Ends it: the batch that it is at lands whole or not at all."""
        with query_errors(self._what):
            self._query.stop()

    def _ended(self, error: Exception) -> TablestoreError:
        if (failure := self._writer.failure) is not None:
            return failure if isinstance(failure, TablestoreError) else ours(failure, self._what, self._bound)
        if _TWICE in str(error):
            return ConflictError(
                f"{self._what}: another process runs the same statement with the same 'execution.checkpointing.dir'. Nothing is "
                "lost or doubled: let one of the two go on, and stop the other one or give it another folder",
                kind="newer-run",
            )
        if (worker_error := error_of_worker(str(error))) is not None:
            return of_statement(worker_error)
        match = _REASON.search(str(error))
        reason = (match[1] if match else str(error)).strip()[:_MOST]
        return StorageError(
            f"{self._what}: Spark ended the stream ({reason}). What has landed stays; the same statement goes on behind it",
            kind="spark",
        )


def start_insert(
    frame: DataFrame, query: BoundQuery, target: InsertTarget, *, checkpoint: str, interval_ms: int | None
) -> StreamingInsert:
    """Begins to write the rows of a stream. Raises InvalidInputError, UnsupportedError for a query that Spark cannot stream."""
    operation = f"writing the stream to {target.table.name}"
    if place_of(checkpoint) in running_checkpoints(frame.sparkSession):
        # Spark would stop that one, and this one would go on at its place, whatever it reads.
        raise InvalidInputError(
            f"{operation}: a stream with the checkpoint {checkpoint} runs already: cancel its job first, or SET "
            "'execution.checkpointing.dir' to another folder",
            kind="streaming",
        )
    writer = BatchWriter(target.table, target.spec, missing_columns=target.missing_columns)
    sink = frame.writeStream.foreachBatch(writer).option("checkpointLocation", checkpoint)
    if interval_ms is not None:
        sink = sink.trigger(processingTime=f"{interval_ms} milliseconds")
    with query_errors(operation, query):
        try:
            started = sink.outputMode("append").start()
        except AnalysisException as error:
            if error.getCondition() != _MODES:
                raise
            if not target.table.primary_key:
                raise InvalidInputError(
                    f"{operation}: rows of the query change after they were written, and the table has no primary key to find them "
                    "again: write into a table with one, or give the stream a watermark",
                    kind="streaming",
                ) from error
            started = sink.outputMode("update").start()
    return StreamingInsert(started, writer, operation, query)
