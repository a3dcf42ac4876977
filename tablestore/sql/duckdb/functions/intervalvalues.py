"""Reads intervals that stand in the query, and says which intervals are no values of a result.

An interval of Spark's has months, or days and microseconds; no type of Arrow's holds months. DuckDB's has all of them at once, so
what an interval of a column is cannot be told.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.sql.duckdb.functions.functionrule import RuleCall

_MONTHS_OF = {"YEAR": 12, "MONTH": 1}
_MICROS_OF = {
    "WEEK": 604_800_000_000, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_YEARS = re.compile(r"(?P<sign>[+-]?)(?P<years>[0-9]{1,6})-(?P<months>[0-9]{1,2})")
_CLOCK = re.compile(
    r"(?P<sign>[+-]?)(?P<days>[0-9]{1,7}) (?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{1,2}):(?P<seconds>[0-9]{1,2})"
    r"(?:\.(?P<rest>[0-9]{1,6}))?"
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class WrittenInterval:
    """An interval that stands in a query. ``has_months``: it is one of years and months, and ``length`` counts months; else
    microseconds. ``units``: the places of its first and last units among all."""

    has_months: bool
    length: int
    units: tuple[int, int]

    def has_part(self, unit: str) -> bool:
        """True if a unit is one of its own."""
        return unit in _UNITS and self.units[0] <= _UNITS.index(unit) <= self.units[1]


def _place(unit: str) -> int:
    """The place of a unit among those that types of intervals have."""
    return _UNITS.index({"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}.get(unit, unit))


def written_interval(value: exp.Expr) -> WrittenInterval | None:
    """The interval that an expression is: one that is written, or a sum of such; None for another one."""
    value = value.unnest()
    if isinstance(value, exp.Add):
        left, right = written_interval(value.this), written_interval(value.expression)
        if left is None or right is None or left.has_months != right.has_months:
            return None
        units = min(left.units[0], right.units[0]), max(left.units[1], right.units[1])
        return WrittenInterval(left.has_months, left.length + right.length, units)
    if not isinstance(value, exp.Interval) or value.this is None:
        return None
    amount, sign = value.this, 1
    if isinstance(amount, exp.Neg):
        amount, sign = amount.this, -1
    unit = value.args.get("unit")
    if not isinstance(amount, exp.Literal) or unit is None:
        return None
    if isinstance(unit, exp.IntervalSpan):
        return _of_span(amount.name, sign, unit.this.name.upper(), unit.expression.name.upper())
    name = unit.name.upper().removesuffix("S")
    if not _NUMBER.fullmatch(amount.name):
        return None
    size = _MONTHS_OF.get(name) or _MICROS_OF.get(name)
    return (
        None if size is None else WrittenInterval(name in _MONTHS_OF, sign * int(amount.name) * size, (_place(name), _place(name)))
    )


def _of_span(amount: str, sign: int, first: str, last: str) -> WrittenInterval | None:
    """An interval from one unit to another: of years to months, or of days to seconds."""
    if (first, last) == ("YEAR", "MONTH") and (parts := _YEARS.fullmatch(amount)) is not None and int(parts["months"]) < 12:
        sign *= -1 if parts["sign"] == "-" else 1
        return WrittenInterval(True, sign * (int(parts["years"]) * 12 + int(parts["months"])), (_place(first), _place(last)))
    if (first, last) == ("DAY", "SECOND") and (parts := _CLOCK.fullmatch(amount)) is not None:
        hours, minutes, seconds = (int(parts[name]) for name in ("hours", "minutes", "seconds"))
        if hours < 24 and minutes < 60 and seconds < 60:
            sign *= -1 if parts["sign"] == "-" else 1
            whole = ((int(parts["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
            return WrittenInterval(
                False, sign * (whole * 1_000_000 + int((parts["rest"] or "").ljust(6, "0"))), (_place(first), _place(last))
            )
    return None


def without_a_form(call: RuleCall) -> TablestoreError:
    """The error for an interval of years and months, or of these and days: where it is a value of a result, an error on any
    engine."""
    parent = call.node.parent
    if isinstance(parent, exp.Alias):
        parent = parent.parent
    if isinstance(parent, exp.Select) and parent.parent is None:
        return InvalidInputError(
            f"the function `{call.name}` gives an interval of months, and no column of a result has such values; add it to a date, "
            "or give its parts",
            kind="query",
        )
    return call.refusal("of years and months")
