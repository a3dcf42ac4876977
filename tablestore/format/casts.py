"""How do values of a column's old type read as its new one?

Only changes whose outcome every reader of the format agrees on are made; the others are refused by name, because a value that
silently differs from what another engine shows is worse than none:

    whole number  -> wider whole number, DECIMAL that holds all its digits, FLOAT, DOUBLE (nearest), STRING
    FLOAT         -> DOUBLE
    DECIMAL(p, s) -> DECIMAL with at least as many digits on either side, text long enough
    CHAR, VARCHAR -> VARCHAR at least as long          BINARY, VARBINARY -> VARBINARY at least as long
    DATE          -> TIMESTAMP                         TIMESTAMP(p) -> TIMESTAMP(q >= 3), cut downwards if q < p (LTZ too)
"""

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import UnsupportedError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, DataType, TypeRoot, with_nullable
from tablestore.types.typestring import type_to_sql

# Decimal digits that any value of the type fits in.
_WHOLE_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 19}
_FLOATS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_TIMESTAMPS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_UNITS = ("s", "ms", "us", "ns")


def convert(array: pa.Array, old: DataType, new: DataType) -> pa.Array:
    """Values stored as ``old`` in the Arrow type of ``new``. Raises UnsupportedError for a change that engines disagree on."""
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType) or not _agreed(old, new):
        raise UnsupportedError(
            f"a column was changed from {type_to_sql(old)} to {type_to_sql(new)}, and this file holds values of the old type: "
            "engines disagree on what they become; compact the table with the engine that changed it, or change the type back",
            kind="type-change",
        )
    target = to_arrow_type(new)
    if old.root in _TIMESTAMPS or pa.types.is_timestamp(array.type):
        return _timestamps(array, target, new)
    if old.root in _WHOLE_DIGITS and new.root in _FLOATS:
        return array.cast(target, safe=False)
    return array.cast(target)


def is_same(old: DataType, new: DataType) -> bool:
    """Whether two types differ at most in whether they take nulls."""
    return with_nullable(old, True) == with_nullable(new, True)


def _agreed(old: AtomicType, new: AtomicType) -> bool:
    if is_same(old, new):
        return True
    match old.root:
        case TypeRoot.TINYINT | TypeRoot.SMALLINT | TypeRoot.INT | TypeRoot.BIGINT:
            digits = _WHOLE_DIGITS[old.root]
            return (
                (new.root in _WHOLE_DIGITS and _WHOLE_DIGITS[new.root] >= digits)
                or (new.root is TypeRoot.DECIMAL and _left(new) >= digits)
                or new.root in _FLOATS
                or _holds_text(new, digits + 1)
            )
        case TypeRoot.FLOAT:
            return new.root is TypeRoot.DOUBLE
        case TypeRoot.DECIMAL:
            wider = new.root is TypeRoot.DECIMAL and (new.scale or 0) >= (old.scale or 0) and _left(new) >= _left(old)
            return wider or _holds_text(new, (old.precision or 0) + 3)
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return new.root is TypeRoot.VARCHAR and (new.length or 0) >= (old.length or 0)
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return new.root is TypeRoot.VARBINARY and (new.length or 0) >= (old.length or 0)
        case TypeRoot.DATE:
            return new.root is TypeRoot.TIMESTAMP
        case _:
            # Below milliseconds Java rounds instants before 1970 upwards.
            digits = new.precision or 0
            return old.root in _TIMESTAMPS and new.root is old.root and (digits >= 3 or digits >= (old.precision or 0))


def _left(data_type: AtomicType) -> int:
    return (data_type.precision or 0) - (data_type.scale or 0)


def _holds_text(data_type: AtomicType, length: int) -> bool:
    return data_type.root is TypeRoot.VARCHAR and (data_type.length or MAX_LENGTH) >= length


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
    return array.cast(target)


def _floored(array: pa.Array, precision: int) -> pa.Array:
    step = 10 ** (_UNITS.index(array.type.unit) * 3 - precision)
    ticks = array.cast(pa.int64())
    rest = pc.subtract(ticks, pc.multiply(pc.divide(ticks, step), step))
    # Arrow divides towards zero: what is left of a negative number is negative.
    rest = pc.if_else(pc.less(rest, 0), pc.add(rest, step), rest)
    return pc.subtract(ticks, rest).cast(array.type)

