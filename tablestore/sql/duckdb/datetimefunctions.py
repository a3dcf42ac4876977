"""Writes functions of dates and timestamps with Spark's meaning."""

import re

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.functiontypes import alternatives
from tablestore.sql.binding.sqltypes import DATE, INTERVAL, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, SqlType, Type, engine_words
from tablestore.sql.duckdb.calls import (
    STEADY,
    as_date,
    as_zoned,
    call,
    first_shown,
    in_steady_zone,
    local_of_zoned,
    refusal,
    written,
)
from tablestore.sql.duckdb.textnumbers import COMPARISONS

# Nodes that hand values on as they are.
_HANDING_ON = (
    exp.Query, exp.Subquery, exp.Alias, exp.Paren, exp.Tuple, exp.Values, exp.Struct, exp.PropertyEQ, exp.Group, exp.Ordered,
    exp.Order, exp.Window, exp.Distinct, exp.Is, exp.Max, exp.Min, exp.First, exp.Last, exp.FirstValue, exp.LastValue,
    exp.AnyValue, exp.Lag, exp.Lead, exp.Count, exp.ArrayAgg, exp.IgnoreNulls, exp.RespectNulls, exp.Map,
)  # fmt: skip

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "QUARTER": "QUARTER",
    "WEEK": "WEEK",
}
_MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
# Months from one timestamp to another as java.time counts them: a day is over when its time is, and a month on its day.
_WHOLE_MONTHS = """(
    (YEAR(:day) * 12 + MONTH(:day)) * 32 + DAY(:day) - ((YEAR(:first) * 12 + MONTH(:first)) * 32 + DAY(:first))
) // 32 // :size"""
_LAST_DAY = """:last::DATE - CASE
    WHEN :last::DATE > :first::DATE AND :last::TIME < :first::TIME THEN 1
    WHEN :last::DATE < :first::DATE AND :last::TIME > :first::TIME THEN -1
    ELSE 0
END"""
# As ``calls.first_shown``, of the clocks of a region.
_FIRST_IN_REGION = """LIST_TRANSFORM([:shown], LAMBDA _shown: CASE
    WHEN TIMEZONE(:region, TIMEZONE(:region, _shown - INTERVAL 1 DAY) + INTERVAL 24 HOUR) = _shown
    THEN TIMEZONE(:region, _shown - INTERVAL 1 DAY) + INTERVAL 24 HOUR
    ELSE TIMEZONE(:region, _shown)
END)[1]"""
# As long before a moment as its clocks say, if they were not set in between.
_TRUNCATED = """LIST_TRANSFORM([:at], LAMBDA _at: CASE
    WHEN (_at - (_at::TIMESTAMP - DATE_TRUNC(:unit, _at::TIMESTAMP)))::TIMESTAMP = DATE_TRUNC(:unit, _at::TIMESTAMP)
    THEN _at - (_at::TIMESTAMP - DATE_TRUNC(:unit, _at::TIMESTAMP))
    ELSE :earliest
END)[1]"""
# The first of two moments, unless clocks are set at the other one as they were at the moment that it is counted from.
_AS_THEY_WERE_SET = """CASE
    WHEN :start::TIMESTAMP - TIMEZONE('UTC', :start) = :at::TIMESTAMP - TIMEZONE('UTC', :at) THEN :at
    ELSE :earliest
END"""
# A timestamp some months or days later, and the rest of an interval behind them: Spark takes each 24 hours for a day.
_MOVED = """LIST_TRANSFORM([STRUCT_PACK(
    at := :start, by := :by, months := 12 * DATE_PART('year', :by) + DATE_PART('month', :by), micros := EPOCH_US(:by)
)], LAMBDA _from:
    LIST_TRANSFORM([STRUCT_PACK(at := _from.at, to := CASE
        WHEN _from.months <> 0 THEN _from.at + _from.by
        ELSE CAST(_from.at::TIMESTAMP + TO_DAYS(CAST(_from.micros // 86400000000 AS INTEGER)) AS TIMESTAMPTZ)
    END)], LAMBDA _step: CASE
        WHEN _step.at::TIMESTAMP - TIMEZONE('UTC', _step.at) = _step.to::TIMESTAMP - TIMEZONE('UTC', _step.to) THEN _step.to
        ELSE :earliest
    END)[1] + CASE WHEN _from.months <> 0 THEN INTERVAL 0 DAY ELSE TO_MICROSECONDS(_from.micros % 86400000000) END
)[1]"""
_SECONDS_OF = {
    "WEEK": 604_800, "DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1, "MILLISECOND": 1e-3, "MICROSECOND": 1e-6,
}  # fmt: skip
_DAY_SECONDS = 86_400
_HOURS_AND_DAYS = ("HOUR", "DAY", "DD")
_SHORT = ("MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_REGION = re.compile(r"[A-Z]\w+(?:/\w+)+|UTC|GMT")


def in_microseconds(node: exp.Expr, bound: Bound) -> dict[int, SqlType]:
    """The types to which operands of a node are to be cast, by their ids: those that count nanoseconds.

    DuckDB compares them with no other timestamp and knows few functions of them; to Spark they count microseconds. Where a value is
    only handed on, its nanoseconds stay.
    """
    if isinstance(node, _HANDING_ON):
        return {}
    groups = _of_one_type(node)
    casts: dict[int, SqlType] = {}
    for operands in groups or [list(node.iter_expressions())]:
        kinds = {id(one): kind for one in operands if (kind := bound.of(one)) != VOID}
        if not groups or not all(kind is not None and kind.is_fine for kind in kinds.values()) or len(set(kinds.values())) > 1:
            casts |= {at: kind for at, kind in kinds.items() if kind is not None and kind.is_fine}
    if isinstance(node, exp.In) and (among := node.args.get("query")) is not None:
        # The column of a query is left as it is.
        casts.pop(id(among), None)
    return casts


def _of_one_type(node: exp.Expr) -> list[list[exp.Expr]]:
    """The groups of operands that DuckDB takes with their nanoseconds where all of a group have such."""
    match node:
        case exp.Case():
            compared = [] if node.this is None else [node.this, *(branch.this for branch in node.args["ifs"])]
            return [compared, alternatives(node)]
        case exp.If():
            # The branch of a CASE is one of its alternatives.
            return [[] if isinstance(node.parent, exp.Case) else alternatives(node)]
        case exp.Coalesce() | exp.Array():
            return [alternatives(node)]
        case _ if isinstance(node, (*COMPARISONS, exp.In, exp.Nullif, exp.Greatest, exp.Least)):
            return [list(node.iter_expressions())]
        case _:
            return []


def truncated_date(node: exp.DateTrunc) -> exp.Expr:
    """Writes ``trunc``: a date, cut to a unit that Spark knows."""
    unit = str(node.args["unit"].name).upper()
    if unit not in _UNITS:
        raise refusal(f"trunc to {unit}")
    node.set("unit", exp.Literal.string(_UNITS[unit]))
    return as_date(node)


def truncated_timestamp(node: exp.TimestampTrunc) -> exp.Expr:
    """Writes ``date_trunc``, which gives a TIMESTAMP WITH TIME ZONE whatever is cut."""
    at = as_zoned(node.this)
    node.set("this", at)
    name = str(node.args["unit"].name).upper()
    in_utc = call("DATE_TRUNC", exp.Literal.string(name), local_of_zoned(at.copy()))
    steady = exp.Coalesce(this=call("MAKE_TIMESTAMPTZ", call("EPOCH_US", in_utc)), expressions=[node.copy()])
    if name not in _HOURS_AND_DAYS:
        return in_steady_zone(steady, node if name in _SHORT else first_shown(node).args["default"])
    truncated = exp.TimestampTrunc(this=exp.column("_at"), unit=node.args["unit"].copy())
    unit = exp.Literal.string(node.args["unit"].name)
    return in_steady_zone(steady, written(_TRUNCATED, at=at.copy(), unit=unit, earliest=first_shown(truncated)))


def interval_behind(node: exp.Expr, bound: Bound) -> None:
    """Puts the interval of a sum behind what it is added to."""
    if (
        isinstance(node, exp.Add)
        and bound.of(node.this) == INTERVAL
        and bound.of(node.expression) in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    ):
        interval, moment = node.this, node.expression
        node.set("this", moment)
        node.set("expression", interval)


def interval_between(node: exp.Sub, left: Type, right: Type) -> exp.Expr:
    """The interval from one moment to another of its type: days between dates, microseconds between timestamps."""
    if left != right:
        raise refusal(f"the difference of {left} and {right}")
    if left == DATE:
        return written("TO_DAYS(CAST(:left - :right AS INT))", left=node.this, right=node.expression)
    return written("TO_MICROSECONDS(EPOCH_US(:left) - EPOCH_US(:right))", left=node.this, right=node.expression)


def moves_by_interval(node: exp.Expr, bound: Bound) -> bool:
    """True if a sum or difference is a TIMESTAMP that an interval moves, unless that is written and shorter than a day."""
    if bound.of(node) != TIMESTAMP or bound.of(node.expression) != INTERVAL:
        return False
    interval = node.expression
    length, size = interval.this, _SECONDS_OF.get(_unit(interval)) if isinstance(interval, exp.Interval) else None
    if size is None or not isinstance(length, exp.Literal):
        return True
    try:
        return abs(float(length.name)) * size >= _DAY_SECONDS
    except ValueError:
        return True


def moved(node: exp.Binary) -> exp.Expr:
    """A TIMESTAMP that an interval moves: clocks stay as they are set for its months and each whole day, where they can be."""
    interval = node.expression
    if isinstance(interval, exp.Interval) and _unit(interval) in _MONTHS_OF:
        later = written(_AS_THEY_WERE_SET, start=node.this.copy(), at=node.copy(), earliest=first_shown(node.copy()))
        return in_steady_zone(_moved_in_utc(node), later)
    by = interval.copy()
    if isinstance(node, exp.Sub):
        by = exp.Neg(this=exp.Paren(this=by))
    start = as_zoned(node.this)
    node.set("this", start)
    later = written(_MOVED, start=start.copy(), by=by, earliest=first_shown(exp.column("to", table="_step")))
    return in_steady_zone(_moved_in_utc(node), later)


def _moved_in_utc(node: exp.Binary) -> exp.Expr:
    """A TIMESTAMP that an interval moves, by clocks that are never set: without a time zone DuckDB adds in a tenth of the time."""
    local = node.copy()
    local.set("this", local_of_zoned(as_zoned(local.this)))
    # Infinity has no microseconds.
    return exp.Coalesce(this=call("MAKE_TIMESTAMPTZ", call("EPOCH_US", local)), expressions=[node])


def _unit(interval: exp.Interval) -> str:
    unit = interval.args.get("unit")
    return unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""


def as_moments(node: exp.Expr, bound: Bound) -> dict[int, tuple[SqlType, SqlType]]:
    """The operands of a comparison with a date or timestamp that are cast to one, with their types and its, by their ids."""
    if not isinstance(node, (*COMPARISONS, exp.Between, exp.In)):
        return {}
    kinds = {id(one): bound.of(one) for one in node.iter_expressions() if not isinstance(one, exp.Query)}
    moments = {kind for kind in kinds.values() if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)}
    if TIMESTAMP in moments:
        return {at: (kind, TIMESTAMP) for at, kind in kinds.items() if kind in (DATE, TIMESTAMP_NTZ, STRING) if kind is not None}
    if len(moments) != 1:
        return {}
    (moment,) = moments
    return {at: (STRING, moment) for at, kind in kinds.items() if kind == STRING if moment is not None}


def difference(node: exp.TimestampDiff) -> exp.Expr:
    """Writes a difference of moments. DuckDB's counts the borders between them, Spark's the whole units."""
    unit = str(node.args["unit"].name).upper()
    first, last = (exp.Cast(this=end, to=exp.DataType.build("TIMESTAMP")) for end in (node.expression, node.this))
    if unit not in _MONTHS_OF:
        return call("DATE_SUB", exp.Literal.string(unit.lower()), first, last)
    day = exp.paren(written(_LAST_DAY, first=first, last=last))
    months = written(_WHOLE_MONTHS, day=day, first=first, size=exp.Literal.number(_MONTHS_OF[unit]))
    return exp.Cast(this=exp.paren(months), to=exp.DataType.build("BIGINT"))


def added_units(node: exp.TimestampAdd, kind: Type) -> exp.Expr:
    """A timestamp some units later."""
    unit = str(node.args["unit"].name).upper()
    if unit not in _ADDED_UNITS or kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise refusal(f"timestampadd of {unit[:40]} and {kind}")
    moment = node.this if kind != DATE else first_shown(exp.Cast(this=node.this, to=engine_words(TIMESTAMP)))
    name, size = _ADDED_UNITS[unit]
    count = exp.Mul(this=exp.cast(exp.paren(node.expression), "BIGINT"), expression=exp.Literal.number(size))
    return exp.paren(exp.Add(this=moment, expression=call(name, exp.cast(count, "INT") if name in _OF_INTS else count)))


_ADDED_UNITS = {
    "YEAR": ("TO_MONTHS", 12), "QUARTER": ("TO_MONTHS", 3), "MONTH": ("TO_MONTHS", 1),
    "WEEK": ("TO_DAYS", 7), "DAY": ("TO_DAYS", 1), "DAYOFYEAR": ("TO_DAYS", 1),
    "HOUR": ("TO_HOURS", 1), "MINUTE": ("TO_MINUTES", 1), "SECOND": ("TO_MICROSECONDS", 1_000_000),
    "MILLISECOND": ("TO_MICROSECONDS", 1_000), "MICROSECOND": ("TO_MICROSECONDS", 1),
}  # fmt: skip
_OF_INTS = ("TO_MONTHS", "TO_DAYS")


def date_difference(node: exp.DateDiff) -> exp.Expr:
    """Days between two dates. With a unit it is ``timestampdiff``, which sqlglot takes for a difference of dates too."""
    unit = node.args.get("unit")
    if unit is None:
        return node
    first, last = (end.this if isinstance(end, exp.TsOrDsToDate) else end for end in (node.expression, node.this))
    return difference(exp.TimestampDiff(this=last, expression=first, unit=unit))


def months_between(node: exp.MonthsBetween, last: Type, first: Type) -> exp.Expr:
    """Months between two dates, to eight digits. sqlglot leaves the time of the day out."""
    if (last, first) != (DATE, DATE):
        raise refusal("months_between of what is not known to be two dates")
    is_rounded = node.args.get("roundoff")
    if is_rounded is None:
        return exp.Round(this=node, decimals=exp.Literal.number(8))
    if not isinstance(is_rounded, exp.Boolean):
        raise refusal("months_between with a computed third argument")
    return exp.Round(this=node, decimals=exp.Literal.number(8)) if is_rounded.this else node


def from_utc(node: exp.AtTimeZone) -> exp.Expr:
    """Writes ``from_utc_timestamp``: the moment that clocks in UTC show when those of the region show this one."""
    return call("TIMEZONE", exp.Literal.string("UTC"), call("TIMEZONE", _region(node), node.this))


def to_utc(node: exp.FromTimeZone) -> exp.Expr:
    """Writes ``to_utc_timestamp``: the other way round. Of two moments that clocks of the region show alike, the first."""
    shown = call("TIMEZONE", exp.Literal.string("UTC"), node.this)
    return shown_in(_region(node), shown)


def shown_in(region: exp.Expr, shown: exp.Expr) -> exp.Expr:
    """The moment when clocks of a region show a TIMESTAMP_NTZ: the first one, if there are two."""
    return call("TIMEZONE", region, shown) if region.name in STEADY else written(_FIRST_IN_REGION, region=region, shown=shown)


def _region(node: exp.Expr) -> exp.Expr:
    zone: exp.Expr = node.args["zone"]
    if not isinstance(zone, exp.Literal) or not _REGION.fullmatch(zone.name):
        raise refusal("a time zone that is computed, or is not written as a region (Europe/Rome)")
    return zone


def weekday(day: exp.Expr) -> exp.Expr:
    """Writes ``weekday``: Monday is 0."""
    return exp.Sub(this=call("ISODOW", day), expression=exp.Literal.number(1))


def day_of_week(node: exp.DayOfWeek) -> exp.Expr:
    """Writes ``dayofweek``: Sunday is 1 in Spark, and 0 in DuckDB."""
    return exp.Paren(this=exp.Add(this=node, expression=exp.Literal.number(1)))


def extract(node: exp.Extract) -> exp.Expr:
    """Writes ``EXTRACT`` of a part that both engines count alike, and of the day of the week."""
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
