"""The states of a materialized table: every transition, and the words of each that is refused."""

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.jobs import Job, Jobs, JobStatus
from tablestore.environment.objectpath import ObjectPath
from tablestore.materialized import workflows
from tablestore.materialized.continuous import handler_of
from tablestore.materialized.difference import diff
from tablestore.materialized.materializedtable import RefreshStatus, definition_of, upkeep_of
from tablestore.materialized.refreshing import CONFLICTS, last_refresh, refresh_once
from tablestore.materialized.storing import StoredTable, check_storable, open_materialized, store

Rows = Callable[[Any], list[tuple[Any, ...]]]
CONTINUOUS = "CREATE OR ALTER MATERIALIZED TABLE t FRESHNESS = INTERVAL '5' MINUTE AS SELECT id, v FROM s WHERE v > 1"
FULL = CONTINUOUS.replace("FRESHNESS = INTERVAL '5' MINUTE", "REFRESH_MODE = FULL")
PATH = ObjectPath("tablestore", "default", "t")
NAME = str(PATH)


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE s (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO s VALUES (1, 1), (2, 2), (3, 3)")
    return duck


@pytest.fixture
def other(env: ts.TableEnvironment, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        yield made


def found(env: ts.TableEnvironment) -> StoredTable:
    return open_materialized(env._session, PATH)


def status(env: ts.TableEnvironment) -> RefreshStatus:
    return found(env).upkeep.status


def jobs(env: ts.TableEnvironment) -> list[str]:
    return [str(job) for job in env.execute_sql("SHOW JOBS").to_arrow()["job_id"].to_pylist()]


def refused(env: ts.TableEnvironment, text: str, message: str) -> None:
    with pytest.raises(ts.TablestoreError) as error:
        env.execute_sql(text)
    assert message in str(error.value)


def initializing(env: ts.TableEnvironment) -> None:
    """A table as its creator leaves it that dies in the middle."""
    env.execute_sql(FULL)
    now = found(env)
    store(now, replace(now.upkeep, status=RefreshStatus.INITIALIZING))


# -- suspend and resume


def test_suspend_ends_the_job_and_resume_starts_another_one(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(CONTINUOUS)
    (job,) = jobs(env)
    refused(
        env,
        "ALTER MATERIALIZED TABLE t RESUME",
        f"Materialized table {NAME} continuous refresh job has been resumed, jobId is {job}.",
    )
    env.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    assert (status(env), jobs(env)) == (RefreshStatus.SUSPENDED, [])
    refused(
        env,
        "ALTER MATERIALIZED TABLE t SUSPEND",
        f"Materialized table {NAME} continuous refresh job has been suspended, jobId is {job}.",
    )
    env.execute_sql("INSERT INTO s VALUES (4, 4)")
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME WITH ('data-file.prefix' = 'resumed-')")
    assert status(env) is RefreshStatus.ACTIVATED and len(jobs(env)) == 1 and jobs(env) != [job]
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,), (4,)]
    table = found(env).table
    assert "data-file.prefix" not in table.options()
    assert any(path.rpartition("/")[2].startswith("resumed-") for path in table.files()["file_path"].to_pylist())


def test_the_workflow_of_full_refreshes_is_suspended_and_resumed(env: ts.TableEnvironment) -> None:
    env.execute_sql(FULL)
    refused(env, "ALTER MATERIALIZED TABLE t RESUME", f"Materialized table {NAME} refresh workflow has been resumed.")
    env.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    refused(env, "ALTER MATERIALIZED TABLE t SUSPEND", f"Materialized table {NAME} refresh workflow has been suspended.")
    refused(
        env, "ALTER MATERIALIZED TABLE t RESUME WITH ('write-buffer-size' = '8 mb')", "RESUME WITH is for the job of a continuous"
    )
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert status(env) is RefreshStatus.ACTIVATED


def test_a_table_whose_job_has_died_is_resumed(env: ts.TableEnvironment, other: ts.TableEnvironment, tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as first:
        first.execute_sql(CONTINUOUS)
    assert status(env) is RefreshStatus.ACTIVATED
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert len(jobs(env)) == 1


def test_options_of_a_resume_that_no_table_has_are_refused_and_it_stays_suspended(env: ts.TableEnvironment) -> None:
    env.execute_sql(CONTINUOUS)
    env.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    refused(env, "ALTER MATERIALIZED TABLE t RESUME WITH ('no.such' = '1')", "unknown table option 'no.such'")
    assert (status(env), jobs(env)) == (RefreshStatus.SUSPENDED, [])


def test_a_null_in_a_key_stops_the_refresh_and_names_the_column(env: ts.TableEnvironment, rows_of: Rows) -> None:
    query = "AS SELECT v, count(*) AS n FROM s GROUP BY v"
    named = "column 'v' of table tablestore.default.t is NOT NULL, found nulls in 1 of 4 rows: a PRIMARY KEY takes no NULL"
    env.execute_sql("INSERT INTO s VALUES (4, NULL)")
    refused(env, f"CREATE MATERIALIZED TABLE t (PRIMARY KEY (v) NOT ENFORCED) FRESHNESS = INTERVAL '1' MINUTE {query}", named)
    assert env.list_tables() == ("s",) and jobs(env) == []
    env.execute_sql(f"CREATE MATERIALIZED TABLE t (PRIMARY KEY (v) NOT ENFORCED) REFRESH_MODE = FULL {query}")
    refused(env, "ALTER MATERIALIZED TABLE t REFRESH", named)
    env.execute_sql("DELETE FROM s WHERE id = 4")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    env.execute_sql("INSERT INTO s VALUES (1, NULL), (2, 3)")
    refused(env, "ALTER MATERIALIZED TABLE t REFRESH", named.replace("1 of 4", "1 of 2"))
    assert rows_of(env.sql_query("SELECT v, n FROM t ORDER BY v")) == [(1, 1), (2, 1), (3, 1)]
    env.execute_sql("DELETE FROM s WHERE v IS NULL")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    assert rows_of(env.sql_query("SELECT v, n FROM t ORDER BY v")) == [(3, 2)]


def test_a_suspended_table_that_is_altered_stays_suspended(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(CONTINUOUS)
    env.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    env.execute_sql(CONTINUOUS.replace("id, v", "id, v, v * 2 AS w").replace("> 1", "> 2"))
    assert (status(env), jobs(env)) == (RefreshStatus.SUSPENDED, [])
    assert found(env).table.schema.names == ["id", "v", "w"]
    env.execute_sql("ALTER MATERIALIZED TABLE t SET REFRESH_MODE = FULL")
    env.execute_sql("ALTER MATERIALIZED TABLE t SET REFRESH_MODE = CONTINUOUS")
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert rows_of(env.sql_query("SELECT * FROM t")) == [(3, 3, 6)]


# -- initializing


@pytest.mark.parametrize("operation", ["suspend", "resume", "refresh"])
def test_nothing_is_done_with_a_table_that_is_being_initialized(env: ts.TableEnvironment, operation: str) -> None:
    initializing(env)
    message = f"Materialized table {NAME} is being initialized and does not support {operation} operation."
    refused(env, f"ALTER MATERIALIZED TABLE t {operation.upper()}", message)


def test_a_table_that_is_being_initialized_is_not_altered_and_dropped_only_if_nobody_makes_it(env: ts.TableEnvironment) -> None:
    initializing(env)
    creation = env.catalog().intend_creation("maker", "default.t")
    message = f"Materialized table {NAME} is being initialized and does not support alter operation."
    for text in (
        CONTINUOUS,
        "ALTER MATERIALIZED TABLE t AS SELECT id FROM s",
        "ALTER MATERIALIZED TABLE t SET ('write-only'='true')",
    ):
        refused(env, text, message)
    message = f"Current refresh status of materialized table {NAME} is initializing, skip the drop operation."
    refused(env, "DROP MATERIALIZED TABLE t", message)
    creation.finished()
    env.execute_sql("DROP MATERIALIZED TABLE t")
    assert env.list_tables() == ("s",)


# -- creation that fails


def test_a_query_that_fails_leaves_no_table_and_no_job(env: ts.TableEnvironment) -> None:
    text = "CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '5' MINUTE AS SELECT id, CAST(concat('x', id) AS INT) AS n FROM s"
    refused(env, text, f"Submit continuous refresh job for materialized table {NAME} occur exception.")
    assert (jobs(env), env.list_tables(), env.catalog().list_creations()) == ([], ("s",), ())


def test_a_job_that_cannot_be_started_leaves_no_table(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(self: Jobs, job: Job[Any], *, ends: bool = True) -> Job[Any]:
        raise ts.StorageError("no thread is left")

    monkeypatch.setattr(Jobs, "launch", launch)
    refused(env, CONTINUOUS, f"Submit continuous refresh job for materialized table {NAME} occur exception.")
    assert (env.list_tables(), env.catalog().list_creations()) == (("s",), ())


class Failing(workflows.EmbeddedScheduler):
    """A scheduler that makes no workflows."""

    def create_refresh_workflow(self, workflow: workflows.RefreshWorkflow) -> str:
        raise ts.StorageError("the scheduler is down")


def test_full_refreshes_need_a_scheduler_that_makes_the_workflow(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    env.get_config().set("workflow-scheduler.type", "none")
    message = "The workflow scheduler must be configured when creating materialized table in full refresh mode."
    refused(env, FULL, message)
    env.get_config().set("workflow-scheduler.type", "embeded")
    refused(env, FULL, "did you mean 'embedded'?")
    env.get_config().set("workflow-scheduler.type", "embedded")
    monkeypatch.setattr(workflows, "open_scheduler", lambda name: Failing())
    refused(env, FULL, f"Failed to create refresh workflow for materialized table {NAME}.")
    assert env.list_tables() == ("s",)


@pytest.mark.deep
def test_a_creator_that_is_killed_is_in_nobodys_way_and_what_it_leaves_is_swept(
    env: ts.TableEnvironment, tmp_path: Path, rows_of: Rows
) -> None:
    program = """
import os, sys
import tablestore as ts
from tablestore.materialized import newversion

newversion.hold_cursor = lambda *_: os._exit(9)
ts.TableEnvironment.create(sys.argv[1], engine="duckdb").execute_sql(sys.argv[2])
"""
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path / "wh"), CONTINUOUS], env=dict(os.environ), check=False)
    assert ran.returncode == 9 and env.list_tables() == ("s",)
    refused(env, "SELECT * FROM t", "It is being made and filled since")
    refused(env, "ALTER MATERIALIZED TABLE t REFRESH", "create it again: nothing is in the way")
    env.execute_sql(CONTINUOUS)
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,)]
    (report,) = env.catalog().sweep_creations(timedelta(0)).creations
    assert (report.table, report.outcome) == ("default.t", "removed")
    assert len(env.catalog().release_dead_holds()) == 1
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,)]


@pytest.mark.deep
def test_a_refresher_that_is_killed_leaves_a_table_that_is_due(env: ts.TableEnvironment, tmp_path: Path, rows_of: Rows) -> None:
    program = """
import os, sys
import tablestore as ts

env = ts.TableEnvironment.create(sys.argv[1], engine="duckdb")
env.execute_sql(sys.argv[2])
os._exit(9)
"""
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path / "wh"), CONTINUOUS], env=dict(os.environ), check=False)
    assert ran.returncode == 9
    env.execute_sql("INSERT INTO s VALUES (4, 4)")
    later = found(env).upkeep.since_ms + 600_000
    (refresh,) = env.refresh_due(later)
    assert refresh.error is None and refresh.report is not None and refresh.report.mode == "incremental"
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,), (4,)]
    env.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert len(jobs(env)) == 1


@pytest.mark.deep
def test_a_refresher_whose_environment_is_closed_leaves_a_table_that_is_due_while_its_process_goes_on(
    env: ts.TableEnvironment, tmp_path: Path, rows_of: Rows
) -> None:
    program = """
import sys
import tablestore as ts

env = ts.TableEnvironment.create(sys.argv[1], engine="duckdb")
env.execute_sql(sys.argv[2])
print("runs", flush=True)
sys.stdin.readline()
env.close()
print("is closed", flush=True)
sys.stdin.readline()
"""
    command = [sys.executable, "-c", program, str(tmp_path / "wh"), CONTINUOUS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "runs\n"
        env.execute_sql("INSERT INTO s VALUES (4, 4)")
        later = found(env).upkeep.since_ms + 600_000
        assert env.refresh_due(later) == ()
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "is closed\n"
        assert other.poll() is None
        (refresh,) = env.refresh_due(later)
        assert refresh.error is None
        assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,), (4,)]
        other.stdin.write("\n")


# -- altering that fails


def test_an_altered_query_that_fails_leaves_definition_columns_and_job_as_they_were(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    env.execute_sql(CONTINUOUS)
    before = found(env).definition
    broken = CONTINUOUS.replace("id, v ", "id, v, CAST(concat('x', id) AS INT) AS w ").replace("'5'", "'4'")
    with pytest.raises(ts.TablestoreError) as error:
        env.execute_sql(broken)
    assert "Failed to start the continuous refresh job using new query SELECT id, v, CAST(concat('x', id) AS INT) AS w" in str(
        error.value
    )
    assert f"when altering materialized table {NAME} select query." in str(error.value)
    assert found(env).definition == before
    assert (status(env), len(jobs(env))) == (RefreshStatus.ACTIVATED, 1)
    env.execute_sql(CONTINUOUS)
    env.execute_sql("INSERT INTO s VALUES (5, 5)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    assert rows_of(env.sql_query("SELECT * FROM t ORDER BY id")) == [(2, 2), (3, 3), (5, 5)]


def test_a_definition_that_another_session_has_changed_is_not_overwritten(
    env: ts.TableEnvironment, other: ts.TableEnvironment
) -> None:
    env.execute_sql(FULL)
    stale = found(env)
    other.execute_sql("ALTER MATERIALIZED TABLE t SET ('write-only' = 'true')")
    with pytest.raises(ts.ConflictError, match="was changed by another session meanwhile"):
        store(stale, stale.upkeep)
    plan = diff(stale.definition, replace(stale.definition, options={"write-only": "false"}), same_query=True)
    with pytest.raises(ts.ConflictError, match="was changed by another session meanwhile"):
        check_storable(stale, plan, filled=False)
    assert found(env).definition.options == {"write-only": "true"}


# -- refreshers that are left behind


@pytest.mark.parametrize(
    "text", ["ALTER MATERIALIZED TABLE t SUSPEND", "ALTER MATERIALIZED TABLE t AS SELECT id, v FROM s WHERE v > 2"]
)
def test_a_refresh_that_began_under_another_definition_does_not_land(
    env: ts.TableEnvironment, other: ts.TableEnvironment, text: str
) -> None:
    env.execute_sql(FULL)
    stale = found(env)
    other.execute_sql(text)
    with pytest.raises(ts.ConflictError) as error:
        refresh_once(env._session, stale)
    assert error.value.kind in CONFLICTS
    followed = replace(stale, table=found(env).table)
    with pytest.raises(ts.ConflictError, match="was altered, suspended or resumed meanwhile"):
        refresh_once(env._session, followed)
    assert found(env).table.snapshots() == ()


def test_a_refresh_that_began_under_other_columns_is_a_conflict_and_no_error_of_the_query(
    env: ts.TableEnvironment, other: ts.TableEnvironment
) -> None:
    env.execute_sql("CREATE MATERIALIZED TABLE t (PRIMARY KEY (id) NOT ENFORCED) REFRESH_MODE = FULL AS SELECT id, v FROM s")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    env.execute_sql("INSERT INTO s VALUES (4, 4)")
    stale = found(env)
    other.execute_sql("ALTER MATERIALIZED TABLE t AS SELECT id, v, v + 1 AS more FROM s")
    with pytest.raises(ts.ConflictError, match="was altered, suspended or resumed meanwhile"):
        refresh_once(env._session, stale, before=last_refresh(stale))
    assert env.freshness()[0].error is None
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    assert env.execute_sql("SELECT more FROM t ORDER BY id").to_arrow()["more"].to_pylist() == [2, 3, 4, 5]


def test_of_two_refreshes_that_began_at_one_time_one_lands(env: ts.TableEnvironment) -> None:
    env.execute_sql(FULL)
    one, two = found(env), found(env)
    last = last_refresh(one)
    refresh_once(env._session, one, before=last)
    env.execute_sql("INSERT INTO s VALUES (9, 9)")
    with pytest.raises(ts.ConflictError, match="was refreshed by another job meanwhile"):
        refresh_once(env._session, two, before=last)
    assert len(found(env).table.snapshots()) == 1


class Rounds:
    """Lets the loop of a continuous table go from round to round."""

    def __init__(self) -> None:
        self._asked = threading.Semaphore(0)
        # One of each job: else a job could take what another one is to go on by.
        self._go: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(0))
        self.seconds: list[float] = []

    def pause(self, job: Job[Any], seconds: float) -> None:
        self.seconds.append(seconds)
        self._asked.release()
        self._go[job.id].acquire()
        job.check()

    def ended(self) -> bool:
        """Wait for the end of a round."""
        return self._asked.acquire(timeout=30)

    def next(self, job: Job[Any]) -> None:
        """Begin the next one of a job."""
        self._go[job.id].release()


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    made = Rounds()
    monkeypatch.setattr(Job, "pause", lambda job, seconds: made.pause(job, seconds))
    return made


def test_a_job_that_another_session_has_taken_over_ends_by_itself(
    env: ts.TableEnvironment, other: ts.TableEnvironment, rounds: Rounds
) -> None:
    env.execute_sql(CONTINUOUS)
    assert rounds.ended()
    (job,) = env._session.jobs.under_way()
    other.execute_sql("ALTER MATERIALIZED TABLE t SUSPEND")
    other.execute_sql("ALTER MATERIALIZED TABLE t RESUME")
    assert rounds.ended()
    rounds.next(job)
    assert job.wait(timeout=30) and job.status is JobStatus.FINISHED
    for running in other._session.jobs.under_way():
        running.cancel()
        rounds.next(running)


def test_the_loop_refreshes_again_after_its_interval(env: ts.TableEnvironment, rounds: Rounds, rows_of: Rows) -> None:
    env.execute_sql(CONTINUOUS)
    assert rounds.ended()
    (job,) = env._session.jobs.under_way()
    env.execute_sql("INSERT INTO s VALUES (4, 4)")
    rounds.next(job)
    assert rounds.ended() and rounds.seconds == [300, 300]
    assert rows_of(env.sql_query("SELECT id FROM t ORDER BY id")) == [(2,), (3,), (4,)]
    env.execute_sql("DROP TABLE s")
    rounds.next(job)
    assert rounds.ended(), "a source that is gone does not end the job"
    job.cancel()
    rounds.next(job)


# -- drop


def test_drop_ends_the_job_and_lets_go_of_the_sources(env: ts.TableEnvironment) -> None:
    env.execute_sql(CONTINUOUS)
    env.execute_sql("DROP MATERIALIZED TABLE t")
    assert (jobs(env), env.list_tables()) == ([], ("s",))
    env.execute_sql("DROP MATERIALIZED TABLE IF EXISTS t")
    refused(env, "DROP MATERIALIZED TABLE t", f"Materialized table with identifier {NAME} does not exist.")


@pytest.mark.parametrize(
    "text",
    [
        "DROP MATERIALIZED TABLE s",
        "ALTER MATERIALIZED TABLE s SUSPEND",
        "ALTER MATERIALIZED TABLE s RESUME",
        "ALTER MATERIALIZED TABLE s REFRESH",
        "ALTER MATERIALIZED TABLE s AS SELECT 1 AS a",
        "SHOW CREATE MATERIALIZED TABLE s",
    ],
)
def test_a_plain_table_is_no_materialized_one(env: ts.TableEnvironment, text: str) -> None:
    message = "Table tablestore.default.s is not a materialized table, does not support materialized table related operation."
    refused(env, text, message)


def test_handlers_are_kept_and_shown(env: ts.TableEnvironment) -> None:
    env.execute_sql(CONTINUOUS)
    (job,) = jobs(env)
    table = found(env).table
    assert upkeep_of(table.table_schema).handler == handler_of(job)
    shown = {row["name"]: row["value"] for row in env.execute_sql("DESCRIBE EXTENDED t").to_arrow().to_pylist()}
    assert shown["refresh-handler"] == handler_of(job).summary
    assert shown["original-query"] == definition_of(table.table_schema).original_query
    assert (shown["freshness"], shown["refresh-mode"], shown["refresh-status"]) == (
        "INTERVAL '5' MINUTE",
        "CONTINUOUS",
        "ACTIVATED",
    )
    assert (shown["last-refresh-mode"], shown["last-refresh-reason"]) == ("full", "it is the first refresh")
