"""What is written in another way for DuckDB, node by node (see ``transpile``)."""

from collections.abc import Callable

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb import lists, moments, texts
from tablestore.sql.duckdb.calls import as_date, call, divided, refusal
from tablestore.sql.duckdb.kinds import MOST_DIGITS


def _number(node: exp.Literal) -> exp.Expr:
    """A whole number that is no BIGINT: a decimal of its digits, as in Spark. DuckDB has types of its own for them."""
    if node.is_string or not node.this.isdigit() or int(node.this) < 2**63:
        return node
    if isinstance(node.parent, exp.Neg) and int(node.this) == 2**63:
        return node
    digits = len(node.this.lstrip("0"))
    if digits > MOST_DIGITS:
        raise InvalidInputError(
            f"the number {node.this:.60} has {digits} digits, and a DECIMAL has {MOST_DIGITS} at most; a DOUBLE is written 1e40",
            kind="literal",
        )
    return exp.Cast(this=node.copy(), to=exp.DataType.build(f"DECIMAL({digits}, 0)"))


def _percentile(node: exp.Quantile) -> exp.Expr:
    share = node.args.get("quantile")
    if share is None:
        raise refusal("percentile without a share")
    return call("QUANTILE_CONT", node.this, share)


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
    exp.Like: texts.like,
    exp.ILike: texts.like,
    exp.Substring: texts.substring,
    exp.RegexpLike: texts.checked_pattern,
    exp.RegexpExtract: texts.checked_pattern,
    exp.RegexpSplit: texts.checked_pattern,
    exp.RegexpReplace: texts.replaced,
    exp.TsOrDsAdd: as_date,
    exp.AddMonths: as_date,
    exp.DateFromUnixDate: as_date,
    exp.TsOrDsToDate: moments.strict_date,
    exp.DateTrunc: moments.truncated_date,
    exp.TimestampTrunc: moments.truncated_timestamp,
    exp.StrToUnix: moments.seconds,
    exp.TimestampDiff: moments.difference,
    exp.TimeToUnix: moments.seconds,
    exp.ArraySlice: lists.slice_of,
    exp.GenerateSeries: lists.series,
    exp.Any: _any,
    exp.Exists: _exists,
    exp.DayOfWeek: moments.day_of_week,
    exp.Dayname: texts.short,
    exp.Monthname: texts.short,
    exp.Extract: moments.extract,
    exp.Quantile: _percentile,
}
NAMED: dict[str, Callable[..., exp.Expr]] = {
    "weekday": moments.weekday,
    "pmod": _positive_modulo,
    "every": lambda condition: exp.LogicalAnd(this=condition),
    "some": lambda condition: exp.LogicalOr(this=condition),
    "isnull": _is_null,
    "isnotnull": lambda value: exp.Not(this=_is_null(value)),
}
KNOWN_NAMES = frozenset({"cardinality", "error", "make_date", "map_values", "range"})
KNOWN = frozenset({
    "Abs", "And", "ApproxDistinct", "ArgMax", "ArgMin", "Array", "ArrayAgg", "ArrayContains", "ArrayFilter", "ArraySize",
    "ArraySort", "ArrayToString", "ArrayUniqueAgg", "Ascii", "Atan2", "Avg", "BitwiseCount", "Case", "Cast", "Ceil", "Chr",
    "Coalesce", "Concat", "ConcatWs", "Contains", "Corr", "Cos", "Count", "CountIf", "CovarPop", "CovarSamp", "Cube",
    "CumeDist", "CurrentDate", "CurrentTimestamp", "DateDiff", "DateFromParts", "Day", "DayOfMonth", "DayOfYear", "DecodeCase",
    "Degrees", "DenseRank", "EndsWith", "Exp", "Explode", "First", "FirstValue", "Flatten", "Floor", "Greatest", "Grouping",
    "Hex", "Hour", "If", "Initcap", "IsNan", "JSONExtractScalar", "JSONFormat", "Lag", "Last", "LastDay", "LastValue", "Lead",
    "Least", "Left", "Length", "Levenshtein", "Ln", "Log", "LogicalAnd", "LogicalOr", "Lower", "MD5", "MapKeys", "Max",
    "Median", "Min", "Minute", "Month", "MonthsBetween", "NextDay", "Ntile", "Nullif", "Nvl2", "Or", "Overlay", "Pad",
    "PercentRank", "Pi", "Posexplode", "Pow", "Quarter", "Radians", "Rank", "Reduce", "Repeat", "Replace", "Reverse", "Right",
    "Rollup", "Round", "RowNumber", "SHA", "SHA2", "Second", "Sign", "Sin", "SplitPart", "Sqrt", "StartsWith", "Stddev",
    "StddevPop", "StddevSamp", "StrPosition", "StrToTime", "Struct", "Sum", "Tan", "TimeStrToTime", "TimeToStr",
    "TimestampDiff", "TimestampTrunc", "Transform", "Translate", "Trim", "TryCast", "Unhex", "UnixDate", "Upper", "VarMap",
    "Variance", "VariancePop", "WeekOfYear", "Xor", "Year",
})  # fmt: skip
"""Functions, by sqlglot's names, that mean the same in both once sqlglot has translated them."""
