"""Cuts a write into tasks for other processes.

    driver    prepare_write -> WriteJob
    task                       write_partition -> CommitMessage
    driver                                        commit_messages -> snapshot   |   abort_messages

A task can be run again: every attempt writes files of its own names, and only the messages that are committed count. Where a
process ends, a runner makes bytes of a message (:meth:`~tablestore.store.message.CommitMessage.to_bytes`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from tablestore.distributed.spec import TableSpec
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.paths import schema_path
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.store.commit.deduplication import digest_of
from tablestore.store.compact.bucketcompaction import discard, discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.table.table import Table
from tablestore.table.write.committing import CommitNote, Effect, Origin, commit_message
from tablestore.table.write.overwrite import commit_overwrite, partition_spec
from tablestore.table.write.writer import TASK_STRIDE, TableWriter, check_given
from tablestore.types.rowkind import ROW_KIND_COLUMN, kinds_from_symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """The values that every task of one distributed write must agree on; made once, on the driver. ``base``: the newest snapshot
    then. ``ranged``: each task gets one range of the rows of a table that is distributed by range."""

    spec: TableSpec
    table_uuid: str | None
    schema_id: int
    base: Snapshot | None
    first_sequence: int
    missing_columns: MissingColumns = MissingColumns.REFUSE
    overwrite: bool = False
    ranged: bool = False


def prepare_write(
    table: Table, spec: TableSpec, *, rows: pa.Schema | None = None, missing_columns: str = "refuse", overwrite: bool = False
) -> WriteJob:
    """Fix the schema and the sequence numbers of a distributed write.

    ``rows``: the schema of the rows, which is checked before anything is written.
    ``missing_columns`` as in :meth:`~tablestore.table.write.writer.TableWriter.write`; the rows of an ``overwrite`` may lack
    columns. Raises InvalidInputError, UnsupportedError.
    """
    context = table.context
    context.check_writable()
    choice = MissingColumns.NULL if overwrite else MissingColumns.of(missing_columns)
    if rows is not None:
        _check_rows(rows, context, choice)
    latest = context.snapshots.latest()
    return WriteJob(
        spec=spec,
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base=latest,
        first_sequence=context.sequence.next_after(latest),
        missing_columns=choice,
        overwrite=overwrite,
    )


def write_partition(job: WriteJob, rows: Iterable[pa.RecordBatch], task_index: int) -> CommitMessage:
    """Write one task's rows as new files, in any process; returns the commit message. Of equal keys the later task's row wins.

    Raises NotFoundError if the table was removed meanwhile, as a job that failed does with the table that it was making while
    others of its tasks still run; the files of the task are removed then.
    """
    batches = iter(rows)
    table = job.spec.table(job.schema_id)
    with task_writer(job, table, task_index) as writer:
        if (first := next(batches, None)) is not None:
            # As one stream: the writer gathers small batches before it looks at them.
            stream = pa.RecordBatchReader.from_batches(first.schema, chain((first,), batches))
            writer.write(stream, missing_columns=job.missing_columns)
        message = task_message(job, writer)
    if message.new_files and not table.context.files.exists(schema_path(job.schema_id)):
        discard(table.context, message)
        raise NotFoundError(
            f"table {table.location} was removed while a task wrote its rows; what the task wrote is removed too: create the table "
            "and write again",
            kind="no-such-table",
        )
    return message


def task_writer(job: WriteJob, table: Table, task_index: int) -> TableWriter:
    """A writer for one task's rows; ``table``: that of the job, at its schema."""
    start = (job.base, job.first_sequence + task_index * TASK_STRIDE)
    context = table.context
    if job.ranged and context.settings.ranges is not None:
        context = replace(context, settings=replace(context.settings, ranges=context.settings.ranges.alone()))
    return TableWriter(context, table.change_log, start=start, overwrites=job.overwrite)


def task_message(job: WriteJob, writer: TableWriter) -> CommitMessage:
    """The commit message of a finished task."""
    # The job's table, even if another one has taken its place: the commit checks that.
    return replace(writer.prepare(), table_uuid=job.table_uuid)


def commit_messages(
    table: Table,
    messages: Iterable[CommitMessage],
    *,
    overwrite: bool = False,
    partition: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
    commit_user: str | None = None,
    identifier: int | None = None,
    allow_empty: bool | None = None,
    log: ChangeLog | None = None,
    note: CommitNote | None = None,
) -> Snapshot | None:
    """Commit the messages of all tasks, in task order, as one snapshot. ``log``: the table's, unless another one is given.
    ``note``: what the snapshot says of its rows.

    ``allow_empty``: whether rows that nobody wrote are a snapshot too (None: where an identifier is given).

    ``partition``: what an overwrite replaces, as in ``Table.overwrite``; ``dynamic``: of these, only the partitions that the rows
    fall into (None: what the table's option says, without ``partition``).

    Committed again, the same messages change nothing: the snapshot that landed is returned, None if it has expired. Raises
    ConflictError of kind ``partly-committed`` where some were committed together with others, and ``files-gone`` where their files
    were removed because a commit was refused; InvalidInputError (``no-identity``) for an overwrite without a message or a number,
    by which it would be known again.
    """
    context, log = table.context, log or table.change_log
    # A task's message that is handed over twice is one.
    message = merge_messages(list({digest_of(message): message for message in messages}.values()))
    if message is not None and message.compact_before:
        raise InvalidInputError(
            f"table {context.files.root_uri}: expected messages of write tasks, found one of a compaction; use commit_tasks",
            kind="message",
        )
    if message is None:
        if overwrite and (commit_user is None or identifier is None):
            raise InvalidInputError(
                f"an overwrite of table {context.files.root_uri} without a message would, if it is committed again, remove what "
                "others wrote meanwhile: commit the message of a task without rows, write_partition(job, [], 0), or give "
                "commit_user and identifier",
                kind="no-identity",
            )
        message = TableWriter(context, log).prepare()
    origin = Origin(user=commit_user or context.ids.uuid(), identifier=identifier, prepared=True, note=note or CommitNote())
    empty = identifier is not None if allow_empty is None else allow_empty
    if overwrite:
        return commit_overwrite(context, log, message, partition_spec(context.schema, partition), origin, dynamic=dynamic)
    return commit_message(context, log, message, Effect(allow_empty=empty), origin)


def abort_messages(table: Table, messages: Iterable[CommitMessage]) -> None:
    """Remove the files of messages, except those that a snapshot, tag or branch names. No commit of the messages may be running."""
    for message in messages:
        discard_unnamed(table.context, message)


def _check_rows(rows: pa.Schema, context: TableContext, choice: MissingColumns) -> None:
    where = f"table {context.files.root_uri}"
    kinds = rows.names.count(ROW_KIND_COLUMN)
    if kinds > 1:
        raise InvalidInputError(f"{where}: column {ROW_KIND_COLUMN!r} is given more than once", kind="duplicate-column")
    if kinds:
        kinds_from_symbols(pa.chunked_array([], rows.field(ROW_KIND_COLUMN).type))
    check_given(context, rows, choice)
