"""Rewrites nodes of a tree for DuckDB, one by one (see ``transpile``)."""

from collections.abc import Callable

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb import datetimefunctions, floats, lists
from tablestore.sql.duckdb.calls import (
    aggregate_of,
    as_date,
    call,
    divided,
    is_not_null,
    refusal,
    refused_where,
    with_aggregate,
    without_sign_of_zero,
)
from tablestore.sql.duckdb.functions import textnodes


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
    if isinstance(inner := number.unnest(), exp.Neg) and isinstance(inner.this, exp.Literal) and inner.this.name in _LEAST:
        raise InvalidInputError(f"the number {number.sql()} has no opposite: that is out of range", kind="query")
    if isinstance(inner, exp.Cast) and isinstance(inner.to.this, exp.DType) and inner.to.this in exp.DataType.SIGNED_INTEGER_TYPES:
        # DuckDB takes a larger type for what is written.
        return exp.Cast(this=node, to=inner.to.copy()) if not _is_of_number(number) else _joined(number)
    if isinstance(number, exp.Literal) and not number.is_string and number.name == _LEAST[0]:
        # DuckDB takes a larger type for what is written.
        return exp.cast(node, "INT")
    if not _is_of_number(number) or number.to.this in exp.DataType.FLOAT_TYPES:
        # DuckDB reads -0.0 as a decimal, and that has no sign.
        return node
    return _joined(number)


def _is_of_number(cast: exp.Expr) -> bool:
    return isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Literal) and not cast.this.is_string


def _joined(cast: exp.Cast) -> exp.Expr:
    return exp.Cast(this=exp.Neg(this=cast.this), to=cast.to)


# Without their signs: the least INT and BIGINT.
_LEAST = (str(2**31), str(2**63))


def _double(number: exp.Expr) -> exp.Expr:
    """A number as DOUBLE: in the middle of two decimals lies one that may need another digit."""
    return exp.Cast(this=number, to=exp.DataType.build("DOUBLE"))


def _now() -> exp.Expr:
    return exp.Anonymous(this="GET_CURRENT_TIMESTAMP")


def _count(node: exp.Count) -> exp.Expr:
    """The rows in which none of several values is NULL."""
    if not node.expressions:
        return node
    return _counted(exp.and_(*map(is_not_null, (node.this, *node.expressions)), copy=False))


def _count_if(node: exp.CountIf) -> exp.Expr:
    """Writes ``count_if``. DuckDB's is NULL where the condition is NULL for all rows."""
    return _counted(node.this)


def _counted(condition: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Writes a logarithm, which is NULL for numbers that are not positive; DuckDB has NaN and infinity."""
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


def _first(node: exp.AnyValue) -> exp.Expr:
    """Writes ``any_value``: the first one, even if it is NULL."""
    return exp.First(this=node.this)


def _first_or_last(node: exp.FirstValue | exp.LastValue) -> exp.Expr:
    """Writes ``first_value`` and ``last_value``, which are aggregates where they have no window."""
    if _is_windowed(node):
        return node
    return exp.First(this=node.this) if isinstance(node, exp.FirstValue) else exp.Last(this=node.this)


def _without_nulls(node: exp.IgnoreNulls) -> exp.Expr:
    """Writes ``IGNORE NULLS`` of an aggregate as its filter; that of a window DuckDB knows."""
    if _is_windowed(node):
        return node
    aggregate = node.this
    if not isinstance(aggregate, (exp.First, exp.Last)) or isinstance(node.parent, exp.Filter):
        raise refusal("IGNORE NULLS with a filter, or of other aggregates than first, last and any_value")
    return exp.Filter(this=aggregate, expression=exp.Where(this=is_not_null(aggregate.this.copy())))


def _is_windowed(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _nth(node: exp.NthValue) -> exp.Expr:
    """Writes ``nth_value`` of a place that is written out, from 1 on."""
    place = node.args.get("offset")
    if not isinstance(place, exp.Literal) or not place.name.isdecimal() or int(place.name) < 1:
        raise refusal("nth_value of a place that is computed, or is not from 1 on")
    return node


def _shifted(node: exp.BitwiseLeftShift | exp.BitwiseRightShift) -> exp.Expr:
    """Writes a shift of bits. Java counts the places modulo the width of the type."""
    places = node.expression
    if not isinstance(places, exp.Literal) or not places.name.isdecimal() or int(places.name) > 31:
        raise refusal("a shift by a number that is computed, or not from 0 to 31")
    return node


def _unhexed(node: exp.Unhex) -> exp.Expr:
    """Writes ``unhex``, which is NULL for texts that are not hexadecimal."""
    are_digits = call("REGEXP_FULL_MATCH", node.this.copy(), exp.Literal.string("[0-9A-Fa-f]*"))
    return exp.Case(ifs=[exp.If(this=are_digits, true=node)])


def _decode(node: exp.Decode) -> exp.Expr:
    raise refusal("the function decode with a character set")


def _exists(node: exp.Exists) -> exp.Expr:
    if node.args.get("expression") is not None:
        raise refusal("the function exists")
    return node


def _positive_modulo(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """The remainder, to which a positive divisor is added where it is negative."""
    once = exp.paren(divided(exp.Mod(this=exp.paren(left), expression=exp.paren(right))))
    is_negative = exp.LT(this=once.copy(), expression=exp.Literal.number(0))
    sum_of_both = exp.Add(this=once.copy(), expression=exp.paren(right.copy()))
    is_positive = exp.GT(this=exp.paren(right.copy()), expression=exp.Literal.number(0))
    # Spark adds a negative divisor too, and takes the remainder again: that changes nothing, unless the sum runs over.
    runs_over = exp.and_(is_negative.copy(), exp.LT(this=exp.paren(right.copy()), expression=exp.Literal.number(-(2**30))))
    otherwise = refused_where(runs_over, "pmod by a divisor below -1073741824", once)
    return exp.Case(ifs=[exp.If(this=exp.and_(is_negative, is_positive), true=sum_of_both)], default=otherwise)


def is_another(node: exp.Expr) -> bool:
    """True if DuckDB's aggregate gives another value where there is little or nothing to aggregate (:func:`whole_aggregate`)."""
    return isinstance(aggregate_of(node), (*_COLLECTED, *_CHOSEN, *_SPREADS, *_BETWEEN_VALUES, exp.Corr))


def whole_aggregate(node: exp.Expr) -> exp.Expr:
    """Writes an aggregate, with its window and filter, with Spark's values for no rows, for one, and for NULL."""
    aggregate = aggregate_of(node)
    if isinstance(aggregate, _COLLECTED):
        return lists.or_empty(node)
    if isinstance(aggregate, _CHOSEN):
        return _with_nulls(node, aggregate)
    if isinstance(aggregate, exp.Corr):
        return _correlation(node, aggregate)
    if isinstance(aggregate, _BETWEEN_VALUES):
        return _between_values(node, aggregate)
    return floats.spread_as_spark(node)


_COLLECTED = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_CHOSEN = (exp.ArgMax, exp.ArgMin)
_SPREADS = (exp.VariancePop, exp.StddevPop)
_BETWEEN_VALUES = (exp.Median, exp.Quantile)


def _between_values(node: exp.Expr, aggregate: exp.Median | exp.Quantile) -> exp.Expr:
    """Writes ``median`` and ``percentile``: between -Infinity and another value Spark finds NaN, and DuckDB -Infinity.

    The values -Infinity are the first ones in order, so a place up to their number is one of theirs.
    """
    share = exp.Literal.number(0.5) if isinstance(aggregate, exp.Median) else aggregate.args.get("quantile")
    if share is None:
        raise refusal("percentile without a share")
    if isinstance(share, exp.Cast) and isinstance(share.this, exp.Array):
        share = exp.Array(expressions=[_double(one) for one in share.this.expressions])
    value = with_aggregate(node, call("QUANTILE_CONT", _double(aggregate.this), share))
    least = exp.cast(exp.Literal.string("-Infinity"), "DOUBLE")
    if isinstance(share, exp.Array):
        return refused_where(call("LIST_CONTAINS", value.copy(), least), "a percentile that is -Infinity", value)
    number = exp.paren(_double(aggregate.this.copy()))
    counted = exp.Count(this=exp.Case(ifs=[exp.If(this=exp.EQ(this=number, expression=least.copy()), true=number.copy())]))
    last = exp.Sub(this=with_aggregate(node, exp.Count(this=number.copy())), expression=exp.Literal.number(1))
    place = exp.Ceil(this=exp.Mul(this=exp.paren(share.copy()), expression=exp.paren(last)))
    is_between = exp.and_(
        exp.EQ(this=value.copy(), expression=least), exp.GTE(this=place, expression=with_aggregate(node, counted))
    )
    return exp.Case(ifs=[exp.If(this=is_between, true=exp.cast(exp.Literal.string("NaN"), "DOUBLE"))], default=value)


def _correlation(node: exp.Expr, aggregate: exp.Corr) -> exp.Expr:
    """Writes ``corr``, which is NULL where one of both does not vary."""
    sides = aggregate.this, aggregate.expression
    spreads = [with_aggregate(node, call(name, *(side.copy() for side in sides))) for name in ("REGR_SXX", "REGR_SYY")]
    is_flat = exp.or_(*(exp.EQ(this=spread, expression=exp.Literal.number(0)) for spread in spreads))
    return exp.Case(ifs=[exp.If(this=is_flat, true=exp.null())], default=node)


def _with_nulls(node: exp.Expr, aggregate: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    """Writes ``max_by`` and ``min_by``, whose value may be NULL. DuckDB passes over it, but not over a row that holds it."""
    name = "ARG_MAX" if isinstance(aggregate, exp.ArgMax) else "ARG_MIN"
    value, by, count = aggregate.this, aggregate.expression, aggregate.args.get("count")
    if count is None:
        return with_aggregate(node, call(f"{name}_NULL", value, by))
    row = exp.Struct(expressions=[exp.PropertyEQ(this=exp.to_identifier("value"), expression=value)])
    inside = call("STRUCT_EXTRACT", exp.column("_row"), exp.Literal.string("value"))
    rows = with_aggregate(node, call(name, row, by, count))
    return exp.Transform(this=rows, expression=exp.Lambda(this=inside, expressions=[exp.to_identifier("_row")]))


def _angle(node: exp.Atan2) -> exp.Expr:
    """Writes ``atan2``, for which -0.0 is 0.0."""
    for key in ("this", "expression"):
        node.set(key, without_sign_of_zero(exp.cast(exp.paren(node.args[key]), "DOUBLE")))
    return node


def _power(node: exp.Pow) -> exp.Expr:
    """Writes Java's power, which is NaN for NaN and for one to the infinity; C gives 1."""
    base, exponent = (exp.cast(exp.paren(side), "DOUBLE") for side in (node.this, node.expression))
    is_one = exp.EQ(this=exp.Abs(this=base.copy()), expression=exp.Literal.number(1))
    without = exp.and_(
        is_not_null(base.copy()), exp.or_(exp.IsNan(this=exponent.copy()), exp.and_(call("ISINF", exponent.copy()), is_one))
    )
    nan = exp.cast(exp.Literal.string("NaN"), "DOUBLE")
    return exp.Case(ifs=[exp.If(this=without, true=nan)], default=exp.Pow(this=base, expression=exponent))


def _bit_count(node: exp.BitwiseCount) -> exp.Expr:
    """Writes ``bit_count``, which counts in 64 bits, whatever the type."""
    node.set("this", exp.cast(node.this, "BIGINT"))
    return node


def _joined_texts(node: exp.ConcatWs) -> exp.Expr:
    """Writes ``concat_ws``, which gives an empty text where there is nothing to join."""
    if len(node.expressions) > 1:
        return node
    is_null = exp.Is(this=node.expressions[0], expression=exp.null())
    return exp.Case(ifs=[exp.If(this=is_null, true=exp.cast(exp.null(), "TEXT"))], default=exp.Literal.string(""))


def _chosen(node: exp.DecodeCase) -> exp.Expr:
    """Writes ``decode`` of values of which some are written NULLs, which equal each other."""
    value, *pairs = node.expressions
    if not any(isinstance(part, exp.Null) for part in node.expressions):
        return node
    branches = []
    for sought, result in zip(pairs[::2], pairs[1::2], strict=False):
        is_null = exp.Is(this=exp.paren(value.copy()), expression=exp.null())
        is_found: exp.Expr = exp.EQ(this=exp.paren(value.copy()), expression=exp.paren(sought))
        if isinstance(sought, exp.Null):
            is_found = is_null
        elif not isinstance(sought, exp.Literal):
            both = exp.and_(is_null, exp.Is(this=exp.paren(sought.copy()), expression=exp.null()))
            is_found = exp.or_(is_found, both)
        branches.append(exp.If(this=is_found, true=result))
    return exp.Case(ifs=branches, default=pairs[-1] if len(pairs) % 2 else None)


def _grouping(node: exp.Grouping) -> exp.Expr:
    return exp.cast(node, "TINYINT")


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))


MANY = 1000

REWRITES: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Literal: _number,
    exp.Neg: _negative,
    exp.Like: textnodes.like,
    exp.ILike: textnodes.like,
    exp.Escape: textnodes.escaped,
    exp.Substring: textnodes.substring,
    exp.Left: textnodes.end,
    exp.Right: textnodes.end,
    exp.Replace: textnodes.replace,
    exp.SplitPart: textnodes.split_part,
    exp.Chr: textnodes.character,
    exp.Levenshtein: textnodes.levenshtein,
    exp.JSONExtractScalar: textnodes.json_part,
    exp.RegexpLike: textnodes.checked_pattern,
    exp.RegexpExtract: textnodes.extracted,
    exp.RegexpSplit: textnodes.checked_pattern,
    exp.RegexpReplace: textnodes.replaced,
    exp.TsOrDsAdd: as_date,
    exp.AddMonths: as_date,
    exp.DateFromUnixDate: as_date,
    exp.DateTrunc: datetimefunctions.truncated_date,
    exp.TimestampTrunc: datetimefunctions.truncated_timestamp,
    exp.DateDiff: datetimefunctions.date_difference,
    exp.TimestampDiff: datetimefunctions.difference,
    exp.AtTimeZone: datetimefunctions.from_utc,
    exp.FromTimeZone: datetimefunctions.to_utc,
    exp.ArraySize: lambda node: lists.size(node.this),
    exp.Flatten: lists.flatten,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Pow: _power,
    exp.Atan2: _angle,
    exp.CountIf: _count_if,
    exp.BitwiseLeftShift: _shifted,
    exp.BitwiseRightShift: _shifted,
    exp.Unhex: _unhexed,
    exp.Upper: textnodes.upper,
    exp.Lower: textnodes.lower,
    exp.Initcap: textnodes.initcap,
    exp.StrPosition: textnodes.position,
    exp.ArrayToString: textnodes.joined,
    exp.BitwiseCount: _bit_count,
    exp.ConcatWs: _joined_texts,
    exp.DecodeCase: _chosen,
    exp.Grouping: _grouping,
    exp.IsNan: _is_nan,
    exp.Any: _any,
    exp.AnyValue: _first,
    exp.FirstValue: _first_or_last,
    exp.LastValue: _first_or_last,
    exp.IgnoreNulls: _without_nulls,
    exp.NthValue: _nth,
    exp.Decode: _decode,
    exp.Exists: _exists,
    exp.DayOfWeek: datetimefunctions.day_of_week,
    exp.Dayname: textnodes.short,
    exp.Monthname: textnodes.short,
    exp.Extract: datetimefunctions.extract,
    exp.Count: _count,
    # By the names of functions: the words are columns where the query calls one so (SELECT now() AS current_timestamp).
    exp.CurrentTimestamp: lambda node: _now(),
    exp.CurrentDate: lambda node: exp.Anonymous(this="TODAY"),
}
NAMED: dict[str, Callable[..., exp.Expr]] = {
    "now": _now,
    "weekday": datetimefunctions.weekday,
    "cardinality": lists.size,
    "pmod": _positive_modulo,
    "every": lambda condition: exp.LogicalAnd(this=condition),
    "some": lambda condition: exp.LogicalOr(this=condition),
    "isnull": _is_null,
    "isnotnull": lambda value: exp.Not(this=_is_null(value)),
}
_TAKEN_BY_ARGUMENTS = {
    (0, 0): "cume_dist curdate current_date current_timestamp now pi row_number",
    (0, 1): "",
    (0, MANY): "all any array case cast map named_struct some struct try_cast",
    (1, 1): """
        abs approx_count_distinct array_agg array_size avg bigint binary bit_count bool_and bool_or
        boolean cardinality char chr collect_list collect_set count_if date
        date_from_unix_date day dayofmonth dayofweek dayofyear degrees double every exp explode flatten
        float grouping initcap int isnan isnotnull isnull lcase ln log10 log2 lower
        ltrim map_keys map_values max md5 median min month ntile posexplode radians rtrim
         sha sha1 sign signum size smallint sqrt stddev stddev_pop stddev_samp string sum timestamp tinyint
         trim ucase upper var_pop var_samp variance weekofyear year""",
    (1, 2): "any_value first first_value last last_value log round sort_array",
    (1, 3): "lag lead",
    (1, 4): "range",
    (1, MANY): "concat concat_ws count",
    (2, 2): """
        nth_value add_months atan2 corr covar_pop covar_samp date_sub
        from_utc_timestamp get_json_object ifnull ilike like mod
         nullif nvl percentile pmod pow power repeat sha2
          to_utc_timestamp """,
    (2, 3): "array_join date_add dateadd date_diff datediff max_by min_by replace",
    (2, MANY): "coalesce greatest least",
    (3, 3): "if make_date nvl2 split_part timestampadd timestampdiff translate",
}
TAKEN = {name: bounds for bounds, names in _TAKEN_BY_ARGUMENTS.items() for name in names.split()}
"""The functions that a query may call, by Spark's names, and how many arguments they take at least and at most. What each of them
answers is compared with Spark (``tests/sql/corpus``): DuckDB has functions of these and other names that mean something else."""
