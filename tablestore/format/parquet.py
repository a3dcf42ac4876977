"""Arrow batches to Parquet data files and back, on file objects that are handed in.

Writing follows the table-format specification, "Data files": v1 pages with checksums, zstd, decimals up to 18
digits as integers, INT96 for nanosecond timestamps only, row groups of at most 128 k rows (they bound the memory of a
merge). Every file holds its own name in its key-value metadata, and the writer returns a digest of the footer for
the manifest. So every byte is covered when a file is read: pages by their checksums, the footer by the digest, the
whole by the name (two files of one table that changed places).

Left to others: which columns a file has (parquetschema), old schemas (projection), names and directories.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore.errors import FormatError, InvalidInputError, StorageError, TablestoreError
from tablestore.format.parquetfooter import (
    MAGIC,
    TAIL_BYTES,
    annotate_timestamps,
    footer_digest,
    footer_length,
)
from tablestore.format.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN, field_id_of, file_schema
from tablestore.format.projection import Projection
from tablestore.types.schema import KEY_PREFIX

__all__ = [
    "DataFileReader",
    "DataFileWriter",
    "FileFooter",
    "ParquetOptions",
    "Projection",
    "RowGroup",
    "file_schema",
    "open_data_file",
    "with_system_columns",
]

FILE_NAME_KEY = "tablestore.file-name"
READ_BATCH_ROWS = 131072

# Limits for the parser of untrusted footers.
_MAX_THRIFT_BYTES = 128 << 20
_MAX_THRIFT_ITEMS = 4_000_000
_SAMPLE_BLOCKS, _SAMPLE_BLOCK_ROWS = 16, 256
# Above this share of distinct values a dictionary costs more than it saves.
_DISTINCT_SHARE = 0.9
# With these, what went wrong is the file's content.
_READ_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, IndexError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """How data files are written."""

    compression: str = "zstd"
    compression_level: int | None = 1
    row_group_rows: int = 131072


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFooter:
    """What a finished file is known by: SHA-256 of its footer, its rows, its bytes."""

    digest: bytes
    row_count: int
    file_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """A row group: its number, rows and compressed bytes, and (min, max) per column that has exact statistics."""

    index: int
    row_count: int
    compressed_bytes: int
    bounds: dict[str, tuple[object, object]]


def with_system_columns(
    rows: pa.Table, schema: pa.Schema, *, sequence: int | npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]
) -> pa.Table:
    """A keyed table's rows with the columns of its data files (``schema`` from ``file_schema``)."""
    numbers = sequence if isinstance(sequence, np.ndarray) else np.full(rows.num_rows, sequence, dtype=np.int64)
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in schema:
        if field.name == SEQUENCE_COLUMN:
            columns.append(pa.array(numbers))
        elif field.name == KIND_COLUMN:
            columns.append(pa.array(kinds, type=pa.int8()))
        else:
            columns.append(rows.column(field.name.removeprefix(KEY_PREFIX)))
    return pa.Table.from_arrays(columns, schema=schema)


class DataFileWriter:
    """Writes one data file into ``sink``, which the caller opens and closes.

    ``schema`` comes from ``file_schema``; ``unique_columns`` are columns where hardly a value repeats (keys): they get
    no dictionary, others get one if a sample repeats. Raises InvalidInputError for rows that do not fit the schema.
    """

    def __init__(
        self,
        sink: BinaryIO | pa.NativeFile,
        schema: pa.Schema,
        *,
        file_name: str,
        options: ParquetOptions | None = None,
        unique_columns: frozenset[str] = frozenset(),
    ) -> None:
        self._sink = _FooterSink(sink)
        self._schema = schema
        self._file_name = file_name
        self._options = options or ParquetOptions()
        self._unique = unique_columns
        self._storage, self._plain_timestamps, self._int96 = _storage_schema(schema)
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._rows = 0

    @property
    def bytes_written(self) -> int:
        """Bytes that reached the sink: whole row groups so far."""
        return self._sink.count

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Append rows, whose columns are those of the schema in its order."""
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        try:
            rows = pa.Table.from_arrays(rows.columns, schema=self._schema)
            if self._storage is not self._schema:
                rows = rows.cast(self._storage)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{self._file_name}: the rows do not have the columns of the file: expected {self._schema.names} ({error})"
            ) from error
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._rows += rows.num_rows
        if self._pending_rows >= self._options.row_group_rows:
            self._write_pending(whole_groups=True)

    def close(self) -> FileFooter:
        """Write what is left and the footer. The sink stays open."""
        self._write_pending(whole_groups=False)
        writer = self._writer or self._open(self._storage.empty_table())
        self._sink.hold()
        writer.close()
        digest = self._sink.release(self._plain_timestamps if self._int96 else {})
        return FileFooter(digest=digest, row_count=self._rows, file_size=self._sink.count)

    def _write_pending(self, *, whole_groups: bool) -> None:
        if not self._pending_rows:
            return
        rows = self._pending[0] if len(self._pending) == 1 else pa.concat_tables(self._pending)
        group = self._options.row_group_rows
        stop = rows.num_rows - rows.num_rows % group if whole_groups else rows.num_rows
        if self._writer is None:
            self._writer = self._open(rows)
        try:
            self._writer.write_table(rows.slice(0, stop), row_group_size=group)
        except pa.ArrowInvalid as error:
            raise InvalidInputError(f"{self._file_name}: the rows do not fit the file's columns ({error})") from error
        self._pending = [rows.slice(stop)] if stop < rows.num_rows else []
        self._pending_rows = rows.num_rows - stop

    def _open(self, sample: pa.Table) -> pq.ParquetWriter:
        dictionary = [SEQUENCE_COLUMN, KIND_COLUMN]
        for field in self._storage:
            unique = field.name in self._unique or field.name.startswith(KEY_PREFIX)
            if unique or field.name in (SEQUENCE_COLUMN, KIND_COLUMN):
                continue
            if pa.types.is_nested(field.type):
                dictionary.extend(_leaf_paths(field.name, field.type))
            elif _repeats(sample.column(field.name)):
                dictionary.append(field.name)
        writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            self._storage,
            version="2.6",
            data_page_version="1.0",
            compression=self._options.compression,
            compression_level=self._options.compression_level,
            use_dictionary=dictionary,
            write_statistics=True,
            write_page_checksum=True,
            store_decimal_as_integer=True,
            store_schema=False,
            use_deprecated_int96_timestamps=self._int96,
        )
        writer.add_key_value_metadata({FILE_NAME_KEY: self._file_name})
        self._writer = writer
        return writer


class DataFileReader:
    """An open data file. Made by ``open_data_file``."""

    def __init__(self, file: pq.ParquetFile, file_name: str) -> None:
        self._file = file
        self._file_name = file_name
        self.schema: pa.Schema = file.schema_arrow
        self.row_count: int = file.metadata.num_rows

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The row groups with their statistics."""
        metadata = self._file.metadata
        try:
            return tuple(_row_group(metadata.row_group(index), index) for index in range(metadata.num_row_groups))
        except _READ_ERRORS as error:
            raise _damaged(self._file_name, error) from error

    def read(self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of at most 128 k rows, with the columns in the order asked for and the file's own Arrow types.

        Raises FormatError for pages that do not match their checksums or cannot be decoded.
        """
        groups = list(range(self._file.metadata.num_row_groups)) if row_groups is None else list(row_groups)
        names = self.schema.names if columns is None else list(columns)
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            raise FormatError(
                f"{self._file_name}: expected the columns {', '.join(missing)}, found only {', '.join(self.schema.names)}"
            )
        expected = sum(self._file.metadata.row_group(group).num_rows for group in groups)
        found = 0
        batches = self._file.iter_batches(READ_BATCH_ROWS, row_groups=groups, columns=names, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    break
                batch = batch.select(names)
            except TablestoreError:
                raise
            except _READ_ERRORS as error:
                raise _damaged(self._file_name, error) from error
            found += batch.num_rows
            yield batch
        if found != expected and names:
            raise FormatError(f"{self._file_name}: expected {expected} rows, found {found}; the file is damaged")

    def close(self) -> None:
        """Let the source go."""
        self._file.close(force=True)


def open_data_file(
    source: BinaryIO | pa.NativeFile | pa.Buffer | str,
    *,
    file_name: str,
    footer_digest: bytes | None = None,
    size: int | None = None,
) -> DataFileReader:
    """Open a data file for reading and check what can be checked before its pages are read.

    ``footer_digest`` is the manifest's (None for files of other engines), ``size`` the manifest's file size. Raises
    FormatError: kind ``checksum`` for a footer with another digest, ``swapped`` for a file that says it is another.
    """
    try:
        file = _random_access(source)
        found_size = file.size()
        if size is not None and found_size != size:
            raise FormatError(
                f"{file_name}: expected {size} bytes, found {found_size}; the file was cut or replaced",
                kind="checksum" if footer_digest else None,
            )
        footer = _read_footer(file, found_size, file_name)
        if footer_digest is not None and _digest(footer) != footer_digest:
            raise FormatError(
                f"{file_name}: the footer does not match the digest in the manifest; the file is damaged: restore it from a copy",
                kind="checksum",
            )
        limits = {
            "thrift_string_size_limit": _MAX_THRIFT_BYTES,
            "thrift_container_size_limit": _MAX_THRIFT_ITEMS,
        }
        alone = MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC
        metadata = pq.ParquetFile(pa.BufferReader(alone), **limits).metadata
        _check_name(metadata, file_name, ours=footer_digest is not None)
        opened = pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True, **limits)
        return DataFileReader(opened, file_name)
    except TablestoreError:
        raise
    except _READ_ERRORS as error:
        raise _damaged(file_name, error) from error


def _digest(footer: bytes) -> bytes:
    return footer_digest(footer)


def _random_access(source: BinaryIO | pa.NativeFile | pa.Buffer | str) -> pa.NativeFile:
    if isinstance(source, pa.NativeFile):
        return source
    if isinstance(source, str):
        return pa.OSFile(source, "rb")
    if isinstance(source, (bytes, pa.Buffer)):
        return pa.BufferReader(source)
    return pa.PythonFile(source, mode="r")


def _read_footer(file: pa.NativeFile, size: int, name: str) -> bytes:
    guess = min(size, 64 << 10)
    file.seek(size - guess)
    tail: bytes = file.read(guess)
    length = footer_length(tail[-TAIL_BYTES:], file_size=size, name=name)
    if length + TAIL_BYTES > len(tail):
        file.seek(size - length - TAIL_BYTES)
        tail = file.read(length + TAIL_BYTES)
    return tail[-length - TAIL_BYTES : -TAIL_BYTES]


def _check_name(metadata: pq.FileMetaData, file_name: str, *, ours: bool) -> None:
    stored = (metadata.metadata or {}).get(FILE_NAME_KEY.encode())
    if stored is None and not ours:
        return
    if stored != file_name.encode():
        raise FormatError(
            f"{file_name}: the file says that it is {(stored or b'unnamed').decode(errors='replace')!r}; two files "
            "have changed places: restore both from a copy",
            kind="swapped",
        )


def _row_group(group: pq.RowGroupMetaData, index: int) -> RowGroup:
    bounds: dict[str, tuple[object, object]] = {}
    compressed = 0
    for position in range(group.num_columns):
        column = group.column(position)
        compressed += column.total_compressed_size
        if column.is_stats_set and column.statistics is not None and column.statistics.has_min_max:
            bounds[column.path_in_schema] = (column.statistics.min, column.statistics.max)
    return RowGroup(index=index, row_count=group.num_rows, compressed_bytes=compressed, bounds=bounds)


def _damaged(file_name: str, error: BaseException) -> TablestoreError:
    if isinstance(error, OSError) and error.errno is not None:
        return StorageError(f"{file_name}: the store failed while the file was read: {error}")
    kind = "checksum" if "checksum" in str(error).lower() or "crc" in str(error).lower() else None
    return FormatError(f"{file_name}: expected a readable Parquet file, found: {error}; restore it from a copy", kind=kind)


def _repeats(column: pa.ChunkedArray) -> bool:
    """True if a dictionary is likely to pay off."""
    rows = len(column)
    if pa.types.is_boolean(column.type):
        return False
    step = max(rows // _SAMPLE_BLOCKS, _SAMPLE_BLOCK_ROWS)
    blocks = [column.slice(start, _SAMPLE_BLOCK_ROWS) for start in range(0, rows, step)]
    sample = pa.chunked_array([chunk for block in blocks for chunk in block.chunks], column.type)
    return len(sample) == 0 or len(sample.unique()) <= _DISTINCT_SHARE * len(sample)


def _leaf_paths(path: str, arrow_type: pa.DataType) -> list[str]:
    if pa.types.is_struct(arrow_type):
        return [leaf for field in arrow_type for leaf in _leaf_paths(f"{path}.{field.name}", field.type)]
    if pa.types.is_map(arrow_type):
        return [
            *_leaf_paths(f"{path}.key_value.key", arrow_type.key_type),
            *_leaf_paths(f"{path}.key_value.value", arrow_type.item_type),
        ]
    if pa.types.is_list(arrow_type):
        return _leaf_paths(f"{path}.list.element", arrow_type.value_type)
    return [path]


def _storage_schema(schema: pa.Schema) -> tuple[pa.Schema, dict[int, tuple[str, bool]], bool]:
    """What Arrow gets to write: the schema, the timestamps that it holds as plain int64 (field id -> unit, UTC),
    and whether timestamps become INT96."""
    units = {unit for field in schema for unit in _timestamp_units(field.type)}
    int96 = "ns" in units
    if not int96 or len(units) == 1:
        return schema, {}, int96
    plain: dict[int, tuple[str, bool]] = {}
    return pa.schema([_plain_timestamp_field(field, plain) for field in schema]), plain, True


def _timestamp_units(arrow_type: pa.DataType) -> list[str]:
    if pa.types.is_timestamp(arrow_type):
        return [arrow_type.unit]
    return [unit for i in range(arrow_type.num_fields) for unit in _timestamp_units(arrow_type.field(i).type)]


def _plain_timestamp_field(field: pa.Field, plain: dict[int, tuple[str, bool]]) -> pa.Field:
    kind = field.type
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        field_id = field_id_of(field)
        assert field_id is not None, "data file schemas come from file_schema, with field ids"
        plain[field_id] = (kind.unit, kind.tz is not None)
        return field.with_type(pa.int64())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_plain_timestamp_field(part, plain) for part in kind]))
    if pa.types.is_map(kind):
        return field.with_type(
            pa.map_(_plain_timestamp_field(kind.key_field, plain), _plain_timestamp_field(kind.item_field, plain))
        )
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_plain_timestamp_field(kind.value_field, plain)))
    return field


class _FooterSink:
    """Passes bytes on to the sink and counts them; from ``hold`` on keeps them, so that the footer can be seen whole."""

    closed = False

    def __init__(self, sink: BinaryIO | pa.NativeFile) -> None:
        self._sink = sink
        self._held: list[bytes] | None = None
        self.count = 0

    def write(self, data: bytes) -> int:
        if self._held is not None:
            self._held.append(bytes(data))
        else:
            self._sink.write(data)
            self.count += len(data)
        return len(data)

    def hold(self) -> None:
        self._held = []

    def release(self, plain_timestamps: dict[int, tuple[str, bool]]) -> bytes:
        """Write what was held, with the timestamps annotated; returns the footer's digest."""
        held = b"".join(self._held or [])
        self._held = None
        length = footer_length(held[-TAIL_BYTES:], file_size=len(held) + len(MAGIC), name="footer being written")
        start = len(held) - TAIL_BYTES - length
        footer = held[start:-TAIL_BYTES]
        if plain_timestamps:
            footer = annotate_timestamps(footer, plain_timestamps)
        self.write(held[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC)
        return footer_digest(footer)

    def flush(self) -> None:
        """Durability is the caller's."""

    def tell(self) -> int:
        return self.count + sum(len(data) for data in self._held or [])

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """The sink is the caller's to close."""
