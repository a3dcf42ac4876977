"""Describes how one function of Spark's is run by DuckDB: a value a function.

    FunctionRule(
        name="array_distinct", bounds=(1, 1), result=as_argument(), write=lambda call: call.text("LIST_DISTINCT($0)")
    )

A rule writes a call in DuckDB's SQL when its arguments are written already: as nodes of sqlglot's, as a text with ``$0``, ``$1`` …
in the places of arguments, or as a call of an :class:`~arrowfunction.ArrowFunction`, in this order of
preference. What it cannot write exactly as Spark means it, it refuses.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.signatures import ColumnsOf, ResultOf, Signature, VariablesOf
from tablestore.sql.binding.sqltypes import VOID, SqlType, Type, engine_words
from tablestore.sql.duckdb.calls import in_own_text, refusal, unknown_operand, with_aggregate
from tablestore.sql.duckdb.sqlcasts import cast

MANY = 1000
"""The most arguments of a function that takes any number."""
_PLACE = re.compile(r"\$(\d+)\b")
_ARGUMENT = "argument_"
_ONCE = "__tablestore_once"
_SIMPLE = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Placeholder, exp.Parameter, exp.Identifier)

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Paren)
_MOST_ARITHMETIC = 6
_NUMBERS = frozenset({exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE, exp.DType.DECIMAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCall:
    """A call that is to be written. ``values``: its arguments in DuckDB's SQL, ``types`` theirs in Spark, ``result`` its own.

    ``node``: the call with the window and the filter around it, whose parts are written.
    """

    name: str
    node: exp.Expr
    values: tuple[exp.Expr, ...]
    types: tuple[Type, ...]
    result: Type
    is_distinct: bool = False

    def type(self, place: int) -> SqlType:
        """The type of an argument. Raises UnsupportedError if it is not known."""
        kind = self.types[place]
        if kind is None or not kind.is_known:
            raise unknown_operand(f"the function {self.name}", self.node)
        return kind

    def value(self, place: int, to: SqlType | None = None) -> exp.Expr:
        """An argument, as a value of a type if one is named: cast as Spark casts it, without being asked."""
        value = self.values[place].copy()
        return value if to is None else converted(value, self.type(place), to)

    def text(self, text: str, *values: exp.Expr) -> exp.Expr:
        """A text of DuckDB's SQL with values in the places of ``$0``, ``$1`` …: by default the arguments.

        What stands in several places is computed once.
        """
        return from_text(text, *(values or self.values))

    def around(self, aggregate: exp.Expr) -> exp.Expr:
        """Another aggregate in the window and behind the filter of the call."""
        return with_aggregate(self.node, aggregate)

    def as_result(self, value: exp.Expr) -> exp.Expr:
        """A value as one of the type that the call has in Spark. Raises UnsupportedError if that is not known."""
        if self.result is None or not self.result.is_known:
            raise unknown_operand(f"the function {self.name}", self.node)
        return as_type(value, self.result)

    def refusal(self, what: str = "") -> UnsupportedError:
        """The error that refuses this call. ``what``: which calls of the function are refused."""
        return refusal(f"the function {self.name}{' ' * bool(what)}{what}")

    @property
    def own_text(self) -> str:
        """The end of a message inside of a text of DuckDB's SQL, from which the place of the call is found."""
        return in_own_text(self.node).replace("'", "''")

    def mismatch(self, place: int, expected: str) -> InvalidInputError:
        """The error for an argument of a type that the function does not take."""
        return InvalidInputError(
            f"the function `{self.name}`: expected {expected} as argument {place + 1}, found {self.types[place]}", kind="query"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRule:
    """A function of Spark's. ``bounds``: how many arguments it takes at least and at most; ``result``: the type that it gives.

    ``write``: makes a call one of DuckDB's SQL; ``aliases``: its other names in Spark; ``variables``: the types of what its lambdas
    take; ``note``: what to know of it, in the table of functions; ``is_aggregate``: it combines rows, and is written with its
    window and its filter.
    """

    name: str
    bounds: tuple[int, int]
    result: ResultOf
    write: Callable[[RuleCall], exp.Expr]
    aliases: tuple[str, ...] = ()
    variables: VariablesOf | None = None
    columns: ColumnsOf | None = None
    note: str = ""
    is_aggregate: bool = False

    @property
    def signature(self) -> Signature:
        return Signature(result=self.result, variables=self.variables, columns=self.columns)


def by_text(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a call as a text, whose value has Spark's type."""
    return lambda call: call.text(text)


def converted(value: exp.Expr, of: SqlType, to: SqlType) -> exp.Expr:
    """A value of a type as one of another type, as Spark casts it."""
    if of == to:
        return value
    node = exp.Cast(this=value, to=engine_words(to))
    return node if of == VOID else cast(node, of)


def as_type(value: exp.Expr, to: SqlType) -> exp.Expr:
    """A value that DuckDB has as one of another type, which has it too."""
    return exp.Cast(this=value, to=engine_words(to)) if to.is_known and not _has_no_words(to) else value


def _has_no_words(kind: SqlType) -> bool:
    return kind.name in ("void", "interval") or any(part is not None and _has_no_words(part) for part in kind.parts)


def from_text(text: str, *values: exp.Expr) -> exp.Expr:
    """An expression in DuckDB's words, with values in the places of ``$0``, ``$1`` …

    A value that stands in several places and is more than a name, a constant or a number made of it is computed once: as a variable
    of a lambda.
    """
    places = [int(place) for place in _PLACE.findall(text)]
    bound = [place for place in sorted(set(places)) if places.count(place) > 1 and not _is_cheap(values[place])]
    fields = {place: f"v{place}" for place in bound}
    inner = _parsed(text)
    replacements: dict[int, exp.Expr] = {
        place: _field(fields[place]) if place in fields else values[place] for place in set(places)
    }
    written = inner.transform(partial(_put, replacements))
    if not bound:
        return written
    row = exp.Struct(
        expressions=[exp.PropertyEQ(this=exp.to_identifier(name), expression=values[place]) for place, name in fields.items()]
    )
    once = exp.Lambda(this=written, expressions=[exp.to_identifier(_ONCE)])
    each = exp.Anonymous(this="LIST_TRANSFORM", expressions=[exp.Array(expressions=[row]), once])
    return exp.Anonymous(this="LIST_EXTRACT", expressions=[each, exp.Literal.number(1)])


def _is_cheap(value: exp.Expr) -> bool:
    """True for what costs less in several places than a variable does: names, constants, and a little arithmetic of such."""
    if type(value) is exp.Cast and value.to.this in _NUMBERS:
        value = value.this
    if not isinstance(value, _ARITHMETIC):
        return isinstance(value, _SIMPLE)
    parts = [part for part in value.walk() if not isinstance(part, exp.Identifier)]
    return len(parts) <= _MOST_ARITHMETIC and all(isinstance(part, (*_ARITHMETIC, *_SIMPLE)) for part in parts)


def _field(name: str) -> exp.Expr:
    return exp.Anonymous(this="STRUCT_EXTRACT", expressions=[exp.column(_ONCE), exp.Literal.string(name)])


def _put(replacements: dict[int, exp.Expr], node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Placeholder) and node.name.startswith(_ARGUMENT):
        value = replacements[int(node.name.removeprefix(_ARGUMENT))].copy()
        return value if isinstance(value, (*_SIMPLE, exp.Func, exp.Paren, exp.Lambda)) else exp.paren(value, copy=False)
    return node


@cache
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(_PLACE.sub(rf":{_ARGUMENT}\1", text), read=DuckDB)
