"""Defines and reads a task of a stream: some rows of a snapshot, or some changes of one or more snapshots in order.

Changes are read from files, or from a bucket of the log.

A task can be run again; it reads the same rows while its snapshots are kept. Of the changes of one key all that a batch has are in
one task, oldest first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.bounds import BATCH_BYTES
from tablestore.distributed.read import BATCH_ROWS, decode_splits, encode_split
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.stream.streamrequest import stream_fields
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.log.follow.logrange import LogRange, read_log_range
from tablestore.store.changes.changefeed import ChangeFeed, SnapshotChanges
from tablestore.store.changes.changeplan import FoundChanges, Step, StoredChanges
from tablestore.store.context import TableContext
from tablestore.store.rowview import ReadRules, rules_to_json, shown_fields
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.table.read.scan import check_columns
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.filter.filters import parse_filter
from tablestore.types.rebatch import rebatched
from tablestore.types.rowkind import ROW_KIND_COLUMN, RowKind, symbols_from_kinds

_KIND = "stream task"
_MARKER = b"tablestore:task1"
_NEW = pa.array([RowKind.INSERT.symbol, RowKind.UPDATE_AFTER.symbol])


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHead:
    """The values that all tasks of a stream share. ``rules``: those of the catalog service for the caller."""

    schema_id: int
    columns: tuple[str, ...]
    filter: str | None
    pairs: bool
    row_kinds: bool
    rules: ReadRules | None = None

    def to_json(self) -> dict[str, Any]:
        """The head as the beginning of a task's JSON object."""
        return {
            "schema": self.schema_id,
            "columns": list(self.columns),
            "filter": self.filter,
            "pairs": self.pairs,
            "kinds": self.row_kinds,
            "rules": rules_to_json(self.rules),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """Changes of one snapshot, at the schema of this id, and whether these are all of its changes."""

    schema_id: int
    complete: bool
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, changes: SnapshotChanges) -> "ChangePart":
        """The changes without what reads them."""
        return cls(schema_id=changes.context.schema.id, complete=changes.complete, steps=tuple(changes.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """One of three: ``splits`` of one snapshot, ``changes`` of one snapshot after the other, or changes of a bucket of the
    ``log``."""

    head: TaskHead
    splits: tuple[Split, ...] | None = None
    changes: tuple[ChangePart, ...] | None = None
    log: LogRange | None = None

    def to_bytes(self) -> bytes:
        """Versioned JSON."""
        if self.splits is not None:
            content: dict[str, Any] = {"splits": [encode_split(split) for split in self.splits]}
        elif self.log is not None:
            content = {"log": asdict(self.log)}
        else:
            pool = _Pool()
            parts = [
                {"schema": part.schema_id, "complete": part.complete, "steps": [pool.encode(step) for step in part.steps]}
                for part in self.changes or ()
            ]
            content = {"changes": parts, "files": bytes_to_text(encode_manifest(pool.entries, _MARKER))}
        return encode_task(_KIND, {**self.head.to_json(), **content})

    @classmethod
    def from_bytes(cls, data: bytes) -> "StreamTask":
        """Parses what :meth:`to_bytes` gave. Raises FormatError."""
        parsed = decode_task(_KIND, data, {"schema", "columns", "filter", "pairs", "kinds", "rules"})
        head = TaskHead(
            schema_id=int(parsed["schema"]),
            columns=tuple(parsed["columns"]),
            filter=parsed["filter"],
            pairs=bool(parsed["pairs"]),
            row_kinds=bool(parsed["kinds"]),
            rules=ReadRules.from_json(parsed["rules"]),
        )
        if "splits" in parsed:
            return cls(head=head, splits=tuple(decode_splits(parsed["splits"])))
        if "log" in parsed:
            return cls(head=head, log=LogRange(**parsed["log"]))
        entries = decode_manifest(text_to_bytes(_KIND, parsed["files"]), _KIND)
        parts = (
            ChangePart(
                schema_id=int(part["schema"]),
                complete=bool(part["complete"]),
                steps=tuple(_decoded_step(step, entries) for step in part["steps"]),
            )
            for part in parsed["changes"]
        )
        return cls(head=head, changes=tuple(parts))


def read_stream_task(spec: TableSpec, task: StreamTask) -> Iterator[pa.RecordBatch]:
    """The rows of one task, in batches of 64 k rows or more, or of 64 MiB if these are fewer rows."""
    head = task.head
    context = spec.open(head.schema_id).under(head.rules).ruled()
    columns = check_columns(head.columns, context.schema.field_names)
    predicate = parse_filter(head.filter, context.schema.fields)
    with_kinds = head.row_kinds
    schema = to_arrow_schema(shown_fields(context.view, stream_fields(context.schema, columns, row_kinds=with_kinds)))
    if task.splits is not None:
        reader = SplitReader.of(context, columns, predicate)
        rows = _gathered(batch for split in task.splits for batch in reader.read(split))
        return (_inserted(batch, schema) for batch in rows) if with_kinds else rows
    if task.log is not None:
        logged = _gathered(read_log_range(context, task.log, columns=columns, predicate=predicate, pairs=head.pairs))
    else:
        feed = ChangeFeed(context=context, columns=columns, predicate=predicate, pairs=head.pairs)
        # The same schema for all, whichever it was written with.
        fields = to_arrow_schema(shown_fields(context.view, stream_fields(context.schema, columns, row_kinds=False)))
        coded = pa.schema([pa.field(KIND_COLUMN, pa.int8()), *(field.with_nullable(True) for field in fields)])
        changes = (batch for part in _parts(context, feed, task.changes or ()) for batch in part.batches())
        logged = map(_labelled, _gathered(pa.RecordBatch.from_arrays(batch.columns, schema=coded) for batch in changes))
    return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) if with_kinds else _new(batch, schema) for batch in logged)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return rebatched(batches, max_rows=2 * BATCH_ROWS, max_bytes=BATCH_BYTES, small_rows=BATCH_ROWS)


def _parts(context: TableContext, feed: ChangeFeed, changes: Sequence[ChangePart]) -> Iterator[SnapshotChanges]:
    for part in changes:
        yield SnapshotChanges(
            feed=feed,
            context=context.at_schema(context.schemas.read(part.schema_id)),
            steps=list(part.steps),
            gap=None,
            complete=part.complete,
        )


def _inserted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    kinds = pa.repeat(pa.scalar(RowKind.INSERT.symbol), batch.num_rows)
    return pa.RecordBatch.from_arrays([kinds, *batch.columns], schema=schema)


def _labelled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, ROW_KIND_COLUMN, symbols_from_kinds(batch.column(KIND_COLUMN)))


def _new(changes: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows that are there afterwards, without their kind."""
    new = pc.is_in(changes.column(ROW_KIND_COLUMN), value_set=_NEW)
    new_rows = changes if new.true_count == len(new) else changes.filter(new)
    return pa.RecordBatch.from_arrays(new_rows.drop_columns([ROW_KIND_COLUMN]).columns, schema=schema)


class _Pool:
    """The files that steps speak of, each once."""

    def __init__(self) -> None:
        self.entries: list[ManifestEntry] = []
        self._places: dict[tuple[bytes, int, str], int] = {}

    def encode(self, step: Step) -> dict[str, Any]:
        """A step that speaks of files by their number."""
        if isinstance(step, StoredChanges):
            return {"file": self._place(step.entry), "kind": None if step.kind is None else int(step.kind)}
        before, after, touched = (
            [self._place(_entry(step, file)) for file in files] for files in (step.before, step.after, step.touched)
        )
        return {
            "partition": bytes_to_text(step.partition),
            "bucket": step.bucket,
            "before": before,
            "after": after,
            "touched": touched,
            "vectors": [step.vectors_before, step.vectors_after],
        }

    def _place(self, entry: ManifestEntry) -> int:
        key = (entry.partition, entry.bucket, entry.file.file_name)
        if key not in self._places:
            self._places[key] = len(self.entries)
            self.entries.append(entry)
        return self._places[key]


def _entry(step: FoundChanges, file: DataFileMeta) -> ManifestEntry:
    # The number of buckets plays no part in reading.
    return ManifestEntry(kind=EntryKind.ADD, partition=step.partition, bucket=step.bucket, total_buckets=1, file=file)


def _decoded_step(step: Mapping[str, Any], entries: Sequence[ManifestEntry]) -> Step:
    if "file" in step:
        kind = step["kind"]
        return StoredChanges(entry=entries[step["file"]], kind=None if kind is None else RowKind(kind))
    before, after, touched = (tuple(entries[i].file for i in step[key]) for key in ("before", "after", "touched"))
    return FoundChanges(
        partition=text_to_bytes(_KIND, step["partition"]),
        bucket=int(step["bucket"]),
        before=before,
        after=after,
        touched=touched,
        vectors_before=step["vectors"][0],
        vectors_after=step["vectors"][1],
    )
