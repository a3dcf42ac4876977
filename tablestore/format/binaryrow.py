"""BinaryRow: the binary row format of partition values, keys and statistics in manifests, and the input of the bucket hash.

Little-endian, in words of 8 bytes; serialised with the arity in front (big-endian int32):

    arity(4) | header: row kind (1 byte), then null bits from bit 8 | one 8-byte slot per field | variable part

A slot holds the value at its low end. What does not fit lies in the variable part, in field order, padded to 8 bytes:

    text and bytes, length <= 7    bytes 0-6 the data, byte 7 = 0x80 | length
    text and bytes, longer         int32 length, int32 offset from the row's start
    DECIMAL p > 18                 int32 length, int32 offset; big-endian two's complement in a 16-byte area
    TIMESTAMP p > 3                int32 nanoseconds of the millisecond, int32 offset; int64 epoch ms in an 8-byte area

A null of the last two kinds has two forms. Java's projection (keys, partitions, bucket keys: everything that is hashed
or compared as bytes) reserves the area and keeps its offset in the slot; Java's serializer (statistics) and others
leave the slot zero. Decoding copes with both. The vectorised form is in :mod:`tablestore.format.rowwords`.
"""

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.types.datatypes import BINARY_ROOTS, TEXT_ROOTS, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot
from tablestore.types.timevalues import (
    date_to_days,
    days_to_date,
    millis_to_time,
    parts_to_timestamp,
    time_to_millis,
    timestamp_to_parts,
)
from tablestore.types.typestring import type_to_sql

# Stored, never changed.
INLINE_BYTES = 7
INLINE_MARK = 0x80
COMPACT_DECIMAL_PRECISION = 18
COMPACT_TIMESTAMP_PRECISION = 3
WIDE_DECIMAL_AREA = 16
EMPTY_ROW = bytes(12)

_INT, _LONG = struct.Struct("<i4x"), struct.Struct("<q")


def _same(value: Any) -> Any:
    return value


def _one_nan(value: Any) -> Any:
    """The value with NaN in one form, since all NaNs are one key: that of Java's floatToIntBits."""
    return math.nan if value != value else value


# Values that lie in the slot as numbers: how, and the number of a value and back.
_NUMBERS: dict[TypeRoot, tuple[struct.Struct, Callable[[Any], Any], Callable[[Any], Any]]] = {
    TypeRoot.TINYINT: (struct.Struct("<b7x"), _same, _same),
    TypeRoot.SMALLINT: (struct.Struct("<h6x"), _same, _same),
    TypeRoot.INT: (_INT, _same, _same),
    TypeRoot.BIGINT: (_LONG, _same, _same),
    TypeRoot.FLOAT: (struct.Struct("<f4x"), _one_nan, _same),
    TypeRoot.DOUBLE: (struct.Struct("<d"), _one_nan, _same),
    TypeRoot.DATE: (_INT, date_to_days, days_to_date),
    TypeRoot.TIME: (_INT, time_to_millis, millis_to_time),
}
_PAIR = struct.Struct("<ii")
_EXACT = Context(prec=80)


def header_bytes(arity: int) -> int:
    """The size of the row kind and the null bits."""
    return (arity + 63 + 8) // 64 * 8


def is_wide_decimal(data_type: AtomicType) -> bool:
    """True if values of this DECIMAL do not fit a slot."""
    return (data_type.precision or 0) > COMPACT_DECIMAL_PRECISION


def is_wide_timestamp(data_type: AtomicType) -> bool:
    """True if values of this TIMESTAMP do not fit a slot."""
    return timestamp_precision(data_type) > COMPACT_TIMESTAMP_PRECISION


def timestamp_precision(data_type: AtomicType) -> int:
    """The precision, 6 if unstated."""
    return 6 if data_type.precision is None else data_type.precision


def encode_row(values: Sequence[object], types: Sequence[DataType], *, java_projection: bool = True) -> bytes:
    """The serialised row (with the arity in front) of Python values as ``pyarrow.Scalar.as_py`` gives them.

    ``java_projection``: the null form of wide types; False for statistics. Raises InvalidInputError if a value does not fit.
    """
    if len(values) != len(types):
        raise InvalidInputError(f"expected {len(types)} values, found {len(values)}")
    head = header_bytes(len(types))
    header = bytearray(head)
    slots: list[bytes] = []
    areas: list[bytes] = []
    offset = head + 8 * len(types)
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            header[(index + 8) // 8] |= 1 << index % 8
            area = b"\0" * _reserved(data_type) if java_projection else b""
            slot = _PAIR.pack(0, offset) if area else b"\0" * 8
        else:
            try:
                slot, area = _encode_value(value, _atomic(data_type), offset)
            except (TypeError, ValueError, ArithmeticError, struct.error, AttributeError) as error:
                raise InvalidInputError(
                    f"field {index}: expected a value of type {type_to_sql(data_type)}, found {value!r} ({error})"
                ) from error
        slots.append(slot)
        areas.append(area)
        offset += len(area)
    return b"".join([len(types).to_bytes(4, "big"), header, *slots, *areas])


def decode_row(data: bytes, types: Sequence[DataType], *, beyond_python_is_null: bool = False) -> tuple[object, ...]:
    """The values of a serialised row.

    ``beyond_python_is_null``: dates and timestamps that Python cannot hold (the year 10000) become None: for bounds, which are then
    unknown. Raises FormatError if the bytes are not a row of these types.
    """
    arity = row_arity(data)
    if arity != len(types):
        raise FormatError(f"expected a row of {len(types)} fields, found one of {arity}: {data[:64].hex()}")
    row = data[4:]
    head = header_bytes(arity)
    if len(row) < head + 8 * arity or row[:1] != b"\0":
        raise FormatError(f"expected a row of {arity} fields, found {len(row)} bytes: {row[:64].hex()}")
    values: list[object] = []
    for index, data_type in enumerate(types):
        if row[(index + 8) // 8] >> index % 8 & 1:
            values.append(None)
            continue
        try:
            values.append(_decode_value(row, head + 8 * index, _atomic(data_type)))
        except (ValueError, OverflowError, InvalidOperation, struct.error, InvalidInputError) as error:
            if beyond_python_is_null and isinstance(error, OverflowError):
                values.append(None)
                continue
            raise FormatError(
                f"expected a value of type {type_to_sql(data_type)} in field {index} of a row, found "
                f"{row[head + 8 * index :][:8].hex()} in {len(row)} bytes ({error})"
            ) from error
    return tuple(values)


def row_arity(data: bytes) -> int:
    """The number of fields that a serialised row says it has."""
    if len(data) < 12:
        raise FormatError(f"expected a row of at least 12 bytes, found {len(data)}: {data.hex()}")
    return int.from_bytes(data[:4], "big", signed=True)


def without_values(data: bytes) -> bytes | None:
    """The row with all fields null, in the form of statistics; None for bytes that are not a row."""
    arity = row_arity(data)
    head = header_bytes(arity)
    if arity < 0 or len(data) - 4 < head + 8 * arity:
        return None
    nulls = ((1 << arity) - 1) << 8
    return data[:4] + nulls.to_bytes(head, "little") + bytes(8 * arity)


def _reserved(data_type: DataType) -> int:
    """The bytes that Java's projection reserves for a null."""
    if not isinstance(data_type, AtomicType):
        return 0
    if data_type.root is TypeRoot.DECIMAL and is_wide_decimal(data_type):
        return WIDE_DECIMAL_AREA
    return 8 if data_type.root in TIMESTAMP_ROOTS and is_wide_timestamp(data_type) else 0


def _encode_value(value: object, data_type: AtomicType, offset: int) -> tuple[bytes, bytes]:
    """The slot and the area at ``offset`` of a non-null value."""
    root = data_type.root
    if root in _NUMBERS:
        layout, number_of, _ = _NUMBERS[root]
        return layout.pack(number_of(value)), b""
    if root in TEXT_ROOTS:
        if not isinstance(value, str):
            raise TypeError("not a string")
        return _encode_bytes(value.encode("utf-8"), offset)
    if root in BINARY_ROOTS:
        if not isinstance(value, bytes):
            raise TypeError("not bytes")
        return _encode_bytes(value, offset)
    if root is TypeRoot.BOOLEAN:
        if not isinstance(value, bool):
            raise TypeError("not a boolean")
        return bytes([value, 0, 0, 0, 0, 0, 0, 0]), b""
    if root is TypeRoot.DECIMAL:
        return _encode_decimal(value, data_type, offset)
    millis, nanos = timestamp_to_parts(value)
    if is_wide_timestamp(data_type):
        return _PAIR.pack(nanos, offset), _LONG.pack(millis)
    return _LONG.pack(millis), b""


def _encode_bytes(data: bytes, offset: int) -> tuple[bytes, bytes]:
    size = len(data)
    if size <= INLINE_BYTES:
        return data.ljust(INLINE_BYTES, b"\0") + bytes([INLINE_MARK | size]), b""
    return _PAIR.pack(size, offset), data.ljust((size + 7) // 8 * 8, b"\0")


def _encode_decimal(value: object, data_type: AtomicType, offset: int) -> tuple[bytes, bytes]:
    if not isinstance(value, Decimal):
        raise TypeError("not a decimal")
    scaled = value.scaleb(data_type.scale or 0, _EXACT)
    unscaled = int(scaled)
    if unscaled != scaled or abs(unscaled) >= 10 ** (data_type.precision or 0):
        raise ValueError("out of range, or more digits than the scale has")
    if not is_wide_decimal(data_type):
        return _LONG.pack(unscaled), b""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return _PAIR.pack(size, offset), unscaled.to_bytes(size, "big", signed=True).ljust(WIDE_DECIMAL_AREA, b"\0")


def _decode_value(row: bytes, at: int, data_type: AtomicType) -> object:
    root = data_type.root
    if root in _NUMBERS:
        layout, _, value_of = _NUMBERS[root]
        return value_of(layout.unpack_from(row, at)[0])
    if root in TEXT_ROOTS:
        return _decode_bytes(row, at).decode("utf-8")
    if root in BINARY_ROOTS:
        return _decode_bytes(row, at)
    if root is TypeRoot.BOOLEAN:
        if row[at] > 1:
            raise ValueError("not a boolean")
        return row[at] == 1
    if root is TypeRoot.DECIMAL:
        if is_wide_decimal(data_type):
            size, offset = _PAIR.unpack_from(row, at)
            if not 1 <= size <= WIDE_DECIMAL_AREA:
                raise ValueError(f"a decimal of {size} bytes")
            unscaled = int.from_bytes(_area(row, offset, size), "big", signed=True)
        else:
            unscaled = _LONG.unpack_from(row, at)[0]
        return Decimal(unscaled).scaleb(-(data_type.scale or 0), _EXACT)
    nanos = 0
    if is_wide_timestamp(data_type):
        nanos, offset = _PAIR.unpack_from(row, at)
        if not 0 <= nanos < 1_000_000:
            raise ValueError(f"{nanos} nanoseconds in a millisecond")
        (millis,) = _LONG.unpack(_area(row, offset, 8))
    else:
        (millis,) = _LONG.unpack_from(row, at)
    utc = root is TypeRoot.TIMESTAMP_LTZ
    return parts_to_timestamp(millis, nanos, precision=timestamp_precision(data_type), utc=utc)


def _decode_bytes(row: bytes, at: int) -> bytes:
    mark = row[at + INLINE_BYTES]
    if mark & INLINE_MARK:
        size = mark & 0x7F
        if size > INLINE_BYTES:
            raise ValueError(f"{size} bytes in a slot")
        return row[at : at + size]
    size, offset = _PAIR.unpack_from(row, at)
    return _area(row, offset, size)


def _area(row: bytes, offset: int, size: int) -> bytes:
    if size < 0 or offset < 0 or offset + size > len(row):
        raise ValueError(f"{size} bytes at offset {offset}")
    return row[offset : offset + size]


def _atomic(data_type: DataType) -> AtomicType:
    if not isinstance(data_type, AtomicType):
        raise UnsupportedError(f"keys, partitions and statistics hold no nested values, found {type_to_sql(data_type)}")
    return data_type
