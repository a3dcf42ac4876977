"""Spreads a compaction over processes: the driver plans buckets, tasks do them, the driver commits.

    driver    plan_compaction -> CompactTask, one for each bucket that needs it
    task                         run_task -> CommitMessage
    driver                                   commit_tasks -> a COMPACT snapshot per task

A task whose input files others have replaced is dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.errors import InvalidInputError
from tablestore.store.compact.bucketcompaction import discard_unnamed, run_compaction
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import CompactReport, commit_compaction
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets

_KIND = "compaction task"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTask:
    """The compaction of one bucket, as it is in a snapshot."""

    partition: bytes
    bucket: int
    snapshot_id: int
    full: bool

    def to_bytes(self) -> bytes:
        """Versioned JSON."""
        place = {"partition": bytes_to_text(self.partition), "bucket": self.bucket}
        return encode_task(_KIND, {**place, "snapshot": self.snapshot_id, "full": self.full})

    @classmethod
    def from_bytes(cls, data: bytes) -> "CompactTask":
        """Parses what :meth:`to_bytes` gave. Raises FormatError."""
        parsed = decode_task(_KIND, data, {"partition", "bucket", "snapshot", "full"})
        return cls(
            partition=text_to_bytes(_KIND, parsed["partition"]),
            bucket=int(parsed["bucket"]),
            snapshot_id=int(parsed["snapshot"]),
            full=bool(parsed["full"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPlan:
    """Buckets to compact, the largest first."""

    full: bool
    tasks: tuple[CompactTask, ...]


def plan_compaction(table: Table, *, full: bool = False, partitions: Iterable[Mapping[str, Any]] | None = None) -> CompactPlan:
    """The buckets of the newest snapshot with something to do. Raises as ``Table.compact`` does."""
    context = table.refresh().context
    context.check_writable()
    matches = partition_matcher(context, partitions)
    latest = context.snapshots.latest()
    if latest is None:
        return CompactPlan(full=full, tasks=())
    picker = TaskPicker(context)
    sized_tasks: list[tuple[int, CompactTask]] = []
    for (partition, bucket), files in live_buckets(context, latest, lambda place: matches(place[0])).items():
        compaction = picker.pick(files, full=full)
        if compaction is not None:
            task = CompactTask(partition=partition, bucket=bucket, snapshot_id=latest.id, full=full)
            sized_tasks.append((compaction.size_bytes, task))
    sized_tasks.sort(key=lambda item: (-item[0], item[1].partition, item[1].bucket))
    return CompactPlan(full=full, tasks=tuple(task for _, task in sized_tasks))


def run_task(context: TableContext, task: CompactTask) -> CommitMessage | None:
    """Run one task of :func:`plan_compaction`, in any process; returns the commit message, None if nothing is left to do."""
    place = (task.partition, task.bucket)
    snapshot = context.snapshots.read(task.snapshot_id)
    bucket = live_buckets(context, snapshot, {place}).get(place)
    compaction = TaskPicker(context).pick(bucket, full=task.full) if bucket is not None else None
    if bucket is None or compaction is None:
        return None
    return run_compaction(context, snapshot, bucket, compaction)


def commit_tasks(table: Table, messages: Sequence[CommitMessage], *, full: bool = False) -> CompactReport:
    """Commit the messages of tasks. If one cannot be committed, the files of those after it are removed first."""
    context = table.refresh().context
    if any(not message.compact_before for message in messages):
        raise InvalidInputError(
            f"table {context.files.root_uri}: expected messages of compaction tasks, found one of a write; commit it with "
            "commit_messages",
            kind="message",
        )
    report = CompactReport()
    for position, message in enumerate(messages):
        try:
            # One by one: a task whose files others have replaced is dropped without the others.
            part_report = commit_compaction(context, [message], full=full, prepared=True)
        except BaseException:
            for waiting in messages[position + 1 :]:
                discard_unnamed(context, waiting)
            raise
        report += part_report + CompactReport(buckets=part_report.tasks)
    return report
