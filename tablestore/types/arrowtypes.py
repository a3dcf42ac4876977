"""Maps logical types to canonical Arrow types and back.

Every logical type has one canonical Arrow type; the engine sees no other. Going back, many Arrow layouts mean the
same logical type (dictionary, large, view, run-end encoded, other units).

    CHAR VARCHAR STRING   string           DATE                      date32
    BINARY … BYTES        binary           TIME(p)                   time32[ms], the ms of the day
    DECIMAL(p, s)         decimal128       TIMESTAMP(0-3, 4-6, 7-9)  timestamp[ms, us, ns]
    MULTISET<T>           map<T, int32>    … WITH LOCAL TIME ZONE    the same with time zone UTC
    VARIANT               struct<value: binary not null, metadata: binary not null>

What an Arrow type cannot express (CHAR(n), VARCHAR(n), BINARY(n), odd precisions, MULTISET, VARIANT) is kept as SQL text in the
field's metadata under ``tablestore.type``. The text is ignored where it contradicts the field's Arrow type, because
metadata survives casts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.types.datatypes import (
    MAX_LENGTH,
    VARIANT_PARTS,
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
    as_row,
)
from tablestore.types.typestring import MAX_TYPE_DEPTH, parse_type, type_to_sql

TYPE_KEY = b"tablestore.type"
COMMENT_KEY = b"comment"

_FIXED: dict[TypeRoot, pa.DataType] = {
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.DATE: pa.date32(),
    TypeRoot.TIME: pa.time32("ms"),
}
_STRING = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)
_BYTES = AtomicType(root=TypeRoot.VARBINARY, length=MAX_LENGTH)
_FROM_ID: dict[int, AtomicType] = {
    pa.bool_().id: AtomicType(root=TypeRoot.BOOLEAN),
    pa.int8().id: AtomicType(root=TypeRoot.TINYINT),
    pa.int16().id: AtomicType(root=TypeRoot.SMALLINT),
    pa.int32().id: AtomicType(root=TypeRoot.INT),
    pa.int64().id: AtomicType(root=TypeRoot.BIGINT),
    # The next larger type holds every unsigned value.
    pa.uint8().id: AtomicType(root=TypeRoot.SMALLINT),
    pa.uint16().id: AtomicType(root=TypeRoot.INT),
    pa.uint32().id: AtomicType(root=TypeRoot.BIGINT),
    pa.uint64().id: AtomicType(root=TypeRoot.DECIMAL, precision=20, scale=0),
    pa.float16().id: AtomicType(root=TypeRoot.FLOAT),
    pa.float32().id: AtomicType(root=TypeRoot.FLOAT),
    pa.float64().id: AtomicType(root=TypeRoot.DOUBLE),
    pa.string().id: _STRING,
    pa.large_string().id: _STRING,
    pa.string_view().id: _STRING,
    pa.binary().id: _BYTES,
    pa.large_binary().id: _BYTES,
    pa.binary_view().id: _BYTES,
    pa.date32().id: AtomicType(root=TypeRoot.DATE),
    pa.date64().id: AtomicType(root=TypeRoot.DATE),
}
# The names by which Arrow's extension type is known.
_VARIANT_EXTENSIONS = frozenset({"arrow.parquet.variant", "parquet.variant"})
# What Spark says of the metadata of one.
_SPARKS_MARK = b"variant"
# The NULL of JSON, with no names.
_NULL_VARIANT = {"value": b"\0", "metadata": b"\1\0\0"}
_UNIT_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """The canonical Arrow type."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return pa.decimal128(data_type.precision, data_type.scale)
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return pa.timestamp(timestamp_unit(data_type))
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return pa.timestamp(timestamp_unit(data_type), tz="UTC")
        case AtomicType():
            return _FIXED[data_type.root]
        case ArrayType():
            return pa.list_(_part("element", data_type.element))
        case MapType() | MultisetType():
            entries = as_map(data_type)
            # Arrow's map keys are never null, whatever the key type says.
            return pa.map_(_part("key", entries.key, nullable=False), _part("value", entries.value))
        case RowType() | VariantType():
            return pa.struct([to_arrow_field(field) for field in as_row(data_type).fields])


def timestamp_unit(data_type: AtomicType) -> str:
    """``ms``, ``us`` or ``ns``: the coarsest unit that holds the type's precision."""
    precision = data_type.precision or 0
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def to_arrow_field(field: Field) -> pa.Field:
    """The canonical Arrow field: name, type, nullability, and metadata where the type does not say everything."""
    return _part(field.name, field.type)


def to_arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """The canonical Arrow schema, in the order given."""
    return pa.schema([to_arrow_field(field) for field in fields])


def from_arrow_type(arrow_type: pa.DataType, nullable: bool, next_id: Callable[[], int], *, where: str = "the schema") -> DataType:
    """The logical type of any Arrow layout of it; ``next_id`` gives ids to fields of nested rows, in pre-order.

    Raises UnsupportedError for Arrow types without a counterpart, naming ``where``.
    """
    return _from_arrow(arrow_type, nullable, next_id, where, depth=0)


def says_no_type(kind: pa.DataType) -> bool:
    """True if all values, or those inside of them, are NULL or missing, as in an empty list: they do not tell the type."""
    return pa.types.is_null(kind) or any(says_no_type(kind.field(place).type) for place in range(kind.num_fields))


def fields_from_arrow(schema: pa.Schema, *, where: str = "the schema") -> tuple[tuple[Field, ...], int]:
    """Columns of an Arrow schema with fresh ids in pre-order from 0, and the highest id given (-1 if none)."""
    ids = _Counter()
    return tuple(_field_from_arrow(column, ids, where, depth=0) for column in schema), ids.last


class _Counter:
    """0, 1, 2, …; remembers the last one."""

    def __init__(self) -> None:
        self.last = -1

    def __call__(self) -> int:
        self.last += 1
        return self.last


def _part(name: str, data_type: DataType, *, nullable: bool | None = None) -> pa.Field:
    make = _atomic_part if isinstance(data_type, AtomicType) else _new_part
    return make(name, data_type, data_type.nullable if nullable is None else nullable)


def _new_part(name: str, data_type: DataType, nullable: bool) -> pa.Field:
    arrow_type = to_arrow_type(data_type)
    metadata = {TYPE_KEY: type_to_sql(data_type).encode()} if _loses_detail(data_type, arrow_type) else None
    return pa.field(name, arrow_type, nullable, metadata)


# The same columns are asked for with each file, each batch and each commit.
_atomic_part = lru_cache(maxsize=1024)(_new_part)


def _loses_detail(data_type: DataType, arrow_type: pa.DataType) -> bool:
    if isinstance(data_type, MultisetType | VariantType):
        return True
    if not isinstance(data_type, AtomicType):
        return False
    return _from_arrow(arrow_type, data_type.nullable, _Counter(), "", depth=0) != data_type


def _field_from_arrow(field: pa.Field, next_id: Callable[[], int], where: str, depth: int) -> Field:
    field_id = next_id()
    description = (field.metadata or {}).get(COMMENT_KEY)
    return Field(
        id=field_id,
        name=field.name,
        type=_part_from_arrow(field, next_id, f"column {field.name!r} of {where}", depth),
        description=None if description is None else description.decode("utf-8", "replace"),
    )


def _part_from_arrow(field: pa.Field, next_id: Callable[[], int], where: str, depth: int) -> DataType:
    text = (field.metadata or {}).get(TYPE_KEY)
    plain = _from_arrow(field.type, field.nullable, next_id, where, depth)
    if text is None:
        return plain
    if isinstance(plain, MapType):
        is_multiset = text.startswith(b"MULTISET<") and pa.types.is_int32(field.type.item_type)
        return MultisetType(element=plain.key, nullable=plain.nullable) if is_multiset else plain
    if isinstance(plain, RowType) and text.split()[:1] == [b"VARIANT"] and _is_variant(field.type):
        return VariantType(nullable=plain.nullable)
    if not isinstance(plain, AtomicType):
        return plain
    try:
        declared = parse_type(text.decode("utf-8", "replace"))
    except TablestoreError as error:
        raise InvalidInputError(f"metadata {TYPE_KEY.decode()} of {where}: {error}") from error
    same = isinstance(declared, AtomicType) and to_arrow_type(declared) == to_arrow_type(plain)
    return replace(declared, nullable=field.nullable) if same else plain


def _from_arrow(arrow_type: pa.DataType, nullable: bool, next_id: Callable[[], int], where: str, depth: int) -> DataType:
    if depth > MAX_TYPE_DEPTH:
        raise UnsupportedError(f"{where} is nested more than {MAX_TYPE_DEPTH} levels deep", kind="unsupported-type")
    atomic = _atomic_from_arrow(arrow_type)
    if atomic is not None:
        return atomic if nullable else replace(atomic, nullable=False)
    types = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        if arrow_type.extension_name in _VARIANT_EXTENSIONS and _is_variant(arrow_type.storage_type):
            return VariantType(nullable=nullable)
        return _from_arrow(arrow_type.storage_type, nullable, next_id, where, depth + 1)
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return _from_arrow(arrow_type.value_type, nullable, next_id, where, depth + 1)
    if types.is_map(arrow_type):
        key = _part_from_arrow(arrow_type.key_field, next_id, f"the keys of {where}", depth + 1)
        value = _part_from_arrow(arrow_type.item_field, next_id, f"the values of {where}", depth + 1)
        return MapType(key=key, value=value, nullable=nullable)
    if is_list_like(arrow_type):
        element = _part_from_arrow(arrow_type.value_field, next_id, f"the elements of {where}", depth + 1)
        return ArrayType(element=element, nullable=nullable)
    if types.is_struct(arrow_type):
        if _is_variant(arrow_type) and (arrow_type.field(VARIANT_PARTS[1]).metadata or {}).get(_SPARKS_MARK) == b"true":
            return VariantType(nullable=nullable)
        parts = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        return RowType(fields=tuple(_field_from_arrow(part, next_id, where, depth + 1) for part in parts), nullable=nullable)
    if types.is_null(arrow_type):
        raise UnsupportedError(
            f"{where} has the Arrow type null, which says nothing about its values; give the column a type",
            kind="unsupported-type",
        )
    raise UnsupportedError(
        f"{where} has the Arrow type {arrow_type}, which no table can hold; cast it to a supported type",
        kind="unsupported-type",
    )


def _is_variant(arrow_type: pa.DataType) -> bool:
    """True for a struct of exactly the two binaries that a VARIANT is, in any layout and order."""
    if not pa.types.is_struct(arrow_type) or {part.name for part in arrow_type} != set(VARIANT_PARTS) or len(arrow_type) != 2:
        return False
    return all(_atomic_from_arrow(part.type) == _BYTES for part in arrow_type)


def is_list_like(arrow_type: pa.DataType) -> bool:
    """True for every Arrow layout of a list."""
    types = pa.types
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type)
        or types.is_large_list_view(arrow_type)
    )


def _atomic_from_arrow(arrow_type: pa.DataType) -> AtomicType | None:
    """The nullable logical type, or None for what is not atomic or not supported."""
    types = pa.types
    atomic = _FROM_ID.get(arrow_type.id)
    if atomic is not None:
        return atomic
    if types.is_timestamp(arrow_type):
        root = TypeRoot.TIMESTAMP if arrow_type.tz is None else TypeRoot.TIMESTAMP_LTZ
        return AtomicType(root=root, precision=_UNIT_PRECISION[arrow_type.unit])
    if types.is_time(arrow_type):
        # Values are stored as the ms of the day; finer ones would be lost.
        return AtomicType(root=TypeRoot.TIME, precision=min(_UNIT_PRECISION[arrow_type.unit], 3))
    if types.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return AtomicType(root=TypeRoot.DECIMAL, precision=arrow_type.precision, scale=arrow_type.scale)
    if types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width > 0:
        return AtomicType(root=TypeRoot.BINARY, length=arrow_type.byte_width)
    return None


def scalar_of(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """A Python value as a scalar of a type. Raises ArrowException, TypeError, ValueError, OverflowError.

    Arrow itself takes no ``numpy.datetime64`` where the type has a time zone.
    """
    if isinstance(value, np.datetime64) and pa.types.is_timestamp(arrow_type):
        ticks = value.astype(f"datetime64[{arrow_type.unit}]").astype(np.int64).item()
        return pa.scalar(ticks, pa.int64()).cast(arrow_type)
    return pa.scalar(value, arrow_type)


def value_of(scalar: pa.Scalar) -> object:
    """The Python value of a scalar, as :mod:`~tablestore.types.timevalues` has it: nanoseconds are a ``numpy.datetime64``."""
    if pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ns" and scalar.is_valid:
        return np.datetime64(scalar.value, "ns")
    return scalar.as_py()


def zero_of(data_type: pa.DataType) -> pa.Scalar:
    """A placeholder of a type: what a NOT NULL column holds in a retraction, which no reader gets."""
    if pa.types.is_string(data_type):
        return pa.scalar("", data_type)
    if pa.types.is_binary(data_type):
        return pa.scalar(b"", data_type)
    if pa.types.is_boolean(data_type):
        return pa.scalar(False)
    if pa.types.is_list(data_type) or pa.types.is_map(data_type):
        return pa.scalar([], data_type)
    if data_type == to_arrow_type(VariantType()):
        # Readers of Java's check the bytes of every row.
        return pa.scalar(_NULL_VARIANT, data_type)
    if pa.types.is_struct(data_type):
        return pa.scalar({field.name: None if field.nullable else zero_of(field.type).as_py() for field in data_type}, data_type)
    return pa.scalar(0, pa.int64()).cast(pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)
