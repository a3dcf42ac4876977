"""Refreshing what is due: whole tables and partitions, chains, and several schedulers at one time."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import tablestore as ts
from tablestore.environment.objectpath import ObjectPath
from tablestore.materialized import due as dues
from tablestore.materialized.refreshing import last_refresh, partition_of_schedule
from tablestore.materialized.storing import open_materialized
from tablestore.testing.deterministic import ManualClock

Rows = Callable[[Any], list[tuple[Any, ...]]]
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3_600_000


def at(text: str, zone: ZoneInfo = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


START = at("2026-03-01T08:10:00")
HOURLY = (
    "CREATE OR ALTER MATERIALIZED TABLE t WITH ('sink.process-time-zone' = 'Europe/Berlin') FRESHNESS = INTERVAL '1' HOUR AS "
    "SELECT id, day FROM s"
)
DAILY = (
    "CREATE OR ALTER MATERIALIZED TABLE d PARTITIONED BY (day) WITH ('sink.process-time-zone' = 'Europe/Berlin', "
    "'partition.fields.day.date-formatter' = 'yyyy-MM-dd') FRESHNESS = INTERVAL '1' DAY AS SELECT id, day FROM s"
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start_ms=START)


@pytest.fixture
def env(tmp_path: Path, clock: ManualClock) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", clock=clock) as made:
        made.execute_sql("CREATE TABLE s (id BIGINT, day STRING)")
        made.execute_sql("INSERT INTO s VALUES (1, '2026-02-28'), (2, '2026-03-01'), (3, NULL)")
        yield made


def path(name: str) -> ObjectPath:
    return ObjectPath("tablestore", "default", name)


def ran(env: ts.TableEnvironment, now: str) -> list[tuple[str, int]]:
    found = env.refresh_due(at(now))
    assert all(one.error is None for one in found)
    return [(one.table.name, one.schedule_ms) for one in found]


def test_a_full_table_is_refreshed_at_its_times_and_each_of_them_once(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(HOURLY)
    assert ran(env, "2026-03-01T08:59:59") == []
    with pytest.raises(ts.NotFoundError, match="was not filled yet"):
        env.execute_sql("SELECT * FROM t").to_arrow()
    assert ran(env, "2026-03-01T09:00:00") == [("t", at("2026-03-01T09:00:00"))]
    assert ran(env, "2026-03-01T09:00:00") == []
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(1,), (2,), (3,)]
    env.execute_sql("INSERT INTO s VALUES (4, 'x')")
    assert ran(env, "2026-03-01T12:30:00") == [("t", at("2026-03-01T12:00:00"))]
    assert rows_of(env.sql_query("SELECT count(*) FROM t")) == [(4,)]


def test_a_suspended_table_is_not_due_and_a_resumed_one_is_from_then_on(env: ts.TableEnvironment, clock: ManualClock) -> None:
    env.execute_sql(HOURLY)
    env.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    assert ran(env, "2026-03-01T12:30:00") == []
    clock.advance(5 * 3600)
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert ran(env, "2026-03-01T13:30:00") == []
    assert ran(env, "2026-03-01T14:00:00") == [("t", at("2026-03-01T14:00:00"))]


def test_a_refresh_that_was_asked_for_counts(env: ts.TableEnvironment, clock: ManualClock) -> None:
    env.execute_sql(HOURLY)
    clock.advance(3600)
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH").to_arrow().to_pylist()
    assert (row["mode"], row["reason"], row["snapshot_id"]) == ("full", "it is the first refresh", 1)
    assert row["job_id"]
    assert ran(env, "2026-03-01T09:30:00") == []
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH").to_arrow().to_pylist()
    assert (row["mode"], row["snapshot_id"]) == ("none", None)


def test_the_partition_that_has_just_closed_is_refreshed(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(DAILY)
    assert ran(env, "2026-03-02T00:00:00") == [("d", at("2026-03-02T00:00:00"))]
    assert rows_of(env.sql_query("SELECT id, day FROM d")) == [(2, "2026-03-01")]
    env.execute_sql("INSERT INTO s VALUES (5, '2026-03-02'), (6, '2026-03-03'), (7, '2026-03-01')")
    midnights = [("d", at("2026-03-03T00:00:00")), ("d", at("2026-03-04T00:00:00"))]
    assert ran(env, "2026-03-04T11:00:00") == midnights, "no period is left out"
    assert rows_of(env.sql_query("SELECT id FROM d ORDER BY id")) == [(2,), (5,), (6,)]
    assert ran(env, "2026-03-04T23:59:59") == []
    assert ran(env, "2026-03-05T00:00:00") == [("d", at("2026-03-05T00:00:00"))], "an empty period is refreshed once too"
    assert ran(env, "2026-03-05T00:00:00") == []


def test_a_partition_begins_and_ends_with_the_day_where_the_table_is(env: ts.TableEnvironment) -> None:
    env.execute_sql(DAILY)
    found = open_materialized(env._session, path("d"))
    assert partition_of_schedule(found, at("2026-03-02T00:00:00")) == {"day": "2026-03-01"}
    assert partition_of_schedule(found, at("2026-03-02T00:00:00") - 1000) == {"day": "2026-02-28"}


def test_refresh_of_a_partition_leaves_the_others_as_they_are(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(DAILY)
    env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH")
    env.execute_sql("DELETE FROM s")
    env.execute_sql("INSERT INTO s VALUES (8, '2026-03-01'), (9, '2026-02-28')")
    env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH PARTITION (day = '2026-03-01')")
    assert rows_of(env.sql_query("SELECT id FROM d ORDER BY id")) == [(1,), (3,), (8,)]
    env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH PARTITION (day = NULL)")
    assert rows_of(env.sql_query("SELECT id FROM d ORDER BY id")) == [(1,), (8,)]
    env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH PARTITION (day = 'it''s')")
    assert ran(env, "2026-03-01T09:30:00") == [], "a partition that was asked for is no scheduled refresh"
    env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH")
    assert rows_of(env.sql_query("SELECT id FROM d ORDER BY id")) == [(8,), (9,)]


def test_verify_compares_the_refreshed_rows_with_the_query(env: ts.TableEnvironment) -> None:
    env.execute_sql(HOURLY)
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH VERIFY").to_arrow().to_pylist()
    assert (row["mode"], row["missing"], row["extra"]) == ("full", 0, 0)
    env.execute_sql("INSERT INTO s VALUES (4, 'x')")
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH VERIFY").to_arrow().to_pylist()
    assert (row["mode"], row["missing"], row["extra"]) == ("incremental", 0, 0)
    env.execute_sql(DAILY)
    with pytest.raises(ts.UnsupportedError, match="leave PARTITION out"):
        env.execute_sql("ALTER MATERIALIZED TABLE d REFRESH PARTITION (day = 'x') VERIFY")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("month = '1'", "The partition spec contains unknown partition keys: month."),
        (
            "id = '1'",
            "Currently, refreshing materialized table only supports referring to char, varchar and string type partition keys.",
        ),
    ],
)
def test_a_partition_that_cannot_be_refreshed_is_refused(env: ts.TableEnvironment, spec: str, message: str) -> None:
    env.execute_sql("CREATE MATERIALIZED TABLE p PARTITIONED BY (day, id) REFRESH_MODE = FULL AS SELECT id, day, 1 AS n FROM s")
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql(f"ALTER MATERIALIZED TABLE p REFRESH PARTITION ({spec})")
    assert message in str(error.value) and "line 1" in str(error.value)


def test_sources_are_refreshed_before_what_is_made_from_them(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(HOURLY.replace("TABLE t", "TABLE z"))
    env.execute_sql(HOURLY.replace("TABLE t", "TABLE m").replace("FROM s", "FROM z"))
    env.execute_sql(HOURLY.replace("TABLE t", "TABLE a").replace("FROM s", "FROM m"))
    assert [name for name, _ in ran(env, "2026-03-01T09:00:00")] == ["z", "m", "a"]
    assert rows_of(env.sql_query("SELECT count(*) FROM a")) == [(3,)]


def test_an_error_of_one_table_does_not_keep_the_others_and_it_stays_due(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE gone (id BIGINT)")
    env.execute_sql(HOURLY.replace("TABLE t", "TABLE a").replace("id, day FROM s", "id FROM gone"))
    env.execute_sql(HOURLY)
    env.execute_sql("DROP TABLE gone")
    first, second = env.refresh_due(at("2026-03-01T09:00:00"))
    assert first.table.name == "a" and isinstance(first.error, ts.NotFoundError) and "gone" in str(first.error)
    assert second.report is not None
    (again,) = env.refresh_due(at("2026-03-01T09:30:00"))
    assert again.table.name == "a" and again.schedule_ms == at("2026-03-01T09:00:00")


@pytest.mark.parametrize("statement", [HOURLY, DAILY])
def test_of_two_schedulers_each_refresh_is_made_by_one(
    env: ts.TableEnvironment, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    env.execute_sql(statement)
    name = "t" if statement == HOURLY else "d"
    now = at("2026-03-02T00:00:00")
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", clock=clock) as other:
        found = []

        def first(*arguments: Any) -> Any:
            # The other one, and new rows, come between the look at what is due and the refresh.
            monkeypatch.setattr(dues, "refresh_scheduled", scheduled)
            found.extend(other.refresh_due(now))
            env.execute_sql("INSERT INTO s VALUES (4, '2026-03-01')")
            return scheduled(*arguments)

        scheduled = dues.refresh_scheduled
        monkeypatch.setattr(dues, "refresh_scheduled", first)
        left = env.refresh_due(now)
        assert all(one.report is not None and one.report.mode == "none" for one in left), "its round began before the new rows"
        (done,) = found
        assert done.error is None and done.table.name == name
    table = open_materialized(env._session, path(name))
    assert len(table.table.snapshots()) == 1
    note = last_refresh(table)
    assert note is not None and note.schedule_ms == now


def test_a_continuous_table_is_left_to_its_job(env: ts.TableEnvironment, clock: ManualClock) -> None:
    env.execute_sql(HOURLY.replace("AS SELECT", "REFRESH_MODE = CONTINUOUS AS SELECT"))
    assert env.refresh_due(START + 10 * HOUR) == ()


def test_rows_that_somebody_else_wrote_are_found_and_made_anew(
    env: ts.TableEnvironment, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.execute_sql(HOURLY)
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    table = open_materialized(env._session, path("t")).table
    env.execute_sql("INSERT INTO s VALUES (4, 'x')")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    with monkeypatch.context() as another_engine:
        # It does not know what a materialized table is.
        another_engine.setattr("tablestore.table.history.restore.check_takes_rows", lambda _: None)
        table.rollback_to(1)
    assert len(table.snapshots()) == 3
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH").to_arrow().to_pylist()
    assert row["mode"] == "full"
    assert rows_of(env.sql_query("SELECT count(*) FROM t")) == [(4,)]
