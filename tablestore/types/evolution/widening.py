"""Type widening: decides whether a column of one type may become, or be read as, one of another.

Reading files of the old type is allowed where all engines give the same values (:func:`can_read_as`): a value must not differ
silently from what another engine shows. An alteration is allowed where, besides, every value is kept (:func:`keeps_values`).

    whole number  -> wider whole number, DECIMAL that holds all its digits, FLOAT, DOUBLE (nearest), STRING
    FLOAT         -> DOUBLE
    DECIMAL(p, s) -> DECIMAL with at least as many digits on either side, text long enough
    CHAR, VARCHAR -> VARCHAR at least as long          BINARY, VARBINARY -> VARBINARY at least as long
    DATE          -> TIMESTAMP                         TIMESTAMP(p) -> TIMESTAMP(q >= 3), cut downwards if q < p (LTZ too)
"""

from tablestore.types.datatypes import FLOAT_ROOTS, MAX_LENGTH, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot, with_nullable

# Decimal digits that any value of the type fits in.
WHOLE_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 19}
# Types with a length, of which the longer one has the same values.
_LENGTHS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY})
# Digits of whole numbers that a float of the type holds exactly.
_EXACT_DIGITS = {TypeRoot.FLOAT: 7, TypeRoot.DOUBLE: 15}


def is_same(old: DataType, new: DataType) -> bool:
    """True if two types differ at most in whether they take nulls."""
    return old == new or with_nullable(old, True) == with_nullable(new, True)


def can_read_as(old: AtomicType, new: AtomicType) -> bool:
    """True if every engine reads values stored as ``old`` as the same values of ``new``."""
    if is_same(old, new):
        return True
    match old.root:
        case TypeRoot.TINYINT | TypeRoot.SMALLINT | TypeRoot.INT | TypeRoot.BIGINT:
            digits = WHOLE_DIGITS[old.root]
            return (
                (new.root in WHOLE_DIGITS and WHOLE_DIGITS[new.root] >= digits)
                or (new.root is TypeRoot.DECIMAL and _left(new) >= digits)
                or new.root in FLOAT_ROOTS
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
            return old.root in TIMESTAMP_ROOTS and new.root is old.root and (digits >= 3 or digits >= (old.precision or 0))


def keeps_values(old: AtomicType, new: AtomicType) -> bool:
    """True if every value of ``old`` reads as one of ``new`` and could be turned back."""
    if not can_read_as(old, new):
        return False
    if old.root in WHOLE_DIGITS and new.root in FLOAT_ROOTS:
        return WHOLE_DIGITS[old.root] <= _EXACT_DIGITS[new.root]
    if new.root in TIMESTAMP_ROOTS:
        # Nanoseconds of 64 bits end in the year 2262: with them the days beyond could not be read.
        coarse = old.root is TypeRoot.DATE or (old.precision or 0) <= 6
        return (new.precision or 0) >= (old.precision or 0) and not (coarse and (new.precision or 0) > 6)
    return True


def keeps_conditions(old: AtomicType, new: AtomicType) -> bool:
    """True if every condition that holds for a value of ``old`` holds for it as one of ``new``: not where floats or decimals are
    rounded otherwise, or become texts."""
    if old.root in WHOLE_DIGITS:
        return new.root in WHOLE_DIGITS
    return old.root is new.root is not TypeRoot.DECIMAL or (old.root in _LENGTHS and new.root in _LENGTHS)


def _left(data_type: AtomicType) -> int:
    return (data_type.precision or 0) - (data_type.scale or 0)


def _holds_text(data_type: AtomicType, length: int) -> bool:
    return data_type.root is TypeRoot.VARCHAR and (data_type.length or MAX_LENGTH) >= length
