"""Runs the tasks of a statement that changes rows (UPDATE, DELETE, MERGE), and commits what they wrote as one snapshot.

    rows of the query            write_changes  -> ChangeMessage
    files to be written again    rewrite_files  -> ChangeMessage       append tables without deletion vectors only
    all messages                 commit_changes -> snapshot   |   StalePlan: the whole again   |   abort_changes

What the rows are: :mod:`~tablestore.table.write.rowchange`. They may come in any order and to any task. A task can be run again;
only the messages that are committed count. :func:`run_changes` runs all of this in one process; as bytes, which other processes
take, the same values are in :mod:`tablestore.distributed.change`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import pyarrow as pa

from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import NO_ROWS, RowCounts
from tablestore.log.port import ChangeLog
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.table.write.changecommit import commit_change, matches_in
from tablestore.table.write.changewriter import ChangeWriter
from tablestore.table.write.committing import CommitNote
from tablestore.table.write.deletemarks import MatchedRows
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rewriting import rewrite_without
from tablestore.table.write.rowchange import RowChange
from tablestore.table.write.writer import TASK_STRIDE, TableWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeJob:
    """The values that every task of one statement must agree on. ``base``: the snapshot that its query reads."""

    change: RowChange
    base: Snapshot | None
    schema_id: int
    table_uuid: str | None
    first_sequence: int

    @classmethod
    def of(cls, context: TableContext, change: RowChange, base: Snapshot | None) -> "ChangeJob":
        """A statement on a table at the schema of this context."""
        return cls(
            change=change,
            base=base,
            schema_id=context.schema.id,
            table_uuid=context.table_uuid,
            first_sequence=context.sequence.next_after(base),
        )

    def start(self, task_index: int) -> tuple[Snapshot | None, int]:
        """The state in which the writer of a task begins."""
        return self.base, self.first_sequence + task_index * TASK_STRIDE

    def signed(self, message: CommitMessage) -> CommitMessage:
        """The message of a task as one of this job's table, even if another table has taken its place."""
        return message if message.table_uuid == self.table_uuid else replace(message, table_uuid=self.table_uuid)

    def at_schema(self, context: TableContext) -> TableContext:
        """The table at the schema that the statement was planned with."""
        return context if context.schema.id == self.schema_id else context.at_schema(context.schemas.read(self.schema_id))


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """The files that a task wrote, the rows that it removes, the names of the files that its new ones take the place of, and how
    many rows it changes."""

    message: CommitMessage
    removed: RemovedRows = field(default_factory=RemovedRows, compare=False)
    replaced: tuple[str, ...] = ()
    rows: RowCounts = NO_ROWS


def run_changes(
    context: TableContext,
    log: ChangeLog,
    job: ChangeJob,
    rows: Iterable[pa.RecordBatch | pa.Table],
    *,
    note: CommitNote | None = None,
) -> Snapshot | None:
    """Run all tasks of a statement in this process, and commit; None if no row changed. Raises as :func:`commit_changes`."""
    return commit_changes(context, log, job, [write_changes(context, log, job, rows)], note=note)


def write_changes(
    context: TableContext, log: ChangeLog, job: ChangeJob, rows: Iterable[pa.RecordBatch | pa.Table], task_index: int = 0
) -> ChangeMessage:
    """Write one task's rows. Raises InvalidInputError, of kind ``second-match`` for a row that comes twice."""
    with ChangeWriter(job.at_schema(context), log, job.change, start=job.start(task_index)) as writer:
        for batch in rows:
            writer.write(batch)
        return ChangeMessage(job.signed(writer.prepare()), writer.removed, rows=writer.rows)


def files_to_rewrite(context: TableContext, job: ChangeJob, messages: Iterable[ChangeMessage]) -> list[MatchedRows]:
    """The files to be written again, with the positions that are left out; none where rows are marked. Raises InvalidInputError, of
    kind ``second-match`` for a row that is changed twice."""
    return _to_rewrite(job.at_schema(context), job, _removed(messages))


def rewrite_files(
    context: TableContext, log: ChangeLog, job: ChangeJob, matches: Sequence[MatchedRows], task_index: int
) -> ChangeMessage:
    """Write files again without the rows that match; ``task_index``: its place behind those of :func:`write_changes`."""
    assert job.base is not None, "there is a snapshot that has these files"
    context = job.at_schema(context)
    with TableWriter(context, log, start=job.start(task_index)) as writer:
        replaced = rewrite_without(context, writer, job.base, matches)
        return ChangeMessage(job.signed(writer.prepare()), replaced=tuple(entry.file.file_name for entry in replaced))


def commit_changes(
    context: TableContext,
    log: ChangeLog,
    job: ChangeJob,
    messages: Sequence[ChangeMessage],
    *,
    note: CommitNote | None = None,
    prepared: bool = False,
) -> Snapshot | None:
    """Commit the messages of all tasks as one snapshot; None if no row changed. Files that no task has written again are written
    here.

    ``note``: what the snapshot says of its rows. ``prepared``: the messages have crossed processes. Raises StalePlan if rows
    changed since the job's snapshot, InvalidInputError of kind ``second-match`` for a row that is changed twice, ConflictError;
    nothing is visible then, and what the tasks wrote is removed.
    """
    context = job.at_schema(context)
    written = list(messages) or [ChangeMessage(job.signed(context.message(job.base)))]
    try:
        removed = _removed(written)
        matches = _to_rewrite(context, job, removed)
        if left := _not_replaced(matches, written) if matches else []:
            written.append(rewrite_files(context, log, job, left, len(messages)))
    except BaseException:
        abort_changes(context, written)
        raise
    message = merge_messages([part.message for part in written])
    assert message is not None, "there is a message at least"
    replaced = [match.entry for match in matches]
    rows = RowCounts(*map(sum, zip(*map(attrgetter("rows"), written), strict=True)))
    return commit_change(context, log, job.change, job.base, message, removed, replaced, rows=rows, note=note, prepared=prepared)


def _not_replaced(matches: Sequence[MatchedRows], written: Iterable[ChangeMessage]) -> list[MatchedRows]:
    done = {name for part in written for name in part.replaced}
    return [match for match in matches if match.entry.file.file_name not in done]


def abort_changes(context: TableContext, messages: Iterable[ChangeMessage]) -> None:
    """Remove the files of messages, except those that a snapshot, tag or branch names. No commit of the messages may be running."""
    for part in messages:
        discard_unnamed(context, part.message)


def _removed(messages: Iterable[ChangeMessage]) -> RemovedRows:
    removed = RemovedRows()
    for part in messages:
        removed.unite(part.removed)
    return removed


def _to_rewrite(context: TableContext, job: ChangeJob, removed: RemovedRows) -> list[MatchedRows]:
    if job.base is None or not removed or context.settings.deletion_vectors:
        return []
    return list(matches_in(context, job.base, removed))
