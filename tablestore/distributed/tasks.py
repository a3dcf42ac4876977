"""One read or write, cut into tasks for other processes.

    driver    pin_read -> plan_read -> tasks (bytes)         prepare_write -> WriteJob
    executor              read_task -> batches                              write_partition -> message (bytes)
    driver                                                   commit_messages -> snapshot   |   abort_messages

What crosses processes is plain data: versioned JSON, and the format's own encodings inside it. Nothing is unpickled from
storage, and no handle travels. A task can be run again: every attempt writes files of its own names, and only the messages that
are committed count.
"""

import base64
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES
from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.snapshot import Snapshot
from tablestore.io.opening import open_store
from tablestore.log.changelog import publish_log
from tablestore.lsm.run import Section
from tablestore.lsm.write.missingcolumns import MissingColumns
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext, open_context
from tablestore.store.history.branchfiles import MAIN_BRANCH, branch_files
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import DeletionFile, Split, plan_scan
from tablestore.table.read.scan import check_columns, compacted_files
from tablestore.table.system.systemtable import READ_OPTIMIZED, SEPARATOR
from tablestore.table.system.tablenames import BRANCH_PREFIX
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import DRIVER_BUDGET_BYTES
from tablestore.table.write.overwrite import commit_overwrite
from tablestore.table.write.writer import TASK_STRIDE, Effect, TableWriter, check_given, commit_message
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import Field
from tablestore.types.evolution.widening import is_same
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.pieces import gathered
from tablestore.types.rowkind import ROW_KIND_COLUMN, kinds_from_symbols
from tablestore.types.schema import TableSchema

VERSION = 1
MIB = 1024 * 1024
TASK_BYTES = 128 * MIB
# A task costs its process some tens of milliseconds: less than this is not worth a task of its own.
LEAST_TASK_BYTES = 4 * MIB
# Splits are made small, so that tasks come out even, and tasks are packed from them.
SPLIT_BYTES = 8 * MIB
# What opening one more file costs, as bytes.
OPEN_COST_BYTES = MIB // 4
# Batches are put together up to so many rows, if they are not too many bytes: each has a fixed cost on its way to another process.
BATCH_ROWS = 65_536
_MARKER = b"tablestore:task1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """How any process finds the table: its location, its branch and the options of its file system (which may hold secrets)."""

    location: str
    storage_options: Mapping[str, Any]
    branch: str = MAIN_BRANCH

    def open(self, schema_id: int | None = None) -> TableContext:
        """The table at its newest schema, or at the one that a plan was made with."""
        context = open_context(branch_files(open_store(self.location, self.storage_options), self.branch))
        return context if schema_id is None else context.at_schema(context.schemas.read(schema_id))

    def table(self) -> Table:
        """A handle of the table."""
        return Table(self.open(), self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPin:
    """What a read sees, fixed before it is planned: a snapshot (None: the table had none) and the schema it is seen through.

    ``read_optimised``: only what a full compaction has left (the system table ``$ro``).
    """

    spec: TableSpec
    snapshot_id: int | None
    schema_id: int
    read_optimised: bool = False

    @property
    def suffix(self) -> str:
        """What stands behind the table's location in a path that names the same."""
        branch = "" if self.spec.branch == MAIN_BRANCH else f"{SEPARATOR}{BRANCH_PREFIX}{self.spec.branch}"
        return branch + (f"{SEPARATOR}{READ_OPTIMIZED}" if self.read_optimised else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """A data file that holds nothing but live rows in the columns of the schema: no merge, no cast, no rename is needed.

    ``path`` is that inside the table, ``columns`` are all that are in the file.
    """

    path: str
    size_bytes: int
    columns: pa.Schema


# Which plain files the caller reads with a Parquet reader of its own. The same files in, the same out: plans are made twice.
PlainChoice = Callable[[Sequence[PlainFile]], Iterable[PlainFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A planned read.

    ``tasks`` are independent and opaque. ``plain_files`` are the paths, inside the table, of the plain files that the caller chose
    to read itself. They are in no task.
    """

    pin: ReadPin
    fields: tuple[Field, ...]
    tasks: tuple[bytes, ...]
    plain_files: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return to_arrow_schema(self.fields)


def pin_read(table: Table, spec: TableSpec, *, snapshot_id: int | None = None, timestamp: int | None = None) -> ReadPin:
    """Fix what a read sees: the newest snapshot, or the one of an id or of a time in milliseconds. Raises NotFoundError."""
    scan = table.scan(snapshot_id=snapshot_id, timestamp=timestamp)
    return ReadPin(spec=spec, snapshot_id=scan.snapshot_id, schema_id=scan.context.schema.id)


def at_newest(pin: ReadPin) -> ReadPin:
    """The same columns of the newest snapshot."""
    latest = pin.spec.open().snapshots.latest()
    return replace(pin, snapshot_id=latest.id if latest else None)


def pinned_fields(pin: ReadPin, columns: Sequence[str] | None = None, filter: str | None = None) -> tuple[Field, ...]:
    """The columns of a pinned read; checks ``columns`` and ``filter``. Raises InvalidInputError."""
    schema = pin.spec.open(pin.schema_id).schema
    parse_filter(filter, schema.fields)
    return tuple(schema.field(name) for name in check_columns(columns, schema.field_names))


def plan_read(
    pin: ReadPin,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    task_bytes: int = TASK_BYTES,
    parallelism: int = 1,
    plain_files: PlainChoice | None = None,
) -> ReadPlan:
    """Plan a pinned read as tasks for :func:`read_task`, of at most about ``task_bytes`` each.

    ``filter`` is SQL text, because it travels. Up to ``parallelism`` tasks are made even of little data. The files that
    ``plain_files`` chooses are named instead of put into tasks; a filter has then only left out files, and their rows are still
    to be filtered. So a file is plain only if the columns of the filter are in it as they are now, too.
    """
    context = pin.spec.open(pin.schema_id)
    schema = context.schema
    names = check_columns(columns, schema.field_names)
    predicate = parse_filter(filter, schema.fields)
    plan = plan_scan(
        context,
        None if pin.snapshot_id is None else context.snapshots.read(pin.snapshot_id),
        predicate,
        wanted=compacted_files(context) if pin.read_optimised else None,
        split_bytes=min(SPLIT_BYTES, task_bytes),
    )
    splits: Sequence[Split] = plan.splits
    plain: tuple[str, ...] = ()
    if plain_files is not None:
        needed = [name for name in schema.field_names if name in {*names, *filter_columns(predicate)}]
        plain, splits = _set_plain_aside(context, splits, needed, plain_files)
    head = {"version": VERSION, "schema": schema.id, "columns": list(names), "filter": filter}
    packed = pack_tasks(splits, task_bytes=task_bytes, parallelism=parallelism)
    return ReadPlan(
        pin=pin,
        fields=tuple(schema.field(name) for name in names),
        tasks=tuple(_encode_task(head, splits) for splits in packed),
        plain_files=plain,
    )


def read_task(spec: TableSpec, task: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one task of :func:`plan_read`, in batches of 64 k rows or more, or of 64 MiB if these are fewer rows."""
    parsed = _parse(task, "read task")
    context = spec.open(int(parsed["schema"]))
    fields = context.schema.fields
    columns = check_columns(parsed["columns"], context.schema.field_names)
    reader = SplitReader.of(context, columns, parse_filter(parsed["filter"], fields))
    batches = (batch for split in _decode_splits(parsed["splits"]) for batch in reader.read(split))
    return gathered(batches, max_rows=2 * BATCH_ROWS, max_bytes=BATCH_BYTES, small_rows=BATCH_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """What every task of one distributed write must agree on; made once, on the driver."""

    spec: TableSpec
    table_uuid: str | None
    schema_id: int
    base_snapshot_id: int
    first_sequence: int
    missing_columns: MissingColumns = MissingColumns.REFUSE
    overwrite: bool = False


def prepare_write(
    table: Table, spec: TableSpec, *, rows: pa.Schema | None = None, missing_columns: str = "refuse", overwrite: bool = False
) -> WriteJob:
    """Fix the schema and the sequence numbers of a distributed write.

    With ``rows``, the schema of the rows to come, whatever can be said against them is said now, before anything is written.
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
        base_snapshot_id=latest.id if latest else 0,
        first_sequence=context.sequence.next_after(latest),
        missing_columns=choice,
        overwrite=overwrite,
    )


def write_partition(job: WriteJob, rows: Iterable[pa.RecordBatch], task_index: int) -> bytes:
    """Write one task's rows as new files; returns the commit message. Of equal keys the later task's row wins."""
    context = job.spec.open(job.schema_id)
    batches = iter(rows)
    first_sequence = job.first_sequence + task_index * TASK_STRIDE
    with TableWriter(context, first_sequence=first_sequence, overwrites=job.overwrite) as writer:
        if (first := next(batches, None)) is not None:
            # As one stream: the writer gathers small batches before it looks at them.
            stream = pa.RecordBatchReader.from_batches(first.schema, chain((first,), batches))
            writer.write(stream, missing_columns=job.missing_columns)
        # Of the table that the job was made for, even if another one stands in its place by now: the commit will tell.
        return replace(writer.prepare(), base_snapshot_id=job.base_snapshot_id, table_uuid=job.table_uuid).to_bytes()


def commit_messages(
    table: Table,
    messages: Iterable[bytes],
    *,
    overwrite: bool = False,
    commit_user: str | None = None,
    identifier: int | None = None,
    publish: Callable[[TableContext], object] = publish_log,
) -> Snapshot | None:
    """Commit the messages of all tasks, in task order, as one snapshot. ``publish`` then sends to the log what it lacks.

    Committed again, the same messages change nothing: the snapshot that landed is returned, None if it has expired. Raises
    ConflictError of kind ``partly-committed`` where some were committed together with others, and ``files-gone`` where their files
    were removed because a commit was refused.
    """
    context = table.context
    message = merge_messages([CommitMessage.from_bytes(data) for data in messages])
    if message is None:
        message = TableWriter(context).prepare()
    user = commit_user or context.ids.uuid()
    if overwrite:
        return commit_overwrite(context, message, None, user=user, identifier=identifier, publish=publish, prepared=True)
    effect = Effect(allow_empty=identifier is not None)
    return commit_message(
        context,
        message,
        effect,
        user=user,
        identifier=identifier,
        most_compaction_bytes=DRIVER_BUDGET_BYTES,
        publish=publish,
        prepared=True,
    )


def abort_messages(table: Table, messages: Iterable[bytes]) -> None:
    """Remove the files of messages, but those that a snapshot, tag or branch of the table names. Only for messages of which no
    commit is under way."""
    for data in messages:
        discard_unnamed(table.context, CommitMessage.from_bytes(data))


# -- rows


def _check_rows(rows: pa.Schema, context: TableContext, choice: MissingColumns) -> None:
    where = f"table {context.files.root_uri}"
    kinds = rows.names.count(ROW_KIND_COLUMN)
    if kinds > 1:
        raise InvalidInputError(f"{where}: column {ROW_KIND_COLUMN!r} is given more than once", kind="duplicate-column")
    if kinds:
        kinds_from_symbols(pa.chunked_array([], rows.field(ROW_KIND_COLUMN).type))
    check_given(context, rows, choice)


# -- splits


def pack_tasks(splits: Sequence[Split], *, task_bytes: int, parallelism: int) -> tuple[tuple[Split, ...], ...]:
    """Splits put together to even tasks: none above ``task_bytes`` unless it is a single split. Pure.

    As many tasks as the data needs, and up to ``parallelism`` while each is worth one.
    """
    weights = [max(split.size_bytes, OPEN_COST_BYTES * len(split.files)) for split in splits]
    total = sum(weights)
    count = max(-(-total // task_bytes), min(parallelism, total // LEAST_TASK_BYTES), 1)
    loads = [0] * min(count, len(splits))
    members: list[list[int]] = [[] for _ in loads]
    for position in sorted(range(len(splits)), key=lambda position: -weights[position]):
        lightest = loads.index(min(loads))
        if members[lightest] and loads[lightest] + weights[position] > task_bytes:
            loads.append(0)
            members.append([])
            lightest = len(loads) - 1
        loads[lightest] += weights[position]
        members[lightest].append(position)
    return tuple(tuple(splits[position] for position in sorted(chosen)) for chosen in members if chosen)


def _set_plain_aside(
    context: TableContext, splits: Sequence[Split], names: Sequence[str], choose: PlainChoice
) -> tuple[tuple[str, ...], list[Split]]:
    """Paths of the plain files that ``choose`` takes for who reads the columns ``names``, and the splits without them."""
    schemas = _schemas_alike(context, names, {file.schema_id for split in splits for file in split.files})
    types = [field.type for field in context.schema.partition_fields]
    # File names hold a UUID: they are unique in the table.
    plain: dict[str, PlainFile] = {}
    for split in splits:
        directory = context.paths.bucket(decode_row(split.partition, types), split.bucket)
        deleted_from = {name for name, _ in split.deletions}
        for file in (file for section in split.sections if not section.needs_merge for file in section.files):
            if _is_plain(file) and file.schema_id in schemas and file.file_name not in deleted_from:
                path = f"{directory}/{file.file_name}"
                plain[file.file_name] = PlainFile(path=path, size_bytes=file.file_size, columns=schemas[file.schema_id])
    chosen = {file.path for file in choose(tuple(plain.values()))}
    aside = {name: file.path for name, file in plain.items() if file.path in chosen}
    return tuple(aside.values()), [rest for split in splits if (rest := _without(split, aside)) is not None]


def _without(split: Split, aside: Collection[str]) -> Split | None:
    """The split without the files of these names; None if nothing is left."""
    left: list[Section] = []
    for section in split.sections:
        if section.needs_merge:
            left.append(section)
        else:
            left += [Section(((file,),)) for file in section.files if file.file_name not in aside]
    return replace(split, sections=tuple(left)) if left else None


def _is_plain(file: DataFileMeta) -> bool:
    # The digest says that we wrote the file: its types are spelled as we spell them, and its count of retractions is right.
    return file.footer_digest is not None and file.delete_row_count == 0


def _schemas_alike(context: TableContext, names: Sequence[str], schema_ids: Collection[int]) -> dict[int, pa.Schema]:
    """Those of the schemas whose files hold the columns ``names`` under their present names and types, and the columns of these
    files. Options do not matter."""
    asked = [context.schema.field(name) for name in names]

    def has_all(schema: TableSchema) -> bool:
        there = {field.id: field for field in schema.fields}
        found = ((there.get(field.id), field) for field in asked)
        return all(old is not None and old.name == new.name and is_same(old.type, new.type) for old, new in found)

    schemas = {schema_id: context.schemas.read(schema_id) for schema_id in schema_ids}
    return {schema_id: file_schema(schema, thin=False) for schema_id, schema in schemas.items() if has_all(schema)}


# -- tasks as bytes


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
        if found == VERSION and not {"schema", "columns", "filter", "splits"} <= parsed.keys():
            raise ValueError(f"it has only {', '.join(parsed)}")
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a {what}: {error}") from error
    if found != VERSION:
        raise FormatError(
            f"{what} of version {found}, this release reads version {VERSION}: run the same release of tablestore on driver and "
            "executors",
            kind="too-new",
        )
    return dict(parsed)
