"""How fresh tables are: figures, and their text for collectors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.materialized.figures.openmetrics import metrics_text
from tablestore.testing.deterministic import ManualClock

START = 1_772_352_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start_ms=START)


@pytest.fixture
def env(tmp_path: Path, clock: ManualClock) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", clock=clock) as made:
        made.execute_sql("CREATE TABLE s (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED)")
        made.execute_sql("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL AS SELECT id, item FROM s")
        yield made


def test_the_lag_is_the_age_of_the_oldest_commit_that_is_not_shown(env: ts.TableEnvironment, clock: ManualClock) -> None:
    (before,) = env.freshness()
    assert (before.target_ms, before.lag_ms, before.last, before.is_late) == (3_600_000, 0, None, False)
    clock.advance(60)
    env.execute_sql("INSERT INTO s VALUES (1, 'pen')")
    clock.advance(600)
    env.execute_sql("INSERT INTO s VALUES (2, 'ink')")
    clock.advance(3300)
    (late,) = env.freshness("default")
    assert late.lag_ms is not None
    assert 3_900_000 <= late.lag_ms < 3_960_000
    assert late.is_late
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    (fresh,) = env.freshness()
    assert (fresh.lag_ms, fresh.is_late) == (0, False)
    assert fresh.last is not None
    assert (fresh.last.mode, fresh.last.reason, fresh.last.rows_more) == ("full", "it is the first refresh", 2)


def test_a_compaction_of_a_source_makes_nothing_late(env: ts.TableEnvironment, clock: ManualClock) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 'pen')")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    env.execute_sql("ALTER TABLE s COMPACT")
    clock.advance(7200)
    assert [one.lag_ms for one in env.freshness()] == [0]


def test_the_lag_of_a_table_whose_source_is_gone_is_not_known(env: ts.TableEnvironment) -> None:
    env.execute_sql("DROP TABLE s")
    assert [one.lag_ms for one in env.freshness()] == [None]
    assert "lag_seconds{" not in metrics_text(env.freshness(), {})


def test_the_history_holds_each_refresh_newest_first(env: ts.TableEnvironment) -> None:
    assert env.refresh_history("t") == ()
    for number in (1, 2):
        env.execute_sql(f"INSERT INTO s VALUES ({number}, 'pen')")
        env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    past = [(one.mode, one.rows_in, one.rows_out, one.rows_more) for one in env.refresh_history("t")]
    assert past == [("incremental", 1, 1, 1), ("full", None, None, 1)]
    with pytest.raises(ts.InvalidInputError, match="not a materialized table"):
        env.refresh_history("s")


def test_the_figures_are_text_for_collectors(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 'pen')")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    lines = metrics_text(env.freshness(), {'tablestore.default.a"b': 3}).splitlines()
    assert lines[-1] == "# EOF"
    prefix = "tablestore_materialized_table"
    assert f'{prefix}_target_seconds{{table="tablestore.default.t"}} 3600.0' in lines
    assert f'{prefix}_lag_seconds{{table="tablestore.default.t"}} 0.0' in lines
    assert f'{prefix}_refresh_failures_total{{table="tablestore.default.a\\"b"}} 3.0' in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
