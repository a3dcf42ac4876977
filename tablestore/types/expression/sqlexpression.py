"""Parses scalar expressions from SQL text: ``upper(item)``, ``price * 2``, ``CASE WHEN x > 0 THEN 'a' ELSE 'b' END``.

sqlglot reads the text; this module takes what :mod:`.functions` computes, and refuses the rest by name. Whole numbers are INT,
BIGINT or DECIMAL, as their digits need; ``1.5`` is a DECIMAL and ``1.5e0`` a DOUBLE, as in Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.recursion import deep_stack
from tablestore.types.datatypes import AtomicType, TypeRoot
from tablestore.types.expression.expression import MOST_LEVELS, Call, Cast, Column, Expression, Value, levels
from tablestore.types.expression.instant import parse_instant
from tablestore.types.expression.sqltree import operands, parse_tree, shorten, unwrapped
from tablestore.types.typestring import declared_type

ColumnOf = Callable[[str, str], Column]
"""The column of a table ("" without one) and a name, both as written. Raises InvalidInputError."""

_OPERATORS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
# Functions with the arguments that they may have, in order; of these the first is not left out.
_CALLS: Mapping[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StartsWith: ("startswith", ("this", "expression")),
    exp.EndsWith: ("endswith", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
}
_OF_DAYS = (exp.Year, exp.Month, exp.Day)
_LISTS: Mapping[type[exp.Expression], str] = {exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least"}
# Notes of sqlglot beside the arguments, which change nothing here.
_NOTES = frozenset({"safe", "coalesce", "ignore_nulls", "_type", "typed", "zero_start", "is_left"})
_TRIMS = {"": "trim", "LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}
_NAMES = (
    "upper, lower, trim, length, substring, replace, concat, abs, round, floor, ceil, coalesce, nullif, greatest, least, year, …"
)


def parse_expression_text(text: str, column_of: ColumnOf, *, what: str = "expression") -> Expression:
    """The expression of a text. Raises InvalidInputError for other text, UnsupportedError for what is not computed here."""
    if not isinstance(text, str):
        raise InvalidInputError(f"expected an {what} as SQL text, found {text!r:.80}")
    if not _is_unicode(text):
        raise InvalidInputError(f"expected an {what} as SQL text, found {text!r:.80}, which is not valid Unicode text")
    try:
        with deep_stack():
            tree = parse_tree(text, what=what, example='"price * 2" or "upper(item)"')
            return ExpressionReader(text, column_of).whole(tree)
    except RecursionError as error:
        raise InvalidInputError(f"the {what} is nested too deeply; write it with fewer parentheses", kind="limit") from error


class ExpressionReader:
    """One text being read."""

    def __init__(self, text: str, column_of: ColumnOf) -> None:
        self._text, self._column_of = text, column_of
        self._is_cast = "TRY_CAST" not in text.upper()

    def whole(self, node: exp.Expression) -> Expression:
        """The expression of a text's tree. Raises InvalidInputError for one that is nested too deep."""
        expression = self.read(node)
        # Each level takes a character at least.
        if len(self._text) > MOST_LEVELS and (depth := levels(expression)) > MOST_LEVELS:
            raise InvalidInputError(
                f"{shorten(self._text)!r} is nested {depth} levels deep, more than the limit of {MOST_LEVELS}; compute it in "
                "several steps",
                kind="limit",
            )
        return expression

    def read(self, node: exp.Expression) -> Expression:
        """The expression of a node."""
        node = unwrapped(node)
        kind = type(node)
        if kind in _OPERATORS:
            return Call(_OPERATORS[kind], tuple(self._parts(node, "this", "expression")))
        if kind in _CALLS:
            name, keys = _CALLS[kind]
            return Call(name, tuple(self._parts(node, *keys)))
        if kind in _LISTS:
            self._only(node, "this", "expressions")
            return Call(_LISTS[kind], tuple(map(self.read, [node.this, *node.expressions])))
        return self._other(node)

    def _other(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.And() | exp.Or():
                return Call("AND" if isinstance(node, exp.And) else "OR", tuple(map(self.read, operands(node))))
            case exp.DPipe():
                return Call("||", tuple(map(self.read, operands(node))))
            case exp.Not():
                return Call("NOT", (self.read(node.this),))
            case exp.NullSafeNEQ():
                return Call("NOT", (Call("<=>", tuple(self._parts(node, "this", "expression"))),))
            case exp.Between():
                value, low, high = self._parts(node, "this", "low", "high")
                return Call("AND", (Call(">=", (value, low)), Call("<=", (value, high))))
            case exp.In(expressions=[_, *_]):
                self._only(node, "this", "expressions")
                return Call("IN", tuple(map(self.read, [node.this, *node.expressions])))
            case exp.Is():
                return self._is(node)
            case exp.Like():
                like = Call("LIKE", tuple(self._parts(node, "this", "expression", "negate")[:2]))
                return Call("NOT", (like,)) if node.args.get("negate") else like
            case exp.If():
                return Call("case", (*self._branch(node), self._otherwise(node.args.get("false"))))
            case exp.Case():
                return self._case(node)
            case exp.Concat():
                self._only(node, "expressions")
                return Call("||", tuple(map(self.read, node.expressions)))
            case exp.Trim() if (name := _TRIMS.get(str(node.args.get("position") or ""))) and not node.args.get("expression"):
                return Call(name, (self.read(node.this),))
            case exp.TsOrDsToDate() if not node.args.get("format"):
                inner = self.read(node.this)
                # YEAR(x) has one around its value, and takes timestamps too.
                return inner if isinstance(node.parent, _OF_DAYS) else Cast(inner, AtomicType(root=TypeRoot.DATE))
            case exp.Neg():
                inner = self.read(node.this)
                return _negative(inner) if isinstance(inner, Value) else Call("-", (inner,))
            case exp.Cast():
                return self._cast(node)
        return self._literal(node)

    def _column(self, node: exp.Column) -> Column:
        if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
            raise self._refusal(node)
        return self._column_of(node.table, node.name)

    def _is(self, node: exp.Is) -> Expression:
        value, right = self.read(node.this), unwrapped(node.expression)
        if isinstance(right, exp.Boolean):
            test = Call("<=>", (value, Value(pa.scalar(bool(right.this)))))
        elif isinstance(right, exp.Null):
            test = Call("IS NULL", (value,))
        else:
            raise self._refusal(node)
        return Call("NOT", (test,)) if node.args.get("negate") else test

    def _case(self, node: exp.Case) -> Expression:
        branches = [self._branch(branch) for branch in node.args["ifs"]]
        if node.this is not None:
            value = self.read(node.this)
            branches = [(Call("=", (value, candidate)), result) for candidate, result in branches]
        return Call("case", (*(part for branch in branches for part in branch), self._otherwise(node.args.get("default"))))

    def _branch(self, node: exp.Expression) -> tuple[Expression, Expression]:
        return self.read(node.this), self.read(node.args["true"])

    def _otherwise(self, node: exp.Expression | None) -> Expression:
        return Value(pa.scalar(None)) if node is None else self.read(node)

    def _cast(self, node: exp.Cast) -> Expression:
        self._only(node, "this", "to")
        inner, kind = self.read(node.this), node.to.this.name
        if not self._is_cast:
            raise self._refusal(node)
        if isinstance(inner, Value) and kind.startswith(("TIMESTAMP", "DATETIME")) and isinstance(inner.value, pa.StringScalar):
            return Value(_moment(inner.value.as_py()))
        if kind.startswith(("TIMESTAMP", "DATETIME")):
            # The TIMESTAMP of Spark depends on the time zone of a session.
            if kind != "TIMESTAMPNTZ":
                raise self._refusal(node)
            return Cast(inner, AtomicType(root=TypeRoot.TIMESTAMP, precision=6))
        try:
            return Cast(inner, declared_type(node.to.sql(dialect="spark")))
        except (FormatError, UnsupportedError) as error:
            raise self._refusal(node) from error

    def _literal(self, node: exp.Expression) -> Value:
        match node:
            case exp.Null():
                return Value(pa.scalar(None))
            case exp.Boolean():
                return Value(pa.scalar(bool(node.this)))
            case exp.Literal(is_string=True):
                return Value(pa.scalar(str(node.this)))
            case exp.Literal():
                return Value(_number(str(node.this)))
            case exp.HexString():
                text = str(node.this)
                try:
                    return Value(pa.scalar(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)))
                except ValueError as error:
                    raise InvalidInputError(f"expected hexadecimal digits in X'…', found {text!r:.60}") from error
            case _:
                raise self._refusal(node)

    def _parts(self, node: exp.Expression, *keys: str) -> list[Expression]:
        self._only(node, *keys)
        return [self.read(part) for key in keys if isinstance(part := node.args.get(key), exp.Expression)]

    def _only(self, node: exp.Expression, *supported: str) -> None:
        """Refuse a node with parts that this module does not know, instead of passing over them."""
        if any(part for key, part in node.args.items() if key not in supported and key not in _NOTES):
            raise self._refusal(node)

    def _refusal(self, node: exp.Expression) -> UnsupportedError:
        node_text = shorten(node.sql(dialect="spark"))
        return UnsupportedError(
            f"{shorten(self._text)!r} uses {node_text!r} ({type(node).__name__}), which is not computed here; there are columns, "
            f"literals, + - * / %, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE, CAST and {_NAMES}; "
            "for more use SQL: tablestore.TableEnvironment",
            kind="unsupported-filter",
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def literal_value(value: Any, what: str, kind: pa.DataType) -> Value:
    """A value of Python's as a literal. ``kind``: the type that it is for, as which it is read where it has none by itself (a dict
    for a map, a whole number of 38 digits, pandas' NA). Raises InvalidInputError."""
    if isinstance(value, pa.Scalar):
        return Value(value)
    wrong: Exception | None = None
    for arrow_type, nulls_of_pandas in ((kind if pa.types.is_map(kind) else None, False), (kind, True)):
        try:
            return Value(pa.scalar(value, arrow_type, from_pandas=nulls_of_pandas))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            wrong = error
    raise InvalidInputError(f"expected SQL text or a value for {what}, found {value!r:.80}", kind="wrong-value") from wrong


def column_finder(columns: Mapping[str, Sequence[str]], what: str) -> ColumnOf:
    """Finds columns by name, exactly or else without regard to case. ``columns``: those of each table by its name."""

    def find(table: str, name: str) -> Column:
        tables = [table_name for table_name in columns if not table or table_name.casefold() == table.casefold()]
        if not tables:
            raise InvalidInputError(
                f"the {what} names the table {table!r}; there is {' and '.join(map(repr, columns))}", kind="unknown-column"
            )
        candidates = [Column(match, table_name) for table_name in tables for match in _matches(name, columns[table_name])]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            choices = " or ".join(f"{one.table}.{one.name}" if one.table else repr(one.name) for one in candidates)
            raise InvalidInputError(
                f"the {what} names the column {name!r}, which could be {choices}; say which", kind="ambiguous-column"
            )
        names = [name for table_name in tables for name in columns[table_name]]
        of_table = f" of {tables[0]}" if table else ""
        raise InvalidInputError(
            f"the {what} names the column {name!r}{of_table}, which does not exist{did_you_mean(name, names)} "
            f"(columns: {', '.join(names)})",
            kind="unknown-column",
        )

    return find


def _matches(name: str, names: Sequence[str]) -> list[str]:
    return [name] if name in names else [one for one in names if one.casefold() == name.casefold()]


def _number(text: str) -> pa.Scalar:
    if "e" in text.lower():
        return pa.scalar(float(text))
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "digits make a finite number"
    if not exponent and "." not in text and number < 1 << 63:
        return pa.scalar(int(number), pa.int32() if number < 1 << 31 else pa.int64())
    precision = max(len(digits), -exponent)
    if precision > 38:
        raise InvalidInputError(f"expected a number of at most 38 digits, found {shorten(text)}; write it with an exponent: 1e50")
    return pa.scalar(number, pa.decimal128(precision, -exponent))


def _negative(value: Value) -> Expression:
    """A negative literal: the least whole number of a type has no positive one."""
    scalar = value.value
    if isinstance(scalar, (pa.Int32Scalar, pa.Int64Scalar, pa.DoubleScalar, pa.Decimal128Scalar)):
        number = scalar.as_py()
        if isinstance(number, Decimal):
            number = number.copy_negate()
            if scalar.type.scale == 0 and number == -(1 << 63):
                return Value(pa.scalar(-(1 << 63), pa.int64()))
            return Value(pa.scalar(number, scalar.type))
        if pa.types.is_integer(scalar.type) and number == -(1 << scalar.type.bit_width - 1):
            return Call("-", (value,))  # It has no positive number, which is an error where it is computed.
        kind = pa.int32() if number == 1 << 31 else scalar.type
        return Value(pa.scalar(-number, kind))
    return Call("-", (value,))


def _moment(text: str) -> pa.Scalar:
    instant = parse_instant(text)
    if instant is None:
        raise InvalidInputError(f"expected a timestamp such as '2024-01-31 12:34:56', found {text!r:.60}", kind="type-mismatch")
    unit, size = ("us", 1000) if instant.ns % 1000 == 0 else ("ns", 1)
    return pa.scalar(instant.ns // size, pa.int64()).cast(pa.timestamp(unit, tz="UTC" if instant.zoned else None))
