"""Converts the values of a column, as JSON carries them, into values of its type.

    column           numbers                             texts                              true, false
    whole number     as they are                         their digits                       1, 0
    FLOAT, DOUBLE    as they are                         digits, NaN, Infinity, -Infinity   -
    DECIMAL          as they are                         their digits; base64 (Connect)     -
    DATE             days since 1970                     2024-01-31                         -
    TIME, TIMESTAMP  ticks since midnight or since 1970  12:30:00.5, 2024-01-31T12:30:00Z   -
    BOOLEAN          0, 1                                true, false                        as they are
    text             their digits                        as they are                        true, false
    bytes            -                                   base64                             -

A decimal of Connect is base64 where its schema says so, and gives its digits to a column of text.

What a number of ticks is, the schema of a record says. Without one it is what Debezium writes for a column of that precision:
milliseconds up to 3 digits, microseconds up to 6, nanoseconds beyond.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cdc.records.wholenumbers import refuse_changed_texts
from tablestore.json.jsonrows import carrier, decode_base64, from_carrier
from tablestore.json.jsontext import content
from tablestore.json.jsontimestamps import times_from_texts
from tablestore.types.arrays import one_chunk
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.conform import conform
from tablestore.types.datatypes import AtomicType, Field, with_nullable
from tablestore.types.numbercast import to_float

Wire = Literal["number", "text", "boolean", "nested"]
Ticks = Literal["ms", "us", "ns"]

WIDEST_DIGITS = 76
_DECIMAL_BYTES = 16
_DAY_MS = 24 * 60 * 60 * 1000
_TICKS_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMeaning:
    """The meaning that the schema of a record gives to a column beyond its JSON. ``ticks``: the unit of its numbers. ``scale``: its
    texts are decimals of this scale, the whole number of their digits as base64 of big-endian bytes. ``wrong``: why its texts
    cannot be understood."""

    ticks: Ticks | None = None
    scale: int | None = None
    wrong: str | None = None


PLAIN = ColumnMeaning()


def usual_wire(kind: pa.DataType) -> Wire:
    """The form in which values of a type mostly come."""
    if pa.types.is_nested(kind):
        return "nested"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "number" if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "text"


def wire_type(kind: pa.DataType, wire: Wire, meaning: ColumnMeaning) -> pa.DataType:
    """The type that a JSON reader is asked for, for a column of ``kind`` that comes as ``wire``."""
    if wire == "nested":
        return carrier(kind) if pa.types.is_nested(kind) else pa.string()
    if pa.types.is_decimal(kind) and wire != "boolean" and meaning == PLAIN:
        # Read from numbers and from texts; with room for any digits, which Arrow's reader needs to see an overflow.
        return pa.decimal256(WIDEST_DIGITS, kind.scale)
    if wire == "number":
        # In 64 bits Arrow's reader makes infinity of fewer numbers.
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()
    return pa.bool_() if wire == "boolean" else pa.string()


def to_column(array: pa.Array, field: Field, meaning: ColumnMeaning) -> pa.Array:
    """Values as JSON carries them as values of a column, nulls also where it takes none. Raises ValueError, ArrowInvalid,
    InvalidInputError for one that does not fit."""
    return conform_column(_typed(array, field, meaning), field)


def conform_column(array: pa.Array, field: Field) -> pa.Array:
    """Values of a like type in the column's own, checked as a write checks them but for nulls. Raises InvalidInputError."""
    free = replace(field, type=with_nullable(field.type, True), default_value=None)
    return one_chunk(conform(pa.table([array], names=[field.name]), (free,), where="the table", fill=False).column(0))


def _typed(array: pa.Array, field: Field, meaning: ColumnMeaning) -> pa.Array:
    source, kind = array.type, to_arrow_type(field.type)
    if array.null_count == len(array):
        # A null is a value of any type, whatever the others came as.
        return pa.nulls(len(array), kind)
    # A number says itself what it is.
    if meaning.wrong is not None and (pa.types.is_string(source) or pa.types.is_binary(source)):
        raise ValueError(meaning.wrong)
    if pa.types.is_nested(kind):
        return from_carrier(array, kind)
    if meaning.scale is not None and (pa.types.is_decimal(kind) or pa.types.is_string(kind)):
        if pa.types.is_string(source):
            array, source = decode_base64(array), pa.binary()
        if pa.types.is_binary(source):
            return _decimals(array, meaning.scale) if pa.types.is_decimal(kind) else _decimal_texts(array, meaning.scale)
    if pa.types.is_binary(source):
        return array
    if pa.types.is_string(source):
        return _from_texts(array, kind, meaning)
    if pa.types.is_string(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(source) and pa.types.is_floating(kind):
        return to_float(array, kind)
    if pa.types.is_integer(source):
        return _from_numbers(array, field, kind, meaning)
    if pa.types.is_boolean(source) and pa.types.is_integer(kind):
        return array.cast(pa.int8())
    return array


def _from_texts(array: pa.Array, kind: pa.DataType, meaning: ColumnMeaning) -> pa.Array:
    types = pa.types
    if types.is_decimal(kind):
        return array.cast(pa.decimal256(WIDEST_DIGITS, kind.scale))
    if types.is_timestamp(kind):
        return _moments(array, kind)
    if types.is_integer(kind) or types.is_boolean(kind):
        return array.cast(kind)
    if types.is_floating(kind):
        refuse_changed_texts(array, kind)
    return from_carrier(array, kind)


def _moments(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind.tz is None and pc.any(pc.ends_with(array, "Z")).as_py():
        # The zone is dropped where the column has none: the time of day in UTC stays.
        zoned = pc.if_else(pc.ends_with(array, "Z"), array, pc.binary_join_element_wise(array, "Z", ""))
        return times_from_texts(zoned, pa.timestamp(kind.unit, "UTC")).cast(kind)
    return times_from_texts(array, kind)


def _from_numbers(array: pa.Array, field: Field, kind: pa.DataType, meaning: ColumnMeaning) -> pa.Array:
    types = pa.types
    if types.is_boolean(kind):
        if not pc.all(pc.is_in(array, value_set=pa.array([0, 1, None]))).as_py():
            raise ValueError("expected true or false, or 0 or 1")
        return array.cast(kind)
    if types.is_date(kind):
        return array.cast(pa.int32()).cast(kind)
    if types.is_timestamp(kind):
        return array.cast(pa.timestamp(meaning.ticks or _usual_ticks(field), kind.tz)).cast(kind)
    if types.is_time(kind):
        step = _TICKS_PER_MS[meaning.ticks or _usual_ticks(field)]
        millis = pc.divide(array, step)
        if pc.any(pc.not_equal(pc.multiply(millis, step), array)).as_py():
            raise ValueError("a time with more than 3 digits of a second")
        if pc.any(pc.or_(pc.less(millis, 0), pc.greater_equal(millis, _DAY_MS))).as_py():
            raise ValueError("a time of day beyond 00:00:00 to 23:59:59.999")
        return millis.cast(pa.int32()).cast(kind)
    return array


def _usual_ticks(field: Field) -> Ticks:
    precision = field.type.precision if isinstance(field.type, AtomicType) else None
    return "ms" if (precision or 0) <= 3 else "us" if (precision or 0) <= 6 else "ns"


def _decimal_texts(array: pa.Array, scale: int) -> pa.Array:
    """The same numbers as texts, with all of their digits and without an exponent."""
    whole = _decimals(array, 0).cast(pa.string())
    if not scale:
        return whole
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), scale + 1, "0")
    sign = pc.if_else(pc.starts_with(whole, "-"), "-", "")
    before, behind = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, before, ""), behind, ".")


def _decimals(array: pa.Array, scale: int) -> pa.Array:
    """Big-endian two's complement numbers as decimals."""
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if (lengths > _DECIMAL_BYTES).any() or (lengths[valid] == 0).any():
        raise ValueError(f"expected a decimal of 1 to {_DECIMAL_BYTES} bytes")
    data = content(pc.fill_null(array, b""))
    ends = np.cumsum(lengths)
    wide = np.zeros((len(array), _DECIMAL_BYTES), dtype=np.uint8)
    filled = lengths > 0
    # The bytes in front of a negative number are all ones.
    wide[filled] = np.where(data[(ends - lengths)[filled]] >= 128, 255, 0).astype(np.uint8)[:, None]
    rows = np.repeat(np.arange(len(array)), lengths)
    back = np.repeat(ends, lengths) - 1 - np.arange(len(data))
    # Little-endian, as Arrow keeps them: the last byte comes first.
    wide[rows, back] = data
    validity = None if not array.null_count else pc.is_valid(array).buffers()[1]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(array), [validity, pa.py_buffer(wide)]).cast(
        pa.decimal256(WIDEST_DIGITS, scale)
    )
