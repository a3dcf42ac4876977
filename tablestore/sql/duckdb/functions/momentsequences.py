"""Writes sequences of dates and timestamps by a written interval, of which Spark counts each element from the first one.

Of an interval the months, or the whole days, move what clocks of the session's time zone show; the rest of a day is behind them.
Dates are counted as numbers of days, or as the timestamps at which they begin where the interval has a rest.
"""

from dataclasses import dataclass

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import DATE, TIMESTAMP, TIMESTAMP_NTZ, SqlType
from tablestore.sql.duckdb.calls import first_shown, in_steady_zone, refused_where, written
from tablestore.sql.duckdb.functions.functionrule import RuleCall, converted, from_text
from tablestore.sql.duckdb.functions.intervalvalues import WrittenInterval, written_interval

MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
LONGEST = 10_000_000
"""How many elements a sequence has at most here."""
_DAY = 86_400_000_000
# As many days as Spark counts on for a month where it looks whether a sequence is too long.
_LEAST_DAYS = 28
_BEYOND = "sequence: expected a step from the first end to the last"
# $0 and $1 are the ends, and $2 is an element; there may be no way from one end to the other, and a count of steps is enough.
_LISTED = f"""CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL WHEN {{has_no_way}} THEN ERROR('{_BEYOND}') ELSE
    LIST_FILTER(LIST_TRANSFORM(RANGE(0, CAST({{count}} AS BIGINT)), LAMBDA _at: $2), LAMBDA _element: {{is_within}}) END"""
# A moment that clocks show some months or days later: see ``datetimefunctions``.
_AS_SET = """LIST_TRANSFORM([STRUCT_PACK(at := :start, to := CAST(CAST(:start AS TIMESTAMP) + :by AS TIMESTAMPTZ))], LAMBDA _step:
    CASE WHEN CAST(_step.at AS TIMESTAMP) - TIMEZONE('UTC', _step.at) = CAST(_step.to AS TIMESTAMP) - TIMEZONE('UTC', _step.to)
    THEN _step.to ELSE :earliest END)[1]"""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of months, or of days and microseconds."""

    months: int
    days: int
    micros: int

    @property
    def length(self) -> int:
        """Its microseconds, with months as short as they can be."""
        return (self.months * _LEAST_DAYS + self.days) * _DAY + self.micros

    @property
    def by(self) -> str:
        """The step of the clocks, in DuckDB's words."""
        return f"TO_MONTHS(CAST(_at * {self.months} AS INTEGER))" if self.months else f"TO_DAYS(CAST(_at * {self.days} AS INTEGER))"


def _step_of(interval: WrittenInterval) -> _Step:
    if interval.has_months:
        return _Step(interval.length, 0, 0)
    days = abs(interval.length) // _DAY * (1 if interval.length > 0 else -1)
    return _Step(0, days, interval.length - days * _DAY)


def moment_sequence(call: RuleCall, kind: SqlType) -> exp.Expr:
    """A sequence of moments of a type, by a step that is written, or by a day."""
    ends = [converted(call.value(place), call.type(place), kind) for place in (0, 1)]
    if len(call.values) < 3:
        return from_text("CASE WHEN $0 <= $1 THEN $2 ELSE $3 END", *ends, *(_by(kind, ends, _Step(0, days, 0)) for days in (1, -1)))
    interval = written_interval(call.values[2])
    if interval is None:
        raise call.refusal("by a step that is computed")
    step = _step_of(interval)
    if kind == DATE and not step.months and not step.days:
        raise InvalidInputError(
            "the function `sequence`: expected a step of whole days or more between dates, found a shorter one", kind="query"
        )
    if kind == DATE and step.micros:
        whole = _by(TIMESTAMP, [converted(end, DATE, TIMESTAMP) for end in ends], step)
        return from_text("LIST_TRANSFORM($0, LAMBDA _begin: CAST(_begin AS DATE))", whole)
    return _by(kind, ends, step)


def _by(kind: SqlType, ends: list[exp.Expr], step: _Step) -> exp.Expr:
    first, last = (end.copy() for end in ends)
    if step.length == 0:
        text = f"CASE WHEN $0 = $1 THEN [$0] WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN ERROR('{_BEYOND}') END"
        return from_text(text, first, last)
    is_up = step.length > 0
    if step.months or step.days:
        # Days more than lie between: clocks may be set forward or back.
        days = "ABS($0 - $1) + 1" if kind == DATE else f"ABS(EPOCH_US($0) - EPOCH_US($1)) // {_DAY} + 2"
        count = f"({days}) * CAST({_DAY} AS HUGEINT) // {abs(step.length)} + 2"
    else:
        count = f"ABS(EPOCH_US($0) - EPOCH_US($1)) // {abs(step.length)} + 1"
    text = _LISTED.format(
        has_no_way="$0 > $1" if is_up else "$0 < $1", count=count, is_within="_element <= $1" if is_up else "_element >= $1"
    )
    lists = [from_text(text, first.copy(), last.copy(), element) for element in _elements(kind, first, step)]
    # Outside of the lambda, where DuckDB knows the time zone before it reads a row.
    listed = lists[0] if len(lists) == 1 else in_steady_zone(*lists)
    is_long = from_text(f"{count} > {LONGEST}", first, last)
    return refused_where(is_long, f"a sequence of more than {LONGEST} moments", listed)


def _elements(kind: SqlType, first: exp.Expr, step: _Step) -> list[exp.Expr]:
    """The element at the place ``_at``; of a TIMESTAMP by clocks one where these never go back, and one where they may."""
    if kind == DATE:
        return [from_text(f"CAST($0 + {step.by} AS DATE)", first)]
    rest = f"TO_MICROSECONDS(_at * {step.micros})"
    if not step.months and not step.days:
        return [from_text(f"$0 + {rest}", first)]
    if kind == TIMESTAMP:
        earliest = first_shown(exp.column("to", table="_step"))
        by_clocks = written(_AS_SET, start=first.copy(), by=from_text(step.by), earliest=earliest)
        moved = [from_text(f"MAKE_TIMESTAMPTZ(EPOCH_US(MAKE_TIMESTAMP(EPOCH_US($0)) + {step.by}))", first.copy()), by_clocks]
    else:
        moved = [from_text(f"$0 + {step.by}", first)]
    return [from_text(f"$0 + {rest}", one) for one in moved] if step.micros else moved
