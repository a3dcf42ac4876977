"""Parses points in time as callers give them, and prints them for people.

    datetime, date, '2026-01-31 12:00:00[+01:00]'     without a zone in local time, as in SQL
    1769860800000                                     milliseconds since the epoch

For people a point in time is a date and a time of UTC.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

from tablestore.errors import InvalidInputError

TimePoint: TypeAlias = datetime | date | str | int
"""A point in time, as callers give it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_millis(point: object, what: str = "timestamp") -> int:
    """Milliseconds since the epoch, rounded down. Raises InvalidInputError; ``what`` names the argument."""
    if isinstance(point, int) and not isinstance(point, bool):
        return point
    moment = datetime_of(point) if isinstance(point, str) else point
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise InvalidInputError(
            f"expected {what} such as '2026-01-31 12:00:00' or '2026-01-31T12:00:00+01:00', a datetime, or milliseconds since the "
            f"epoch, found {point!r:.80}",
            kind="time-travel",
        )
    try:
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # Python finds no local offset at the ends of its calendar.
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def utc_time(millis: int) -> datetime:
    """Milliseconds since the epoch as a datetime; the ends of the calendar for what lies beyond them."""
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return (datetime.max if millis > 0 else datetime.min).replace(tzinfo=UTC)


def utc_text(millis: int) -> str:
    """The same as text, to the second."""
    return f"{utc_time(millis).replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def exact_utc_text(millis: int) -> str:
    """The same as text, to the millisecond where that says more than the second."""
    precision = "milliseconds" if millis % 1000 else "seconds"
    return f"{utc_time(millis).replace(tzinfo=None).isoformat(' ', precision)} UTC"


def datetime_of(text: str) -> datetime | None:
    """The date and time that a text says, None for other texts."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None
