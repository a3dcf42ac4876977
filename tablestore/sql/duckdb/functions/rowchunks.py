"""Puts the values of rows together that were computed in parts: by the shapes of rows, and one by one for those of none."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Chunk: TypeAlias = "tuple[npt.NDArray[np.int64], pa.Array]"
"""Numbers of rows, and their values."""


def put_together(count: int, result: pa.DataType, parts: Iterable[Chunk], rest: "Callable[[pa.Array], pa.Array]") -> pa.Array:
    """The values of so many rows. ``rest``: computes those of the rows that are in no part, by their numbers."""
    chunks = list(parts)
    is_left = np.ones(count, np.bool_)
    for rows, _ in chunks:
        is_left[rows] = False
    if is_left.any():
        left = np.flatnonzero(is_left)
        chunks.append((left, rest(pa.array(left))))
    if len(chunks) == 1 and len(chunks[0][0]) == count and (len(chunks[0][0]) < 2 or (np.diff(chunks[0][0]) > 0).all()):
        return chunks[0][1]
    order = np.argsort(np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in chunks)]), kind="stable")
    return pa.concat_arrays([values for _, values in chunks] or [pa.array([], result)]).take(pa.array(order))
