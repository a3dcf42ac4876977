"""Converts arguments of a call to the types that a function takes, as Spark does without being asked."""

from collections.abc import Iterable

from sqlglot import exp

from tablestore.sql.binding.sqltypes import BIGINT, BINARY, DOUBLE, INT, STRING, VOID, SqlType, Type
from tablestore.sql.duckdb.functions.functionrule import RuleCall

# Where the type of their argument is not known, DuckDB takes a text and refuses everything else itself.
_OF_ANY_TYPE = (
    "ascii", "contains", "endswith", "hex", "instr", "left", "length", "levenshtein", "locate", "lpad", "overlay", "position",
    "regexp_extract", "regexp_like", "regexp_replace", "reverse", "right", "rpad", "split", "startswith", "substring", "unhex",
)  # fmt: skip


def double(call: RuleCall, place: int) -> exp.Expr:
    """An argument as a DOUBLE: a number, or a text that has one."""
    return _number(call, place, DOUBLE)


def integer(call: RuleCall, place: int, to: SqlType = INT) -> exp.Expr:
    """An argument as a whole number: another number without its fraction, or a text that has one."""
    return _number(call, place, to)


def _number(call: RuleCall, place: int, to: SqlType) -> exp.Expr:
    if call.types[place] is None and call.name in _OF_ANY_TYPE:
        return call.value(place)
    kind = call.type(place)
    if not kind.is_number and kind not in (STRING, VOID):
        raise call.mismatch(place, "a number")
    return call.value(place, to)


def text(call: RuleCall, place: int) -> exp.Expr:
    """An argument as a text: any value but an array, a map or a row."""
    is_raw = isinstance(call.values[place], exp.RawString)
    if is_raw or (call.types[place] is None and call.name in _OF_ANY_TYPE):
        return call.value(place)
    kind = call.type(place)
    if kind.is_nested:
        raise call.mismatch(place, "a text")
    return call.value(place, STRING)


def binary(call: RuleCall, place: int) -> exp.Expr:
    """An argument as bytes: bytes, or a text in UTF-8."""
    kind = call.type(place)
    if kind not in (BINARY, STRING, VOID):
        raise call.mismatch(place, "bytes")
    return call.value(place, BINARY)


def text_or_binary(call: RuleCall, place: int) -> exp.Expr:
    """An argument as it is, if it has bytes, and else as a text."""
    return call.value(place) if call.type(place) == BINARY else text(call, place)


def is_written(value: exp.Expr) -> bool:
    """True if a value stands in the query as a literal or NULL."""
    return isinstance(value, (exp.Literal, exp.Null))


def written_text(call: RuleCall, place: int, what: str) -> str:
    """The text that an argument is in the query. Raises UnsupportedError for one that is computed."""
    value = call.values[place]
    if not isinstance(value, exp.Literal) or not value.is_string:
        raise call.refusal(f"with {what} that is computed")
    return str(value.this)


def written_integer(call: RuleCall, place: int, what: str) -> int:
    """The whole number that an argument is in the query. Raises UnsupportedError for one that is computed."""
    value = call.values[place].unnest()
    while isinstance(value, exp.Cast):
        value = value.this.unnest()
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this.unnest()
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return sign * int(value.name)
    raise call.refusal(f"with {what} that is computed")


def widest(types: Iterable[Type]) -> SqlType:
    """INT or BIGINT: the type that holds whole numbers of some types."""
    return BIGINT if BIGINT in types else INT
