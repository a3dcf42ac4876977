"""Converts a condition, as sqlglot's tree, to a predicate on the columns of one table.

It converts the filter of a scan (:mod:`.sqlfilter`) and the conditions that a query puts to one of its tables
(:mod:`tablestore.sql.query.pushdown`). Both know the same shapes: AND, OR and NOT of comparisons, IN, BETWEEN, LIKE and IS of a
column with literals. :class:`Terms` says what is different:

                         the filter of a scan                         the conditions of a query
    result               exact: true, false and unknown alike         implied: true for every row for which the condition is
    names                columns of the one table, others refused     columns of the one table, none for those of others
    literals             numbers are decimals; dates of any text      Spark's types; parameters; dates moved by intervals
    comparisons          of any two types that compare                where scan and engine compare alike in every session
    timestamps           exact                                        a day wider on both sides, and nothing below NOT
    other conditions     computed over the rows, or refused           nothing is known: the engine asks them

A condition of which nothing is known is left out of an AND, and makes all of an OR or a NOT unknown.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from sqlglot import exp

from tablestore.types.datatypes import Field
from tablestore.types.expression.sqltree import operands, unwrapped
from tablestore.types.filter.predicate import FLIPPED, And, IsNull, Not, Operator, Or, Predicate

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """The value of a literal, None for NULL."""

    value: Any


class Terms(Protocol):
    """Gives meaning to the parts of a condition. Each answer may be None: the part is none that it knows.

    A predicate is true, false and unknown where the condition is. A comparison that need not be ``exact`` only has to be true where
    the condition is.
    """

    def field(self, column: exp.Column) -> Field | None:
        """The column of the table that a name stands for."""

    def literal(self, node: exp.Expression) -> LiteralValue | None:
        """The value of a node that has no parentheses around it."""

    def comparison(self, op: Operator, field: Field, value: Any, *, exact: bool) -> Predicate | None:
        """``field op value``."""

    def membership(self, field: Field, values: list[Any]) -> Predicate | None:
        """``field IN (values)``."""

    def like(self, field: Field, pattern: str | None, escape: str) -> Predicate | None:
        """``field LIKE pattern ESCAPE escape``."""

    def other(self, node: exp.Expression) -> Predicate | None:
        """The predicate of a condition that is none of a column with literals."""


def predicate_of(node: exp.Expression, terms: Terms, *, exact: bool = False) -> Predicate | None:
    """The predicate of a condition; None if nothing is known. Raises what ``terms`` raise."""
    node = unwrapped(node)
    match node:
        case exp.And() | exp.Or():
            parts = [predicate_of(part, terms, exact=exact) for part in operands(node)]
            usable = [part for part in parts if part is not None]
            if not usable or (len(usable) < len(parts) and (exact or isinstance(node, exp.Or))):
                return None
            return usable[0] if len(usable) == 1 else And(tuple(usable)) if isinstance(node, exp.And) else Or(tuple(usable))
        case exp.Not():
            return _negated(predicate_of(node.this, terms, exact=True))
    leaf = _Leaf(terms, exact or bool(node.args.get("negate"))).predicate(node)
    return terms.other(node) if leaf is None else leaf


def plain_literal(node: exp.Expression) -> LiteralValue | None:
    """The value of NULL, TRUE, FALSE or a text."""
    match node:
        case exp.Null():
            return LiteralValue(None)
        case exp.Boolean():
            return LiteralValue(bool(node.this))
        case exp.Literal(is_string=True):
            return LiteralValue(str(node.this))
        case _:
            return None


def negative(value: Any) -> Any:
    """A number with the other sign. Not ``-value`` of a decimal: that would round it to 28 digits."""
    return value.copy_negate() if isinstance(value, Decimal) else -value


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Converts conditions on one column."""

    terms: Terms
    exact: bool

    def predicate(self, node: exp.Expression) -> Predicate | None:
        match node:
            case exp.Column():
                field = self.terms.field(node)
                return None if field is None else self._compared("=", field, True)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if _has_only(node, "this", "expression"):
                return self._comparison(_OPERATORS[type(node)], node.this, node.expression)
            case exp.NullSafeEQ() if _has_only(node, "this", "expression"):
                return self._null_safe_equal(node.this, node.expression)
            case exp.NullSafeNEQ() if _has_only(node, "this", "expression"):
                return _negated(_Leaf(self.terms, True)._null_safe_equal(node.this, node.expression))
            case exp.Between() if _has_only(node, "this", "low", "high"):
                if (low := self._comparison(">=", node.this, node.args["low"])) is None:
                    return None
                high = self._comparison("<=", node.this, node.args["high"])
                return None if high is None else And((low, high))
            case exp.In() if _has_only(node, "this", "expressions"):
                return self._in(node)
            case exp.Is() if _has_only(node, "this", "expression", "negate"):
                return _negated_if(node, self._is(node))
            case exp.Like() if _has_only(node, "this", "expression", "negate"):
                return _negated_if(node, self._like(node, "\\"))
            case exp.Escape() if _has_only(node, "this", "expression"):
                like, escape = unwrapped(node.this), self._literal(node.expression)
                if isinstance(like, exp.Like) and _has_only(like, "this", "expression", "negate") and escape is not None:
                    return _negated_if(like, self._like(like, escape.value))
        return None

    def _comparison(self, op: Operator, left: exp.Expression, right: exp.Expression) -> Predicate | None:
        left, right = unwrapped(left), unwrapped(right)
        if not isinstance(left, exp.Column):
            left, right, op = right, left, FLIPPED[op]
        # Most comparisons without a literal are joins: of two columns, that is seen at once.
        if not isinstance(left, exp.Column) or isinstance(right, exp.Column):
            return None
        if (literal := self._literal(right)) is None or (field := self.terms.field(left)) is None:
            return None
        return self._compared(op, field, literal.value)

    def _null_safe_equal(self, left: exp.Expression, right: exp.Expression) -> Predicate | None:
        left, right = unwrapped(left), unwrapped(right)
        if not isinstance(left, exp.Column):
            left, right = right, left
        if (literal := self._literal(right)) is None or (field := self._field(left)) is None:
            return None
        return IsNull(field.name) if literal.value is None else self._not_null_and_equal(field, literal.value)

    def _in(self, node: exp.In) -> Predicate | None:
        literals = [self._literal(value) for value in node.expressions]
        values = [literal.value for literal in literals if literal is not None]
        if len(values) < len(literals) or (field := self._field(node.this)) is None:
            return None
        return self.terms.membership(field, values)

    def _is(self, node: exp.Is) -> Predicate | None:
        right = unwrapped(node.expression)
        if (field := self._field(node.this)) is None or not isinstance(right, (exp.Null, exp.Boolean)):
            return None
        return IsNull(field.name) if isinstance(right, exp.Null) else self._not_null_and_equal(field, bool(right.this))

    def _like(self, node: exp.Like, escape: Any) -> Predicate | None:
        pattern = self._literal(node.expression)
        if pattern is None or not isinstance(pattern.value, str | None) or not isinstance(escape, str):
            return None
        field = self._field(node.this)
        return None if field is None else self.terms.like(field, pattern.value, escape)

    def _not_null_and_equal(self, field: Field, value: Any) -> Predicate | None:
        equal = self._compared("=", field, value)
        return None if equal is None else And((Not(IsNull(field.name)), equal))

    def _compared(self, op: Operator, field: Field, value: Any) -> Predicate | None:
        return self.terms.comparison(op, field, value, exact=self.exact)

    def _field(self, node: exp.Expression) -> Field | None:
        node = unwrapped(node)
        return self.terms.field(node) if isinstance(node, exp.Column) else None

    def _literal(self, node: exp.Expression) -> LiteralValue | None:
        return self.terms.literal(unwrapped(node))


def _negated(predicate: Predicate | None) -> Predicate | None:
    return None if predicate is None else Not(predicate)


def _negated_if(node: exp.Expression, predicate: Predicate | None) -> Predicate | None:
    return _negated(predicate) if node.args.get("negate") else predicate


def _has_only(node: exp.Expression, *supported: str) -> bool:
    """True for a node without parts that this module does not know, over which it may not pass."""
    return not any(part for key, part in node.args.items() if key not in supported)
