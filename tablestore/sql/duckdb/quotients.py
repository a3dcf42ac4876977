"""How are decimals divided?

DuckDB divides them as doubles, which have some 16 digits; Spark's quotient may have 38. Here whole numbers of 128 bits are divided:
both operands without their points, the first with as many zeros as the quotient has digits behind its point, and one more to round
by. What does not fit into 128 bits is an error.
"""

from sqlglot import exp

from tablestore.sql.duckdb.kinds import MOST_DIGITS, Kind
from tablestore.sql.duckdb.rewrites import as_decimal, divided

_HUGE = exp.DataType.build("HUGEINT", dialect="duckdb")


def quotient(node: exp.Div, kind: Kind | None, left: Kind | None, right: Kind | None) -> exp.Expr:
    """A quotient that is an error for a divisor of zero. ``kind``: Spark's; a decimal is exact, rounded half up."""
    made = divided(node)
    if kind is None or kind.name != "decimal" or left is None or right is None:
        return made
    digits = min(kind.scale + 1, MOST_DIGITS)
    zeros = digits + right.scale - left.scale
    over, under = _unscaled(node.this, left, max(zeros, 0)), _unscaled(node.expression, right, max(-zeros, 0))
    whole = exp.Cast(this=exp.IntDiv(this=over, expression=under), to=_decimal(0))
    last = exp.Cast(this=exp.Literal.string(f"0.{1:0{digits}}"), to=_decimal(digits))
    return as_decimal(exp.Round(this=exp.Mul(this=whole, expression=last), decimals=exp.Literal.number(kind.scale)), kind)


def _unscaled(node: exp.Expr, kind: Kind, zeros: int) -> exp.Expr:
    """A number without its point, and with zeros behind it."""
    value = node
    if kind.scale and kind.precision + kind.scale < MOST_DIGITS:
        power = exp.Cast(this=exp.Literal.number(10**kind.scale), to=exp.DataType.build(f"DECIMAL({kind.scale + 1}, 0)"))
        value = exp.Mul(this=exp.Cast(this=node, to=_decimal(kind.scale)), expression=power)
    elif kind.scale:
        text = exp.Cast(this=as_decimal(node, kind), to=exp.DataType.build("TEXT"))
        value = exp.Replace(this=text, expression=exp.Literal.string("."), replacement=exp.Literal.string(""))
    huge = exp.Cast(this=value, to=_HUGE.copy())
    if not zeros:
        return huge
    power = exp.Cast(this=exp.Literal.string("1" + "0" * zeros), to=_HUGE.copy())
    return exp.Paren(this=exp.Mul(this=huge, expression=power))


def _decimal(scale: int) -> exp.DataType:
    return exp.DataType.build(f"DECIMAL({MOST_DIGITS}, {scale})")
