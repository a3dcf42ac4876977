"""Binds the literals of comparisons to the type of their column.

Binding turns a comparison with any literal into an equal one with a literal of exactly the column's type, or folds
it: nothing is rounded towards a wrong answer and nothing overflows.

    int_col = 1.5        never (unknown for null)      tinyint_col < 1000    always (unknown for null)
    int_col < 1.5        int_col <= 1                  date_col >= noon      date_col > that day

Discrete types (integers, decimals, dates, times) are counted in ticks; a literal between two ticks moves to the lower
one with an operator that keeps the meaning. Floats compare as doubles, as in SQL engines and in Arrow.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import timestamp_unit
from tablestore.types.datatypes import BINARY_ROOTS, FLOAT_ROOTS, TEXT_ROOTS, TIMESTAMP_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.expression.expression import renamed_columns
from tablestore.types.expression.instant import Instant, parse_instant
from tablestore.types.filter.predicate import (
    UNKNOWN,
    And,
    Comparison,
    Computed,
    IsIn,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    columns,
    like_prefix,
)
from tablestore.types.timevalues import date_to_days, days_to_date, millis_to_time, nanoseconds
from tablestore.types.typestring import type_to_sql

INT_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
_UNIT_NS = {"ms": 10**6, "us": 10**3, "ns": 1}
_DAY_NS = 86_400 * 10**9
# Beyond this exponent a number is larger (or smaller) than anything that a column holds.
_MAX_EXPONENT = 400
_TIME = re.compile(r"\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*", re.ASCII)


def always(field: str) -> Predicate:
    """True, but unknown where the field is null."""
    return Or((Not(IsNull(field)), UNKNOWN))


def never(field: str) -> Predicate:
    """False, but unknown where the field is null."""
    return And((IsNull(field), UNKNOWN))


def bind_comparison(op: Operator, field: Field, raw: object) -> Predicate:
    """``field op raw`` for a literal of any type; InvalidInputError if the two do not compare."""
    if raw is None:
        return UNKNOWN
    data_type = field.type
    if not isinstance(data_type, AtomicType):
        raise UnsupportedError(
            f"the filter compares the column {field.name!r} of type {type_to_sql(data_type)}; "
            "only IS NULL and IS NOT NULL work on nested types",
            kind="unsupported-filter",
        )
    root = data_type.root
    if root is TypeRoot.BOOLEAN:
        return Comparison(op, field.name, _boolean(field, raw))
    if root in TEXT_ROOTS:
        return Comparison(op, field.name, _text(field, raw))
    if root in BINARY_ROOTS:
        return Comparison(op, field.name, _binary(field, raw))
    if root in FLOAT_ROOTS:
        return _bind_float(op, field, _double(field, raw), narrow=root is TypeRoot.FLOAT)
    return _bind_discrete(op, field, data_type, raw)


def bind_in(field: Field, raws: Iterable[object]) -> Predicate:
    """``field IN (raws)``, None standing for NULL; values that the column cannot have are left out."""
    values: dict[object, Any] = {}
    has_null = False
    for raw in raws:
        if raw is None:
            has_null = True
            continue
        bound = bind_comparison("=", field, raw)
        if isinstance(bound, Comparison):
            # NaNs of two signs look the same.
            sign = math.copysign(1, bound.literal) if isinstance(bound.literal, float) else None
            values.setdefault((repr(bound.literal), sign), bound.literal)
    if not values:
        return UNKNOWN if has_null else never(field.name)
    return IsIn(field.name, (*values.values(), None) if has_null else tuple(values.values()))


def bind_like(field: Field, pattern: str) -> Predicate:
    """``field LIKE pattern``, in the simplest form that means the same."""
    bind_prefix(field, "")
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise InvalidInputError(f"the LIKE pattern {pattern!r:.100} ends in its escape character; double it")
    prefix, suffix = like_prefix(pattern)
    if not suffix:
        return Comparison("=", field.name, prefix)
    return StartsWith(field.name, prefix) if not suffix.strip("%") else Like(field.name, pattern)


def bind_prefix(field: Field, prefix: str) -> Predicate:
    """``field`` starts with the prefix; InvalidInputError if the column holds no text."""
    if not isinstance(field.type, AtomicType) or field.type.root not in TEXT_ROOTS:
        raise InvalidInputError(f"LIKE needs a text column; {field.name!r} is {type_to_sql(field.type)}", kind="type-mismatch")
    return StartsWith(field.name, prefix)


def _refusal(field: Field, raw: object, hint: str) -> InvalidInputError:
    shown = f"{type(raw).__name__} {raw!r:.60}" if not isinstance(raw, Instant) else "a timestamp"
    return InvalidInputError(
        f"the filter compares the column {field.name!r} of type {type_to_sql(field.type)} with {shown}; {hint}",
        kind="type-mismatch",
    )


def _boolean(field: Field, raw: object) -> bool:
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    if not isinstance(raw, bool):
        raise _refusal(field, raw, "write TRUE or FALSE")
    return raw


def _text(field: Field, raw: object) -> str:
    if not isinstance(raw, str):
        raise _refusal(field, raw, "write the value as text, between quotes")
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        raise _refusal(field, raw, "it is not valid Unicode text") from error
    return raw


def _binary(field: Field, raw: object) -> bytes:
    if not isinstance(raw, bytes):
        raise _refusal(field, raw, "write the value as X'…'")
    return raw


def _number(field: Field, raw: object) -> int | float | Decimal:
    if isinstance(raw, str):
        try:
            return Decimal(raw.strip())
        except InvalidOperation as error:
            raise _refusal(field, raw, "write a number") from error
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        raise _refusal(field, raw, "write a number")
    return raw


def _double(field: Field, raw: object) -> float:
    number = _number(field, raw)
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _bind_float(op: Operator, field: Field, value: float, *, narrow: bool) -> Predicate:
    if not narrow or math.isnan(value):
        return Comparison(op, field.name, value)
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    if float(nearest) == value:
        return Comparison(op, field.name, float(nearest))
    floor = nearest if float(nearest) < value else np.nextafter(nearest, np.float32(-np.inf))
    return _between_ticks(op, field.name, float(floor))


def _between_ticks(op: Operator, name: str, floor: Any) -> Predicate:
    """The comparison with a literal that lies above ``floor`` and below the next value that the column can have."""
    match op:
        case "=":
            return never(name)
        case "!=":
            return always(name)
        case "<" | "<=":
            return Comparison("<=", name, floor)
        case ">" | ">=":
            return Comparison(">", name, floor)


def _bind_discrete(op: Operator, field: Field, data_type: AtomicType, raw: object) -> Predicate:
    ticks, (low, high) = _ticks(field, data_type, raw), _tick_range(data_type)
    if isinstance(ticks, float) or not low <= ticks <= high:
        # NaN is greater than every number, as in predicate.
        is_above = ticks > 0 or ticks != ticks
        return always(field.name) if op in (("!=", "<", "<=") if is_above else ("!=", ">", ">=")) else never(field.name)
    floor = math.floor(ticks)
    if floor != ticks:
        return _between_ticks(op, field.name, _from_ticks(data_type, floor))
    return Comparison(op, field.name, _from_ticks(data_type, floor))


def _tick_range(data_type: AtomicType) -> tuple[int, int]:
    root = data_type.root
    if root in INT_BITS:
        return -(1 << (INT_BITS[root] - 1)), (1 << (INT_BITS[root] - 1)) - 1
    if root is TypeRoot.DECIMAL:
        highest = 10 ** (data_type.precision or 0) - 1
        return -highest, highest
    if root is TypeRoot.TIME:
        return 0, 86_400_000 - 1
    # Literals of dates and timestamps come from years 1 to 9999; only nanoseconds can overflow.
    return -(1 << 63), (1 << 63) - 1


def _ticks(field: Field, data_type: AtomicType, raw: object) -> Fraction | float:
    """The literal in units of the column; a float for infinities and NaN."""
    root = data_type.root
    if root is TypeRoot.DATE:
        return Fraction(_instant(field, raw, zoned=False), _DAY_NS)
    if root in TIMESTAMP_ROOTS:
        zoned = root is TypeRoot.TIMESTAMP_LTZ
        return Fraction(_instant(field, raw, zoned=zoned), _UNIT_NS[timestamp_unit(data_type)])
    if root is TypeRoot.TIME:
        return Fraction(_time_ns(field, raw), 10**6)
    number = _number(field, raw)
    if isinstance(number, Decimal) and number.is_finite() and number:
        exponent = number.adjusted()
        if exponent > _MAX_EXPONENT:
            number = math.inf if number > 0 else -math.inf
        elif exponent < -_MAX_EXPONENT:
            number = Decimal(1 if number > 0 else -1).scaleb(-_MAX_EXPONENT)
    if isinstance(number, Decimal) and not number.is_finite():
        number = float(number)
    if isinstance(number, float) and not math.isfinite(number):
        return number
    return Fraction(number) * int(10 ** (data_type.scale or 0))


def _from_ticks(data_type: AtomicType, ticks: int) -> Any:
    root = data_type.root
    if root is TypeRoot.DECIMAL:
        digits = tuple(int(digit) for digit in str(abs(ticks)))
        return Decimal((int(ticks < 0), digits, -(data_type.scale or 0)))
    if root is TypeRoot.DATE:
        return days_to_date(ticks)
    if root is TypeRoot.TIME:
        return millis_to_time(ticks)
    if root in TIMESTAMP_ROOTS:
        unit = timestamp_unit(data_type)
        if unit == "ns":
            return np.datetime64(ticks, "ns")
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=ticks * (_UNIT_NS[unit] // 1000))
        return moment.replace(tzinfo=dt.UTC) if root is TypeRoot.TIMESTAMP_LTZ else moment
    return ticks


def _instant(field: Field, raw: object, *, zoned: bool) -> int:
    """Nanoseconds since the epoch; refuses a literal whose time zone is missing, or one too many."""
    instant: Instant | None = None
    match raw:
        case Instant():
            instant = raw
        case str():
            instant = parse_instant(raw)
        case np.datetime64() if not np.isnat(raw):
            instant = Instant(nanoseconds(raw), None)
        case dt.datetime():
            instant = Instant(nanoseconds(raw), raw.tzinfo is not None)
        case dt.date():
            # A day has no zone of its own.
            instant = Instant(date_to_days(raw) * _DAY_NS, None if not zoned else False)
    if instant is None:
        raise _refusal(field, raw, "write it as '2024-01-31' or '2024-01-31 12:34:56.123'")
    if zoned and instant.zoned is False:
        raise _refusal(field, raw, "give it a time zone, such as '2024-01-31 12:34:56Z' or '… +02:00'")
    if not zoned and instant.zoned:
        raise _refusal(field, raw, "the column has no time zone; leave it out of the literal")
    return instant.ns


def _time_ns(field: Field, raw: object) -> int:
    if isinstance(raw, dt.time) and raw.tzinfo is None:
        return (((raw.hour * 60 + raw.minute) * 60 + raw.second) * 10**6 + raw.microsecond) * 1000
    match = _TIME.fullmatch(raw) if isinstance(raw, str) else None
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        raise _refusal(field, raw, "write it as '12:34:56.123'")
    seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3] or 0)
    return seconds * 10**9 + int((match[4] or "0").ljust(9, "0"))


def rebind(predicate: Predicate, field_of: Any) -> Predicate:
    """A tree made by hand, bound to the columns that ``field_of(name)`` gives."""
    match predicate:
        case And(children):
            return And(tuple(rebind(child, field_of) for child in children))
        case Or(children):
            return Or(tuple(rebind(child, field_of) for child in children))
        case Not(child):
            return Not(rebind(child, field_of))
        case Comparison(op, name, literal):
            return bind_comparison(op, field_of(name), literal)
        case IsIn(name, values):
            return bind_in(field_of(name), values)
        case IsNull(name):
            return IsNull(field_of(name).name)
        case StartsWith(name, prefix):
            return bind_prefix(field_of(name), prefix)
        case Like(name, pattern):
            return bind_like(field_of(name), pattern)
        case Computed(expression):
            return Computed(renamed_columns(expression, {name: field_of(name).name for name in columns(predicate)}))
        case _:
            return predicate
