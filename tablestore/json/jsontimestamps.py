"""Writes dates and timestamps of every year as text, and reads them.

    2024-01-31        -0044-03-15        5881580-07-11        2024-01-31 12:30:00.123456        ... Z with local time zone

Arrow writes and reads the years 0 to 9999, which is what a table mostly holds, but columns hold more. The calendar repeats every
400 years, which are 146,097 days: another year is moved to one that Arrow knows, and its number is put in front by hand. Reading a
timestamp of the last second before the least one is done in parts too: its whole seconds alone do not fit the column.

Whole arrays at a time, both ways.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_SECONDS = 86_400
# 1970-01-01 lies in the cycle 1970 to 2369, which starts at the epoch.
_FIRST_YEAR = 1970
# 0000-01-01 to 9999-12-31.
_LEAST_DAY, _GREATEST_DAY = -719_528, 2_932_896
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_WRITTEN = r"^(?P<year>-?[0-9]{4,9})(?P<day>-[0-9]{2}-[0-9]{2})"
_ZONE = r"[ T][0-9:.]+(?:Z|[+-][0-9:]+)$"
_WRITTEN_TIME = _WRITTEN + r"(?P<time>[ T][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z?)$"


def time_texts(array: pa.Array) -> pa.Array:
    """The text of each date or timestamp, nulls stay. Timestamps with a time zone are instants in UTC, and end with Z."""
    per_day = 1 if pa.types.is_date(array.type) else _DAY_SECONDS * _A_SECOND[array.type.unit]
    whole = array.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(array.type) else array.cast(pa.int64())
    bounds = pc.min_max(whole).as_py()
    if bounds["min"] is None or (bounds["min"] // per_day >= _LEAST_DAY and bounds["max"] // per_day <= _GREATEST_DAY):
        return array.cast(pa.string())
    numbers: Numbers = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False)
    cycles = numbers // (per_day * _CYCLE_DAYS)
    shifted = pa.array(numbers - cycles * (per_day * _CYCLE_DAYS), mask=whole.is_null().to_numpy(zero_copy_only=False))
    texts = (shifted.cast(pa.int32()) if pa.types.is_date(array.type) else shifted).cast(array.type).cast(pa.string())
    years = pc.add(pc.utf8_slice_codeunits(texts, 0, 4).cast(pa.int64()), pa.array(cycles * _CYCLE_YEARS))
    sign = pc.if_else(pc.less(years, 0), "-", "")
    digits = pc.utf8_lpad(pc.abs(years).cast(pa.string()), 4, "0")
    return pc.binary_join_element_wise(sign, digits, pc.utf8_slice_codeunits(texts, 4), "")


def times_from_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The inverse of :func:`time_texts`; what Arrow reads besides is read too. Raises ValueError for other texts."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return _dates(texts, kind) if pa.types.is_date(kind) else _timestamps(texts, kind)


def times_with_or_without_zone(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Timestamps from texts that may name a zone or none, as Arrow's JSON reader takes them: none is UTC, and a column without
    time zone keeps what a clock in UTC shows. Raises ValueError for other texts."""
    if kind.tz is None and not pc.any(pc.match_substring_regex(texts, _ZONE)).as_py():
        return times_from_texts(texts, kind)
    timed = pc.if_else(pc.match_substring_regex(texts, "[ T]"), texts, pc.binary_join_element_wise(texts, " 00:00:00", ""))
    zoned = pc.if_else(pc.match_substring_regex(timed, _ZONE), timed, pc.binary_join_element_wise(timed, "Z", ""))
    return times_from_texts(zoned, pa.timestamp(kind.unit, "UTC")).cast(kind)


def _dates(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    parts = _parts(texts, _WRITTEN + "$")
    year, cycles = _known_year(parts.field("year"))
    days = pc.binary_join_element_wise(year, parts.field("day"), "").cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    return pc.add(days, pc.multiply(cycles, _CYCLE_DAYS)).cast(pa.int32()).cast(kind)


def _timestamps(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    parts = _parts(texts, _WRITTEN_TIME)
    if pc.any(pc.equal(pc.equal(parts.field("zone"), "Z"), kind.tz is None)).as_py():
        raise ValueError("expected a timestamp that ends with Z in a column with local time zone, and no Z in any other")
    year, cycles = _known_year(parts.field("year"))
    shifted = pc.binary_join_element_wise(year, parts.field("day"), parts.field("time"), "").cast(pa.timestamp("s"))
    seconds = pc.add(shifted.cast(pa.int64()), pc.multiply(cycles, _CYCLE_DAYS * _DAY_SECONDS))
    scale = _A_SECOND[kind.unit]
    places = len(str(scale)) - 1
    written = pc.utf8_rpad(parts.field("fraction"), 9, "0")
    if pc.any(pc.not_equal(pc.utf8_slice_codeunits(written, places), "0" * (9 - places))).as_py():
        raise ValueError(f"expected at most {places} digits of a second")
    fraction = pc.utf8_slice_codeunits(written, 0, places).cast(pa.int64()) if places else pc.multiply(seconds, 0)
    # Towards the epoch first: the whole seconds of the least timestamps alone would be less than 64 bits hold.
    early = pc.less(seconds, 0)
    whole = pc.multiply_checked(pc.if_else(early, pc.add(seconds, 1), seconds), scale)
    return pc.add_checked(whole, pc.if_else(early, pc.subtract(fraction, scale), fraction)).cast(kind)


def _parts(texts: pa.Array, pattern: str) -> pa.StructArray:
    parts = pc.extract_regex(texts, pattern)
    if parts.null_count != texts.null_count:
        raise ValueError("expected a date as 2024-01-31, or a timestamp as 2024-01-31 12:30:00.123")
    # The fields of a null are not null by themselves.
    return pa.StructArray.from_arrays(parts.flatten(), fields=list(parts.type))


def _known_year(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The text of a year of the same calendar within the first cycle, and how many cycles before it the year lies."""
    years = texts.cast(pa.int64())
    numbers: Numbers = pc.fill_null(years, _FIRST_YEAR).to_numpy(zero_copy_only=False)
    cycles = pa.array((numbers - _FIRST_YEAR) // _CYCLE_YEARS)
    return pc.subtract(years, pc.multiply(cycles, _CYCLE_YEARS)).cast(pa.string()), cycles
