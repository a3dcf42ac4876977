"""Coerces values of several types to a common type, and casts values, by the rules of SQL engines in ANSI mode.

The rules are those of SQL engines in ANSI mode: nothing overflows silently, and no text becomes a number by itself, but for a
literal beside a column of another type (``day = '2024-01-31'``).

    integers together     the widest of them          any float among numbers     DOUBLE, REAL if all are REAL
    DECIMAL among them    DECIMAL wide enough         dates and timestamps        the finest timestamp

A datum is an Arrow array, or a scalar where it is the same for all rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import MAX_PRECISION, DataType
from tablestore.types.expression.instant import parse_instant
from tablestore.types.numbercast import to_decimal, to_float

Datum: TypeAlias = pa.Array | pa.Scalar

# In 256 bits there is room for two numbers of 38 digits with their points in one place.
_WIDE = 75
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("s", "ms", "us", "ns")
_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True, slots=True)
class Decimals:
    """The digits of a decimal, and how many of them stand behind the point."""

    precision: int
    scale: int

    @classmethod
    def of(cls, datum: Datum) -> "Decimals":
        """The digits that hold a number: of an integer's literal, of an integer type, of a decimal type."""
        if pa.types.is_decimal(datum.type):
            return cls(datum.type.precision, datum.type.scale)
        if isinstance(datum, pa.Scalar) and datum.is_valid:
            return cls(len(str(abs(datum.as_py()))), 0)
        return cls(_INTEGER_DIGITS[datum.type.bit_width], 0)

    def type(self) -> pa.DataType:
        """The type; digits behind the point go where there are more than 38 in all, down to six of them."""
        if self.precision <= MAX_PRECISION:
            return pa.decimal128(self.precision, self.scale)
        whole = self.precision - self.scale
        return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - whole, min(self.scale, 6)))


def is_number(kind: pa.DataType) -> bool:
    """True if a type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """True if a type is one of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_moment(kind: pa.DataType) -> bool:
    """True if a type is one of dates or of timestamps without a zone."""
    return bool(pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None))


def _is_zoned(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def wide(datum: Datum, scale: int) -> Datum:
    """A whole number or decimal with so many digits behind the point, in 256 bits."""
    return datum.cast(pa.decimal256(_WIDE, scale))


def exact(datum: Datum, digits: Decimals) -> Datum:
    """A whole number or decimal in exactly these digits, in 256 bits."""
    if pa.types.is_integer(datum.type):
        # Arrow wants room for the greatest number of the type.
        datum = datum.cast(pa.decimal256(_WIDE, 0))
    return datum.cast(pa.decimal256(digits.precision, digits.scale))


def rounded_to(datum: Datum, kind: pa.DataType) -> Datum:
    """A decimal as another one, rounded half away from zero. Raises ArrowInvalid for one that does not fit."""
    if pa.types.is_decimal(datum.type) and datum.type.scale > kind.scale:
        datum = pc.round(datum.cast(pa.decimal256(_WIDE, datum.type.scale)), kind.scale, "half_towards_infinity")
    return to_decimal(datum, kind)


def together(data: Sequence[Datum]) -> list[Datum]:
    """Values of several types as one type. Raises InvalidInputError for types that have none in common."""
    kinds = list(dict.fromkeys(datum.type for datum in data if not pa.types.is_null(datum.type)))
    if len(kinds) > 1 and any(map(is_text, kinds)):
        data = _literals_as(data, kinds)
        kinds = list(dict.fromkeys(datum.type for datum in data if not pa.types.is_null(datum.type)))
    if not kinds:
        return list(data)
    if len(kinds) == 1:
        return [cast_datum(datum, kinds[0]) for datum in data]
    if all(map(is_number, kinds)):
        return [cast_datum(datum, _number(data, kinds)) for datum in data]
    if all(map(is_moment, kinds)):
        units = [_UNITS.index(kind.unit) for kind in kinds if pa.types.is_timestamp(kind)]
        kind = pa.timestamp(_UNITS[max(units)]) if units else kinds[0]
        return [cast_datum(datum, kind) for datum in data]
    for same in (is_text, _is_zoned, pa.types.is_binary):
        if all(map(same, kinds)):
            return [cast_datum(datum, max(kinds, key=lambda kind: _UNITS.index(getattr(kind, "unit", "s")))) for datum in data]
    raise InvalidInputError(
        f"values of the types {' and '.join(map(str, kinds))} do not go together; write CAST(… AS …) around one of them",
        kind="type-mismatch",
    )


def _number(data: Sequence[Datum], kinds: Sequence[pa.DataType]) -> pa.DataType:
    if any(map(pa.types.is_floating, kinds)):
        return pa.float64()
    if all(map(pa.types.is_integer, kinds)):
        return max(kinds, key=lambda kind: kind.bit_width)
    digits = [Decimals.of(datum) for datum in data if not pa.types.is_null(datum.type)]
    scale = max(one.scale for one in digits)
    return pa.decimal256(min(76, max(one.precision - one.scale for one in digits) + scale), scale)


def _literals_as(data: Sequence[Datum], kinds: Sequence[pa.DataType]) -> Sequence[Datum]:
    """The data, with texts that are the same for all rows read as what stands beside them."""
    other_kinds = [kind for kind in kinds if not is_text(kind)]
    if len(other_kinds) == len(kinds) or not other_kinds:
        return data
    return [from_text(datum, other_kinds[0]) if isinstance(datum, pa.Scalar) and is_text(datum.type) else datum for datum in data]


def from_text(datum: Datum, kind: pa.DataType) -> Datum:
    """Texts read as values of a type. Raises InvalidInputError or ArrowInvalid."""
    trimmed = pc.utf8_trim_whitespace(datum)
    if isinstance(trimmed, pa.Scalar) and trimmed.is_valid and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        instant = parse_instant(trimmed.as_py())
        zoned = _is_zoned(kind)
        if instant is None or (zoned and instant.zoned is False) or (not zoned and instant.zoned):
            form = "'2024-01-31 12:34:56Z'" if zoned else "'2024-01-31' or '2024-01-31 12:34:56.123', without a time zone"
            raise InvalidInputError(f"expected a moment such as {form}, found {trimmed.as_py()!r:.60}", kind="type-mismatch")
        unit = 86_400 * 10**9 if pa.types.is_date(kind) else _UNIT_NS[kind.unit]
        ticks = instant.ns // unit
        return pa.scalar(ticks, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        return pc.utf8_lower(trimmed).cast(kind)
    return pc.cast(trimmed, kind)


def cast_to(datum: Datum, data_type: DataType) -> Datum:
    """A datum as a type of the table's. Raises InvalidInputError, UnsupportedError, ArrowInvalid."""
    return cast_datum(datum, to_arrow_type(data_type))


def cast_datum(datum: Datum, kind: pa.DataType) -> Datum:
    """A datum as another Arrow type, as SQL's CAST has it: fractions are cut off for whole numbers and rounded for decimals.

    Raises UnsupportedError for a cast that needs an engine of SQL, ArrowInvalid or InvalidInputError for a value that does not fit.
    """
    source_type = datum.type
    if source_type == kind:
        return datum
    if pa.types.is_null(source_type):
        return pa.scalar(None, kind) if isinstance(datum, pa.Scalar) else pa.nulls(len(datum), kind)
    if is_text(source_type):
        if is_number(kind) or is_moment(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind) or is_text(kind):
            return datum.cast(kind) if is_text(kind) else from_text(datum, kind)
    elif is_number(source_type) and is_number(kind):
        return _cast_number(datum, kind)
    elif (is_moment(source_type) and is_moment(kind)) or (_is_zoned(source_type) and _is_zoned(kind)):
        return _cast_moment(datum, kind)
    elif is_text(kind) and (pa.types.is_integer(source_type) or pa.types.is_boolean(source_type) or pa.types.is_date(source_type)):
        return pc.cast(datum, kind)
    elif pa.types.is_boolean(source_type) and is_number(kind):
        return _cast_number(datum.cast(pa.int8()), kind)
    elif pa.types.is_binary(source_type) and pa.types.is_binary(kind):
        return datum.cast(kind)
    raise UnsupportedError(
        f"no {source_type} is cast to {kind} here; run the statement with SQL, whose engines have more casts: "
        "tablestore.TableEnvironment",
        kind="unsupported-cast",
    )


def _cast_number(datum: Datum, kind: pa.DataType) -> Datum:
    if pa.types.is_decimal(kind):
        return _float_to_decimal(datum, kind) if pa.types.is_floating(datum.type) else rounded_to(datum, kind)
    if pa.types.is_floating(kind):
        if pa.types.is_decimal(datum.type):
            return to_float(datum, kind)
        options = pc.CastOptions(kind, allow_float_truncate=True)
    elif pa.types.is_floating(datum.type):
        datum, options = pc.trunc(datum), pc.CastOptions(kind)
    else:
        options = pc.CastOptions(kind, allow_decimal_truncate=True)
    return pc.cast(datum, options=options)


def _float_to_decimal(datum: Datum, kind: pa.DataType) -> Datum:
    """The digits that a float is written with, rounded half away from zero: 2.675 is 2.68, as for Spark."""
    double = datum.cast(pa.float64())
    if not pc.all(pc.fill_null(pc.is_finite(double), True)).as_py():
        return double.cast(kind)  # Raises, naming the value.
    # A double has up to 17 digits; of one that is too small for a place the first of them is of no consequence.
    small = pc.less(pc.abs(double), 10.0 ** -(kind.scale + 1))
    kept = pc.if_else(small, pa.scalar(0.0), double)
    return rounded_to(kept.cast(pa.string()).cast(pa.decimal256(_WIDE, kind.scale + 18)), kind)


def _cast_moment(datum: Datum, kind: pa.DataType) -> Datum:
    source_type = datum.type
    if pa.types.is_timestamp(source_type):
        if pa.types.is_date(kind):
            return pc.floor_temporal(datum, unit="day").cast(kind)
        if _UNITS.index(kind.unit) < _UNITS.index(source_type.unit):
            names = {"s": "second", "ms": "millisecond", "us": "microsecond"}
            return pc.floor_temporal(datum, unit=names[kind.unit]).cast(kind)
    return datum.cast(kind)
