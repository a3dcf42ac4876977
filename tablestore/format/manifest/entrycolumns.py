"""Holds the entries of manifests as Arrow columns, so that a table of a million files is planned without an object for each.

One row is one entry, in stored order. A column is one attribute of :class:`ManifestEntry` or :class:`DataFileMeta`; statistics are
three (``key_stats.min_values``, ``key_stats.max_values``, ``key_stats.null_counts``). Partitions, keys and bounds stay the
serialised rows that the manifest has (see :mod:`tablestore.format.rowcolumns`).

    manifests (Avro) -> blocks, side by side -> EntryColumns -> mask -> ManifestEntry of the rows that are left

Memory: about 350 bytes for an entry with bounds of four columns, where its objects take 1.3 KiB.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import (
    BLOCK_RECORDS,
    CODEC,
    ContainerBlocks,
    Schema,
    block_places,
    container_blocks,
    records_at,
    write_blocks,
)
from tablestore.format.manifest.blockcolumns import RECORD, RECORD_START, IrregularBlocks, Path, decode_columns
from tablestore.format.manifest.blockdigests import BlockDigests
from tablestore.format.manifest.datafile import FILE_RECORD, DataFileMeta
from tablestore.format.manifest.derivedcolumns import DERIVED_COLUMNS
from tablestore.format.manifest.manifestfile import (
    MANIFEST_SCHEMA,
    MANIFEST_VERSION,
    EntryKind,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    entries_of_records,
)
from tablestore.format.manifest.records import StoredColumn
from tablestore.format.paths import verify_content_name
from tablestore.format.stats import EMPTY_STATS, SimpleStats
from tablestore.inorder import in_order
from tablestore.types.arrays import begins, numbers_of, places_array

Places = npt.NDArray[np.int64]
"""Positions of entries."""

_VERSION = ("_VERSION",)
_PARTITIONS = pa.dictionary(pa.int32(), pa.binary())
_TYPES = {"string": pa.string(), "bytes": pa.binary(), "long": pa.int64(), "int": pa.int32()}
_STATS = ("key_stats", "value_stats")
_STATS_PARTS = (
    ("min_values", "_MIN_VALUES", pa.binary()),
    ("max_values", "_MAX_VALUES", pa.binary()),
    ("null_counts", "_NULL_COUNTS", pa.list_(pa.int64())),
)
# Blocks that are decoded together are at most so long: more side by side is not faster, and takes more memory.
_GROUP_BYTES = 8 << 20
_LONGEST_NAME = 1024
_FEW_RANKS = 1_000
_SHORTEST_ROW = 12
# Of manifests that are only written to be decoded.
_ANY_NONCE = bytes(range(1, 17))
# Of entries that wait in memory, where manifests would be read more often.
_PACKING, _MOST_READS = "lz4", 2
_THREADS = 2
# With fewer blocks side by side, record by record is faster.
_FEWEST_LANES = 16


def _file_columns(column: StoredColumn) -> Iterator[tuple[str, Path, pa.DataType]]:
    path = ("_FILE", column.name)
    if column.attribute in _STATS:
        yield from ((f"{column.attribute}.{part}", (*path, name), type_) for part, name, type_ in _STATS_PARTS)
        return
    stored: Any = column.type
    if isinstance(stored, dict) and stored["type"] == "array":
        yield column.attribute, path, pa.list_(_TYPES[stored["items"]])
    else:
        yield column.attribute, path, _TYPES[stored["type"] if isinstance(stored, dict) else stored]


# Name, path in the record, and type of each column.
_COLUMNS: tuple[tuple[str, Path, pa.DataType], ...] = (
    ("kind", ("_KIND",), pa.int8()),
    ("partition", ("_PARTITION",), _PARTITIONS),
    ("bucket", ("_BUCKET",), pa.int32()),
    ("total_buckets", ("_TOTAL_BUCKETS",), pa.int32()),
    *(flat for column in FILE_RECORD.columns for flat in _file_columns(column)),
)
ENTRY_SCHEMA = pa.schema([pa.field(name, type_) for name, _, type_ in _COLUMNS])
"""The columns of entries."""
NO_ENTRIES = pa.Table.from_arrays([pa.nulls(0, type_) for _, _, type_ in _COLUMNS], schema=ENTRY_SCHEMA)
"""A table of no entries. Unlike ``empty_table`` it loads no pandas."""
_ENTRY_ATTRIBUTES = ("kind", "partition", "bucket", "total_buckets")
_REQUIRED = (*_ENTRY_ATTRIBUTES, *(c.attribute for c in FILE_RECORD.columns if not c.optional))
_FILE_ATTRIBUTES = tuple(column.attribute for column in FILE_RECORD.columns)


Bounds = tuple[pa.Array, pa.Array]
"""The lows and the highs of a column, one of each entry, null where unknown."""


@dataclass(frozen=True, slots=True)
class BoundedColumn:
    """A column whose bounds are stored beside the entries. ``label`` names it for ever, ``type`` is the type they were read as."""

    label: str
    type: str

    def stored(self, end: str) -> str:
        """The name of its lows or highs (``end``: ``low``, ``high``) in the file."""
        return f"{end} {self.label} {self.type}"


@dataclass(frozen=True, slots=True)
class RecordPlaces:
    """The places of records in their manifest: those where their blocks begin in the file, and their own in the decompressed
    blocks. ``digests``: of the blocks of the file, if they are known."""

    blocks: Places
    offsets: Places
    digests: BlockDigests | None = None


StoredBounds = Mapping[BoundedColumn, Bounds]
"""Bounds of columns, beside the entries that have them."""


class EntryColumns:
    """Entries of manifests as columns of :data:`ENTRY_SCHEMA`, some or all of them, and those that are derived of them.

    ``records``: where they lie in a manifest, if they were decoded from it side by side.
    """

    records: RecordPlaces | None = None

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry], names: Sequence[str] | None = None) -> "EntryColumns":
        """The columns ``names`` (all) of entries that are there as objects."""
        entries = tuple(entries)
        stored = ENTRY_SCHEMA.names if names is None else _stored_names(names)
        schema = pa.schema([ENTRY_SCHEMA.field(name) for name in stored])
        arrays = [_array(list(map(_getter(f.name), entries)), _plain(f.type)).cast(f.type) for f in schema]
        columns = cls(pa.table(arrays, schema))
        return columns if names is None else columns.select(names)

    @classmethod
    def concat(cls, parts: Sequence["EntryColumns"]) -> "EntryColumns":
        """The entries of all parts, at least one, in order."""
        return cls(pa.concat_tables([part.table for part in parts]))

    def joined(self, others: Sequence["EntryColumns"]) -> "EntryColumns":
        """These entries and those of others with the same columns, in order, as one array each."""
        if not others:
            return self
        table = pa.concat_tables([part.table for part in (self, *others)])
        return EntryColumns(table.unify_dictionaries().combine_chunks())

    def fits(self, other: "EntryColumns") -> bool:
        """True if both have the same columns."""
        return bool(self.table.schema == other.table.schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(self.table.nbytes)

    def column(self, name: str) -> pa.Array:
        """One column, as one array."""
        if name in DERIVED_COLUMNS and name not in self.table.column_names:
            derived = DERIVED_COLUMNS[name]
            return derived.compute(*map(self.column, derived.of))
        column = self.table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def stores(self, name: str) -> bool:
        """True if a column is there as it is, also one of bounds."""
        return name in self.table.column_names

    def bounds(self, column: BoundedColumn) -> Bounds | None:
        """The bounds of a column, where they are stored beside the entries; None: they have to be read from the rows of bounds."""
        low, high = column.stored("low"), column.stored("high")
        return (self.column(low), self.column(high)) if self.stores(low) and self.stores(high) else None

    def sums(self) -> "EntryColumns | None":
        """The sums of the entries by partition and bucket (:mod:`tablestore.format.manifest.bucketsums`), where they are stored
        beside the entries, which lie in the order of these then."""
        return None

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """One column of numbers, none of which is null."""
        return numbers_of(self.column(name))

    def select(self, names: Sequence[str]) -> "EntryColumns":
        """The columns ``names`` only."""
        if self.table.column_names == list(names):
            return self
        return EntryColumns(pa.Table.from_arrays([self.column(name) for name in names], names=list(names)))

    def take(self, places: Places) -> "EntryColumns":
        """The entries at ``places``, in that order."""
        return EntryColumns(self.table.take(places_array(places)))

    def slice(self, start: int, count: int) -> "EntryColumns":
        """So many entries from ``start`` on."""
        return EntryColumns(self.table.slice(start, count))

    def loaded(self) -> "EntryColumns":
        """The same entries with all columns of :data:`ENTRY_SCHEMA` in memory."""
        return self

    def loads_in_turn(self, starts: Sequence[int]) -> Iterator[Callable[[], "EntryColumns"]]:
        """The entries from each of these places on, up to the next one, as :meth:`loaded` has them. The first place is 0. What is
        left to do of each may be done in any thread."""
        for start, stop in zip(starts, [*starts[1:], len(self)], strict=True):
            yield self.slice(start, stop - start).loaded().loaded

    def stored_rows(self) -> Places:
        """The row of each entry in its manifest, for the entries of one whole manifest."""
        return np.arange(len(self))

    def at_rows(self, rows: Places, names: Sequence[str]) -> "EntryColumns":
        """The columns ``names`` of the entries at some rows of the manifest whose entries these are."""
        return self.select(names).take(rows)

    def close(self) -> None:
        """Let go of what can be had again, which is none of it here."""

    def is_in(self, name: str, values: Collection[str]) -> npt.NDArray[np.bool_]:
        """True for each entry whose text in one column is one of ``values``."""
        texts = pa.array(list(values), pa.string())
        mask: npt.NDArray[np.bool_] = pc.is_in(self.column(name), texts).to_numpy(zero_copy_only=False)
        return mask

    def in_places(self, wanted: Callable[[tuple[bytes, int]], bool]) -> npt.NDArray[np.bool_]:
        """True for each entry of a partition and bucket that ``wanted`` is true for. It is called once for each."""
        places, which = self.groups("partition", "bucket")
        kept = np.array([wanted(place) for place in places], np.bool_)
        mask: npt.NDArray[np.bool_] = kept[which] if len(kept) else np.zeros(0, np.bool_)
        return mask

    def in_partitions(self, wanted: Callable[[bytes], bool]) -> npt.NDArray[np.bool_]:
        """True for each entry of a partition that ``wanted`` is true for. It is called once for each."""
        partitions = self.column("partition")
        kept = np.array([wanted(partition) for partition in partitions.dictionary.to_pylist()], np.bool_)
        mask: npt.NDArray[np.bool_] = kept[numbers_of(partitions.indices)] if len(kept) else np.zeros(0, np.bool_)
        return mask

    def groups(self, *names: str) -> tuple[list[Any], Places]:
        """The distinct values of these columns (partitions, whole numbers) as tuples, in order; and which of these an entry has."""
        codes = np.zeros(len(self), np.int64)
        for name in names:
            column = self.column(name)
            numbers = _ranks(column) if pa.types.is_dictionary(column.type) else _dense(self.numbers(name))
            # Dense after each column, so that it cannot overflow.
            codes = _dense(codes * (int(numbers.max(initial=0)) + 1) + numbers)
        first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        # The last assignment stays where places repeat.
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        values = [self.column(name).take(places_array(first)).to_pylist() for name in names]
        return list(zip(*values, strict=True)), codes

    def by_place(self) -> Places:
        """The places of the entries by partition, bucket, level and name: an order that does not depend on the manifests."""
        _, which = self.groups("partition", "bucket", "level")
        keys = pa.Table.from_arrays([places_array(which), self.column("file_name")], names=["place", "name"])
        return numbers_of(pc.sort_indices(keys, [("place", "ascending"), ("name", "ascending")])).astype(np.int64)

    def entries(self) -> tuple[ManifestEntry, ...]:
        """The entries as objects."""
        values = {name: self.table.column(name).to_pylist() for name in self.table.column_names}
        stats = [
            [_stats(*row) for row in zip(*(values.pop(f"{name}.{part}") for part, _, _ in _STATS_PARTS), strict=True)]
            for name in _STATS
        ]
        values |= dict(zip(_STATS, stats, strict=True))
        for name in ("value_stats_cols", "write_cols", "write_cols_sequences"):
            values[name] = [None if names is None else tuple(names) for names in values[name]]
        values["extra_files"] = [tuple(names or ()) for names in values["extra_files"]]
        kinds = {int(kind): kind for kind in EntryKind}
        files = (
            DataFileMeta(**dict(zip(_FILE_ATTRIBUTES, row, strict=True)))
            for row in zip(*(values[name] for name in _FILE_ATTRIBUTES), strict=True)
        )
        heads = zip(values["kind"], values["partition"], values["bucket"], values["total_buckets"], strict=True)
        return tuple(
            ManifestEntry(kind=kinds[kind], partition=partition, bucket=bucket, total_buckets=total, file=file)
            for (kind, partition, bucket, total), file in zip(heads, files, strict=True)
        )


class EntryObjects(EntryColumns):
    """Entries that are objects, of which columns (all, or ``names``) are made when they are looked at: of many small parts together
    that takes a fraction of the time."""

    def __init__(self, entries: Iterable[ManifestEntry], names: Sequence[str] | None = None) -> None:
        self._entries, self._names = tuple(entries), names

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def table(self) -> pa.Table:
        return self._columns.table

    @cached_property
    def _columns(self) -> EntryColumns:
        return EntryColumns.of(self._entries, self._names)

    def stores(self, name: str) -> bool:
        return name in (ENTRY_SCHEMA.names if self._names is None else self._names)

    def select(self, names: Sequence[str]) -> EntryColumns:
        return EntryObjects(self._entries, names) if self._names is None else super().select(names)

    def take(self, places: Places) -> EntryColumns:
        return EntryObjects([self._entries[place] for place in places.tolist()], self._names)

    def joined(self, others: Sequence[EntryColumns]) -> EntryColumns:
        parts = [part._entries for part in others if isinstance(part, EntryObjects)]
        return EntryObjects(chain(self._entries, *parts), self._names) if len(parts) == len(others) else super().joined(others)

    def fits(self, other: EntryColumns) -> bool:
        if isinstance(other, EntryObjects) and self._names is not None and other._names is not None:
            return list(self._names) == list(other._names)
        return super().fits(other)

    def entries(self) -> tuple[ManifestEntry, ...]:
        return self._entries if self._names is None else super().entries()


MANIFEST, ROW = "manifest", "row"
"""Columns that say where entries come from: the number of their manifest in a list, and their row in it."""
LoadRows = Callable[[int, Places, Sequence[str]], EntryColumns]
"""Loads columns of the entries at some rows of the manifest of a number."""


class LateColumns(EntryColumns):
    """Entries of which few columns are in memory, with :data:`MANIFEST` and :data:`ROW`; the others are loaded when they are asked
    for, and do not stay. ``load``: columns of the entries at some rows of the manifest of a number."""

    def __init__(self, few: pa.Table, load: LoadRows) -> None:
        self._few, self._load = few, load

    def __len__(self) -> int:
        return int(self._few.num_rows)

    @property
    def table(self) -> pa.Table:
        """All the columns of :data:`ENTRY_SCHEMA`."""
        return self._loaded(ENTRY_SCHEMA.names)

    def _loaded(self, names: Sequence[str]) -> pa.Table:
        numbers, rows, order = self._by_manifest()
        starts = np.flatnonzero(begins(numbers[order]))
        pieces = [order[start:stop] for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=False)]
        tables = [self._load(int(numbers[places[0]]), rows[places], names).table for places in pieces]
        if len(pieces) < 2:
            return tables[0] if tables else EntryColumns(NO_ENTRIES).select(names).table
        # Not combined before: it would copy all once more.
        return pa.concat_tables(tables).unify_dictionaries().take(places_array(np.argsort(order))).combine_chunks()

    def _by_manifest(self) -> tuple[Places, Places, Places]:
        """The manifest and the row of each entry, and their places by manifest, in each as they are here: a sidecar has nearly that
        order."""
        few = EntryColumns(self._few)
        numbers, rows = few.numbers(MANIFEST), few.numbers(ROW)
        return numbers, rows, np.argsort(numbers, kind="stable")

    @property
    def size_bytes(self) -> int:
        return int(self._few.nbytes)

    def stores(self, name: str) -> bool:
        return name in self._few.column_names

    def column(self, name: str) -> pa.Array:
        return EntryColumns(self._few if self.stores(name) else self._loaded([name])).column(name)

    def select(self, names: Sequence[str]) -> EntryColumns:
        return EntryColumns(self._few if all(map(self.stores, names)) else self._loaded(names)).select(names)

    def take(self, places: Places) -> EntryColumns:
        return LateColumns(self._few.take(places_array(places)), self._load)

    def slice(self, start: int, count: int) -> EntryColumns:
        return LateColumns(self._few.slice(start, count), self._load)

    def loaded(self) -> EntryColumns:
        return EntryColumns(self.table)

    def loads_in_turn(self, starts: Sequence[int]) -> Iterator[Callable[[], EntryColumns]]:
        """As of loaded entries, and each manifest is read once. Memory: of what is to come about 160 bytes an entry, compressed."""
        numbers, rows, order = self._by_manifest()
        turns = np.searchsorted(np.array(starts), order, "right") - 1
        is_first = begins(numbers[order])
        if np.count_nonzero(is_first | begins(turns)) <= np.count_nonzero(is_first) * _MOST_READS:
            yield from super().loads_in_turn(starts)
            return
        cuts = np.flatnonzero(is_first | begins(turns))
        manifests = np.flatnonzero(is_first)

        def packed(bounds: tuple[int, int]) -> list[tuple[int, pa.Buffer]]:
            begin, end = bounds
            places = order[begin:end]
            loaded = self._load(int(numbers[places[0]]), rows[places], ENTRY_SCHEMA.names).table
            here = cuts[np.searchsorted(cuts, begin) : np.searchsorted(cuts, end)].tolist()
            pieces = zip(here, [*here[1:], end], strict=True)
            return [(int(turns[start]), _packed(loaded.slice(start - begin, stop - start))) for start, stop in pieces]

        waiting: list[list[pa.Buffer]] = [[] for _ in starts]
        for pieces in in_order(packed, pairwise([*manifests.tolist(), len(order)]), threads=_THREADS):
            for turn, piece in pieces:
                waiting[turn].append(piece)
        for turn, parts in enumerate(waiting):
            yield partial(_unpacked, parts, places_array(np.argsort(order[turns == turn])))
            waiting[turn] = []

    def entries(self) -> tuple[ManifestEntry, ...]:
        return self.loaded().entries()


def _packed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=_PACKING, unify_dictionaries=True)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _unpacked(parts: list[pa.Buffer], places: pa.Array) -> EntryColumns:
    """The entries of what was packed, at these places; nothing of it stays."""
    table = pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in parts).unify_dictionaries()
    parts.clear()
    return EntryColumns(table.take(places).combine_chunks())


def decode_manifests(manifests: Iterable[tuple[str, bytes]], limits: Limits = DEFAULT_LIMITS) -> Iterator[EntryColumns]:
    """The columns of each manifest (name and bytes), in order. Raises as :func:`decode_manifest` does."""
    group: list[tuple[str, bytes, ContainerBlocks | None]] = []
    size = 0
    for name, data in manifests:
        verify_content_name(name, data)
        blocks = _blocks(name, data, limits)
        length = sum(len(body) for _, body in blocks.blocks) if blocks else 0
        if group and size + length > _GROUP_BYTES:
            yield from _decode_group(group, limits)
            group, size = [], 0
        group.append((name, data, blocks))
        size += length
    if group:
        yield from _decode_group(group, limits)


def decode_with_records(name: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[EntryColumns, pa.Array]:
    """The columns of a manifest, and each entry as the bytes of a record of :data:`MANIFEST_SCHEMA` (binary), to be written again
    as it is. Raises as :func:`decode_manifest` does."""
    verify_content_name(name, data)
    blocks = _blocks(name, data, limits)
    if blocks is not None and blocks.schema == _own_schema():
        with suppress(IrregularBlocks):
            return _columns_and_records(blocks)
    encoded = encode_manifest(decode_manifest(data, name, limits), _ANY_NONCE)
    blocks = _blocks(name, encoded, limits)
    assert blocks is not None
    # However many steps it takes: it is the bytes of the records that are asked for.
    return _columns_and_records(blocks, most_reads=len(encoded) + sum(len(body) for _, body in blocks.blocks))


def decode_all_with_records(
    manifests: Sequence[tuple[str, bytes]], limits: Limits = DEFAULT_LIMITS
) -> list[tuple[EntryColumns, pa.Array]]:
    """:func:`decode_with_records` of each manifest (name and bytes). More blocks side by side take hardly longer than few."""
    if len(manifests) > 1:
        for name, data in manifests:
            verify_content_name(name, data)
        together = decode_together([data for _, data in manifests], manifests[0][0], fewest=0, limits=limits)
        if together is not None:
            columns, records, counts = together
            starts = np.cumsum(counts) - counts
            parts = zip(starts.tolist(), counts, strict=True)
            return [(columns.slice(start, count), records.slice(start, count)) for start, count in parts]
    return [decode_with_records(name, data, limits) for name, data in manifests]


def decode_together(
    manifests: Sequence[bytes], name: str, *, fewest: int, limits: Limits = DEFAULT_LIMITS
) -> tuple[EntryColumns, pa.Array, list[int]] | None:
    """The columns and the records of some manifests, as :func:`decode_with_records` has them, of all together, and how many each
    has. None where they have fewer than ``fewest``, or have to be read record by record. Names are not looked at."""
    blocks = [_blocks(name, data, limits) for data in manifests]
    together: list[tuple[int, bytes]] = []
    for one in blocks:
        if one is None or one.schema != _own_schema():
            return None
        together.extend(one.blocks)
    if len(together) < _FEWEST_LANES or sum(count for count, _ in together) < fewest:
        return None
    try:
        columns, records = _columns_and_records(ContainerBlocks(_own_schema(), together, []))
    except IrregularBlocks:
        return None
    return columns, records, [sum(count for count, _ in one.blocks) for one in blocks if one is not None]


def entries_at(data: bytes, places: RecordPlaces, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest whose records lie at some places, in that order. Its name is not looked at. Raises FormatError."""
    blocks, offsets = places.blocks.tolist(), places.offsets.tolist()
    records = records_at(data, zip(blocks, offsets, strict=True), name=name, limits=limits, expected=MANIFEST_SCHEMA)
    return entries_of_records(records, name)


def places_of_records(data: bytes, records: pa.Array) -> RecordPlaces:
    """The places of records in a manifest that :func:`encode_records` made of them."""
    sizes = numbers_of(pc.binary_length(records)).astype(np.int64)
    counts, starts = block_places(data)
    ends = np.cumsum(sizes)
    firsts = np.cumsum(counts) - counts
    before = (ends - sizes)[firsts]
    return RecordPlaces(np.repeat(starts, counts), ends - sizes - np.repeat(before, counts), BlockDigests.of(data, starts))


def encode_records(records: pa.Array, nonce: bytes, *, codec: str = CODEC) -> bytes:
    """A manifest of records that :func:`decode_with_records` gave."""
    offsets = np.frombuffer(records.buffers()[1], np.int32)[records.offset : records.offset + len(records) + 1].tolist()
    data = memoryview(records.buffers()[2]) if len(records) else memoryview(b"")
    starts = range(0, len(records), BLOCK_RECORDS)
    sizes = [min(BLOCK_RECORDS, len(records) - start) for start in starts]
    blocks = ((size, data[offsets[start] : offsets[start + size]]) for start, size in zip(starts, sizes, strict=True))
    return write_blocks(blocks, MANIFEST_SCHEMA, nonce=nonce, codec=codec, what="the manifest")


@cache
def _own_schema() -> Schema:
    """:data:`MANIFEST_SCHEMA` as it is when it was read from a file."""
    blocks = _blocks("a manifest", encode_manifest((), _ANY_NONCE), DEFAULT_LIMITS)
    assert blocks is not None
    return blocks.schema


def _blocks(name: str, data: bytes, limits: Limits) -> ContainerBlocks | None:
    """The decompressed blocks of a manifest; None if it has to be read record by record."""
    try:
        return container_blocks(data, name=name, limits=limits, expected=MANIFEST_SCHEMA)
    except FormatError:
        return None


def _decode_group(group: Sequence[tuple[str, bytes, ContainerBlocks | None]], limits: Limits) -> Iterator[EntryColumns]:
    """The columns of manifests, together if all are regular, else each for itself."""
    try:
        yield from _side_by_side([(data, _regular(blocks)) for _, data, blocks in group])
    except IrregularBlocks:
        if len(group) > 1:
            for one in group:
                yield from _decode_group([one], limits)
        else:
            ((name, data, _),) = group
            yield EntryColumns.of(decode_manifest(data, name, limits))


def _regular(blocks: ContainerBlocks | None) -> ContainerBlocks:
    if blocks is None:
        raise IrregularBlocks
    return blocks


def _side_by_side(manifests: Sequence[tuple[bytes, ContainerBlocks]]) -> list[EntryColumns]:
    blocks = [block for _, manifest in manifests for block in manifest.blocks]
    rows = sum(count for count, _ in blocks)
    schema = manifests[0][1].schema
    if any(manifest.schema != schema for _, manifest in manifests):
        raise IrregularBlocks
    if rows < _FEWEST_LANES * max((count for count, _ in blocks), default=0):
        raise IrregularBlocks
    columns = decode_columns(blocks, schema, [_VERSION, RECORD_START, *(path for _, path, _ in _COLUMNS)])
    table, offsets = _checked_table(columns, rows), numbers_of(columns[RECORD_START])
    parts, start = [], 0
    for data, manifest in manifests:
        counts = [count for count, _ in manifest.blocks]
        part = table.slice(start, sum(counts))
        entries = EntryColumns(part if len(manifests) == 1 else _copied(part))
        starts = np.repeat(np.array(manifest.starts, np.int64), counts)
        digests = BlockDigests.of(data, manifest.starts)
        entries.records = RecordPlaces(starts, offsets[start : start + len(starts)], digests)
        parts.append(entries)
        start += len(starts)
    return parts


def _columns_and_records(blocks: ContainerBlocks, *, most_reads: int | None = None) -> tuple[EntryColumns, pa.Array]:
    rows = sum(count for count, _ in blocks.blocks)
    paths = [_VERSION, RECORD, *(path for _, path, _ in _COLUMNS)]
    columns = decode_columns(blocks.blocks, blocks.schema, paths, most_reads=most_reads)
    return EntryColumns(_checked_table(columns, rows)), columns[RECORD]


def _checked_table(columns: Mapping[Path, pa.Array], rows: int) -> pa.Table:
    try:
        table = pa.table([_typed(columns.get(path), type_, rows) for _, path, type_ in _COLUMNS], ENTRY_SCHEMA)
        _check(table, columns[_VERSION])
    except (pa.ArrowException, KeyError) as error:
        raise IrregularBlocks from error
    return table


def _copied(table: pa.Table) -> pa.Table:
    """The table in memory of its own: what is kept of it does not keep what was decoded with it, nor all of its partitions."""
    place = table.column_names.index("partition")
    table = table.take(places_array(np.arange(table.num_rows)))
    return table.set_column(place, ENTRY_SCHEMA.field(place), table.column(place).cast(pa.binary()).dictionary_encode())


def _typed(column: pa.Array | None, data_type: pa.DataType, rows: int) -> pa.Array:
    if column is None:
        return pa.nulls(rows, data_type)
    if data_type == _PARTITIONS:
        return column.dictionary_encode()
    return column if column.type == data_type else column.cast(data_type)


def _check(table: pa.Table, versions: pa.Array) -> None:
    """Raise IrregularBlocks for what :func:`decode_manifest` refuses, or reads in a way of its own."""
    if not _are_between(versions, MANIFEST_VERSION, MANIFEST_VERSION):
        raise IrregularBlocks
    check_columns(table)


def check_columns(table: pa.Table) -> None:
    """Raise IrregularBlocks unless all entries have what is demanded of the columns that are there."""
    required = [name for name in table.column_names if name.partition(".")[0] in _REQUIRED and not name.endswith("null_counts")]
    if any(table.column(name).null_count for name in required if name != "extra_files"):
        raise IrregularBlocks
    at_least = {"bucket": -2, "file_size": 0, "row_count": 0, "level": 0, "schema_id": 0}
    possible: Sequence[tuple[tuple[str, ...], Callable[..., Any]]] = (
        (("kind",), lambda kinds: _are_between(kinds, 0, max(EntryKind))),
        (("partition",), lambda rows: _are_long(_distinct(rows))),
        *(((name,), partial(_are_between, least=least)) for name, least in at_least.items()),
        (("min_sequence_number", "max_sequence_number"), lambda least, most: _are_true(pc.less_equal(least, most))),
        *(((name,), _are_long) for name in ("min_key", "max_key")),
        (("file_name",), _are_plain_names),
        (("extra_files",), lambda names: _are_plain_names(pc.list_flatten(names))),
    )
    for names, condition in possible:
        if {*names} <= {*table.column_names} and not condition(*map(table.column, names)):
            raise IrregularBlocks


def _are_between(values: Any, least: int, most: int | None = None) -> bool:
    lowest, highest = pc.min_max(values).values()
    known = not values.null_count and len(values) > 0
    return not len(values) or (known and lowest.as_py() >= least and (most is None or highest.as_py() <= most))


def _are_long(rows: Any) -> bool:
    """True if all serialised rows have a header and a field."""
    return _are_between(pc.binary_length(rows), _SHORTEST_ROW)


def _are_true(values: Any) -> bool:
    return pc.all(values, skip_nulls=False, min_count=0).as_py() is True


def _distinct(partitions: pa.ChunkedArray) -> pa.Array:
    return partitions.unify_dictionaries().combine_chunks().dictionary


def _are_plain_names(names: Any) -> bool:
    """True if each name is one plain path segment. Any other is left to :func:`decode_manifest`."""
    # A NUL, a slash or a backslash anywhere, no name, or one of dots alone.
    is_odd = pc.match_substring_regex(names, r"[/\\\x00]|^\.*$")
    return _are_true(pc.invert(is_odd)) and _are_between(pc.binary_length(names), 0, _LONGEST_NAME)


def _dense(values: Places) -> Places:
    """The rank of each value among the distinct ones."""
    least = int(values.min(initial=0))
    span = int(values.max(initial=0)) - least + 1
    if span > len(values) + _FEW_RANKS:
        return np.unique(values, return_inverse=True)[1]
    # Without a sort.
    is_there = np.zeros(span, np.bool_)
    is_there[values - least] = True
    ranks: Places = (np.cumsum(is_there) - 1)[values - least]
    return ranks


def _ranks(partitions: pa.DictionaryArray) -> Places:
    """The rank of each entry's partition among them all."""
    order = numbers_of(pc.sort_indices(partitions.dictionary))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    ranked: Places = ranks[numbers_of(partitions.indices)]
    return ranked


def _array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """An array of values of Python. Numbers and texts are laid out here: ``pa.array`` loads pandas."""
    if values.count(None) == len(values):
        return pa.nulls(len(values), data_type)
    is_known = np.array([value is not None for value in values], np.bool_)
    mask = None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
    if pa.types.is_nested(data_type):
        ends = np.cumsum([0, *(len(value or ()) for value in values)]).astype(np.int32)
        items = _array([item for value in values for item in value or ()], data_type.value_type)
        return pa.Array.from_buffers(data_type, len(values), [mask, pa.py_buffer(ends)], children=[items])
    if pa.types.is_integer(data_type):
        numbers = np.array([value or 0 for value in values], f"int{data_type.bit_width}")
        return pa.Array.from_buffers(data_type, len(values), [mask, pa.py_buffer(numbers)])
    texts = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return pa.Array.from_buffers(data_type, len(values), [mask, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])


def _stored_names(names: Sequence[str]) -> list[str]:
    """The columns that ``names`` are or are derived of, each once."""
    parts = (DERIVED_COLUMNS[name].of if name in DERIVED_COLUMNS else (name,) for name in names)
    return list(dict.fromkeys(stored for part in parts for stored in part))


def _plain(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _getter(name: str) -> Callable[[ManifestEntry], Any]:
    """Gives the value of a column of an entry."""
    return attrgetter(name if name in _ENTRY_ATTRIBUTES else f"file.{name}")


def _stats(low: bytes, high: bytes, counts: list[int | None] | None) -> SimpleStats:
    if low == EMPTY_STATS.min_values and high == EMPTY_STATS.max_values and not counts:
        return EMPTY_STATS
    return SimpleStats(min_values=low, max_values=high, null_counts=tuple(counts or ()))
