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
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression, holds
from tablestore.types.expression.expression import Column, columns_of
from tablestore.types.expression.instant import Instant, parse_instant
from tablestore.types.expression.sqlexpression import ExpressionReader
from tablestore.types.expression.sqltree import parse_tree, unwrapped
from tablestore.types.filter.binding import INT_BITS, bind_comparison, bind_in, bind_like
from tablestore.types.filter.predicate import FALSE, TRUE, UNKNOWN, Computed, Operator, Predicate
from tablestore.types.filter.treepredicate import LiteralValue, negative, plain_literal, predicate_of
from tablestore.types.typestring import declared_type, type_to_sql

_INSTANT_TYPES = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"})

FieldOf = Callable[[str], Field]


def parse_sql(text: str, field_of: FieldOf) -> Predicate:
    """The predicate of the text over the columns that ``field_of(name)`` gives.

    Raises InvalidInputError for anything but an SQL condition, UnsupportedError for SQL that a filter cannot express.
    """
    return condition_of(parse_tree(text, what="filter", example="\"price > 10 AND name LIKE 'a%'\""), text, field_of)


def condition_of(tree: exp.Expression, text: str, field_of: FieldOf) -> Predicate:
    """The predicate of a tree, as :func:`parse_sql` that of the text which it was parsed from."""
    predicate = predicate_of(tree, _ScanTerms(text, field_of), exact=True)
    assert predicate is not None, "what is no leaf is computed"
    return predicate


class _ScanTerms:
    """Gives the parts of one filter text the meaning that they have in a scan."""

    def __init__(self, text: str, field_of: FieldOf) -> None:
        self._text = text
        self._field_of = field_of

    def field(self, column: exp.Column) -> Field | None:
        if column.args.get("db") is not None or not isinstance(column.this, exp.Identifier):
            return None
        return self._field(column.table, column.name)

    def _field(self, table: str, name: str) -> Field:
        if table:
            raise UnsupportedError(
                f"the filter names '{table}.{name}'; filters take whole columns of the table, "
                "neither fields of nested rows nor names with a table; put names with dots between backticks",
                kind="unsupported-filter",
            )
        return self._field_of(name)

    def comparison(self, op: Operator, field: Field, value: Any, *, exact: bool) -> Predicate:
        return bind_comparison(op, field, value)

    def membership(self, field: Field, values: list[Any]) -> Predicate:
        return bind_in(field, values)

    def like(self, field: Field, pattern: str | None, escape: str) -> Predicate:
        if pattern is None:
            return UNKNOWN
        if len(escape) != 1:
            raise InvalidInputError(f"expected one character after ESCAPE in the filter, found {escape!r:.20}")
        return bind_like(field, pattern if escape == "\\" else _with_backslashes(pattern, escape))

    def other(self, node: exp.Expression) -> Predicate:
        """A condition over several columns, with functions, or of literals alone. Raises InvalidInputError for what is none."""
        expression = ExpressionReader(self._text, lambda table, name: Column(self._field(table, name).name)).whole(node)
        holds(expression, ColumnValues(0, lambda column: pa.nulls(0, to_arrow_type(self._field_of(column.name).type))))
        if columns_of(expression):
            return Computed(expression)
        (value,) = evaluate_expression(expression, ColumnValues(1, lambda column: pa.nulls(1))).to_pylist()
        return UNKNOWN if value is None else TRUE if value else FALSE

    def literal(self, node: exp.Expression) -> LiteralValue | None:
        match node:
            case exp.Literal(is_string=False):
                return LiteralValue(self._decimal(str(node.this)))
            case exp.HexString():
                return LiteralValue(self._hex(str(node.this)))
            case exp.Neg():
                inner = self.literal(unwrapped(node.this))
                if inner is None or inner.value is None:
                    return inner
                return LiteralValue(negative(inner.value)) if isinstance(inner.value, (Decimal, float, int)) else None
            case exp.Concat():
                parts = [self.literal(unwrapped(part)) for part in node.expressions]
                texts = [part.value for part in parts if part is not None and isinstance(part.value, str)]
                return LiteralValue("".join(texts)) if len(texts) == len(parts) else None
            case exp.Cast():
                inner = self.literal(unwrapped(node.this))
                return None if inner is None else self._cast(inner.value, node)
            case _:
                return plain_literal(node)

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

    def _cast(self, value: Any, node: exp.Cast) -> LiteralValue | None:
        kind = node.to.this
        if value is None:
            return LiteralValue(None)
        if kind.name in _INSTANT_TYPES or kind.name == "DATE":
            instant = value if isinstance(value, Instant) else parse_instant(value) if isinstance(value, str) else None
            if instant is None:
                raise InvalidInputError(f"expected a date or timestamp in the filter, found {value!r:.60}")
            day = 86_400 * 10**9
            return LiteralValue(Instant(instant.ns // day * day, False) if kind.name == "DATE" else instant)
        try:
            target = declared_type(node.to.sql(dialect="spark"))
        except (FormatError, UnsupportedError):
            return None
        cast = _cast_number(value, target) if isinstance(target, AtomicType) else None
        if cast is None:
            raise InvalidInputError(
                f"the filter casts {value!r:.60} to {type_to_sql(target)}, which it does not fit; write the value itself"
            )
        return LiteralValue(cast)


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
