"""Reads intervals that stand in the query, and says which intervals are no values of a result.

An interval of Spark's has months, or days and microseconds, and no column of a result holds months. DuckDB's has all of them at
once.
"""

import re
from dataclasses import dataclass, replace

from sqlglot import exp

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.functionrule import RuleCall

_MONTHS_OF = {"YEAR": 12, "MONTH": 1}
_MICROS_OF = {
    "WEEK": 604_800_000_000, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_PLAIN = re.compile(r"-?[0-9]{1,9}")
_WORDS = re.compile(r"\s*(?:interval\s+)?((?:[+-]?[0-9.]+\s+[a-z]+\s*)+)", re.IGNORECASE)
_WORD = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]{0,9})(\.[0-9]{0,9})? ([a-z]+)", re.IGNORECASE)
_SIGNED = r"\s*(?P<sign>[+-]?)"
_YEARS = re.compile(rf"{_SIGNED}(?P<YEAR>[0-9]{{1,6}})-(?P<MONTH>[0-9]{{1,2}})\s*")
_DIGITS = {"DAY": "{1,8}", "HOUR": "{1,9}", "MINUTE": "{1,9}", "SECOND": "{1,9}"}
_MOST = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}
_META = "tablestore_interval"


@dataclass(frozen=True, slots=True)
class WrittenInterval:
    """An interval that stands in a query. ``has_months``: it is one of years and months, and ``length`` counts months; else
    microseconds. ``units``: the places of its first and last units among all."""

    has_months: bool
    length: int
    units: tuple[int, int]

    def has_part(self, unit: str) -> bool:
        """True if a unit is one of its own."""
        return unit in INTERVAL_UNITS and self.units[0] <= INTERVAL_UNITS.index(unit) <= self.units[1]


def _place(unit: str) -> int:
    """The place of a unit among those that types of intervals have."""
    return INTERVAL_UNITS.index({"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}.get(unit, unit))


def plain_interval(node: exp.Interval) -> exp.Expr:
    """An interval as DuckDB reads it: of a number and one unit. Raises UnsupportedError for a text in another form."""
    unit, amount = node.args.get("unit"), node.this
    if not isinstance(amount.this if isinstance(amount, exp.Neg) else amount, exp.Literal):
        return node
    interval = written_interval(node)
    if isinstance(unit, exp.Var) and isinstance(amount, exp.Literal) and _PLAIN.fullmatch(amount.name):
        return node
    if interval is None:
        raise refusal("an interval in this form, or of months and days at once")
    day = _MICROS_OF["DAY"]
    name, number = "MONTH" if interval.has_months else "MICROSECOND", interval.length
    if name == "MICROSECOND" and number % day == 0:
        name, number = "DAY", number // day
    plain = exp.Interval(this=exp.Literal.string(str(number)), unit=exp.var(name))
    plain.meta[_META] = interval
    return plain


def written_interval(value: exp.Expr) -> WrittenInterval | None:
    """The interval that an expression is: one that is written, or a sum of such; None for another one."""
    value = value.unnest()
    if isinstance(known := value.meta.get(_META), WrittenInterval):
        return known
    if isinstance(value, exp.Neg):
        negative = written_interval(value.this)
        return None if negative is None else replace(negative, length=-negative.length)
    if isinstance(value, exp.Add):
        left, right = written_interval(value.this), written_interval(value.expression)
        return None if left is None or right is None else _sum_of(left, right)
    if not isinstance(value, exp.Interval) or value.this is None:
        return None
    amount, sign = value.this, 1
    if isinstance(amount, exp.Neg):
        amount, sign = amount.this, -1
    unit = value.args.get("unit")
    if not isinstance(amount, exp.Literal):
        return None
    if isinstance(unit, exp.IntervalSpan):
        interval = interval_of_span(amount.name, unit.this.name.upper(), unit.expression.name.upper())
    else:
        interval = interval_of_words(amount.name if unit is None else f"{amount.name.strip()} {unit.name}")
    return None if interval is None else replace(interval, length=sign * interval.length)


def _sum_of(left: WrittenInterval, right: WrittenInterval) -> WrittenInterval | None:
    if left.has_months != right.has_months:
        return None
    units = min(left.units[0], right.units[0]), max(left.units[1], right.units[1])
    return WrittenInterval(left.has_months, left.length + right.length, units)


def interval_of_words(text: str) -> WrittenInterval | None:
    """The interval of numbers and their units."""
    if (words := _WORDS.fullmatch(text)) is None:
        return None
    total: WrittenInterval | None = None
    parts = words[1].split()
    for pair in zip(parts[::2], parts[1::2], strict=True):
        if (word := _WORD.fullmatch(" ".join(pair))) is None:
            return None
        sign, whole, rest, unit = word.groups()
        name = unit.upper().removesuffix("S")
        size = _MONTHS_OF.get(name) or _MICROS_OF.get(name)
        if size is None or (rest and name != "SECOND"):
            return None
        length = int(whole or 0) * size + (int(rest[1:7].ljust(6, "0")) if rest else 0)
        one = WrittenInterval(name in _MONTHS_OF, -length if sign == "-" else length, (_place(name), _place(name)))
        total = one if total is None else _sum_of(total, one)
        if total is None:
            return None
    return total


def interval_of_span(amount: str, first: str, last: str) -> WrittenInterval | None:
    """An interval from one unit to another: of years to months, or of days to seconds."""
    if (first, last) == ("YEAR", "MONTH"):
        form, sizes = _YEARS, _MONTHS_OF
    elif first in _DIGITS and last in _DIGITS and INTERVAL_UNITS.index(first) < INTERVAL_UNITS.index(last):
        form, sizes = _clock_form(first, last), _MICROS_OF
    else:
        return None
    if (parts := form.fullmatch(amount)) is None:
        return None
    values = {unit: int(parts[unit]) for unit in INTERVAL_UNITS[INTERVAL_UNITS.index(first) : INTERVAL_UNITS.index(last) + 1]}
    if any(value > _MOST.get(unit, value) for unit, value in values.items() if unit != first):
        return None
    length = sum(value * sizes[unit] for unit, value in values.items())
    if last == "SECOND":
        # Of nine digits Spark takes six, and rounds nothing.
        length += int((parts["rest"] or "")[:6].ljust(6, "0"))
    sign = -1 if parts["sign"] == "-" else 1
    return WrittenInterval(first == "YEAR", sign * length, (_place(first), _place(last)))


def _clock_form(first: str, last: str) -> re.Pattern[str]:
    """The form of a text with the units from one of days to seconds to another."""
    text = ""
    for unit in INTERVAL_UNITS[INTERVAL_UNITS.index(first) : INTERVAL_UNITS.index(last) + 1]:
        text += (
            "" if not text else " " if unit == "HOUR" else ":"
        ) + f"(?P<{unit}>[0-9]{_DIGITS[unit] if unit == first else '{1,2}'})"
    rest = r"(?:\.(?P<rest>[0-9]{1,9}))?" if last == "SECOND" else ""
    return re.compile(rf"{_SIGNED}{text}{rest}\s*")


def quotient_of_intervals(node: exp.IntDiv) -> exp.Expr:
    """The whole number of times that a written interval has another one."""
    left, right = written_interval(node.this), written_interval(node.expression)
    if left is None or right is None or left.has_months != right.has_months or right.length == 0:
        raise refusal("DIV of intervals that are computed, of two kinds, or by none")
    count = abs(left.length) // abs(right.length)
    return exp.cast(exp.Literal.string(str(count if (left.length < 0) == (right.length < 0) else -count)), "BIGINT")


def size_of_interval(node: exp.Expr) -> exp.Expr:
    """The sign of a written interval, or that one without its sign."""
    interval = written_interval(node.this)
    if interval is None:
        raise refusal(f"{node.key} of intervals that are computed")
    if isinstance(node, exp.Abs):
        return exp.Neg(this=exp.paren(node.this)) if interval.length < 0 else node.this
    return exp.cast(exp.Literal.string(str((interval.length > 0) - (interval.length < 0))), "DOUBLE")


def months_at_result(columns: Columns | None) -> None:
    """Raises InvalidInputError for an interval of years and months in a column of a result."""
    for name, kind in columns or ():
        if kind is not None and kind.has_months:
            raise InvalidInputError(
                f"column {name!r} of the query has an interval of years and months, and no column of a result has such values; add "
                "it to a date, or give its parts (extract(YEAR FROM i))",
                kind="query",
            )


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
