"""Parses filters from SQL text.

    price > 10 AND (day BETWEEN DATE '2024-01-01' AND '2024-01-31' OR name LIKE 'a%') AND NOT done

A comparison of a column with literals becomes a leaf that leaves files out; any other condition (``upper(item) = 'INK'``,
``price * 2 > 10``, ``low < high``) is computed over the rows that are read. Column names match exactly, else without regard to case
if that is unambiguous.
"""

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import FLOAT_ROOTS, TEXT_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.expression.evaluate import Rows, evaluate_expression, holds
from tablestore.types.expression.expression import Column, columns_of
from tablestore.types.expression.instant import Instant, parse_instant
from tablestore.types.expression.sqlexpression import ExpressionReader
from tablestore.types.expression.sqltree import operands, parse_tree, unwrapped
from tablestore.types.filter.binding import INT_BITS, bind_comparison, bind_in, bind_like
from tablestore.types.filter.predicate import (
    FALSE,
    FLIPPED,
    TRUE,
    UNKNOWN,
    And,
    Computed,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
)
from tablestore.types.typestring import declared_type, type_to_sql

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_INSTANT_TYPES = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"})

FieldOf = Callable[[str], Field]


def parse_sql(text: str, field_of: FieldOf) -> Predicate:
    """The predicate of the text over the columns that ``field_of(name)`` gives.

    Raises InvalidInputError for anything but an SQL condition, UnsupportedError for SQL that a filter cannot express.
    """
    tree = parse_tree(text, what="filter", example="\"price > 10 AND name LIKE 'a%'\"")
    return _Reader(text, field_of).condition(tree)


class _NoLeaf(Exception):
    """A condition that is none of a column and literals."""


class _Literal:
    """The value of a literal, None for NULL."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Reader:
    """One filter text being read."""

    def __init__(self, text: str, field_of: FieldOf) -> None:
        self._text = text
        self._field_of = field_of

    def condition(self, node: exp.Expression) -> Predicate:
        """The predicate of a node that must be a condition."""
        node = unwrapped(node)
        match node:
            case exp.And() | exp.Or():
                parts = tuple(self.condition(part) for part in operands(node))
                return And(parts) if isinstance(node, exp.And) else Or(parts)
            case exp.Not():
                self._only(node, "this")
                return Not(self.condition(node.this))
        try:
            return self._leaf(node)
        except _NoLeaf:
            return self._computed(node)

    def _computed(self, node: exp.Expression) -> Predicate:
        """A condition over several columns, with functions, or of literals alone. Raises InvalidInputError for what is none."""
        expression = ExpressionReader(self._text, lambda table, name: Column(self._field(table, name).name)).whole(node)
        holds(expression, Rows(0, lambda column: pa.nulls(0, to_arrow_type(self._field_of(column.name).type))))
        if columns_of(expression):
            return Computed(expression)
        (value,) = evaluate_expression(expression, Rows(1, lambda column: pa.nulls(1))).to_pylist()
        return UNKNOWN if value is None else TRUE if value else FALSE

    def _leaf(self, node: exp.Expression) -> Predicate:
        """A condition about one column. Raises _NoLeaf for another one."""
        match node:
            case exp.Column():
                field = self._field_at(node)
                return bind_comparison("=", field, True)
            case exp.Boolean():
                return TRUE if node.this else FALSE
            case exp.Null():
                return UNKNOWN
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                self._only(node, "this", "expression")
                return self._comparison(_OPERATORS[type(node)], node.this, node.expression)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                self._only(node, "this", "expression")
                equal = self._null_safe_equal(node.this, node.expression)
                return equal if isinstance(node, exp.NullSafeEQ) else Not(equal)
            case exp.Between():
                self._only(node, "this", "low", "high")
                low = self._comparison(">=", node.this, node.args["low"])
                return And((low, self._comparison("<=", node.this, node.args["high"])))
            case exp.In():
                return self._in(node)
            case exp.Is():
                self._only(node, "this", "expression", "negate")
                return self._negated(node, self._is(node))
            case exp.Like():
                self._only(node, "this", "expression", "negate")
                return self._negated(node, self._like(node, "\\"))
            case exp.Escape():
                self._only(node, "this", "expression")
                like, escape = unwrapped(node.this), self._literal(node.expression)
                if not isinstance(like, exp.Like) or escape is None or not isinstance(escape.value, str):
                    raise _NoLeaf
                self._only(like, "this", "expression", "negate")
                return self._negated(like, self._like(like, escape.value))
            case _:
                raise _NoLeaf

    def _comparison(self, op: Operator, left: exp.Expression, right: exp.Expression) -> Predicate:
        left, right = unwrapped(left), unwrapped(right)
        for first, second, direction in ((left, right, op), (right, left, FLIPPED[op])):
            if isinstance(first, exp.Column):
                value = self._literal(second)
                if value is None:
                    raise _NoLeaf
                return bind_comparison(direction, self._field_at(first), value.value)
        raise _NoLeaf

    def _null_safe_equal(self, left: exp.Expression, right: exp.Expression) -> Predicate:
        left, right = unwrapped(left), unwrapped(right)
        if not isinstance(left, exp.Column):
            left, right = right, left
        value = self._literal(right)
        if not isinstance(left, exp.Column) or value is None:
            raise _NoLeaf
        field = self._field_at(left)
        if value.value is None:
            return IsNull(field.name)
        return And((Not(IsNull(field.name)), bind_comparison("=", field, value.value)))

    def _in(self, node: exp.In) -> Predicate:
        self._only(node, "this", "expressions")
        values = [self._literal(value) for value in node.expressions]
        if None in values:
            raise _NoLeaf
        return bind_in(self._column(node.this), [value.value for value in values if value is not None])

    def _is(self, node: exp.Is) -> Predicate:
        field, right = self._column(node.this), unwrapped(node.expression)
        if isinstance(right, exp.Null):
            return IsNull(field.name)
        if not isinstance(right, exp.Boolean):
            raise _NoLeaf
        return And((Not(IsNull(field.name)), bind_comparison("=", field, bool(right.this))))

    def _like(self, node: exp.Like, escape: str) -> Predicate:
        pattern = self._literal(node.expression)
        if pattern is None or not (pattern.value is None or isinstance(pattern.value, str)):
            raise _NoLeaf
        field = self._column(node.this)
        if pattern.value is None:
            return UNKNOWN
        if len(escape) != 1:
            raise InvalidInputError(f"expected one character after ESCAPE in the filter, found {escape!r:.20}")
        return bind_like(field, pattern.value if escape == "\\" else _with_backslashes(pattern.value, escape))

    def _negated(self, node: exp.Expression, predicate: Predicate) -> Predicate:
        return Not(predicate) if node.args.get("negate") else predicate

    def _column(self, node: exp.Expression) -> Field:
        node = unwrapped(node)
        if not isinstance(node, exp.Column):
            raise _NoLeaf
        return self._field_at(node)

    def _field_at(self, node: exp.Column) -> Field:
        if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
            raise _NoLeaf
        return self._field(node.table, node.name)

    def _field(self, table: str, name: str) -> Field:
        if table:
            raise UnsupportedError(
                f"the filter names '{table}.{name}'; filters take whole columns of the table, "
                "neither fields of nested rows nor names with a table; put names with dots between backticks",
                kind="unsupported-filter",
            )
        return self._field_of(name)

    def _literal(self, node: exp.Expression) -> _Literal | None:
        node = unwrapped(node)
        match node:
            case exp.Null():
                return _Literal(None)
            case exp.Boolean():
                return _Literal(bool(node.this))
            case exp.Literal(is_string=True) | exp.RawString():
                return _Literal(str(node.this))
            case exp.Literal():
                return _Literal(self._decimal(str(node.this)))
            case exp.HexString():
                return _Literal(self._hex(str(node.this)))
            case exp.Neg():
                inner = self._literal(node.this)
                if inner is None or not (inner.value is None or isinstance(inner.value, (Decimal, float, int))):
                    return None
                # Not "-value": that would round a decimal to 28 digits.
                return _Literal(_negative(inner.value))
            case exp.Concat():
                parts = [self._literal(part) for part in node.expressions]
                if any(part is None or not isinstance(part.value, str) for part in parts):
                    return None
                return _Literal("".join(part.value for part in parts if part is not None))
            case exp.Cast():
                inner = self._literal(node.this)
                return None if inner is None else self._cast(inner, node)
            case _:
                return None

    def _decimal(self, text: str) -> Decimal:
        try:
            return Decimal(text)
        except InvalidOperation as error:
            raise InvalidInputError(f"expected a number in the filter, found {text!r:.60}") from error

    def _hex(self, text: str) -> bytes:
        try:
            return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
        except ValueError as error:
            raise InvalidInputError(f"expected hexadecimal digits in X'…', found {text!r:.60}") from error

    def _cast(self, literal: _Literal, node: exp.Cast) -> _Literal:
        value, kind = literal.value, node.to.this
        if value is None:
            return literal
        if kind.name in _INSTANT_TYPES or kind.name == "DATE":
            instant = value if isinstance(value, Instant) else parse_instant(value) if isinstance(value, str) else None
            if instant is None:
                raise InvalidInputError(f"expected a date or timestamp in the filter, found {value!r:.60}")
            day = 86_400 * 10**9
            return _Literal(Instant(instant.ns // day * day, False) if kind.name == "DATE" else instant)
        try:
            target = declared_type(node.to.sql(dialect="spark"))
        except (FormatError, UnsupportedError) as error:
            raise _NoLeaf from error
        cast = _cast_number(value, target) if isinstance(target, AtomicType) else None
        if cast is None:
            raise InvalidInputError(
                f"the filter casts {value!r:.60} to {type_to_sql(target)}, which it does not fit; write the value itself"
            )
        return _Literal(cast)

    def _only(self, node: exp.Expression, *known: str) -> None:
        """Raise _NoLeaf for a node with parts that this module does not know, instead of passing over them."""
        if any(part for key, part in node.args.items() if key not in known):
            raise _NoLeaf


def _with_backslashes(pattern: str, escape: str) -> str:
    """A LIKE pattern with another escape character, rewritten to the backslash."""
    parts: list[str] = []
    characters = iter(pattern)
    for char in characters:
        if char == escape:
            following = next(characters, None)
            if following is None:
                raise InvalidInputError(f"the LIKE pattern {pattern!r:.100} ends in its escape character; double it")
            parts.append("\\" + following)
        else:
            parts.append("\\\\" if char == "\\" else char)
    return "".join(parts)


def _negative(value: Any) -> Any:
    return value.copy_negate() if isinstance(value, Decimal) else None if value is None else -value


def _cast_number(value: Any, target: AtomicType) -> Any:
    """A literal cast to a number, text or boolean type; None if it does not fit."""
    if target.root in TEXT_ROOTS:
        return value if isinstance(value, str) else None
    if target.root is TypeRoot.BOOLEAN:
        word = value.strip().lower() if isinstance(value, str) else ""
        return value if isinstance(value, bool) else {"true": True, "false": False}.get(word)
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        return None
    try:
        number = Decimal(value)
        if target.root in FLOAT_ROOTS:
            return float(number)
        if not number.is_finite() or abs(number.adjusted()) > 400:
            return None
        with localcontext(prec=1000):
            if target.root in INT_BITS:
                whole = int(number.to_integral_value(rounding=ROUND_DOWN))
                limit = 1 << (INT_BITS[target.root] - 1)
                return whole if -limit <= whole < limit else None
            if target.root is TypeRoot.DECIMAL:
                rounded = number.quantize(Decimal((0, (1,), -(target.scale or 0))), rounding=ROUND_HALF_UP)
                return rounded if len(rounded.as_tuple().digits) <= (target.precision or 0) else None
    except (InvalidOperation, OverflowError):
        return None
    return None
