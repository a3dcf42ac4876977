"""Column statistics: what readers skip files by.

    SimpleStats   the stored form: a row of minima, a row of maxima (BinaryRow, nullable types), null counts
    ColumnStats   one column as Python values; a missing bound is unknown, unless all rows are null

Bounds that we write are exact, never truncated, or unknown. Bounds of others may be truncated text: still bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW, decode_row, encode_row, row_arity
from tablestore.types.datatypes import AtomicType, DataType, Field, TypeRoot


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleStats:
    """Statistics of some columns as manifests hold them. A null count of None is unknown."""

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS = SimpleStats(min_values=EMPTY_ROW, max_values=EMPTY_ROW, null_counts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """Bounds of one column: ``min <= every non-null value <= max`` where known."""

    min: Any = None
    max: Any = None
    null_count: int | None = None


UNKNOWN = ColumnStats()


def stats_schema(name: str) -> dict[str, object]:
    """The Avro record of :class:`SimpleStats` under the record name ``name``."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": "_MIN_VALUES", "type": "bytes"},
            {"name": "_MAX_VALUES", "type": "bytes"},
            {
                "name": "_NULL_COUNTS",
                "type": ["null", {"type": "array", "items": ["null", "long"]}],
                "default": None,
            },
        ],
    }


def stats_to_record(stats: SimpleStats) -> dict[str, object]:
    """The Avro record of ``stats``."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


def stats_from_record(record: Mapping[str, Any] | None, where: str) -> SimpleStats:
    """The inverse of :func:`stats_to_record`; a missing record is :data:`EMPTY_STATS`. ``where`` is for messages."""
    if record is None:
        return EMPTY_STATS
    low, high, counts = record["_MIN_VALUES"], record["_MAX_VALUES"], record.get("_NULL_COUNTS")
    if low == EMPTY_ROW and high == EMPTY_ROW and not counts:
        return EMPTY_STATS
    if low is None or high is None:
        raise FormatError(f"{where}: expected statistics with two rows of bounds, found none. Restore the file.")
    return SimpleStats(min_values=low, max_values=high, null_counts=tuple(counts or ()))


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
    """One ColumnStats per type. Statistics over no column (arity 0) are unknown for every column.

    :raises FormatError: if the rows are not rows of these types.
    """
    if row_arity(stats.min_values) == 0 and row_arity(stats.max_values) == 0:
        return [UNKNOWN] * len(types)
    lows = decode_row(stats.min_values, types)
    highs = decode_row(stats.max_values, types)
    counts = stats.null_counts + (None,) * (len(types) - len(stats.null_counts))
    return [
        ColumnStats(min=low, max=high, null_count=count) for low, high, count in zip(lows, highs, counts[: len(types)], strict=True)
    ]


def collect_stats(table: pa.Table, fields: Sequence[Field]) -> list[ColumnStats]:
    """Exact statistics of the columns of ``table`` named by ``fields``, in that order.

    Nested columns have a null count only. A column of floats with a NaN has unknown bounds; a zero bound covers both
    zeros, since Java orders -0.0 below 0.0.
    """
    return [_collect(table.column(field.name), field.type) for field in fields]


def merge_stats(first: Sequence[ColumnStats], second: Sequence[ColumnStats]) -> list[ColumnStats]:
    """Statistics of two sets of rows together. A bound unknown in one is unknown in both."""
    return [_merge(one, other) for one, other in zip(first, second, strict=True)]


def _merge(one: ColumnStats, other: ColumnStats) -> ColumnStats:
    known = one.null_count is not None and other.null_count is not None
    return ColumnStats(
        min=None if one.min is None or other.min is None else min(one.min, other.min),
        max=None if one.max is None or other.max is None else max(one.max, other.max),
        null_count=one.null_count + other.null_count if known else None,  # type: ignore[operator]
    )


class StatsCollector:
    """Exact statistics of rows that come in pieces, as :func:`collect_stats` would give them of all at once."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)
        self._stats: list[ColumnStats | None] = [None] * len(fields)
        self._nulls = [0] * len(fields)

    def add(self, table: pa.Table) -> None:
        """Take a piece, whose columns are found by name."""
        for position, stats in enumerate(collect_stats(table, self._fields)):
            assert stats.null_count is not None, "counted just now"
            self._nulls[position] += stats.null_count
            # A piece of nothing but nulls says nothing about the bounds.
            if stats.null_count < table.num_rows:
                before = self._stats[position]
                self._stats[position] = stats if before is None else _merge(before, stats)

    def result(self) -> list[ColumnStats]:
        """The statistics of everything that was added, in the order of the fields."""
        return [
            ColumnStats(min=stats.min if stats else None, max=stats.max if stats else None, null_count=nulls)
            for stats, nulls in zip(self._stats, self._nulls, strict=True)
        ]


def _collect(column: pa.ChunkedArray, data_type: DataType) -> ColumnStats:
    nulls = column.null_count
    if not isinstance(data_type, AtomicType) or nulls == len(column):
        return ColumnStats(null_count=nulls)
    if data_type.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
        # The Java core compares these bounds as signed bytes, and would miss rows: unknown is what it writes itself.
        return ColumnStats(null_count=nulls)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    floating = pa.types.is_floating(column.type)
    if floating and pc.any(pc.is_nan(column)).as_py():
        return ColumnStats(null_count=nulls)
    bounds = pc.min_max(column)
    low, high = python_value(bounds["min"]), python_value(bounds["max"])
    if floating:
        low = -0.0 if low == 0 else low
        high = 0.0 if high == 0 else high
    return ColumnStats(min=low, max=high, null_count=nulls)


def python_value(scalar: pa.Scalar) -> Any:
    """A scalar as metadata holds it: ``as_py``, but nanosecond timestamps as ``numpy.datetime64``."""
    if pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ns":
        # Python's datetime ends at microseconds.
        return np.datetime64(scalar.value, "ns")
    return scalar.as_py()
