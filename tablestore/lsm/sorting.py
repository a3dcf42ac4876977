"""How are unsorted rows put in key order fastest?

The group of a row (partition and bucket), as many leading key bits as fit, and the row's number are packed into one
uint64, and numpy sorts these words in place: several times faster than any argsort. Rows whose words agree up to the row
number are sorted again by the next key bits, and so on: a radix sort from the top, whose later rounds see only the rows
that are still tied. Ties on the whole key stay in row order.

    | group | key bits … | row number |
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore.lsm.keys import U64, Words

Order = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SortedOrder:
    """``order[i]`` is the row at place i; ``repeats[i]`` is True if the row at place i + 1 has the same group and key."""

    order: Order
    repeats: Mask


def sort_by_group_and_key(groups: U64 | None, group_count: int, words: Words) -> SortedOrder:
    """Order rows by (group, key, row number). ``groups`` holds numbers below ``group_count``; None is one group."""
    rows = len(words.columns[0])
    row_bits = max(rows - 1, 1).bit_length()
    bits = _BitStream(words)
    group_bits = (group_count - 1).bit_length() if groups is not None else 0
    taken = bits.take(64 - row_bits - group_bits)
    packed = taken << np.uint64(row_bits)
    if groups is not None and group_bits:
        packed |= groups << np.uint64(row_bits + bits.last_width)
    packed |= np.arange(rows, dtype=np.uint64)
    packed.sort()
    row_mask = np.uint64((1 << row_bits) - 1)
    order = (packed & row_mask).view(np.int64)
    packed >>= np.uint64(row_bits)
    repeats: Mask = packed[1:] == packed[:-1]
    while bits.left and repeats.any():
        repeats = _refine(order, repeats, bits)
    return SortedOrder(order, repeats)


def _refine(order: Order, repeats: Mask, bits: "_BitStream") -> Mask:
    """Sort the tied stretches of ``order`` in place by the next key bits; returns what is still tied."""
    tied = np.zeros(len(order), dtype=np.bool_)
    tied[1:] = repeats
    tied[:-1] |= repeats
    places = np.flatnonzero(tied)
    starts = np.ones(len(places), dtype=np.bool_)
    starts[1:] = ~repeats[places[1:] - 1]
    group = np.cumsum(starts).astype(np.uint64) - np.uint64(1)
    group_bits = int(group[-1]).bit_length()
    place_bits = max(len(places) - 1, 1).bit_length()
    # Places of one stretch are in row order, so the place stands for the row number with fewer bits.
    taken = bits.take(64 - place_bits - group_bits, rows=order[places])
    packed = (
        (group << np.uint64(bits.last_width + place_bits)) if group_bits else np.zeros(len(places), dtype=np.uint64)
    )
    packed |= taken << np.uint64(place_bits)
    packed |= np.arange(len(places), dtype=np.uint64)
    packed.sort()
    order[places] = order[places[(packed & np.uint64((1 << place_bits) - 1)).view(np.int64)]]
    packed >>= np.uint64(place_bits)
    still: Mask = np.zeros(len(repeats), dtype=np.bool_)
    still[places[1:] - 1] = packed[1:] == packed[:-1]
    return still


class _BitStream:
    """The key bits of all rows, handed out from the most significant down."""

    def __init__(self, words: Words) -> None:
        self._columns = words.columns
        self._bits = words.bits
        self._unread = list(words.bits)
        self.last_width = 0

    @property
    def left(self) -> bool:
        return any(self._unread)

    def take(self, width: int, rows: Order | None = None) -> U64:
        """Up to ``width`` next bits of all rows, or of some; ``last_width`` tells how many they were."""
        out: U64 | None = None
        self.last_width = 0
        for position, column in enumerate(self._columns):
            unread = self._unread[position]
            step = min(unread, width - self.last_width)
            if not step:
                continue
            part = column if rows is None else column[rows]
            if step < unread:
                part = part >> np.uint64(unread - step)
            if unread < self._bits[position]:
                part = part & np.uint64((1 << step) - 1)
            out = part if out is None else (out << np.uint64(step)) | part
            self._unread[position] = unread - step
            self.last_width += step
        if out is None:
            return np.zeros(len(self._columns[0]) if rows is None else len(rows), dtype=np.uint64)
        return out
