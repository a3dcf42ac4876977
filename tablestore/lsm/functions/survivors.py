"""Finds the surviving version of each key in a window of sorted runs.

Three ways, picked by what they cost. Each gives a mask per chunk (older chunks first) of the keys that no later chunk holds:

    table     integers in a narrow range: one byte per possible key remembers the last chunk that holds it
    search    chunks of very different size: look the keys of the smaller of each pair up in the larger
    sort      any: all rows by (key, chunk), see sorting

Where chunks are not in version order, ``winners_by_sequence`` compares the versions of each key.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.lazy import lazy
from tablestore.lsm.functions.mergefunction import Keep
from tablestore.lsm.keys import KeyWords, PlainColumn, concat_plain, plain_columns, to_words
from tablestore.lsm.sorting import SortedOrder, ascending, sort_by_group_and_key
from tablestore.types.arrays import Mask, Places

_T = TypeVar("_T", bound=np.generic)
Keys = npt.NDArray[np.integer]

# A table is worth it while it stays within so many bytes per row.
_TABLE_BYTES_PER_ROW = 16
_MAX_TABLE_CHUNKS = 255
# Looking a key up costs about this much of sorting a row.
_SEARCH_COST = 2


class WindowKeys:
    """The keys of the chunks of one window, in the forms that the ways need, each made once when asked for."""

    def __init__(self, chunks: Sequence[Sequence[PlainColumn]]) -> None:
        self._chunks = chunks
        self.bounds: list[int] = np.cumsum([0, *(len(chunk[0]) for chunk in chunks)]).tolist()

    @property
    def row_count(self) -> int:
        """Rows of all chunks together."""
        return self.bounds[-1]

    @lazy
    def words(self) -> KeyWords:
        """The words of all rows."""
        return to_words(concat_plain(self._chunks))

    @lazy
    def arrays(self) -> list[Keys] | None:
        """Per chunk one integer per row that compares as the key does; None if 64 bits do not hold a key."""
        first = self._chunks[0]
        if len(first) == 1 and isinstance(first[0], np.ndarray):
            return [chunk[0] for chunk in self._chunks]
        joined = self.words.joined()
        return None if joined is None else [*self.split(joined)]

    @lazy
    def in_order(self) -> SortedOrder:
        """The rows of all chunks by (key, chunk)."""
        return sort_by_group_and_key(None, 1, self.words)

    def ascending(self) -> bool:
        """True if every chunk is in strictly ascending key order."""
        if self.arrays is not None:
            return all(bool((array[1:] > array[:-1]).all()) for array in self.arrays)
        return ascending(self.words, self.bounds)

    def split(self, rows: npt.NDArray[_T]) -> list[npt.NDArray[_T]]:
        """An array over all rows as one per chunk."""
        return [rows[start:stop] for start, stop in pairwise(self.bounds)]


def last_of_each_key(keys: WindowKeys, *, sorted_anyway: bool = False) -> list[Mask | None]:
    """A mask per chunk: True where no later chunk holds the key. None stands for all True.

    ``sorted_anyway``: the caller needs ``keys.in_order`` too, so using it costs nothing more.
    """
    arrays = keys.arrays
    if arrays is not None and not sorted_anyway:
        smallest, largest = min(int(array[0]) for array in arrays), max(int(array[-1]) for array in arrays)
        if len(arrays) <= _MAX_TABLE_CHUNKS and largest - smallest < _TABLE_BYTES_PER_ROW * keys.row_count:
            return _by_table(arrays, smallest, largest - smallest + 1)
        lookups = sum(min(len(a), len(b)) for a, b in combinations(arrays, 2))
        if lookups * _SEARCH_COST <= keys.row_count:
            return _by_search(arrays)
    sorted_order = keys.in_order
    mask = np.empty(keys.row_count, dtype=np.bool_)
    mask[sorted_order.order[:-1]] = ~sorted_order.repeats
    mask[sorted_order.order[-1]] = True
    return [*keys.split(mask)[:-1], None]


def winners_by_sequence(
    sorted_order: SortedOrder,
    fields: Sequence[pa.Array],
    *,
    descending: Sequence[bool],
    sequences: npt.NDArray[np.int64],
    keep: Keep,
) -> Mask:
    """True for the winning row of each key.

    Versions compare by ``fields`` (nulls smallest), then ``sequences``, then row number; the greatest wins, with
    ``keep="first"`` the least.
    """
    mask = np.ones(len(sorted_order.order), dtype=np.bool_)
    several, group = versions_of_repeated_keys(sorted_order)
    rows = sorted_order.order[several]
    if not len(rows):
        return mask
    versions = [field.take(pa.array(rows)) for field in fields]
    ranked = rank_versions(group, versions, descending=descending, tie_breakers=[sequences[rows], rows])
    ends = np.ones(len(rows), dtype=np.bool_)
    changes = group[1:] != group[:-1]
    if keep == "last":
        ends[:-1] = changes
    else:
        ends[1:] = changes
    mask[rows] = False
    mask[rows[ranked[ends]]] = True
    return mask


def versions_of_repeated_keys(sorted_order: SortedOrder) -> tuple[Mask, Places]:
    """The places in ``sorted_order.order`` whose key occurs several times, and a number per key for each of them."""
    several = np.zeros(len(sorted_order.order), dtype=np.bool_)
    several[1:] = sorted_order.repeats
    several[:-1] |= sorted_order.repeats
    first = np.ones(len(sorted_order.order), dtype=np.bool_)
    first[1:] = ~sorted_order.repeats
    return several, np.cumsum(first, dtype=np.int64)[several]


def rank_versions(
    group: Places,
    fields: Sequence[pa.Array],
    *,
    descending: Sequence[bool],
    tie_breakers: Sequence[npt.NDArray[np.int64]],
) -> Places:
    """The order of rows by ``group``, then ``fields`` (nulls smallest either way), then ``tie_breakers``.

    ``group`` ascends, so the groups stay where they are and only rows within a group change places.
    """
    by: list[npt.NDArray[np.int64]] = [*tie_breakers[::-1]]
    by.extend(dense_ranks(field, backwards) for field, backwards in list(zip(fields, descending, strict=True))[::-1])
    return np.lexsort([*by, group])


def dense_ranks(field: pa.Array, descending: bool) -> npt.NDArray[np.int64]:
    """Dense ranks from 1; 0 for nulls."""
    ranks = np.zeros(len(field), dtype=np.int64)
    valid = np.flatnonzero(field.is_valid().to_numpy(zero_copy_only=False))
    if len(valid):
        sorted_order = sort_by_group_and_key(None, 1, to_words(plain_columns([field.drop_null()], [False])))
        dense = np.cumsum(np.concatenate([[True], ~sorted_order.repeats]))
        ranks[valid[sorted_order.order]] = dense[-1] - dense + 1 if descending else dense
    return ranks


def comes_before(rows: Sequence[pa.Array], others: Sequence[pa.Array], descending: Sequence[bool]) -> Mask:
    """The mask of the rows that come before others by ``sequence.field``, whose columns both have (nulls smallest either way)."""
    before: Mask = np.zeros(len(rows[0]), dtype=np.bool_)
    equal = ~before
    for one, other, backwards in zip(rows, others, descending, strict=True):
        ranks = dense_ranks(pa.concat_arrays([one, other]), backwards)
        mine, theirs = ranks[: len(one)], ranks[len(one) :]
        before |= equal & (mine < theirs)
        equal &= mine == theirs
    return before


def _by_table(arrays: Sequence[Keys], smallest: int, size: int) -> list[Mask | None]:
    # Never cleared: every entry that is read was written before, by the chunk that reads it or a later one.
    last_chunk = np.empty(size, dtype=np.uint8)
    slots = [_distance(array, smallest) for array in arrays]
    for position, slot in enumerate(slots):
        last_chunk[slot] = position
    return [*(last_chunk[slot] == position for position, slot in enumerate(slots[:-1])), None]


def _distance(array: Keys, smallest: int) -> Places:
    if array.dtype == np.uint64:
        return (array - np.uint64(smallest)).view(np.int64)
    # Never overflows: the distance was found to be small.
    return array.astype(np.int64, copy=False) - np.int64(smallest)


def _by_search(arrays: Sequence[Keys]) -> list[Mask | None]:
    masks: list[Mask] = [np.ones(len(array), dtype=np.bool_) for array in arrays]
    for older, newer in combinations(range(len(arrays)), 2):
        old, new = arrays[older], arrays[newer]
        if len(new) <= len(old):
            places = np.searchsorted(old, new)
            places[places == len(old)] = 0
            masks[older][places[old[places] == new]] = False
        else:
            places = np.searchsorted(new, old)
            places[places == len(new)] = 0
            masks[older] &= new[places] != old
    return [*masks[:-1], None]
