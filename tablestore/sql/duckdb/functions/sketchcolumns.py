"""Reads the bytes of a column of sketches, and puts those of sketches together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_I64: TypeAlias = "npt.NDArray[np.int64]"
_U8: TypeAlias = "npt.NDArray[np.uint8]"
# Behind the last value, so that words can be read at each place.
_PADDING = 24
# So many values stay near the processor, with what is computed of them.
_BLOCK = 100_000


@dataclass(frozen=True, slots=True)
class Octets:
    """The bytes of values, none of which are NULL: each from its start to its stop."""

    text: bytes
    starts: _I64
    stops: _I64

    @property
    def lengths(self) -> _I64:
        return self.stops - self.starts

    def numbers(self, kind: "str | np.dtype[Any]", places: _I64) -> "npt.NDArray[Any]":
        """The numbers of a type of numpy that begin at some places of the text."""
        size = np.dtype(kind).itemsize
        view: npt.NDArray[Any] = np.ndarray((len(self.text) - size + 1,), np.dtype(kind), self.text, 0, (1,))
        return view[np.minimum(places, len(view) - 1)]

    def whole(self, kind: str, offset: int) -> _I64:
        """A whole number of each value, at an offset; some other number where a value ends before it."""
        numbers: _I64 = self.numbers(kind, self.starts + offset).astype(np.int64)
        return numbers


def octets_of(column: pa.Array) -> Octets | None:
    """The bytes of a column; None if it has NULLs, or no bytes."""
    data = column.cast(pa.large_binary())
    if not len(data) or data.null_count or data.buffers()[2] is None:
        return None
    ends: _I64 = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
    first = int(ends[0])
    text = data.buffers()[2].slice(first, int(ends[-1]) - first).to_pybytes() + bytes(_PADDING)
    return Octets(text, ends[:-1] - first, ends[1:] - first)


def written(heads: _U8, head_lengths: _I64, items: _U8, item_lengths: _I64) -> pa.Array:
    """Values of a head and items each. ``heads``: a row of bytes a value, of which so many count; ``items``: theirs, in a row."""
    lengths = np.stack((head_lengths, item_lengths), axis=1)
    octets = np.empty(int(lengths.sum()), np.uint8)
    is_head = np.repeat(np.tile([True, False], len(heads)), lengths.reshape(-1))
    octets[is_head] = heads[np.arange(heads.shape[1]) < head_lengths[:, None]]
    octets[~is_head] = items
    offsets = np.concatenate(([0], np.cumsum(lengths.sum(axis=1)))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(heads), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])


def words_at(matrix: _U8, place: int, numbers: "npt.NDArray[Any]") -> None:
    """Writes a number into each row of bytes, from a place on."""
    size = numbers.dtype.itemsize
    matrix[:, place : place + size] = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, size)


def nulls_aside(columns: tuple[pa.Array, ...]) -> "tuple[_I64, list[pa.Array]]":
    """The rows in which no value is NULL, and the columns of these."""
    is_there = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        is_there &= np.asarray(column.is_valid())
    rows = np.flatnonzero(is_there)
    return rows, [column if len(rows) == len(column) else column.take(pa.array(rows)) for column in columns]


def spread(values: pa.Array, rows: _I64, count: int) -> pa.Array:
    """Values of some rows among NULLs."""
    if len(rows) == count:
        return values
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


def flat(lists: pa.Array) -> "tuple[_I64, pa.Array]":
    """The values in lists that are not NULL, each with the number of its list."""
    values = lists.flatten()
    rows = np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists).fill_null(0)))
    if not values.null_count:
        return rows, values
    is_there = values.is_valid()
    return rows[np.asarray(is_there)], values.filter(is_there)


def by_blocks(call: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """A function of lists and what belongs to each, called with so many of them at a time that their values stay near."""

    def over_columns(lists: pa.Array, *others: pa.Array) -> pa.Array:
        offsets = np.asarray(lists.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        if last - first <= _BLOCK:
            return call(lists, *others)
        blocks = (offsets[:-1] - first) // _BLOCK
        starts = np.flatnonzero(np.diff(blocks, prepend=-1)).tolist()
        parts = (slice(start, stop) for start, stop in zip(starts, [*starts[1:], len(lists)], strict=True))
        return pa.concat_arrays([call(lists[part], *(other[part] for other in others)) for part in parts])

    return over_columns


def lists_of(values: "npt.NDArray[Any]", rows: _I64, count: int) -> pa.Array:
    """So many lists of values, each of the list of its row; the rows are in order."""
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def by_row(rows: _I64, order: _I64) -> _I64:
    """An order of values, by their rows first."""
    # Numbers of 16 bits are sorted by their digits, in steady time.
    few = rows.astype(np.uint16) if len(rows) and rows.max() <= 0xFFFF else rows
    return order[np.argsort(few[order], kind="stable")]


def starts_of(counts: _I64) -> _I64:
    """The places where groups of so many values begin."""
    return np.cumsum(counts) - counts
