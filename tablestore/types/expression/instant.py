"""Parses date and timestamp text: ``2024-01-31[ 12:34[:56[.123456789]]][Z|+02:00]``."""

import datetime as dt
import re
from dataclasses import dataclass

from tablestore.types.timevalues import nanoseconds

_TIMESTAMP = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{2}:?\d{2})?\s*",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Instant:
    """A timestamp literal of any precision: nanoseconds since the epoch. ``zoned``: None if not known."""

    ns: int
    zoned: bool | None


def parse_instant(text: str) -> Instant | None:
    """The moment, or None for other text."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    try:
        moment = dt.datetime(*(int(part or 0) for part in match.groups()[:6]))  # type: ignore[arg-type]
    except ValueError:
        return None
    ns = nanoseconds(moment) + int((match[7] or "0").ljust(9, "0"))
    zone = match[8]
    if zone and zone[0] in "+-":
        offset_minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        ns += (-1 if zone[0] == "+" else 1) * offset_minutes * 60 * 10**9
    return Instant(ns, zone is not None)
