"""Spreads a compaction over processes: the driver plans buckets, tasks do them, the driver commits.

    driver    plan_compaction -> tasks (bytes), one for each bucket that needs it
    executor                              run_task -> commit message (bytes)
    driver                                               commit_tasks -> a COMPACT snapshot per task

A task whose input files others have replaced is dropped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tablestore.distributed.spec import TableSpec
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.errors import InvalidInputError
from tablestore.store.compact.bucketcompaction import discard_unnamed, run_compaction
from tablestore.store.context import Shared
from tablestore.store.message import CommitMessage
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import CompactReport, commit_compaction
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets

_KIND = "compaction task"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPlan:
    """Buckets to compact, each an opaque task; the largest first."""

    full: bool
    tasks: tuple[bytes, ...]


def plan_compaction(table: Table, *, full: bool = False, partitions: Iterable[Mapping[str, Any]] | None = None) -> CompactPlan:
    """The buckets of the newest snapshot with something to do. Raises as ``Table.compact`` does."""
    context = table.refresh().context
    context.check_writable()
    wanted = partition_matcher(context.schema, partitions)
    latest = context.snapshots.latest()
    if latest is None:
        return CompactPlan(full=full, tasks=())
    picker = TaskPicker(context)
    found: list[tuple[int, bytes]] = []
    for (partition, bucket), files in live_buckets(context, latest, lambda place: wanted(place[0])).items():
        task = picker.pick(files, full=full)
        if task is not None:
            place = {"partition": bytes_to_text(partition), "bucket": bucket}
            found.append((task.size_bytes, encode_task(_KIND, {**place, "snapshot": latest.id, "full": full})))
    found.sort(key=lambda item: (-item[0], item[1]))
    return CompactPlan(full=full, tasks=tuple(encoded for _, encoded in found))


def run_task(spec: TableSpec, task: bytes, shared: Shared | None = None) -> bytes | None:
    """Run one task of :func:`plan_compaction`; returns the commit message as bytes, None if nothing is left to do.

    ``shared``: what tasks that run in this process one after another have in common.
    """
    parsed = decode_task(_KIND, task, {"partition", "bucket", "snapshot", "full"})
    context = spec.open(shared=shared)
    place = (text_to_bytes(_KIND, parsed["partition"]), int(parsed["bucket"]))
    snapshot = context.snapshots.read(int(parsed["snapshot"]))
    bucket = live_buckets(context, snapshot, {place}).get(place)
    picked = TaskPicker(context).pick(bucket, full=bool(parsed["full"])) if bucket is not None else None
    if bucket is None or picked is None:
        return None
    return run_compaction(context, snapshot, bucket, picked).to_bytes()


def commit_tasks(table: Table, messages: Iterable[bytes], *, full: bool = False) -> CompactReport:
    """Commit the messages of tasks. If one cannot be committed, the files of those after it are removed first."""
    context = table.refresh().context
    parsed = [CommitMessage.from_bytes(message) for message in messages]
    if any(not message.compact_before for message in parsed):
        raise InvalidInputError(
            f"table {context.files.root_uri}: expected messages of compaction tasks, found one of a write; commit it with "
            "commit_messages",
            kind="message",
        )
    report = CompactReport()
    for position, message in enumerate(parsed):
        try:
            # One by one: a task whose files others have replaced is dropped without the others.
            done = commit_compaction(context, [message], full=full, prepared=True)
        except BaseException:
            for waiting in parsed[position + 1 :]:
                discard_unnamed(context, waiting)
            raise
        report += done + CompactReport(buckets=done.tasks)
    return report
