"""A materialized table comes to be whole or not at all: for its session, for others meanwhile, and beside other statements."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.objectpath import ObjectPath
from tablestore.io.local import LocalFileStore
from tablestore.materialized.materializedtable import RefreshStatus
from tablestore.materialized.storing import open_materialized
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FileCall
from tests.materialized.test_evolution_crashes import opened
from tests.table.creation.places import RenamingFaultyStore

Rows = Callable[[Any], list[tuple[Any, ...]]]
PATH = ObjectPath("tablestore", "default", "m")
MAKE = "CREATE OR ALTER MATERIALIZED TABLE m FRESHNESS = INTERVAL '5' MINUTE AS SELECT id, v FROM s"
FAILS = MAKE.replace("id, v", "id, CAST(concat('x', v) AS INT) AS v")
ADDS = MAKE.replace("id, v", "id, v, v * 2 AS w")
ADDS_AND_FAILS = MAKE.replace("id, v", "id, v, CAST(concat('x', v) AS INT) AS w")


class Sessions:
    """A session whose calls of the store can be watched, and another one, over one warehouse."""

    def __init__(self, place: Path) -> None:
        (place / "wh").mkdir()
        files, self.clock, self.faults = LocalFileStore(place / "wh"), ManualClock(), Faults()
        self.first = ts.TableEnvironment.create(
            opened(RenamingFaultyStore(files, self.faults), self.clock), engine="duckdb", clock=self.clock
        )
        self.other = ts.TableEnvironment.create(opened(files, self.clock), engine="duckdb", clock=self.clock)

    def while_filling(self, act: Callable[[], object]) -> None:
        """Do this once in the middle of the next statement of the first session that fills a table."""

        def once(call: FileCall) -> None:
            if call.path.startswith("_ctas") and "/schema/" in call.path:
                self.faults.clear()
                act()

        self.faults.after(once, op="publish_if_absent")

    def close(self) -> None:
        self.first.close()
        self.other.close()


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    made = Sessions(tmp_path)
    made.first.execute_sql("CREATE TABLE s (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
    made.first.execute_sql("INSERT INTO s VALUES (1, 1), (2, 2)")
    yield made
    made.close()


def shown_jobs(env: ts.TableEnvironment) -> list[dict[str, Any]]:
    return env.execute_sql("SHOW JOBS").to_arrow().to_pylist()


def shown_error(env: ts.TableEnvironment) -> str | None:
    rows = env.execute_sql("DESCRIBE EXTENDED m").to_arrow().to_pylist()
    return next(row["value"] for row in rows if row["name"] == "last-error")


def query_of(env: ts.TableEnvironment) -> str:
    return env.materialized_table("m").get_original_query()


def nothing_is_left(sessions: Sessions) -> None:
    assert sessions.first.catalog().list_creations() == ()
    assert sessions.first.list_tables() == ("s",)


# -- two sessions


@pytest.mark.parametrize("fails", [FAILS, MAKE.replace("CREATE OR ALTER", "CREATE")], ids=["its query", "its name"])
def test_a_creation_that_fails_takes_nothing_from_the_session_that_was_first(sessions: Sessions, rows_of: Rows, fails: str) -> None:
    sessions.while_filling(lambda: sessions.other.execute_sql(MAKE))
    with pytest.raises(ts.TablestoreError, match=r"There is no table|already exists: CREATE OR ALTER"):
        sessions.first.execute_sql(fails)
    assert query_of(sessions.other) == "SELECT id, v FROM s" and shown_jobs(sessions.first) == []
    (job,) = shown_jobs(sessions.other)
    assert job["status"] == "RUNNING"
    assert rows_of(sessions.other.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1), (2, 2)]


def test_of_two_sessions_with_the_same_statement_one_makes_the_table_and_both_are_right(sessions: Sessions, rows_of: Rows) -> None:
    sessions.while_filling(lambda: sessions.other.execute_sql(MAKE))
    sessions.first.execute_sql(MAKE)
    assert shown_jobs(sessions.first) == [] and len(shown_jobs(sessions.other)) == 1
    assert rows_of(sessions.first.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1), (2, 2)]
    assert sessions.first.catalog().list_creations() == ()


def test_a_session_that_was_second_alters_what_the_first_has_made(sessions: Sessions, rows_of: Rows) -> None:
    sessions.while_filling(lambda: sessions.other.execute_sql(MAKE))
    sessions.first.execute_sql(ADDS)
    assert rows_of(sessions.other.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1, 2), (2, 2, 4)]
    assert len(shown_jobs(sessions.first)) == 1


def test_a_table_that_is_being_filled_is_seen_by_nobody_and_who_asks_for_it_is_told(sessions: Sessions) -> None:
    said: list[str] = []

    def look() -> None:
        assert sessions.other.list_tables() == ("s",)
        for text in ("SELECT * FROM m", "ALTER MATERIALIZED TABLE m AS SELECT id FROM s", "DROP MATERIALIZED TABLE m"):
            with pytest.raises(ts.NotFoundError) as error:
                sessions.other.execute_sql(text)
            said.append(str(error.value))

    sessions.while_filling(look)
    sessions.first.execute_sql(MAKE)
    assert len(said) == 3 and all("It is being made and filled since" in one for one in said)


def test_an_alteration_that_fails_leaves_what_another_session_has_made_of_the_table(sessions: Sessions, rows_of: Rows) -> None:
    sessions.first.execute_sql(MAKE)
    sessions.while_filling(lambda: sessions.other.execute_sql(ADDS))
    with pytest.raises(ts.ConflictError) as error:
        sessions.first.execute_sql(MAKE.replace("FROM s", "FROM s WHERE v > 1"))
    assert error.value.kind == "materialized-changed"
    assert rows_of(sessions.first.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1, 2), (2, 2, 4)]
    assert len(shown_jobs(sessions.other)) == 1


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("again", [False, True], ids=["dropped", "dropped and made again"])
@pytest.mark.parametrize("action", ["STAGE AS SELECT id, v FROM s WHERE v > 1", "PROMOTE"])
def test_a_version_is_not_left_beside_a_table_that_was_dropped_meanwhile(sessions: Sessions, action: str, again: bool) -> None:
    sessions.first.execute_sql(MAKE)
    if action == "PROMOTE":
        sessions.first.execute_sql("ALTER MATERIALIZED TABLE m STAGE AS SELECT id, v FROM s WHERE v > 1")

    def drop() -> None:
        sessions.other.execute_sql("DROP MATERIALIZED TABLE m")
        if again:
            sessions.other.execute_sql(ADDS)

    sessions.while_filling(drop)
    with pytest.raises(ts.ConflictError) as error:
        sessions.first.execute_sql(f"ALTER MATERIALIZED TABLE m {action}")
    assert error.value.kind == "materialized-changed"
    assert sessions.first.list_tables() == (("m", "s") if again else ("s",))
    assert len(shown_jobs(sessions.other)) == again


# -- beside other statements


def test_a_creation_beside_other_statements_that_fails_leaves_no_table_and_its_job_has_the_error(sessions: Sessions) -> None:
    env = sessions.first
    env.execute_sql("SET 'table.dml-sync' = 'false'")
    result = env.execute_sql(FAILS)
    assert result.job is not None
    with pytest.raises(ts.TablestoreError, match="There is no table"):
        result.to_arrow()
    (job,) = shown_jobs(env)
    assert (job["job_id"], job["status"]) == (result.job.id, "FAILED") and "There is no table" in job["error"]
    nothing_is_left(sessions)


def test_a_creation_beside_other_statements_ends_with_a_filled_table_and_its_job(sessions: Sessions, rows_of: Rows) -> None:
    env = sessions.first
    env.execute_sql("SET 'table.dml-sync' = 'false'")
    assert rows_of(env.execute_sql(MAKE)) == [("OK",)]
    assert rows_of(env.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1), (2, 2)]
    (job,) = shown_jobs(env)
    assert job["status"] == "RUNNING" and job["error"] is None


@pytest.mark.parametrize("sync", ["true", "false"])
def test_an_alteration_that_fails_changes_nothing_and_its_error_is_shown(sessions: Sessions, rows_of: Rows, sync: str) -> None:
    env = sessions.first
    env.execute_sql(MAKE)
    before, (job,) = open_materialized(env._session, PATH), shown_jobs(env)
    env.execute_sql(f"SET 'table.dml-sync' = '{sync}'")
    with pytest.raises(ts.TablestoreError, match="The table is as it was before"):
        env.execute_sql(ADDS_AND_FAILS).to_arrow()
    after = open_materialized(env._session, PATH)
    assert (after.definition, after.upkeep) == (before.definition, before.upkeep)
    failed, running = shown_jobs(env) if sync == "false" else (None, *shown_jobs(env))
    assert running == job and (failed is None or "The table is as it was before" in failed["error"])
    (figures,) = env.freshness()
    for error in (shown_error(env), figures.error.message if figures.error else None, shown_error(sessions.other)):
        assert error is not None and "The table is as it was before" in error
    env.execute_sql(MAKE)
    assert shown_error(env) is None and env.freshness()[0].error is None
    assert rows_of(env.sql_query("SELECT * FROM m ORDER BY id")) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("sync", ["true", "false"])
def test_a_table_that_cannot_be_refreshed_is_not_resumed(sessions: Sessions, rows_of: Rows, sync: str) -> None:
    env = sessions.first
    env.execute_sql("CREATE TABLE texts (v STRING)")
    env.execute_sql("INSERT INTO texts VALUES ('1')")
    env.execute_sql("CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '5' MINUTE AS SELECT CAST(v AS INT) AS v FROM texts")
    env.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
    env.execute_sql("INSERT INTO texts VALUES ('x')")
    env.execute_sql(f"SET 'table.dml-sync' = '{sync}'")
    with pytest.raises(ts.TablestoreError, match="x"):
        env.execute_sql("ALTER MATERIALIZED TABLE m RESUME").to_arrow()
    assert open_materialized(env._session, PATH).upkeep.status is RefreshStatus.SUSPENDED
    assert [one["status"] for one in shown_jobs(env)] == ["FAILED"] * (sync == "false")
    assert shown_error(env) is not None
    env.execute_sql("DELETE FROM texts WHERE v = 'x'")
    env.execute_sql("ALTER MATERIALIZED TABLE m RESUME").to_arrow()
    assert shown_error(env) is None
    assert rows_of(env.sql_query("SELECT * FROM m")) == [(1,)]


def test_the_error_of_a_refresh_is_shown_until_one_goes_well(sessions: Sessions) -> None:
    env = sessions.first
    env.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id FROM s WHERE CAST(concat('x', v) AS INT) > 2")
    hour = 3_600_000
    (refresh,) = env.refresh_due(env._session.clock.now_ms() + hour)
    assert refresh.error is not None and shown_error(sessions.other) == str(refresh.error)
    env.execute_sql("DELETE FROM s")
    (refresh,) = env.refresh_due(env._session.clock.now_ms() + hour)
    assert refresh.error is None and shown_error(env) is None


# -- what was not filled yet


def test_a_table_that_was_not_filled_yet_is_no_empty_one_for_whoever_reads_it(sessions: Sessions, rows_of: Rows) -> None:
    env = sessions.first
    env.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id FROM s WHERE id > 2")
    env.execute_sql("CREATE MATERIALIZED TABLE above REFRESH_MODE = FULL AS SELECT count(*) AS n FROM m")
    env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT count(*) AS n FROM m")
    table = env.catalog().table("default.m")
    assert isinstance(table, ts.Table)
    for read in (
        lambda: env.execute_sql("SELECT * FROM m").to_arrow(),
        lambda: env.execute_sql("SELECT n FROM v").to_arrow(),
        lambda: env.execute_sql("CREATE TABLE copy AS SELECT * FROM m"),
        lambda: env.execute_sql("DELETE FROM s WHERE id NOT IN (SELECT id FROM m)"),
        lambda: env.execute_sql("ALTER MATERIALIZED TABLE above REFRESH"),
        lambda: env.execute_sql("CREATE MATERIALIZED TABLE more FRESHNESS = INTERVAL '1' MINUTE AS SELECT id FROM m"),
        table.to_arrow,
        lambda: table.scan().count(),
    ):
        with pytest.raises(ts.NotFoundError, match=r"was not filled yet.*REFRESH fills it now") as error:
            read()
        assert error.value.kind == "not-filled"
    env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
    assert rows_of(env.sql_query("SELECT * FROM m")) == []
    env.execute_sql("ALTER MATERIALIZED TABLE above REFRESH")
    assert rows_of(env.sql_query("SELECT n FROM above")) == [(0,)]


# -- where it lies


@pytest.mark.parametrize("source", [{"metastore": "memory"}, {"warehouse": "memory://m"}], ids=["private", "by name"])
def test_a_catalog_that_ends_with_the_process_takes_no_materialized_table(sessions: Sessions, source: dict[str, str]) -> None:
    with ts.TableEnvironment.create(catalogs={"lake": sessions.first.catalog(), "ram": source}, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE ram.`default`.r (id BIGINT)")
        for place, reads in (("ram", "lake.`default`.s"), ("lake", "ram.`default`.r")):
            for kind in ("CREATE", "CREATE OR ALTER", "EXPLAIN CREATE OR ALTER"):
                with pytest.raises(ts.UnsupportedError, match=r"ends with it.*filesystem or jdbc") as error:
                    env.execute_sql(f"{kind} MATERIALIZED TABLE {place}.`default`.m AS SELECT id FROM {reads}")
                assert error.value.kind == "catalog-in-memory"
        assert env.catalog("ram").list_tables("default") == ("r",)
    nothing_is_left(sessions)


KEYED = (
    "CREATE OR ALTER MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL "
    "AS SELECT id, v FROM s"
)
EXPLAINED = f"EXPLAIN {KEYED.replace('id, v', 'id, v, 1 AS w')}"


@pytest.mark.deep
@pytest.mark.parametrize(
    "statement", [f"ALTER MATERIALIZED TABLE m {words}" for words in ("REFRESH VERIFY", "REFRESH", "COMPARE")] + [EXPLAINED]
)
def test_a_table_that_another_session_drops_anywhere_meanwhile_is_said_to_be_gone(tmp_path: Path, statement: str) -> None:
    nth, said = 1, set()
    while True:
        (place := tmp_path / str(nth)).mkdir()
        sessions = Sessions(place)
        for before in (
            "CREATE TABLE s (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)",
            "INSERT INTO s VALUES (1, 1), (2, 2)",
            KEYED,
            "ALTER MATERIALIZED TABLE m REFRESH",
            "ALTER MATERIALIZED TABLE m STAGE AS SELECT id, v + 1 AS v FROM s",
            "INSERT INTO s VALUES (3, 3)",
        ):
            sessions.first.execute_sql(before)
        calls = 0

        def drop(call: FileCall, sessions: Sessions = sessions, nth: int = nth) -> None:
            nonlocal calls
            calls += 1
            if calls == nth:
                sessions.faults.clear()
                sessions.other.execute_sql("DROP MATERIALIZED TABLE m")

        sessions.faults.before(drop, op="read")
        said.add(outcome(sessions.first, statement))
        sessions.faults.clear()
        sessions.close()
        if calls < nth:
            break
        nth += 7
    assert said == {"", "gone"}


def outcome(env: ts.TableEnvironment, statement: str) -> str:
    """``gone`` where a statement says that a table is not there, what else it says, or nothing."""
    try:
        env.execute_sql(statement).to_arrow()
    except ts.NotFoundError as error:
        gone = r"Materialized table (with identifier )?tablestore\.default\.m(__staged)? (is gone|does not exist)"
        return "gone" if error.kind == "no-such-table" and re.match(gone, error.message) else str(error)
    return ""


def test_explain_shows_the_key_the_partitions_and_the_options_of_the_table_that_is_made(sessions: Sessions) -> None:
    made = KEYED.replace("(id)", "(id, v)").replace(") FRESHNESS", ") PARTITIONED BY (v) WITH ('bucket' = '2') FRESHNESS")
    plan = sessions.first.execute_sql(f"EXPLAIN {made}").text
    assert plan is not None and plan.splitlines()[1:4] == [
        "tablestore.default.m: id BIGINT NOT NULL, v INT NOT NULL, PRIMARY KEY (id, v) NOT ENFORCED",
        "PARTITIONED BY (v)",
        "WITH ('bucket' = '2')",
    ]


def test_an_unchanged_text_is_refused_where_a_temporary_object_hides_a_source_by_now(sessions: Sessions) -> None:
    sessions.first.execute_sql(KEYED)
    sessions.first.execute_sql("CREATE TEMPORARY VIEW s AS SELECT 9L AS id, 9 AS v")
    for statement in (KEYED, f"EXPLAIN {KEYED}", "ALTER MATERIALIZED TABLE m AS SELECT id, v FROM s"):
        with pytest.raises(ts.UnsupportedError, match=r"default\.s is a temporary view of this session"):
            sessions.first.execute_sql(statement)
    sessions.first.execute_sql("DROP TEMPORARY VIEW s")
    sessions.first.execute_sql(KEYED)
