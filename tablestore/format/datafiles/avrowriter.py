"""Writes Avro data files as the Java core does: the types of :mod:`tablestore.format.datafiles.avrofile`, the names of records too.

    Arrow -> one list per column -> records, a dict each -> fastavro -> container blocks

Avro is a format of rows: fastavro takes Python objects, so the step from columns to records visits every value, and a file takes
some 13 times as long as one in Parquet. Lists of numbers, texts and bytes come from numpy; rows, maps and decimals are put together
value by value. An Avro name has letters, digits and underscores: a table with other column names is refused when it is created.

Memory: the rows of one block as Python objects. The digest that the manifest gets is that of the whole file.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.datafiles.avrofile import LIMITS
from tablestore.format.manifest.avro import RecordSchema, container_header, encoded_records, framed_block
from tablestore.format.parquet.parquetfile import DataFileOptions, FileFooter
from tablestore.types.arrowtypes import timestamp_unit
from tablestore.types.datatypes import (
    ArrayType,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
)
from tablestore.types.rebatch import slices_of
from tablestore.types.requiredfields import filled_column
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

_CODECS = {"zstd": "zstandard", "snappy": "snappy", "gzip": "deflate", "none": "null"}
# Stored: as the Java core names records.
_NAMESPACE, _RECORD = "org.apache.paimon.avro.generated", "record"
_BLOCK_BYTES, _BLOCK_ROWS = 256 << 10, 8192
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_SWAPPED = {
    f"{prefix}timestamp-{unit}": f"{other}timestamp-{unit}"
    for prefix, other in (("", "local-"), ("local-", ""))
    for unit in ("millis", "micros")
}
STANDARD = {
    kind: {**spelled, "logicalType": _SWAPPED.get(spelled["logicalType"], spelled["logicalType"])}
    if isinstance(spelled, dict)
    else spelled
    for kind, spelled in _PLAIN.items()
}
Spelling = Mapping[pa.DataType, Any]


def check_avro(schema: TableSchema, compression: str, *, table: str) -> None:
    """Refuses what Avro data files do not hold. Raises UnsupportedError that names the column and its type, or the option."""
    if compression not in _CODECS:
        raise UnsupportedError(
            f"table {table} has file.compression = {compression}, which Avro does not have; set one of {', '.join(_CODECS)}, or "
            "file.format = parquet or orc",
            kind="file-format",
        )
    check_avro_columns(schema, f"table {table}", setting="file.format = avro", others="file.format = parquet or orc")


def check_avro_columns(schema: TableSchema, subject: str, *, setting: str, others: str) -> None:
    """Refuses columns that Avro records do not hold. ``setting``: the option that asks for Avro; ``others``: its other values.

    Raises UnsupportedError (``file-format``) that names ``subject``, the column and its type.
    """
    for field in schema.fields:
        _check_field(field, field.name, _Subject(subject, setting, others))


@dataclass(frozen=True, slots=True)
class _Subject:
    name: str
    setting: str
    others: str


def _check_field(field: Field, column: str, subject: _Subject) -> None:
    if not _NAME.fullmatch(field.name):
        raise UnsupportedError(
            f"{subject.name}: expected names of letters, digits and _ with {subject.setting}, found {field.name!r:.100}; rename "
            f"the column, or set {subject.others}",
            kind="file-format",
        )
    _check_type(field.type, column, subject)


def _check_type(data_type: DataType, column: str, subject: _Subject) -> None:
    match data_type:
        case VariantType():
            raise UnsupportedError(
                f"{subject.name}: column {column!r} is a VARIANT, which no implementation of the format stores with "
                f"{subject.setting}; set file.format = parquet",
                kind="file-format",
            )
        case RowType():
            for field in data_type.fields:
                _check_field(field, column, subject)
        case ArrayType():
            _check_type(data_type.element, column, subject)
        case MapType() | MultisetType():
            entries = as_map(data_type)
            _check_type(entries.key, column, subject)
            _check_type(entries.value, column, subject)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ) if timestamp_unit(data_type) == "ns":
            raise _no_type(data_type, column, subject, 6)
        case AtomicType(root=TypeRoot.TIME, precision=int(precision)) if precision > 3:
            raise _no_type(data_type, column, subject, 3)


def _no_type(data_type: DataType, column: str, subject: _Subject, digits: int) -> UnsupportedError:
    return UnsupportedError(
        f"{subject.name}: expected at most {digits} digits of seconds with {subject.setting}, found column {column!r:.100} of type "
        f"{type_to_sql(data_type)}; give the column such a type, or set {subject.others}",
        kind="file-format",
    )


class AvroFileWriter:
    """Writes one Avro file. See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`.

    ``is_standard``: with the types of the Avro specification, for files that are in no managed table. The Java core has moments and
    a clock's times the other way round.
    """

    def __init__(
        self,
        sink: BinaryIO | pa.NativeFile,
        schema: pa.Schema,
        *,
        file_name: str,
        options: DataFileOptions,
        is_standard: bool = False,
    ) -> None:
        self._sink, self._schema, self._file_name = sink, schema, file_name
        spelling = STANDARD if is_standard else _PLAIN
        self._avro = RecordSchema(record_schema(schema, _RECORD, set(), spelling, namespace=None if is_standard else _NAMESPACE))
        self._codec, self._level = _CODECS[options.compression], options.compression_level
        # The marker between blocks differs from file to file, as their names do.
        self._nonce = hashlib.sha256(file_name.encode()).digest()[:16]
        self._digest = hashlib.sha256()
        self._size = self._expanded = self._rows = 0
        self._put(container_header(self._avro, nonce=self._nonce, codec=self._codec))

    def reached(self, size: int) -> bool:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        return self._size >= size or 2 * self._expanded >= LIMITS.expanded_bytes(self._size)

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        try:
            typed = [filled_column(column).cast(field.type) for column, field in zip(rows.columns, self._schema, strict=True)]
            table = pa.Table.from_arrays(typed, schema=self._schema)
        except (pa.ArrowException, ValueError, TypeError, IndexError) as error:
            raise InvalidInputError(
                f"{self._file_name}: the rows do not have the columns of the file: expected {', '.join(self._schema.names)[:400]} "
                f"({error})"
            ) from error
        for batch in table.to_batches():
            for part in slices_of(batch, max_rows=_BLOCK_ROWS, max_bytes=_BLOCK_BYTES):
                body = encoded_records(avro_objects(part), self._avro)
                self._expanded += len(body)
                self._put(framed_block(part.num_rows, body, nonce=self._nonce, codec=self._codec, zstd_level=self._level or 1))
        self._rows += table.num_rows

    def close(self) -> FileFooter:
        """See :class:`~tablestore.format.datafiles.datafilewriter.DataFileWriter`."""
        if self._expanded > LIMITS.expanded_bytes(self._size):
            raise InvalidInputError(
                f"{self._file_name}: {self._size} bytes would expand to {self._expanded}, more than readers allow. Nothing was "
                "written; write fewer of these rows at once, or set file.format = parquet",
                kind="limit",
            )
        return FileFooter(digest=self._digest.digest(), row_count=self._rows, file_size=self._size)

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self._digest.update(data)
        self._size += len(data)


def record_schema(
    fields: Any, name: str, names: set[str], spelling: Spelling, *, namespace: str | None = None
) -> dict[str, object]:
    """The Avro record of Arrow fields. ``names``: the names of records so far."""
    while name in names:
        # A column `a_b` and a field `b` of `a`.
        name += "_"
    names.add(name)
    content: list[dict[str, object]] = []
    for field in fields:
        kind = _nullable(field, f"{name}_{field.name}", names, spelling)
        content.append({"name": field.name, "type": kind, **({"default": None} if field.nullable else {})})
    return {"type": "record", "name": name, **({"namespace": namespace} if namespace else {}), "fields": content}


def _nullable(field: pa.Field, name: str, names: set[str], spelling: Spelling) -> Any:
    kind = _avro_type(field.type, name, names, spelling)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, name: str, names: set[str], spelling: Spelling) -> Any:
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return record_schema(kind, name, names, spelling)
    if pa.types.is_map(kind):
        if pa.types.is_string(kind.key_type):
            return {"type": "map", "values": _nullable(kind.item_field, name, names, spelling)}
        entries = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
        return {"type": "array", "items": record_schema(entries, name, names, spelling), "logicalType": "map"}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, names, spelling)}
    return spelling[kind]


def avro_objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as fastavro takes them."""
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*map(_values, batch.columns), strict=True)]


def _values(array: pa.Array) -> list[Any]:
    """The values as fastavro takes them: plain numbers, texts, bytes, lists and dicts."""
    kind = array.type
    values: list[Any]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        values = [dict(zip(names, row, strict=True)) for row in zip(*map(_values, array.flatten()), strict=True)]
    elif pa.types.is_map(kind):
        lists = array.cast(pa.list_(pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])))
        if pa.types.is_string(kind.key_type):
            keys, items = map(_values, lists.flatten().flatten())
            values = [dict(zip(keys[start:stop], items[start:stop], strict=True)) for start, stop in _ranges(lists)]
        else:
            values = _values(lists)
    elif pa.types.is_list(kind):
        elements = _values(array.flatten())
        values = [elements[start:stop] for start, stop in _ranges(array)]
    elif pa.types.is_decimal(kind):
        values = _unscaled(array)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        # NULL is None already.
        return list(array.to_numpy(zero_copy_only=False))
    else:
        values = _numbers(array)
    for place in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else ():
        values[place] = None
    return values


def _ranges(array: pa.Array) -> Iterator[tuple[int, int]]:
    """The begin and the end of each list among all elements; NULL has none."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    stops = np.cumsum(lengths)
    return zip((stops - lengths).tolist(), stops.tolist(), strict=True)


def _numbers(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
        kind = array.type
    if array.null_count:
        array = array.fill_null(pa.scalar(False) if pa.types.is_boolean(kind) else pa.scalar(0, pa.int64()).cast(kind))
    return list(array.to_numpy(zero_copy_only=False).tolist())


def _unscaled(array: pa.Array) -> list[Any]:
    """The unscaled numbers of decimals in as few bytes as hold them, big-endian."""
    start = array.offset * 16
    raw = np.frombuffer(array.buffers()[1], np.uint8, count=len(array) * 16, offset=start).reshape(-1, 16)[:, ::-1]
    wide = raw.copy()
    negative = wide[:, 0] >= 0x80
    # A byte at the front goes if the sign of the next one is the same.
    fills = np.where(negative, 0xFF, 0)[:, None]
    keeps_sign = (wide[:, 1:] >= 0x80) == negative[:, None]
    needless = np.logical_and.accumulate((wide[:, :-1] == fills) & keeps_sign, axis=1).sum(axis=1)
    content = wide.tobytes()
    return [content[at + skip : at + 16] for at, skip in zip(range(0, len(content), 16), needless.tolist(), strict=True)]
