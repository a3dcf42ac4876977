"""One round of refreshes shows one set of snapshots, whatever is written while it runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.objectpath import ObjectPath
from tablestore.materialized import due as dues
from tablestore.materialized.due import refresh_chain
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.testing.deterministic import ManualClock

Rows = Callable[[Any], list[tuple[Any, ...]]]
HOUR = 3_600_000
START = 400_000 * HOUR
MADE = "CREATE MATERIALIZED TABLE {} (PRIMARY KEY (id) NOT ENFORCED) FRESHNESS = INTERVAL '1' HOUR AS {}"
HALVES = (
    ("low", "SELECT id, x FROM s"),
    ("high", "SELECT id, x + 1 AS y FROM s"),
    ("both", "SELECT low.id AS id, x, y FROM low JOIN high ON low.id = high.id"),
)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", clock=ManualClock(start_ms=START + 1)) as made:
        made.execute_sql("CREATE TABLE s (id BIGINT, x BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
        made.execute_sql("INSERT INTO s VALUES (1, 0)")
        for name, query in HALVES:
            made.execute_sql(MADE.format(name, query))
        yield made


@pytest.fixture
def write_between(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """Each of these is done before one of the next refreshes."""
    writes: list[Callable[[], Any]] = []
    refresh = dues.refresh_scheduled

    def after_write(*arguments: Any) -> Any:
        if writes:
            writes.pop(0)()
        return refresh(*arguments)

    monkeypatch.setattr(dues, "refresh_scheduled", after_write)
    return writes


def round_of(env: ts.TableEnvironment, hour: int) -> list[str]:
    done = env.refresh_due(START + hour * HOUR)
    assert [one.error for one in done] == [None] * len(done)
    return [f"{one.table.name} {one.report.mode}" for one in done if one.report is not None]


def test_a_table_that_joins_two_of_a_source_never_shows_two_states_of_it(
    env: ts.TableEnvironment, write_between: list[Callable[[], Any]], rows_of: Rows
) -> None:
    for hour in range(1, 4):
        # A write comes before each of the three refreshes.
        write_between[:] = [
            lambda x=10 * hour + part: env.execute_sql(f"INSERT INTO s VALUES (1, {x}), ({x}, {x})") for part in range(3)
        ]
        assert len(round_of(env, hour)) == 3 and not write_between
        seen = rows_of(env.sql_query("SELECT id, x, y FROM both"))
        assert seen and all(y == x + 1 for _, x, y in seen)
        assert sorted(seen)[0][1] == (0 if hour == 1 else 10 * (hour - 1) + 2), "as it was when the round began"
    assert round_of(env, 4) == ["low incremental", "high incremental", "both incremental"]
    assert len(rows_of(env.sql_query("SELECT * FROM both"))) == 1 + 9
    assert rows_of(env.execute_sql("ALTER MATERIALIZED TABLE both REFRESH VERIFY"))


def test_rows_do_not_go_back_where_another_refresh_was_faster_than_the_round(
    env: ts.TableEnvironment, write_between: list[Callable[[], Any]], rows_of: Rows
) -> None:
    round_of(env, 1)

    def outrun() -> None:
        env.execute_sql("INSERT INTO s VALUES (1, 5)")
        env.execute_sql("ALTER MATERIALIZED TABLE low REFRESH")

    env.execute_sql("INSERT INTO s VALUES (1, 4)")
    write_between[:] = [outrun]
    round_of(env, 2)
    assert rows_of(env.sql_query("SELECT x FROM low")) == [(5,)]
    assert rows_of(env.sql_query("SELECT x, y FROM both")) == [(5, 6)]


def test_snapshots_of_a_round_do_not_expire_before_the_first_refresh_of_a_table(
    env: ts.TableEnvironment, write_between: list[Callable[[], Any]], rows_of: Rows
) -> None:
    source = env.catalog().table("default.s")

    def expire() -> None:
        for x in range(5):
            env.execute_sql(f"INSERT INTO s VALUES (2, {x})")
        assert source.expire_snapshots(retain_max=1, retain_min=1)

    write_between[:] = [expire]
    assert len(round_of(env, 1)) == 3
    assert rows_of(env.sql_query("SELECT id, x, y FROM both")) == [(1, 0, 1)]


def test_a_refresh_of_a_partition_leaves_no_hold_and_no_cursor(env: ts.TableEnvironment, rows_of: Rows) -> None:
    holds = RetentionLeases(env.catalog().table("default.s").context.files)
    env.execute_sql(
        "CREATE MATERIALIZED TABLE p PARTITIONED BY (day) FRESHNESS = INTERVAL '1' HOUR AS "
        "SELECT id, x, CAST(id AS STRING) AS day FROM s"
    )
    env.execute_sql("ALTER MATERIALIZED TABLE p REFRESH")
    env.execute_sql("INSERT INTO s VALUES (1, 7), (2, 8)")
    env.execute_sql("ALTER MATERIALIZED TABLE p REFRESH PARTITION (day = '1')")
    assert rows_of(env.sql_query("SELECT id, x FROM p")) == [(1, 7)]
    assert not list(holds.all())
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE p REFRESH").to_arrow().to_pylist()
    assert row["mode"] == "full", "its rows are from two snapshots"
    assert rows_of(env.sql_query("SELECT id, x FROM p ORDER BY id")) == [(1, 7), (2, 8)]
    env.execute_sql("INSERT INTO s VALUES (1, 9)")
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE p REFRESH").to_arrow().to_pylist()
    assert row["mode"] == "incremental"
    assert rows_of(env.sql_query("SELECT id, x FROM p ORDER BY id")) == [(1, 9), (2, 8)]
    env.execute_sql("DROP MATERIALIZED TABLE p")
    assert not list(holds.all())


@pytest.mark.deep
def test_a_chain_is_one_round_whatever_the_freshness_of_its_tables(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("ALTER MATERIALIZED TABLE high SET FRESHNESS = INTERVAL '1' DAY")
    env.execute_sql(
        "CREATE MATERIALIZED TABLE top REFRESH_MODE = FULL AS SELECT both.id, both.x, s.x AS now FROM both JOIN s ON both.id = s.id"
    )
    source = env.catalog().table("default.s")
    assert isinstance(source, ts.Table)
    for x in range(1, 4):
        env.execute_sql(f"INSERT INTO s VALUES (1, {x})")
        done = iter(refresh_chain(env._session, ObjectPath("tablestore", "default", "top")))
        first = next(done)
        # What comes now is of the next round, and what the round reads does not expire.
        for _ in range(4):
            env.execute_sql(f"INSERT INTO s VALUES (1, {x + 100})")
        source.expire_snapshots(retain_max=1, retain_min=1)
        names = [one.table.name for one in (first, *done) if one.error is None]
        assert set(names[:2]) == {"low", "high"} and names[2:] == ["both", "top"]
        assert rows_of(env.sql_query("SELECT x, y FROM both")) == [(x, x + 1)]
        assert rows_of(env.sql_query("SELECT x, now FROM top")) == [(x, x)]
    assert [one.report.mode for one in env.refresh_chain("default.top") if one.report] == ["incremental"] * 4
    assert rows_of(env.sql_query("SELECT x, now FROM top")) == [(103, 103)]
    assert [one.report.mode for one in env.refresh_chain("both") if one.report] == ["none"] * 3


def test_a_chain_reads_what_is_suspended_as_it_is_and_ends_at_what_fails(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.refresh_chain("both")
    env.execute_sql("ALTER MATERIALIZED TABLE low SUSPEND")
    env.execute_sql("INSERT INTO s VALUES (1, 7)")
    assert [one.table.name for one in env.refresh_chain("both")] == ["high", "both"]
    assert rows_of(env.sql_query("SELECT x, y FROM both")) == [(0, 8)]
    env.execute_sql("ALTER MATERIALIZED TABLE low RESUME")
    env.execute_sql("ALTER TABLE s RENAME COLUMN x TO z")
    (failed,) = env.refresh_chain("both")
    assert failed.table.name in ("low", "high") and failed.report is None and "x" in str(failed.error)
    for name, message in (("s", "is not a materialized table"), ("nowhere", "does not exist")):
        with pytest.raises(ts.TablestoreError, match=message):
            env.refresh_chain(name)
