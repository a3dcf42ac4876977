"""Points in time as callers give them: one rule for Python, SQL and the command line."""

import datetime as dt
import time
from collections.abc import Iterator

import pytest

from tablestore.errors import InvalidInputError
from tablestore.timepoint import epoch_millis, exact_utc_text, utc_text

NOON = 1_769_860_800_000  # 2026-01-31 12:00 UTC


@pytest.fixture(autouse=True)
def in_seoul(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "point",
    [
        NOON,
        "2026-01-31T12:00:00Z",
        " 2026-01-31 13:00+01:00 ",
        "2026-01-31 21:00:00",
        dt.datetime(2026, 1, 31, 21),
        dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC),
        dt.datetime(2026, 1, 31, 12, 0, 0, 999, tzinfo=dt.UTC),
    ],
)
def test_every_form_names_the_same_point_and_lacks_a_zone_only_locally(point: object) -> None:
    assert epoch_millis(point) == NOON


@pytest.mark.parametrize("point", [dt.date(2026, 1, 31), "2026-01-31"])
def test_a_day_is_its_local_midnight(point: object) -> None:
    assert utc_text(epoch_millis(point)) == "2026-01-30 15:00:00 UTC"


def test_the_ends_of_the_calendar_and_what_lies_before_the_epoch_are_points() -> None:
    assert epoch_millis(dt.datetime.max) > epoch_millis("9999-12-30")
    assert epoch_millis(dt.datetime.min) < epoch_millis("0001-01-02")
    assert epoch_millis("1969-12-31T23:59:59.9995Z") == -1


@pytest.mark.parametrize("point", [None, True, 1.5, "", "yesterday", "2026-02-30", dt.timedelta(1), [2026]])
def test_what_is_no_point_in_time_is_refused_with_an_example(point: object) -> None:
    with pytest.raises(InvalidInputError, match=r"expected older_than such as '2026-01-31 12:00:00' or .*, found"):
        epoch_millis(point, "older_than")


def test_people_read_a_date_with_milliseconds_only_where_there_are_any() -> None:
    assert utc_text(epoch_millis("0001-01-02T00:00:00Z")) == "0001-01-02 00:00:00 UTC"
    assert (exact_utc_text(NOON), exact_utc_text(NOON + 7)) == ("2026-01-31 12:00:00 UTC", "2026-01-31 12:00:00.007 UTC")
