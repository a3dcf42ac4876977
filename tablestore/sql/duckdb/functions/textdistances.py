"""Computes how far texts are from each other over whole columns: Levenshtein's distance, and the similarity by Jaro and Winkler.

Texts of about one length are a matrix of characters, a row each, and what happens to one character happens to that of all rows.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Numbers = npt.NDArray[np.int64]
_Characters = npt.NDArray[np.uint32]
_MOST_CELLS = 1 << 20
_LEAST_WIDTH, _MOST_WIDTH = 8, 64
_MOST_CODES, _MOST_SHIFTED = 256, 32
_PREFIX = 4
_BOOST = 0.1


class _Texts:
    """A column of texts without NULLs as the numbers of its characters, or of its units in UTF-16, and where each text begins."""

    def __init__(self, column: pa.Array, *, of_units: bool) -> None:
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        octets = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
        bounds -= bounds[0]
        if len(octets) == 0 or octets.max() < 0x80:
            self.numbers = octets.astype(np.uint32)
        else:
            text = octets.tobytes().decode()
            self.numbers = np.frombuffer(text.encode("utf-16-le"), np.uint16).astype(np.uint32)
            many = (octets & 0xC0) != 0x80
            if of_units:
                many = many.astype(np.int64) + (octets >= 0xF0)
            else:
                self.numbers = np.frombuffer(text.encode("utf-32-le"), np.uint32)
            bounds = np.concatenate(([0], np.cumsum(many)))[bounds]
        self.starts, self.lengths = bounds[:-1], np.diff(bounds)

    def matrix(self, rows: _Numbers, width: int) -> _Characters:
        """The characters of some rows, of texts that are no longer than the width: behind their end others."""
        return np.take(self.numbers, self.starts[rows][:, None] + np.arange(width), mode="clip")


def _widths(lengths: _Numbers) -> _Numbers:
    """The least power of two, from 8 on, that is no less than each length."""
    widths: _Numbers = np.maximum(_LEAST_WIDTH, 1 << np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64))
    return widths


def _by_width(left: _Texts, right: _Texts, rows: _Numbers, cells: Callable[[int], int]) -> "Iterator[tuple[_Numbers, int]]":
    """Rows whose longer text has about one length, and that: no more at once than have so many cells in all."""
    widths = _widths(np.maximum(left.lengths, right.lengths)[rows])
    for width in np.unique(widths):
        some = rows[widths == width]
        count = max(1, _MOST_CELLS // cells(int(width)))
        for first in range(0, len(some), count):
            yield some[first : first + count], int(width)


def levenshtein(left: pa.Array, right: pa.Array) -> pa.Array:
    """The least number of characters to put in, take out or replace."""
    are_null = np.asarray(left.is_null()) | np.asarray(right.is_null())
    ones, others = (_Texts(column.fill_null(""), of_units=False) for column in (left, right))
    results = np.where(ones.lengths == 0, others.lengths, ones.lengths)
    plain = np.flatnonzero(~are_null & (ones.lengths > 0) & (others.lengths > 0))
    for rows, width in _by_width(ones, others, plain, lambda one: one):
        results[rows] = _distances(ones, others, rows, width)
    return pa.array(results.astype(np.int32), mask=are_null)


def _distances(left: _Texts, right: _Texts, rows: _Numbers, width: int) -> _Numbers:
    letters, others = left.matrix(rows, width).T, right.matrix(rows, width)
    ends, lengths = right.lengths[rows], left.lengths[rows]
    places = np.arange(width + 1, dtype=np.int32)
    before = np.repeat(places[None, :], len(rows), axis=0)
    after = np.empty_like(before)
    results = np.zeros(len(rows), np.int64)
    for place in range(int(lengths.max())):
        after[:, 0] = place + 1
        np.minimum(before[:, 1:] + 1, before[:, :-1] + (others != letters[place][:, None]), out=after[:, 1:])
        # To put a character in costs one more than the place before it.
        after -= places
        np.minimum.accumulate(after, axis=1, out=after)
        after += places
        done = np.flatnonzero(lengths == place + 1)
        results[done] = after[done, ends[done]]
        before, after = after, before
    return results


def jaro_winkler(left: pa.Array, right: pa.Array, beyond: Callable[[str, str], float]) -> pa.Array:
    """The similarity of two texts by Jaro, more for those that begin alike. ``beyond``: that of texts of more than 64 units."""
    are_null = np.asarray(left.is_null()) | np.asarray(right.is_null())
    ones, others = (_Texts(column.fill_null(""), of_units=True) for column in (left, right))
    results = np.zeros(len(left))
    results[(ones.lengths == 0) & (others.lengths == 0)] = 1.0
    are_long = np.maximum(ones.lengths, others.lengths) > _MOST_WIDTH
    for row in np.flatnonzero(are_long & ~are_null):
        results[row] = beyond(left[row].as_py(), right[row].as_py())
    plain = np.flatnonzero(~are_long & ~are_null & (ones.lengths > 0) & (others.lengths > 0))
    for rows, width in _by_width(ones, others, plain, lambda one: 8 * one):
        results[rows] = _similarities(ones, others, rows, width)
    return pa.array(results, mask=are_null)


def _similarities(left: _Texts, right: _Texts, rows: _Numbers, width: int) -> npt.NDArray[np.float64]:
    lengths, ends = left.lengths[rows], right.lengths[rows]
    width = int(max(lengths.max(), ends.max(), _PREFIX))
    letters, others = left.matrix(rows, width), right.matrix(rows, width)
    same = _same(letters, others, ends)
    same[np.arange(width)[:, None] >= lengths] = 0
    reach = np.maximum(np.maximum(lengths, ends) // 2 - 1, 0).astype(np.uint64)
    used, free, one = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64), np.uint64(1)
    most = int(lengths.max())
    near = (one << (2 * reach + one)) - one
    matched = np.zeros((most, len(rows)), np.bool_)
    for place in range(most):
        if width <= _MOST_SHIFTED:
            around = near << np.uint64(place) >> reach
        else:
            behind, back = np.maximum(np.int64(place) - reach.astype(np.int64), 0).astype(np.uint64), reach
            around = near >> np.where(back > place, back - np.minimum(back, place), 0).astype(np.uint64) << behind
        np.bitwise_and(same[place], around, out=free)
        free &= ~used
        # The lowest bit.
        free &= -free
        used |= free
        np.not_equal(free, 0, out=matched[place])
    matches = matched.sum(axis=0)
    moved, rest = np.zeros(len(rows), np.int64), used
    for place in range(most):
        first = rest & -rest
        first *= matched[place]
        rest ^= first
        moved += ((same[place] & first) == 0) & matched[place]
    with np.errstate(all="ignore"):
        jaro = (matches / lengths + matches / ends + (matches - moved / 2) / matches) / 3
    shortest = np.minimum(lengths, ends)
    alike = (letters[:, :_PREFIX] == others[:, :_PREFIX]) & (np.arange(_PREFIX) < shortest[:, None])
    prefix = np.logical_and.accumulate(alike, axis=1).sum(axis=1)
    is_same = (lengths == ends) & (matches == lengths) & (moved == 0)
    return np.where(is_same, 1.0, np.where(matches == 0, 0.0, jaro + prefix * _BOOST * (1 - jaro)))


def _same(letters: _Characters, others: _Characters, ends: _Numbers) -> npt.NDArray[np.uint64]:
    """A bit for each of the other characters that is the same, by the places of letters and the rows."""
    count, width = others.shape
    most = int(max(letters.max(), others.max())) + 1
    if most > _MOST_CODES:
        both = np.concatenate((letters, others), axis=None)
        codes = np.unique(both, return_inverse=True)[1].astype(np.uint32).reshape(2 * count, width)
        letters, others, most = codes[:count], codes[count:], int(codes.max()) + 1
    firsts = np.arange(count)[:, None] * most
    bits = np.where(np.arange(width) < ends[:, None], np.uint64(1) << np.arange(width, dtype=np.uint64), np.uint64(0))
    by_letter = np.zeros(count * most, np.uint64)
    np.add.at(by_letter, (others + firsts).reshape(-1), bits.reshape(-1))
    return np.ascontiguousarray(by_letter[letters + firsts].T)
