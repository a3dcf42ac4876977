"""Finds whole numbers that a FLOAT or DOUBLE would change: that come back from it with other digits.

    9007199254740993       9007199254740992.0        changed
    123456789012345680000  1.2345678901234568e+20    the same: the shortest digits of a DOUBLE, as many writers print it

Only digits alone are a whole number. With a point or an exponent it is a number of floating point, and rounded as such.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Up to here all whole numbers are in a type of so many bits.
_ALL_HELD = {32: 2**24, 64: 2**53}
# Values in JSON that may be beyond that.
_LONG = {bits: re.compile(rb"[:\[,\s]-?\d{%d,}[\s,\]}]" % len(str(most))) for bits, most in _ALL_HELD.items()}
_DIGITS = re.compile(r"[+-]?\d+")


def refuse_changed(values: Iterable[Any], kind: pa.DataType) -> None:
    """Raises ValueError for a value, as a reader of JSON gives it, with a whole number that a float of ``kind`` would change."""
    if not _has_float(kind):
        return
    for value in values:
        _refuse(value, kind)


def refuse_changed_texts(texts: pa.Array, kind: pa.DataType) -> None:
    """Raises ValueError for a text of a whole number that ``kind``, a float, would change."""
    long = texts.filter(pc.match_substring_regex(texts, rf"^\s*[+-]?\d{{{len(str(_ALL_HELD[kind.bit_width]))},}}\s*$"))
    for text in long.to_pylist():
        _refuse(text, kind)


def may_be_changed(read: pa.Array, kind: pa.DataType, data: bytes) -> bool:
    """True if among the values of ``kind`` that a reader of floats ``read`` out of ``data`` may be a changed whole number."""
    if pa.types.is_list(kind) and pa.types.is_list(read.type):
        return may_be_changed(read.flatten(), kind.value_type, data)
    if pa.types.is_struct(kind) and pa.types.is_struct(read.type):
        return any(may_be_changed(part, kind.field(place).type, data) for place, part in enumerate(read.flatten()))
    if not (pa.types.is_floating(kind) and pa.types.is_floating(read.type)):
        return False
    is_large = pc.any(pc.greater_equal(pc.abs(read), float(_ALL_HELD[kind.bit_width]))).as_py()
    return bool(is_large) and _LONG[kind.bit_width].search(data) is not None


def is_beyond_double(value: Any) -> bool:
    """True of a whole number that a DOUBLE would change."""
    return isinstance(value, int) and abs(value) > _ALL_HELD[64] and _changed(value, pa.float64()) is not None


def beyond_double(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Tells of each number of 64 bits whether a DOUBLE would change it; false where there is none."""
    numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    large = np.flatnonzero((numbers > _ALL_HELD[64]) | (numbers < -_ALL_HELD[64]))
    changed = np.zeros(len(numbers), dtype=np.bool_)
    # A loop, over large numbers only: there are few, or they are all of one column of identifiers.
    changed[large] = [is_beyond_double(number) for number in numbers[large].tolist()]
    return changed


def _has_float(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _has_float(kind.key_type) or _has_float(kind.item_type)
    if pa.types.is_nested(kind):
        return any(_has_float(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _refuse(value: Any, kind: pa.DataType) -> None:
    if pa.types.is_map(kind) and isinstance(value, dict):
        refuse_changed(value.keys(), kind.key_type)
        refuse_changed(value.values(), kind.item_type)
    elif pa.types.is_struct(kind) and isinstance(value, dict):
        for field in kind:
            refuse_changed((value.get(field.name),), field.type)
    elif pa.types.is_list(kind) and isinstance(value, list):
        refuse_changed(value, kind.value_type)
    elif pa.types.is_floating(kind):
        if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            value = int(value) if len(value) < 400 else None
        if isinstance(value, int) and (changed := _changed(value, kind)) is not None:
            raise ValueError(f"{value!s:.100} would become {changed}, since a {kind} does not hold it")


def _changed(number: int, kind: pa.DataType) -> str | None:
    """The number that a float makes of a whole one; None where that is the same number, or too large for one."""
    if abs(number) <= _ALL_HELD[kind.bit_width]:
        return None
    try:
        as_float = float(number)
    except OverflowError:
        return None
    if kind.bit_width < 64:
        with np.errstate(over="ignore"):
            as_float = float(np.float32(as_float))
    if not np.isfinite(as_float) or int(as_float) == number or Decimal(repr(as_float)) == number:
        return None
    return repr(as_float)
