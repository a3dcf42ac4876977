"""Writes every batch of ``df.writeStream.format("tablestore")`` as one snapshot, once.

    append      rows are added or, in a keyed table, upserted; a column ``_row_kind`` makes them changes
    complete    every batch replaces all rows of the table

Spark refuses update mode for data sources in Python: ``foreach_batch_writer`` takes its rows. Spark makes a new writer for the
tasks of a batch and another one for its commit, so nothing but messages goes from one to the other: they name the query.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_tablestore.sparkversion import StreamArrowWriter, lacks, streams_arrow
from pyspark_tablestore.streaming.streamoptions import StreamOptions, parse_stream_options
from pyspark_tablestore.tasks import plain_errors
from pyspark_tablestore.writer import Written, abort, messages_to_commit, prepare, write_or_error
from tablestore.distributed.streambatch import StreamBatch, commit_batch
from tablestore.distributed.write import WriteJob
from tablestore.errors import InvalidInputError

# The properties that Spark gives the tasks of a stream: its id, and the id of this run of it, which is the group of its jobs.
QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"


@dataclass
class StreamWritten(Written):
    """The result of one task, with the query and the run of it that it wrote for."""

    query_id: str
    run_id: str | None


class StreamWriter(StreamArrowWriter):  # type: ignore[misc]
    """Writes the batches of one query. ``overwrite``: each in place of all rows."""

    def __init__(self, job: WriteJob, options: StreamOptions, *, overwrite: bool) -> None:
        self._job, self._options, self._overwrite = job, options, overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamWritten:
        """Writes one task's rows. An error of ours is raised by the commit: Spark would run the task again."""
        context = TaskContext.get()
        if context is None or (query_id := context.getLocalProperty(QUERY_ID)) is None:
            with plain_errors():
                raise InvalidInputError("a batch of a stream without a query id: this Spark does not name the query to its tasks")
        return StreamWritten(write_or_error(self._job, iterator), query_id, context.getLocalProperty(_RUN_ID))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Publishes what the tasks of a batch wrote, unless that has been done."""
        with plain_errors():
            table = self._job.spec.table()
            written = messages_to_commit(table, messages)
            # Spark runs one task at least.
            of = next(message for message in messages if isinstance(message, StreamWritten))
            batch = StreamBatch(
                query_id=of.query_id,
                batch_id=batchId,
                checkpoint=self._options.checkpoint,
                run=of.run_id,
                adopts=self._options.adopts,
            )
            commit_batch(table, written, batch, overwrite=self._overwrite)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Removes what a failed batch wrote. With all messages there it is the commit that failed, and it has cleaned up itself."""
        abort(self._job, messages)


def make_stream_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> StreamWriter:
    """A writer of batches of rows of ``schema``; everything that can be said against them is said here."""
    with plain_errors():
        parsed = parse_stream_options(options)
        if not streams_arrow:
            raise lacks('writeStream.format("tablestore")', "4.1", "write with foreachBatch(foreach_batch_writer(table))")
        return StreamWriter(prepare(parsed.table, schema, overwrite=overwrite), parsed, overwrite=overwrite)
