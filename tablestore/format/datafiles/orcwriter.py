"""Writes ORC data files through Arrow's writer, with the types and field ids of the Java core's.

    TIME(p)              int, the ms of the day           BINARY VARBINARY   binary
    TIMESTAMP(p)         timestamp                        CHAR VARCHAR       string
    … WITH LOCAL …       timestamp with local time zone   MULTISET<T>        map<T, int>

Timestamps are those that Arrow's reader holds too, of the years 1678 to 2261, and before 1970 whole milliseconds; others are
refused. The level of Zstandard is ORC's own, the fastest one (``file.compression.zstd-level`` is Parquet's and Avro's). ORC has no
checksums; the digest that the manifest gets is that of the file's end, where its footer lies.

Memory: one stripe as it is encoded, and once more the rows that :meth:`OrcFileWriter.write` is given.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import orc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.countedsink import CountedSink
from tablestore.format.datafiles.orcfile import TAIL_DIGEST_BYTES
from tablestore.format.parquet.parquetfile import DataFileOptions, FileFooter
from tablestore.format.parquet.parquetschema import field_id_of
from tablestore.types.datatypes import VariantType, types_in
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

_CODECS = {"zstd": "zstd", "snappy": "snappy", "lz4": "lz4", "gzip": "zlib", "none": "uncompressed"}
# A reader decodes a stripe whole. So a file ends where its rows would make one that is too large, however few bytes it has.
_MOST_STRIPE_BYTES, _MOST_DECODED_BYTES = 16 << 20, 256 << 20
# Each column has buffers of a block: of many columns these are as small as Arrow's writer has them.
_BLOCK_BYTES, _BLOCK_BYTES_OF_MANY, _MANY_COLUMNS = 256 << 10, 64 << 10, 32
# Stored: where the Java core keeps the id of a field.
_ID_ATTRIBUTE = b"paimon.id"
# Stored: what Spark says of a column whose type ORC does not have. A field that has it keeps it.
SPARK_TYPE = b"spark.sql.catalyst.type"


def check_orc(schema: TableSchema, *, table: str) -> None:
    """Refuses names that other readers of ORC do not find, and VARIANT. Raises UnsupportedError."""
    for name in _names(schema.arrow_schema):
        if "`" in name:
            raise UnsupportedError(
                f"table {table}: expected no ` in the names of columns with file.format = orc, found {name!r:.100}, which other "
                "readers of ORC take for a quote; rename the column, or set file.format = parquet",
                kind="file-format",
            )
    for field in schema.fields:
        if any(isinstance(one, VariantType) for one in types_in(field.type)):
            raise UnsupportedError(
                f"table {table}: column {field.name!r} of type {type_to_sql(field.type)} holds a VARIANT, which no "
                "implementation of the format stores with file.format = orc; set file.format = parquet",
                kind="file-format",
            )


def _names(fields: Iterable[pa.Field]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(field.type.field(place) for place in range(field.type.num_fields))


class OrcFileWriter:
    """Writes one ORC file. See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""

    def __init__(self, sink: BinaryIO | pa.NativeFile, schema: pa.Schema, *, file_name: str, options: DataFileOptions) -> None:
        self._sink, self._schema, self._file_name = _TailSink(sink), schema, file_name
        self._storage = pa.schema([_stored(field) for field in schema])
        self._has_rows = any(_has_struct(field.type) for field in schema)
        self._writer: _OrcWriter | None = None
        self._options = options
        self._rows = 0
        self._flushed, self._unflushed_bytes = 0, 0

    def reached(self, size: int) -> bool:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        return self._sink.count >= size or self._unflushed_bytes >= _MOST_DECODED_BYTES

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        if rows.num_columns != len(self._schema):
            raise self._unfit(f"{rows.num_columns} columns")
        columns = [self._column(rows.column(place), place) for place in range(rows.num_columns)]
        table = pa.Table.from_arrays(columns, schema=self._storage)
        if self._has_rows:
            # Arrow's writer forgets where the nulls of a slice of rows begin.
            table = table.take(pa.array(np.arange(table.num_rows)))
        self._put(table)
        self._rows += table.num_rows
        if self._sink.count > self._flushed:
            self._flushed, self._unflushed_bytes = self._sink.count, 0
        self._unflushed_bytes += table.nbytes

    def close(self) -> FileFooter:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        if self._writer is None:
            self._put(self._storage.empty_table())
        assert self._writer is not None, "it was opened by the first rows"
        try:
            self._writer.close()
        except (pa.ArrowException, OSError) as error:
            raise (self._sink.failure or error) from error
        return FileFooter(digest=self._sink.tail_digest(), row_count=self._rows, file_size=self._sink.count)

    def _put(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = _OrcWriter(
                pa.PythonFile(self._sink, mode="w"),
                compression=_CODECS[self._options.compression],
                compression_block_size=_BLOCK_BYTES if len(self._storage) <= _MANY_COLUMNS else _BLOCK_BYTES_OF_MANY,
                stripe_size=min(self._options.row_group_bytes, _MOST_STRIPE_BYTES),
            )
        try:
            self._writer.write(table)
        except (pa.ArrowException, OSError) as error:
            raise (self._sink.failure or self._unfit(str(error))) from error

    def _column(self, column: pa.Array | pa.ChunkedArray, place: int) -> pa.Array | pa.ChunkedArray:
        declared, stored = self._schema.field(place), self._storage.field(place)
        try:
            # The types of the schema first: a cast from others must not lose anything either.
            typed = column if column.type.equals(declared.type) else column.cast(declared.type)
            column = typed if typed.type.equals(stored.type) else typed.cast(stored.type)
        except (pa.ArrowException, ValueError, TypeError) as error:
            if "out of bounds timestamp" in str(error):
                raise InvalidInputError(
                    f"column {declared.name!r}: expected timestamps of the years 1678 to 2261, as ORC files are read, found "
                    f"another ({error}); correct the row, or set file.format = parquet",
                    kind="out-of-range",
                ) from error
            raise self._unfit(str(error)) from error
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if _has_timestamp(stored.type) and any(map(_is_misread, chunks)):
            raise InvalidInputError(
                f"column {declared.name!r}: expected timestamps before 1970 to end in whole milliseconds, found one with a finer "
                "fraction, which other readers of ORC misread as Arrow writes it; round it, or set file.format = parquet",
                kind="out-of-range",
            )
        return column

    def _unfit(self, fault: str) -> InvalidInputError:
        names = ", ".join(self._schema.names)
        return InvalidInputError(
            f"{self._file_name}: the rows do not have the columns of the file: expected {names:.400} ({fault})"
        )


class _OrcWriter(orc.ORCWriter):  # type: ignore[misc]
    """Arrow's writer. One that is given up does not end its file: the store has removed it."""

    def __del__(self) -> None:
        """Nothing is written behind the caller's back."""


class _TailSink(CountedSink):
    """Keeps the last bytes of the file, for its digest."""

    def __init__(self, sink: BinaryIO | pa.NativeFile) -> None:
        super().__init__(sink)
        self._tail = b""

    def write(self, data: bytes) -> int:
        """Passes the bytes on."""
        size = super().write(data)
        self._tail = (self._tail + bytes(data)[-TAIL_DIGEST_BYTES:])[-TAIL_DIGEST_BYTES:]
        return size

    def tail_digest(self) -> bytes:
        """The digest of what the file ends with."""
        return hashlib.sha256(self._tail).digest()


def _stored(field: pa.Field) -> pa.Field:
    field_id = field_id_of(field)
    metadata = {key: value for key, value in (field.metadata or {}).items() if key == SPARK_TYPE}
    if field_id is not None:
        metadata[_ID_ATTRIBUTE] = str(field_id).encode()
    return pa.field(field.name, _stored_type(field.type), field.nullable, metadata or None)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    if pa.types.is_time(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([_stored(part) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_field), _stored(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_field))
    return kind


def _has_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) or any(_has_timestamp(kind.field(place).type) for place in range(kind.num_fields))


def _is_misread(array: pa.Array) -> bool:
    """True for times before 1970 with a fraction of a millisecond: Arrow's writer stores the second behind them and a negative
    number of nanoseconds, of which the Java core takes milliseconds only."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        numbers = array.drop_null().view(pa.int64()).to_numpy()
        return bool(((numbers < 0) & (numbers % 1_000_000 != 0)).any())
    if pa.types.is_map(kind):
        array = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if pa.types.is_struct(array.type):
        return any(map(_is_misread, array.flatten()))
    return _has_timestamp(kind) and _is_misread(array.flatten())


def _has_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) or any(_has_struct(kind.field(place).type) for place in range(kind.num_fields))
