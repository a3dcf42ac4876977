"""One read or write, cut into tasks for other processes.

    driver    plan_read -> tasks (bytes)                     prepare_write -> WriteJob (bytes)
    executor              read_task -> batches                              write_partition -> message (bytes)
    driver                                                   commit_messages -> snapshot   |   abort_messages

What crosses processes is plain data: versioned JSON, and the format's own encodings inside it. Nothing is unpickled from
storage, and no handle travels. A task can be run again: every attempt writes files of its own names, and only the messages that
are committed count.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.manifest import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.snapshot import Snapshot
from tablestore.io.opening import open_store
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext, open_context
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.scan import DeletionFile, Split, plan_scan
from tablestore.table.overwrite import commit_overwrite
from tablestore.table.scan import check_columns
from tablestore.table.table import Filter, Table
from tablestore.table.writer import TASK_STRIDE, Effect, TableWriter, commit_message
from tablestore.types.filters import parse_filter

VERSION = 1
TASK_BYTES = 128 * 1024 * 1024
_MARKER = b"tablestore:task1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """How any process finds the table: its location and the options of its file system (which may hold secrets)."""

    location: str
    storage_options: Mapping[str, Any]

    def open(self, schema_id: int | None = None) -> TableContext:
        """The table at its newest schema, or at the one that a plan was made with."""
        context = open_context(open_store(self.location, self.storage_options))
        return context if schema_id is None else context.at_schema(context.schemas.read(schema_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A planned read. ``tasks`` are independent and opaque; each reads about 128 MB."""

    spec: TableSpec
    snapshot_id: int | None
    schema: pa.Schema
    tasks: tuple[bytes, ...]


def plan_read(
    table: Table,
    spec: TableSpec,
    *,
    columns: Sequence[str] | None = None,
    filter: Filter = None,
    snapshot_id: int | None = None,
    timestamp: int | None = None,
    task_bytes: int = TASK_BYTES,
) -> ReadPlan:
    """Plan a read of ``table`` as tasks for :func:`read_task`. ``filter`` must be SQL text to travel; arguments as in ``scan``."""
    scan = table.scan(columns, filter, snapshot_id=snapshot_id, timestamp=timestamp)
    context = scan.context
    plan = plan_scan(
        scan.snapshot,
        context.manifests,
        context.schema,
        context.settings,
        parse_filter(filter, context.schema.fields),
        file_fields=context.fields_by_schema() if filter is not None else None,
        split_bytes=task_bytes,
    )
    head = {"version": VERSION, "schema": context.schema.id, "columns": list(scan.columns), "filter": filter}
    tasks = tuple(_encode_task(head, splits) for splits in _pack(plan.splits, task_bytes))
    return ReadPlan(spec=spec, snapshot_id=scan.snapshot_id, schema=scan.schema, tasks=tasks)


def read_task(spec: TableSpec, task: bytes, *, batch_rows: int = 131_072) -> Iterator[pa.RecordBatch]:
    """The rows of one task of :func:`plan_read`."""
    parsed = _parse(task, "read task")
    context = spec.open(int(parsed["schema"]))
    fields = context.schema.fields
    columns = check_columns(parsed["columns"], context.schema.field_names)
    reader = context.reader(columns, parse_filter(parsed["filter"], fields), batch_rows=batch_rows)
    for split in _decode_splits(parsed["splits"]):
        yield from reader.read(split)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """What every task of one distributed write must agree on; made once, on the driver."""

    spec: TableSpec
    schema_id: int
    base_snapshot_id: int
    first_sequence: int


def prepare_write(table: Table, spec: TableSpec) -> WriteJob:
    """Fix the schema and the sequence numbers of a distributed write."""
    context = table.context
    latest = context.snapshots.latest()
    return WriteJob(
        spec=spec,
        schema_id=context.schema.id,
        base_snapshot_id=latest.id if latest else 0,
        first_sequence=context.sequence.next_after(latest),
    )


def write_partition(job: WriteJob, rows: Iterable[pa.RecordBatch], task_index: int) -> bytes:
    """Write one task's rows as new files; returns the commit message. Of equal keys the later task's row wins."""
    context = job.spec.open(job.schema_id)
    with TableWriter(context, first_sequence=job.first_sequence + task_index * TASK_STRIDE) as writer:
        for batch in rows:
            writer.write(batch)
        return replace(writer.prepare(), base_snapshot_id=job.base_snapshot_id).to_bytes()


def commit_messages(
    table: Table,
    messages: Iterable[bytes],
    *,
    overwrite: bool = False,
    commit_user: str | None = None,
    identifier: int | None = None,
) -> Snapshot | None:
    """Commit the messages of all tasks, in task order, as one snapshot."""
    context = table.context
    message = merge_messages([CommitMessage.from_bytes(data) for data in messages])
    if message is None:
        return None
    user = commit_user or context.ids.uuid()
    if overwrite:
        return commit_overwrite(context, message, None, user=user, identifier=identifier)
    return commit_message(context, message, Effect(allow_empty=identifier is not None), user=user, identifier=identifier)


def abort_messages(table: Table, messages: Iterable[bytes]) -> None:
    """Remove the files of messages that were not committed. What a live snapshot names is left alone."""
    context = table.context
    live = {entry.file.file_name for entry in context.manifests.live(context.snapshots.latest())}
    for data in messages:
        for entry in CommitMessage.from_bytes(data).entries:
            if entry.file.file_name not in live:
                context.remove_file(entry)


# -- tasks as bytes


def _pack(splits: Sequence[Split], task_bytes: int) -> Iterator[list[Split]]:
    pending: list[Split] = []
    size = 0
    for split in splits:
        if pending and size + split.size_bytes > task_bytes:
            yield pending
            pending, size = [], 0
        pending.append(split)
        size += split.size_bytes
    if pending:
        yield pending


def _encode_task(head: Mapping[str, Any], splits: Sequence[Split]) -> bytes:
    return json.dumps({**head, "splits": [_encode_split(split) for split in splits]}).encode()


def _encode_split(split: Split) -> dict[str, Any]:
    entries = [
        ManifestEntry(
            kind=EntryKind.ADD,
            partition=split.partition,
            bucket=split.bucket,
            total_buckets=split.total_buckets,
            file=file,
        )
        for file in split.files
    ]
    return {
        "files": base64.b64encode(encode_manifest(entries, _MARKER)).decode(),
        "sections": [[len(run) for run in section.runs] for section in split.sections],
        "deletions": [[name, d.index_file, d.offset, d.length] for name, d in split.deletions],
    }


def _decode_splits(encoded: Sequence[Mapping[str, Any]]) -> Iterator[Split]:
    for one in encoded:
        entries = decode_manifest(base64.b64decode(one["files"]), "read task")
        files = iter(entry.file for entry in entries)
        sections = tuple(Section(tuple(tuple(next(files) for _ in range(size)) for size in sizes)) for sizes in one["sections"])
        yield Split(
            partition=entries[0].partition,
            bucket=entries[0].bucket,
            total_buckets=entries[0].total_buckets,
            sections=sections,
            deletions=tuple(
                (name, DeletionFile(index_file=index_file, offset=offset, length=length))
                for name, index_file, offset, length in one["deletions"]
            ),
        )


def _parse(data: bytes, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
        found = parsed["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a {what}: {error}") from error
    if found != VERSION:
        raise FormatError(
            f"{what} of version {found}, this release reads version {VERSION}: run the same release of tablestore on driver and "
            "executors",
            kind="too-new",
        )
    return dict(parsed)
