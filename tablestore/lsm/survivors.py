"""Which version of each key survives a window?

Three ways, picked by what they cost. All take the keys of the window's chunks, each sorted and without duplicates,
older chunks first, and give a mask per chunk of the keys that no later chunk holds:

    table     integers in a narrow range: one byte per possible key remembers the last chunk that holds it
    search    few chunks: look the keys of the smaller chunk of each pair up in the larger one
    sort      any: stable argsort of all keys; timsort finds the sorted chunks and merges them

Where chunk order does not tell which version is newer, ``winners_by_sequence`` compares the versions of each key.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.lsm.keys import Keys, join_words, plain_columns, to_words
from tablestore.lsm.mergefn import Keep

Mask = npt.NDArray[np.bool_]
Order = npt.NDArray[np.intp]

# A table is worth it while it stays within so many bytes per row.
_TABLE_BYTES_PER_ROW = 16
_MAX_TABLE_CHUNKS = 255
# Looking a sorted key up costs about this much of sorting it in among the others.
_SEARCH_COST = 0.5


def last_of_each_key(keys: Sequence[Keys]) -> list[Mask | None]:
    """A mask per chunk: True where no later chunk holds the key. None stands for all True."""
    if len(keys) < 2:
        return [None] * len(keys)
    total = sum(len(array) for array in keys)
    if np.issubdtype(keys[0].dtype, np.integer) and len(keys) <= _MAX_TABLE_CHUNKS:
        smallest = min(int(array[0]) for array in keys)  # type: ignore[call-overload]
        largest = max(int(array[-1]) for array in keys)  # type: ignore[call-overload]
        if largest - smallest < _TABLE_BYTES_PER_ROW * total:
            return _by_table(keys, smallest, largest - smallest + 1)
    lookups = sum(min(len(a), len(b)) for i, a in enumerate(keys) for b in keys[i + 1 :])
    if lookups * _SEARCH_COST <= total:
        return _by_search(keys)
    return _by_sort(keys)


def order_by_key(keys: Keys) -> Order:
    """The stable ascending order of concatenated sorted chunks."""
    return np.argsort(keys, kind="stable")


def winners_by_sequence(
    keys: Keys,
    order: Order,
    fields: Sequence[pa.Array],
    *,
    descending: Sequence[bool],
    sequences: npt.NDArray[np.int64],
    keep: Keep,
) -> Mask:
    """True for the winning row of each key.

    ``order`` sorts ``keys`` stably. Versions compare by ``fields`` (nulls smallest), then ``sequences``, then position;
    the greatest wins, with ``keep="first"`` the least.
    """
    mask = np.ones(len(keys), dtype=np.bool_)
    ascending = keys[order]
    same = ascending[1:] == ascending[:-1]
    if not same.any():
        return mask
    # Only rows whose key has several versions need a comparison.
    several = np.zeros(len(keys), dtype=np.bool_)
    several[1:] |= same
    several[:-1] |= same
    rows = order[several]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = ~same
    group = np.cumsum(first)[several]
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


def rank_versions(
    group: npt.NDArray[np.int64],
    fields: Sequence[pa.Array],
    *,
    descending: Sequence[bool],
    tie_breakers: Sequence[npt.NDArray[np.int64]],
) -> Order:
    """The order of rows by ``group``, then ``fields`` (nulls smallest either way), then ``tie_breakers``.

    ``group`` ascends, so the groups stay where they are and only rows within a group change places.
    """
    by: list[npt.NDArray[np.int64]] = [*tie_breakers[::-1]]
    by.extend(_ranks(field, backwards) for field, backwards in list(zip(fields, descending, strict=True))[::-1])
    return np.lexsort([*by, group])


def _ranks(field: pa.Array, descending: bool) -> npt.NDArray[np.int64]:
    """Dense ranks from 1; 0 for nulls."""
    ranks = np.zeros(len(field), dtype=np.int64)
    valid = field.is_valid().to_numpy(zero_copy_only=False)
    if valid.any():
        values = join_words(to_words(plain_columns([field.drop_null()], [False])))
        _, codes = np.unique(values, return_inverse=True)
        ranks[valid] = (codes.max() - codes if descending else codes) + 1
    return ranks


def _by_table(keys: Sequence[Keys], smallest: int, size: int) -> list[Mask | None]:
    # Never cleared: every entry that is read was written before, by the chunk that reads it or a later one.
    last_chunk = np.empty(size, dtype=np.uint8)
    slots = [_offsets_from(array, smallest) for array in keys]
    for position, slot in enumerate(slots):
        last_chunk[slot] = position
    masks: list[Mask | None] = [last_chunk[slot] == position for position, slot in enumerate(slots[:-1])]
    return [*masks, None]


def _offsets_from(array: Keys, smallest: int) -> Order:
    if array.dtype == np.uint64:
        return (array - np.uint64(smallest)).view(np.int64)  # type: ignore[operator, no-any-return]
    if array.dtype == np.int64:
        return array - np.int64(smallest)  # type: ignore[operator, no-any-return]
    return array.astype(np.int64) - smallest  # type: ignore[no-any-return]


def _by_search(keys: Sequence[Keys]) -> list[Mask | None]:
    masks: list[Mask] = [np.ones(len(array), dtype=np.bool_) for array in keys]
    for older in range(len(keys) - 1):
        for newer in range(older + 1, len(keys)):
            old, new = keys[older], keys[newer]
            if len(new) <= len(old):
                found = np.searchsorted(old, new)
                found[found == len(old)] = 0
                masks[older][found[old[found] == new]] = False
            else:
                found = np.searchsorted(new, old)
                found[found == len(new)] = 0
                masks[older] &= new[found] != old
    return [*masks[:-1], None]


def _by_sort(keys: Sequence[Keys]) -> list[Mask | None]:
    joined = np.concatenate(list(keys))
    order = order_by_key(joined)
    ascending = joined[order]
    last = np.ones(len(joined), dtype=np.bool_)
    last[:-1] = ascending[1:] != ascending[:-1]
    mask = np.empty(len(joined), dtype=np.bool_)
    mask[order] = last
    bounds = np.cumsum([0, *(len(array) for array in keys)])
    return [*(mask[bounds[i] : bounds[i + 1]] for i in range(len(keys) - 1)), None]
