"""A compaction spread over processes: the driver plans buckets, tasks do them, the driver commits.

    plan_compaction -> one task per bucket that needs one, as bytes
    run_task        -> opens the table wherever it runs, picks and runs the bucket's task, gives back a commit message
    commit_tasks    -> a COMPACT snapshot per task; what others have made stale is dropped

Tasks and messages are plain values, in versioned JSON: nothing is unpickled.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tablestore.distributed.tasks import TableSpec
from tablestore.errors import FormatError
from tablestore.store.compact.bucketcompaction import discard_unnamed, run_compaction
from tablestore.store.message import CommitMessage
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import CompactReport, commit_compaction
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets

VERSION = 1


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
            head = {"version": VERSION, "snapshot": latest.id, "bucket": bucket, "full": full}
            encoded = json.dumps({**head, "partition": base64.b64encode(partition).decode()}, sort_keys=True).encode()
            found.append((task.size_bytes, encoded))
    found.sort(key=lambda item: (-item[0], item[1]))
    return CompactPlan(full=full, tasks=tuple(encoded for _, encoded in found))


def run_task(spec: TableSpec, task: bytes) -> bytes | None:
    """Do one task of :func:`plan_compaction`; the commit message as bytes, None if there is nothing to do any more."""
    parsed = _parse(task)
    context = spec.open()
    place = (base64.b64decode(parsed["partition"]), int(parsed["bucket"]))
    snapshot = context.snapshots.read(int(parsed["snapshot"]))
    bucket = live_buckets(context, snapshot, {place}).get(place)
    picked = TaskPicker(context).pick(bucket, full=bool(parsed["full"])) if bucket is not None else None
    if bucket is None or picked is None:
        return None
    return run_compaction(context, snapshot, bucket, picked).to_bytes()


def commit_tasks(table: Table, messages: Iterable[bytes], *, full: bool = False) -> CompactReport:
    """Commit what tasks have done. When one cannot be committed, the files of those after it are removed before the error."""
    context = table.refresh().context
    parsed = [CommitMessage.from_bytes(message) for message in messages]
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


def _parse(task: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(task)
        if parsed["version"] != VERSION:
            raise FormatError(
                f"compaction task of version {parsed['version']}, this release reads version {VERSION}: run the same release of "
                "tablestore on driver and executors",
                kind="too-new",
            )
        base64.b64decode(parsed["partition"], validate=True)
        if not {"snapshot", "bucket", "full"} <= parsed.keys():
            raise ValueError(f"it has only {', '.join(parsed)}")
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not a compaction task: {error}") from error
    return dict(parsed)
