"""Functions of dates and timestamps, as Spark has them."""

from sqlglot import exp

from tablestore.sql.duckdb.calls import as_date, call, refusal

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "QUARTER": "QUARTER",
    "WEEK": "WEEK",
}


def truncated_date(node: exp.DateTrunc) -> exp.Expr:
    """``trunc``: a date, cut to a unit that Spark knows."""
    unit = str(node.args["unit"].name).upper()
    if unit not in _UNITS:
        raise refusal(f"trunc to {unit}")
    node.set("unit", exp.Literal.string(_UNITS[unit]))
    return as_date(node)


def truncated_timestamp(node: exp.TimestampTrunc) -> exp.Expr:
    """A TIMESTAMP WITH TIME ZONE, of whatever is cut off."""
    node.set("this", exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMPTZ")))
    return node


def seconds(node: exp.Expr) -> exp.Expr:
    """``unix_timestamp``: whole seconds since 1970."""
    chosen = node.args.get("format")
    if chosen is not None and chosen.name.replace("strict", "") != "%Y-%m-%d %H:%M:%S":
        raise refusal("unix_timestamp with a format")
    moment = exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMPTZ"))
    return exp.Cast(this=call("FLOOR", call("EPOCH", moment)), to=exp.DataType.build("BIGINT"))


def difference(node: exp.TimestampDiff) -> exp.Expr:
    """DuckDB's difference counts the borders between two moments, Spark's the whole units."""
    unit = exp.Literal.string(str(node.args["unit"].name).lower())
    first, last = (exp.Cast(this=end, to=exp.DataType.build("TIMESTAMP")) for end in (node.expression, node.this))
    return call("DATE_SUB", unit, first, last)


def weekday(day: exp.Expr) -> exp.Expr:
    """``weekday``: Monday is 0."""
    return exp.Sub(this=call("ISODOW", day), expression=exp.Literal.number(1))


def day_of_week(node: exp.DayOfWeek) -> exp.Expr:
    """``dayofweek``: Sunday is 1 in Spark, and 0 in DuckDB."""
    return exp.Paren(this=exp.Add(this=node, expression=exp.Literal.number(1)))


def extract(node: exp.Extract) -> exp.Expr:
    """``EXTRACT`` of a part that both count alike, and of the day of the week."""
    part = node.name.upper()
    if part in ("DOW", "DAYOFWEEK"):
        return exp.Paren(this=exp.Add(this=node, expression=exp.Literal.number(1)))
    if part not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE"):
        raise refusal(f"EXTRACT({part} …)")
    return node


def strict_date(node: exp.TsOrDsToDate) -> exp.Expr:
    """A date that is an error, not NULL, where a text is none."""
    node.set("safe", False)
    return node
