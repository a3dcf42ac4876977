"""How do rows of one key combine?

A merge function is named by the table's option ``merge-engine``. Here are the two that keep one of the rows as it is:

    deduplicate    the last row wins, whatever its kind
    first-row      the first row wins

``ignore-delete`` takes retractions (``-U``, ``-D``) out before anything is combined. ``sequence.field`` puts the values of
columns before the order of arrival: nulls are the smallest, also when the order is descending. Engines that compute new
rows (partial-update, aggregation) are refused by name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tablestore.errors import InvalidInputError, UnsupportedError

Keep = Literal["last", "first"]

_KEEP: Mapping[str, Keep] = {"deduplicate": "last", "first-row": "first"}
_REFUSED = ("partial-update", "aggregation")
_IGNORE_DELETE_KEYS = ("ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceField:
    """A column of ``sequence.field``. With ``descending`` the smaller value wins; nulls lose either way."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeFunction:
    """Which row of a key is kept, and what counts before the order of arrival."""

    engine: str = "deduplicate"
    keep: Keep = "last"
    ignore_delete: bool = False
    sequence_fields: tuple[SequenceField, ...] = ()

    def required_columns(self, columns: Iterable[str]) -> frozenset[str]:
        """What must be read besides the key to give ``columns``, these included."""
        return frozenset(columns) | {field.name for field in self.sequence_fields}


def merge_function(options: Mapping[str, str]) -> MergeFunction:
    """The merge function that a table's options ask for; UnsupportedError for engines that compute rows."""
    engine = options.get("merge-engine", "deduplicate").strip().lower()
    if engine in _REFUSED:
        raise UnsupportedError(
            f"merge-engine {engine!r} is not supported; tables with {' or '.join(_KEEP)} are", kind="merge-engine"
        )
    if engine not in _KEEP:
        raise InvalidInputError(f"expected merge-engine to be one of {', '.join(_KEEP)}, found {engine!r}")
    ignore_delete = any(options.get(key, "false").strip().lower() == "true" for key in _IGNORE_DELETE_KEYS)
    names = [name for part in options.get("sequence.field", "").split(",") if (name := part.strip())]
    order = options.get("sequence.field.sort-order", "ascending").strip().lower()
    if order not in ("ascending", "descending"):
        raise InvalidInputError(f"expected sequence.field.sort-order to be ascending or descending, found {order!r}")
    if names and engine == "first-row":
        raise InvalidInputError("merge-engine first-row does not take sequence.field: the first arrival is kept")
    return MergeFunction(
        engine=engine,
        keep=_KEEP[engine],
        ignore_delete=ignore_delete,
        sequence_fields=tuple(SequenceField(name=name, descending=order == "descending") for name in names),
    )
