"""Cuts rows that come in an order into ranges of about as many rows each, so that no two ranges share a value. Pure.

rows      1 1 1 2 2 3 3 3 3 3 4 5        12 rows, 4 ranges: one ends behind 3, 6 and 9 rows at the earliest
ranges    1 1 1|2 2 3 3 3 3 3|4 5        each ends where the value changes; a frequent value leaves fewer ranges
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.types.arrays import NO


class RangeCuts:
    """The ends of ``count`` ranges of ``row_count`` rows in the order of ``columns``, batch by batch."""

    def __init__(self, columns: Sequence[str], *, count: int, row_count: int) -> None:
        self._columns, self._count, self._row_count = list(columns), count, row_count
        self._range = 1
        self._seen = 0
        self._last: pa.RecordBatch | None = None

    def ends(self, rows: pa.RecordBatch) -> Iterator[int]:
        """The numbers of rows of the next batch after which a range ends; 0 if it ended with the batch before."""
        if self._range >= self._count or not rows.num_rows:
            return
        keys = rows.select(self._columns)
        changes = np.flatnonzero(_changes(keys, self._last))
        while self._range < self._count:
            place = int(np.searchsorted(changes, self._due - self._seen))
            if place == len(changes):
                break
            end = int(changes[place])
            while self._range < self._count and self._due <= self._seen + end:
                self._range += 1
            yield end
        self._seen += rows.num_rows
        self._last = keys.slice(rows.num_rows - 1, 1)

    @property
    def _due(self) -> int:
        """After so many rows the present range may end."""
        return -(-self._range * self._row_count // self._count)


def _changes(keys: pa.RecordBatch, last: pa.RecordBatch | None) -> npt.NDArray[np.bool_]:
    """True for each row that differs from the one before it; the first row of all does not."""
    changed = np.zeros(keys.num_rows, np.bool_)
    for number, column in enumerate(keys.columns):
        before = column.slice(0, 1) if last is None else last.column(number)
        before = pa.concat_arrays([before, column.slice(0, keys.num_rows - 1)])
        # Null where one of the two is null: they differ if only one is.
        differs = pc.coalesce(pc.not_equal(before, column), pc.xor(pc.is_null(before), pc.is_null(column)))
        if pa.types.is_floating(column.type):
            # NaN differs from itself, and is one value.
            differs = pc.and_not(differs, pc.fill_null(pc.and_(pc.is_nan(before), pc.is_nan(column)), NO))
        changed |= differs.to_numpy(zero_copy_only=False)
    return changed
