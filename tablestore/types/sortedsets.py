"""Sorted sets of numbers: ascending numpy arrays without repeats.

``numpy.unique`` and what rests on it put integers into a hash table, which takes a hundred times as long as sorting them.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tablestore.types.arrays import Mask, begins

N = TypeVar("N", bound=np.integer)


def distinct(values: npt.NDArray[N]) -> npt.NDArray[N]:
    """The set of these numbers."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    firsts = begins(ordered)
    return ordered if firsts.all() else ordered[firsts]


def union(*sets: npt.NDArray[N]) -> npt.NDArray[N]:
    """The numbers that are in any of these arrays, sets or not."""
    # Where each is sorted, a stable sort only merges.
    return distinct(np.concatenate(sets))


def contained(values: npt.NDArray[np.integer], among: npt.NDArray[np.integer]) -> Mask:
    """The mask of the values that are in the set ``among``."""
    if not len(among):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.searchsorted(among, values)
    places[places == len(among)] = 0
    mask: Mask = among[places] == values
    return mask
