"""Of which kind is a type, as far as DuckDB computes with it in another way than Spark?

Dates, timestamps, numbers, texts, and what has parts. Types are Spark's; None is any other type.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tablestore.types.datatypes import (
    FLOAT_ROOTS,
    INTEGER_ROOTS,
    MAX_PRECISION,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 20}
_NUMBERS = {"integer", "decimal", "float", "fraction"}


@dataclass(frozen=True, slots=True)
class Kind:
    """``name``: ``date``, ``timestamp`` (with a time zone), ``interval``, ``text``, ``array``, ``map``, ``row``; ``float``, with
    binary digits; ``decimal`` or ``integer``, with digits and scale.

    ``written``: an integer that stands in the text. It has its own digits beside a decimal, and those of its type elsewhere.
    """

    name: str
    precision: int = 0
    scale: int = 0
    written: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether it is a decimal, or an integer, which counts as one beside a decimal."""
        return self.name in ("decimal", "integer")

    @property
    def is_number(self) -> bool:
        return self.name in _NUMBERS


DATE, TIMESTAMP, INTERVAL, TEXT = Kind("date"), Kind("timestamp"), Kind("interval"), Kind("text")
ARRAY, MAP, ROW = Kind("array"), Kind("map"), Kind("row")
SINGLE, DOUBLE = Kind("float", 24), Kind("float", 53)
INT, BIGINT = Kind("integer", 10), Kind("integer", 20)
FRACTION = Kind("fraction")
"""A decimal or a float, of unknown digits."""


def kind_of_type(data_type: DataType) -> Kind | None:
    """The kind of a column's type."""
    if isinstance(data_type, (MapType, MultisetType)):
        return MAP
    if isinstance(data_type, (ArrayType, RowType)):
        return ARRAY if isinstance(data_type, ArrayType) else ROW
    if not isinstance(data_type, AtomicType):
        return None
    if data_type.root in INTEGER_ROOTS:
        return Kind("integer", _DIGITS[data_type.root])
    if data_type.root is TypeRoot.DECIMAL:
        return Kind("decimal", data_type.precision or 0, data_type.scale or 0)
    if data_type.root in TEXT_ROOTS:
        return TEXT
    if data_type.root in FLOAT_ROOTS:
        return SINGLE if data_type.root is TypeRoot.FLOAT else DOUBLE
    return {TypeRoot.DATE: DATE, TypeRoot.TIMESTAMP_LTZ: TIMESTAMP}.get(data_type.root)


def agreed(kinds: Iterable[Kind | None]) -> Kind | None:
    """The kind of what has several, by the row or by the table."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    names = {kind.name if kind else "" for kind in found}
    if not names <= _NUMBERS:
        return None
    if names == {"float"}:
        return DOUBLE
    return None if names <= {"integer"} else FRACTION


def widest(kinds: Iterable[Kind | None]) -> Kind | None:
    """The kind of what is one of several values: the type that holds all of them, by Spark's rules. None of them: NULL."""
    found = set(kinds)
    if len(found) < 2:
        return found.pop() if found else None
    known = [kind for kind in found if kind is not None and kind.is_number]
    if len(known) < len(found):
        return None
    names = {kind.name for kind in known}
    if "float" in names:
        return DOUBLE if found != {SINGLE} else SINGLE
    if "fraction" in names:
        return FRACTION
    types = [typed(kind) for kind in known]
    if names == {"integer"}:
        return max(types, key=lambda kind: kind.precision)
    scale = max(kind.scale for kind in types)
    return Kind("decimal", min(max(kind.precision - kind.scale for kind in types) + scale, MAX_PRECISION), scale)


def typed(kind: Kind) -> Kind:
    """Of a written integer, the kind of its type."""
    return (INT if kind.precision < INT.precision else BIGINT) if kind.written else kind
