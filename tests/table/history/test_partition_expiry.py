"""Partitions are dropped when somebody asks for it, and the plan tells beforehand which."""

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, StorageError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import SetOption
from tablestore.types.partitionspec import strptime_format
from tests.support.commitrules.scenes import once

NOW = datetime(2024, 1, 31, 12, 0)
TEXT = pa.schema([("id", pa.int64()), ("day", pa.string()), ("hour", pa.string())])


def lab(name: str, schema: pa.Schema = TEXT, partition_by: tuple[str, ...] = ("day", "hour"), **options: str) -> Lab:
    clock = ManualClock(start_ms=round(NOW.timestamp() * 1000))
    store = MemoryFileStore(f"partitions-{name}", clock=clock)
    return Lab(store, keyed=False, schema=schema, partition_by=partition_by, options=options, clock=clock)


def partitions(made: Lab) -> list[str]:
    return sorted(made.open().partitions().column("partition").to_pylist())


def hourly(name: str, **options: str) -> Lab:
    made = lab(name, **options)
    made.write_new((1, "20240129", "07"), (2, "20240130", "11"), (3, "20240130", "13"), (4, "20240131", "01"), (5, "soon", "1"))
    return made


PATTERN = {
    "partition.expiration-time": "1 d",
    "partition.timestamp-pattern": "$day $hour:00",
    "partition.timestamp-formatter": "yyyyMMdd HH:mm",
}


def test_old_partitions_go_by_their_values_and_undated_ones_stay() -> None:
    made = hourly("values", **PATTERN)
    planned = made.open().expire_partitions(dry_run=True)
    assert planned.partitions == ("day=20240129/hour=07", "day=20240130/hour=11")
    assert planned.undated == ("day=soon/hour=1",) and (planned.files, planned.rows) == (2, 2)
    assert "would drop 2 partition(s) with 2 file(s)" in str(planned) and "give no time: day=soon" in str(planned)
    assert len(partitions(made)) == 5, "a plan drops nothing"
    done = made.open().expire_partitions()
    assert done.partitions == planned.partitions and done.snapshot is not None
    assert len(partitions(made)) == 3
    assert made.open().expire_partitions().partitions == ()


def test_without_a_pattern_the_first_column_gives_the_time_whatever_its_name() -> None:
    schema = pa.schema([("id", pa.int64()), ("the day", pa.string())])
    made = lab("blank", schema, ("the day",), **{"partition.expiration-time": "1 d"})
    made.write_new((1, "2024-01-29"), (2, "2024-01-31"), (3, "soon"))
    assert made.open().expire_partitions(dry_run=True).partitions == ("the day=2024-01-29",)


def test_nothing_goes_unless_an_age_is_given() -> None:
    made = hourly("none")
    with pytest.raises(InvalidInputError) as refused:
        made.open().expire_partitions()
    assert refused.value.kind == "no-expiration-time"
    made.write_new((6, "20000101", "01"))
    assert len(partitions(made)) == 6, "no commit drops a partition by itself"


def test_dates_need_no_format() -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    made = lab("dates", schema, ("day",))
    made.write_new((1, date(2024, 1, 1)), (2, date(2024, 1, 30)), (3, None))
    report = made.open().expire_partitions(timedelta(days=7))
    assert report.partitions == ("day=2024-01-01",)
    assert made.open().scan().count() == 2


def test_by_their_newest_file_partitions_stay_while_they_are_written() -> None:
    options = {"partition.expiration-strategy": "update-time", "partition.expiration-time": "2 h"}
    made = lab("updates", **options)
    made.write_new((1, "a", "1"))
    made.write_new((2, "b", "1"))
    made.clock.advance(3 * 3600)
    made.write_new((3, "b", "1"))
    assert made.open().expire_partitions(dry_run=True).partitions == ("day=a/hour=1",)
    # A row arrives in it while it is being dropped: then it is not old any more.
    table, faults = made.faulty()
    once(faults, "before", "publish_if_absent", lambda: made.write_new((4, "a", "1")))
    table.expire_partitions()
    assert sorted(made.open().scan(columns=["id"]).to_arrow().column(0).to_pylist()) == [1, 2, 3, 4]


def test_named_partitions_are_dropped_with_what_arrives_meanwhile() -> None:
    made = hourly("named")
    table, faults = made.faulty()
    once(faults, "before", "publish_if_absent", lambda: made.write_new((9, "20240130", "20")))
    report = table.drop_partitions([{"day": "20240130"}, {"day": "soon", "hour": "1"}])
    assert report.partitions == ("day=20240130/hour=11", "day=20240130/hour=13", "day=soon/hour=1")
    assert partitions(made) == ["day=20240129/hour=07", "day=20240131/hour=01"]


@pytest.mark.parametrize("given", [[{"nope": 1}], [{}], {"day": "a"}, [{"day": object()}]])
def test_what_names_no_partition_is_refused(given: Any) -> None:
    made = hourly(f"refused-{str(given)[:5].encode().hex()}")
    with pytest.raises(InvalidInputError):
        made.open().drop_partitions(given)
    assert len(partitions(made)) == 5


def test_formats_are_those_of_java() -> None:
    assert strptime_format("yyyy-MM-dd'T'HH:mm:ss") == "%Y-%m-%dT%H:%M:%S"
    assert strptime_format("yyyyMMdd") == "%Y%m%d"
    with pytest.raises(InvalidInputError, match="found 'EEE'"):
        strptime_format("EEE dd")


def test_a_pattern_names_partition_columns_only_and_a_formatter_can_be_read() -> None:
    wrong = {
        "partition.timestamp-pattern": ("$id", "'id' is not a partition column"),
        "partition.timestamp-formatter": ("EEE", "found 'EEE'"),
    }
    made = hourly("pattern", **PATTERN)
    for key, (text, message) in wrong.items():
        with pytest.raises(InvalidInputError, match=message):
            hourly("wrong", **{**PATTERN, key: text})
        with pytest.raises(InvalidInputError, match=message):
            made.open().alter(SetOption(key=key, value=text))
    assert made.open().expire_partitions(dry_run=True).partitions
    # A default of a catalog says nothing of a table without partitions.
    assert lab("plain", pa.schema([("id", pa.int64())]), (), **{"partition.timestamp-pattern": "$day"}).open().partition_by == ()


def test_a_host_whose_clock_is_ahead_drops_no_partition_that_is_not_due() -> None:
    made = hourly("ahead", **PATTERN)
    before = partitions(made)
    host = made.open(clock=ManualClock(start_ms=made.clock.now_ms() + 25 * 3_600_000))
    with pytest.raises(StorageError) as refused:
        host.expire_partitions()
    assert refused.value.kind == "clock-skew" and partitions(made) == before
    assert made.open().expire_partitions().partitions == ("day=20240129/hour=07", "day=20240130/hour=11")
