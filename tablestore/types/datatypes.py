"""Logical data types: what a column holds, independent of Arrow, Parquet and BinaryRow.

A type is a frozen value. Nullability is part of the type. Nested ROW fields carry ids from the same counter as
the table's columns, so that evolution matches by id at every depth; array elements and map keys and values take none
(Paimon specification, "Schema").
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar


class TypeRoot(StrEnum):
    """The atomic types. Values are the canonical names in schema files: stored, never renamed."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"  # STRING is VARCHAR(MAX_LENGTH)
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"  # BYTES is VARBINARY(MAX_LENGTH)
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP WITH LOCAL TIME ZONE"


TEXT_ROOTS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
BINARY_ROOTS = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
LENGTH_ROOTS = TEXT_ROOTS | BINARY_ROOTS
INTEGER_ROOTS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})
FLOAT_ROOTS = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
TIMESTAMP_ROOTS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})

MAX_LENGTH = 2_147_483_647
# The highest precision of a DECIMAL.
MAX_PRECISION = 38
# Stored: the fields of a VARIANT in data files, and the ids that they have there.
VARIANT_PARTS = ("value", "metadata")
SHREDDED_PART = "typed_value"
"""The field of a VARIANT in a Parquet file that has columns of its own for parts of the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicType:
    """A type without parts. ``precision`` is for DECIMAL, TIME, TIMESTAMP(_LTZ); ``scale`` for DECIMAL;
    ``length`` for CHAR, VARCHAR, BINARY, VARBINARY. The ones that do not apply are None."""

    root: TypeRoot
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """A list of ``element`` values."""

    element: "DataType"
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """Entries from ``key`` to ``value``."""

    key: "DataType"
    value: "DataType"
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MultisetType:
    """A bag of ``element`` values; stored as a map from element to count (INT NOT NULL)."""

    element: "DataType"
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column of a table or a field of a ROW. ``id`` never changes and is never re-used."""

    id: int
    name: str
    type: "DataType"
    description: str | None = None
    default_value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowType:
    """A nested row."""

    fields: tuple[Field, ...]
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantType:
    """A value of any shape, in the binary form of Apache Parquet's Variant specification; stored as a row of two binaries."""

    nullable: bool = True


DataType = AtomicType | ArrayType | MapType | MultisetType | RowType | VariantType
_T = TypeVar("_T", bound=DataType)


def with_nullable(data_type: _T, nullable: bool) -> _T:
    """The same type with the given nullability."""
    return data_type if data_type.nullable == nullable else replace(data_type, nullable=nullable)


def nullable_throughout(data_type: DataType) -> DataType:
    """The same type where it and all of its parts may be NULL, but for the keys of maps."""
    match data_type:
        case ArrayType():
            data_type = replace(data_type, element=nullable_throughout(data_type.element))
        case MapType():
            data_type = replace(data_type, value=nullable_throughout(data_type.value))
        case RowType():
            fields = tuple(replace(field, type=nullable_throughout(field.type)) for field in data_type.fields)
            data_type = replace(data_type, fields=fields)
    return with_nullable(data_type, True)


def is_float(data_type: DataType) -> bool:
    """True for FLOAT and DOUBLE."""
    return isinstance(data_type, AtomicType) and data_type.root in FLOAT_ROOTS


def as_map(data_type: MapType | MultisetType) -> MapType:
    """The map that holds the values of a MAP or MULTISET."""
    if isinstance(data_type, MapType):
        return data_type
    count = AtomicType(root=TypeRoot.INT, nullable=False)
    return MapType(key=data_type.element, value=count, nullable=data_type.nullable)


def as_row(data_type: RowType | VariantType) -> RowType:
    """The row that holds the values of a ROW or VARIANT. The ids of a VARIANT's two fields are those that its files have."""
    if isinstance(data_type, RowType):
        return data_type
    part = AtomicType(root=TypeRoot.VARBINARY, length=MAX_LENGTH, nullable=False)
    fields = tuple(Field(id=place, name=name, type=part) for place, name in enumerate(VARIANT_PARTS))
    return RowType(fields=fields, nullable=data_type.nullable)


def is_finer_than_micros(data_type: DataType) -> bool:
    """True if it is a timestamp with digits behind the microseconds, which other engines cut off."""
    return isinstance(data_type, AtomicType) and data_type.root in TIMESTAMP_ROOTS and (data_type.precision or 0) > 6


def types_in(data_type: DataType) -> Iterator[DataType]:
    """A type and all types inside it, outer ones first."""
    yield data_type
    match data_type:
        case RowType():
            for field in data_type.fields:
                yield from types_in(field.type)
        case ArrayType() | MultisetType():
            yield from types_in(data_type.element)
        case MapType():
            yield from types_in(data_type.key)
            yield from types_in(data_type.value)


def row_types(data_type: DataType) -> Iterator[RowType]:
    """Every ROW in a type, itself included, outer ones first."""
    return (kind for kind in types_in(data_type) if isinstance(kind, RowType))


def with_new_ids(data_type: DataType, next_id: Callable[[], int]) -> DataType:
    """The same type, its nested fields numbered anew in pre-order."""
    match data_type:
        case ArrayType() | MultisetType():
            return replace(data_type, element=with_new_ids(data_type.element, next_id))
        case MapType():
            key = with_new_ids(data_type.key, next_id)
            return replace(data_type, key=key, value=with_new_ids(data_type.value, next_id))
        case RowType():
            # In pre-order: a field's own id before those inside it.
            fields = tuple(replace(f, id=next_id(), type=with_new_ids(f.type, next_id)) for f in data_type.fields)
            return replace(data_type, fields=fields)
        case _:
            return data_type
