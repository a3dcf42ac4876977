"""Writes arithmetic that gives NULL where a result is out of range or a divisor is zero: ``try_add`` and its like.

What fails in an operand stays an error, as in Spark: only the operation itself is tried.
"""

from collections.abc import Sequence

from sqlglot import exp

from tablestore.sql.binding.coercion import arithmetic
from tablestore.sql.binding.signatures import ResultOf, Types
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    Type,
)
from tablestore.sql.duckdb.calls import as_date, divided
from tablestore.sql.duckdb.datetimefunctions import moved
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type
from tablestore.sql.duckdb.functions.intervalvalues import WrittenInterval, without_a_form, written_interval
from tablestore.sql.duckdb.quotients import quotient
from tablestore.types.datatypes import MAX_PRECISION

_OPERATIONS: dict[str, tuple[type[exp.Binary], str]] = {
    "try_add": (exp.Add, "+"),
    "try_subtract": (exp.Sub, "-"),
    "try_multiply": (exp.Mul, "*"),
    "try_divide": (exp.Div, "/"),
    "try_mod": (exp.Mod, "%"),
}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# Digits that DuckDB computes in 64 bits.
_SHORT = 18


def _result_of(operation: type[exp.Binary]) -> ResultOf:
    def result(types: Types, values: Sequence[exp.Expr]) -> Type:
        if len(types) != 2:
            return None
        if operation in (exp.Add, exp.Sub) and tuple(types) == (TIME, INTERVAL):
            return TIME
        return arithmetic(operation(this=values[0].copy(), expression=values[1].copy()), types[0], types[1])

    return result


def _tried(call: RuleCall) -> exp.Expr:
    operation, sign = _OPERATIONS[call.name]
    left, right, result = call.type(0), call.type(1), call.result
    intervals = [written_interval(value) for value in call.values]
    if any(one is not None and one.has_months for one in intervals) and all(
        kind == INTERVAL or kind.is_number for kind in (left, right)
    ):
        raise without_a_form(call)
    if (left, right) == (TIME, INTERVAL):
        return _moved_time(call, sign, intervals[1])
    if result is None:
        raise call.refusal(f"of {left} and {right}")
    if not (_is_numeric(left) and _is_numeric(right)):
        return _moved(call, operation, left, right)
    if result.is_integer:
        least = -(2 ** (_BITS[result.name] - 1))
        values = call.value(0, _as_number(left, result)), call.value(1, _as_number(right, result))
        if operation is exp.Mod:
            return call.as_result(_unless_zero(call, divided(exp.Mod(this=values[0], expression=exp.paren(values[1])))))
        wide = f"CAST($0 AS HUGEINT) {sign} CAST($1 AS HUGEINT)"
        return call.as_result(call.text(f"CASE WHEN {wide} BETWEEN {least} AND {-least - 1} THEN {wide} END", *values))
    if operation is exp.Div:
        divided_node = exp.Div(this=exp.paren(_numeric(call, 0)), expression=exp.paren(_numeric(call, 1)))
        return as_type(_unless_zero(call, quotient(divided_node, result, _kind(left), _kind(right))), result)
    if result.is_float:
        values = exp.paren(call.value(0, result)), exp.paren(call.value(1, result))
        node = operation(this=values[0], expression=values[1])
        return call.as_result(_unless_zero(call, divided(node)) if operation is exp.Mod else node)
    return _of_decimals(call, operation, sign, result)


def _of_decimals(call: RuleCall, operation: type[exp.Binary], sign: str, result: SqlType) -> exp.Expr:
    left, right = (result if kind == VOID else kind.as_decimal for kind in map(call.type, range(2)))
    values = call.value(0, left), call.value(1, right)
    if operation is exp.Mod:
        return call.as_result(_unless_zero(call, divided(exp.Mod(this=values[0], expression=exp.paren(values[1])))))
    if result.precision == MAX_PRECISION or left.precision + right.precision > MAX_PRECISION - 1:
        raise call.refusal(f"of decimals with a result of {MAX_PRECISION} digits")
    if operation is exp.Mul:
        first = as_type(values[0], SqlType("decimal", max(left.precision, _SHORT + 1), left.scale))
        if max(left.precision, _SHORT + 1) + right.precision > MAX_PRECISION:
            first = values[0]
        return call.as_result(call.text("$0 * $1", first, values[1]))
    return call.as_result(call.text(f"$0 {sign} $1", *(as_type(value, result) for value in values)))


def _unless_zero(call: RuleCall, value: exp.Expr) -> exp.Expr:
    is_zero = exp.EQ(this=exp.paren(_numeric(call, 1)), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_zero, true=exp.null())], default=value)


def _numeric(call: RuleCall, place: int) -> exp.Expr:
    kind = call.type(place)
    return call.value(place) if kind.is_number else call.value(place, DOUBLE)


def _kind(kind: SqlType) -> SqlType:
    return kind if kind.is_number else DOUBLE


def _is_numeric(kind: SqlType) -> bool:
    return kind.is_number or kind in (STRING, VOID)


def _as_number(kind: SqlType, result: SqlType) -> SqlType:
    return kind if kind.is_integer else BIGINT if kind == STRING else result


def _moved(call: RuleCall, operation: type[exp.Binary], left: SqlType, right: SqlType) -> exp.Expr:
    if operation not in (exp.Add, exp.Sub):
        raise call.refusal(f"of {left} and {right}")
    node = operation(this=exp.paren(call.value(0)), expression=call.value(1))
    if left == DATE and (right.is_integer or (right == INTERVAL and call.result == DATE)):
        return as_date(node)
    if left == TIMESTAMP and right == INTERVAL:
        return moved(node)
    if left == TIMESTAMP_NTZ and right == INTERVAL:
        return node
    raise call.refusal(f"of {left} and {right}")


def _moved_time(call: RuleCall, sign: str, by: WrittenInterval | None) -> exp.Expr:
    """A TIME that a written interval moves; NULL where it would be another day's."""
    if by is None or by.has_months or by.length % 1000:
        raise call.refusal("of a TIME and an interval that is computed, or is finer than milliseconds")
    text = "CAST(MAKE_TIMESTAMP(CASE WHEN $0 BETWEEN 0 AND 86399999999 THEN $0 END) AS TIME)"
    return call.text(text, call.text(f"EPOCH_US($0) {sign} ({by.length})", call.value(0)))


RULES = tuple(
    FunctionRule(name=name, bounds=(2, 2), result=_result_of(operation), write=_tried)
    for name, (operation, _) in _OPERATIONS.items()
)
