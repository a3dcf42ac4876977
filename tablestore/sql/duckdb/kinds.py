"""Of which kind is a type, as far as DuckDB computes with it in another way than Spark?

Dates, decimals, floats, texts and maps, and the integers beside them. Types are Spark's; None is any other type.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tablestore.types.datatypes import FLOAT_ROOTS, INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataType, MapType, MultisetType, TypeRoot

_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 20}
_NUMBERS = {"integer", "decimal", "float", "fraction"}


@dataclass(frozen=True, slots=True)
class Kind:
    """``name``: ``date``, ``float``, ``text``, ``map``, ``decimal`` or ``integer``, the last two with digits and scale."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether it is a decimal, or an integer, which counts as one beside a decimal."""
        return self.name in ("decimal", "integer")


DATE, FLOAT, TEXT, MAP = Kind("date"), Kind("float"), Kind("text"), Kind("map")
FRACTION = Kind("fraction")
"""A decimal or a float, of unknown digits."""


def kind_of_type(data_type: DataType) -> Kind | None:
    """The kind of a column's type."""
    if isinstance(data_type, (MapType, MultisetType)):
        return MAP
    if not isinstance(data_type, AtomicType):
        return None
    if data_type.root in INTEGER_ROOTS:
        return Kind("integer", _DIGITS[data_type.root])
    if data_type.root is TypeRoot.DECIMAL:
        return Kind("decimal", data_type.precision or 0, data_type.scale or 0)
    if data_type.root in TEXT_ROOTS:
        return TEXT
    return DATE if data_type.root is TypeRoot.DATE else FLOAT if data_type.root in FLOAT_ROOTS else None


def agreed(kinds: Iterable[Kind | None]) -> Kind | None:
    """The kind of what has several, by the row or by the table."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    names = {kind.name if kind else "" for kind in found}
    if not names <= _NUMBERS:
        return None
    return None if names <= {"integer"} else FRACTION
