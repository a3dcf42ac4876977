"""Says which type a function has in Spark: a line for each function, with a constant or with a rule over its operands.

``RESULTS`` is by sqlglot's class of a function, ``NAMED`` by the name of one that sqlglot has no class for. A function of neither
has a type that is not known.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from sqlglot import exp

from tablestore.sql.binding.coercion import arithmetic, common
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    INTERVAL_OF_MONTHS,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    SqlType,
    Type,
    array,
    decimal,
    map_of,
    struct_of,
    written_type,
)
from tablestore.types.datatypes import MAX_PRECISION

TypeOf: TypeAlias = Callable[[exp.Expr], Type]
"""Gives the type of an operand."""
Rule: TypeAlias = Callable[..., Type]
"""Takes the node and a :data:`TypeOf`."""


def alternatives(node: exp.Expr) -> list[exp.Expr]:
    """The values of which the node gives one."""
    match node:
        case exp.Case():
            parts = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
        case exp.If() | exp.Nvl2():
            parts = [node.args["true"], node.args.get("false")]
        case exp.Array():
            parts = node.expressions
        case _:
            parts = [node.this, *node.expressions]
    return [part for part in parts if part is not None]


def rounded(node: exp.Expr, operand: Type) -> Type:
    """The type of ``round``, ``floor`` and ``ceil`` of a value of a type."""
    if operand is None or not (operand.is_number or operand in (STRING, VOID)):
        return None
    if isinstance(node, exp.Round):
        digits = round_digits(node)
        if not operand.is_decimal:
            return operand if operand.is_number else DOUBLE
        if digits is None:
            return None
        scale = max(min(operand.scale, digits), 0)
        # Rounding up may take one more digit.
        return decimal(max(operand.precision - operand.scale + 1, -digits + 1) + scale, scale)
    if node.args.get("decimals") is not None:
        return None
    if not operand.is_decimal:
        return BIGINT
    return operand if operand.scale == 0 else decimal(operand.precision - operand.scale + 1, 0)


def round_digits(node: exp.Round) -> int | None:
    """The digits behind the point to which it rounds, where they stand in the text."""
    digits = node.args.get("decimals")
    sign = -1 if isinstance(digits, exp.Neg) else 1
    if digits is None:
        return 0
    number = digits.this if isinstance(digits, exp.Neg) else digits
    return sign * int(number.this) if isinstance(number, exp.Literal) and str(number.this).isdigit() else None


def _operand(node: exp.Expr, of: TypeOf) -> Type:
    return of(node.this)


def _number(node: exp.Expr, of: TypeOf) -> Type:
    operand = of(node.this)
    return DOUBLE if operand in (STRING, VOID) else operand


def _negative(node: exp.Neg, of: TypeOf) -> Type:
    """The type of a negated value. The least numbers are written with a digit more than the greatest ones."""
    number = node.this
    if isinstance(number, exp.Literal) and not number.is_string and number.name in (str(2**31), str(2**63)):
        return INT if number.name == str(2**31) else BIGINT
    return _number(node, of)


def _one_of(node: exp.Expr, of: TypeOf) -> Type:
    return common(map(of, alternatives(node)))


def _decoded(node: exp.DecodeCase, of: TypeOf) -> Type:
    pairs = node.expressions[1:]
    if len(pairs) < 2:
        return None
    result_types = [of(result) for result in pairs[1::2]]
    # Its value where nothing matches is a NULL of a text.
    return common([*result_types, of(pairs[-1]) if len(pairs) % 2 else STRING])


def _sum(node: exp.Sum, of: TypeOf) -> Type:
    operand = of(node.this)
    if operand is None or operand == INTERVAL:
        return operand
    return decimal(operand.precision + 10, operand.scale) if operand.is_decimal else BIGINT if operand.is_integer else DOUBLE


def _average(node: exp.Avg, of: TypeOf) -> Type:
    operand = of(node.this)
    if operand is None or operand == INTERVAL:
        return operand
    if not operand.is_decimal:
        return DOUBLE
    return decimal(operand.precision + 4, min(operand.scale + 4, MAX_PRECISION))


_MONTHS = re.compile(r"YEAR|MONTH|QUARTER", re.IGNORECASE)


def _is_of_months(interval: exp.Interval) -> bool:
    """True if an interval is one of years and months; its units may stand in its text."""
    unit = interval.args.get("unit")
    words = str(unit) if unit is not None else interval.this.name if isinstance(interval.this, exp.Literal) else ""
    return _MONTHS.search(words) is not None


def _arithmetic(node: exp.Binary, of: TypeOf) -> Type:
    return arithmetic(node, of(node.this), of(node.expression))


def _remainder(node: exp.Anonymous, of: TypeOf) -> Type:
    if len(node.expressions) != 2:
        return None
    left, right = node.expressions
    return arithmetic(exp.Mod(this=left.copy(), expression=right.copy()), of(left), of(right))


def _joined(node: exp.Expr, of: TypeOf) -> Type:
    parts = [of(part) for part in (node.expressions if isinstance(node, exp.Concat) else (node.this, node.expression))]
    arrays = [part for part in parts if part is not None and part.name == "array"]
    if arrays:
        return common(parts)
    return BINARY if parts and all(part == BINARY for part in parts) else None if None in parts else STRING


def _array_of(node: exp.Expr, of: TypeOf) -> Type:
    return array(of(node.this))


def _array(node: exp.Array, of: TypeOf) -> Type:
    return array(_one_of(node, of))


def element(operand: Type) -> Type:
    """The type of the elements of an array."""
    return operand.parts[0] if operand is not None and operand.name == "array" else None


def _element(node: exp.Expr, of: TypeOf) -> Type:
    return element(of(node.this))


def _map(node: exp.Expr, of: TypeOf) -> Type:
    keys, values = (node.args.get(name) for name in ("keys", "values"))
    return map_of(*(VOID if part is None else element(of(part)) for part in (keys, values)))


def _side_of_map(place: int) -> Rule:
    def rule(node: exp.Expr, of: TypeOf) -> Type:
        operands = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
        operand_type = of(operands[0]) if len(operands) == 1 else None
        return array(operand_type.parts[place]) if operand_type is not None and operand_type.name == "map" else None

    return rule


def _struct(node: exp.Struct, of: TypeOf) -> Type:
    names, parts = [], []
    for place, part in enumerate(node.expressions, 1):
        is_named = isinstance(part, exp.PropertyEQ)
        names.append(part.name if is_named else part.alias_or_name or f"col{place}")
        parts.append(of(part.expression if is_named else part))
    return struct_of(tuple(names), tuple(parts))


def _moved(node: exp.TimestampAdd, of: TypeOf) -> Type:
    kind = of(node.this)
    return TIMESTAMP if kind in (DATE, STRING, VOID) else kind


def _subscript(node: exp.Bracket, of: TypeOf) -> Type:
    operand = of(node.this)
    if operand is None:
        return None
    if operand.name == "struct":
        return operand.field(node.expressions[0].name)
    return operand.parts[-1] if operand.is_nested else None


def field(operand: Type, name: str) -> Type:
    """The type of a field of a row, or of the array of that field of each row of an array."""
    if operand is None:
        return None
    if operand.name == "array":
        return array(field(operand.parts[0], name))
    return operand.field(name) if operand.name == "struct" else None


def _field(node: exp.Dot, of: TypeOf) -> Type:
    return field(of(node.this), node.expression.name)


def _cast(node: exp.Cast, of: TypeOf) -> Type:
    return written_type(node.to)


def _series(node: exp.GenerateSeries, of: TypeOf) -> Type:
    return array(common(of(node.args[end]) for end in ("start", "end")))


def _difference(node: exp.DateDiff, of: TypeOf) -> Type:
    return INT if node.args.get("unit") is None else BIGINT


def _extracted(node: exp.Extract, of: TypeOf) -> Type:
    return decimal(8, 6) if node.name.upper().startswith("SEC") else INT


def _percentile(node: exp.Expr, of: TypeOf) -> Type:
    share = node.args.get("quantile")
    shares = of(share) if share is not None else None
    return array(DOUBLE) if shares is not None and shares.name == "array" else DOUBLE


def _rounded(node: exp.Expr, of: TypeOf) -> Type:
    return rounded(node, of(node.this))


def _bits(node: exp.Binary, of: TypeOf) -> Type:
    return common((of(node.this), of(node.expression)))


def _shifted(node: exp.Binary, of: TypeOf) -> Type:
    operand = of(node.this)
    return INT if operand is not None and operand.is_integer and operand != BIGINT else operand


def _first_of_several(node: exp.Distinct, of: TypeOf) -> Type:
    return of(node.expressions[0]) if node.expressions else None


def _all(result: SqlType, classes: Iterable[type[exp.Expr]]) -> dict[type[exp.Expr], Rule]:
    def rule(node: exp.Expr, of: TypeOf) -> Type:
        return result

    return dict.fromkeys(classes, rule)


RESULTS: dict[type[exp.Expr], Rule] = {
    **_all(BOOLEAN, (
        exp.And, exp.Or, exp.Not, exp.Xor, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
        exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Exists, exp.Boolean, exp.IsNan, exp.Contains,
        exp.StartsWith, exp.EndsWith, exp.ArrayContains, exp.ArrayOverlaps, exp.LogicalAnd, exp.LogicalOr, exp.Any, exp.All,
    )),
    **_all(INT, (
        exp.Year, exp.Quarter, exp.Month, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour,
        exp.Minute, exp.Second, exp.Length, exp.StrPosition, exp.Levenshtein, exp.ArraySize, exp.BitwiseCount, exp.Ascii,
        exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.UnixDate,
    )),
    **_all(BIGINT, (
        exp.TimestampDiff, exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv, exp.TimeToUnix, exp.StrToUnix,
    )),
    **_all(DOUBLE, (
        exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin, exp.Cos, exp.Tan, exp.Atan2, exp.Degrees, exp.Radians,
        exp.Pi, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
        exp.PercentRank, exp.CumeDist, exp.Median, exp.MonthsBetween,
    )),
    **_all(STRING, (
        exp.Upper, exp.Lower, exp.Initcap, exp.Trim, exp.Pad, exp.Substring, exp.Left, exp.Right, exp.Repeat, exp.Replace,
        exp.SplitPart, exp.Translate, exp.Overlay, exp.ConcatWs, exp.RegexpExtract, exp.RegexpReplace, exp.ArrayToString,
        exp.TimeToStr, exp.UnixToStr, exp.Chr, exp.Dayname, exp.Monthname, exp.JSONExtractScalar, exp.JSONFormat, exp.MD5,
        exp.SHA, exp.SHA2, exp.Hex, exp.Decode,
    )),
    **_all(DATE, (
        exp.TsOrDsAdd, exp.DateAdd, exp.DateSub, exp.AddMonths, exp.LastDay, exp.NextDay, exp.TsOrDsToDate, exp.CurrentDate,
        exp.DateFromUnixDate, exp.DateFromParts, exp.DateTrunc, exp.StrToDate,
    )),
    **_all(TIMESTAMP, (
        exp.CurrentTimestamp, exp.TimestampTrunc, exp.StrToTime, exp.TimeStrToTime, exp.AtTimeZone, exp.FromTimeZone,
    )),
    **_all(BINARY, (exp.Unhex, exp.HexString)),
    **_all(TINYINT, (exp.Grouping,)),
    exp.Interval: lambda node, of: INTERVAL_OF_MONTHS if _is_of_months(node) else INTERVAL,
    **_all(VOID, (exp.Null,)),
    **_all(array(STRING), (exp.RegexpSplit, exp.Split)),
    **dict.fromkeys(
        (
            exp.Paren, exp.Alias, exp.Max, exp.Min, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead,
            exp.NthValue,
            exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Nullif, exp.Reverse, exp.Window, exp.Filter, exp.Order, exp.Ordered,
            exp.IgnoreNulls, exp.RespectNulls, exp.ArraySort, exp.ArraySlice, exp.ArrayFilter, exp.Explode, exp.Collate,
            exp.BitwiseNot, exp.WithinGroup,
        ),
        _operand,
    ),
    exp.Neg: _negative,
    exp.Abs: _number,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nvl2), _one_of),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _arithmetic),
    **dict.fromkeys((exp.Round, exp.Floor, exp.Ceil), _rounded),
    **dict.fromkeys((exp.Concat, exp.DPipe), _joined),
    **dict.fromkeys((exp.ArrayAgg, exp.ArrayUniqueAgg), _array_of),
    **dict.fromkeys((exp.Map, exp.VarMap), _map),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bits),
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift), _shifted),
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Distinct: _first_of_several,
    exp.DecodeCase: _decoded,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Struct: _struct,
    exp.Bracket: _subscript,
    exp.Dot: _field,
    exp.Flatten: _element,
    exp.MapKeys: _side_of_map(0),
    exp.GenerateSeries: _series,
    exp.DateDiff: _difference,
    exp.Extract: _extracted,
    exp.TimestampAdd: _moved,
    exp.Quantile: _percentile,
}  # fmt: skip
NAMED: dict[str, Rule] = {
    "map_values": _side_of_map(1),
    "pmod": _remainder,
    **dict.fromkeys(("weekday", "cardinality"), lambda node, of: INT),
    "now": lambda node, of: TIMESTAMP,
    **dict.fromkeys(("every", "some", "isnull", "isnotnull"), lambda node, of: BOOLEAN),
    **dict.fromkeys(("make_date",), lambda node, of: DATE),
    **dict.fromkeys(("error",), lambda node, of: VOID),
}
