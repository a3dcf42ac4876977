"""Cuts a statement that changes rows (UPDATE, DELETE, MERGE) into tasks, and gives tasks and messages a form in bytes.

    driver    pin_change -> a query on that snapshot, prepare_change -> ChangeJob
    task          rows of the query: write_changes -> ChangeMessage
    driver    plan_rewrites -> RewriteTask            append tables without deletion vectors only
    task          run_rewrite -> ChangeMessage
    driver    commit_changes -> snapshot   |   StalePlan: the whole again   |   abort_changes

What a task does: :mod:`tablestore.table.write.changetasks`. Where a process ends, a runner makes bytes of a task or message.

    snapshot = run_until_current(table.context, attempt)        # attempt: all of the above
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tablestore.distributed.read import ReadPin, decode_splits, encode_split, pack_tasks, pin_at
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.format.index.deletionvector import decode_deletion_vector, encode_deletion_vector
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import RowCounts
from tablestore.lsm.run import Section
from tablestore.options import MIB
from tablestore.store.message import CommitMessage
from tablestore.store.scan.splits import Split
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, ChangeMessage, files_to_rewrite, rewrite_files
from tablestore.table.write.current import settled
from tablestore.table.write.deletemarks import MatchedRows
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rowchange import ChangeColumns, RowChange, check_change

_MESSAGE, _REWRITE = "change message", "rewrite task"
REWRITE_BYTES = 128 * MIB


def change_columns(table: Table) -> ChangeColumns:
    """The columns that rows which change this table have besides ``_row_kind`` and the table's."""
    return ChangeColumns.of(table.context)


def pin_change(table: Table, spec: TableSpec, change: RowChange, base: Snapshot | None) -> ReadPin:
    """The snapshot that the statement's query must read, and the schema. ``base``: the newest snapshot.

    Raises InvalidInputError or UnsupportedError for what the table cannot do, StalePlan where it had to be compacted first.
    """
    check_change(table.context, change)
    base = settled(table.context, base)
    return pin_at(table.context, spec, base.id if base else None, base.uuid if base else None)


def prepare_change(table: Table, pin: ReadPin, change: RowChange) -> ChangeJob:
    """Fix the values that the tasks share. Raises NotFoundError if the snapshot has expired."""
    context = table.context
    return ChangeJob.of(pin.at_schema(context), change, pin.read_snapshot(context))


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Files to be written again without the rows that match; ``index``: its place among the tasks of the statement."""

    index: int
    matches: tuple[MatchedRows, ...]

    def to_bytes(self) -> bytes:
        """Versioned JSON."""
        content = {
            "index": self.index,
            "splits": [encode_split(_split(match.entry)) for match in self.matches],
            "removed": [bytes_to_text(encode_deletion_vector(match.positions)) for match in self.matches],
        }
        return encode_task(_REWRITE, content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "RewriteTask":
        """Parses what :meth:`to_bytes` gave. Raises FormatError."""
        parsed = decode_task(_REWRITE, data, {"index", "splits", "removed"})
        entries = [entry for split in decode_splits(parsed["splits"]) for entry in split.entries]
        vectors = [decode_deletion_vector(text_to_bytes(_REWRITE, text), _REWRITE) for text in parsed["removed"]]
        return cls(int(parsed["index"]), tuple(MatchedRows(*pair) for pair in zip(entries, vectors, strict=True)))


def plan_rewrites(
    table: Table, job: ChangeJob, messages: Sequence[ChangeMessage], *, task_bytes: int = REWRITE_BYTES, parallelism: int = 1
) -> tuple[RewriteTask, ...]:
    """Tasks that write files again without removed rows. None where rows are marked.

    ``task_bytes`` and ``parallelism`` as in :func:`~tablestore.distributed.read.plan_read`. Raises InvalidInputError, of kind
    ``second-match`` for a row that is changed twice.
    """
    matches = {match.entry.file.file_name: match for match in files_to_rewrite(table.context, job, messages)}
    packed = pack_tasks([_split(match.entry) for match in matches.values()], task_bytes=task_bytes, parallelism=parallelism)
    return tuple(
        RewriteTask(len(messages) + number, tuple(matches[file.file_name] for split in splits for file in split.files))
        for number, splits in enumerate(packed)
    )


def run_rewrite(table: Table, job: ChangeJob, task: RewriteTask) -> ChangeMessage:
    """Run one task of :func:`plan_rewrites`; returns its message."""
    return rewrite_files(table.context, table.change_log, job, task.matches, task.index)


def encode_message(written: ChangeMessage) -> bytes:
    """A task's message for the process that commits."""
    removed = {name: bytes_to_text(data) for name, data in written.removed.encoded().items()}
    message = bytes_to_text(written.message.to_bytes())
    content = {"message": message, "removed": removed, "replaced": list(written.replaced), "rows": list(written.rows)}
    return encode_task(_MESSAGE, content)


def decode_messages(encoded: Iterable[bytes]) -> list[ChangeMessage]:
    """The messages of :func:`encode_message`; one that is handed over twice is one. Raises FormatError."""
    return [_decoded(data) for data in dict.fromkeys(encoded)]


def _decoded(data: bytes) -> ChangeMessage:
    parsed = decode_task(_MESSAGE, data, {"message", "removed", "replaced", "rows"})
    removed = RemovedRows.decoded({name: text_to_bytes(_MESSAGE, text) for name, text in parsed["removed"].items()})
    message = CommitMessage.from_bytes(text_to_bytes(_MESSAGE, parsed["message"]))
    return ChangeMessage(message, removed, tuple(parsed["replaced"]), RowCounts(*map(int, parsed["rows"])))


def _split(entry: ManifestEntry) -> Split:
    return Split(
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        sections=(Section(((entry.file,),)),),
    )
