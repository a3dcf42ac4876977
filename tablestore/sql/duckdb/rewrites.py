"""What is written in another way for DuckDB, node by node (see ``transpile``)."""

from collections.abc import Callable

from sqlglot import exp

from tablestore.sql.duckdb import lists, moments, texts
from tablestore.sql.duckdb.calls import as_date, call, divided, refusal


def _number(node: exp.Literal) -> exp.Expr:
    """A whole number that is no BIGINT: a decimal of its digits, as in Spark. DuckDB has types of its own for them."""
    if node.is_string or not node.this.isdigit() or int(node.this) < 2**63:
        return node
    around = node.parent.parent if isinstance(node.parent, exp.Cast) else node.parent
    if isinstance(around, exp.Neg) and int(node.this) == 2**63:
        return node
    # Those of more digits than a DECIMAL has are refused in the text.
    return exp.Cast(this=node.copy(), to=exp.DataType.build(f"DECIMAL({len(node.this.lstrip('0'))}, 0)"))


def _negative(node: exp.Neg) -> exp.Expr:
    """The least number of a type: without its sign it would be out of range."""
    number = node.this
    if not (isinstance(number, exp.Cast) and isinstance(number.this, exp.Literal) and not number.this.is_string):
        return node
    return exp.Cast(this=exp.Neg(this=number.this), to=number.to)


def _percentile(node: exp.Quantile) -> exp.Expr:
    share = node.args.get("quantile")
    if share is None:
        raise refusal("percentile without a share")
    return call("QUANTILE_CONT", _double(node.this), share)


def _median(node: exp.Median) -> exp.Expr:
    node.set("this", _double(node.this))
    return node


def _double(number: exp.Expr) -> exp.Expr:
    """In the middle of two decimals lies one that may need another digit."""
    return exp.Cast(this=number, to=exp.DataType.build("DOUBLE"))


def _count(node: exp.Count) -> exp.Expr:
    """The rows in which none of several values is NULL."""
    if not node.expressions:
        return node
    known = [exp.Not(this=exp.Is(this=value, expression=exp.null())) for value in (node.this, *node.expressions)]
    return exp.CountIf(this=exp.and_(*known, copy=False))


def _logarithm(node: exp.Expr) -> exp.Expr:
    """NULL of what is not positive, as in Spark; DuckDB has NaN and infinity."""
    for key in ("this", "expression"):
        value = node.args.get(key)
        if value is not None and not isinstance(value, exp.Literal):
            is_positive = exp.GT(this=exp.paren(value.copy()), expression=exp.Literal.number(0))
            node.set(key, exp.Case(ifs=[exp.If(this=is_positive, true=value)]))
        elif isinstance(value, exp.Literal) and not value.is_string and float(value.name) == 0:
            node.set(key, exp.null())
    return node


def _is_nan(node: exp.IsNan) -> exp.Expr:
    return exp.Coalesce(this=node, expressions=[exp.false()])


def _any(node: exp.Any) -> exp.Expr:
    if isinstance(node.parent, exp.Predicate) or isinstance(node.this.unnest(), exp.Query):
        return node
    return exp.LogicalOr(this=node.this.unnest())


def _exists(node: exp.Exists) -> exp.Expr:
    if node.args.get("expression") is not None:
        raise refusal("the function exists")
    return node


def _positive_modulo(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    once = exp.Paren(this=exp.Mod(this=exp.paren(left), expression=_divisor(right)))
    return exp.Mod(this=exp.Paren(this=exp.Add(this=once, expression=exp.paren(right.copy()))), expression=exp.paren(right.copy()))


def _divisor(node: exp.Expr) -> exp.Expr:
    guarded: exp.Expr = divided(exp.Mod(this=exp.null(), expression=node)).expression
    return guarded


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))


REWRITES: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Literal: _number,
    exp.Neg: _negative,
    exp.Like: texts.like,
    exp.ILike: texts.like,
    exp.Substring: texts.substring,
    exp.Left: texts.end,
    exp.Right: texts.end,
    exp.Replace: texts.replace,
    exp.SplitPart: texts.split_part,
    exp.Chr: texts.character,
    exp.RegexpLike: texts.checked_pattern,
    exp.RegexpExtract: texts.checked_pattern,
    exp.RegexpSplit: texts.checked_pattern,
    exp.RegexpReplace: texts.replaced,
    exp.TsOrDsAdd: as_date,
    exp.AddMonths: as_date,
    exp.DateFromUnixDate: as_date,
    exp.DateTrunc: moments.truncated_date,
    exp.TimestampTrunc: moments.truncated_timestamp,
    exp.StrToUnix: moments.seconds,
    exp.DateDiff: moments.date_difference,
    exp.TimestampDiff: moments.difference,
    exp.TimeToStr: moments.formatted,
    exp.StrToTime: moments.parsed,
    exp.TimeToUnix: moments.seconds,
    exp.ArraySlice: lists.slice_of,
    exp.GenerateSeries: lists.series,
    exp.ArraySize: lambda node: lists.size(node.this),
    exp.ArrayContains: lists.contains,
    exp.Flatten: lists.flatten,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.IsNan: _is_nan,
    exp.Any: _any,
    exp.Exists: _exists,
    exp.DayOfWeek: moments.day_of_week,
    exp.Dayname: texts.short,
    exp.Monthname: texts.short,
    exp.Extract: moments.extract,
    exp.Quantile: _percentile,
    exp.Median: _median,
    exp.Count: _count,
    exp.Transform: lists.with_lambda,
    exp.ArrayFilter: lists.with_lambda,
}
NAMED: dict[str, Callable[..., exp.Expr]] = {
    "weekday": moments.weekday,
    "cardinality": lists.size,
    "pmod": _positive_modulo,
    "every": lambda condition: exp.LogicalAnd(this=condition),
    "some": lambda condition: exp.LogicalOr(this=condition),
    "isnull": _is_null,
    "isnotnull": lambda value: exp.Not(this=_is_null(value)),
}
KNOWN_NAMES = frozenset({"error", "make_date", "map_values", "range"})
KNOWN = frozenset({
    "Abs", "And", "ApproxDistinct", "ArgMax", "ArgMin", "Array", "ArrayAgg",
    "ArraySort", "ArrayToString", "ArrayUniqueAgg", "Ascii", "Atan2", "Avg", "BitwiseCount", "Case", "Cast", "Ceil",
    "Coalesce", "Concat", "ConcatWs", "Contains", "Corr", "Cos", "CountIf", "CovarPop", "CovarSamp", "Cube",
    "CumeDist", "CurrentDate", "CurrentTimestamp", "DateFromParts", "Day", "DayOfMonth", "DayOfYear", "DecodeCase",
    "Degrees", "DenseRank", "EndsWith", "Exp", "Explode", "First", "FirstValue", "Floor", "Greatest", "Grouping",
    "Hex", "Hour", "If", "Initcap", "JSONExtractScalar", "JSONFormat", "Lag", "Last", "LastDay", "LastValue", "Lead",
    "Least", "Length", "Levenshtein", "LogicalAnd", "LogicalOr", "Lower", "MD5", "MapKeys", "Max",
    "Min", "Minute", "Month", "MonthsBetween", "NextDay", "Ntile", "Nullif", "Nvl2", "Or", "Overlay", "Pad",
    "PercentRank", "Pi", "Posexplode", "Pow", "Quarter", "Radians", "Rank", "Reduce", "Repeat", "Reverse",
    "Rollup", "Round", "RowNumber", "SHA", "SHA2", "Second", "Sign", "Sin", "Sqrt", "StartsWith", "Stddev",
    "StddevPop", "StddevSamp", "StrPosition", "Struct", "Sum", "Tan", "TimeStrToTime",
    "Translate", "Trim", "TryCast", "Unhex", "UnixDate", "Upper", "VarMap",
    "Variance", "VariancePop", "WeekOfYear", "Xor", "Year",
})  # fmt: skip
"""Functions, by sqlglot's names, that mean the same in both once sqlglot has translated them."""
