"""Writes functions of dates, timestamps and times of the day with Spark's meaning."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    SqlType,
    Type,
    decimal,
    engine_words,
)
from tablestore.sql.duckdb.calls import failing, in_steady_zone, refusal, refused_where, written, zoned_of_local
from tablestore.sql.duckdb.datetimefunctions import shown_in, truncated_timestamp
from tablestore.sql.duckdb.functions.argumenttypes import integer, text, written_text
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.functions.intervalvalues import WrittenInterval, without_a_form, written_interval
from tablestore.sql.duckdb.functions.momentpatterns import check_of_time, has_zone, parts_of, strptime_form, text_of, usual_text_of
from tablestore.sql.duckdb.functions.momentreading import BEFORE_UTC, MICROS, TRY_MICROS
from tablestore.sql.duckdb.functions.valuefunctions import by_value
from tablestore.sql.duckdb.sqlcasts import cast
from tablestore.sql.duckdb.textforms import once

_SECONDS = decimal(16, 6)
_INTERVAL_SECONDS = decimal(18, 6)
_PART_SECONDS = decimal(8, 6)
_REGION = re.compile(r"[A-Z]\w+(?:/\w+)+|UTC|GMT|CET|EET|WET|MET")
_IS_DAY = """$1 BETWEEN 1 AND 12 AND $2 BETWEEN 1 AND CASE
    WHEN $1 = 2 THEN CASE WHEN $0 % 4 = 0 AND ($0 % 100 <> 0 OR $0 % 400 = 0) THEN 29 ELSE 28 END
    WHEN $1 IN (4, 6, 9, 11) THEN 30
    ELSE 31
END AND $0 BETWEEN -290000 AND 290000"""
_IS_CLOCK = "$3 BETWEEN 0 AND 23 AND $4 BETWEEN 0 AND 59 AND $5 BETWEEN 0 AND 60"
_AT_PARTS = f"""CASE WHEN {_IS_DAY} AND {_IS_CLOCK} THEN
    CAST(MAKE_DATE($0, $1, $2) AS TIMESTAMP)
    + TO_MICROSECONDS(CAST($3 * 3600 + $4 * 60 AS BIGINT) * 1000000 + CAST($5 * 1000000 AS BIGINT))
END"""
# What DuckDB makes of parts, it makes as Spark does; all else is found out by the parts.
_AT_PLAIN_PARTS = "CASE WHEN $3 < 24 AND $5 < 60 THEN TRY(MAKE_TIMESTAMP($0, $1, $2, $3, $4, CAST($5 AS DOUBLE))) END"
_AT_PLAIN_TIME = "CASE WHEN $0 < 24 AND $2 < 60 THEN TRY(MAKE_TIME($0, $1, CAST($2 AS DOUBLE))) END"
# Of so many days, hours and seconds no sum leaves 64 bits, and a double has the microseconds exactly.
_SHORT_INTERVAL = """CASE
    WHEN $0 BETWEEN -1000000 AND 1000000 AND $1 BETWEEN -1000000 AND 1000000 AND $3 BETWEEN -1000000000 AND 1000000000
    THEN TO_MICROSECONDS(CAST($0 AS BIGINT) * 86400000000 + CAST($1 AS BIGINT) * 3600000000 + CAST($2 AS BIGINT) * 60000000
        + CAST(CAST($3 AS DOUBLE) * 1000000 AS BIGINT))
    ELSE $4
END"""
_ARE_WRONG_PARTS = " AND ".join(f"${place} IS NOT NULL" for place in range(6)) + f" AND NOT ({_IS_DAY} AND {_IS_CLOCK})"
_TIME_OF_MICROS = "CAST(MAKE_TIMESTAMP(CASE WHEN $0 BETWEEN 0 AND 86399999999 THEN $0 END) AS TIME)"
_MICROS_OF = {
    "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
_UNIT_SIZE = "CASE UPPER($0) " + " ".join(f"WHEN '{unit}' THEN {size}" for unit, size in _MICROS_OF.items()) + " END"
_PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "YEAR"),
    "YEAROFWEEK": "ISOYEAR",
    **dict.fromkeys(("QUARTER", "QTR"), "QUARTER"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "MONTH"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "WEEK"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "DAY"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "DOW"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "ISODOW"),
    "DOY": "DOY",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "HOUR"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "MINUTE"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "SECOND"),
}
_OF_TIMES = ("HOUR", "MINUTE", "SECOND")
_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MM", "MON"), "MONTH"),
    "WEEK": "WEEK",
}
_TRUNCATED_MOMENTS = {
    **_TRUNCATED,
    **dict.fromkeys(("DAY", "DD"), "DAY"),
    **{unit: unit for unit in _MICROS_OF},
}
_DAYS = {
    name: place
    for place, names in enumerate(
        (
            "MO MON MONDAY",
            "TU TUE TUESDAY",
            "WE WED WEDNESDAY",
            "TH THU THURSDAY",
            "FR FRI FRIDAY",
            "SA SAT SATURDAY",
            "SU SUN SUNDAY",
        ),
        1,
    )
    for name in names.split()
}
_DAY_NUMBER = "CASE UPPER($1) " + " ".join(f"WHEN '{name}' THEN {place}" for name, place in _DAYS.items()) + " END"
_MONTHS_BETWEEN = """CASE
    WHEN DAY($0) = DAY($1)
        OR DAY($0) >= 28 AND DAY($1) >= 28 AND CAST($0 AS DATE) = LAST_DAY($0) AND CAST($1 AS DATE) = LAST_DAY($1)
    THEN CAST(DATE_DIFF('month', $1, $0) AS DOUBLE)
    ELSE CAST(DATE_DIFF('month', $1, $0) AS DOUBLE) + (
        (DAY($0) - DAY($1)) * 86400
        + EPOCH_US(CAST($0 AS TIME)) // 1000000 - EPOCH_US(CAST($1 AS TIME)) // 1000000
    ) / CAST(2678400 AS DOUBLE)
END"""
# A text as DuckDB itself writes that time, not finer than milliseconds.
_PLAIN_TIME = "CAST(TRY_CAST($0 AS TIME) AS TEXT) = $0 AND $0 < '24' AND LENGTH($0) <= 12"
_MOST_SECONDS = 9_000_000_000_000
# In each time zone they are in the years 1 to 9999.
_USUAL_SECONDS = (-62_135_510_400, 253_402_214_400)
_LEAST_ENDLESS = 2**63 - 1


def _local(value: exp.Expr, *, is_finite: bool = False) -> exp.Expr:
    """A TIMESTAMP of what clocks of the session's time zone show."""
    return zoned_of_local(value, is_finite=is_finite)


def _region(call: RuleCall, place: int) -> exp.Expr:
    name = written_text(call, place, "a time zone")
    if not _REGION.fullmatch(name):
        raise call.refusal("with a time zone that is not written as a region (Europe/Rome)")
    return exp.Literal.string(name)


def _seconds(call: RuleCall, place: int) -> exp.Expr:
    kind = call.type(place)
    if not kind.is_number and kind not in (STRING, VOID):
        raise call.mismatch(place, "a number")
    return call.value(place, _SECONDS)


def _made(call: RuleCall) -> exp.Expr:
    """Writes ``make_timestamp`` and its like: of six parts, or of a date and a time, and a time zone."""
    is_try, is_ntz, count = call.name.startswith("try_"), call.name.endswith("_ntz"), len(call.values)
    if count in (6, 7) and not (is_ntz and count == 7):
        parts = [*(integer(call, place) for place in range(5)), _seconds(call, 5)]
        shown = call.text(_AT_PARTS, *parts)
        if not is_try:
            are_wrong = call.text(_ARE_WRONG_PARTS, *parts)
            shown = failing(are_wrong, f"the function `{call.name}`: a part of the date or the time is out of range", shown)
        shown = from_text("COALESCE($0, $1)", call.text(_AT_PLAIN_PARTS, *parts), shown)
        zone = 6
    elif count <= 3:
        if is_ntz and count != 2:
            raise call.refusal(f"of {count} arguments")
        if call.type(0) not in (DATE, VOID) or (count > 1 and call.type(1) not in (TIME, VOID)):
            raise call.refusal("of what is not a date and a time")
        shown = call.text("CAST($0 AS TIMESTAMP)") if count == 1 else call.text("CAST($0 AS DATE) + CAST($1 AS TIME)")
        zone = 2
    else:
        raise call.refusal(f"of {count} arguments")
    if is_ntz:
        return exp.Cast(this=shown, to=engine_words(TIMESTAMP_NTZ))
    if count > zone:
        return shown_in(_region(call, zone), exp.paren(exp.Cast(this=shown, to=engine_words(TIMESTAMP_NTZ))))
    return _local(shown, is_finite=count > 3)


def _time_of(micros: exp.Expr, call: RuleCall) -> exp.Expr:
    is_outside = call.text("NOT $0 BETWEEN 0 AND 86399999999", micros)
    message = f"the function `{call.name}`: expected a time of the day, out of range"
    return failing(is_outside, message, _in_millis(micros, call))


def _in_millis(micros: exp.Expr, call: RuleCall) -> exp.Expr:
    """The TIME of microseconds of the day. A result counts milliseconds."""
    is_finer = call.text("$0 % 1000 <> 0", micros)
    return refused_where(is_finer, f"{call.name} with a result finer than milliseconds", call.text(_TIME_OF_MICROS, micros))


def _made_time(call: RuleCall) -> exp.Expr:
    parts = integer(call, 0), integer(call, 1), _seconds(call, 2)
    is_clock = "$0 BETWEEN 0 AND 23 AND $1 BETWEEN 0 AND 59 AND $2 >= 0 AND $2 < 60"
    are_wrong = call.text(f"$0 IS NOT NULL AND $1 IS NOT NULL AND $2 IS NOT NULL AND NOT ({is_clock})", *parts)
    micros = f"CASE WHEN {is_clock} THEN CAST($0 * 3600 + $1 * 60 AS BIGINT) * 1000000 + CAST($2 * 1000000 AS BIGINT) END"
    made_time = _in_millis(call.text(micros, *parts), call)
    made_time = failing(are_wrong, "the function `make_time`: a part of the time is out of range", made_time)
    second = call.types[2]
    if second is None or not second.is_integer:
        return made_time
    return from_text("COALESCE($0, $1)", call.text(_AT_PLAIN_TIME, *parts), made_time)


def _time_from(size: int) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        kind = call.type(0)
        if size == 1_000_000 and kind.is_float:
            micros = call.text("CAST(TRUNC(CAST($0 AS DOUBLE) * 1000000) AS BIGINT)")
        elif size == 1_000_000 and kind.is_decimal:
            if kind.scale > 6:
                raise call.refusal("of more than six digits of a second")
            micros = call.text("CAST(CAST($0 AS DECIMAL(38, 6)) * 1000000 AS BIGINT)")
        else:
            micros = call.text(f"CAST(CAST($0 AS HUGEINT) * {size} AS BIGINT)", integer(call, 0, BIGINT))
        return _time_of(micros, call)

    return write


def _is_time(call: RuleCall, place: int) -> None:
    if call.type(place) not in (TIME, VOID):
        raise call.mismatch(place, "a TIME")


def _time_to(template: str) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        _is_time(call, 0)
        return call.as_result(call.text(template, call.value(0, TIME)))

    return write


def _of_unit(call: RuleCall, value: exp.Expr, *places: int) -> exp.Expr:
    """A value, or an error where the unit, the first argument, is none."""
    rest = "".join(f" AND ${place} IS NOT NULL" for place in places)
    is_none = call.text(f"$0 IS NOT NULL AND {_UNIT_SIZE} IS NULL{rest}", text(call, 0), *(call.value(place) for place in places))
    units = ", ".join(_MICROS_OF)
    return failing(is_none, f"the function `{call.name}`: expected a unit out of {units}", value)


def _time_truncated(call: RuleCall) -> exp.Expr:
    _is_time(call, 1)
    size = call.text(_UNIT_SIZE, text(call, 0))
    micros = call.text("EPOCH_US($0) - EPOCH_US($0) % $1", call.value(1, TIME), size)
    return _of_unit(call, _in_millis(micros, call), 1)


def _time_difference(call: RuleCall) -> exp.Expr:
    _is_time(call, 1)
    _is_time(call, 2)
    size = call.text(_UNIT_SIZE, text(call, 0))
    difference = call.text("CAST((EPOCH_US($1) - EPOCH_US($0)) // $2 AS BIGINT)", call.value(1, TIME), call.value(2, TIME), size)
    return _of_unit(call, difference, 1, 2)


def _moment(micros: exp.Expr, call: RuleCall) -> exp.Expr:
    is_endless = call.text(f"ABS(CAST($0 AS HUGEINT)) >= {_LEAST_ENDLESS}", micros)
    return refused_where(is_endless, f"{call.name} of the last moment of all", call.text("MAKE_TIMESTAMPTZ($0)", micros))


def _timestamp_from(size: int) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        kind = call.type(0)
        if kind.is_integer or kind == VOID or size < 1_000_000:
            if not (kind.is_integer or kind == VOID):
                raise call.mismatch(0, "a whole number")
            return _moment(call.text(f"CAST(CAST($0 AS HUGEINT) * {size} AS BIGINT)", call.value(0)), call)
        if kind.is_decimal:
            if kind.precision - kind.scale > 20:
                raise call.refusal("of a decimal of more than 20 digits before the point")
            if kind.scale <= 6:
                return _moment(call.text("CAST(CAST($0 AS DECIMAL(38, 6)) * 1000000 AS BIGINT)"), call)
            micros = call.text("CAST(CAST(CAST($0 AS DECIMAL(38, 9)) AS DECIMAL(38, 6)) * 1000000 AS BIGINT)")
            differs = call.text("CAST(CAST(CAST($0 AS DECIMAL(38, 18)) AS DECIMAL(38, 6)) AS DECIMAL(38, 18)) <> $0")
            return failing(
                differs, "the function `timestamp_seconds`: expected no more than six digits of a second", _moment(micros, call)
            )
        if kind.is_float:
            finite_micros = "CAST(CASE WHEN ISFINITE($0) THEN TRUNC(CAST($0 AS DOUBLE) * 1000000) END AS BIGINT)"
            is_outside = call.text("ISFINITE($0) AND ABS(CAST($0 AS DOUBLE)) > 9e12")
            moment = _moment(call.text(finite_micros), call)
            return refused_where(is_outside, "timestamp_seconds of more seconds than there are", moment)
        raise call.mismatch(0, "a number")

    return write


def _zoned_argument(call: RuleCall, place: int) -> exp.Expr:
    if call.type(place) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID):
        raise call.mismatch(place, "a TIMESTAMP")
    return call.value(place, TIMESTAMP)


def _unix(size: int) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        value = _zoned_argument(call, 0)
        if size == 1:
            return call.text("EPOCH_US($0)", value)
        return call.text(f"(EPOCH_US($0) - (EPOCH_US($0) % {size} + {size}) % {size}) // {size}", value)

    return write


def _no_nanoseconds(call: RuleCall) -> exp.Expr:
    raise InvalidInputError(
        f"the function `{call.name}`: expected timestamps that count nanoseconds, which Spark has only with a setting of its own; "
        "take microseconds (timestamp_micros, unix_micros)",
        kind="query",
    )


def _unix_date(call: RuleCall) -> exp.Expr:
    if call.type(0) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID):
        raise call.mismatch(0, "a DATE")
    return call.text("CAST($0 - CAST('1970-01-01' AS DATE) AS INT)", call.value(0, DATE))


def _pattern(call: RuleCall, place: int) -> str | None:
    """The pattern of dates that an argument is in the query; None for NULL."""
    return None if isinstance(call.values[place].unnest(), exp.Null) else written_text(call, place, "a pattern")


def _shown(call: RuleCall, place: int) -> tuple[exp.Expr, exp.Expr]:
    """The time that clocks of the session's time zone show at an argument, and the TIMESTAMP that it is."""
    kind = call.type(place)
    zoned = call.value(place, TIMESTAMP)
    local: exp.Expr = exp.Cast(this=zoned, to=engine_words(TIMESTAMP_NTZ))
    if kind in (DATE, TIMESTAMP_NTZ):
        local = in_steady_zone(exp.Cast(this=call.value(place), to=engine_words(TIMESTAMP_NTZ)), local)
    return local, zoned


def written_by_pattern(call: RuleCall) -> exp.Expr:
    """Writes ``date_format``: a date, a timestamp or a time as a text."""
    kind = call.type(0)
    if kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, TIME, STRING, VOID):
        raise call.mismatch(0, "a date or a timestamp")
    pattern = _pattern(call, 1)
    if pattern is None:
        return exp.cast(exp.null(), "TEXT")
    if kind == TIME:
        check_of_time(pattern)
        return once(call.text("CAST('1970-01-01' AS DATE) + $0", call.value(0)), lambda at: text_of(at, pattern))
    local, zoned = _shown(call, 0)
    if has_zone(pattern):
        return once(zoned, lambda at: text_of(exp.Cast(this=at, to=engine_words(TIMESTAMP_NTZ)), pattern, at.copy()))
    return once(local, lambda at: text_of(at, pattern))


def _from_unixtime(call: RuleCall) -> exp.Expr:
    pattern = _pattern(call, 1) if len(call.values) > 1 else "yyyy-MM-dd HH:mm:ss"
    if pattern is None:
        return exp.cast(exp.null(), "TEXT")
    seconds = integer(call, 0, BIGINT)
    zoned = call.text(f"MAKE_TIMESTAMPTZ(CASE WHEN ABS($0) <= {_MOST_SECONDS} THEN $0 END * 1000000)", seconds)
    is_zoned = has_zone(pattern)
    moment = once(
        zoned,
        lambda at: text_of(exp.Cast(this=at, to=engine_words(TIMESTAMP_NTZ)), pattern, at.copy() if is_zoned else None),
    )
    is_outside = call.text(f"ABS($0) > {_MOST_SECONDS}", seconds)
    any_text = refused_where(is_outside, f"from_unixtime of more seconds than {_MOST_SECONDS}", moment)
    if is_zoned:
        return any_text
    at = call.text("MAKE_TIMESTAMPTZ($0 * 1000000)", seconds)
    usual = usual_text_of(exp.Cast(this=at, to=engine_words(TIMESTAMP_NTZ)), pattern)
    first, last = _USUAL_SECONDS
    form = f"CASE WHEN $0 BETWEEN {first} AND {last} THEN $1 WHEN $0 IS NOT NULL THEN $2 END"
    return call.text(form, seconds, usual, any_text)


def _read_by_pattern(call: RuleCall, *, is_try: bool, is_zoned: bool, is_time: bool = False) -> exp.Expr:
    """The TIMESTAMP_NTZ, or TIMESTAMP, of a text and its pattern. ``is_time``: its day does not matter."""
    read, value = TRY_MICROS if is_try else MICROS, text(call, 0)
    written_pattern = call.values[1].unnest()
    is_null = isinstance(written_pattern, exp.Null)
    is_written = isinstance(written_pattern, exp.Literal) and written_pattern.is_string
    if is_null:
        return exp.Cast(this=exp.null(), to=engine_words(TIMESTAMP if is_zoned else TIMESTAMP_NTZ))
    if is_written:
        parts_of(written_pattern.name, is_read=True)
    pattern = text(call, 1)
    form = strptime_form(written_pattern.name, is_time=is_time) if is_written else None
    if form is not None:
        # What STRFTIME writes as it is read has the form of the pattern to the letter.
        local = call.text(
            "CASE WHEN $0 IS NULL THEN NULL WHEN STRFTIME(TRY_STRPTIME($0, $1), $1) = $0 THEN TRY_STRPTIME($0, $1) "
            f"ELSE MAKE_TIMESTAMP({read.engine_name}($0, $2)) END",
            value, exp.Literal.string(form), pattern,
        )  # fmt: skip
    else:
        local = call.text("MAKE_TIMESTAMP($0)", read.of(value, pattern))
    if not is_zoned:
        return local
    if is_written and not has_zone(written_pattern.name):
        return _local(local, is_finite=True)
    before = BEFORE_UTC.of(value.copy(), pattern.copy())
    return written(
        "LIST_TRANSFORM([STRUCT_PACK(shown := :shown, before := :before)], LAMBDA _read: CASE WHEN _read.before IS NULL "
        "THEN :here ELSE MAKE_TIMESTAMPTZ(EPOCH_US(_read.shown) - _read.before) END)[1]",
        shown=local, before=before, here=_local(exp.column("shown", table="_read")),
    )  # fmt: skip


def _parsed(to: SqlType, *, is_try: bool = False) -> Callable[[RuleCall], exp.Expr]:
    """Writes ``to_timestamp`` and its like, of a text and its pattern, or of another value."""

    def write(call: RuleCall) -> exp.Expr:
        node = exp.TryCast if is_try else exp.Cast
        # Of one argument sqlglot makes a cast, with its type.
        has_pattern = len(call.values) > 1 and not isinstance(call.values[1], exp.DataType)
        if not has_pattern and to != TIMESTAMP_NTZ and isinstance(call.values[0], exp.Literal) and call.values[0].is_string:
            return cast(node(this=call.value(0), to=engine_words(to)), STRING)
        kind = call.type(0)
        if kind not in (STRING, VOID, DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise call.refusal(f"of {kind}")
        if kind != STRING or not has_pattern:
            if kind == STRING and to == TIMESTAMP_NTZ:
                raise call.refusal("of a text without a pattern")
            if to == TIMESTAMP_NTZ:
                return node(this=call.value(0), to=engine_words(to))
            return cast(node(this=call.value(0), to=engine_words(to)), kind)
        pattern = call.values[1].unnest()
        if to == DATE and isinstance(pattern, exp.Literal) and pattern.is_string and not has_zone(pattern.name):
            local = _read_by_pattern(call, is_try=is_try, is_zoned=False)
            days = (exp.Cast(this=one, to=engine_words(to)) for one in (local, _local(local.copy(), is_finite=True)))
            return in_steady_zone(*days)
        value = _read_by_pattern(call, is_try=is_try, is_zoned=to != TIMESTAMP_NTZ)
        # What clocks show is what they show of a moment, unless they are set forward.
        return exp.Cast(this=value, to=engine_words(to))

    return write


def _unix_of(call: RuleCall) -> exp.Expr:
    """Writes ``unix_timestamp``: whole seconds since 1970."""
    if not call.values:
        return call.text("CAST(FLOOR(EPOCH(NOW())) AS BIGINT)")
    kind = call.type(0)
    if len(call.values) > 1 and call.types[1] not in (None, STRING, VOID):
        raise call.mismatch(1, "a pattern")
    if kind == STRING:
        if len(call.values) == 1:
            values, types = (*call.values, exp.Literal.string("yyyy-MM-dd HH:mm:ss")), (*call.types, STRING)
            call = replace(call, values=values, types=types)
        moment = _read_by_pattern(call, is_try=False, is_zoned=True)
    else:
        moment = _zoned_argument(call, 0)
    return call.text("EPOCH_US($0) // 1000000", moment)


_PARTS_OF_INTERVALS = {"YEAR": 12, "MONTH": 1, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1}
_SMALLER_THAN = {"MONTH": 12, "HOUR": 24, "MINUTE": 60, "SECOND": 60_000_000}


def _part_of_interval(part: str, interval: WrittenInterval) -> exp.Expr | None:
    """A part of a written interval; None for one that it has not."""
    if not interval.has_part(part):
        return None
    size = _PARTS_OF_INTERVALS[part]
    rest = abs(interval.length) // size
    rest = rest % _SMALLER_THAN[part] if part in _SMALLER_THAN else rest
    number = rest if interval.length >= 0 else -rest
    literal = exp.Literal.number(abs(number)) if part != "SECOND" else exp.Literal.string(f"{Decimal(number) / 1_000_000:f}")
    return literal if number >= 0 or part == "SECOND" else exp.Neg(this=literal)


def _part_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    if len(types) > 1 and types[1] == INTERVAL:
        names = [_PARTS.get(value.name.upper()) for value in values if isinstance(value, (exp.Var, exp.Literal))]
        if names and names[0] in ("MONTH", "HOUR", "MINUTE"):
            return TINYINT
    for value in values:
        if isinstance(value, (exp.Var, exp.Literal)) and _PARTS.get(value.name.upper()) == "SECOND":
            return _PART_SECONDS
    return INT


def _extracted(call: RuleCall) -> exp.Expr:
    node = call.node
    name = call.values[0] if not isinstance(node, exp.Extract) else node.this
    if not isinstance(name, (exp.Var, exp.Literal)) or (part := _PARTS.get(name.name.upper())) is None:
        raise call.refusal("of a part that is computed, or that Spark does not know")
    kind = call.type(1)
    if kind == INTERVAL:
        interval = written_interval(call.values[1])
        value_of_part = None if interval is None else _part_of_interval(part, interval)
        if value_of_part is None:
            raise call.refusal("of an interval that is computed, or of a part that it has not")
        return call.as_result(value_of_part)
    if kind == TIME:
        if part not in _OF_TIMES:
            raise call.mismatch(1, "a date or a timestamp")
        value = call.value(1)
    elif kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        value = call.value(1) if kind != DATE or part not in _OF_TIMES else call.value(1, TIMESTAMP)
    elif kind in (STRING, VOID):
        value = call.value(1, TIMESTAMP)
    else:
        raise call.refusal(f"of {kind}")
    return call.as_result(_part(call, part, value))


def _part(call: RuleCall, part: str, value: exp.Expr) -> exp.Expr:
    if part == "SECOND":
        micros = exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string("microsecond"), value])
        return call.text("CAST($0 AS DECIMAL(18, 0)) * CAST('0.000001' AS DECIMAL(7, 6))", micros)
    number = exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string(part.lower()), value])
    return call.text("$0 + 1", number) if part == "DOW" else number


def _of_moment(template: str, to: SqlType) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function of one date or timestamp. ``to``: what a text is cast to."""

    def write(call: RuleCall) -> exp.Expr:
        kind = call.types[0]
        if kind is None:
            return call.as_result(call.text(template))
        if kind in (STRING, VOID) or (kind == DATE and to == TIMESTAMP):
            return call.as_result(call.text(template, call.value(0, to)))
        if kind == TIME and call.name in ("hour", "minute", "second"):
            return call.as_result(call.text(template))
        if kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise call.mismatch(0, "a date or a timestamp")
        return call.as_result(call.text(template))

    return write


def _date(call: RuleCall, place: int) -> exp.Expr:
    kind = call.types[place]
    if kind is None:
        return call.value(place)
    if kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, VOID):
        raise call.mismatch(place, "a date")
    return call.value(place, DATE)


def _next_day(call: RuleCall) -> exp.Expr:
    day, name = _date(call, 0), text(call, 1)
    is_none = call.text(f"$0 IS NOT NULL AND $1 IS NOT NULL AND {_DAY_NUMBER} IS NULL", day, name)
    later = call.text(f"CAST($0 + CAST(({_DAY_NUMBER} - ISODOW($0) + 6) % 7 + 1 AS INT) AS DATE)", day, name)
    return failing(is_none, "the function `next_day`: expected the name of a day of the week in English", later)


def _cut(call: RuleCall) -> tuple[int, exp.Expr]:
    """The place among the arguments of what is truncated, and the unit to which it is."""
    node = call.node
    if isinstance(node, exp.Anonymous):
        raise call.refusal("to a unit that is computed")
    assert isinstance(node.this, exp.Expr), "the node has what is truncated"
    return next(place for place, value in enumerate(call.values) if value is node.this), node.args["unit"]


def _truncated(call: RuleCall) -> exp.Expr:
    at, unit = _cut(call)
    value = _date(call, at)
    if isinstance(unit, (exp.Literal, exp.Var)):
        name = _TRUNCATED.get(unit.name.upper())
        return exp.cast(exp.null(), "DATE") if name is None else call.text(f"CAST(DATE_TRUNC('{name}', $0) AS DATE)", value)
    raise call.refusal("to a unit that is computed")


def _truncated_moment(call: RuleCall) -> exp.Expr:
    at, unit = _cut(call)
    kind = call.types[at]
    if not isinstance(unit, (exp.Literal, exp.Var)):
        raise call.refusal("to a unit that is computed")
    if kind not in (None, DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, VOID):
        raise call.mismatch(1, "a timestamp")
    name = _TRUNCATED_MOMENTS.get(unit.name.upper())
    if name is None:
        return exp.Cast(this=exp.null(), to=engine_words(TIMESTAMP))
    value = call.value(at) if kind in (None, TIMESTAMP) else call.value(at, TIMESTAMP)
    return truncated_timestamp(exp.TimestampTrunc(this=value, unit=exp.var(name)))


def _months_between(call: RuleCall) -> exp.Expr:
    is_rounded = call.values[2] if len(call.values) > 2 else exp.true()
    if not isinstance(is_rounded, exp.Boolean):
        raise call.refusal("with a computed third argument")
    values = []
    for place in range(2):
        kind = call.type(place)
        if kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, VOID):
            raise call.mismatch(place, "a timestamp")
        value = call.value(place) if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else call.value(place, TIMESTAMP)
        values.append(value if kind == TIMESTAMP_NTZ else exp.Cast(this=value, to=engine_words(TIMESTAMP_NTZ)))
    months = call.text(_MONTHS_BETWEEN, *values)
    return call.text("ROUND($0, 8)", months) if is_rounded.this else months


def _converted_zone(call: RuleCall) -> exp.Expr:
    if len(call.values) == 2:
        if call.type(1) not in (TIMESTAMP_NTZ, VOID):
            raise call.refusal("of what is no TIMESTAMP_NTZ")
        moment = _local(call.value(1, TIMESTAMP_NTZ))
        target = _region(call, 0)
    else:
        if call.type(2) not in (TIMESTAMP_NTZ, VOID):
            raise call.refusal("of what is no TIMESTAMP_NTZ")
        moment = shown_in(_region(call, 0), exp.paren(call.value(2, TIMESTAMP_NTZ)))
        target = _region(call, 1)
    return call.text("TIMEZONE($0, $1)", target, moment)


def _now_of_day(call: RuleCall) -> exp.Expr:
    digits = 6
    if call.values:
        try:
            digits = sum(int(one.name) for one in call.values[0].find_all(exp.Literal))
        except ValueError:
            digits = -1
        if not isinstance(call.values[0].unnest(), (exp.Literal, exp.Add, exp.Cast)) or not 0 <= digits <= 6:
            raise call.refusal("of other digits than 0 to 6")
    # A result counts milliseconds.
    size = 10 ** (6 - min(digits, 3))
    micros = f"EPOCH_US(CAST(CAST(NOW() AS TIMESTAMP) AS TIME)) // {size} * {size}"
    return call.text(f"CAST(MAKE_TIMESTAMP({micros}) AS TIME)")


def _micros_of(value: str) -> int | None:
    """The microseconds of the day of a text; None if it is no time."""
    match = _CLOCK_TEXT.fullmatch(value)
    if match is None:
        if _NO_CLOCK.fullmatch(value):
            return None
        raise refusal("to_time of such a text")
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match["rest"] or "").ljust(6, "0"))


def _required_micros(value: str) -> int:
    micros = _micros_of(value)
    if micros is None:
        raise InvalidInputError(f"the function `to_time`: expected a time as HH:mm:ss, found {value!r:.80}", kind="query")
    return micros


_CLOCK_TEXT = re.compile(r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<rest>[0-9]{1,6}))?)?")
# Words and nothing are no times, whatever else may be one.
_NO_CLOCK = re.compile("[A-Za-z]*")
_TIME = by_value("to_time", (STRING,), BIGINT, _required_micros)
_TRY_TIME = by_value("try_to_time", (STRING,), BIGINT, _micros_of)


def _read_time(call: RuleCall) -> exp.Expr:
    is_try = call.name == "try_to_time"
    if call.type(0) not in (STRING, VOID):
        raise call.refusal(f"of {call.type(0)}")
    if len(call.values) == 1:
        read, value = _TRY_TIME if is_try else _TIME, text(call, 0)
        other = _in_millis(read.of(value.copy()), call)
        return call.text(f"CASE WHEN $0 IS NULL THEN NULL WHEN {_PLAIN_TIME} THEN TRY_CAST($0 AS TIME) ELSE $1 END", value, other)
    value = _read_by_pattern(call, is_try=is_try, is_zoned=False, is_time=True)
    if isinstance(call.values[1], exp.Literal) and "S" not in call.values[1].name and "n" not in call.values[1].name.lower():
        return call.text("CAST($0 AS TIME)", value)
    return _in_millis(call.text("EPOCH_US(CAST($0 AS TIME))", value), call)


def _made_interval(call: RuleCall) -> exp.Expr:
    """An interval of days, hours, minutes and seconds, of which those that are not written are 0."""
    values = [integer(call, place) if place < 3 else call.value(place, _INTERVAL_SECONDS) for place in range(len(call.values))]
    values += [exp.Literal.number(0) for _ in range(4 - len(values))]
    micros = "CAST($0 AS HUGEINT) * 86400000000 + CAST($1 AS HUGEINT) * 3600000000 + CAST($2 AS HUGEINT) * 60000000"
    total = call.text(f"{micros} + CAST(CAST($3 AS DECIMAL(38, 6)) * 1000000 AS HUGEINT)", *values)
    is_outside = call.text(f"NOT $0 BETWEEN -{2**63 - 1} AND {2**63 - 1}", total)
    message = "the function `make_dt_interval`: expected an interval of 64 bits of microseconds"
    inside = call.text(f"TO_MICROSECONDS(CAST(CASE WHEN ABS($0) <= {2**63 - 1} THEN $0 END AS BIGINT))", total)
    return from_text(_SHORT_INTERVAL, *values, failing(is_outside, message, inside))


def _of_months(call: RuleCall) -> exp.Expr:
    raise without_a_form(call)


def _rule(name: str, bounds: tuple[int, int], result: Type, write: Callable[[RuleCall], exp.Expr], *aliases: str) -> FunctionRule:
    assert result is not None, "a function of one type has that"
    return FunctionRule(name=name, bounds=bounds, result=always(result), write=write, aliases=aliases)


RULES = (
    *(_rule(name, (1, 7), TIMESTAMP, _made) for name in ("make_timestamp", "try_make_timestamp")),
    *(_rule(name, (1, 7), TIMESTAMP, _made) for name in ("make_timestamp_ltz", "try_make_timestamp_ltz")),
    *(_rule(name, (2, 6), TIMESTAMP_NTZ, _made) for name in ("make_timestamp_ntz", "try_make_timestamp_ntz")),
    _rule("make_time", (3, 3), TIME, _made_time),
    _rule("time_from_seconds", (1, 1), TIME, _time_from(1_000_000)),
    _rule("time_from_millis", (1, 1), TIME, _time_from(1_000)),
    _rule("time_from_micros", (1, 1), TIME, _time_from(1)),
    _rule(
        "time_to_seconds", (1, 1), decimal(14, 6),
        _time_to("CAST(EPOCH_US($0) AS DECIMAL(18, 0)) * CAST('0.000001' AS DECIMAL(7, 6))"),
    ),
    _rule("time_to_millis", (1, 1), BIGINT, _time_to("EPOCH_US($0) // 1000")),
    _rule("time_to_micros", (1, 1), BIGINT, _time_to("EPOCH_US($0)")),
    _rule("time_trunc", (2, 2), TIME, _time_truncated),
    _rule("time_diff", (3, 3), BIGINT, _time_difference),
    _rule("timestamp_seconds", (1, 1), TIMESTAMP, _timestamp_from(1_000_000)),
    _rule("timestamp_millis", (1, 1), TIMESTAMP, _timestamp_from(1_000)),
    _rule("timestamp_micros", (1, 1), TIMESTAMP, _timestamp_from(1)),
    _rule("unix_seconds", (1, 1), BIGINT, _unix(1_000_000)),
    _rule("unix_millis", (1, 1), BIGINT, _unix(1_000)),
    _rule("unix_micros", (1, 1), BIGINT, _unix(1)),
    _rule("unix_nanos", (1, 1), decimal(21, 0), _no_nanoseconds),
    _rule("timestamp_nanos", (1, 1), TIMESTAMP, _no_nanoseconds),
    _rule("unix_date", (1, 1), INT, _unix_date),
    _rule("date_format", (2, 2), STRING, written_by_pattern),
    _rule("to_date", (1, 2), DATE, _parsed(DATE)),
    _rule("to_timestamp", (1, 2), TIMESTAMP, _parsed(TIMESTAMP)),
    _rule("from_unixtime", (1, 2), STRING, _from_unixtime),
    _rule("unix_timestamp", (0, 2), BIGINT, _unix_of),
    _rule("to_unix_timestamp", (1, 2), BIGINT, _unix_of),
    _rule("to_timestamp_ltz", (1, 2), TIMESTAMP, _parsed(TIMESTAMP)),
    _rule("to_timestamp_ntz", (1, 2), TIMESTAMP_NTZ, _parsed(TIMESTAMP_NTZ)),
    _rule("try_to_timestamp", (1, 2), TIMESTAMP, _parsed(TIMESTAMP, is_try=True)),
    _rule("try_to_date", (1, 2), DATE, _parsed(DATE, is_try=True)),
    FunctionRule(name="date_part", aliases=("datepart", "extract"), bounds=(1, 2), result=_part_type, write=_extracted),
    _rule("hour", (1, 1), INT, _of_moment("HOUR($0)", TIMESTAMP)),
    _rule("minute", (1, 1), INT, _of_moment("MINUTE($0)", TIMESTAMP)),
    _rule("second", (1, 1), INT, _of_moment("SECOND($0)", TIMESTAMP)),
    _rule("quarter", (1, 1), INT, _of_moment("QUARTER($0)", DATE)),
    _rule("weekday", (1, 1), INT, _of_moment("ISODOW($0) - 1", DATE)),
    _rule("dayname", (1, 1), STRING, _of_moment("LEFT(DAYNAME($0), 3)", DATE)),
    _rule("monthname", (1, 1), STRING, _of_moment("LEFT(MONTHNAME($0), 3)", DATE)),
    _rule("last_day", (1, 1), DATE, _of_moment("LAST_DAY($0)", DATE)),
    _rule("next_day", (2, 2), DATE, _next_day),
    _rule("trunc", (2, 2), DATE, _truncated),
    _rule("date_trunc", (2, 2), TIMESTAMP, _truncated_moment),
    _rule("months_between", (2, 3), DOUBLE, _months_between),
    _rule("convert_timezone", (2, 3), TIMESTAMP_NTZ, _converted_zone),
    _rule("current_timezone", (0, 0), STRING, lambda call: call.text("CURRENT_SETTING('TimeZone')")),
    _rule("localtimestamp", (0, 0), TIMESTAMP_NTZ, lambda call: call.text("CAST(NOW() AS TIMESTAMP)")),
    _rule("current_time", (0, 1), TIME, _now_of_day),
    _rule("localtime", (0, 1), TIME, _now_of_day),
    *(_rule(name, (0, 7), INTERVAL, _of_months) for name in ("make_interval", "try_make_interval")),
    _rule("make_dt_interval", (0, 4), INTERVAL, _made_interval),
    _rule("make_ym_interval", (0, 2), INTERVAL, _of_months),
    _rule("to_time", (1, 2), TIME, _read_time),
    _rule("try_to_time", (1, 2), TIME, _read_time),
)  # fmt: skip
ARROW = (_TIME, _TRY_TIME, MICROS, TRY_MICROS, BEFORE_UTC)
REFUSED = {
    **dict.fromkeys(("window", "window_time", "session_window", "time_bucket"), "DuckDB groups by no windows of time of Spark's"),
}
