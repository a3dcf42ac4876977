"""Freshness: what may be asked for, which mode it means, and when a refresh is due."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

import tablestore as ts
from tablestore.materialized.freshness import (
    Freshness,
    FreshnessRules,
    LogicalRefreshMode,
    RefreshMode,
    TimeUnit,
    cron,
    latest_fire,
    next_due,
    next_fire,
    parse_freshness,
    pick_mode,
)

BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
AUTOMATIC, CONTINUOUS, FULL = LogicalRefreshMode


def at(text: str, zone: ZoneInfo = UTC, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp() * 1000)


@pytest.mark.parametrize(
    ("interval", "unit", "expression"),
    [
        *((number, "SECONDS", f"0/{number} * * * * ? *") for number in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
        *((number, "minute", f"0 0/{number} * * * ? *") for number in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
        *((number, "HOUR", f"0 0 0/{number} * * ? *") for number in (1, 2, 3, 4, 6, 8, 12)),
        (1, "DAY", "0 0 0 * * ? *"),
    ],
)
def test_a_freshness_of_full_refreshes_is_a_cron_expression(interval: int, unit: str, expression: str) -> None:
    assert cron(parse_freshness(str(interval), unit)) == expression


@pytest.mark.parametrize(
    ("interval", "unit", "message"),
    [
        ("60", "SECOND", "In full refresh mode, freshness must be less than 60 when the time unit is SECOND."),
        ("61", "MINUTE", "In full refresh mode, freshness must be less than 60 when the time unit is MINUTE."),
        ("24", "HOUR", "In full refresh mode, freshness must be less than 24 when the time unit is HOUR."),
        (
            "7",
            "SECOND",
            "In full refresh mode, only freshness that are factors of 60 are currently supported when the time unit is SECOND.",
        ),
        (
            "5",
            "HOUR",
            "In full refresh mode, only freshness that are factors of 24 are currently supported when the time unit is HOUR.",
        ),
        ("2", "DAY", "In full refresh mode, freshness must be 1 when the time unit is DAY."),
    ],
)
def test_a_freshness_without_a_cron_expression_is_refused_in_full_mode_only(interval: str, unit: str, message: str) -> None:
    freshness = parse_freshness(interval, unit)
    with pytest.raises(ts.InvalidInputError) as error:
        pick_mode(freshness, FULL, FreshnessRules())
    assert str(error.value) == message
    assert pick_mode(freshness, CONTINUOUS, FreshnessRules())[1] is RefreshMode.CONTINUOUS


@pytest.mark.parametrize("unit", ["MONTH", "YEARS", "WEEK", "MILLISECOND", "X"])
def test_other_units_are_refused(unit: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="Materialized table freshness only supports SECOND, MINUTE, HOUR, DAY"):
        parse_freshness("1", unit)


@pytest.mark.parametrize("interval", ["0", "-1", "1.5", "", "a", "²", "99999999999999999999"])
def test_an_interval_is_a_positive_whole_number(interval: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        parse_freshness(interval, "MINUTE")
    assert str(error.value).startswith("The freshness interval currently only supports positive integer type values")
    assert str(error.value).endswith(f"But was: {interval}")


def test_below_the_threshold_a_table_is_continuous_and_a_mode_that_is_asked_for_beats_it() -> None:
    rules = FreshnessRules()
    short, long = parse_freshness("29", "MINUTE"), parse_freshness("30", "MINUTE")
    assert pick_mode(short, AUTOMATIC, rules) == (short, RefreshMode.CONTINUOUS)
    assert pick_mode(long, AUTOMATIC, rules) == (long, RefreshMode.FULL)
    assert pick_mode(long, CONTINUOUS, rules) == (long, RefreshMode.CONTINUOUS)
    assert pick_mode(parse_freshness("10", "SECOND"), FULL, rules)[1] is RefreshMode.FULL


def test_a_freshness_that_is_not_said_is_that_of_the_mode() -> None:
    minutes, hour = Freshness(interval=3, unit=TimeUnit.MINUTE), Freshness(interval=1, unit=TimeUnit.HOUR)
    assert pick_mode(None, AUTOMATIC, FreshnessRules()) == (minutes, RefreshMode.CONTINUOUS)
    assert pick_mode(None, CONTINUOUS, FreshnessRules()) == (minutes, RefreshMode.CONTINUOUS)
    assert pick_mode(None, FULL, FreshnessRules()) == (hour, RefreshMode.FULL)


@pytest.mark.parametrize(
    ("freshness", "now", "latest", "following"),
    [
        (("20", "SECOND"), "2026-03-01T10:00:39", "2026-03-01T10:00:20", "2026-03-01T10:00:40"),
        (("30", "MINUTE"), "2026-03-01T10:29:59", "2026-03-01T10:00:00", "2026-03-01T10:30:00"),
        (("8", "HOUR"), "2026-03-01T23:59:59", "2026-03-01T16:00:00", "2026-03-02T00:00:00"),
        (("1", "DAY"), "2026-03-01T00:00:00", "2026-03-01T00:00:00", "2026-03-02T00:00:00"),
        (("1", "DAY"), "2026-02-28T23:59:59", "2026-02-28T00:00:00", "2026-03-01T00:00:00"),
    ],
)
def test_times_of_full_refreshes_are_those_of_the_cron_expression(
    freshness: tuple[str, str], now: str, latest: str, following: str
) -> None:
    for zone in (UTC, BERLIN):
        wanted = parse_freshness(*freshness)
        assert latest_fire(wanted, at(now, zone), zone) == at(latest, zone)
        assert next_fire(wanted, at(now, zone), zone) == at(following, zone)


def test_a_day_begins_where_the_table_is() -> None:
    day = parse_freshness("1", "DAY")
    assert latest_fire(day, at("2026-07-01T23:00:00"), BERLIN) == at("2026-07-02T00:00:00", BERLIN)
    assert latest_fire(day, at("2026-07-01T23:00:00"), UTC) == at("2026-07-01T00:00:00")


def test_times_go_forward_where_the_clock_is_set() -> None:
    hour = parse_freshness("1", "HOUR")
    for start in ("2026-03-29T00:30:00", "2026-10-25T00:30:00"):
        moment = at(start, BERLIN)
        fires = []
        for _ in range(5):
            moment = next_fire(hour, moment, BERLIN)
            fires.append(moment)
            assert latest_fire(hour, moment, BERLIN) == moment
        assert fires == sorted(set(fires))


def test_a_continuous_table_is_due_once_its_last_refresh_is_as_old_as_its_freshness() -> None:
    given = {"freshness": parse_freshness("5", "MINUTE"), "mode": RefreshMode.CONTINUOUS, "since_ms": 0, "zone": UTC}
    now = at("2026-03-01T10:00:00")
    assert next_due(**given, last_ms=None, now_ms=now) == now  # type: ignore[arg-type]
    assert next_due(**given, last_ms=now - 299_999, now_ms=now) is None  # type: ignore[arg-type]
    assert next_due(**given, last_ms=now - 300_000, now_ms=now) == now  # type: ignore[arg-type]


def test_a_full_refresh_is_due_at_its_times_only_and_the_newest_makes_up_for_those_before() -> None:
    def due(last: str | None, now: str, each: bool = False) -> int | None:
        return next_due(
            parse_freshness("1", "HOUR"),
            RefreshMode.FULL,
            last_ms=None if last is None else at(last),
            since_ms=at("2026-03-01T08:10:00"),
            now_ms=at(now),
            zone=UTC,
            each=each,
        )

    assert due(None, "2026-03-01T08:59:59") is None
    assert due(None, "2026-03-01T09:00:00") == at("2026-03-01T09:00:00")
    assert due("2026-03-01T09:00:00", "2026-03-01T09:59:59") is None
    assert due("2026-03-01T09:00:00", "2026-03-01T12:30:00") == at("2026-03-01T12:00:00")
    assert due("2026-03-01T09:00:00", "2026-03-01T12:30:00", each=True) == at("2026-03-01T10:00:00")
    assert due("2026-03-01T07:00:00", "2026-03-01T12:30:00", each=True) == at("2026-03-01T09:00:00")
