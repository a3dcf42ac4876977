"""Derives from a condition the part that a scan of one table can use.

    t.a = 1 AND (t.b > 2 OR u.c = 3) AND t.d IN (4, 5)          for t:  `a` = 1 AND `d` IN (4, 5)

The answer is implied by the condition: every row for which the condition is true fulfils it. A comparison is taken over only if
the engine compares as ``Table.scan`` does, whatever the session's settings: both sides of one kind, and a literal that the
column's type holds exactly. Timestamps depend on the session's time zone: their bounds are moved outwards by a day.
"""

import calendar
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.types.datatypes import INTEGER_ROOTS, MAX_PRECISION, TIMESTAMP_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.filter.binding import bind_comparison, bind_in, bind_like
from tablestore.types.filter.filters import MAX_FILTER_DEPTH, check_depth
from tablestore.types.filter.predicate import FLIPPED, IsNull, Not, Operator, Predicate, all_of, any_of

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_INTEGER_CASTS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_TIMESTAMP_CASTS = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_DAY = dt.timedelta(days=1)
_UNITS = {"DAY": ("days", 1), "WEEK": ("days", 7), "MONTH": ("months", 1), "YEAR": ("months", 12)}


# A filter that is put together with others still has the levels that a filter may have.
_SPARE_LEVELS = MAX_FILTER_DEPTH // 2


class _NoValue(Exception):
    """Signals an expression that is no literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Reads conditions for one table. ``field_of`` gives the table's column that a name stands for, None for any other."""

    field_of: Callable[[exp.Column], Field | None]
    parameters: Mapping[str, Any]

    def filter(self, condition: exp.Expr) -> Predicate | None:
        """The filter that ``condition`` implies, unless it is nested deeper than a filter may be."""
        implied = self.implied(condition)
        try:
            if implied is not None:
                check_depth(implied, MAX_FILTER_DEPTH - _SPARE_LEVELS)
        except InvalidInputError:
            return None
        return implied

    def implied(self, node: exp.Expr) -> Predicate | None:
        """A condition on the table alone that holds wherever ``node`` is true; None: nothing is known."""
        match node:
            case exp.Paren():
                return self.implied(node.this)
            case exp.And():
                said = [part for operand in _operands(node) if (part := self.implied(operand)) is not None]
                return all_of(said) if said else None
            case exp.Or():
                parts = _all_known([self.implied(operand) for operand in _operands(node)])
                return None if parts is None else any_of(parts)
            case exp.Not():
                return self._not(node)
            case exp.Between():
                return self._between(node, widen=True)
            case _:
                return self._leaf(node, widen=True)

    def _same(self, node: exp.Expr) -> Predicate | None:
        """A condition on the table alone that is true, false and unknown where ``node`` is."""
        match node:
            case exp.Paren():
                return self._same(node.this)
            case exp.And() | exp.Or():
                parts = _all_known([self._same(operand) for operand in _operands(node)])
                return None if parts is None else all_of(parts) if isinstance(node, exp.And) else any_of(parts)
            case exp.Not():
                return self._not(node)
            case exp.Between():
                return self._between(node, widen=False)
            case _:
                return self._leaf(node, widen=False)

    def _not(self, node: exp.Expr) -> Predicate | None:
        """A NOT, or several of them one inside of the other."""
        negated = False
        while isinstance(node, (exp.Not, exp.Paren)):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        inner = self._same(node)
        return Not(inner) if negated and inner is not None else inner

    def _between(self, node: exp.Between, *, widen: bool) -> Predicate | None:
        if node.args.get("symmetric"):
            return None
        ends = [self._compared(">=", node.this, node.args["low"], widen), self._compared("<=", node.this, node.args["high"], widen)]
        parts = _all_known(ends)
        return None if parts is None else all_of(parts)

    def _leaf(self, node: exp.Expr, *, widen: bool) -> Predicate | None:
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            inner = self._leaf(plain, widen=False)
            return None if inner is None else Not(inner)
        if (op := _OPERATORS.get(type(node))) is not None:
            if isinstance(_bare(node.this), exp.Column):
                return self._compared(op, node.this, node.expression, widen)
            return self._compared(FLIPPED[op], node.expression, node.this, widen)
        match node:
            case exp.Column():
                field = self.field_of(node)
                return None if field is None or _root(field) is not TypeRoot.BOOLEAN else bind_comparison("=", field, True)
            case exp.NullSafeEQ():
                left, right = node.this, node.expression
                if not isinstance(_bare(left), exp.Column):
                    left, right = right, left
                equal, field = self._compared("=", left, right, widen), self._field(left)
                return None if equal is None or field is None else all_of([Not(IsNull(field.name)), equal])
            case exp.Is(this=exp.Column(), expression=exp.Null()):
                field = self.field_of(node.this)
                return None if field is None else IsNull(field.name)
            case exp.In():
                return self._in(node)
            case exp.Like(this=exp.Column()) | exp.StartsWith(this=exp.Column()):
                return self._like(node)
            case _:
                return None

    def _compared(self, op: Operator, left: exp.Expr, right: exp.Expr, widen: bool) -> Predicate | None:
        # Most comparisons that are none with a constant are joins: of two columns, that is seen at once.
        if isinstance(_bare(right), exp.Column) or (field := self._field(left)) is None or (value := self._value(right)) is None:
            return None
        if _root(field) in TIMESTAMP_ROOTS:
            return _around(op, field, value) if widen else None
        literal = _literal(field, value)
        if literal is None or (isinstance(value, bool) and op not in ("=", "!=")):
            return None
        return bind_comparison(op, field, literal)

    def _in(self, node: exp.In) -> Predicate | None:
        field = self._field(node.this)
        if field is None or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            return None
        values = [None if isinstance(item, exp.Null) else self._value(item) for item in node.expressions]
        literals = [None if value is None else _literal(field, value) for value in values]
        if any(one is None and not isinstance(item, exp.Null) for item, one in zip(node.expressions, literals, strict=True)):
            return None
        # A list of several kinds is brought to one type first.
        kinds = {_kind(value) for value in values if value is not None}
        return bind_in(field, literals) if len(kinds) == 1 else None

    def _like(self, node: exp.Like | exp.StartsWith) -> Predicate | None:
        field, pattern = self._field(node.this), self._value(node.expression)
        if field is None or _root(field) is not TypeRoot.VARCHAR or not isinstance(pattern, str):
            return None
        if "\\" in pattern or (isinstance(node, exp.StartsWith) and ("%" in pattern or "_" in pattern)):
            return None
        return bind_like(field, pattern + "%" if isinstance(node, exp.StartsWith) else pattern)

    def _field(self, node: exp.Expr) -> Field | None:
        node = _bare(node)
        return self.field_of(node) if isinstance(node, exp.Column) else None

    def _value(self, node: exp.Expr) -> Any:
        """The value of a literal, a parameter, or a date moved by an interval; None for anything else and for NULL."""
        try:
            return self._constant(node)
        except (_NoValue, ValueError, OverflowError, InvalidOperation):
            return None

    def _constant(self, node: exp.Expr) -> Any:
        match node:
            case exp.Paren():
                return self._constant(node.this)
            case exp.Boolean():
                return bool(node.this)
            case exp.Literal(is_string=True):
                return str(node.this)
            case exp.Literal(is_string=False):
                return _number(str(node.this))
            case exp.Neg():
                value = self._constant(node.this)
                if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                    return value.copy_negate() if isinstance(value, Decimal) else -value
            case exp.Placeholder() if node.this in self.parameters:
                return _parameter(self.parameters[node.this])
            case exp.Cast():
                return _cast(self._constant(node.this), node.to)
            case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
                value = self._constant(node.this)
                if type(value) is dt.date:
                    return self._moved(value, node.expression, 1 if isinstance(node, exp.Add) else -1)
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


def _all_known(parts: Sequence[Predicate | None]) -> list[Predicate] | None:
    """The parts; None if one of them is not known."""
    known = [part for part in parts if part is not None]
    return known if known and len(known) == len(parts) else None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of AND or OR, in order."""
    kind, found = type(node), []
    while type(node) is kind:
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


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
        return value if type(value) is str and "\\" not in value and _is_unicode(value) else None
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


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None
