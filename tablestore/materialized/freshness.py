"""Defines the freshness of a materialized table, the mode that keeps it, and the times at which a refresh is due. Pure.

    FRESHNESS = INTERVAL '3' MINUTE      below the threshold (30 minutes): CONTINUOUS, a loop that refreshes at this interval
    FRESHNESS = INTERVAL '1' HOUR        not below it: FULL, refreshes at fixed times: every full hour
    REFRESH_MODE = …                     beats the threshold

The times of FULL refreshes are those of a Quartz cron expression. It knows times within a minute, an hour and a day only, so an
interval has to be a whole part of these.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum

from tablestore.errors import InvalidInputError


class TimeUnit(StrEnum):
    """A unit of freshness. Stored: never renamed."""

    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"


class RefreshMode(StrEnum):
    """The mode by which a table is kept fresh. Stored: never renamed."""

    CONTINUOUS = "CONTINUOUS"
    FULL = "FULL"


class LogicalRefreshMode(StrEnum):
    """The mode that the statement asked for; AUTOMATIC: nothing. Stored: never renamed."""

    AUTOMATIC = "AUTOMATIC"
    CONTINUOUS = "CONTINUOUS"
    FULL = "FULL"


_MS = {TimeUnit.SECOND: 1_000, TimeUnit.MINUTE: 60_000, TimeUnit.HOUR: 3_600_000, TimeUnit.DAY: 86_400_000}
# The number of each unit in the next larger one of the cron expression.
_WITHIN = {TimeUnit.SECOND: 60, TimeUnit.MINUTE: 60, TimeUnit.HOUR: 24}
_CRON = {
    TimeUnit.SECOND: "0/{} * * * * ? *",
    TimeUnit.MINUTE: "0 0/{} * * * ? *",
    TimeUnit.HOUR: "0 0 0/{} * * ? *",
    TimeUnit.DAY: "0 0 0 * * ? *",
}
# Longer than any calendar; it also keeps times within what the machine can tell.
_MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """A freshness: ``INTERVAL 'interval' UNIT``."""

    interval: int
    unit: TimeUnit

    def __str__(self) -> str:
        return f"INTERVAL '{self.interval}' {self.unit}"

    @property
    def millis(self) -> int:
        """Its length."""
        return self.interval * _MS[self.unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessRules:
    """The rules that hold where a statement does not say it: settings of the environment."""

    threshold_ms: int = 30 * 60_000
    continuous_ms: int = 3 * 60_000
    full_ms: int = 3_600_000


def parse_freshness(interval: str, unit: str) -> Freshness:
    """Parses ``'3'`` and ``MINUTE`` or ``MINUTES``. Raises InvalidInputError of kind ``freshness``."""
    name = unit.upper().removesuffix("S")
    if name not in TimeUnit.__members__:
        raise InvalidInputError(
            f"Materialized table freshness only supports SECOND, MINUTE, HOUR, DAY as the time unit. But was: {unit:.40}",
            kind="freshness",
        )
    text = interval.strip()
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:20]) <= _MOST:
        limit_text = f" of at most {_MOST}" if text.isascii() and text.isdecimal() and int(text[:20]) else ""
        raise InvalidInputError(
            f"The freshness interval currently only supports positive integer type values{limit_text}. But was: {interval:.40}",
            kind="freshness",
        )
    return Freshness(interval=int(text), unit=TimeUnit(name))


def freshness_of_millis(millis: int) -> Freshness:
    """A duration as a freshness, in the largest unit that fits."""
    unit = next((unit for unit in reversed(TimeUnit) if millis >= _MS[unit] and millis % _MS[unit] == 0), TimeUnit.SECOND)
    return Freshness(interval=max(1, millis // _MS[unit]), unit=unit)


def pick_mode(freshness: Freshness | None, logical: LogicalRefreshMode, rules: FreshnessRules) -> tuple[Freshness, RefreshMode]:
    """The freshness and the mode that hold for what a statement says. Raises InvalidInputError of kind ``freshness``."""
    if freshness is None:
        freshness = freshness_of_millis(rules.full_ms if logical is LogicalRefreshMode.FULL else rules.continuous_ms)
    if logical is LogicalRefreshMode.AUTOMATIC:
        mode = RefreshMode.CONTINUOUS if freshness.millis < rules.threshold_ms else RefreshMode.FULL
    else:
        mode = RefreshMode(logical)
    if mode is RefreshMode.FULL:
        cron(freshness)
    return freshness, mode


def cron(freshness: Freshness) -> str:
    """The Quartz expression of a FULL refresh. Raises InvalidInputError for an interval that has none."""
    unit, interval = freshness.unit, freshness.interval
    if unit is TimeUnit.DAY:
        if interval != 1:
            raise InvalidInputError("In full refresh mode, freshness must be 1 when the time unit is DAY.", kind="freshness")
        return _CRON[unit]
    unit_count = _WITHIN[unit]
    if interval >= unit_count:
        raise InvalidInputError(
            f"In full refresh mode, freshness must be less than {unit_count} when the time unit is {unit}.", kind="freshness"
        )
    if unit_count % interval:
        raise InvalidInputError(
            f"In full refresh mode, only freshness that are factors of {unit_count} are currently supported when the time unit is "
            f"{unit}.",
            kind="freshness",
        )
    return _CRON[unit].format(interval)


def latest_fire(freshness: Freshness, at_ms: int, zone: tzinfo | None) -> int:
    """The last time of the cron expression that is not after ``at_ms``; ``zone`` None: that of the machine."""
    floor = _floor(freshness, _local(at_ms, zone))
    while (fire_ms := _millis(floor, zone)) > at_ms:
        # The clock was set back, and this time of the day comes a second time.
        floor = _floor(freshness, floor - timedelta(seconds=1))
    return fire_ms


def next_fire(freshness: Freshness, after_ms: int, zone: tzinfo | None) -> int:
    """The first time of the cron expression that is after ``after_ms``."""
    step = timedelta(milliseconds=freshness.millis)
    at = _floor(freshness, _local(after_ms, zone))
    while (fire_ms := _millis(at, zone)) <= after_ms:
        at = _floor(freshness, at + step)
    return fire_ms


def next_due(
    freshness: Freshness,
    mode: RefreshMode,
    *,
    last_ms: int | None,
    since_ms: int,
    now_ms: int,
    zone: tzinfo | None,
    each: bool = False,
) -> int | None:
    """The time that a refresh is due for, None if none is.

    ``last_ms``: the time that the last refresh was for; ``since_ms``: since when the table is kept fresh. ``each``: none of the
    times is left out, so that the oldest comes first (a table whose refreshes are each for a partition); otherwise the newest makes
    up for the others. A continuous table is due once its last refresh is as old as its freshness, or if there was none.
    """
    if mode is RefreshMode.CONTINUOUS:
        return now_ms if last_ms is None or now_ms - last_ms >= freshness.millis else None
    last = since_ms if last_ms is None else max(last_ms, since_ms)
    latest = latest_fire(freshness, now_ms, zone)
    if latest <= last:
        return None
    return next_fire(freshness, last, zone) if each else latest


def _local(millis: int, zone: tzinfo | None) -> datetime:
    """The time on the wall, without its zone."""
    moment = datetime.fromtimestamp(millis // 1000, UTC) + timedelta(milliseconds=millis % 1000)
    return moment.astimezone(zone).replace(tzinfo=None)


def _millis(wall: datetime, zone: tzinfo | None) -> int:
    moment = wall.replace(tzinfo=zone) if zone is not None else wall.astimezone()
    return int(moment.timestamp()) * 1000


def _floor(freshness: Freshness, wall: datetime) -> datetime:
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match freshness.unit:
        case TimeUnit.SECOND:
            return midnight.replace(hour=wall.hour, minute=wall.minute, second=wall.second - wall.second % freshness.interval)
        case TimeUnit.MINUTE:
            return midnight.replace(hour=wall.hour, minute=wall.minute - wall.minute % freshness.interval)
        case TimeUnit.HOUR:
            return midnight.replace(hour=wall.hour - wall.hour % freshness.interval)
        case TimeUnit.DAY:
            return midnight
