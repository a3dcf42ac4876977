"""Cuts a statement that changes rows (UPDATE, DELETE, MERGE) into tasks for other processes.

    driver    pin_change -> a query on that snapshot, prepare_change -> ChangeJob
    executor      rows of the query: change_partition -> message (bytes)
    driver    plan_rewrites -> tasks (bytes)          append tables without deletion vectors only
    executor      rewrite_task -> message (bytes)
    driver    commit_changes -> snapshot   |   StalePlan: the whole again   |   abort_changes

What the rows are: :mod:`tablestore.table.write.rowchange`. They may come in any order and to any task. A task can be run again;
only the messages that are committed count. Driver and executor may be one process.

    snapshot = run_until_current(table.context, attempt)        # attempt: all of the above
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablestore.distributed.read import ReadPin, decode_splits, encode_split, pack_tasks, pin_at
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.format.index.deletionvector import decode_deletion_vector, encode_deletion_vector
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.lsm.run import Section
from tablestore.options import MIB
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.scan.splits import Split
from tablestore.table.table import Table
from tablestore.table.write.changecommit import commit_change, matches_in
from tablestore.table.write.changewriter import ChangeWriter
from tablestore.table.write.committing import CommitNote
from tablestore.table.write.current import newest_to_change
from tablestore.table.write.deletemarks import Match
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rewriting import rewrite_without
from tablestore.table.write.rowchange import ChangeColumns, RowChange, check_change
from tablestore.table.write.writer import TASK_STRIDE, TableWriter

_WRITTEN, _REWRITE = "change message", "rewrite task"
REWRITE_BYTES = 128 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeJob:
    """The values that every task of one statement must agree on; made once, on the driver."""

    pin: ReadPin
    change: RowChange
    table_uuid: str | None
    base_snapshot_uuid: str | None
    first_sequence: int

    def open(self) -> Table:
        """The table at the schema that the statement was planned with."""
        return self.pin.spec.table(self.pin.schema_id)

    def base(self, context: TableContext) -> Snapshot | None:
        """The snapshot that the query read. Raises NotFoundError if it has expired."""
        return self.pin.read_snapshot(context)

    def signed(self, message: CommitMessage) -> CommitMessage:
        """The message of a task as one of this job's table and snapshot, even if another table has taken its place."""
        return replace(
            message,
            base_snapshot_id=self.pin.snapshot_id or 0,
            base_snapshot_uuid=self.base_snapshot_uuid,
            table_uuid=self.table_uuid,
        )


def change_columns(table: Table) -> ChangeColumns:
    """The columns that rows which change this table have besides ``_row_kind`` and the table's."""
    return ChangeColumns.of(table.context)


def pin_change(table: Table, spec: TableSpec, change: RowChange) -> ReadPin:
    """The snapshot that the statement's query must read, and the schema.

    Raises InvalidInputError or UnsupportedError for what the table cannot do, StalePlan where it had to be compacted first.
    """
    check_change(table.context, change)
    base = newest_to_change(table.context)
    return pin_at(table.context, spec, base.id if base else None)


def prepare_change(table: Table, pin: ReadPin, change: RowChange) -> ChangeJob:
    """Fix the values that the tasks share. Raises NotFoundError if the snapshot has expired."""
    context = table.context
    base = pin.read_snapshot(context)
    return ChangeJob(
        pin=pin,
        change=change,
        table_uuid=context.table_uuid,
        base_snapshot_uuid=base.uuid if base else None,
        first_sequence=context.sequence.next_after(base),
    )


def change_partition(job: ChangeJob, rows: Iterable[pa.RecordBatch], task_index: int) -> bytes:
    """Write one task's rows; returns its message. Raises InvalidInputError, of kind ``second-match`` for a row that comes twice."""
    table = job.open()
    first_sequence = job.first_sequence + task_index * TASK_STRIDE
    with ChangeWriter(table.context, table.change_log, job.change, first_sequence=first_sequence) as writer:
        for batch in rows:
            writer.write(batch)
        return _Written(job.signed(writer.prepare()), removed=writer.removed.encoded()).to_bytes()


def plan_rewrites(
    table: Table, job: ChangeJob, messages: Sequence[bytes], *, task_bytes: int = REWRITE_BYTES, parallelism: int = 1
) -> tuple[bytes, ...]:
    """Tasks for :func:`rewrite_task`: the files to be written again without removed rows. None where rows are marked.

    ``task_bytes`` and ``parallelism`` as in :func:`~tablestore.distributed.read.plan_read`. Raises InvalidInputError, of kind
    ``second-match`` for a row that is changed twice.
    """
    matches = _to_rewrite(_context(table, job), job, _removed(map(_Written.from_bytes, messages)))
    positions = {match.entry.file.file_name: match.positions for match in matches}
    packed = pack_tasks([_split(match.entry) for match in matches], task_bytes=task_bytes, parallelism=parallelism)
    return tuple(
        encode_task(
            _REWRITE,
            {
                "index": len(messages) + number,
                "splits": [encode_split(split) for split in splits],
                "removed": [
                    bytes_to_text(encode_deletion_vector(positions[file.file_name])) for split in splits for file in split.files
                ],
            },
        )
        for number, splits in enumerate(packed)
    )


def rewrite_task(job: ChangeJob, task: bytes) -> bytes:
    """Run one task of :func:`plan_rewrites`; returns its message."""
    parsed = decode_task(_REWRITE, task, {"index", "splits", "removed"})
    entries = [entry for split in decode_splits(parsed["splits"]) for entry in split.entries]
    vectors = [decode_deletion_vector(text_to_bytes(_REWRITE, text), _REWRITE) for text in parsed["removed"]]
    matches = [Match(entry, positions) for entry, positions in zip(entries, vectors, strict=True)]
    return _rewritten(job, job.open(), matches, int(parsed["index"])).to_bytes()


def commit_changes(
    table: Table, job: ChangeJob, messages: Sequence[bytes], *, log: ChangeLog | None = None, note: CommitNote | None = None
) -> Snapshot | None:
    """Commit the messages of all tasks as one snapshot; None if no row changed.

    Those of :func:`rewrite_task` may be among them; files that no such task has written again are written here. ``log``: the
    table's, unless another one is given; ``note``: what the snapshot says of its rows. Raises StalePlan if rows changed since the
    job's snapshot, InvalidInputError of kind ``second-match`` for a row that is changed twice, ConflictError; nothing is visible
    then, and what the tasks wrote is removed.
    """
    context, log = _context(table, job), log or table.change_log
    # A task's message that is handed over twice is one.
    written = [_Written.from_bytes(data) for data in dict.fromkeys(messages)] or [_Written(job.signed(context.message(None)))]
    try:
        removed = _removed(written)
        matches = _to_rewrite(context, job, removed)
        done = {name for part in written for name in part.replaced}
        if left := [match for match in matches if match.entry.file.file_name not in done]:
            written.append(_rewritten(job, table, left, len(messages)))
    except BaseException:
        _discard(context, written)
        raise
    message = merge_messages([part.message for part in written])
    assert message is not None, "there is a message at least"
    replaced = [match.entry for match in matches]
    return commit_change(context, log, job.change, job.base(context), message, removed, replaced, note=note)


def abort_changes(table: Table, messages: Iterable[bytes]) -> None:
    """Remove the files of messages, except those that a snapshot, tag or branch names. No commit of the messages may be running."""
    _discard(table.context, map(_Written.from_bytes, messages))


@dataclass(frozen=True, slots=True)
class _Written:
    """The files that a task wrote, the positions that it removes, and the files that its new ones take the place of."""

    message: CommitMessage
    removed: Mapping[str, bytes] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        removed = {name: bytes_to_text(data) for name, data in self.removed.items()}
        content = {"message": bytes_to_text(self.message.to_bytes()), "removed": removed, "replaced": list(self.replaced)}
        return encode_task(_WRITTEN, content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "_Written":
        parsed = decode_task(_WRITTEN, data, {"message", "removed", "replaced"})
        message = CommitMessage.from_bytes(text_to_bytes(_WRITTEN, parsed["message"]))
        removed = {name: text_to_bytes(_WRITTEN, text) for name, text in parsed["removed"].items()}
        return cls(message, removed, tuple(parsed["replaced"]))


def _context(table: Table, job: ChangeJob) -> TableContext:
    """The table at the schema of the job."""
    context = table.context
    return context if context.schema.id == job.pin.schema_id else context.at_schema(context.schemas.read(job.pin.schema_id))


def _removed(written: Iterable[_Written]) -> RemovedRows:
    removed = RemovedRows()
    for part in written:
        removed.add_encoded(part.removed)
    return removed


def _to_rewrite(context: TableContext, job: ChangeJob, removed: RemovedRows) -> list[Match]:
    """The files that have to be written again, with the positions that are left out."""
    base = job.base(context)
    return [] if base is None or context.settings.deletion_vectors else list(matches_in(context, base, removed))


def _rewritten(job: ChangeJob, table: Table, matches: Sequence[Match], task_index: int) -> _Written:
    context = _context(table, job)
    base = job.base(context)
    assert base is not None, "there is a snapshot that has these files"
    first_sequence = job.first_sequence + task_index * TASK_STRIDE
    with TableWriter(context, table.change_log, first_sequence=first_sequence) as writer:
        replaced = rewrite_without(context, writer, base, matches)
        names = tuple(entry.file.file_name for entry in replaced)
        return _Written(job.signed(writer.prepare()), replaced=names)


def _split(entry: ManifestEntry) -> Split:
    return Split(
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        sections=(Section(((entry.file,),)),),
    )


def _discard(context: TableContext, written: Iterable[_Written]) -> None:
    for part in written:
        discard_unnamed(context, part.message)
