"""Writes columns of arrays of whole numbers as VARIANT: what :func:`variantformat.encode` writes for each, for all rows at once."""

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
_KINDS, _SIZES = (np.array([one[place] for one in variantformat.INTEGERS]) for place in (0, 1))
_MOST = np.array([1 << 8 * size - 1 for size in _SIZES[:-1].tolist()])
_NULL_KIND = variantformat.encode(None)[0][0] >> 2


def of_whole_numbers(lists: pa.Array) -> pa.Array:
    """Arrays of 64-bit numbers as rows of ``value`` and ``metadata``; NULL where an array is."""
    counts = np.diff(np.asarray(lists.offsets)).astype(np.int64)
    are_null = None
    if lists.null_count:
        are_null = np.asarray(lists.is_null())
        counts[are_null] = 0
    metadata = pa.repeat(pa.scalar(variantformat.metadata_of(()), pa.binary()), len(lists))
    mask = None if are_null is None else pa.array(are_null)
    return pa.StructArray.from_arrays([_written(lists.flatten(), counts), metadata], ["value", "metadata"], mask=mask)


def _written(values: pa.Array, counts: _I64) -> pa.Array:
    items, sizes = _items(values)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    firsts = starts_of(counts)
    before = np.append(starts, ends[-1:] if len(ends) else 0)
    lengths = before[firsts + counts] - before[firsts]
    starts -= np.repeat(before[firsts], counts)
    widths = 1 + np.searchsorted([0xFF, 0xFFFF, 0xFFFFFF], lengths, side="left")
    heads = np.where(counts > _SMALL_COUNT, 5, 2)
    bodies = heads + widths * (counts + 1)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(bodies + lengths)))
    octets = np.empty(int(offsets[-1]) + _ITEM, np.uint8)
    # What of an item is none of its bytes is written over: by the next item, or by the head of the next row.
    places = np.ndarray((len(octets) - _ITEM + 1,), f"V{_ITEM}", octets, 0, (1,))
    places[starts + np.repeat(offsets[:-1] + bodies, counts)] = items
    _put_heads(octets, offsets[:-1], counts, widths)
    at = offsets[:-1] + heads
    if len(widths) and widths.min() == widths.max():
        width = int(widths[0])
        _put_numbers(octets, np.repeat(at - width * firsts, counts) + np.arange(0, width * len(starts), width), starts, width)
    else:
        place = np.arange(len(starts)) - np.repeat(firsts, counts)
        each = np.repeat(widths, counts)
        _put_numbers(octets, np.repeat(at, counts) + place * each, starts, each)
    _put_numbers(octets, at + counts * widths, lengths, widths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.binary(), len(counts), buffers)


def _items(values: pa.Array) -> "tuple[npt.NDArray[np.void], _I64]":
    """The bytes of numbers, and how many of them count."""
    numbers = np.asarray(values.fill_null(0) if values.null_count else values)
    # Of a negative number the other bits tell how many it takes.
    place = np.searchsorted(_MOST, numbers ^ (numbers >> 63), side="right")
    octets = np.empty((len(numbers), _ITEM), np.uint8)
    octets[:, 0] = (_KINDS << 2)[place]
    octets[:, 1:] = numbers.astype("<i8").view(np.uint8).reshape(-1, 8)
    sizes = _SIZES[place] + 1
    if values.null_count:
        are_null = np.flatnonzero(np.asarray(values.is_null()))
        octets[are_null, 0], sizes[are_null] = _NULL_KIND << 2, 1
    return octets.view(f"V{_ITEM}").reshape(-1), sizes


def _put_heads(octets: _U8, at: _I64, counts: _I64, widths: _I64) -> None:
    are_large = counts > _SMALL_COUNT
    kind = variantformat.container_head(0, None, 1)[0]
    octets[at] = kind | (widths - 1) << 2 | are_large.astype(np.int64) << 4
    _put_numbers(octets, at + 1, counts, np.where(are_large, 4, 1))


def _put_numbers(octets: _U8, at: _I64, numbers: _I64, widths: "_I64 | int") -> None:
    """Writes numbers of so many bytes each to places."""
    for byte in range(int(np.max(widths, initial=0))):
        if np.min(widths, initial=8) > byte:
            octets[at + byte] = numbers >> 8 * byte if byte else numbers
        else:
            some = np.flatnonzero(widths > byte)
            octets[at[some] + byte] = numbers[some] >> 8 * byte
