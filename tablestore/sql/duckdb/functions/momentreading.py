"""Reads texts by patterns of dates as java.time does in its strict style, and makes Arrow functions of that.

The parts of a pattern are read from the left, without going back: what was read is checked for contradictions and put together to a
day and a time, of which Spark takes 1970-01-01 00:00:00 where they are left out.
"""

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import BIGINT, STRING
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.momentpatterns import PatternPart, offset_form, parts_of
from tablestore.sql.duckdb.functions.valuefunctions import by_value

_YEAR, _YEAR_OF_ERA, _ERA, _MONTH, _DAY, _DAY_OF_YEAR = "year", "year of era", "era", "month", "day", "day of the year"
_HOUR, _CLOCK_HOUR, _HALF_HOUR, _CLOCK_HALF_HOUR, _HALF = "hour", "hour 1-24", "hour 0-11", "hour 1-12", "half of the day"
_MINUTE, _SECOND, _NANOS, _OFFSET = "minute", "second", "fraction", "offset"
_FIELDS = {
    "y": _YEAR, "G": _ERA, "M": _MONTH, "L": _MONTH, "d": _DAY, "D": _DAY_OF_YEAR, "H": _HOUR, "k": _CLOCK_HOUR, "K": _HALF_HOUR,
    "h": _CLOCK_HALF_HOUR, "a": _HALF, "m": _MINUTE, "s": _SECOND, "S": _NANOS,
}  # fmt: skip
_BOUNDS = {
    _YEAR: (-999_999_999, 999_999_999), _YEAR_OF_ERA: (1, 999_999_999), _MONTH: (1, 12), _DAY: (1, 31), _DAY_OF_YEAR: (1, 366),
    _HOUR: (0, 23), _CLOCK_HOUR: (1, 24), _HALF_HOUR: (0, 11), _CLOCK_HALF_HOUR: (1, 12), _HALF: (0, 1), _MINUTE: (0, 59),
    _SECOND: (0, 59), _NANOS: (0, 999_999_999),
}  # fmt: skip
_TIME_FIELDS = frozenset({_HOUR, _CLOCK_HOUR, _HALF_HOUR, _CLOCK_HALF_HOUR, _HALF, _MINUTE, _SECOND, _NANOS})
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_NAMES: Mapping[tuple[str, bool], tuple[tuple[str, int], ...]] = MappingProxyType({
    (_MONTH, False): tuple((name[:3], place) for place, name in enumerate(_MONTHS, 1)),
    (_MONTH, True): tuple((name, place) for place, name in enumerate(_MONTHS, 1)),
    (_HALF, False): (("AM", 0), ("PM", 1)),
    (_ERA, False): (("BC", 0), ("AD", 1)),
    (_ERA, True): (("Before Christ", 0), ("Anno Domini", 1)),
})  # fmt: skip
_LARGEST_YEAR = 290_000
_MICROS, _DAY_MICROS = 1_000_000, 86_400_000_000
# The zones of names that java.time reads for them; the others it knows are refused.
_NAMED_ZONES = {
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "EST": "America/New_York", "EDT": "America/New_York",
    "CST": "America/Chicago", "CDT": "America/Chicago", "MST": "America/Denver", "MDT": "America/Denver",
}  # fmt: skip


_ZONE_NAME = re.compile("[A-Za-z0-9/_+-]+")


class _UnreadError(Exception):
    """A text that has not the form of its pattern, or no moment."""


@dataclass(slots=True)
class _Number:
    """A part of digits. ``is_signed``: a sign may stand before it; ``is_year``: one of four or more digits, with a + before more;
    ``following``: the digits of the parts of a fixed number of digits right behind it."""

    field: str
    least: int
    most: int
    is_signed: bool = False
    is_year: bool = False
    is_reduced: bool = False
    following: int = 0

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most and not self.is_signed


@dataclass(slots=True)
class _Optional:
    parts: list["_Step"] = field(default_factory=list)


_Step = _Number | _Optional | PatternPart


@cache
def _steps_of(pattern: str) -> tuple[_Step, ...]:
    """The parts of a pattern as they are read."""
    parts = parts_of(pattern, is_read=True)
    of_era = any(part.letter == "G" for part in parts)
    stack: list[list[_Step]] = [[]]
    open_numbers: list[_Number | None] = [None]
    for part in parts:
        if part.letter == "[":
            optional = _Optional()
            open_numbers[-1] = None
            stack[-1].append(optional)
            stack.append(optional.parts)
            open_numbers.append(None)
        elif part.letter == "]":
            stack.pop()
            open_numbers.pop()
            open_numbers[-1] = None
        elif (number := _number(part, of_era=of_era)) is not None:
            first = open_numbers[-1]
            if first is not None and number.is_fixed:
                first.following += number.most
            else:
                if first is not None:
                    first.following = 0
                open_numbers[-1] = number
            stack[-1].append(part if part.letter == "S" else number)
        else:
            open_numbers[-1] = None
            stack[-1].append(part)
    return tuple(stack[0])


def _number(part: PatternPart, *, of_era: bool) -> _Number | None:
    """A part of digits; None for another part."""
    if part.letter not in _FIELDS or part.letter in "aG" or (part.letter in "ML" and part.count > 2):
        return None
    if part.letter == "S" and part.count > 1:
        return None
    name = _FIELDS[part.letter]
    if part.letter == "S":
        return _Number(name, 1, 1)
    if part.letter == "y":
        name = _YEAR_OF_ERA if of_era else _YEAR
        if part.count == 2:
            return _Number(name, 2, 2, is_reduced=True)
        return _Number(name, part.count, 19, is_signed=True, is_year=part.count >= 4)
    if part.letter == "D" and part.count == 2:
        return _Number(name, 2, 3)
    return _Number(name, 1, 19, is_signed=True) if part.count == 1 else _Number(name, part.count, part.count)


class _Reader:
    """Reads one text: its fields so far, and its time zone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: dict[str, int] = {}
        self.zone: str | None = None

    def steps(self, steps: tuple[_Step, ...] | list[_Step], at: int) -> int:
        """Reads some parts, and gives the place behind them."""
        for step in steps:
            at = self._step(step, at)
        return at

    def _step(self, step: _Step, at: int) -> int:
        match step:
            case _Optional():
                fields, zone = dict(self.fields), self.zone
                try:
                    return self.steps(step.parts, at)
                except _UnreadError:
                    self.fields, self.zone = fields, zone
                    return at
            case _Number():
                return self._digits(step, at)
            case _ if not step.letter:
                return self._words(step.text, at)
            case _ if step.letter == "S":
                return self._fraction(step.count, at)
            case _ if step.letter in _FIELDS:
                return self._name(step, at)
            case _ if step.letter in "Vz":
                return self._zone(at, is_id=step.letter == "V")
            case _ if step.letter == "O" or step.letters == "ZZZZ":
                return self._named_offset(at, is_long=step.count == 4)
            case _ if step.letter == "v":
                raise refusal("a text with a pattern of dates with the letter v")
            case _:
                count, zero = offset_form(step)
                return self._offset(count, zero, at)

    def _put(self, name: str, value: int, end: int) -> int:
        if self.fields.setdefault(name, value) != value:
            raise _UnreadError
        return end

    def _words(self, words: str, at: int) -> int:
        end = at + len(words)
        here = self.text[at:end]
        if here != words and (len(here) != len(words) or not all(map(_is_same, here, words))):
            raise _UnreadError
        return end

    def _digits(self, step: _Number, at: int) -> int:
        text = self.text
        sign = text[at : at + 1]
        if not sign or (sign == "+" and not step.is_year) or (sign == "-" and not step.is_signed):
            raise _UnreadError
        first = at + (sign in "+-")
        most = step.most + step.following
        end = _end_of_digits(text, first, most)
        if end - first < step.least:
            raise _UnreadError
        if step.following:
            end = first + max(step.least, end - first - step.following)
        value, count = int(text[first:end]), end - first
        if sign == "-":
            if value == 0:
                raise _UnreadError
            value = -value
        elif step.is_year and (count <= step.least if sign == "+" else count > step.least):
            raise _UnreadError
        return self._put(step.field, value + 2000 if step.is_reduced else value, end)

    def _fraction(self, most: int, at: int) -> int:
        end = _end_of_digits(self.text, at, most)
        if end == at:
            raise _UnreadError
        return self._put(_NANOS, int(self.text[at:end].ljust(9, "0")), end)

    def _name(self, step: PatternPart, at: int) -> int:
        name = _FIELDS[step.letter]
        for word, value in _NAMES[name, step.count > 3]:
            here = self.text[at : at + len(word)]
            if len(here) == len(word) and all(map(_is_same, here, word)):
                return self._put(name, value, at + len(word))
        raise _UnreadError

    def _offset(self, count: int, zero: str, at: int) -> int:
        text = self.text
        if at == len(text):
            raise _UnreadError
        try:
            return self._put(_OFFSET, 0, self._words(zero, at))
        except _UnreadError:
            if text[at] not in "+-":
                raise
        colon = count in (3, 5)
        hours, end = self._two(at + 1, colon=False)
        minutes = seconds = None
        if hours is not None:
            minutes, end = self._two(end, colon=colon)
            if minutes is not None and count > 3:
                seconds, end = self._two(end, colon=colon)
        if hours is None or (minutes is None and count > 1) or hours > 23:
            raise _UnreadError
        total = hours * 3600 + (minutes or 0) * 60 + (seconds or 0)
        return self._put(_OFFSET, -total if text[at] == "-" else total, end)

    def _two(self, at: int, *, colon: bool) -> tuple[int | None, int]:
        """Two digits up to 59, and where they end."""
        first = at + colon
        if (colon and self.text[at:first] != ":") or _end_of_digits(self.text, first, 2) != first + 2:
            return None, at
        value = int(self.text[first : first + 2])
        return (None, at) if value > 59 else (value, first + 2)

    def _named_offset(self, at: int, *, is_long: bool) -> int:
        end = self._words("GMT", at)
        sign = self.text[end : end + 1]
        if sign not in ("+", "-"):
            return self._put(_OFFSET, 0, end)
        end += 1
        most = _end_of_digits(self.text, end, 2)
        if most == end or (is_long and (most != end + 2 or self.text[most : most + 1] != ":")):
            raise _UnreadError
        total, end = int(self.text[end:most]) * 3600, most
        for size in (60, 1):
            first = end + 1
            if self.text[end:first] != ":" or _end_of_digits(self.text, first, 2) != first + 2:
                if is_long and size == 60:
                    raise _UnreadError
                break
            total, end = total + int(self.text[first : first + 2]) * size, first + 2
        return self._put(_OFFSET, -total if sign == "-" else total, end)

    def _zone(self, at: int, *, is_id: bool) -> int:
        here = self.text[at:]
        if _OFFSET in self.fields or self.zone is not None:
            raise refusal("a pattern of dates with two time zones")
        if here[:1] in ("+", "-"):
            if self.text[at + 3 : at + 4] != ":":
                raise refusal("a text with such a time zone and a pattern of dates with the letters V or z")
            end = self._offset(5, "Z", at)
            self.zone = str(self.fields.pop(_OFFSET))
            return end
        match = _ZONE_NAME.match(self.text, at)
        name, end = ("", at) if match is None else (match[0], match.end())
        if not name:
            raise _UnreadError
        if name.upper() in ("Z", "UTC", "GMT", "UT"):
            self.zone = "0"
        elif not is_id and name in _NAMED_ZONES:
            self.zone = _NAMED_ZONES[name]
        elif "/" in name and name in _regions():
            self.zone = name
        else:
            raise refusal("a text with such a time zone and a pattern of dates with the letters V or z")
        return end


def _is_same(one: str, other: str) -> bool:
    return one == other or one.upper() == other.upper() or one.lower() == other.lower()


def _end_of_digits(text: str, at: int, most: int) -> int:
    end = at
    while end < at + most and "0" <= text[end : end + 1] <= "9":
        end += 1
    return end


@cache
def _regions() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _checked(fields: dict[str, int], name: str) -> int:
    value = fields[name]
    least, most = _BOUNDS[name]
    if not least <= value <= most:
        raise _UnreadError
    return value


def _set(fields: dict[str, int], name: str, value: int) -> None:
    if fields.setdefault(name, value) != value:
        raise _UnreadError


def _day_of(fields: dict[str, int]) -> tuple[int, int, int]:
    """The year, the month and the day of what was read; takes them out."""
    era = fields.pop(_ERA, 1)
    if _YEAR_OF_ERA in fields:
        year_of_era = _checked(fields, _YEAR_OF_ERA)
        del fields[_YEAR_OF_ERA]
        _set(fields, _YEAR, year_of_era if era else 1 - year_of_era)
    year = _checked(fields, _YEAR) if _YEAR in fields else 1970
    month = _checked(fields, _MONTH) if _MONTH in fields else None
    day = _checked(fields, _DAY) if _DAY in fields else None
    lengths = _lengths(year)
    if _DAY_OF_YEAR in fields:
        rest, at = _checked(fields, _DAY_OF_YEAR), 0
        while at < 12 and rest > lengths[at]:
            rest, at = rest - lengths[at], at + 1
        if at == 12 or month not in (None, at + 1) or day not in (None, rest):
            raise _UnreadError
        month, day = at + 1, rest
    month, day = month or 1, day or 1
    if day > lengths[month - 1]:
        raise _UnreadError
    return year, month, day


def _lengths(year: int) -> tuple[int, ...]:
    """The days of each month of a year."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _micros_of_day(fields: dict[str, int]) -> int:
    """The microseconds of the day of what was read."""
    if _CLOCK_HOUR in fields:
        hour = _checked(fields, _CLOCK_HOUR)
        _set(fields, _HOUR, hour % 24)
    if _CLOCK_HALF_HOUR in fields:
        hour = _checked(fields, _CLOCK_HALF_HOUR)
        _set(fields, _HALF_HOUR, hour % 12)
    if _HALF in fields and _HALF_HOUR in fields:
        _set(fields, _HOUR, fields[_HALF] * 12 + _checked(fields, _HALF_HOUR))
    for name in _TIME_FIELDS.intersection(fields):
        _checked(fields, name)
    if _HOUR in fields:
        hour = fields[_HOUR]
        # What else says the hour has to say the same, unless a part between others is left out: then there is no time as a whole.
        has_gap = (_SECOND in fields or _NANOS in fields) if _MINUTE not in fields else _SECOND not in fields and _NANOS in fields
        if has_gap:
            pass
        elif fields.get(_HALF, hour // 12) != hour // 12 or fields.get(_HALF_HOUR, hour % 12) != hour % 12:
            raise _UnreadError
    else:
        hour = fields.get(_HALF_HOUR, 12 * fields.get(_HALF, 0))
    seconds = hour * 3600 + fields.get(_MINUTE, 0) * 60 + fields.get(_SECOND, 0)
    return seconds * _MICROS + fields.get(_NANOS, 0) // 1000


@dataclass(frozen=True, slots=True)
class ReadMoment:
    """A moment: the microseconds that clocks show since 1970, and how many of them they are before UTC where the text says so."""

    micros: int
    before_utc: int | None


def read_moment(text: str, pattern: str) -> ReadMoment | None:
    """The moment of a text by a pattern; None for a text that has none.

    Raises InvalidInputError for what is no pattern, and UnsupportedError for what is not read here as in Spark.
    """
    reader = _Reader(text)
    try:
        if reader.steps(_steps_of(pattern), 0) != len(text):
            return None
        fields = reader.fields
        year, month, day = _day_of(fields)
        micros = _days_of(year, month, day) * _DAY_MICROS + _micros_of_day(fields)
    except _UnreadError:
        return None
    offset = fields.get(_OFFSET)
    if offset is not None and abs(offset) > 18 * 3600:
        raise refusal("a text with a time zone of more than 18 hours")
    if reader.zone is not None:
        is_offset = reader.zone.lstrip("-").isdigit()
        offset = int(reader.zone) if is_offset else _offset_in(reader.zone, micros)
    return ReadMoment(micros, None if offset is None else offset * _MICROS)


def _days_of(year: int, month: int, day: int) -> int:
    """Days since 1970."""
    if abs(year) > _LARGEST_YEAR:
        raise refusal(f"a text with a pattern of dates and a year beyond {_LARGEST_YEAR}")
    cycles = (year - 2000) // 400
    return dt.date(year - 400 * cycles, month, day).toordinal() + 146_097 * cycles - dt.date(1970, 1, 1).toordinal()


def _offset_in(region: str, micros: int) -> int:
    """The seconds that clocks of a region that show this are before UTC: at the first of two such moments."""
    if not -62_135_596_800 * _MICROS <= micros < 253_402_300_800 * _MICROS:
        raise refusal("a text with a region and a year beyond 9999")
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    offset = shown.replace(tzinfo=zoneinfo.ZoneInfo(region)).utcoffset()
    assert offset is not None, "each moment of a region has one"
    return round(offset.total_seconds())


def _try_micros(text: str, pattern: str) -> int | None:
    moment = read_moment(text, pattern)
    return None if moment is None else moment.micros


def _micros(text: str, pattern: str) -> int:
    moment = read_moment(text, pattern)
    if moment is None:
        raise InvalidInputError(
            f"expected a text by the pattern {pattern!r:.80}, found {text!r:.80}; with try_ a function gives NULL for it",
            kind="query",
        )
    return moment.micros


def _before_utc(text: str, pattern: str) -> int | None:
    moment = read_moment(text, pattern)
    return None if moment is None else moment.before_utc


def _by_pattern(name: str, read: Callable[[str, str], int | None]) -> ArrowFunction:
    """An Arrow function of texts and their patterns: of those with one pattern each text is read once."""
    general = by_value(name, (STRING, STRING), BIGINT, read)

    def over(texts: pa.Array, patterns: pa.Array) -> pa.Array:
        if len(patterns) == 0 or patterns.null_count or pc.count_distinct(patterns).as_py() != 1:
            return general.call(texts, patterns)
        pattern = patterns[0].as_py()
        encoded = texts.dictionary_encode(null_encoding="encode")
        values = [None if text is None else read(text, pattern) for text in encoded.dictionary.to_pylist()]
        return pc.take(pa.array(values, pa.int64()), encoded.indices)

    return replace(general, call=over)


MICROS = _by_pattern("moment_by_pattern", _micros)
"""The microseconds since 1970 that clocks show, of a text and its pattern; another text is an error."""
TRY_MICROS = _by_pattern("try_moment_by_pattern", _try_micros)
"""The same, NULL for another text."""
BEFORE_UTC = _by_pattern("offset_by_pattern", _before_utc)
"""The microseconds that these clocks are before UTC; NULL where the text does not say."""
