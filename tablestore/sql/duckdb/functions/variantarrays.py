"""Writes columns of arrays of whole numbers as VARIANT: what :func:`variantformat.encode` writes for each, for all rows at once."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions import variantformat
from tablestore.sql.duckdb.functions.sketchcolumns import starts_of

_I64: TypeAlias = "npt.NDArray[np.int64]"
_U8: TypeAlias = "npt.NDArray[np.uint8]"
# A number has its kind, and eight bytes of which the first ones count.
_ITEM = 9
_SMALL_COUNT = 0xFF
_ITEM_TYPE = np.dtype([("kind", "u1"), ("number", "<i8")])
_HEADS = np.array([kind << 2 for kind, _ in variantformat.INTEGERS], np.uint8)
_SIZES = np.array([size for _, size in variantformat.INTEGERS])
_MOST = tuple(1 << 8 * size - 1 for size in _SIZES[:-1].tolist())
_WIDEST = (0x100, 0x10000, 0x1000000)
_NULL_HEAD = variantformat.encode(None)[0][0]
# For as many rows as DuckDB hands over at once.
_AT_ONCE = 2048


def of_whole_numbers(lists: pa.Array) -> pa.Array:
    """Arrays of 64-bit numbers as rows of ``value`` and ``metadata``; NULL where an array is."""
    ends = np.asarray(lists.offsets).astype(np.int64)
    counts = ends[1:] - ends[:-1]
    are_null = None
    if lists.null_count:
        are_null = np.asarray(lists.is_null())
        counts[are_null] = 0
    metadata = _metadata(_AT_ONCE)[: len(lists)] if len(lists) <= _AT_ONCE else _metadata(len(lists))
    mask = None if are_null is None else pa.array(are_null)
    return pa.StructArray.from_arrays([_written(lists.flatten(), counts), metadata], ["value", "metadata"], mask=mask)


@lru_cache(maxsize=2)
def _metadata(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(variantformat.metadata_of(()), pa.binary()), count)


def _written(values: pa.Array, counts: _I64) -> pa.Array:
    items, sizes = _items(values)
    each = _repeater(counts)
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    firsts = starts_of(counts)
    before = ends[firsts]
    lengths = ends[firsts + counts] - before
    widths = 1 + _count_reached(lengths, _WIDEST)
    heads = np.where(counts > _SMALL_COUNT, 5, 2)
    bodies = heads + widths * (counts + 1)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(bodies + lengths, out=offsets[1:])
    octets = np.empty(int(offsets[-1]) + _ITEM, np.uint8)
    # What of an item is none of its bytes is written over: by the next item, or by the head of the next row.
    places = np.ndarray((len(octets) - _ITEM + 1,), f"V{_ITEM}", octets, 0, (1,))
    places[ends[:-1] + each(offsets[:-1] + bodies - before)] = items
    _put_heads(octets, offsets[:-1], counts, widths)
    at = offsets[:-1] + heads
    starts = ends[:-1] - each(before)
    if len(widths) and widths.min() == widths.max():
        width = int(widths[0])
        _put_numbers(octets, each(at - width * firsts) + np.arange(0, width * len(starts), width), starts, width)
    else:
        place = np.arange(len(starts)) - each(firsts)
        width_of = each(widths)
        _put_numbers(octets, each(at) + place * width_of, starts, width_of)
    _put_numbers(octets, at + counts * widths, lengths, widths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.binary(), len(counts), buffers)


def _repeater(counts: _I64) -> "Callable[[_I64], _I64]":
    """A function that repeats a number of each array for its items: numpy repeats all as often in a fraction of the time."""
    some = np.flatnonzero(counts)
    count = int(counts[some[0]]) if len(some) else 0
    if (counts[some] == count).all():
        return lambda numbers: np.repeat(numbers if len(some) == len(numbers) else numbers[some], count)
    return lambda numbers: np.repeat(numbers, counts)


def _items(values: pa.Array) -> "tuple[npt.NDArray[np.void], _I64]":
    """The bytes of numbers, and how many of them count."""
    # What stands for a NULL is any number.
    numbers = np.frombuffer(values.buffers()[1] or b"", np.int64, len(values), values.offset * 8)
    # Of a negative number the other bits tell how many it takes.
    place = _count_reached(numbers ^ (numbers >> 63), _MOST)
    items = np.empty(len(numbers), _ITEM_TYPE)
    items["kind"] = _HEADS[place]
    items["number"] = numbers
    sizes = _SIZES[place] + 1
    if values.null_count:
        are_null = np.flatnonzero(np.asarray(values.is_null()))
        items["kind"][are_null], sizes[are_null] = _NULL_HEAD, 1
    return items.view(f"V{_ITEM}"), sizes


def _count_reached(numbers: _I64, limits: "tuple[int, ...]") -> _I64:
    """The count of limits that each number reaches, of a few."""
    counts = np.zeros(len(numbers), np.int8)
    most = int(numbers.max(initial=0))
    for limit in limits:
        if limit <= most:
            counts += (numbers >= limit).view(np.int8)
    return counts.astype(np.int64)


def _put_heads(octets: _U8, at: _I64, counts: _I64, widths: _I64) -> None:
    are_large = counts > _SMALL_COUNT
    kind = variantformat.container_head(0, None, 1)[0]
    octets[at] = kind | (widths - 1) << 2 | are_large.astype(np.int64) << 4
    _put_numbers(octets, at + 1, counts, np.where(are_large, 4, 1))


def _put_numbers(octets: _U8, at: _I64, numbers: _I64, widths: "_I64 | int") -> None:
    """Writes numbers of so many bytes each to places."""
    for byte in range(int(np.max(widths, initial=0))):
        if np.min(widths, initial=8) > byte:
            octets[at + byte] = (numbers >> 8 * byte if byte else numbers).astype(np.uint8)
        else:
            some = np.flatnonzero(widths > byte)
            octets[at[some] + byte] = numbers[some] >> 8 * byte
