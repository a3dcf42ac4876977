"""Derives from a condition of a query the predicate that a scan of one of its tables can use.

    t.a = 1 AND (t.b > 2 OR u.c = 3) AND t.d IN (4, 5)          for t:  a = 1 AND d IN (4, 5)

The answer is implied by the condition: every row for which the condition is true fulfils it. A comparison is taken over only if
the engine compares as ``Table.scan`` does, whatever the session's settings: both sides of one kind, and a literal that the
column's type holds exactly. Timestamps depend on the session's time zone: their bounds are moved outwards by a day.
:mod:`~tablestore.types.filter.treepredicate` reads the condition; here are the terms of queries.
"""

import calendar
import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.types.datatypes import INTEGER_ROOTS, MAX_PRECISION, TIMESTAMP_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.filter.binding import bind_comparison, bind_in, bind_like
from tablestore.types.filter.filters import MAX_FILTER_DEPTH, check_depth
from tablestore.types.filter.predicate import Operator, Predicate, all_of
from tablestore.types.filter.treepredicate import LiteralValue, negative, plain_literal, predicate_of

_INTEGER_CASTS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_TIMESTAMP_CASTS = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_DAY = dt.timedelta(days=1)
_UNITS = {"DAY": ("days", 1), "WEEK": ("days", 7), "MONTH": ("months", 1), "YEAR": ("months", 12)}


class _NoValue(Exception):
    """Signals an expression that is no literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Reads conditions for one table. ``field_of`` gives the table's column that a name stands for, None for any other."""

    field_of: Callable[[exp.Column], Field | None]
    parameters: Mapping[str, Any]

    def filter(self, condition: exp.Expression) -> Predicate | None:
        """The filter that ``condition`` implies, unless it is nested deeper than a filter may be."""
        implied = predicate_of(condition, self)
        try:
            if implied is not None:
                # Others may be put around it.
                check_depth(implied, MAX_FILTER_DEPTH // 2)
        except InvalidInputError:
            return None
        return implied

    # The terms of a query, for the converter.

    def field(self, column: exp.Column) -> Field | None:
        return self.field_of(column)

    def literal(self, node: exp.Expression) -> LiteralValue | None:
        """The value of a literal, a parameter, or a date moved by an interval."""
        try:
            return LiteralValue(self._constant(node))
        except (_NoValue, ValueError, OverflowError, InvalidOperation):
            return None

    def comparison(self, op: Operator, field: Field, value: Any, *, exact: bool) -> Predicate | None:
        if _root(field) in TIMESTAMP_ROOTS:
            return None if exact else _around(op, field, value)
        literal = _literal(field, value)
        if literal is None or (isinstance(value, bool) and op not in ("=", "!=")):
            return None
        return bind_comparison(op, field, literal)

    def membership(self, field: Field, values: list[Any]) -> Predicate | None:
        literals = [None if value is None else _literal(field, value) for value in values]
        # A list of several kinds is brought to one type first.
        kinds = {_kind(value) for value in values if value is not None}
        return bind_in(field, literals) if len(kinds) == 1 and literals.count(None) == values.count(None) else None

    def like(self, field: Field, pattern: str | None, escape: str) -> Predicate | None:
        if pattern is None or "\\" in pattern or escape != "\\" or _root(field) is not TypeRoot.VARCHAR:
            return None
        return bind_like(field, pattern)

    def other(self, node: exp.Expression) -> Predicate | None:
        if not isinstance(node, exp.StartsWith) or not isinstance(node.this, exp.Column):
            return None
        prefix, field = self.literal(node.expression), self.field(node.this)
        if field is None or prefix is None or not isinstance(prefix.value, str) or "%" in prefix.value or "_" in prefix.value:
            return None
        return self.like(field, prefix.value + "%", "\\")

    def _constant(self, node: exp.Expression) -> Any:
        match node:
            case exp.Paren():
                return self._constant(node.this)
            case exp.Literal(is_string=False):
                return _number(str(node.this))
            case exp.Neg():
                value = self._constant(node.this)
                if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                    return negative(value)
            case exp.Placeholder() if node.this in self.parameters:
                return _parameter(self.parameters[node.this])
            case exp.Cast():
                return _cast(self._constant(node.this), node.to)
            case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
                value = self._constant(node.this)
                if type(value) is dt.date:
                    return self._moved(value, node.expression, 1 if isinstance(node, exp.Add) else -1)
            case _ if (plain := plain_literal(node)) is not None:
                return plain.value
        raise _NoValue

    def _moved(self, day: dt.date, interval: exp.Interval, sign: int) -> dt.date:
        unit = str(interval.args["unit"] or "").upper().removesuffix("S")
        if unit not in _UNITS or interval.this is None:
            raise _NoValue
        kind, factor = _UNITS[unit]
        count = sign * factor * int(str(self._constant(interval.this)))
        if kind == "days":
            return day + dt.timedelta(days=count)
        year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
        return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _root(field: Field) -> TypeRoot | None:
    return field.type.root if isinstance(field.type, AtomicType) else None


def _kind(value: Any) -> type:
    return Decimal if type(value) in (int, Decimal) else type(value)


def _number(text: str) -> int | float | Decimal:
    if "e" in text.lower():
        return float(text)
    return int(text) if text.isdecimal() else Decimal(text)


def _parameter(value: Any) -> Any:
    if type(value) in (bool, int, float, str, Decimal, dt.date, dt.datetime):
        return value
    raise _NoValue


def _cast(value: Any, to: exp.DataType) -> Any:
    kind = to.this.name
    if kind == "DATE" and type(value) is str and _DATE.fullmatch(value):
        return dt.date.fromisoformat(value)
    if kind == "DATE" and type(value) is dt.date:
        return value
    if kind in _TIMESTAMP_CASTS and type(value) in (str, dt.date):
        return _moment(value)
    if kind in _INTEGER_CASTS and type(value) is int:
        return value
    if kind == "DOUBLE" and type(value) in (int, Decimal, float):
        return float(value)
    raise _NoValue


def _moment(value: Any) -> dt.datetime:
    """A timestamp in some zone: the reader adds a day on both sides."""
    text = value if isinstance(value, str) else value.isoformat()
    if isinstance(value, str) and not _MOMENT.fullmatch(text):
        raise _NoValue
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


def _around(op: Operator, field: Field, value: Any) -> Predicate | None:
    """A comparison with a timestamp, wide enough for every time zone of the session."""
    zone = dt.UTC if _root(field) is TypeRoot.TIMESTAMP_LTZ else None
    try:
        moment = _moment(value)
        first, last = ((moment + move).replace(tzinfo=zone) for move in (-_DAY, _DAY))
    except (_NoValue, ValueError, OverflowError, AttributeError):
        return None
    ends: Mapping[Operator, tuple[Operator, ...]] = {"=": (">=", "<="), ">": (">=",), ">=": (">=",), "<": ("<=",), "<=": ("<=",)}
    if op not in ends:
        return None
    return all_of([bind_comparison(end, field, first if end == ">=" else last) for end in ends[op]])


def _literal(field: Field, value: Any) -> Any:
    """A value that the column's type holds exactly, and that every engine compares with it in the same way; None for any other."""
    root = _root(field)
    if root is TypeRoot.BOOLEAN:
        return value if type(value) is bool else None
    if root is TypeRoot.VARCHAR:
        return value if type(value) is str and "\\" not in value else None
    if root is TypeRoot.DATE:
        if type(value) is str and _DATE.fullmatch(value):
            return _day(value)
        return value if type(value) is dt.date else None
    if type(value) not in (int, float, Decimal) or (type(value) is float and not np.isfinite(value)):
        return None
    if root in INTEGER_ROOTS or root is TypeRoot.DECIMAL:
        return value if _is_exact(field, value) else None
    if root is TypeRoot.DOUBLE and (type(value) is not int or abs(value) <= 2**53):
        return float(value) if np.isfinite(float(value)) else None
    if root is TypeRoot.FLOAT and abs(value) < 2**24 and Decimal(float(np.float32(float(value)))) == Decimal(value):
        return float(value)
    return None


def _is_exact(field: Field, value: int | float | Decimal) -> bool:
    """True for a number that both sides hold without loss, for an integer or decimal column."""
    if isinstance(value, float):
        return False
    number = Decimal(value)
    scale = max(0, -int(number.as_tuple().exponent))
    before = max(0, number.adjusted() + 1)
    assert isinstance(field.type, AtomicType)
    column_scale = field.type.scale or 0
    column_before = (field.type.precision or 0) - column_scale if field.type.root is TypeRoot.DECIMAL else 20
    # Wider decimals lose digits when Spark brings two of them to one type.
    return max(scale, column_scale) + max(before, column_before) <= MAX_PRECISION


def _day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None
