"""Casts stored values of a column's old type to its new one after the column was widened.

Only changes that all readers of the format make alike are made (:mod:`tablestore.types.evolution.widening` lists them). Others
are refused: a value must not differ silently from what another engine shows.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import UnsupportedError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import FLOAT_ROOTS, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot
from tablestore.types.evolution.widening import WHOLE_DIGITS, can_read_as
from tablestore.types.typestring import type_to_sql

_UNITS = ("s", "ms", "us", "ns")


def convert(array: pa.Array, old: DataType, new: DataType) -> pa.Array:
    """Values stored as ``old`` in the Arrow type of ``new``. Raises UnsupportedError for a change that engines disagree on."""
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType) or not can_read_as(old, new):
        if isinstance(old, AtomicType) and isinstance(new, AtomicType) and can_read_as(new, old):
            raise UnsupportedError(
                f"a column is {type_to_sql(new)} in the schema that is read with, and this file holds {type_to_sql(old)}: it was "
                "widened after the table was opened; read it again, or call table.refresh(). If that does not help, another engine "
                "made the column narrower: compact the table with that one",
                kind="type-change",
            )
        raise UnsupportedError(
            f"a column was changed from {type_to_sql(old)} to {type_to_sql(new)}, and this file holds values of the old type: "
            "engines disagree on what they become; compact the table with the engine that changed it, or change the type back",
            kind="type-change",
        )
    target = to_arrow_type(new)
    if new.root in TIMESTAMP_ROOTS:
        return _timestamps(array, target, new)
    if old.root in WHOLE_DIGITS and new.root in FLOAT_ROOTS:
        return array.cast(target, safe=False)
    if old.root is TypeRoot.DECIMAL and new.root is TypeRoot.VARCHAR:
        return _plain_text(array)
    return array.cast(target)


def _plain_text(decimals: pa.Array) -> pa.Array:
    """Decimals as text with all digits, as Java writes them; Arrow takes an exponent where a scale above 6 meets a small value."""
    text = decimals.cast(pa.string())
    short = pc.match_substring(text, "E")
    if not pc.any(short).as_py():
        return text
    # Row by row: these values are few, and Arrow has no other spelling.
    plain = [f"{value:f}" for value in decimals.filter(short).to_pylist()]
    return pc.replace_with_mask(text, pc.fill_null(short, False), pa.array(plain, pa.string()))


def _timestamps(array: pa.Array, target: pa.DataType, new: AtomicType) -> pa.Array:
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    if (array.type.tz is None) != (target.tz is None):
        # INT96 and files of others carry no time zone: the instant is the same.
        array = array.cast(pa.timestamp(array.type.unit, target.tz))
    precision = new.precision if new.precision is not None else 6
    if _UNITS.index(array.type.unit) * 3 > precision:
        # Downwards, before 1970 too. A file may also hold more digits than its own type declares.
        array = _floored(array, precision)
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        # Nothing is wrong with the file: 64 bits of nanoseconds hold the years 1677 to 2262, and Java's timestamps more.
        raise UnsupportedError(
            f"a column was changed to {type_to_sql(new)}, and this file holds times that Arrow cannot hold as {target} ({error}); "
            "leave the column out, or change its precision to 6",
            kind="type-change",
        ) from error


def _floored(array: pa.Array, precision: int) -> pa.Array:
    step = 10 ** (_UNITS.index(array.type.unit) * 3 - precision)
    ticks = array.cast(pa.int64())
    remainder = pc.subtract(ticks, pc.multiply(pc.divide(ticks, step), step))
    # Arrow divides towards zero: what is left of a negative number is negative.
    remainder = pc.if_else(pc.less(remainder, 0), pc.add(remainder, step), remainder)
    return pc.subtract(ticks, remainder).cast(array.type)
