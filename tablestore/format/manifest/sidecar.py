"""Stores the entries of a large manifest a second time, as Parquet beside it, for plans that need a few columns and rows of them.

    manifest/manifest-<uuid>-<i>            Avro: what counts
    manifest/columns-manifest-<uuid>-<i>    Parquet: the same entries, ordered by partition, bucket and first key, and bounds

A sidecar is a cache without authority. Whoever finds none, or one that is damaged or of another manifest, reads the manifest. Its
seal is a SHA-256 over the manifest's name and the whole file. It lies between the last page and the footer, where Parquet leaves
room, so any reader of Parquet reads the file:

    pages | "TSCOLS2" + NUL (8 bytes) | SHA-256 (32 bytes) | footer | length of the footer | "PAR1"

Beside :data:`ENTRY_SCHEMA` it has columns that are derived of these, and the bounds of columns, one low and one high of each entry,
null where unknown: comparing these needs no row of bounds. A bound is named after its column and the type that it was read as (see
:class:`BoundedColumn`).

Memory: a sidecar is opened whole (about 80 bytes an entry); of its columns those that were asked for stay.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.derivedcolumns import DERIVED_COLUMNS
from tablestore.format.manifest.entrycolumns import (
    ENTRY_SCHEMA,
    NO_ENTRIES,
    BoundedColumn,
    Bounds,
    EntryColumns,
    Places,
    StoredBounds,
    check_columns,
)
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.types.arrays import numbers_of, places_array

SIDECAR_PREFIX = "columns-"
FEWEST_ENTRIES = 2_000
"""Manifests of fewer entries have no sidecar: they are read as fast without."""

_MAGIC = b"TSCOLS2\0"
_TAIL = b"PAR1"
_LENGTH_BYTES = 4
_SEAL_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
_ROWS_OF_A_GROUP = 2_048
# Of how lists and nulls are said, and of values.
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
# Asked for by every plan, and read together.
_HEADS = ("kind", "partition")
_SCHEMA = pa.schema([*ENTRY_SCHEMA, *(pa.field(name, column.type) for name, column in DERIVED_COLUMNS.items())])


def sidecar_name(manifest: str) -> str:
    """The name of the sidecar of a manifest, in the same directory."""
    return f"{SIDECAR_PREFIX}{manifest}"


def encode_sidecar(entries: EntryColumns, manifest: str, bounds: StoredBounds) -> bytes | None:
    """The bytes of the sidecar of ``manifest`` with these entries; None if their order says something,
    which it would not keep, or they have odd names."""
    try:
        check_columns(entries.table)
    except IrregularBlocks:
        # Rare, and read with the messages of the manifest.
        return None
    if _has_a_file_twice(entries):
        # It is deleted and added again.
        return None
    table = entries.select(_SCHEMA.names).table
    for column, (low, high) in bounds.items():
        table = table.append_column(column.stored("low"), low).append_column(column.stored("high"), high)
    sink = io.BytesIO()
    pq.write_table(
        table.take(places_array(_order(entries, bounds))),
        sink,
        row_group_size=_ROWS_OF_A_GROUP,
        compression="zstd",
        use_dictionary=["partition"],
        write_statistics=False,
    )
    return _sealed(sink.getvalue(), manifest)


class SidecarFile:
    """The Parquet file of a sidecar, whose columns may take ``most_bytes``."""

    def __init__(self, file: pq.ParquetFile, manifest: str, most_bytes: int) -> None:
        self._file, self._manifest, self._most_bytes = file, manifest, most_bytes
        self.names: list[str] = file.schema_arrow.names
        metadata = file.metadata
        self.rows: int = metadata.num_rows
        self.group_ends: Places = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
        self._checked: set[str] = set()
        self._bytes = 0

    def read(self, names: Sequence[str], groups: Places | None = None) -> pa.Table:
        """Columns, of all groups of rows or of some. Raises FormatError for more bytes than they may take."""
        self._check_size(names)
        chosen = range(len(self.group_ends)) if groups is None else groups.tolist()
        try:
            # Threads would take more memory, and are hardly sooner.
            table = self._file.read_row_groups(chosen, list(names), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{sidecar_name(self._manifest)}: {error}") from error
        return table.select(list(names))

    def _check_size(self, names: Sequence[str]) -> None:
        """Raise FormatError where values stand for many bytes each, or there are too many bytes."""
        new = set(names) - self._checked
        if not new:
            return
        metadata = self._file.metadata
        places = [place for place, name in enumerate(_leaves(metadata.schema)) if name in new]
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            for column in map(row_group.column, places):
                self._bytes += column.total_uncompressed_size
                if not _PLAIN.issuperset(column.encodings) and column.path_in_schema != "partition":
                    raise FormatError(f"{sidecar_name(self._manifest)}: expected plain values, found {column.encodings}")
        if self._bytes > self._most_bytes:
            raise FormatError(
                f"{sidecar_name(self._manifest)}: expected at most {self._most_bytes} bytes of columns, found {self._bytes}"
            )
        self._checked |= new


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
    place = _seal_place(data)
    if place is None or data[place : place + _SEAL_BYTES] != _seal(data, place, manifest):
        raise FormatError(f"{sidecar_name(manifest)}: expected the sealed columns of {manifest}, found {len(data)} other bytes")
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        schema = file.schema_arrow.remove_metadata()
        if file.metadata.num_rows == count and list(schema)[: len(_SCHEMA)] == list(_SCHEMA):
            return SidecarFile(file, manifest, limits.expanded_bytes(len(data)))
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{sidecar_name(manifest)}: {error}") from error
    raise FormatError(f"{sidecar_name(manifest)}: expected {count} entries with the columns of this version, found others")


class SidecarColumns(EntryColumns):
    """The entries of a manifest, of which columns and rows are read from its sidecar when they are asked for.

    ``read`` opens the sidecar: now, and again when something is asked for after :meth:`close`.
    """

    def __init__(self, read: Callable[[], SidecarFile]) -> None:
        self._read = read
        self._file: SidecarFile | None = (file := read())
        self._count, self._group_ends, self._names = file.rows, file.group_ends, frozenset(file.names)
        self._columns: dict[str, pa.Array] = {}
        # A reader of Parquet is one thread's at a time.
        self._lock = RLock()

    def __len__(self) -> int:
        return self._count

    @property
    def table(self) -> pa.Table:
        """All the columns. They do not stay."""
        return _checked(self._rows(None))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory of the columns that stay."""
        with self._lock:
            return sum(column.nbytes for column in self._columns.values())

    def column(self, name: str) -> pa.Array:
        """One column, as one array."""
        with self._lock:
            if name not in self._columns:
                self._read_columns(_HEADS if name in _HEADS else (name,))
            return self._columns[name]

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
        """The entries at ``places``, in that order; only the groups of rows are read that they lie in."""
        group_of = np.searchsorted(self._group_ends, places, "right")
        groups, read = np.unique(group_of, return_inverse=True)
        # What lies before each group, and before it among those that are read.
        sizes = np.diff(self._group_ends, prepend=0)
        before, before_read = self._group_ends - sizes, np.cumsum(sizes[groups]) - sizes[groups]
        # Only what is taken is looked at: names take longer to check than to read.
        return EntryColumns(_checked(self._rows(groups).take(places_array(places - before[group_of] + before_read[read]))))

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

    def _rows(self, groups: Places | None) -> pa.Table:
        if groups is not None and not len(groups):
            return NO_ENTRIES
        with self._lock:
            table = self._open().read(ENTRY_SCHEMA.names, groups)
        return table.unify_dictionaries().combine_chunks()


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
        "kind": pc.not_equal(entries.column("kind"), int(EntryKind.DELETE)),
        "partition": pa.array(ranks[numbers_of(partitions.indices)]),
        "bucket": entries.column("bucket"),
    }
    if bounds:
        keys["low"] = next(iter(bounds.values()))[0]
    order: Places = pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]).to_numpy().astype(np.int64)
    return order


def _sealed(data: bytes, manifest: str) -> bytes:
    place = len(data) - len(_TAIL) - _LENGTH_BYTES - _footer_bytes(data)
    spaced = data[:place] + bytes(_SEAL_BYTES) + data[place:]
    return data[:place] + _seal(spaced, place, manifest) + data[place:]


def _seal(data: bytes, place: int, manifest: str) -> bytes:
    digest = hashlib.sha256(f"{manifest}\n".encode())
    digest.update(memoryview(data)[:place])
    digest.update(memoryview(data)[place + _SEAL_BYTES :])
    return _MAGIC + digest.digest()


def _seal_place(data: bytes) -> int | None:
    place = len(data) - len(_TAIL) - _LENGTH_BYTES - _footer_bytes(data) - _SEAL_BYTES
    return place if data.endswith(_TAIL) and place > 0 else None


def _footer_bytes(data: bytes) -> int:
    return int.from_bytes(data[-len(_TAIL) - _LENGTH_BYTES : -len(_TAIL)], "little")
