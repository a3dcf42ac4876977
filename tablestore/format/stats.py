"""Column statistics: the value ranges and null counts by which readers skip files.

    SimpleStats   the stored form: a row of minima, a row of maxima (BinaryRow, nullable types), null counts
    ColumnStats   one column as Python values; a missing bound is unknown, unless all rows are null

A bound need not be a value: text is cut to a number of characters, the lower bound as it is, the upper one rounded up to the next
text of that length, and if there is none both are unknown. So manifests stay small whatever is written. Other bounds are exact,
or unknown:

    values  "apple" .. "pear tree"        cut to 4: "appl" .. "peas"        U+10FFFF only: unknown
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.binaryrow import EMPTY_ROW, decode_row, encode_row, row_arity
from tablestore.types.datatypes import BINARY_ROOTS, AtomicType, DataType, Field


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleStats:
    """Statistics of some columns as manifests hold them. A null count of None is unknown."""

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


_LAST_CHARACTER, _FIRST_SURROGATE, _AFTER_SURROGATES = 0x10FFFF, 0xD800, 0xE000

EMPTY_STATS = SimpleStats(min_values=EMPTY_ROW, max_values=EMPTY_ROW, null_counts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """Bounds of one column: ``min <= every non-null value <= max`` where known."""

    min: Any = None
    max: Any = None
    null_count: int | None = None


UNKNOWN_STATS = ColumnStats()


def encode_stats(columns: Sequence[ColumnStats], types: Sequence[DataType]) -> SimpleStats:
    """The stored form of one ColumnStats per type."""
    if not types:
        return EMPTY_STATS
    return SimpleStats(
        min_values=encode_row([column.min for column in columns], types, java_projection=False),
        max_values=encode_row([column.max for column in columns], types, java_projection=False),
        null_counts=tuple(column.null_count for column in columns),
    )


def decode_stats(stats: SimpleStats, types: Sequence[DataType]) -> list[ColumnStats]:
    """One ColumnStats per type; all unknown if the statistics are over no column (arity 0). Raises FormatError for other rows."""
    if row_arity(stats.min_values) == 0 and row_arity(stats.max_values) == 0:
        return [UNKNOWN_STATS] * len(types)
    lows = decode_row(stats.min_values, types, beyond_python_is_null=True)
    highs = decode_row(stats.max_values, types, beyond_python_is_null=True)
    counts = stats.null_counts + (None,) * (len(types) - len(stats.null_counts))
    return [
        ColumnStats(min=low, max=high, null_count=count) for low, high, count in zip(lows, highs, counts[: len(types)], strict=True)
    ]


def cut_upper(text: str, characters: int) -> str | None:
    """The least text of at most ``characters`` that is not below any text that begins as ``text`` does; None if there is none.

    ``text`` itself if it is short enough. Texts are ordered by code point, which is the order of their UTF-8 bytes.
    """
    if len(text) <= characters:
        return text
    for length in range(characters - 1, -1, -1):
        code = ord(text[length])
        if code < _LAST_CHARACTER:
            following = _AFTER_SURROGATES if code + 1 == _FIRST_SURROGATE else code + 1
            return text[:length] + chr(following)
    return None


class StatsCollector:
    """Statistics of rows that come in pieces: null counts are exact, bounds of the texts of a column have at most as many
    characters as ``characters`` says for it; 0 for a column without bounds.

    Nested columns have a null count only. A column of floats with a NaN has unknown bounds; a zero bound covers both
    zeros, since Java orders -0.0 below 0.0. A bound that no Python value stands for (the year 10000) is unknown.
    """

    def __init__(self, fields: Sequence[Field], characters: Sequence[int]) -> None:
        self._columns = tuple(zip(fields, characters, strict=True))
        self._stats: list[ColumnStats | None] = [None] * len(fields)
        self._nulls = [0] * len(fields)

    def add(self, table: pa.Table) -> None:
        """Take a piece, whose columns are found by name."""
        for position, (field, characters) in enumerate(self._columns):
            column = table.column(field.name)
            self._nulls[position] += column.null_count
            # A piece of nothing but nulls says nothing about the bounds.
            if column.null_count < len(column):
                before, stats = self._stats[position], _bounds(column, field.type, characters)
                self._stats[position] = stats if before is None else _merge(before, stats)

    def result(self) -> list[ColumnStats]:
        """The statistics of everything that was added, in the order of the fields."""
        return [replace(stats or UNKNOWN_STATS, null_count=nulls) for stats, nulls in zip(self._stats, self._nulls, strict=True)]


def cut_bounds(stats: ColumnStats, characters: int) -> ColumnStats:
    """The statistics with bounds of texts of at most so many characters; without bounds for 0."""
    if characters == 0:
        return ColumnStats(null_count=stats.null_count)
    if not isinstance(stats.min, str) or not isinstance(stats.max, str):
        return stats
    high = cut_upper(stats.max, characters)
    return replace(stats, min=None if high is None else stats.min[:characters], max=high)


def _merge(one: ColumnStats, other: ColumnStats) -> ColumnStats:
    """The bounds of two sets of rows together. One that is unknown in one is unknown in both."""
    return ColumnStats(
        min=None if one.min is None or other.min is None else min(one.min, other.min),
        max=None if one.max is None or other.max is None else max(one.max, other.max),
    )


def _bounds(column: pa.ChunkedArray, data_type: DataType, characters: int) -> ColumnStats:
    if characters == 0 or not isinstance(data_type, AtomicType):
        return UNKNOWN_STATS
    if data_type.root in BINARY_ROOTS:
        # The Java core compares these bounds as signed bytes, and would miss rows: unknown is what it writes itself.
        return UNKNOWN_STATS
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    floating = pa.types.is_floating(column.type)
    if floating and pc.any(pc.is_nan(column)).as_py():
        return UNKNOWN_STATS
    bounds = pc.min_max(column)
    low, high = _bound_value(bounds["min"]), _bound_value(bounds["max"])
    if low is None or high is None:
        # Others expect both or none.
        return UNKNOWN_STATS
    if floating:
        return ColumnStats(min=-0.0 if low == 0 else low, max=0.0 if high == 0 else high)
    return cut_bounds(ColumnStats(min=low, max=high), characters)


def _bound_value(scalar: pa.Scalar) -> Any:
    try:
        value = python_value(scalar)
    except (OverflowError, ValueError):
        return None
    return None if isinstance(value, np.datetime64) and np.isnat(value) else value


def python_value(scalar: pa.Scalar) -> Any:
    """A scalar as metadata holds it: ``as_py``, but nanosecond timestamps as ``numpy.datetime64``."""
    if pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ns":
        # Python's datetime ends at microseconds.
        return np.datetime64(scalar.value, "ns")
    return scalar.as_py()
