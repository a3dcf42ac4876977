"""Reads Avro data files: those of tables with ``file.format = avro``, and of postponed buckets, which other engines write.

    container blocks -> records (fastavro) -> one list per column -> Arrow

Avro is a format of rows, and its reader gives Python objects, so the step from records to columns visits every value; all that
comes after is Arrow's. How types are spelled:

    DATE  int (days)                TIMESTAMP(0-3) long (ms)      DECIMAL       bytes, the unscaled number, big-endian
    TIME  int (ms of the day)       TIMESTAMP(4-6) long (us)      MAP MULTISET  map if keys are text, else array of {key, value}

Memory: the bytes of a file, and about 64 k of its rows as Python objects.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from tablestore.bounds import BATCH_BYTES, BATCH_ROWS
from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.datafiles.unsplitfile import UnsplitFileReader
from tablestore.format.limits import DEFAULT_LIMITS
from tablestore.format.manifest.avro import container_outline, read_blocks
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.types.arrowtypes import timestamp_unit, to_arrow_field, to_arrow_type
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, Field, MapType, MultisetType, RowType, TypeRoot, as_map
from tablestore.types.rebatch import slices_of
from tablestore.types.requiredfields import cast_required
from tablestore.types.typestring import type_to_sql

# Data files are larger than metadata, their rows may be small, their schemas wide, and they are read a block at a time.
LIMITS = replace(
    DEFAULT_LIMITS,
    max_bytes=1 << 30,
    max_records=1 << 31,
    records_floor=1 << 31,
    max_decompressed_bytes=8 << 30,
    expansion_floor_bytes=256 << 20,
    max_schema_nodes=200_000,
    max_depth=256,
    # Decimals of other writers.
    max_fixed_bytes=16,
)
_BATCH_ROWS = 65_536
_SYSTEM = {SEQUENCE_COLUMN: pa.int64(), KIND_COLUMN: pa.int8()}


class AvroFileReader(UnsplitFileReader):
    """An open Avro data file. ``fields``: the columns of the table when it was written, which say what its values mean. Columns of
    the file that are none of these are not read. ``footer_digest``: that of the whole file, if the manifest has it."""

    def __init__(
        self,
        source: BinaryIO | pa.NativeFile,
        fields: Sequence[Field],
        *,
        file_name: str,
        footer_digest: bytes | None = None,
        size: int | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        super().__init__(file_name, batch_bytes)
        # A larger file than the manifest says, or than is read at all, is not held whole to find that out.
        most = LIMITS.max_bytes if size is None else min(size, LIMITS.max_bytes)
        try:
            self._data = bytes(source.read(most + 1))
        finally:
            source.close()
        if size is None or size <= most:
            self._check_size(len(self._data), size)
        if footer_digest is not None:
            self._check_digest(self._data, footer_digest)
        outline, self.row_count = container_outline(self._data, name=file_name, limits=LIMITS)
        names = {field["name"] for field in outline["fields"]}
        self._fields = {field.name: field for field in fields if field.name in names}
        system = [pa.field(name, kind) for name, kind in _SYSTEM.items() if name in names]
        columns = [to_arrow_field(field).with_nullable(True) for field in self._fields.values()]
        self.schema = pa.schema([*system, *columns])

    def read(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None, *, side_by_side: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Reads as :meth:`DataFileReader.read`."""
        names = self._chosen(columns, row_groups)
        if not names:
            return
        fields = [self._fields[name] for name in names if name not in _SYSTEM]
        system = [self.schema.field(name) for name in names if name in _SYSTEM]
        for batch in read_avro_rows(self._data, fields, name=self._file_name, system=system):
            yield from slices_of(batch.select(names), max_rows=BATCH_ROWS, max_bytes=self._batch_bytes)

    def close(self) -> None:
        """Nothing is open: all bytes were read at once."""


def read_avro_rows(data: bytes, fields: Sequence[Field], *, name: str, system: Sequence[pa.Field] = ()) -> Iterator[pa.RecordBatch]:
    """The rows of a file, the ``system`` columns first, in batches of about 64 k rows.

    Raises FormatError for a file that is damaged or has not these columns, UnsupportedError for types that Avro files do not hold.
    """
    pending: list[dict[str, Any]] = []
    for block in read_blocks(data, name=name, limits=LIMITS):
        pending += block
        if len(pending) >= _BATCH_ROWS:
            yield rows_of_objects(pending, fields, system, name)
            pending = []
    if pending:
        yield rows_of_objects(pending, fields, system, name)


def rows_of_objects(rows: list[dict[str, Any]], fields: Sequence[Field], system: Sequence[pa.Field], name: str) -> pa.RecordBatch:
    """Rows as fastavro gives them as columns, the ``system`` columns first. At least one; ``name``: where they come from, for
    errors. Raises as :func:`read_avro_rows`."""
    missing = [column_name for column_name in (*(f.name for f in system), *(f.name for f in fields)) if column_name not in rows[0]]
    if missing:
        raise FormatError(
            f"{name}: expected the columns {', '.join(missing)}, found {', '.join(rows[0])[:200]}. The file does not belong to "
            "this table, or is corrupt; restore it from a copy."
        )
    try:
        columns = [pa.array([row[f.name] for row in rows], f.type) for f in system]
        columns += [_column([row[f.name] for row in rows], f.type) for f in fields]
    except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:
        raise FormatError(
            f"{name}: its values do not fit the columns of the table ({type(error).__name__}: {error}). The file is corrupt; "
            "restore it from a copy."
        ) from error
    return pa.RecordBatch.from_arrays(
        columns, schema=pa.schema([*system, *(to_arrow_field(f).with_nullable(True) for f in fields)])
    )


def _column(values: list[Any], data_type: DataType) -> pa.Array:
    match data_type:
        case AtomicType():
            return _atomic(values, data_type)
        case RowType():
            mask = np.array([value is None for value in values], dtype=np.bool_)
            children = [_column([None if v is None else v[f.name] for v in values], f.type) for f in data_type.fields]
            rows = pa.StructArray.from_arrays(
                children, fields=[to_arrow_field(f).with_nullable(True) for f in data_type.fields], mask=pa.array(mask)
            )
            return cast_required(rows, to_arrow_type(data_type))
        case ArrayType():
            inner = _column(list(chain.from_iterable(value or () for value in values)), data_type.element)
            return _lists(values, to_arrow_type(data_type), inner)
        case MapType() | MultisetType():
            return _map(values, as_map(data_type))
    raise UnsupportedError(f"an Avro data file holds no column of type {type_to_sql(data_type)}", kind="file-format")


def _atomic(values: list[Any], data_type: AtomicType) -> pa.Array:
    target = to_arrow_type(data_type)
    match data_type.root:
        case TypeRoot.DECIMAL:
            return _decimals(values, target)
        case TypeRoot.DATE:
            return pa.array(values, pa.int32()).cast(target)
        case TypeRoot.TIME:
            times = pa.array(values, pa.int32()).cast(target)
            # A day has no more.
            times.validate(full=True)
            return times
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            unit = timestamp_unit(data_type)
            if unit == "ns":
                raise UnsupportedError(f"an Avro data file holds no column of type {type_to_sql(data_type)}", kind="file-format")
            return pa.array(values, pa.int64()).cast(target)
        case _:
            return pa.array(values, target)


def _decimals(values: list[Any], target: pa.DataType) -> pa.Array:
    """Big-endian numbers of any length up to 16 bytes, extended by their sign."""
    raw = pa.array(values, pa.binary())
    sizes = np.array([0 if value is None else len(value) for value in values], dtype=np.int64)
    if (sizes > 16).any():
        raise ValueError("a decimal has more than 16 bytes")
    content = np.frombuffer(b"".join(value for value in values if value), np.uint8)
    wide = np.zeros((len(values), 16), np.uint8)
    starts = np.cumsum(sizes) - sizes
    row_of = np.repeat(np.arange(len(values)), sizes)
    place = np.arange(len(content)) - np.repeat(starts, sizes)
    wide[row_of, 16 - np.repeat(sizes, sizes) + place] = content
    filled = np.flatnonzero(sizes)
    negative = filled[content[starts[filled]] >= 0x80]
    wide[negative] |= np.where(np.arange(16) < (16 - sizes[negative])[:, None], 0xFF, 0).astype(np.uint8)
    little = np.ascontiguousarray(wide[:, ::-1])
    result = pa.Array.from_buffers(target, len(values), [raw.buffers()[0], pa.py_buffer(little)])
    # More digits than the type has.
    result.validate(full=True)
    return result


def _lists(values: list[Any], target: pa.DataType, inner: pa.Array) -> pa.Array:
    mask = pa.array([value is None for value in values], pa.bool_())
    sizes = np.array([0 if value is None else len(value) for value in values], dtype=np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, inner, type=target, mask=mask)


def _map(values: list[Any], data_type: MapType) -> pa.Array:
    pairs = [None if v is None else list(v.items()) if isinstance(v, dict) else [(e["key"], e["value"]) for e in v] for v in values]
    flat = list(chain.from_iterable(entries or () for entries in pairs))
    keys = _column([key for key, _ in flat], data_type.key)
    items = _column([item for _, item in flat], data_type.value)
    target = to_arrow_type(data_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    lists = _lists(pairs, pa.list_(pa.field("entries", entries.type, nullable=False)), entries)
    return pa.Array.from_buffers(target, len(lists), lists.buffers()[:2], children=[entries])
