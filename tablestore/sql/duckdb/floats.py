"""Computes with floats as Spark does, where DuckDB does it in another way.

A FLOAT beside any other number is a DOUBLE in Spark, so ``f = 0.1`` compares 0.10000000149 with 0.1. DuckDB makes the other one a
FLOAT. Spark rounds a double by the decimal that it is written as: 1.005 to 1.01. DuckDB rounds 1.00499999999999989. A variance
of one NaN is 0 in DuckDB.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.functiontypes import alternatives, round_digits, rounded
from tablestore.sql.binding.sqltypes import FLOAT, Type
from tablestore.sql.duckdb.calls import aggregate_of, as_decimal, refusal, unknown_operand, with_aggregate, without_sign_of_zero
from tablestore.sql.duckdb.textnumbers import COMPARISONS

DOUBLE_TYPE = exp.DataType.build("DOUBLE")
ROUNDED = (exp.Round, exp.Floor, exp.Ceil)
_COMPARISONS = (*COMPARISONS, exp.Nullif)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div)
_CHOICES = (exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nvl2, exp.Array)
# From here on every double is a whole number.
_ALL_WHOLE = 2**53
_MOST_ROUNDED = 15


def widened_operands(node: exp.Expr, bound: Bound) -> Iterator[exp.Expr]:
    """The FLOAT operands of a node that Spark makes DOUBLE first."""
    if isinstance(node, _ARITHMETIC):
        sides = (node.this, node.expression)
        yield from _singles(sides, bound, always=isinstance(node, exp.Div))
    elif isinstance(node, _COMPARISONS):
        yield from _compared((node.this, node.expression), bound)
    elif isinstance(node, exp.Between):
        yield from _compared((node.this, node.args["low"], node.args["high"]), bound)
    elif isinstance(node, exp.In):
        among = node.args.get("query")
        # The column of a query is cast inside of it (``numbertypes``).
        found = _compared((node.this, *([among] if among is not None else node.expressions)), bound)
        yield from (one for one in found if one is not among)
    elif isinstance(node, _CHOICES):
        yield from _singles(alternatives(node), bound)
        if isinstance(node, exp.Case) and node.this is not None:
            yield from _compared((node.this, *(branch.this for branch in node.args["ifs"])), bound)


def _compared(parts: Sequence[exp.Expr], bound: Bound) -> list[exp.Expr]:
    """The operands of a comparison to widen. A FLOAT equals another FLOAT as DOUBLE too: one that is not known to be a FLOAT is
    enough."""
    singles = [part for part in parts if bound.of(part) == FLOAT]
    return singles if len(singles) < len(parts) else []


def _singles(parts: Sequence[exp.Expr], bound: Bound, *, always: bool = False) -> list[exp.Expr]:
    """The values that are FLOAT where another one is known to be another number."""
    found = {id(part): bound.of(part) for part in parts}
    has_other = any(kind is not None and kind.is_number and kind != FLOAT for kind in found.values())
    return [part for part in parts if found[id(part)] == FLOAT] if always or has_other else []


def spread_as_spark(node: exp.Expr) -> exp.Expr:
    """A variance or deviation, in its window and behind its filter: NaN where its only value is."""
    among = aggregate_of(node).this
    value = among.expressions[0] if isinstance(among, exp.Distinct) else among
    greatest = with_aggregate(node, exp.Max(this=exp.Cast(this=value.copy(), to=DOUBLE_TYPE.copy())))
    return exp.paren(exp.Add(this=node, expression=exp.Mul(this=exp.Literal.number(0), expression=greatest)))


def round_as_spark(node: exp.Round | exp.Floor | exp.Ceil, kind: Type) -> exp.Expr:
    """Writes ``round``, ``floor`` and ``ceil``. ``kind``: the type of the value that is rounded."""
    if not isinstance(node, exp.Round) and node.args.get("decimals") is not None:
        raise refusal(f"{node.sql_name().lower()} with digits")
    made = rounded(node, kind)
    if kind is None:
        raise unknown_operand(f"{node.sql_name().lower()}", node)
    if made is None:
        return node
    if made.is_decimal:
        return as_decimal(node, made)
    if isinstance(node, exp.Round):
        return _rounded_float(node, kind) if kind.is_float else node
    # DuckDB makes a whole number a double to take its floor.
    if kind.is_integer:
        return exp.cast(node.this, "BIGINT")
    is_nan = exp.If(this=exp.IsNan(this=node.this.copy()), true=exp.Literal.number(0))
    return exp.cast(exp.Case(ifs=[is_nan], default=node), "BIGINT")


def _rounded_float(node: exp.Round, kind: Type) -> exp.Expr:
    digits = round_digits(node)
    if digits is None or digits > _MOST_ROUNDED:
        raise refusal(f"round of a float to digits that are computed or more than {_MOST_ROUNDED}")
    if digits <= 0:
        return exp.cast(without_sign_of_zero(exp.cast(node, "DOUBLE")), "FLOAT") if kind == FLOAT else without_sign_of_zero(node)
    double = exp.Cast(this=node.this, to=DOUBLE_TYPE.copy()) if kind == FLOAT else node.this
    size = exp.Abs(this=double.copy())
    # The shortest text of a double has 17 digits: all of them fit in.
    branches = [
        exp.If(this=exp.LT(this=size.copy(), expression=exp.Literal.number(bound)), true=_rounded_text(double, scale, digits))
        for bound, scale in ((1, 37), (_ALL_WHOLE, 22))
    ]
    result = exp.Case(ifs=branches, default=double)
    return exp.Cast(this=result, to=exp.DataType.build("FLOAT")) if kind == FLOAT else result


def _rounded_text(double: exp.Expr, scale: int, digits: int) -> exp.Expr:
    text = exp.Cast(this=double.copy(), to=exp.DataType.build("TEXT"))
    decimal = exp.Cast(this=text, to=exp.DataType.build(f"DECIMAL(38, {scale})"))
    return exp.Cast(this=exp.Round(this=decimal, decimals=exp.Literal.number(digits)), to=DOUBLE_TYPE.copy())
