"""Writes aggregates of statistics with Spark's meaning: regressions, percentiles, the mode, sums that are tried.

percentiles     of the sorted values as a list, by Spark's formula
mode() WITHIN GROUP (ORDER BY a DESC)       mode(a, true) of the last value: :func:`ordered_as_arguments`
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import ResultOf, Types, always, as_argument
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
    array,
    decimal,
)
from tablestore.sql.duckdb.calls import failing, refused_where
from tablestore.sql.duckdb.floats import spread_as_spark
from tablestore.sql.duckdb.functions import highermoments
from tablestore.sql.duckdb.functions.argumenttypes import double, written_integer
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.quotients import average, average_of_doubles
from tablestore.sql.query.dialect import CALL, Call
from tablestore.types.datatypes import MAX_PRECISION

_ORDERED = ("mode", "percentile_cont", "percentile_disc")
# Values up to here are doubles without loss.
_WHOLE_DOUBLES = 2**53
_ACCURACY = 10_000
_BETWEEN = """CASE
    WHEN LEN($0) = 0 OR $0 IS NULL THEN NULL
    WHEN FLOOR((LEN($0) - 1) * $1) = CEIL((LEN($0) - 1) * $1)
        OR $0[CAST(FLOOR((LEN($0) - 1) * $1) AS INT) + 1] = $0[CAST(CEIL((LEN($0) - 1) * $1) AS INT) + 1]
    THEN $0[CAST(FLOOR((LEN($0) - 1) * $1) AS INT) + 1]
    ELSE (CEIL((LEN($0) - 1) * $1) - (LEN($0) - 1) * $1) * $0[CAST(FLOOR((LEN($0) - 1) * $1) AS INT) + 1]
        + ((LEN($0) - 1) * $1 - FLOOR((LEN($0) - 1) * $1)) * $0[CAST(CEIL((LEN($0) - 1) * $1) AS INT) + 1]
END"""
_RANKED = "$0[CASE WHEN CEIL($1 * LEN($0)) < 1 THEN 1 ELSE CAST(CEIL($1 * LEN($0)) AS INT) END]"


def ordered_as_arguments(tree: exp.Expr) -> None:
    """Makes the order of a WITHIN GROUP arguments of the call: the value, and true if the last one comes first."""
    for node in list(tree.find_all(exp.WithinGroup)):
        inner = node.this
        called = inner.meta.get(CALL)
        order = node.expression
        if not isinstance(called, Call) or called.name not in _ORDERED or not isinstance(order, exp.Order):
            continue
        (ordered, *others) = order.expressions
        if others:
            raise InvalidInputError(
                f"the function `{called.name}`: expected one expression in WITHIN GROUP (ORDER BY …), found {len(others) + 1}",
                kind="query",
            )
        if not isinstance(ordered, exp.Ordered) or not isinstance(inner, (exp.Anonymous, exp.AnonymousAggFunc)):
            continue
        if called.name != "mode" and not inner.expressions:
            continue
        arguments = [*inner.expressions, ordered.this.copy(), exp.true() if ordered.args.get("desc") else exp.false()]
        if called.name == "mode" and inner.expressions:
            continue
        inner.set("expressions", arguments if called.name != "mode" else [*arguments, exp.true()])
        if node.parent is None:
            continue
        node.replace(inner)


def _values(call: RuleCall, value: exp.Expr) -> exp.Expr:
    """The values that are no NULL, as a list in their order."""
    listed = exp.Distinct(expressions=[value]) if call.is_distinct else value
    rows = call.around(exp.Anonymous(this="LIST", expressions=[listed]))
    return call.text("LIST_FILTER($0, LAMBDA _value: _value IS NOT NULL)", rows)


def _sorted(call: RuleCall, value: exp.Expr, *, is_reversed: bool = False) -> exp.Expr:
    direction = "DESC" if is_reversed else "ASC"
    return call.text(f"LIST_SORT($0, '{direction}')", _values(call, value))


def _unless_signed_zero(call: RuleCall, values: exp.Expr, result: exp.Expr) -> exp.Expr:
    """A result, or a refusal where -0.0 is among the values: DuckDB puts it in no place before or behind 0.0."""
    has_one = call.text("LEN(LIST_FILTER($0, LAMBDA _zero: _zero = 0 AND SIGNBIT(_zero))) > 0", values)
    return refused_where(has_one, f"{call.name} of -0.0", result)


def _regression(call: RuleCall) -> exp.Expr:
    name = call.name
    values = [double(call, 0), double(call, 1)]
    if call.is_distinct:
        raise call.refusal("with DISTINCT")
    if name == "regr_count":
        both = call.text("CASE WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN 1 END", *values)
        return call.around(exp.Count(this=both))
    if name in ("regr_avgx", "regr_avgy"):
        place = 1 if name == "regr_avgx" else 0
        both = call.text(f"CASE WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN ${place} END", *values)
        return call.around(exp.Anonymous(this="AVG", expressions=[both]))
    # DuckDB fails for a number that is none, and counts with what it has till then.
    finite = call.text("ISFINITE($0) AND ISFINITE($1)", *values)
    has_others = call.around(exp.Anonymous(this="BOOL_OR", expressions=[exp.Not(this=exp.paren(finite))]))
    guarded = [call.text("CASE WHEN ISFINITE($0) AND ISFINITE($1) THEN $2 END", *values, value) for value in values]
    result = call.around(exp.Anonymous(this=name.upper(), expressions=guarded))
    if name in ("regr_slope", "regr_intercept"):
        varies = call.around(exp.Anonymous(this="REGR_SXX", expressions=[one.copy() for one in guarded]))
        result = call.text("CASE WHEN $0 <> 0 THEN $1 END", varies, result)
    return refused_where(exp.Coalesce(this=has_others, expressions=[exp.false()]), f"{name} of NaN and infinity", result)


def _approximate_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    share = types[1] if len(types) > 1 else None
    return array(types[0]) if share is not None and share.name == "array" else types[0]


def _share(call: RuleCall, value: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Literal.string(_share_of(call, value)), "DOUBLE")


def _type_of_shares(types: Types, values: Sequence[exp.Expr]) -> Type:
    return array(DOUBLE) if types and types[0] is not None and types[0].name == "array" else DOUBLE


def _continuous(call: RuleCall) -> exp.Expr:
    """Writes ``percentile_cont``, of a share, a value and its order."""
    _check_order(call)
    values = _sorted(call, double(call, 1), is_reversed=_is_reversed(call, 2))
    return _unless_signed_zero(call, values, _of_shares(call, _BETWEEN, values))


def _discrete(call: RuleCall) -> exp.Expr:
    _check_order(call)
    kind = call.type(1)
    if not kind.is_number and kind != STRING:
        raise call.refusal(f"of {kind}")
    values = _sorted(call, double(call, 1), is_reversed=_is_reversed(call, 2))
    return _unless_signed_zero(call, values, _of_shares(call, _RANKED, values))


def _of_shares(call: RuleCall, text: str, values: exp.Expr) -> exp.Expr:
    """The value of a share, or those of an array of them."""
    shares = call.values[0].unnest()
    shares = shares.this if isinstance(shares, exp.Cast) else shares
    if not isinstance(shares, exp.Array) or not shares.expressions:
        return call.text(text, values, _share(call, call.values[0]))
    parts = [from_text(text, exp.column("__values"), _share(call, share)) for share in shares.expressions]
    listed = exp.Lambda(this=exp.Array(expressions=parts), expressions=[exp.to_identifier("__values")])
    each = exp.Anonymous(this="LIST_TRANSFORM", expressions=[call.text("CASE WHEN LEN($0) > 0 THEN [$0] END", values), listed])
    return exp.Anonymous(this="LIST_EXTRACT", expressions=[each, exp.Literal.number(1)])


def _check_order(call: RuleCall) -> None:
    """Raises InvalidInputError for a percentile without WITHIN GROUP, or with DISTINCT."""
    if len(call.values) < 3:
        raise InvalidInputError(f"the function `{call.name}`: expected WITHIN GROUP (ORDER BY …) behind it", kind="query")
    if call.is_distinct:
        raise InvalidInputError(f"the function `{call.name}` takes no DISTINCT with WITHIN GROUP", kind="query")


def _is_reversed(call: RuleCall, place: int) -> bool:
    return bool(call.values[place].this)


def _approximate(call: RuleCall) -> exp.Expr:
    """Writes ``percentile_approx``, which is exact while there are no more values than its accuracy."""
    kind = call.type(0)
    if not kind.is_number or kind.is_decimal:
        raise call.refusal(f"of {kind}")
    accuracy = written_integer(call, 2, "an accuracy") if len(call.values) > 2 else _ACCURACY
    if accuracy < 1:
        raise call.mismatch(2, "a positive number")
    values = _sorted(call, call.value(0))
    shares = call.values[1]
    if isinstance(shares, exp.Array):
        written = [_share_of(call, one) for one in shares.expressions]
        parts = ", ".join(_RANKED.replace("$1", f"CAST('{share}' AS DOUBLE)") for share in written)
        result = call.text(f"CASE WHEN LEN($0) > 0 THEN [{parts}] END", values)
    else:
        share = _share_of(call, shares)
        result = call.text(_RANKED.replace("$1", f"CAST('{share}' AS DOUBLE)"), values)
    are_many = call.text(f"LEN($0) > {accuracy}", values)
    result = refused_where(are_many, f"{call.name} of more values than its accuracy ({accuracy})", result)
    if kind.is_float:
        result = _unless_signed_zero(call, values, result)
    if kind == BIGINT:
        are_large = call.text(f"LEN(LIST_FILTER($0, LAMBDA _one: ABS(CAST(_one AS HUGEINT)) > {_WHOLE_DOUBLES})) > 0", values)
        result = refused_where(are_large, f"{call.name} of whole numbers that are no doubles", result)
    return call.as_result(result)


def _share_of(call: RuleCall, value: exp.Expr) -> str:
    plain = value.unnest()
    literal = plain.this.unnest() if isinstance(plain, exp.Cast) else plain
    if not isinstance(literal, exp.Literal) or not 0 <= float(literal.name) <= 1:
        raise call.refusal("of a share that is computed, or not from 0 to 1")
    return str(literal.name)


def _mode(call: RuleCall) -> exp.Expr:
    """Writes ``mode``: of several values that are most frequent the first or the last one, or a refusal where Spark takes any."""
    if not call.values:
        raise InvalidInputError("the function `mode`: expected an argument, or WITHIN GROUP (ORDER BY …) behind it", kind="query")
    kind = call.type(0)
    if kind.is_nested or kind.is_float or kind.name == "interval":
        raise call.refusal(f"of {kind}")
    flags = [bool(one.this) if isinstance(one, exp.Boolean) else None for one in call.values[1:]]
    if None in flags:
        raise call.refusal("with a computed argument")
    # As ``ordered_as_arguments`` has them: whether the last one is taken, and true.
    is_last, is_deterministic = (flags[0], True) if len(flags) == 2 else (False, bool(flags and flags[0]))
    histogram = call.around(exp.Anonymous(this="HISTOGRAM", expressions=[_distinct(call, call.value(0))]))
    most = call.text(
        "LIST_TRANSFORM(LIST_FILTER(MAP_ENTRIES($0), LAMBDA _entry: _entry.value = LIST_MAX(MAP_VALUES($0))), "
        "LAMBDA _entry: _entry.key)",
        histogram,
    )
    chosen = call.text(f"{'LIST_MAX' if is_last else 'LIST_MIN'}($0)", most)
    if not is_deterministic:
        chosen = refused_where(call.text("LEN($0) > 1", most), "mode of several values that are most frequent", chosen)
    return call.as_result(chosen)


def _distinct(call: RuleCall, value: exp.Expr) -> exp.Expr:
    return exp.Distinct(expressions=[value]) if call.is_distinct else value


def _sum_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0]
    if kind is None or kind.name == "interval":
        return kind
    return decimal(kind.precision + 10, kind.scale) if kind.is_decimal else BIGINT if kind.is_integer else DOUBLE


def _average_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0]
    if kind is None or kind.name == "interval":
        return kind
    return decimal(kind.precision + 4, min(kind.scale + 4, MAX_PRECISION)) if kind.is_decimal else DOUBLE


def _tried_sum(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_number and kind not in (STRING, VOID):
        raise call.refusal(f"of {kind}")
    if kind.is_integer:
        total = call.around(exp.Sum(this=_distinct(call, call.value(0))))
        is_inside = f"$0 BETWEEN {-(2**63)} AND {2**63 - 1}"
        tried = call.as_result(call.text(f"CASE WHEN {is_inside} THEN $0 END", total))
        if kind != BIGINT:
            return tried
        # Spark gives NULL too where a sum on the way is out of range.
        sides = [call.around(exp.Sum(this=_distinct(call, call.text(f"CASE WHEN $0 {sign} 0 THEN $0 END")))) for sign in "<>"]
        on_the_way = call.text(f"{is_inside} AND (COALESCE($1, 0) < {-(2**63)} OR COALESCE($2, 0) > {2**63 - 1})", total, *sides)
        return refused_where(on_the_way, "try_sum of numbers whose sum may be out of range on the way", tried)
    if kind.is_decimal:
        if kind.precision + 10 > MAX_PRECISION:
            raise call.refusal(f"of decimals of more than {MAX_PRECISION - 10} digits")
        return call.as_result(call.around(exp.Sum(this=_distinct(call, call.value(0)))))
    return call.around(exp.Sum(this=_distinct(call, double(call, 0))))


def _averaged(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_number and kind not in (STRING, VOID):
        raise call.refusal(f"of {kind}")
    if kind.is_decimal:
        if kind.precision + 10 > MAX_PRECISION:
            raise call.refusal(f"of decimals of more than {MAX_PRECISION - 10} digits")
        assert call.result is not None, "the average of a decimal has a type"
        return average(call.around(exp.Avg(this=_distinct(call, call.value(0)))), call.result, kind)
    return call.around(average_of_doubles(exp.Avg(this=_distinct(call, double(call, 0)))))


def _deviation(call: RuleCall) -> exp.Expr:
    value = double(call, 0)
    node = call.around(exp.StddevSamp(this=_distinct(call, value)))
    return spread_as_spark(node)


_BY_PARTS = "its last digits go by the order of the rows, and where Spark parts them"
_MOMENTS = {
    name: ArrowFunction(name=name, arguments=(array(DOUBLE),), result=DOUBLE, call=compute)
    for name, compute in (("skewness", highermoments.skewness), ("kurtosis", highermoments.kurtosis))
}


def _moment(call: RuleCall) -> exp.Expr:
    """Writes ``skewness`` and ``kurtosis``, which hold the values of one group in memory."""
    listed = call.around(exp.Anonymous(this="LIST", expressions=[_distinct(call, double(call, 0))]))
    return _MOMENTS[call.name].of(listed)


def _ranked(call: RuleCall) -> exp.Expr:
    return call.around(exp.Anonymous(this=call.name.upper()))


_COUNTER = """CASE
    WHEN $0 IS NULL OR $1 IS NULL OR $0 < $1.count OR $2 > $1.since THEN NULL
    WHEN $2 < $1.since THEN ERROR('the function `counter_diff`: expected times of a start that do not decrease')
    ELSE $0 - $1.count
END"""


def _counted_on(call: RuleCall) -> exp.Expr:
    """Writes ``counter_diff``: the difference to the counter before, which is no NULL; NULL where the counter began anew."""
    kind, node = call.type(0), call.node
    if not kind.is_number:
        raise call.mismatch(0, "a number")
    if len(call.values) > 1 and call.type(1) not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise call.mismatch(1, "a TIMESTAMP")
    if not isinstance(node, exp.Window):
        raise InvalidInputError("the function `counter_diff`: expected OVER behind it", kind="query")
    if node.args.get("spec") is not None or node.args.get("order") is None:
        raise call.refusal("in a window without an order, or with a frame")
    since = call.value(1) if len(call.values) > 1 else exp.cast(exp.null(), "TIMESTAMP")
    state = call.text("CASE WHEN $0 IS NOT NULL THEN {'count': $0, 'since': $1} END", call.value(0), since)
    before = call.around(exp.IgnoreNulls(this=exp.Lag(this=state)))
    difference = call.as_result(call.text(_COUNTER, call.value(0), before, since))
    is_negative = call.text("$0 < 0")
    return failing(is_negative, "the function `counter_diff`: expected a counter, found a negative one", difference)


def _grouping_id(call: RuleCall) -> exp.Expr:
    """Writes ``grouping_id``: a bit a column of the groups, in their order."""
    select = call.node.parent_select
    group = select.args.get("group") if select is not None else None
    columns = _grouped(call, group) if isinstance(group, exp.Group) else None
    if not columns:
        raise InvalidInputError(
            f"the function `{call.name}`: expected GROUP BY with ROLLUP, CUBE or GROUPING SETS alone", kind="query"
        )
    if any(not isinstance(one, exp.Column) for one in columns):
        raise call.refusal("of groups that are no columns")
    if call.values and [_plain_name(one) for one in call.values] != [_plain_name(one) for one in columns]:
        raise InvalidInputError(
            f"the function `{call.name}`: expected the columns of GROUP BY in their order, or none", kind="query"
        )
    return exp.cast(exp.Anonymous(this="GROUPING", expressions=[one.copy() for one in columns]), "BIGINT")


def _plain_name(column: exp.Expr) -> str:
    return column.name.casefold()


def _grouped(call: RuleCall, group: exp.Group) -> list[exp.Expr] | None:
    """The columns of sets of groups, each once; None where there are no sets."""
    parts = list(group.expressions)
    for key in ("rollup", "cube", "grouping_sets"):
        parts += group.args.get(key) or []
    sets = [part for part in parts if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets))]
    if not sets:
        return None
    others = [part for part in parts if part is not sets[0]]
    if len(sets) > 1 or (others and sets[0].expressions):
        raise call.refusal("beside several sets of groups, or other groups")
    columns: dict[str, exp.Expr] = {}
    left = [*others, *sets[0].expressions][::-1]
    while left:
        part = left.pop()
        if isinstance(part, (exp.Tuple, exp.Paren)):
            left += list(part.iter_expressions())[::-1]
        else:
            columns.setdefault(part.sql().casefold(), part)
    return list(columns.values())


def _rule(
    name: str,
    bounds: tuple[int, int],
    result: ResultOf,
    write: Callable[[RuleCall], exp.Expr],
    *aliases: str,
    note: str = "",
) -> FunctionRule:
    return FunctionRule(name=name, bounds=bounds, result=result, write=write, aliases=aliases, is_aggregate=True, note=note)


RULES = (
    _rule("regr_count", (2, 2), always(BIGINT), _regression),
    *(
        _rule(name, (2, 2), always(DOUBLE), _regression)
        for name in ("regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_r2", "regr_slope", "regr_intercept")
    ),
    _rule("percentile_cont", (1, 1), _type_of_shares, _continuous),
    _rule("percentile_disc", (1, 1), _type_of_shares, _discrete),
    _rule("percentile_approx", (2, 3), _approximate_type, _approximate, "approx_percentile"),
    _rule("mode", (0, 2), as_argument(), _mode),
    _rule("try_sum", (1, 1), _sum_type, _tried_sum),
    _rule("try_avg", (1, 1), _average_type, _averaged),
    _rule("mean", (1, 1), _average_type, _averaged),
    _rule("std", (1, 1), always(DOUBLE), _deviation),
    *(_rule(name, (1, 1), always(DOUBLE), _moment, note=_BY_PARTS) for name in _MOMENTS),
    _rule("counter_diff", (1, 2), as_argument(), _counted_on),
    _rule("grouping_id", (0, MANY), always(BIGINT), _grouping_id),
    _rule("rank", (0, MANY), always(INT), _ranked),
    _rule("dense_rank", (0, MANY), always(INT), _ranked),
    _rule("percent_rank", (0, MANY), always(DOUBLE), _ranked),
)  # fmt: skip
ARROW = tuple(_MOMENTS.values())
