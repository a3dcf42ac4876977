"""Writes tables in Spark: the schema is checked beside the driver, tasks write files, one commit beside the driver names them.

``append`` upserts into a keyed table; a column ``_row_kind`` makes its rows changes (``+I``, ``-U``, ``+U``, ``-D``).
``overwrite`` replaces the partitions that the rows fall into (table option ``dynamic-partition-overwrite``), or the whole table.

A task that Spark runs twice writes two sets of files of different names; only the messages that reach ``commit`` count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_tablestore.sourceoptions import SourceOptions, parse_options
from pyspark_tablestore.streaming.changeorigin import check_origin
from pyspark_tablestore.tasks import plain_errors, portable
from pyspark_tablestore.typemapping import arrow_schema
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import WriteJob, abort_messages, commit_messages, prepare_write, write_partition
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.store.message import CommitMessage
from tablestore.table.table import Table
from tablestore.types.rowkind import ROW_KIND_COLUMN


@dataclass
class Written(WriterCommitMessage):
    """The result of one task: a commit message of the engine, or the error that stopped the task."""

    data: bytes | TablestoreError


class SparkTableWriter(DataSourceArrowWriter):
    """One write job. The same value, pickled, serves tasks, commit and abort."""

    def __init__(self, job: WriteJob, options: SourceOptions, *, overwrite: bool) -> None:
        self._job, self._options, self._overwrite = job, options, overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes one task's rows. An error of ours is raised by the commit: Spark would run the task again."""
        return Written(write_or_error(self._job, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publishes what all tasks wrote, as one snapshot. Where one of them failed, what the others wrote is removed."""
        with plain_errors():
            table = self._job.spec.table()
            written = messages_to_commit(table, messages)
            commit_messages(
                table,
                # Where there was no task, the message of one without rows: an overwrite must be known again.
                written or [CommitMessage.from_bytes(write_task(self._job, iter(())))],
                overwrite=self._overwrite,
                commit_user=self._options.commit_user,
                identifier=self._options.commit_identifier,
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Removes what a failed job wrote.

        Spark also calls this after a commit that raised, and all messages are there then: the commit has cleaned up itself where
        it was certain that it had not landed, and where it was not, the files have to stay.
        """
        abort(self._job, messages)


def make_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> SparkTableWriter:
    """A writer of rows of ``schema``; everything that can be said against them is said here."""
    with plain_errors():
        parsed = parse_options(options)
        return SparkTableWriter(prepare(parsed, schema, overwrite=overwrite), parsed, overwrite=overwrite)


def prepare(options: SourceOptions, schema: StructType, *, overwrite: bool) -> WriteJob:
    """Opens the table, checks the rows to come against it, and fixes what the tasks share."""
    options.check_writable()
    table, spec = options.open()
    return prepare_rows(table, spec, schema, missing_columns=options.missing_columns, overwrite=overwrite)


def prepare_rows(table: Table, spec: TableSpec, schema: StructType, *, missing_columns: str, overwrite: bool) -> WriteJob:
    """Checks the rows to come against a table, and fixes what the tasks share."""
    if overwrite and ROW_KIND_COLUMN in schema.names:
        raise InvalidInputError(
            f"the rows have a {ROW_KIND_COLUMN} column: changes are applied with mode append; drop the column to overwrite"
        )
    check_origin(schema, table.context)
    return prepare_write(table, spec, rows=arrow_schema(schema), missing_columns=missing_columns, overwrite=overwrite)


def write_task(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> bytes:
    """Writes the rows of the Spark task that this is called in."""
    context = TaskContext.get()
    return write_partition(job, batches, context.partitionId() if context else 0).to_bytes()


def write_or_error(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> bytes | TablestoreError:
    """Writes as :func:`write_task` does, and returns an error of ours as a value."""
    try:
        return write_task(job, batches)
    except TablestoreError as error:
        return portable(error)


def messages_to_commit(table: Table, messages: Sequence[WriterCommitMessage | None]) -> list[CommitMessage]:
    """The messages of what the tasks wrote. Raises the error of the first one that failed; what the others wrote is removed
    then."""
    if (
        error := next((message.data for message in _written(messages) if isinstance(message.data, TablestoreError)), None)
    ) is not None:
        abort_messages(table, _data(messages))
        raise error
    return _data(messages)


def abort(job: WriteJob, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Removes what a failed job wrote, unless all messages are there: then it is the commit that failed."""
    if any(message is None for message in messages):
        with plain_errors():
            abort_messages(job.spec.table(), _data(messages))


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _data(messages: Sequence[WriterCommitMessage | None]) -> list[CommitMessage]:
    return CommitMessage.all_from_bytes(message.data for message in _written(messages) if isinstance(message.data, bytes))
