"""Stores the entries of a large manifest a second time, as Parquet beside it, for plans that need a few columns and rows of them.

    manifest/manifest-<uuid>-<i>            Avro: what counts
    manifest/columns-manifest-<uuid>-<i>    Parquet: the same entries, ordered by partition, bucket and first key, and bounds

A sidecar is a cache without authority. Whoever finds none, or one that is damaged or of another manifest, reads the manifest. It
has one group of rows, so that each column is one piece. Its seal lies between the last page and the footer, where Parquet leaves
room, so any reader of Parquet reads the file:

    pages | digests | "TSCOLS3" + NUL | bytes of the digests | SHA-256 | footer | bytes of the footer | "PAR1"

Numbers of bytes take 4 bytes each, low ones first. A digest is the first 16 bytes of the SHA-256 of a piece, which is looked at
when the piece is read. The SHA-256 of the seal is over the name of the manifest, the number of bytes of the pages, the digests and
the footer.

Beside :data:`ENTRY_SCHEMA` it has columns that are derived of these; where the record of each entry lies in the manifest, so that
few entries are read from there one by one (``block_start``, ``record_start``, -1 if unknown), and its ``row`` there;
and the bounds of columns, one low and one high of each entry, null where unknown: comparing these needs no row of bounds. A bound
is named after its column and the type that it was read as (see :class:`BoundedColumn`).

Its footer has the sums of each partition and bucket (:mod:`tablestore.format.manifest.bucketsums`), and the digests of the blocks
of the manifest (:mod:`tablestore.format.manifest.blockdigests`), so that no more of it is read than the blocks of these entries.

Memory: a sidecar is opened whole (about 100 bytes an entry); of its columns those that were asked for stay.
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.blockdigests import BLOCKS_KEY, BlockDigests
from tablestore.format.manifest.bucketsums import SUMS_KEY, decode_sums, encode_sums, file_mask, sum_up
from tablestore.format.manifest.derivedcolumns import DERIVED_COLUMNS
from tablestore.format.manifest.entrycolumns import (
    ENTRY_SCHEMA,
    NO_ENTRIES,
    BoundedColumn,
    Bounds,
    EntryColumns,
    EntryObjects,
    Places,
    RecordPlaces,
    StoredBounds,
    check_columns,
)
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.types.arrays import Mask, mask_array, numbers_of, places_array

SIDECAR_PREFIX = "columns-"
FEWEST_ENTRIES = 2_000
"""Manifests of fewer entries have no sidecar: they are read as fast without."""

_MAGIC = b"TSCOLS3\0"
_TAIL = b"PAR1"
_LENGTH_BYTES = 4
_DIGEST_BYTES = 16
_SEAL_BYTES = len(_MAGIC) + _LENGTH_BYTES + hashlib.sha256().digest_size
# Of fewer entries a record each is read from the manifest: all columns of a sidecar take as long as one of so many.
_ENTRIES_OF_A_RECORD = 300
# About what an entry takes in memory as an object.
_OBJECT_BYTES = 2_000
# Read by most plans. The others are smaller by it.
_FAST_CODEC, _CODEC = "lz4", "zstd"
# Of how lists and nulls are said, and of values.
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
_RECORD_PLACES = ("block_start", "record_start")
# Asked for together: by every plan with a filter that no sums answer, and where few entries are read.
_HEADS = ("kind", "partition", "bucket", "total_buckets")
_ROW = "row"
# The place of a record in a manifest that is decoded record by record.
_UNKNOWN = -1
_SCHEMA = pa.schema(
    [
        *ENTRY_SCHEMA,
        *(pa.field(name, column.type) for name, column in DERIVED_COLUMNS.items()),
        *(pa.field(name, pa.int32()) for name in (*_RECORD_PLACES, _ROW)),
    ]
)
_READ_BY_MOST = frozenset(
    {"kind", "partition", "bucket", "total_buckets", "level", "file_size", "row_count", "min_sequence_number", *DERIVED_COLUMNS}
)

ReadEntries = Callable[[RecordPlaces], tuple[ManifestEntry, ...]]
"""Reads the entries whose records lie at some places of a manifest."""


def sidecar_name(manifest: str) -> str:
    """The name of the sidecar of a manifest, in the same directory."""
    return f"{SIDECAR_PREFIX}{manifest}"


def encode_sidecar(entries: EntryColumns, manifest: str, bounds: StoredBounds) -> bytes | None:
    """The bytes of the sidecar of ``manifest``, whose entries these are, in its order; None if their order says something, which it
    would not keep, or they have odd names."""
    try:
        check_columns(entries.table)
    except IrregularBlocks:
        # Rare, and read with the messages of the manifest.
        return None
    if _has_a_file_twice(entries):
        # It is deleted and added again.
        return None
    table = entries.select([*ENTRY_SCHEMA.names, *DERIVED_COLUMNS]).table
    rows = np.arange(len(entries))
    records = entries.records or RecordPlaces(np.full(len(rows), _UNKNOWN), np.full(len(rows), _UNKNOWN))
    stored = (records.blocks, records.offsets, rows)
    for name, places in zip((*_RECORD_PLACES, _ROW), stored, strict=True):
        table = table.append_column(name, places_array(places).cast(pa.int32()))
    for column, (low, high) in bounds.items():
        table = table.append_column(column.stored("low"), low).append_column(column.stored("high"), high)
    table = table.take(places_array(_order(entries, bounds))).combine_chunks()
    ordered = EntryColumns(table)
    first = next(iter(bounds), None)
    sums = sum_up(ordered, None if first is None or (pair := ordered.bounds(first)) is None else (first, pair))
    metadata = {} if sums is None else {SUMS_KEY: encode_sums(sums)}
    if records.digests is not None:
        metadata[BLOCKS_KEY] = records.digests.encode()
    return _sealed(_as_parquet(table, metadata), manifest)


def _as_parquet(table: pa.Table, metadata: Mapping[bytes, bytes]) -> bytes:
    sink = io.BytesIO()
    codecs = {
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name: (
            _FAST_CODEC if field.name in _READ_BY_MOST or field.name not in ENTRY_SCHEMA.names else _CODEC
        )
        for field in table.schema
    }
    options = {"compression": codecs, "use_dictionary": ["partition"], "write_statistics": False}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        if metadata:
            writer.add_key_value_metadata(metadata)
    return sink.getvalue()


class SidecarFile:
    """The Parquet file ``data`` of a sidecar, whose columns may take ``most_bytes``. ``digests``: of its pieces."""

    def __init__(self, data: bytes, file: pq.ParquetFile, digests: bytes, manifest: str, most_bytes: int) -> None:
        self._data, self._file, self._digests, self._manifest, self._most_bytes = data, file, digests, manifest, most_bytes
        metadata = file.metadata
        self.rows: int = metadata.num_rows
        self._pieces = {name: place for place, name in enumerate(_leaves(metadata.schema))}
        self.names = frozenset(self._pieces)
        self._group = metadata.row_group(0)
        self._checked: set[str] = set()
        self._bytes = 0

    def sums(self) -> EntryColumns | None:
        """The sums of the entries; None if it has none. Raises FormatError for other ones."""
        encoded = (self._file.metadata.metadata or {}).get(SUMS_KEY)
        return None if encoded is None else decode_sums(encoded, self.rows, self._most_bytes)

    def block_digests(self) -> BlockDigests | None:
        """The digests of the manifest's blocks; None if it has none. Raises FormatError for other ones."""
        encoded = (self._file.metadata.metadata or {}).get(BLOCKS_KEY)
        return None if encoded is None else BlockDigests.decode(encoded)

    def read(self, names: Sequence[str]) -> pa.Table:
        """Columns. Raises FormatError for more bytes than they may take, and for damaged ones."""
        for name in names:
            if name not in self._checked:
                self._check(name)
        try:
            # Threads would take more memory, and are hardly sooner.
            table = self._file.read_row_group(0, list(names), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{sidecar_name(self._manifest)}: {error}") from error
        return table.select(list(names))

    def _check(self, name: str) -> None:
        """Raise FormatError where values of a column stand for many bytes each, there are too many bytes, or it is damaged."""
        place = self._pieces[name]
        column = self._group.column(place)
        self._bytes += column.total_uncompressed_size
        if not _PLAIN.issuperset(column.encodings) and name != "partition":
            raise FormatError(f"{sidecar_name(self._manifest)}: expected plain values, found {column.encodings}")
        if self._bytes > self._most_bytes:
            raise FormatError(
                f"{sidecar_name(self._manifest)}: expected at most {self._most_bytes} bytes of columns, found {self._bytes}"
            )
        if _digest(self._data, column) != self._digests[place * _DIGEST_BYTES : (place + 1) * _DIGEST_BYTES]:
            raise FormatError(f"{sidecar_name(self._manifest)}: the column {name} is damaged")
        self._checked.add(name)


def _checked(table: pa.Table) -> pa.Table:
    """Returns the table. Raises FormatError for entries that no manifest may have: the manifest says what is wrong."""
    try:
        check_columns(table)
    except IrregularBlocks as error:
        raise FormatError("a sidecar has entries that no manifest may have") from error
    return table


def _leaves(schema: Any) -> list[str]:
    """The column that each stored leaf belongs to. A list has a leaf ``name.list.element``."""
    paths = [schema.column(place).path for place in range(len(schema))]
    return [path.removesuffix(".list.element") for path in paths]


def open_sidecar(data: bytes, manifest: str, count: int, limits: Limits = DEFAULT_LIMITS) -> SidecarFile:
    """The Parquet file of a sidecar. Raises FormatError unless it was written for ``manifest``, of so many entries; its columns may
    take no more memory than ``limits`` allow."""
    footer = _footer_place(data)
    seal = max(footer - _SEAL_BYTES, 0)
    digests = data[max(seal - _number(data, seal + len(_MAGIC)), 0) : seal]
    if data[seal:footer] != _seal(manifest, seal - len(digests), digests, data[footer:]):
        raise FormatError(f"{sidecar_name(manifest)}: expected the sealed columns of {manifest}, found {len(data)} other bytes")
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        is_whole = file.metadata.num_rows == count and file.metadata.num_row_groups == 1
        is_whole = is_whole and len(digests) == file.metadata.num_columns * _DIGEST_BYTES
        if is_whole and list(file.schema_arrow.remove_metadata())[: len(_SCHEMA)] == list(_SCHEMA):
            return SidecarFile(data, file, digests, manifest, limits.expanded_bytes(len(data)))
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{sidecar_name(manifest)}: {error}") from error
    raise FormatError(f"{sidecar_name(manifest)}: expected {count} entries with the columns of this version, found others")


class SidecarColumns(EntryColumns):
    """The entries of a manifest, of which columns and rows are read from its sidecar when they are asked for.

    ``read`` opens the sidecar: now, and again when something is asked for after :meth:`close`. ``read_entries`` reads few entries
    where that takes less time.
    """

    def __init__(self, read: Callable[[], SidecarFile], read_entries: ReadEntries | None = None) -> None:
        self._read, self._read_entries = read, read_entries
        self._file: SidecarFile | None = (file := read())
        self._count, self._names = file.rows, file.names
        self._columns: dict[str, pa.Array] = {}
        self._sums = file.sums()
        self._digests: BlockDigests | None = None
        # The few entries that were taken last, by their places.
        self._taken = b"", EntryObjects(())
        # A reader of Parquet is one thread's at a time.
        self._lock = RLock()

    def __len__(self) -> int:
        return self._count

    @property
    def table(self) -> pa.Table:
        """All the columns. They do not stay."""
        return _checked(self._rows())

    @property
    def size_bytes(self) -> int:
        """Bytes in memory of the columns and few entries that stay."""
        with self._lock:
            of_footer = sum(part.size_bytes for part in (self._sums, self._digests) if part is not None)
            return of_footer + len(self._taken[1]) * _OBJECT_BYTES + sum(int(column.nbytes) for column in self._columns.values())

    def column(self, name: str) -> pa.Array:
        """One column, as one array."""
        with self._lock:
            if name not in self._columns:
                self._read_columns(next((group for group in (_HEADS, _RECORD_PLACES) if name in group), (name,)))
            return self._columns[name]

    def sums(self) -> EntryColumns | None:
        return self._sums

    def in_places(self, wanted: Callable[[tuple[bytes, int]], bool]) -> Mask:
        if self._sums is None:
            return super().in_places(wanted)
        return file_mask(self._sums, self._sums.in_places(wanted))

    def in_partitions(self, wanted: Callable[[bytes], bool]) -> Mask:
        if self._sums is None:
            return super().in_partitions(wanted)
        return file_mask(self._sums, self._sums.in_partitions(wanted))

    def stores(self, name: str) -> bool:
        return name in self._names

    def bounds(self, column: BoundedColumn) -> Bounds | None:
        """The bounds of a column; None if the sidecar has none of it."""
        low, high = column.stored("low"), column.stored("high")
        if not self.stores(low) or not self.stores(high):
            return None
        with self._lock:
            if low not in self._columns or high not in self._columns:
                self._read_columns((low, high))
            return self._columns[low], self._columns[high]

    def select(self, names: Sequence[str]) -> EntryColumns:
        """The columns ``names`` only. Those that were not asked for before do not stay."""
        with self._lock:
            held = {name: self._columns[name] for name in names if name in self._columns}
            missing = [name for name in names if name not in held]
            read = _checked(self._open().read(missing)) if missing else None
        columns = [held[name] if read is None or name in held else _as_one(read.column(name)) for name in names]
        return EntryColumns(pa.Table.from_arrays(columns, names=list(names)))

    def take(self, places: Places) -> EntryColumns:
        """The entries at ``places``, in that order; few of them are read from the manifest."""
        if not len(places):
            return EntryColumns(NO_ENTRIES)
        if self._read_entries is not None and len(places) * _ENTRIES_OF_A_RECORD < self._count:
            # Plans come again.
            with self._lock:
                key, entry_objects = self._taken
                if key == places.tobytes():
                    return entry_objects
            blocks, offsets = (self.numbers(name)[places] for name in _RECORD_PLACES)
            if (blocks != _UNKNOWN).all():
                order = np.argsort(blocks, kind="stable")
                entries = self._read_entries(RecordPlaces(blocks[order], offsets[order], self._block_digests()))
                entry_objects = EntryObjects([entries[place] for place in np.argsort(order).tolist()])
                with self._lock:
                    self._taken = places.tobytes(), entry_objects
                return entry_objects
        # Only what is taken is looked at: names take longer to check than to read.
        return EntryColumns(_checked(_taken(self._rows(), places)))

    def stored_rows(self) -> Places:
        return self.numbers(_ROW)

    def at_rows(self, rows: Places, names: Sequence[str]) -> EntryColumns:
        places = np.zeros(len(self), np.int64)
        places[self.numbers(_ROW)] = np.arange(len(self))
        if len(names) < len(ENTRY_SCHEMA):
            return self.select(names).take(places[rows])
        return self.take(places[rows]).select(names)

    def close(self) -> None:
        with self._lock:
            self._file = None

    def _open(self) -> SidecarFile:
        if self._file is None:
            self._file = self._read()
        return self._file

    def _read_columns(self, names: Sequence[str]) -> None:
        table = _checked(self._open().read(names))
        self._columns |= {name: _as_one(table.column(name)) for name in names}

    def _block_digests(self) -> BlockDigests | None:
        with self._lock:
            if self._digests is None:
                self._digests = self._open().block_digests()
            return self._digests

    def _rows(self) -> pa.Table:
        with self._lock:
            table = self._open().read(ENTRY_SCHEMA.names)
        return table.unify_dictionaries().combine_chunks()


def _taken(rows: pa.Table, places: Places) -> pa.Table:
    """The rows at some places; those of most of a manifest are not copied where they follow one another."""
    if 2 * len(places) > len(rows) and (np.diff(places) == 1).all():
        return rows.slice(int(places[0]), len(places))
    return rows.take(places_array(places))


def _has_a_file_twice(entries: EntryColumns) -> bool:
    names = entries.column("file_name").dictionary_encode()
    codes = numbers_of(names.indices)
    again = np.flatnonzero(np.bincount(codes, minlength=len(names.dictionary))[codes] > 1)
    return len({entry.identity for entry in entries.take(again).entries()}) < len(again)


def _as_one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _order(entries: EntryColumns, bounds: StoredBounds) -> Places:
    """The places of entries by partition, bucket and the low of the first bounded column; DELETEs before all, as in a manifest."""
    partitions = entries.column("partition")
    ranks = np.argsort(np.argsort(np.array(partitions.dictionary.to_pylist(), object)))
    keys = {
        "kind": mask_array(entries.numbers("kind") != EntryKind.DELETE),
        "partition": places_array(ranks[numbers_of(partitions.indices)]),
        "bucket": entries.column("bucket"),
    }
    if bounds:
        keys["low"] = next(iter(bounds.values()))[0]
    ordered = pa.Table.from_arrays(list(keys.values()), names=list(keys))
    return numbers_of(pc.sort_indices(ordered, [(name, "ascending") for name in keys])).astype(np.int64)


def _sealed(data: bytes, manifest: str) -> bytes:
    footer = _footer_place(data)
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    digests = b"".join(_digest(data, group.column(place)) for place in range(group.num_columns))
    return data[:footer] + digests + _seal(manifest, footer, digests, data[footer:]) + data[footer:]


def _seal(manifest: str, pages: int, digests: bytes, footer: bytes) -> bytes:
    """The seal of a file with so many bytes of pages."""
    length = len(digests).to_bytes(_LENGTH_BYTES, "little")
    return _MAGIC + length + hashlib.sha256(b"".join((f"{manifest}\n{pages}\n".encode(), digests, footer))).digest()


def _digest(data: bytes, column: Any) -> bytes:
    """The digest of the piece of a column (of Parquet's metadata)."""
    start = column.data_page_offset
    if column.has_dictionary_page:
        start = min(start, column.dictionary_page_offset)
    return hashlib.sha256(memoryview(data)[start : start + column.total_compressed_size]).digest()[:_DIGEST_BYTES]


def _footer_place(data: bytes) -> int:
    """The place where the footer begins, 0 if there is none."""
    end = len(data) - len(_TAIL) - _LENGTH_BYTES
    place = end - _number(data, end)
    return place if data.endswith(_TAIL) and 0 < place < end else 0


def _number(data: bytes, place: int) -> int:
    return int.from_bytes(data[max(place, 0) : max(place, 0) + _LENGTH_BYTES], "little")
