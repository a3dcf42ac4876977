"""What is written in another way for DuckDB, node by node (see ``transpile``)."""

import re
from collections.abc import Callable

from sqlglot import exp

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.duckdb.kinds import MOST_DIGITS, Kind

# Java's patterns that RE2 does not have: look-around, atomic groups, back references, possessive repetitions, sets of sets.
_NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9kGZ]|[*+?}]\+|&&")
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "QUARTER": "QUARTER",
    "WEEK": "WEEK",
}


_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_NESTED = {exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT}
_INTEGERS = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT}
_FLOATS = {exp.DType.FLOAT, exp.DType.DOUBLE}
_TEXTS = {exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR}


def refusal(what: str) -> UnsupportedError:
    """The error that names what DuckDB does not do."""
    return UnsupportedError(f"DuckDB does not run {what} as Spark does; run the query on the engine spark", kind="engine")


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def as_date(node: exp.Expr) -> exp.Expr:
    """A date, of what DuckDB makes a timestamp."""
    return exp.Cast(this=node, to=exp.DataType.build("DATE"))


def as_decimal(node: exp.Expr, kind: Kind) -> exp.Expr:
    """A decimal of Spark's digits, of what DuckDB computes as a double."""
    return exp.Cast(this=node, to=exp.DataType.build(f"DECIMAL({kind.precision}, {kind.scale})"))


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


def otherwise(equal: exp.Expr) -> exp.Expr:
    """Not equal, or one of them null. Not IS DISTINCT FROM: DuckDB 2.0 takes wrong rows where it filters a Parquet file by it."""
    return exp.Case(ifs=[exp.If(this=equal, true=exp.false())], default=exp.true())


def divided(node: exp.Expr) -> exp.Expr:
    """A quotient or remainder that is an error for a divisor of zero."""
    divisor = node.expression
    plain = divisor.unnest()
    if not isinstance(plain, exp.Literal) or plain.is_string or float(plain.name) == 0:
        is_zero = exp.EQ(this=exp.paren(divisor.copy()), expression=exp.Literal.number(0))
        failed = exp.If(this=is_zero, true=_call("ERROR", exp.Literal.string("division by zero")))
        node.set("expression", exp.Case(ifs=[failed], default=divisor))
    if isinstance(node, exp.Div):
        node.set("safe", False)
        node.set("typed", False)
    return node


def cast(node: exp.Cast, kind: Kind | None) -> exp.Expr:
    """A cast that cuts fractions off. ``kind``: of what is cast."""
    inner = node.this
    if type(node) is exp.Cast and type(inner) is exp.Cast and {node.to.this, inner.to.this} & _NESTED:
        return _converted(inner, inner.to, node.to)
    if node.to.this in _INTEGERS and kind is not None and kind.name in ("decimal", "float", "fraction"):
        node.set("this", _call("TRUNC", node.this))
    if node.to.this is exp.DType.DECIMAL and kind is not None and kind.name == "float":
        node.set("this", _written(node.this))
    if node.to.this in _INTEGERS and kind is not None and kind.name == "text":
        return _of_digits(node)
    if node.to.this in _INTEGERS and isinstance(inner, exp.Literal) and inner.is_string and not _WHOLE.fullmatch(inner.name):
        if isinstance(node, exp.TryCast):
            node.set("this", exp.null())
        else:
            raise InvalidInputError(
                f"CAST({inner.sql()} AS {node.to.sql()}): expected the digits of a whole number, found {inner.sql()}; cast it to a "
                "DECIMAL first",
                kind="query",
            )
    if node.to.this in _TEXTS and kind is not None and kind.name == "float":
        raise refusal("the cast of a float to a text")
    return node


def _written(number: exp.Expr) -> exp.Expr:
    """A float as the shortest decimal that stands for it, which Spark rounds: 1.005 and not 1.00499999999999989."""
    double = exp.Cast(this=number, to=exp.DataType.build("DOUBLE"))
    return exp.Cast(this=double, to=exp.DataType.build("TEXT"))


def _of_digits(node: exp.Cast) -> exp.Expr:
    """A cast of a text to a whole number. DuckDB would round ``12.7``; what it refuses, it refuses itself."""
    text = node.this
    no_digits = exp.Not(this=_call("REGEXP_FULL_MATCH", text.copy(), exp.Literal.string(_WHOLE.pattern)))
    if isinstance(node, exp.TryCast):
        return exp.Case(ifs=[exp.If(this=no_digits, true=exp.null())], default=node)
    is_rounded = exp.Is(this=exp.TryCast(this=text.copy(), to=node.to.copy()), expression=exp.Not(this=exp.null()))
    found = [exp.Literal.string("expected the digits of a whole number, found '"), text.copy(), exp.Literal.string("'")]
    failed = exp.If(this=exp.And(this=no_digits, expression=is_rounded), true=_call("ERROR", exp.Concat(expressions=found)))
    return exp.Case(ifs=[failed], default=node)


def part_by_part(node: exp.Cast) -> None:
    """A cast of a written array, map or row as casts of its parts, whose types are known better; those of a row by place."""
    value, wanted = node.this, node.to
    if type(node) is not exp.Cast or not wanted.expressions:
        return
    if wanted.this is exp.DType.ARRAY and isinstance(value, exp.Array):
        value.set("expressions", [_part(one, wanted.expressions[0]) for one in value.expressions])
    elif wanted.this is exp.DType.MAP and isinstance(value, (exp.Map, exp.VarMap)):
        for name, kind in zip(("keys", "values"), wanted.expressions, strict=True):
            if isinstance(parts := value.args.get(name), exp.Array):
                parts.set("expressions", [_part(one, kind) for one in parts.expressions])
    elif wanted.this is exp.DType.STRUCT and isinstance(value, exp.Struct) and len(value.expressions) == len(wanted.expressions):
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(field.name, quoted=True),
                expression=_part(one.expression if isinstance(one, exp.PropertyEQ) else one.unalias(), field.kind),
            )
            for one, field in zip(value.expressions, wanted.expressions, strict=True)
        ]
        value.set("expressions", fields)


def _part(value: exp.Expr, wanted: exp.DataType) -> exp.Cast:
    made = exp.Cast(this=value, to=wanted.copy())
    part_by_part(made)
    return made


def _converted(value: exp.Expr, given: exp.DataType, wanted: exp.DataType, depth: int = 0) -> exp.Expr:
    """A value of a known type as another, part by part. DuckDB would round numbers, and take parts of a row by their name."""
    if given == wanted:
        return value
    name = f"_part{depth}"
    part = exp.column(name)
    if given.this != wanted.this or given.this not in _NESTED:
        if wanted.this in _TEXTS and given.this in _FLOATS:
            raise refusal("the cast of a float to a text")
        if wanted.this in _INTEGERS and given.this in (*_FLOATS, exp.DType.DECIMAL):
            value = _call("TRUNC", value)
        if wanted.this is exp.DType.DECIMAL and given.this in _FLOATS:
            value = _written(value)
        return exp.Cast(this=value, to=wanted.copy())
    made: exp.Expr
    if given.this is exp.DType.ARRAY:
        inside = _converted(part, given.expressions[0], wanted.expressions[0], depth + 1)
        made = _each(value, inside, name)
    elif given.this is exp.DType.MAP:
        keys, values = (
            _each(_call(parts, value.copy()), _converted(part.copy(), *types, depth + 1), name)
            for parts, types in zip(
                ("MAP_KEYS", "MAP_VALUES"), zip(given.expressions, wanted.expressions, strict=True), strict=True
            )
        )
        made = _call("MAP", keys, values)
    else:
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(right.name, quoted=True),
                expression=_converted(
                    _call("STRUCT_EXTRACT", value.copy(), exp.Literal.string(left.name)), left.kind, right.kind, depth
                ),
            )
            for left, right in zip(given.expressions, wanted.expressions, strict=True)
        ]
        made = exp.Struct(expressions=fields)
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    return exp.Cast(this=exp.Case(ifs=[exp.If(this=is_null, true=exp.null())], default=made), to=wanted.copy())


def _each(value: exp.Expr, inside: exp.Expr, name: str) -> exp.Expr:
    return exp.Transform(this=value, expression=exp.Lambda(this=inside, expressions=[exp.to_identifier(name)]))


def subscript(node: exp.Bracket, kind: Kind | None) -> exp.Expr:
    """A constant subscript: sqlglot counts from one where Spark counts from zero, but cannot know of what is computed."""
    (index,) = node.expressions if len(node.expressions) == 1 else (None,)
    if kind is not None and kind.name == "map" and isinstance(index, exp.Literal) and index.is_string:
        return node
    if not isinstance(index, exp.Literal) or (kind is not None and kind.name == "map"):
        raise refusal("a subscript that is computed, or a number for a map")
    return node


def group(node: exp.Group) -> exp.Expr:
    """``GROUP BY a, b WITH ROLLUP`` is ``GROUP BY ROLLUP (a, b)``."""
    for key, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if any(not part.expressions for part in node.args.get(key) or ()):
            node.set("expressions", [kind(expressions=node.expressions)])
            node.set(key, None)
    return node


def table_function(node: exp.Table) -> exp.Expr:
    """``range``, whose column has the name ``id`` in Spark, and ``explode``."""
    function = node.this
    name = str(function.this).lower() if isinstance(function, exp.Anonymous) else ""
    if name == "error" or (name not in ("range",) and not isinstance(function, exp.Explode)):
        raise refusal(f"the table-valued function {name or function.sql_name().lower()}")
    if name == "range" and (node.args.get("alias") is None or not node.args["alias"].columns):
        table = exp.to_identifier(node.alias or "range")
        node.set("alias", exp.TableAlias(this=table, columns=[exp.to_identifier("id")]))
    return node


def exploded(join: exp.Join) -> exp.Expr:
    """A generator beside its rows: ``LATERAL VIEW explode(a) t AS c``, ``JOIN LATERAL explode(a) AS t (c)``."""
    lateral = join.this
    function = lateral.this
    alias = lateral.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    table = alias.name if alias is not None and alias.name else "_generated"
    array = function.this
    if isinstance(function, exp.Posexplode) and join.side != "LEFT" and len(columns) in (0, 2):
        place, value = columns or ("pos", "col")
        counted = exp.Sub(this=_call("GENERATE_SUBSCRIPTS", array.copy(), exp.Literal.number(1)), expression=exp.Literal.number(1))
        rows = exp.select(exp.alias_(counted, place, quoted=True), exp.alias_(_call("UNNEST", array), value, quoted=True))
    elif type(function) is exp.Explode and len(columns) < 2:
        rows = exp.select(exp.alias_(_call("UNNEST", array), columns[0] if columns else "col", quoted=True))
    elif type(function) is exp.Explode and len(columns) == 2:
        entries = exp.select(exp.alias_(_call("UNNEST", _call("MAP_ENTRIES", array)), "_entry"))
        rows = exp.select(
            *[
                exp.alias_(exp.column(part, table="_entry"), name, quoted=True)
                for part, name in zip(("key", "value"), columns, strict=True)
            ]
        ).from_(entries.subquery("_entries"))
    else:
        raise refusal(f"the generator {function.sql_name().lower() if not isinstance(function, exp.Anonymous) else function.this}")
    named = exp.TableAlias(this=exp.to_identifier(table, quoted=True))
    outer = join.side == "LEFT"
    return exp.Join(
        this=exp.Lateral(this=exp.Subquery(this=rows), alias=named),
        side="LEFT" if outer else None,
        kind=None if outer or join.args.get("on") else "CROSS",
        on=join.args.get("on") or (exp.true() if outer else None),
    )


def _like(node: exp.Expr) -> exp.Expr:
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
        return node
    if isinstance(pattern.unnest(), (exp.Any, exp.All, exp.Tuple)):
        if any("\\" in literal.name for literal in pattern.find_all(exp.Literal)):
            raise refusal("LIKE ANY or LIKE ALL with an escape character")
        return node
    return exp.Escape(this=node, expression=exp.Literal.string("\\"))


def _substring(node: exp.Substring) -> exp.Expr:
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        if start.name == "0":
            node.set("start", exp.Literal.number(1))
    elif start is not None and not isinstance(start.unnest(), exp.Neg):
        is_zero = exp.EQ(this=exp.paren(start.copy()), expression=exp.Literal.number(0))
        node.set("start", exp.Case(ifs=[exp.If(this=is_zero, true=exp.Literal.number(1))], default=start))
    return node


def _pattern(node: exp.Expr) -> exp.Expr:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or _NOT_RE2.search(pattern.name):
        raise refusal("a regular expression that is computed, or has look-around, back references or possessive repetitions")
    return node


def _replaced(node: exp.RegexpReplace) -> exp.Expr:
    _pattern(node)
    replacement = node.args.get("replacement")
    if not isinstance(replacement, exp.Literal) or "\\" in replacement.name:
        raise refusal("regexp_replace with a replacement that is computed or has a backslash")
    node.set("replacement", exp.Literal.string(re.sub(r"\$(\d)", r"\\\1", replacement.name)))
    return node


def _truncated_date(node: exp.DateTrunc) -> exp.Expr:
    unit = str(node.args["unit"].name).upper()
    if unit not in _UNITS:
        raise refusal(f"trunc to {unit}")
    node.set("unit", exp.Literal.string(_UNITS[unit]))
    return as_date(node)


def _truncated_timestamp(node: exp.TimestampTrunc) -> exp.Expr:
    """A TIMESTAMP WITH TIME ZONE, of whatever is cut off."""
    node.set("this", exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMPTZ")))
    return node


def _seconds(node: exp.Expr) -> exp.Expr:
    chosen = node.args.get("format")
    if chosen is not None and chosen.name.replace("strict", "") != "%Y-%m-%d %H:%M:%S":
        raise refusal("unix_timestamp with a format")
    moment = exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMPTZ"))
    return exp.Cast(this=_call("FLOOR", _call("EPOCH", moment)), to=exp.DataType.build("BIGINT"))


def _difference(node: exp.TimestampDiff) -> exp.Expr:
    """DuckDB's difference counts the borders between two moments, Spark's the whole units."""
    unit = exp.Literal.string(str(node.args["unit"].name).lower())
    first, last = (exp.Cast(this=end, to=exp.DataType.build("TIMESTAMP")) for end in (node.expression, node.this))
    return _call("DATE_SUB", unit, first, last)


def _slice(node: exp.ArraySlice) -> exp.Expr:
    numbers = [
        part for part in (node.args.get("start"), node.args.get("end")) if isinstance(part, exp.Literal) and part.name.isdecimal()
    ]
    if len(numbers) != 2 or numbers[0].name == "0":
        raise refusal("slice from a place that is no positive number")
    return node


def _series(node: exp.GenerateSeries) -> exp.Expr:
    ends = [node.args.get("start"), node.args.get("end")]
    if node.args.get("step") is not None or not all(isinstance(end, exp.Literal) for end in ends):
        raise refusal("sequence with computed ends, which may count down")
    first, last = (int(end.name) for end in ends if end is not None)
    if first > last:
        raise refusal("a sequence that counts down")
    return node


def _percentile(node: exp.Quantile) -> exp.Expr:
    share = node.args.get("quantile")
    if share is None:
        raise refusal("percentile without a share")
    return _call("QUANTILE_CONT", node.this, share)


def _any(node: exp.Any) -> exp.Expr:
    if isinstance(node.parent, exp.Predicate) or isinstance(node.this.unnest(), exp.Query):
        return node
    return exp.LogicalOr(this=node.this.unnest())


def _exists(node: exp.Exists) -> exp.Expr:
    if node.args.get("expression") is not None:
        raise refusal("the function exists")
    return node


def _weekday(day: exp.Expr) -> exp.Expr:
    return exp.Sub(this=_call("ISODOW", day), expression=exp.Literal.number(1))


def _day_of_week(node: exp.DayOfWeek) -> exp.Expr:
    return exp.Paren(this=exp.Add(this=node, expression=exp.Literal.number(1)))


def _short(node: exp.Expr) -> exp.Expr:
    return exp.Left(this=node, expression=exp.Literal.number(3))


def _extract(node: exp.Extract) -> exp.Expr:
    part = node.name.upper()
    if part in ("DOW", "DAYOFWEEK"):
        return exp.Paren(this=exp.Add(this=node, expression=exp.Literal.number(1)))
    if part not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE"):
        raise refusal(f"EXTRACT({part} …)")
    return node


def _positive_modulo(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    once = exp.Paren(this=exp.Mod(this=exp.paren(left), expression=_divisor(right)))
    return exp.Mod(this=exp.Paren(this=exp.Add(this=once, expression=exp.paren(right.copy()))), expression=exp.paren(right.copy()))


def _divisor(node: exp.Expr) -> exp.Expr:
    guarded: exp.Expr = divided(exp.Mod(this=exp.null(), expression=node)).expression
    return guarded


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))


def _strict_date(node: exp.TsOrDsToDate) -> exp.Expr:
    node.set("safe", False)
    return node


REWRITES: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Literal: _number,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.RegexpLike: _pattern,
    exp.RegexpExtract: _pattern,
    exp.RegexpSplit: _pattern,
    exp.RegexpReplace: _replaced,
    exp.TsOrDsAdd: as_date,
    exp.AddMonths: as_date,
    exp.DateFromUnixDate: as_date,
    exp.TsOrDsToDate: _strict_date,
    exp.DateTrunc: _truncated_date,
    exp.TimestampTrunc: _truncated_timestamp,
    exp.StrToUnix: _seconds,
    exp.TimestampDiff: _difference,
    exp.TimeToUnix: _seconds,
    exp.ArraySlice: _slice,
    exp.GenerateSeries: _series,
    exp.Any: _any,
    exp.Exists: _exists,
    exp.DayOfWeek: _day_of_week,
    exp.Dayname: _short,
    exp.Monthname: _short,
    exp.Extract: _extract,
    exp.Quantile: _percentile,
}
NAMED: dict[str, Callable[..., exp.Expr]] = {
    "weekday": _weekday,
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
