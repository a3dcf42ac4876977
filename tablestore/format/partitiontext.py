"""Prints partition values as the text of partition directories, spelled as the Java writers spell it.

Two spellings exist (``partition.legacy-name``): the internal value's own text, and the text of an SQL cast.

    type            legacy                        cast
    DATE            19723                         2024-01-01
    TIME(3)         1000                          00:00:01.000
    TIMESTAMP(3)    2024-01-01T00:00              2024-01-01 00:00:00.000
    others          the same text in both
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.paths import escape_path_name
from tablestore.types.datatypes import INTEGER_ROOTS, TEXT_ROOTS, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot
from tablestore.types.timevalues import date_to_days, time_to_millis, timestamp_to_parts

# The characters that java.lang.Character.isWhitespace accepts: str.isspace() would add the no-break spaces and U+0085.
_JAVA_BLANK = frozenset(
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)


def partition_dir(
    partition_keys: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[object],
    default_name: str = "__DEFAULT_PARTITION__",
    legacy: bool = True,
) -> str:
    """The directory of a partition: ``""`` without keys, else ``a=b/c=d`` in the order of the keys.

    ``legacy`` (the default of the format) writes the internal value as text, so a DATE is its day number; otherwise
    the text is that of an SQL cast. Null, empty and blank values share ``default_name``.
    """
    if not len(partition_keys) == len(types) == len(values):
        raise InvalidInputError(
            f"expected one type and value per partition key {list(partition_keys)}, found {len(types)} types and "
            f"{len(values)} values"
        )
    if not partition_keys:
        return ""
    texts = partition_texts(types, values, default_name, legacy)
    return "/".join(f"{escape_path_name(key)}={escape_path_name(text)}" for key, text in zip(partition_keys, texts, strict=True))


def partition_texts(
    types: Sequence[DataType], values: Sequence[object], default_name: str = "__DEFAULT_PARTITION__", legacy: bool = True
) -> tuple[str, ...]:
    """The values of a partition as Paimon's partition specs have them, unescaped; see :func:`partition_dir`."""
    texts = []
    for data_type, value in zip(types, values, strict=True):
        text = "" if value is None else partition_value_text(value, data_type, legacy=legacy)
        texts.append(default_name if all(char in _JAVA_BLANK for char in text) else text)
    return tuple(texts)


def partition_label(
    partition_keys: Sequence[str], types: Sequence[DataType], values: Sequence[object], default_name: str = "__DEFAULT_PARTITION__"
) -> str:
    """A partition as people are shown it: as its directory is spelt by an SQL cast, and no two partitions alike.

    Only NULL is ``default_name``: a text of these letters has the first of them escaped, and a blank text is shown as it is.
    """
    segments = []
    for key, data_type, value in zip(partition_keys, types, values, strict=True):
        text = default_name if value is None else escape_path_name(partition_value_text(value, data_type, legacy=False))
        if value is not None and text == default_name:
            text = f"%{ord(text[0]):02X}{text[1:]}"
        segments.append(f"{escape_path_name(key)}={text}")
    return "/".join(segments)


def partition_value_text(value: object, data_type: DataType, *, legacy: bool) -> str:
    """The text of a non-null ``value`` of ``data_type``; raises UnsupportedError for types that have none."""
    if not isinstance(data_type, AtomicType):
        raise UnsupportedError(f"a partition column cannot have the nested type {data_type}")
    try:
        return _text(value, data_type, legacy)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"expected a partition value of type {data_type.root}, found {value!r} ({error})") from error


def _text(value: object, data_type: AtomicType, legacy: bool) -> str:
    root = data_type.root
    if root in TEXT_ROOTS:
        if not isinstance(value, str):
            raise TypeError("not a string")
        return value
    if root is TypeRoot.BOOLEAN:
        return "true" if value else "false"
    if root in INTEGER_ROOTS:
        return str(int(value))  # type: ignore[call-overload]
    if root is TypeRoot.DECIMAL:
        return format(Decimal(str(value)), "f")
    if root is TypeRoot.DOUBLE:
        return _java_float(float(value), repr)  # type: ignore[arg-type]
    if root is TypeRoot.FLOAT:
        return _java_float(float(np.float32(value)), lambda number: str(np.float32(number)))  # type: ignore[arg-type]
    if root is TypeRoot.DATE:
        return str(date_to_days(value)) if legacy else _date_text(date_to_days(value))
    if root is TypeRoot.TIME:
        millis = time_to_millis(value)
        return str(millis) if legacy else _time_text(millis, data_type.precision or 0)
    if root in TIMESTAMP_ROOTS:
        millis, nanos = timestamp_to_parts(value)
        return _timestamp_text(millis, nanos, 6 if data_type.precision is None else data_type.precision, legacy)
    if legacy:
        raise UnsupportedError(
            f"a partition column of type {root} has no stable directory name; set 'partition.legacy-name' to 'false' "
            "or use another type"
        )
    if not isinstance(value, bytes):
        raise TypeError("not bytes")
    return value.decode("utf-8", "replace")


def _date_text(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _fraction(nanos_of_second: int, precision: int) -> str:
    """The digits of a fraction of a second: at least ``precision``, more where the value has them."""
    digits = f"{nanos_of_second:09d}"
    while len(digits) > precision and digits.endswith("0"):
        digits = digits[:-1]
    return f".{digits}" if digits else ""


def _time_text(millis: int, precision: int) -> str:
    seconds, millis_left = divmod(millis, 1000)
    return f"{_clock(seconds)}{_fraction(millis_left * 1_000_000, precision)}"


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _timestamp_text(millis: int, nanos: int, precision: int, legacy: bool) -> str:
    days, millis_of_day = divmod(millis, 86_400_000)
    seconds, millis_left = divmod(millis_of_day, 1000)
    nano = millis_left * 1_000_000 + nanos
    if not legacy:
        return f"{_date_text(days)} {_clock(seconds)}{_fraction(nano, precision)}"
    # java.time.LocalDateTime.toString(): seconds only if needed, the fraction in groups of three digits.
    text = f"{_date_text(days)}T{_clock(seconds)}"
    if nano:
        digits = f"{nano:09d}"
        return f"{text}.{digits[:3] if nano % 1_000_000 == 0 else digits[:6] if nano % 1_000 == 0 else digits}"
    return text if seconds % 60 else text[:-3]


def _java_float(value: float, shortest: Callable[[float], str]) -> str:
    """The text that Java's Double.toString and Float.toString print: plain from 1e-3 to 1e7, else scientific."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    sign, digits, exponent = Decimal(shortest(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent  # the value is 0.<text> * 10**point
    minus = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        text = text.ljust(point + 1, "0")
        return f"{minus}{text[:point]}.{text[point:]}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"
