"""Computes the changes between two states of the same keys.

    before  after                    changes, in key order
    -       row                      +I after
    row     -                        -D before
    row     row, another             -U before, +U after
    row     row, the same            nothing

"The same" is a row that is the stored one itself: equal sequence number and equal values. With ``deduplicate`` equal values are
enough. Retracted rows count by their old values, so ``-U`` and ``-D`` carry the sequence number of the row that went, ``+I`` and
``+U`` that of the row that came.

Values are equal as stored: null equals null, NaN equals NaN, 0.0 and -0.0 differ. Maps are equal if their entries are, in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.lsm.gather import take_rows
from tablestore.types.arrays import Mask, Places, one_chunk
from tablestore.types.rowkind import RowKind


@dataclass(frozen=True, slots=True)
class RowState:
    """The rows of some keys: ``rows`` has ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and values; ``keys`` the number of each row's key,
    ascending. No row retracts. ``places``: where in ``rows`` the row of each key lies, None for one after the other."""

    rows: pa.Table
    keys: Places
    places: Places | None = None


def diff_rows(
    before: RowState, after: RowState, key_count: int, *, deduplicate: bool = False, ignored: Sequence[str] = ()
) -> pa.Table:
    """The changes that lead from ``before`` to ``after``: their columns, with the kind of each change, in key order.

    Keys are numbered below ``key_count``. ``ignored``: columns that do not count where rows are compared by value.
    """
    old, new = _places(before, key_count), _places(after, key_count)
    differs = np.ones(key_count, dtype=np.bool_)
    both = np.flatnonzero((old >= 0) & (new >= 0))
    differs[both] = ~_unchanged(before.rows, old[both], after.rows, new[both], deduplicate=deduplicate, ignored=ignored)
    removed = np.flatnonzero((old >= 0) & differs)
    added = np.flatnonzero((new >= 0) & differs)
    shared = before.rows is after.rows
    places = np.concatenate([old[removed], new[added] + (0 if shared else before.rows.num_rows)])
    kinds = np.concatenate(
        [
            np.where(new[removed] >= 0, np.int8(RowKind.UPDATE_BEFORE), np.int8(RowKind.DELETE)),
            np.where(old[added] >= 0, np.int8(RowKind.UPDATE_AFTER), np.int8(RowKind.INSERT)),
        ]
    )
    order = np.argsort(np.concatenate([2 * removed, 2 * added + 1]), kind="stable")
    rows = (before.rows if shared else pa.concat_tables([before.rows, after.rows])).combine_chunks()
    diff = take_rows(rows, places[order])
    return diff.set_column(diff.schema.get_field_index(KIND_COLUMN), rows.schema.field(KIND_COLUMN), pa.array(kinds[order]))


def equal_values(left: pa.Array, right: pa.Array) -> Mask:
    """Row by row, whether two arrays of one type and length hold the same value."""
    valid = left.is_valid().to_numpy(zero_copy_only=False)
    same: Mask = valid == right.is_valid().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(same & valid)
    if not len(places):
        return same
    if len(places) < len(left):
        valid_places = pa.array(places)
        left, right = left.take(valid_places), right.take(valid_places)
    same[places] = _equal_present(left, right)
    return same


def _places(state: RowState, key_count: int) -> Places:
    """Per key the place of its row, -1 for none."""
    places = np.full(key_count, -1, dtype=np.int64)
    places[state.keys] = np.arange(len(state.keys)) if state.places is None else state.places
    return places


def _unchanged(before: pa.Table, old: Places, after: pa.Table, new: Places, *, deduplicate: bool, ignored: Sequence[str]) -> Mask:
    same = np.ones(len(old), dtype=np.bool_)
    if not deduplicate:
        same = _numbers(before)[old] == _numbers(after)[new]
    names = [name for name in before.schema.names if name not in (SEQUENCE_COLUMN, KIND_COLUMN)]
    # Most rows differ early: each column looks only at those that are still equal.
    for name in names:
        if deduplicate and name in ignored:
            continue
        left = np.flatnonzero(same)
        if not len(left):
            break
        same[left] = equal_values(_at(before, name, old[left]), _at(after, name, new[left]))
    return same


def _equal_present(left: pa.Array, right: pa.Array) -> Mask:
    """Compares as :func:`equal_values` does, arrays without nulls at the top."""
    kind = left.type
    if pa.types.is_struct(kind):
        same = np.ones(len(left), dtype=np.bool_)
        for position in range(kind.num_fields):
            same &= equal_values(left.field(position), right.field(position))
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(left, right)
    if pa.types.is_floating(kind):
        return _equal_floats(left, right)
    equal: Mask = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return equal


def _equal_floats(left: pa.Array, right: pa.Array) -> Mask:
    a, b = (np.asarray(side.cast(pa.float64()).to_numpy(zero_copy_only=False)) for side in (left, right))
    # By bits: 0.0 and -0.0 are two values. All NaNs are one.
    same: Mask = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
    return same


def _equal_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = [np.diff(side.offsets.to_numpy()) for side in (left, right)]
    same: Mask = lengths[0] == lengths[1]
    places = np.flatnonzero(same & (lengths[0] > 0))
    if not len(places):
        return same
    filled_places = pa.array(places)
    parts = [_elements(side.take(filled_places)) for side in (left, right)]
    elements = equal_values(*parts)
    starts = np.concatenate([[0], np.cumsum(lengths[0][places])[:-1]])
    same[places] = np.logical_and.reduceat(elements, starts)
    return same


def _elements(array: pa.Array) -> pa.Array:
    """The elements of lists that were just gathered, so that nothing lies outside of the offsets."""
    offsets = array.offsets
    start, stop = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
    if pa.types.is_map(array.type):
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
        return entries.slice(start, stop - start)
    return array.values.slice(start, stop - start)


def _at(table: pa.Table, name: str, places: Places) -> pa.Array:
    return one_chunk(table.column(name)).take(pa.array(places))


def _numbers(table: pa.Table) -> Places:
    return np.asarray(table.column(SEQUENCE_COLUMN).to_numpy(), dtype=np.int64)
