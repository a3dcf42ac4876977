"""Builds the parts of DuckDB's SQL that many rewrites need."""

from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from tablestore.errors import UnsupportedError
from tablestore.sql.binding.sqltypes import SqlType

OWN_TEXT = "own text"
"""Under this key the meta of what may fail has its text, as the user wrote it."""
DIVIDENDS = "dividends"
"""Under this key the meta of a quotient has columns: it is NULL where one of them is, unless its divisor is."""
MOST_SHOWN = 120
"""Characters of such a text that are shown."""
RAISED = "_tablestore_error: "
"""The beginning of a text whose cast raises the rest of it as an error."""
AROUND_AN_AGGREGATE = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""What may stand around an aggregate as its window, its filter, and the rows that it counts."""
REFUSED = "DuckDB does not run"
"""The beginning of each refusal."""
STEADY = ("UTC", "Etc/UTC", "GMT")
"""The time zones whose clocks never go back, by the names that are most written."""
# Of two moments that clocks show alike Java takes the first, DuckDB the second. The first is what clocks
# show a day before, and a day later; if they are set forward in between, what is found shows something else.
_FIRST_SHOWN = """LIST_TRANSFORM([:at], LAMBDA _at: CASE
    WHEN ((_at::TIMESTAMP - INTERVAL 1 DAY)::TIMESTAMPTZ + INTERVAL 24 HOUR)::TIMESTAMP = _at::TIMESTAMP
    THEN (_at::TIMESTAMP - INTERVAL 1 DAY)::TIMESTAMPTZ + INTERVAL 24 HOUR
    ELSE _at
END)[1]"""


def refusal(what: str) -> UnsupportedError:
    """The error that names what DuckDB does not do."""
    return UnsupportedError(f"{REFUSED} {what} as Spark does; run the query on the engine spark", kind="engine")


def unknown_operand(what: str, node: exp.Expr) -> UnsupportedError:
    """The error for an expression whose meaning depends on the type of an operand that is not known. ``node``: where it stands."""
    return refusal(f"{what} of a value whose type is not known{in_own_text(node)}, which a CAST says,")


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of one of DuckDB's functions."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def as_date(node: exp.Expr) -> exp.Expr:
    """A cast to a date of a value that DuckDB makes a timestamp."""
    return exp.Cast(this=node, to=exp.DataType.build("DATE"))


def as_zoned(node: exp.Expr) -> exp.Expr:
    """A timestamp of the session's time zone."""
    return exp.Cast(this=node, to=exp.DataType.build("TIMESTAMPTZ"))


def written(text: str, **parts: exp.Expr) -> exp.Expr:
    """An expression in DuckDB's words, with parts in the place of ``:names``."""
    return exp.replace_placeholders(_parsed(text), **parts)


@cache
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read=DuckDB)


def in_steady_zone(moment: exp.Expr, other: exp.Expr) -> exp.Expr:
    """A moment if the clocks of the session's time zone never go back, else another one: DuckDB knows before it reads a row."""
    zone = call("CURRENT_SETTING", exp.Literal.string("TimeZone"))
    is_steady = exp.In(this=zone, expressions=[exp.Literal.string(name) for name in STEADY])
    return exp.Case(ifs=[exp.If(this=is_steady, true=moment)], default=other)


def zoned_of_local(local: exp.Expr, *, is_finite: bool = False) -> exp.Expr:
    """The first moment at which clocks of the session's time zone show a TIMESTAMP_NTZ: the same, if that zone is UTC.

    ``is_finite``: it is none of DuckDB's infinite ones.
    """
    zoned = as_zoned(local.copy())
    in_utc: exp.Expr = call("MAKE_TIMESTAMPTZ", call("EPOCH_US", local))
    if not is_finite:
        # Infinity has no microseconds.
        in_utc = exp.Coalesce(this=in_utc, expressions=[zoned])
    return in_steady_zone(in_utc, first_shown(zoned.copy()).args["default"])


def local_of_zoned(zoned: exp.Expr) -> exp.Expr:
    """The TIMESTAMP that clocks in UTC show at a TIMESTAMP WITH TIME ZONE."""
    return call("MAKE_TIMESTAMP", call("EPOCH_US", zoned))


def first_shown(moment: exp.Expr, condition: exp.Expr | None = None) -> exp.Expr:
    """The first of the moments that clocks of the session's time zone show as they show this one, if a condition holds."""
    first = written(_FIRST_SHOWN, at=moment)
    if condition is not None:
        first = exp.Case(ifs=[exp.If(this=condition, true=first)], default=moment.copy())
    return in_steady_zone(moment, first)


def as_decimal(node: exp.Expr, kind: SqlType) -> exp.Expr:
    """A cast to a decimal of Spark's digits of a value that DuckDB computes as a double."""
    return exp.Cast(this=node, to=exp.DataType.build(f"DECIMAL({kind.precision}, {kind.scale})"))


def is_distinct(equal: exp.Expr) -> exp.Expr:
    """The condition that two operands differ, or one of them is NULL.

    Not IS DISTINCT FROM: DuckDB 2.0 takes wrong rows where it filters a Parquet file by it.
    """
    return exp.Case(ifs=[exp.If(this=equal, true=exp.false())], default=exp.true())


def in_own_text(node: exp.Expr) -> str:
    """The end of an error: `` in `a / b` ``, from which its place is found. Empty if it is long, or not known."""
    text = node.meta.get(OWN_TEXT, "")
    return f" in `{text}`" if 0 < len(text) <= MOST_SHOWN else ""


def failing(condition: exp.Expr, message: str, value: exp.Expr) -> exp.Case:
    """A value, or an error where the condition holds."""
    return exp.Case(ifs=[exp.If(this=condition, true=call("ERROR", exp.Literal.string(message)))], default=value)


def as_partition(key: exp.Expr) -> exp.Expr:
    """A key by which a window shares out its rows. There DuckDB takes no ``error``, but a cast that fails."""
    for choice in list(key.find_all(exp.Case)):
        branches = choice.args["ifs"]
        raising = [
            branch for branch in branches if isinstance(branch.args["true"], exp.Anonymous) and branch.args["true"].this == "ERROR"
        ]
        for branch in raising:
            (message,) = branch.args["true"].expressions
            text = exp.Concat(expressions=[exp.Literal.string(RAISED), message])
            raised = exp.Case(ifs=[exp.If(this=branch.this, true=text)])
            branch.replace(exp.If(this=exp.cast(raised, "BOOLEAN"), true=exp.null()))
    return key


def refused_where(condition: exp.Expr, what: str, value: exp.Expr) -> exp.Expr:
    """A value, or while the query runs a :func:`refusal` of it where the condition holds."""
    return failing(condition, str(refusal(what)), value)


def is_not_null(value: exp.Expr) -> exp.Expr:
    """The condition that a value is not NULL."""
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))


def without_sign_of_zero(number: exp.Expr) -> exp.Expr:
    """A double, with 0.0 for -0.0."""
    return exp.paren(exp.Add(this=number, expression=exp.cast(exp.Literal.number(0), "DOUBLE")))


def not_negative(count: exp.Expr) -> exp.Expr:
    """A number, with 0 for negative ones."""
    if isinstance(count, exp.Literal):
        return count
    zero = exp.Literal.number(0)
    is_less = exp.LT(this=exp.paren(count.copy()), expression=zero)
    return exp.Case(ifs=[exp.If(this=is_less, true=zero.copy())], default=count)


def aggregate_of(node: exp.Expr) -> exp.Expr:
    """The aggregate that a node is, in its window and behind its filter."""
    while isinstance(node, AROUND_AN_AGGREGATE):
        node = node.this
    return node


def with_aggregate(node: exp.Expr, aggregate: exp.Expr) -> exp.Expr:
    """The node with another aggregate in its window and behind its filter."""
    copied = node.copy()
    inner = aggregate_of(copied)
    if inner is copied:
        return aggregate
    inner.replace(aggregate)
    return copied


def note_dividends(node: exp.Expr) -> None:
    """Keeps with a quotient or remainder the columns that its dividend is NULL with, if that is arithmetic of columns alone.

    So a chain of quotients grows with its length; its dividends themselves would double with each of them.
    """
    columns: dict[str, exp.Column] = {}
    left = [node.this]
    while left:
        part = left.pop()
        if isinstance(part, exp.Column):
            columns[part.sql()] = part.copy()
        elif isinstance(part, _ARITHMETIC):
            left += part.iter_expressions()
        elif not isinstance(part, exp.Literal):
            return
    node.meta[DIVIDENDS] = list(columns.values())


_ARITHMETIC = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def divided(node: exp.Expr) -> exp.Expr:
    """A quotient or remainder that is an error for a divisor of zero."""
    divisor = node.expression
    plain = divisor.unnest()
    if not isinstance(plain, exp.Literal) or plain.is_string or float(plain.name) == 0:
        # NULL by zero is NULL.
        is_zero: exp.Expr = exp.EQ(this=exp.paren(divisor.copy()), expression=exp.Literal.number(0))
        if not isinstance(node.this.unnest(), (exp.Literal, exp.Null)):
            dividends = node.meta.get(DIVIDENDS) or [exp.paren(node.this.copy())]
            is_zero = exp.and_(is_zero, *map(is_not_null, dividends), copy=False)
        guarded = failing(is_zero, f"division by zero{in_own_text(node)}", divisor)
        if isinstance(node, exp.Mod):
            # The sign of a divisor does not matter, and the least number has no quotient by -1.
            minus_one = exp.EQ(this=exp.paren(divisor.copy()), expression=exp.Literal.number(-1))
            guarded.append("ifs", exp.If(this=minus_one, true=exp.Abs(this=divisor.copy())))
        node.set("expression", guarded)
    if isinstance(node, exp.Div):
        node.set("safe", False)
        node.set("typed", False)
    return node
