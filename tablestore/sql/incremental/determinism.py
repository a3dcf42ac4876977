"""Checks that a query gives the same rows each time that it reads the same rows.

Only what is known to is let through: a value that changed by itself would never be among the changes of a source. That of an
aggregate must not depend on the order of its rows either.
"""

from sqlglot import exp

from tablestore.sql.incremental.shapes import NoRuleError
from tablestore.sql.query.dialect import Spark4

# By sqlglot's names. What needs a pattern of a date or time is left out: what sqlglot reads it may write in other words.
_VALUES = frozenset({
    "Abs", "Acos", "AddMonths", "And", "Array", "ArrayContains", "ArraySize", "Ascii", "Asin", "Atan", "Atan2", "BitwiseCount",
    "Case", "Cast", "Cbrt", "Ceil", "Chr", "Coalesce", "Concat", "ConcatWs", "Contains", "Cos", "DateAdd", "DateDiff",
    "DateFromParts", "DateSub", "Day", "DayOfMonth", "DayOfWeek", "DayOfYear", "DecodeCase", "Degrees", "EndsWith", "Exists",
    "Exp", "Explode", "Extract", "Floor", "Greatest", "Hex", "Hour", "If", "Initcap", "IsNan", "LastDay", "Least", "Left",
    "Length", "Levenshtein", "Ln", "Log", "Lower", "MD5", "Minute", "Month", "Nullif", "Nvl2", "Or", "Overlay", "Pad", "Pi",
    "Posexplode", "Pow", "Quarter", "Radians", "RegexpExtract", "RegexpLike", "RegexpReplace", "RegexpSplit", "Repeat", "Replace",
    "Reverse", "Right", "Round", "SHA", "SHA2", "Second", "Sign", "Sin", "SplitPart", "Sqrt", "StartsWith", "StrPosition",
    "Struct", "Substring", "Tan", "TimestampTrunc", "Translate", "Trim", "Trunc", "TryCast", "TsOrDsToDate", "Unhex", "UnixDate",
    "Upper", "WeekOfYear", "Xor", "Year",
})  # fmt: skip
# Of calls that are kept as they are written.
_NAMED = frozenset({"element_at", "exists", "try_element_at"})
_AGGREGATES = frozenset({
    "Avg", "Corr", "Count", "CountIf", "CovarPop", "CovarSamp", "LogicalAnd", "LogicalOr", "Max", "Median", "Min", "Stddev",
    "StddevPop", "StddevSamp", "Sum", "Variance", "VariancePop",
})  # fmt: skip
_WINDOWS = frozenset(
    {"CumeDist", "DenseRank", "FirstValue", "Lag", "LastValue", "Lead", "Ntile", "PercentRank", "Rank", "RowNumber"}
)
_KNOWN = _VALUES | _AGGREGATES | _WINDOWS


def check_deterministic(query: exp.Expr) -> None:
    """Raises NoRuleError that names the first function that may give another value each time."""
    for function in query.find_all(exp.Func):
        is_known = function.name.lower() in _NAMED if isinstance(function, exp.Anonymous) else type(function).__name__ in _KNOWN
        if not is_known or _has_pattern(function):
            name = _name(function)
            raise NoRuleError(f"it calls {name}(), which is not known to give the same value each time", repeatable=False)


def _has_pattern(call: exp.Func) -> bool:
    return isinstance(call, exp.TsOrDsToDate) and call.args.get("format") is not None


def _name(call: exp.Func) -> str:
    """The function as it is written in Spark: sqlglot's own names are nobody's."""
    name = call.name if isinstance(call, exp.Anonymous) else call.sql(dialect=Spark4).partition("(")[0]
    return (name if name.isidentifier() else call.sql_name()).lower()


def is_aggregate(function: exp.Expr) -> bool:
    """True if a function combines rows, and is not the function of a window."""
    return isinstance(function, exp.AggFunc) and type(function).__name__ in _AGGREGATES
