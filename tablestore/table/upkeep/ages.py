"""Age arguments of a table's methods: the types that are accepted, and durations in milliseconds."""

from datetime import date, timedelta
from typing import TypeAlias

from tablestore.errors import InvalidInputError

Age: TypeAlias = timedelta | date | str | int | None


def millis_of(duration: timedelta | int | None, name: str) -> int | None:
    """A duration in milliseconds."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = round(duration.total_seconds() * 1000)
    if isinstance(duration, bool) or not isinstance(duration, int) or duration < 0:
        raise InvalidInputError(f"expected {name} as a timedelta or in milliseconds from 0, found {duration!r:.80}")
    return duration
