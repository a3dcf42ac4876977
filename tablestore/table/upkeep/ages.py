"""Parses ages as the methods of a table take them: a span of time, a point in time, the text of either, or milliseconds."""

from datetime import date, timedelta
from typing import TypeAlias

from tablestore.errors import InvalidInputError

Age: TypeAlias = timedelta | date | str | int | None


def millis_of(duration: timedelta | int | None, what: str) -> int | None:
    """A duration in milliseconds."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = round(duration.total_seconds() * 1000)
    if isinstance(duration, bool) or not isinstance(duration, int) or duration < 0:
        raise InvalidInputError(f"expected {what} as a timedelta or in milliseconds from 0, found {duration!r:.80}")
    return duration
