"""Converts Python values of DATE, TIME and TIMESTAMP columns to integers, and back.

Values are what ``pyarrow.Scalar.as_py`` gives; TIMESTAMP(7-9) is ``numpy.datetime64``, since Python's datetime ends at
microseconds. TIMESTAMP WITH LOCAL TIME ZONE values are aware, in UTC. Files hold a timestamp as (epoch milliseconds,
nanoseconds within the millisecond), with floor division: 1969-12-31 23:59:59.123456 is (-877, 456000).
"""

from datetime import UTC, date, datetime, time, timedelta

import numpy as np

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_UNIT_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "D": 86_400 * 10**9}


def date_to_days(value: object) -> int:
    """Days since the epoch."""
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError(f"expected a date, found {value!r}")
    return value.toordinal() - _EPOCH_DAY


def days_to_date(days: int) -> date:
    """The inverse of :func:`date_to_days`; OverflowError outside of the years 1 to 9999."""
    return date.fromordinal(days + _EPOCH_DAY)


def time_to_millis(value: object) -> int:
    """Milliseconds of the day, rounded down."""
    if not isinstance(value, time):
        raise TypeError(f"expected a time, found {value!r}")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def millis_to_time(millis: int) -> time:
    """The inverse of :func:`time_to_millis`; ValueError outside of a day."""
    seconds, millis_left = divmod(millis, 1000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, millis_left * 1000)


def nanoseconds(value: object) -> int:
    """Nanoseconds since the epoch of a datetime (in UTC if it has no zone) or numpy.datetime64, also beyond 64 bits."""
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        if unit not in _UNIT_NS:
            return int(value.astype("datetime64[s]").astype(np.int64)) * _UNIT_NS["s"]
        return int(value.astype(np.int64)) * _UNIT_NS[unit] * step
    if not isinstance(value, datetime):
        raise TypeError(f"expected a timestamp, found {value!r}")
    micros = (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND
    # pandas.Timestamp, which pyarrow gives for nanoseconds, has three more digits.
    return micros * 1000 + int(getattr(value, "nanosecond", 0))


def timestamp_to_parts(value: object) -> tuple[int, int]:
    """(epoch milliseconds, nanoseconds within the millisecond) of a datetime or numpy.datetime64."""
    return divmod(nanoseconds(value), 1_000_000)


def parts_to_timestamp(millis: int, nanos: int, *, precision: int, utc: bool) -> datetime | np.datetime64:
    """The inverse of :func:`timestamp_to_parts`; OverflowError where the value's type cannot hold it."""
    if precision > 6:
        count = millis * 1_000_000 + nanos
        # The least one has no datetime64: numpy takes its number for no time at all.
        if not -(2**63) < count < 2**63:
            raise OverflowError(f"{millis} ms is outside of the range of nanoseconds")
        return np.datetime64(count, "ns")
    return (_EPOCH_UTC if utc else _EPOCH) + timedelta(milliseconds=millis, microseconds=nanos // 1000)
