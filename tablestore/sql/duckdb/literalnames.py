"""Names literals of moments, intervals and bytes as Spark writes their values: ``INTERVAL 2 HOURS`` is ``INTERVAL '02' HOUR``."""

import datetime as dt
import re
from collections.abc import Sequence

from tablestore.sql.duckdb.functions.intervalvalues import INTERVAL_UNITS, WrittenInterval, interval_of_span, interval_of_words

UNITS = frozenset(
    f"{unit}{plural}" for unit in (*INTERVAL_UNITS, "WEEK", "MILLISECOND", "MICROSECOND", "NANOSECOND") for plural in ("", "S")
)
"""Words for the units of an interval, one and several."""
_MOMENTS = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ"}
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})0*)?)?")
_MICROS = (86_400_000_000, 3_600_000_000, 60_000_000, 1)
_DAY_PLACE, _SECOND_PLACE = INTERVAL_UNITS.index("DAY"), INTERVAL_UNITS.index("SECOND")


def bytes_name(digits: str) -> str:
    """The name of bytes that are written in hexadecimal digits."""
    return f"X'{'0' * (len(digits) % 2)}{digits.upper()}'"


def moment_name(word: str, text: str) -> str | None:
    """The name of a date, a timestamp or a time, whose word stands before a text; None where there is no such literal."""
    if word == "TIME":
        clock = _CLOCK.fullmatch(text)
        return f"TIME '{_clock(clock)}'" if clock is not None else None
    if word not in _MOMENTS:
        return None
    day_text, _, clock_text = text.strip().replace("T", " ").partition(" ")
    day, clock = _DAY.fullmatch(day_text), _CLOCK.fullmatch(clock_text)
    if day is not None and (not clock_text or clock is not None):
        year, month, date = map(int, day.groups())
        text = f"{year:04}-{month:02}-{date:02}"
        if word != "DATE":
            text += f" {_clock(clock) if clock is not None else '00:00:00'}"
    elif word == "TIMESTAMP" and (moment := _with_zone(text)) is not None:
        text = moment
    return f"{_MOMENTS[word]} '{text}'"


def _with_zone(text: str) -> str | None:
    try:
        moment = dt.datetime.fromisoformat(re.sub(r" (?=[+-])", "", text.strip()))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    day, _, clock = str(moment.astimezone(dt.UTC).replace(tzinfo=None)).partition(" ")
    return f"{day} {clock.rstrip('0') if '.' in clock else clock}"


def _clock(clock: re.Match[str]) -> str:
    hour, minute, second, rest = clock.groups()
    rest = (rest or "").rstrip("0")
    return f"{int(hour):02}:{int(minute):02}:{int(second or 0):02}" + f".{rest}" * bool(rest)


def interval_name(amounts: Sequence[str], units: Sequence[str], *, is_span: bool) -> str | None:
    """The name of an interval that is written: of amounts and their units, of an amount from one unit to another (``is_span``), or
    of a text with units inside."""
    if is_span:
        first, last = (unit.removesuffix("S") for unit in units)
        interval = interval_of_span(amounts[0], first, last)
    elif units:
        interval = interval_of_words(" ".join(f"{amount.strip()} {unit}" for amount, unit in zip(amounts, units, strict=True)))
    else:
        interval = interval_of_words(amounts[0])
    return _interval(interval) if interval is not None else None


def _interval(interval: WrittenInterval) -> str:
    first, last = interval.units
    sign, length = "-" * (interval.length < 0), abs(interval.length)
    words = " TO ".join(dict.fromkeys((INTERVAL_UNITS[first], INTERVAL_UNITS[last])))
    if interval.has_months:
        years, months = divmod(length, 12)
        text = f"{years}-{months}" if first != last else str(years if INTERVAL_UNITS[first] == "YEAR" else length)
        return f"INTERVAL '{sign}{text}' {words}"
    text = ""
    for place in range(first, last + 1):
        count, length = divmod(length, _MICROS[place - _DAY_PLACE])
        if place == _SECOND_PLACE:
            seconds, rest = divmod(count, 1_000_000)
            number = f"{seconds:02}" + (f".{rest:06}".rstrip("0") if rest else "")
        else:
            number = str(count) if place == _DAY_PLACE else f"{count:02}"
        text += ("" if place == first else " " if place == _DAY_PLACE + 1 else ":") + number
    return f"INTERVAL '{sign}{text}' {words}"
