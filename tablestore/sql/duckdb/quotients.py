"""Divides and averages decimals exactly.

DuckDB does it with doubles, which have some 16 digits; Spark's quotient may have 38. Here whole numbers of 128 bits are divided:
both operands without their points, the first with as many zeros as the quotient has digits behind its point, and one more to round
by. What does not fit into 128 bits is an error. An average is the quotient of a sum and a count.
"""

from sqlglot import exp

from tablestore.sql.binding.sqltypes import BIGINT, SqlType, Type, decimal
from tablestore.sql.duckdb.calls import aggregate_of, as_decimal, divided, refusal, unknown_operand, with_aggregate
from tablestore.types.datatypes import MAX_PRECISION

_HUGE = exp.DataType.build("HUGEINT", dialect="duckdb")


def quotient(node: exp.Div, kind: Type, left: Type, right: Type) -> exp.Expr:
    """A quotient that is an error for a divisor of zero. ``kind``: Spark's; a decimal is exact, rounded half up."""
    if left is None or right is None:
        raise unknown_operand("a quotient", node)
    checked = divided(node)
    if kind is None or not kind.is_decimal:
        return checked
    return _exact(node.this, left, node.expression, right, kind)


def whole_quotient(node: exp.IntDiv, left: Type, right: Type) -> exp.Expr:
    """A quotient without its fraction, which is an error for a divisor of zero. DuckDB rounds that of decimals."""
    if left is None or right is None:
        raise unknown_operand("DIV", node)
    if left.is_float or right.is_float:
        raise refusal("DIV of what is no whole number or decimal")
    checked = divided(node)
    if left.is_integer and left != BIGINT:
        # Of the least INT by -1.
        checked.set("this", exp.cast(node.this, "BIGINT"))
    if not (left.is_decimal or right.is_decimal):
        return checked
    zeros = right.scale - left.scale
    over, under = _unscaled(node.this, left, max(zeros, 0)), _unscaled(node.expression, right, max(-zeros, 0))
    return exp.Cast(this=exp.IntDiv(this=over, expression=under), to=exp.DataType.build("BIGINT"))


def average(node: exp.Expr, kind: SqlType, of: SqlType) -> exp.Expr:
    """An average of decimals, in its window and behind its filter. ``kind``: Spark's of the average, ``of``: of the decimals."""
    among = aggregate_of(node).this
    total = decimal(of.precision + 10, of.scale)
    count = exp.Nullif(this=with_aggregate(node, exp.Count(this=among.copy())), expression=exp.Literal.number(0))
    return _exact(with_aggregate(node, exp.Sum(this=among.copy())), total, count, BIGINT, kind)


def average_of_doubles(node: exp.Avg) -> exp.Expr:
    """An average of numbers that Spark adds up as doubles, BIGINT too."""
    among = node.this
    if isinstance(among, exp.Distinct):
        among.set("expressions", [exp.cast(part, "DOUBLE") for part in among.expressions])
    else:
        node.set("this", exp.cast(among, "DOUBLE"))
    return node


def averaged(node: exp.Expr) -> exp.Avg | None:
    """The average that a node is, in its window and behind its filter."""
    inner = aggregate_of(node)
    return inner if isinstance(inner, exp.Avg) else None


def _exact(over: exp.Expr, left: SqlType, under: exp.Expr, right: SqlType, kind: SqlType) -> exp.Expr:
    digits = min(kind.scale + 1, MAX_PRECISION)
    zeros = digits + right.scale - left.scale
    whole = exp.IntDiv(this=_unscaled(over, left, max(zeros, 0)), expression=_unscaled(under, right, max(-zeros, 0)))
    last = exp.Cast(this=exp.Literal.string(f"0.{1:0{digits}}"), to=_widest(digits))
    product = exp.Mul(this=exp.Cast(this=whole, to=_widest(0)), expression=last)
    return as_decimal(exp.Round(this=product, decimals=exp.Literal.number(kind.scale)), kind)


def _unscaled(node: exp.Expr, kind: SqlType, zeros: int) -> exp.Expr:
    """A number without its point, and with zeros behind it."""
    value = node
    if kind.scale and kind.precision + kind.scale < MAX_PRECISION:
        power = exp.Cast(this=exp.Literal.number(10**kind.scale), to=exp.DataType.build(f"DECIMAL({kind.scale + 1}, 0)"))
        value = exp.Mul(this=exp.Cast(this=node, to=_widest(kind.scale)), expression=power)
    elif kind.scale:
        text = exp.Cast(this=as_decimal(node, kind), to=exp.DataType.build("TEXT"))
        value = exp.Replace(this=text, expression=exp.Literal.string("."), replacement=exp.Literal.string(""))
    huge = exp.Cast(this=value, to=_HUGE.copy())
    if not zeros:
        return huge
    power = exp.Cast(this=exp.Literal.string("1" + "0" * zeros), to=_HUGE.copy())
    return exp.Paren(this=exp.Mul(this=huge, expression=power))


def _widest(scale: int) -> exp.DataType:
    return exp.DataType.build(f"DECIMAL({MAX_PRECISION}, {scale})")
