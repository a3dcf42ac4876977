"""Writes Arrow batches to Parquet data files, on file objects that are handed in.

Writing follows the table-format specification, "Data files": v1 pages with checksums, zstd, decimals up to 18
digits as integers, INT96 for nanosecond timestamps only, row groups of bounded rows and bytes (see bounds: they bound a
reader's memory). A file holds its own name in its key-value metadata, and the writer returns a digest of the footer for
the manifest. So a reader checks pages by their checksums, the footer by its digest, and by the name that no files were swapped.

Left to others: which columns a file has (parquetschema), old schemas (projection), names and directories.
"""

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore.bounds import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from tablestore.errors import InvalidInputError
from tablestore.format.countedsink import CountedSink
from tablestore.format.parquet.footer import (
    FILE_NAME_KEY,
    GROUP_BYTES_KEY,
    PARQUET_MAGIC,
    TAIL_BYTES,
    annotate_timestamps,
    footer_digest,
    footer_length,
)
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN, field_id_of
from tablestore.types.rebatch import slices_of
from tablestore.types.requiredfields import filled_column
from tablestore.types.schema import KEY_PREFIX

_SAMPLE_BLOCKS, _SAMPLE_BLOCK_ROWS = 16, 256
# A dictionary is a page of its own, and of so few rows it saves nothing that compression does not.
_FEW_ROWS = 256
# Above this share of distinct values a dictionary costs more than it saves.
_DISTINCT_SHARE = 0.9
# Arrow ends a page only between batches of rows: of wide rows these must be smaller for pages to have about their usual size.
_PAGE_BYTES, _MOST_BATCH_ROWS = 1 << 20, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileOptions:
    """Options of written data files. ``row_group_bytes`` are those of Arrow, before rows are encoded."""

    compression: str = "zstd"
    compression_level: int | None = 1
    row_group_rows: int = ROW_GROUP_ROWS
    row_group_bytes: int = ROW_GROUP_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFooter:
    """The identity of a finished file: SHA-256 of its footer, its rows, its bytes."""

    digest: bytes
    row_count: int
    file_size: int


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


class ParquetFileWriter:
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
        options: DataFileOptions | None = None,
        unique_columns: frozenset[str] = frozenset(),
    ) -> None:
        self._sink = _FooterSink(sink)
        self._schema = schema
        self._file_name = file_name
        self._options = options or DataFileOptions()
        self._unique = unique_columns
        self._storage, self._plain_timestamps, self._int96 = _storage_schema(schema)
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._largest_bytes = 0
        self._rows = 0

    def reached(self, size: int) -> bool:
        """True if that many bytes reached the sink; whole row groups count."""
        return self._sink.count >= size

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Append rows, whose columns are those of the schema in its order."""
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        try:
            columns = rows.columns
            # In a loop: each statement writes such files, mostly of plain columns.
            for place, column in enumerate(columns):
                if column.type.num_fields:
                    columns[place] = filled_column(column)
            rows = pa.Table.from_arrays(columns, schema=self._schema)
            if self._storage is not self._schema:
                rows = rows.cast(self._storage)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{self._file_name}: the rows do not have the columns of the file: expected {self._schema.names} ({error})"
            ) from error
        self._rows += rows.num_rows
        options = self._options
        for piece in slices_of(rows, max_rows=max(rows.num_rows, 1), max_bytes=options.row_group_bytes):
            size = piece.nbytes
            if self._pending_bytes + size > options.row_group_bytes:
                self._write_pending(whole_groups=False)
            self._pending.append(piece)
            self._pending_rows += piece.num_rows
            self._pending_bytes += size
            if self._pending_rows >= options.row_group_rows:
                self._write_pending(whole_groups=True)

    def close(self) -> FileFooter:
        """Write the buffered rows and the footer. The sink stays open."""
        self._write_pending(whole_groups=False)
        writer = self._writer or self._open(self._storage.empty_table())
        writer.add_key_value_metadata({GROUP_BYTES_KEY: str(self._largest_bytes)})
        self._sink.hold()
        writer.close()
        digest = self._sink.release(self._plain_timestamps if self._int96 else {})
        return FileFooter(digest=digest, row_count=self._rows, file_size=self._sink.count)

    def _write_pending(self, *, whole_groups: bool) -> None:
        if not self._pending_rows:
            return
        rows = self._pending[0] if len(self._pending) == 1 else pa.concat_tables(self._pending)
        group = self._options.row_group_rows
        self._largest_bytes = max(self._largest_bytes, self._pending_bytes)
        stop = rows.num_rows - rows.num_rows % group if whole_groups else rows.num_rows
        if self._writer is None:
            self._writer = self._open(rows)
        try:
            self._writer.write_table(rows.slice(0, stop), row_group_size=group)
        except pa.ArrowInvalid as error:
            raise InvalidInputError(f"{self._file_name}: the rows do not fit the file's columns ({error})") from error
        self._pending = [rows.slice(stop)] if stop < rows.num_rows else []
        self._pending_rows = rows.num_rows - stop
        self._pending_bytes = sum(left.nbytes for left in self._pending)

    def _open(self, sample: pa.Table) -> pq.ParquetWriter:
        few = sample.num_rows <= _FEW_ROWS
        dictionary = [] if few else [SEQUENCE_COLUMN, KIND_COLUMN]
        for field in () if few else self._storage:
            unique = field.name in self._unique or field.name.startswith(KEY_PREFIX)
            if unique or field.name in (SEQUENCE_COLUMN, KIND_COLUMN):
                continue
            if pa.types.is_nested(field.type):
                # Arrow takes paths: that of a field `b` in `a` is also the name of a column `a.b`, which has its own setting.
                dictionary.extend(path for path in _leaf_paths(field.name, field.type) if path not in self._storage.names)
            elif not _is_wide_decimal(field.type) and _repeats(sample.column(field.name)):
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
            write_batch_size=_page_batch_rows(sample),
        )
        writer.add_key_value_metadata({FILE_NAME_KEY: self._file_name})
        self._writer = writer
        return writer


def _page_batch_rows(sample: pa.Table) -> int:
    widest = max((column.nbytes for column in sample.columns), default=0) / max(sample.num_rows, 1)
    return min(max(int(_PAGE_BYTES / max(widest, 1)), 1), _MOST_BATCH_ROWS)


def _is_wide_decimal(arrow_type: pa.DataType) -> bool:
    # The Java core looks a literal of minimal length up in a dictionary of fixed length, and finds nothing.
    return bool(pa.types.is_decimal(arrow_type) and arrow_type.precision > 18)


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
    """The schema that Arrow gets to write, the timestamps that it holds as plain int64 (field id -> unit, UTC),
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


class _FooterSink(CountedSink):
    """Passes bytes on to the sink and counts them; from ``hold`` on keeps them, so that the footer can be seen whole."""

    def __init__(self, sink: BinaryIO | pa.NativeFile) -> None:
        # Without a call of the base: each statement writes such files.
        self._sink, self.count, self.failure = sink, 0, None
        self._held: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        if self._held is None:
            self._sink.write(data)
            self.count += len(data)
        else:
            self._held.append(bytes(data))
        return len(data)

    def hold(self) -> None:
        self._held = []

    def release(self, plain_timestamps: dict[int, tuple[str, bool]]) -> bytes:
        """Write what was held, with the timestamps annotated; returns the footer's digest."""
        held = b"".join(self._held or [])
        self._held = None
        length = footer_length(held[-TAIL_BYTES:], file_size=len(held) + len(PARQUET_MAGIC), name="footer being written")
        start = len(held) - TAIL_BYTES - length
        footer = held[start:-TAIL_BYTES]
        if plain_timestamps:
            footer = annotate_timestamps(footer, plain_timestamps)
        self.write(held[:start] + footer + len(footer).to_bytes(4, "little") + PARQUET_MAGIC)
        return footer_digest(footer)

    def tell(self) -> int:
        return self.count + sum(len(data) for data in self._held or [])
