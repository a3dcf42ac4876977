"""Reads and writes columns of KLL sketches that hold all of their values: these in one array, sketch by sketch.

empty, or one value    02, 01 or 02, 0F, flags, the size (2 bytes), 08 00, the value
others                 05, 01, 0F, 00, the size, 08 00, the count (8), the least size (2), 01 00, the free places (4),
                       the least and the greatest value, the values
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions.sketchcolumns import by_row, octets_of, starts_of, words_at, written

_I64: TypeAlias = "npt.NDArray[np.int64]"
_Values: TypeAlias = "npt.NDArray[Any]"
FAMILY, LEAST_LEVEL = 15, 8
IS_EMPTY, IS_SINGLE = 1, 4
_SHORT_HEAD, _HEAD = 8, 24


@dataclass(frozen=True, slots=True)
class QuantileColumn:
    """Sketches: their sizes, the counts of their values, and these, one sketch behind the other."""

    sizes: _I64
    counts: _I64
    values: _Values

    @property
    def rows(self) -> _I64:
        """The sketch of each value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def in_order(self) -> _Values:
        """The values of each sketch in Java's order, -0.0 before 0.0."""
        return self.values[by_row(self.rows, np.argsort(_orders(self.values), kind="stable"))]


def _orders(values: _Values) -> "npt.NDArray[np.signedinteger[Any]]":
    """Whole numbers in the order of values."""
    if values.dtype.kind == "i":
        return values
    bits: npt.NDArray[np.signedinteger[Any]] = values.view(f"i{values.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def ends_of(column: QuantileColumn) -> tuple[_Values, _Values]:
    """The least and the greatest value of each sketch; all have some."""
    orders, starts = _orders(column.values), starts_of(column.counts)
    least, greatest = np.minimum.reduceat(orders, starts), np.maximum.reduceat(orders, starts)
    return _of_orders(least, column.values.dtype), _of_orders(greatest, column.values.dtype)


def _of_orders(orders: "npt.NDArray[np.signedinteger[Any]]", kind: np.dtype[Any]) -> _Values:
    if kind.kind == "i":
        return orders
    return np.where(orders < 0, orders ^ np.iinfo(orders.dtype).max, orders).view(kind)


def read(data: pa.Array, kind: str) -> QuantileColumn | None:
    """The sketches of bytes, none of which are NULL; None if there are some that are to be read one at a time."""
    octets = octets_of(data)
    if octets is None:
        return None
    size, lengths = np.dtype(kind).itemsize, octets.lengths
    words, family, flags, least = (octets.whole("u1", place) for place in (0, 2, 3, 6))
    sizes = octets.whole("<u2", 4)
    is_empty = flags & IS_EMPTY > 0
    is_single = (flags & IS_SINGLE > 0) & ~is_empty
    is_long = ~is_empty & ~is_single
    counts = np.where(is_long, octets.whole("<i8", 8), is_single.astype(np.int64))
    is_sound = (lengths >= _SHORT_HEAD) & (family == FAMILY) & (least == LEAST_LEVEL)
    is_sound &= ~is_single | (lengths >= _SHORT_HEAD + size)
    is_sound &= ~is_long | ((words == 5) & (octets.whole("u1", 18) <= 1) & (counts >= 0) & (counts <= sizes))
    is_sound &= ~is_long | (lengths == _HEAD + (counts + 2) * size)
    if not is_sound.all():
        return None
    places = octets.starts + np.where(is_long, _HEAD + 2 * size, _SHORT_HEAD)
    at = np.repeat(places, counts) + (np.arange(counts.sum()) - np.repeat(starts_of(counts), counts)) * size
    return QuantileColumn(sizes, counts, octets.numbers(kind, at))


def write(column: QuantileColumn) -> pa.Array | None:
    """The bytes of sketches; None if one has more values than its size."""
    counts, sizes = column.counts, column.sizes
    if (counts > sizes).any():
        return None
    size = column.values.dtype.itemsize
    is_long = counts > 1
    heads = np.zeros((len(counts), _HEAD), np.uint8)
    heads[:, 0], heads[:, 1] = np.where(is_long, 5, 2), np.where(is_long, 1, 1 + counts)
    heads[:, 2], heads[:, 3] = FAMILY, np.where(is_long, 0, np.where(counts == 1, IS_SINGLE, IS_EMPTY))
    words_at(heads, 4, sizes.astype("<u2"))
    heads[:, 6] = LEAST_LEVEL
    words_at(heads, 8, counts.astype("<i8"))
    words_at(heads, 16, sizes.astype("<u2"))
    heads[:, 18] = 1
    words_at(heads, 20, (sizes - counts).astype("<u4"))
    many = counts + 2 * is_long
    items = np.empty(int(many.sum()), column.values.dtype)
    is_value = np.ones(len(items), np.bool_)
    starts = starts_of(many)[is_long]
    if len(starts):
        long_column = QuantileColumn(sizes[is_long], counts[is_long], column.values[np.repeat(is_long, counts)])
        items[starts], items[starts + 1] = ends_of(long_column)
        is_value[starts] = is_value[starts + 1] = False
    items[is_value] = column.values
    return written(heads, np.where(is_long, _HEAD, _SHORT_HEAD), items.view(np.uint8), many * size)


def reversed_groups(values: _Values, counts: _I64) -> _Values:
    """The values of each group from the last one to the first."""
    starts = starts_of(counts)
    return values[np.repeat(2 * starts + counts - 1, counts) - np.arange(len(values))]
