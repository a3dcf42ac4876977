"""Counts the days of ORC files before 1582-10-15 as Java's writers do: in the Julian calendar, unless a file says otherwise.

    a table    0001-01-01 is day -719162, in the calendar of today, whatever the year
    a file     0001-01-01 is day -719164, as people counted then; 1582-10-05 to 14 were no days

Whole arrays at a time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError

Days = npt.NDArray[np.int64]

# 1582-10-15, and the day of the same date in the calendar before it.
_CUT_OVER, _CUT_OVER_DATE = -141_427, -141_437
_EPOCH_JULIAN_DAY = 2_440_588


def days_of_file(column: pa.Array) -> pa.Array:
    """The dates of a table, at any depth of a column, as days of a file. Raises InvalidInputError for one that was no day."""
    return _changed(column, _CUT_OVER, _to_julian)


def days_of_table(column: pa.Array) -> pa.Array:
    """The inverse."""
    return _changed(column, _CUT_OVER, _from_julian)


def has_dates(kind: pa.DataType) -> bool:
    """True for a type with dates in it."""
    return bool(pa.types.is_date32(kind)) or any(has_dates(kind.field(place).type) for place in range(kind.num_fields))


def _changed(column: pa.Array, before: int, change: Callable[[Days], Days]) -> pa.Array:
    kind = column.type
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32())
        least = pc.min(days).as_py()
        if least is None or least >= before:
            return column
        numbers: Days = pc.fill_null(days, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        early = numbers < before
        numbers[early] = change(numbers[early])
        mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(numbers.astype(np.int32), mask=mask).cast(kind)
    if not has_dates(kind):
        return column
    if pa.types.is_struct(kind):
        children = [_changed(child, before, change) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null() if column.null_count else None)
    if pa.types.is_map(kind):
        lists = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        keys, items = (_changed(child, before, change) for child in lists.flatten().flatten())
        return remapped(lists, keys, items, kind)
    return relisted(column, _changed(column.flatten(), before, change), kind)


def relisted(lists: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Lists of other values, as long as they were."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=lists.is_null() if lists.null_count else None)


def remapped(lists: pa.Array, keys: pa.Array, items: pa.Array, target: pa.DataType) -> pa.Array:
    """Maps of other keys and values; ``lists``: as long as they were."""
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    like = relisted(lists, entries, pa.list_(pa.field("entries", entries.type, nullable=False)))
    return pa.Array.from_buffers(target, len(like), like.buffers()[:2], children=[entries])


def _to_julian(days: Days) -> Days:
    if (days >= _CUT_OVER_DATE).any():
        raise InvalidInputError(
            "expected dates before 1582-10-05 or after 1582-10-14, found one of the days that the calendar of ORC files leaves "
            "out; correct the row, or write another format",
            kind="out-of-range",
        )
    dates: Any = days.astype("M8[D]")
    months = dates.astype("M8[M]").astype(np.int64)
    year, month = months // 12 + 1970, months % 12 + 1
    day = (dates - dates.astype("M8[M]")).astype(np.int64) + 1
    early = (14 - month) // 12
    since, march = year + 4800 - early, month + 12 * early - 3
    julian_day: Days = day + (153 * march + 2) // 5 + 365 * since + since // 4 - 32_083
    return julian_day - _EPOCH_JULIAN_DAY


def _from_julian(days: Days) -> Days:
    shifted = days + _EPOCH_JULIAN_DAY + 32_082
    since = (4 * shifted + 3) // 1461
    rest = shifted - 1461 * since // 4
    march = (5 * rest + 2) // 153
    day = rest - (153 * march + 2) // 5 + 1
    month = march + 3 - 12 * (march // 10)
    year = since - 4800 + march // 10
    months: Any = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    result: Days = months.astype("M8[D]").astype(np.int64) + day - 1
    return result
