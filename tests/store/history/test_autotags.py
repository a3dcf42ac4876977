"""Automatic tags: one a period, of the state at its end, whoever commits next."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tablestore.errors import InvalidInputError
from tablestore.io.memory import MemoryFileStore
from tablestore.options import TableOptions
from tablestore.store.history.autotags import auto_tagging
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.lab import Lab

UTC_ZONE = {"sink.process-time-zone": "UTC", "tag.automatic-creation": "process-time"}


def millis(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def closed(time: str, **options: str) -> tuple[str, str]:
    tagging = auto_tagging(TableOptions({**UTC_ZONE, **options}))
    assert tagging is not None
    name, boundary = tagging.closed_period(millis(time))
    return name, datetime.fromtimestamp(boundary / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def lab(name: str, **options: Any) -> Lab:
    clock = ManualClock(start_ms=millis("2024-01-31 10:00"))
    store = MemoryFileStore(f"autotags-{name}", clock=clock)
    return Lab(store, keyed=False, options={"write-only": "false", **UTC_ZONE, **options}, clock=clock)


def test_the_period_before_a_commit_has_ended() -> None:
    assert closed("2024-02-01 00:00") == ("2024-01-31", "2024-02-01 00:00")
    assert closed("2024-02-01 23:59") == ("2024-01-31", "2024-02-01 00:00")
    assert closed("2024-03-01 07:00", **{"tag.creation-period": "hourly"}) == ("2024-03-01-06", "2024-03-01 07:00")
    assert closed("2024-03-01 01:30", **{"tag.creation-period": "two-hours"}) == ("2024-02-29-22", "2024-03-01 00:00")
    assert closed("2024-02-01 00:20", **{"tag.period-formatter": "without_dashes"})[0] == "20240131"


def test_a_delay_leaves_late_commits_to_the_period() -> None:
    delay = {"tag.creation-delay": "30 min"}
    assert closed("2024-02-01 00:29", **delay) == ("2024-01-30", "2024-01-31 00:30")
    assert closed("2024-02-01 00:30", **delay) == ("2024-01-31", "2024-02-01 00:30")


def test_the_time_zone_counts() -> None:
    zone = {"sink.process-time-zone": "Asia/Tokyo"}
    assert closed("2024-01-31 15:00", **zone) == ("2024-01-31", "2024-01-31 15:00")
    with pytest.raises(InvalidInputError, match="Europe/Berlin"):
        closed("2024-01-31 15:00", **{"sink.process-time-zone": "Mars/Olympus"})


def test_the_first_commit_of_a_day_tags_the_last_of_the_day_before() -> None:
    made = lab("days")
    made.write_new((1, "a"))
    made.clock.set_ms(millis("2024-01-31 23:59"))
    made.write_new((2, "b"))
    assert made.open().tags() == ()
    made.clock.set_ms(millis("2024-02-01 00:05"))
    made.write_new((3, "c"))
    made.write_new((4, "d"))
    (tag,) = made.open().tags()
    assert (tag.name, tag.snapshot.id) == ("2024-01-31", 2)
    assert made.read(tag="2024-01-31") == [(1, "a"), (2, "b")]
    # Days without a commit: the tag of the last one shows the same state.
    made.clock.set_ms(millis("2024-02-05 09:00"))
    made.write_new((5, "e"))
    assert [(t.name, t.snapshot.id) for t in made.open().tags()] == [("2024-01-31", 2), ("2024-02-04", 4)]


def test_a_tag_that_was_missed_is_made_by_the_next_commit() -> None:
    made = lab("missed")
    made.write_new((1, "a"))
    made.clock.set_ms(millis("2024-02-01 00:05"))
    made.write_new((2, "b"))
    made.open().delete_tag("2024-01-31")
    made.write_new((3, "c"))
    assert [(tag.name, tag.snapshot.id) for tag in made.open().tags()] == [("2024-01-31", 1)]


def test_only_the_newest_automatic_tags_stay_and_others_are_left_alone() -> None:
    made = lab("many", **{"tag.num-retained-max": "2", "snapshot.num-retained.min": "1", "snapshot.time-retained": "1 h"})
    for day in range(1, 8):
        made.clock.set_ms(millis(f"2024-02-0{day} 12:00"))
        made.open().overwrite(made.rows((day, "a")), {})
        if day == 2:
            made.open().create_tag("release")
    assert [tag.name for tag in made.open().tags()] == ["release", "2024-02-05", "2024-02-06"]
    assert made.read(tag="2024-02-05") == [(5, "a")] and made.read(tag="release") == [(2, "a")]
    assert len(made.open().snapshots()) == 2


def test_a_period_without_a_snapshot_gets_no_tag() -> None:
    made = lab("none")
    made.write_new((1, "a"))
    assert made.open().tags() == ()
