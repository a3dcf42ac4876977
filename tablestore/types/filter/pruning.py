"""Prunes files: decides from the value ranges of a file's columns whether it can hold a row that a filter keeps.

The tree is evaluated over sets of outcomes: for every node, could some row be true, could one be false,
given only bounds and null counts. Each step over-approximates, so "cannot be true" is certain, under NOT as well:

    a in [3, 7], no nulls     a > 9  -> {false}     NOT a > 9  -> {true}     a > 5  -> {true, false}

Bounds need not be attained (truncated strings). A bound of None is unknown, unless all values are null. Bounds that
do not compare with the literal (another type after schema evolution) count as unknown too.
"""

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from tablestore.types.filter.predicate import (
    And,
    Comparison,
    Computed,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    like_prefix,
    push_negation,
)
from tablestore.types.timevalues import nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The known range of one column of a file. ``nan_free``: for floats, that the bounds cover every value; writers of
    other engines leave NaN out of them."""

    min: object | None
    max: object | None
    null_count: int | None
    row_count: int
    nan_free: bool = False


def may_match(predicate: Predicate | None, ranges: Mapping[str, ColumnRange]) -> bool:
    """False only if no row can be kept. A column without a range is unknown."""
    if any(column_range.row_count == 0 for column_range in ranges.values()):
        return False
    return predicate is None or _outcomes(push_negation(predicate), ranges).true


def values_may_match(predicate: Predicate | None, values: Mapping[str, object]) -> bool:
    """Answers as :func:`may_match`, for rows that all have these values in these columns."""
    return may_match(
        predicate,
        {
            name: ColumnRange(min=value, max=value, null_count=0 if value is not None else 1, row_count=1)
            for name, value in values.items()
        },
    )


class _Outcomes(NamedTuple):
    """The outcomes that some row may have. Unknown is not kept count of: no connector makes true or false of it."""

    true: bool
    false: bool


class _Ordered(NamedTuple):
    """A value on the scale of its kind; values of two kinds do not compare."""

    kind: str
    key: float | int | Decimal | bytes


class _Span(NamedTuple):
    """The interval of the non-null values, None for open ends."""

    low: _Ordered | None
    high: _Ordered | None
    some: bool  # there may be non-null values
    nulls: bool  # there may be nulls


_ANY = _Outcomes(True, True)


def _outcomes(predicate: Predicate, ranges: Mapping[str, ColumnRange]) -> _Outcomes:
    match predicate:
        case Constant(value):
            return _Outcomes(value is True, value is False)
        case And(children):
            parts = [_outcomes(child, ranges) for child in children]
            return _Outcomes(all(p.true for p in parts), any(p.false for p in parts))
        case Or(children):
            parts = [_outcomes(child, ranges) for child in children]
            return _Outcomes(any(p.true for p in parts), all(p.false for p in parts))
        case Not(child):
            inner = _outcomes(child, ranges)
            return _Outcomes(inner.false, inner.true)
        case Computed():
            return _ANY
        case _:
            column_range = ranges.get(predicate.field)
            return _ANY if column_range is None else _leaf(predicate, _span(column_range))


def _span(column_range: ColumnRange) -> _Span:
    nulls = column_range.null_count is None or column_range.null_count > 0
    if column_range.null_count is not None and column_range.null_count >= column_range.row_count:
        return _Span(None, None, some=False, nulls=True)
    low, high = _ordered(column_range.min), _ordered(column_range.max)
    if isinstance(column_range.min, float) or isinstance(column_range.max, float):
        # NaN is the greatest number, and may stand outside of bounds that leave it out.
        high = high if column_range.nan_free else None
    return _Span(low, high, some=True, nulls=nulls)


def _leaf(predicate: Comparison | IsIn | IsNull | StartsWith | Like, span: _Span) -> _Outcomes:
    match predicate:
        case IsNull():
            return _Outcomes(span.nulls, span.some)
        case Comparison(op, _, literal):
            hit = _comparison(op, span, _ordered(literal))
        case IsIn(_, values, by_bits):
            candidates = [_ordered(value) for value in values if value is not None]
            hits = [_comparison("=", span, value) for value in candidates]
            # A range of one number has both zeros in it.
            miss = all(false for _, false in hits) or (by_bits and any(isinstance(value, float) and not value for value in values))
            has_null = len(candidates) < len(values)
            # A miss in a list with NULL is unknown, not false.
            hit = (any(true for true, _ in hits), miss and not has_null)
        case StartsWith(_, prefix):
            hit = _prefix(span, prefix)
        case Like(_, pattern):
            prefix, suffix = like_prefix(pattern)
            true, false = _prefix(span, prefix)
            hit = (true, false if suffix == "%" else True)
    return _Outcomes(span.some and hit[0], span.some and hit[1])


def _comparison(op: Operator, span: _Span, value: _Ordered | None) -> tuple[bool, bool]:
    """Two flags: some non-null value may satisfy the comparison; some may fail it."""
    if value is None:
        return True, True
    below = _less(span.low, value, or_equal=False)  # some value may be less
    above = _less(value, span.high, or_equal=False)  # some value may be greater
    equal = _less(span.low, value, or_equal=True) and _less(value, span.high, or_equal=True)
    match op:
        case "=":
            return equal, below or above
        case "!=":
            return below or above, equal
        case "<":
            return below, equal or above
        case "<=":
            return below or equal, above
        case ">":
            return above, equal or below
        case ">=":
            return above or equal, below


def _less(left: _Ordered | None, right: _Ordered | None, *, or_equal: bool) -> bool:
    """left < right, or that this is not known."""
    if left is None or right is None or left.kind != right.kind:
        return True
    return bool(left.key <= right.key if or_equal else left.key < right.key)  # type: ignore[operator]


def _prefix(span: _Span, prefix: str) -> tuple[bool, bool]:
    prefix_bytes = prefix.encode("utf-8", "surrogatepass")
    low, high = (_text_key(end) for end in (span.low, span.high))
    true = (low is None or low[: len(prefix_bytes)] <= prefix_bytes) and (high is None or high[: len(prefix_bytes)] >= prefix_bytes)
    inside = low is not None and high is not None and low.startswith(prefix_bytes) and high.startswith(prefix_bytes)
    return true, not inside


def _text_key(end: _Ordered | None) -> bytes | None:
    return end.key if end is not None and end.kind == "text" and isinstance(end.key, bytes) else None


def _ordered(value: object) -> _Ordered | None:
    """The value on its scale; None if it is unknown there."""
    match value:
        case bool():
            return _Ordered("bool", int(value))
        case float() if math.isnan(value):
            return None
        case int() | float() | Decimal():
            return _Ordered("number", value)
        case str():
            return _Ordered("text", value.encode("utf-8", "surrogatepass"))
        case bytes():
            return _Ordered("bytes", value)
        case np.datetime64():
            return None if np.isnat(value) else _Ordered("instant", nanoseconds(value))
        case dt.datetime():
            return _Ordered("instant", nanoseconds(value))
        case dt.date():
            return _Ordered("date", value.toordinal())
        case dt.time():
            return _Ordered("time", ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond)
        case _:
            return None
