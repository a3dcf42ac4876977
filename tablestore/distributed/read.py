"""Cuts a read into tasks for other processes.

    driver    pin_read -> plan_read -> ReadTask
    task                               read_task -> batches

A task can be run again; it reads the same rows while its snapshot is kept. Where a process ends, a runner makes bytes of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES
from tablestore.distributed.layers import Layer, LayerPlan, plan_layer
from tablestore.distributed.plainfiles import OrcTerms, PlainChoice, SetAside, set_plain_aside
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.splitcolumns import EncodedSplits, decode_columns, encoded_splits, pack_columns
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.errors import ConflictError
from tablestore.format.manifest.manifestfile import decode_manifest, encode_manifest
from tablestore.format.paths import MAIN_BRANCH
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.run import Section
from tablestore.options import MIB
from tablestore.store.context import TableContext
from tablestore.store.rowview import ReadRules, rules_to_json, shown_fields, stored_condition
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import SPLIT_BYTES, ColumnSplits, DeletionFile, Split
from tablestore.store.schemas import check_is_same
from tablestore.table.read.scan import Readable, ReadOptimizedScan, Scan, check_columns, check_positions, compacted_files
from tablestore.table.system.systemkinds import BRANCH_PREFIX, READ_OPTIMIZED, SEPARATOR
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Predicate
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.rebatch import rebatched
from tablestore.types.rowposition import POSITION_FIELDS

_KIND = "read task"
TASK_BYTES = 128 * MIB
# A task costs its process some tens of milliseconds: less than this is not worth a task of its own.
LEAST_TASK_BYTES = 4 * MIB
# Batches are put together up to so many rows, if they are not too many bytes: each has a fixed cost on its way to another process.
BATCH_ROWS = 65_536
_MARKER = b"tablestore:task1"
# JSON has none.
_BEHIND_JSON = b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPin:
    """The snapshot (None: the table had none) and the schema of a read, fixed before it is planned; of the table of this identity.

    ``snapshot_uuid``: the identity of the snapshot; None: it has none, or only its number was asked for.
    ``read_optimised``: of a keyed table only the files of the top level (the system table ``$ro``). ``rules``: those of its catalog
    service for the caller; None: the service is asked where it is opened.
    """

    spec: TableSpec
    snapshot_id: int | None
    schema_id: int
    table_uuid: str | None
    snapshot_uuid: str | None = None
    read_optimised: bool = False
    rules: ReadRules | None = None
    _opened: list[TableContext] = field(default_factory=list, init=False, repr=False, compare=False)

    def open(self) -> TableContext:
        """The table at the schema of the read, opened once in a process. Raises ConflictError if another one is in its place."""
        if not self._opened:
            self._opened.append(_opened(self.spec, self.schema_id, self.table_uuid).under(self.rules).ruled())
        return self._opened[0]

    def __reduce__(self) -> tuple[Any, ...]:
        # Open files stay in this process.
        return _pin, (
            self.spec,
            self.snapshot_id,
            self.schema_id,
            self.table_uuid,
            self.snapshot_uuid,
            self.read_optimised,
            self.rules,
        )

    def read_snapshot(self, context: TableContext) -> Snapshot | None:
        """The snapshot of the opened table. Raises NotFoundError if it has expired, ConflictError if another has its number."""
        if self.snapshot_id is None:
            return None
        if (seen := context.snapshots.identified(self.snapshot_id, self.snapshot_uuid)) is not None:
            return seen
        snapshot = context.snapshots.read(self.snapshot_id)
        if self.snapshot_uuid not in (None, snapshot.uuid):
            # Since it was opened, another table may have taken the place.
            context.still_there()
            raise ConflictError(
                f"table {self.spec.location}: the snapshot {self.snapshot_id} that was to be read was rolled back, and another one "
                "has its number; repeat the statement",
                kind="snapshot-replaced",
            )
        return snapshot

    def at_schema(self, context: TableContext) -> TableContext:
        """The opened table at the schema and under the rules of the read."""
        if context.schema.id != self.schema_id:
            context = context.at_schema(context.schemas.read(self.schema_id))
        return context.under(self.rules)

    @property
    def suffix(self) -> str:
        """The suffix of the table's location that names the same branch and system table."""
        branch = "" if self.spec.branch == MAIN_BRANCH else f"{SEPARATOR}{BRANCH_PREFIX}{self.spec.branch}"
        return branch + (f"{SEPARATOR}{READ_OPTIMIZED}" if self.read_optimised else "")


def _pin(
    spec: TableSpec,
    snapshot_id: int | None,
    schema_id: int,
    table_uuid: str | None,
    snapshot_uuid: str | None,
    read_optimised: bool,
    rules: ReadRules | None,
) -> ReadPin:
    return ReadPin(
        spec=spec,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        table_uuid=table_uuid,
        snapshot_uuid=snapshot_uuid,
        read_optimised=read_optimised,
        rules=rules,
    )


def _opened(spec: TableSpec, schema_id: int, table_uuid: str | None) -> TableContext:
    context = spec.open()
    check_is_same(table_uuid, context.schema, table=spec.location)
    return context.at_schema(context.schemas.read(schema_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """Splits to be read, of the table of this identity at this schema. ``filter`` is SQL text; ``rules`` as in a pin."""

    table_uuid: str | None
    schema_id: int
    columns: tuple[str, ...]
    filter: str | None
    positions: bool
    splits: Sequence[Split]
    rules: ReadRules | None = None

    def to_bytes(self) -> bytes:
        """Versioned JSON; behind it, and a NUL, the files that are columns."""
        splits = encoded_splits(self.splits) if isinstance(self.splits, ColumnSplits) else self.splits
        content: dict[str, Any] = {
            "table": self.table_uuid,
            "schema": self.schema_id,
            "columns": list(self.columns),
            "filter": self.filter,
            "positions": self.positions,
            "rules": rules_to_json(self.rules),
            "splits": [] if isinstance(splits, EncodedSplits) else [encode_split(split) for split in splits],
        }
        if not isinstance(splits, EncodedSplits):
            return encode_task(_KIND, content)
        return b"".join((encode_task(_KIND, {**content, "fileColumns": splits.content}), _BEHIND_JSON, splits.files))

    @classmethod
    def from_bytes(cls, data: bytes) -> "ReadTask":
        """Parses what :meth:`to_bytes` gave. Raises FormatError."""
        text, _, files = data.partition(_BEHIND_JSON)
        parsed = decode_task(_KIND, text, {"table", "schema", "columns", "filter", "positions", "rules", "splits"})
        return cls(
            table_uuid=parsed["table"],
            schema_id=int(parsed["schema"]),
            columns=tuple(parsed["columns"]),
            filter=parsed["filter"],
            positions=bool(parsed["positions"]),
            rules=ReadRules.from_json(parsed["rules"]),
            splits=decode_columns(_KIND, parsed["fileColumns"], files)
            if "fileColumns" in parsed
            else tuple(decode_splits(parsed["splits"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A planned read.

    ``tasks`` are independent. ``plain_files`` are the paths, inside the table, of the plain files that the caller chose
    to read itself, and ``layers`` the overlapping files of which it does, by :func:`planned_layer`. They are in no task.
    ``positions``: each row comes with its position (see :mod:`~tablestore.types.rowposition`).
    """

    pin: ReadPin
    fields: tuple[Field, ...]
    tasks: tuple[ReadTask, ...]
    plain_files: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    positions: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return to_arrow_schema([*self.fields, *(POSITION_FIELDS if self.positions else ())])


def pin_read(table: Readable, spec: TableSpec, *, snapshot_id: int | None = None, timestamp: int | None = None) -> ReadPin:
    """Fix the snapshot that a read sees: the newest one, or that of an id or of a time in milliseconds. Raises NotFoundError."""
    scan = table.scan(snapshot_id=snapshot_id, timestamp=timestamp)
    return pin_at(scan.context, spec, scan.snapshot_id, scan.snapshot.uuid if scan.snapshot else None)


def pin_at(context: TableContext, spec: TableSpec, snapshot_id: int | None, snapshot_uuid: str | None = None) -> ReadPin:
    """A read at a snapshot, with the columns of an open table."""
    context = context.ruled()
    return ReadPin(
        spec=spec,
        snapshot_id=snapshot_id,
        schema_id=context.schema.id,
        table_uuid=context.table_uuid,
        snapshot_uuid=snapshot_uuid,
        rules=context.rules,
    )


def at_newest(pin: ReadPin) -> ReadPin:
    """The same columns of the newest snapshot, under the rules of now."""
    context = _opened(pin.spec, pin.schema_id, pin.table_uuid).ruled()
    latest = context.snapshots.latest()
    context.check_is_there()
    return replace(
        pin, snapshot_id=latest.id if latest else None, snapshot_uuid=latest.uuid if latest else None, rules=context.rules
    )


def pinned_fields(pin: ReadPin, columns: Sequence[str] | None = None, filter: str | None = None) -> tuple[Field, ...]:
    """The columns of a pinned read; checks ``columns`` and ``filter``. Raises InvalidInputError."""
    context = pin.open()
    schema = context.schema
    parse_filter(filter, schema.fields)
    return shown_fields(context.view, [schema.field(name) for name in check_columns(columns, schema.field_names)])


def pinned_scan(
    pin: ReadPin, columns: Sequence[str] | None = None, filter: str | Predicate | None = None, *, positions: bool = False
) -> Scan:
    """A pinned read in this process. Raises InvalidInputError, UnsupportedError for ``positions`` of a keyed table."""
    context = pin.open()
    snapshot = pin.read_snapshot(context)
    names, predicate = check_columns(columns, context.schema.field_names), parse_filter(filter, context.schema.fields)
    scan_class = ReadOptimizedScan if pin.read_optimised else Scan
    return scan_class(context, snapshot, names, predicate, positions=positions)


def plan_read(
    pin: ReadPin,
    *,
    columns: Sequence[str] | None = None,
    filter: str | Predicate | None = None,
    task_bytes: int = TASK_BYTES,
    parallelism: int = 1,
    plain_files: PlainChoice | None = None,
    layers: bool = False,
    orc: OrcTerms | None = None,
    positions: bool = False,
) -> ReadPlan:
    """Plan a pinned read as tasks for :func:`read_task`, of at most about ``task_bytes`` each.

    ``filter`` travels as SQL text. Up to ``parallelism`` tasks are made even of little data. The files that ``plain_files`` chooses
    are named instead of put into tasks; a filter has then only left out files, and their rows are still to be filtered. So a file
    is plain only if the columns of the filter are in it as they are now, too. ``layers``: it also chooses among the files of
    layers. ``orc``: it also chooses among ORC files. ``positions``: the rows of an append table come with their positions; those of
    plain files are for the caller to count.
    """
    context = pin.open()
    schema = context.schema
    if positions:
        check_positions(context)
    names = check_columns(columns, schema.field_names)
    predicate = parse_filter(filter, schema.fields)
    plan = plan_scan(
        context,
        pin.read_snapshot(context),
        stored_condition(context.view, predicate),
        wanted=compacted_files(context) if pin.read_optimised else None,
        split_bytes=min(SPLIT_BYTES, task_bytes),
    )
    aside = SetAside(paths=(), layers=(), splits=plan.splits)
    if plain_files is not None:
        needed = [name for name in schema.field_names if name in {*names, *filter_columns(predicate)}]
        aside = set_plain_aside(context, plan.splits, needed, plain_files, layers=layers, orc=orc)
    packed = pack_tasks(aside.splits, task_bytes=task_bytes, parallelism=parallelism)
    return ReadPlan(
        pin=pin,
        fields=shown_fields(context.view, [schema.field(name) for name in names]),
        tasks=tuple(
            ReadTask(
                table_uuid=pin.table_uuid,
                schema_id=schema.id,
                columns=tuple(names),
                filter=filter_text(filter),
                positions=positions,
                splits=splits,
                rules=context.rules,
            )
            for splits in packed
        ),
        plain_files=aside.paths,
        layers=aside.layers,
        positions=positions,
    )


def filter_text(filter: str | Predicate | None) -> str | None:
    """A filter as it travels to another process."""
    return filter if filter is None or isinstance(filter, str) else to_sql(filter)


def planned_layer(plan: ReadPlan, layer: Layer, filter: str | Predicate | None) -> LayerPlan:
    """The reading plan of a layer of a plan that was made with this filter, which remains to be applied to the rows.

    It follows from the layer's files and the filter: files never change.
    """
    context = plan.pin.open()
    return plan_layer(context, layer, parse_filter(filter, context.schema.fields))


def read_task(spec: TableSpec, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The rows of one task of :func:`plan_read`, in batches of 64 k rows or more, or of 64 MiB if these are fewer rows."""
    context = _opened(spec, task.schema_id, task.table_uuid).under(task.rules)
    fields = context.schema.fields
    columns = check_columns(task.columns, context.schema.field_names)
    reader = SplitReader.of(context, columns, parse_filter(task.filter, fields), positions=task.positions)

    def batches() -> Iterator[pa.RecordBatch]:
        with context.reading():
            for split in task.splits:
                yield from reader.read(split)

    return rebatched(batches(), max_rows=2 * BATCH_ROWS, max_bytes=BATCH_BYTES, small_rows=BATCH_ROWS)


def pack_tasks(splits: Sequence[Split], *, task_bytes: int, parallelism: int) -> tuple[Sequence[Split], ...]:
    """Splits put together to even tasks: none above ``task_bytes`` unless it is a single split, or they are very many. Pure."""
    if isinstance(splits, ColumnSplits):
        total = int(splits.weights.sum())
        return pack_columns(splits, task_bytes=task_bytes, count=_count_of(total, task_bytes, parallelism))
    packed = pack_weights([split.weight for split in splits], task_bytes=task_bytes, parallelism=parallelism)
    return tuple(tuple(splits[position] for position in chosen) for chosen in packed)


def pack_weights(weights: Sequence[int], *, task_bytes: int, parallelism: int) -> tuple[tuple[int, ...], ...]:
    """Packs items of these weights, in bytes, into even tasks, by position; within a task they ascend. Pure.

    As many tasks as the data needs, and up to ``parallelism`` while each is worth one.
    """
    total = sum(weights)
    count = _count_of(total, task_bytes, parallelism)
    loads = [0] * min(count, len(weights))
    members: list[list[int]] = [[] for _ in loads]
    for position in sorted(range(len(weights)), key=lambda position: -weights[position]):
        lightest = loads.index(min(loads))
        if members[lightest] and loads[lightest] + weights[position] > task_bytes:
            loads.append(0)
            members.append([])
            lightest = len(loads) - 1
        loads[lightest] += weights[position]
        members[lightest].append(position)
    return tuple(tuple(sorted(chosen)) for chosen in members if chosen)


def _count_of(total_bytes: int, task_bytes: int, parallelism: int) -> int:
    return max(-(-total_bytes // task_bytes), min(parallelism, total_bytes // LEAST_TASK_BYTES), 1)


def encode_split(split: Split) -> dict[str, Any]:
    """A split as a part of a task."""
    return {
        "files": bytes_to_text(encode_manifest(split.entries, _MARKER)),
        "sections": [[len(run) for run in section.runs] for section in split.sections],
        "deletions": [[name, d.index_file, d.offset, d.length] for name, d in split.deletions],
    }


def decode_splits(encoded: Sequence[Mapping[str, Any]]) -> Iterator[Split]:
    """The splits that :func:`encode_split` was given. Raises FormatError."""
    for split_json in encoded:
        entries = decode_manifest(text_to_bytes(_KIND, split_json["files"]), _KIND)
        files = iter(entry.file for entry in entries)
        sections = tuple(
            Section(tuple(tuple(next(files) for _ in range(size)) for size in sizes)) for sizes in split_json["sections"]
        )
        yield Split(
            partition=entries[0].partition,
            bucket=entries[0].bucket,
            total_buckets=entries[0].total_buckets,
            sections=sections,
            deletions=tuple(
                (name, DeletionFile(index_file=index_file, offset=offset, length=length))
                for name, index_file, offset, length in split_json["deletions"]
            ),
        )
