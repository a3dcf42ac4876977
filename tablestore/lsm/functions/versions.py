"""Versions of keys as arrays of events in order, and the first, last or greatest of them per key.

    event     0  1  2 | 3 | 4  5          key ascends; within a key the events are in version order
    key       0  0  0 | 2 | 5  5          keys may be missing (after ``where``): they have no event

Everything is whole arrays: a question about all keys is a few passes over all events.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.types.arrays import Mask, Places, begins, first_of_group, last_of_group


@dataclass(frozen=True, slots=True)
class Events:
    """``rows[i]`` is the place of event i in the columns; ``adds`` is False for retractions; ``newer`` is False for an event
    that is older than one before it (within a sequence group only). ``keys``: how many keys there are."""

    rows: Places
    key: Places
    keys: int
    adds: Mask
    newer: Mask

    def where(self, mask: Mask) -> "Events":
        """The events of ``mask`` alone."""
        if mask.all():
            return self
        return Events(self.rows[mask], self.key[mask], self.keys, self.adds[mask], self.newer[mask])

    def last(self, mask: Mask) -> Places:
        """Per key the last event for which ``mask`` holds, -1 without one."""
        return last_of_group(self.key, self.keys, mask)

    def first(self, mask: Mask) -> Places:
        """Per key the first event for which ``mask`` holds, -1 without one."""
        return first_of_group(self.key, self.keys, mask)

    def starts(self) -> Places:
        """The first event of each key that has events."""
        return np.flatnonzero(begins(self.key))

    def valid(self, column: pa.Array) -> Mask:
        """The mask of the events that have a value in the column."""
        if not column.null_count:
            return np.ones(len(self.rows), dtype=np.bool_)
        valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)[self.rows]
        return valid

    def row_of(self, event: Places) -> Places:
        """The rows of events, -1 for -1."""
        if not len(self.rows):
            return event
        return np.where(event >= 0, self.rows[event], -1)


def take_or_null(column: pa.Array, rows: Places) -> pa.Array:
    """The values at ``rows``, null for -1."""
    missing = rows < 0
    if missing.any():
        return column.take(pa.array(rows, mask=missing))
    return column.take(pa.array(rows))


def spread(values: pa.Array, events: Events) -> pa.Array:
    """One value per key that has events as one per key: null for the others."""
    if len(values) == events.keys:
        return values
    place = np.full(events.keys, -1, dtype=np.int64)
    place[events.key[events.starts()]] = np.arange(len(values))
    return take_or_null(values, place)
