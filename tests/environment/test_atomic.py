"""CREATE TABLE … AS with table.ctas.atomicity-enabled: all of it or nothing, whatever happens to the job."""

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.jobs import Job, JobStatus
from tablestore.environment.managed.factory import ManagedTableFactory, StagesTables
from tablestore.environment.managed.tablefactory import TableStoreFactory
from tablestore.environment.pipelines.atomic import CreateTableHook
from tablestore.table.read.scan import ArrowSource
from tablestore.testing.deterministic import ManualClock

Rows = Callable[[Any], list[tuple[Any, ...]]]
FAILING = "SELECT CAST(v AS INT) AS n FROM (VALUES ('1'), ('b')) AS r (v)"


class Held(ArrowSource):
    """Two batches; the second comes when it is let go, or fails."""

    def __init__(self) -> None:
        self.asked, self.go_on, self.fails = threading.Event(), threading.Event(), False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64())])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]}, schema=self.schema)
        self.asked.set()
        assert self.go_on.wait(60)
        if self.fails:
            raise ts.StorageError("the rows are lost")
        yield pa.record_batch({"id": [2]}, schema=self.schema)


class VisibleFactory:
    """A factory that stages nothing: its tables are made by a hook."""

    def __init__(self) -> None:
        plain = TableStoreFactory()
        self.factory_identifier, self.enrich_options = plain.factory_identifier, plain.enrich_options
        self.on_create_table, self.on_drop_table = plain.on_create_table, plain.on_drop_table
        self.on_compact_table = plain.on_compact_table


@pytest.fixture(params=["staged", "by a hook"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def env(duck: ts.TableEnvironment, how: str) -> ts.TableEnvironment:
    duck.get_config().set("table.ctas.atomicity-enabled", "true")
    if how == "by a hook":
        factory: ManagedTableFactory = VisibleFactory()
        assert not isinstance(factory, StagesTables)
        duck._session.factory = factory
    return duck


@pytest.fixture
def held(env: ts.TableEnvironment) -> Iterator[Held]:
    made = Held()
    env.create_temporary_view("held", made)
    yield made
    made.go_on.set()


def left(tmp_path: Path) -> list[str]:
    """All files of the warehouse, but for what says that it has a database."""
    found = sorted(str(Path(folder, name).relative_to(tmp_path)) for folder, _, names in os.walk(tmp_path) for name in names)
    return [name for name in found if not name.endswith("_database")]


def start(env: ts.TableEnvironment, held: Held) -> Job[Any]:
    """A creation that has read a part of its rows."""
    env.get_config().set("table.dml-sync", "false")
    job = env.execute_sql("CREATE TABLE t AS SELECT * FROM held").job
    assert job is not None and held.asked.wait(60)
    return job


def test_a_table_comes_with_all_its_rows(env: ts.TableEnvironment, rows_of: Rows, tmp_path: Path) -> None:
    statement = "CREATE TABLE {} (PRIMARY KEY (id) NOT ENFORCED) COMMENT 'c' WITH ('bucket' = '2') AS SELECT 1 AS id, 'x' AS v"
    result = env.execute_sql(statement.format("t"))
    assert result.snapshot is not None and rows_of(result) == [(1, 1, 1, 0, 0)]
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(1, "x")]
    env.execute_sql("RESET 'table.ctas.atomicity-enabled'")
    env.execute_sql(statement.format("u"))
    made, wanted = (str(rows_of(env.execute_sql(f"SHOW CREATE TABLE {name}"))[0][0]) for name in "tu")
    assert made == wanted.replace("`u`", "`t`")
    assert not [name for name in left(tmp_path) if "_ctas" in name]
    env.execute_sql("INSERT INTO t VALUES (2, 'y')")
    assert [one.id for one in env.catalog().table("default.t").snapshots()] == [1, 2]


def test_what_fails_leaves_nothing(env: ts.TableEnvironment, tmp_path: Path) -> None:
    for run in (
        lambda: env.execute_sql(f"CREATE TABLE t AS {FAILING}"),
        lambda: env.sql_query(FAILING).save_as("t").create().execute(),
        lambda: env.create_table("t", {}, FAILING).execute_async().result(60),
    ):
        with pytest.raises(ts.InvalidInputError, match="'b'"):
            run()
        assert env.list_tables() == ()
        assert left(tmp_path) == []


def test_meanwhile_nobody_sees_a_staged_table_and_everybody_one_of_a_hook(env: ts.TableEnvironment, held: Held, how: str) -> None:
    job = start(env, held)
    catalog = env.catalog()
    assert catalog.table_exists("default.t") == (how == "by a hook")
    if how == "by a hook":
        assert catalog.table("default.t").scan().count() == 0
    held.go_on.set()
    assert job.result(60).snapshot.id == 1
    assert catalog.table("default.t").scan().count() == 2


def test_a_job_that_is_canceled_or_fails_leaves_nothing(env: ts.TableEnvironment, held: Held, tmp_path: Path) -> None:
    job = start(env, held)
    job.cancel()
    held.go_on.set()
    with pytest.raises(ts.UnsupportedError, match="cancel"):
        job.result(60)
    assert (job.status, env.list_tables(), left(tmp_path)) == (JobStatus.CANCELED, (), [])
    held.fails = True
    job = start(env, held)
    with pytest.raises(ts.StorageError, match="the rows are lost"):
        job.result(60)
    assert (job.status, env.list_tables(), left(tmp_path)) == (JobStatus.FAILED, (), [])


def test_a_table_that_comes_meanwhile_stays_and_the_job_fails(env: ts.TableEnvironment, held: Held, how: str) -> None:
    job = start(env, held)
    catalog = env.catalog()
    if how == "by a hook":
        catalog.drop_table("default.t")
    other = catalog.create_table("default.t", pa.schema([("id", pa.int64())]))
    other.append(pa.table({"id": [9]}))
    held.go_on.set()
    with pytest.raises(ts.TablestoreError):
        job.result(60)
    assert job.status is JobStatus.FAILED
    assert catalog.table("default.t").scan().to_arrow()["id"].to_pylist() == [9]


def test_of_two_creations_if_not_exists_the_one_that_comes_second_does_nothing(
    env: ts.TableEnvironment, held: Held, how: str, tmp_path: Path
) -> None:
    late = env.sql_query("SELECT * FROM held").save_as("t").create(ignore_if_exists=True)
    strict = env.sql_query("SELECT * FROM held").save_as("t").create()
    job = late.execute_async()
    assert held.asked.wait(60)
    other = env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 9 AS id")
    held.go_on.set()
    result = job.result(60)
    with pytest.raises(ts.AlreadyExistsError):
        strict.execute()
    second, kept = (other, [1, 2]) if how == "by a hook" else (result, [9])
    assert [str(notice.kind) for notice in second.notices] == ["already-there"]
    assert (second.snapshot, sorted(env.from_path("t").to_arrow()["id"].to_pylist())) == (None, kept)
    if how == "staged":
        # Nor does it add rows to what is not its own, later.
        assert late.execute().notices and env.from_path("t").to_arrow()["id"].to_pylist() == kept
    assert not [name for name in left(tmp_path) if "_ctas" in name]


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_of_sessions_that_create_at_once_one_makes_the_table_with_its_rows(tmp_path: Path, atomic: str) -> None:
    config = {"table.ctas.atomicity-enabled": atomic}
    environments = [ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", config=config) for _ in range(3)]
    catalog = environments[0].catalog()
    catalog.create_database("default")
    for name in ("a", "b", "c"):
        together = threading.Barrier(len(environments))

        def create(env: ts.TableEnvironment) -> ts.Result:
            together.wait(60)  # noqa: B023
            return env.execute_sql(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT 1 AS id")  # noqa: B023

        with ThreadPoolExecutor(len(environments)) as pool:
            results = list(pool.map(create, environments))
        assert sorted(len(result.notices) for result in results) == [0, 1, 1]
        assert catalog.table(f"default.{name}").scan().to_arrow()["id"].to_pylist() == [1]
    assert catalog.list_creations() == ()
    for env in environments:
        env.close()


def test_a_table_that_is_taken_between_plan_and_creation_gets_no_rows(env: ts.TableEnvironment) -> None:
    """What another session does after the table was looked for, and before it is made."""
    catalog, factory = env.catalog(), env._session.factory
    enrich = factory.enrich_options

    def take(context: Any) -> Any:
        if not catalog.table_exists("default.t"):
            catalog.create_table("default.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [7]}))
        return enrich(context)

    factory.enrich_options = take  # type: ignore[method-assign]
    catalog.create_database("default", ignore_if_exists=True)
    for atomic in ("true", "false"):
        env.get_config().set("table.ctas.atomicity-enabled", atomic)
        for run in (
            lambda: env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id"),
            lambda: env.sql_query("SELECT 2 AS id").save_as("t").create(ignore_if_exists=True).execute(),
        ):
            assert [str(notice.kind) for notice in run().notices] == ["already-there"]
            assert catalog.table("default.t").scan().to_arrow()["id"].to_pylist() == [7]
            catalog.drop_table("default.t")


def test_with_if_not_exists_a_table_that_is_there_is_never_dropped(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t (n INT)")
    env.execute_sql("INSERT INTO t VALUES (7)")
    env.execute_sql(f"CREATE TABLE IF NOT EXISTS t AS {FAILING}")
    env.sql_query(FAILING).save_as("t").create(ignore_if_exists=True).execute()
    with pytest.raises(ts.AlreadyExistsError):
        env.execute_sql("CREATE TABLE t AS SELECT 1 AS n")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(7,)]


def test_a_pipeline_that_fails_in_its_second_run_leaves_the_rows_of_the_first(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE v (v STRING)")
    env.execute_sql("INSERT INTO v VALUES ('7')")
    pipeline = env.sql_query("SELECT CAST(v AS INT) AS n FROM v").save_as("t").create(ignore_if_exists=True)
    pipeline.execute()
    env.execute_sql("INSERT INTO v VALUES ('b')")
    with pytest.raises(ts.InvalidInputError, match="'b'"):
        pipeline.execute()
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(7,)]


def test_create_makes_nothing_before_the_pipeline_runs(env: ts.TableEnvironment, tmp_path: Path) -> None:
    pipeline = env.sql_query("SELECT 1 AS id").save_as("t").option("bucket", -1).create()
    assert (env.list_tables(), left(tmp_path)) == ((), [])
    assert "nothing" not in pipeline.explain()
    other = env.sql_query("SELECT 2 AS id").save_as("t").create()
    assert [pipeline.execute().snapshot.id, pipeline.execute_async().result(60).snapshot.id] == [1, 2]  # type: ignore[union-attr]
    assert pipeline.explain()
    assert env.from_path("t").to_arrow()["id"].to_pylist() == [1, 1]
    with pytest.raises(ts.AlreadyExistsError):
        other.execute()


def test_the_hook_of_a_creation_travels_to_another_process(env: ts.TableEnvironment, tmp_path: Path) -> None:
    from tablestore.environment.managed.factory import ManagedTableContext
    from tablestore.environment.objectpath import ObjectPath
    from tablestore.types.arrowtypes import fields_from_arrow

    env.execute_sql("CREATE TABLE other (id BIGINT)")
    fields, _ = fields_from_arrow(pa.schema([("id", pa.int64())]))
    path = ObjectPath("tablestore", "default", "t")
    hook = CreateTableHook(ManagedTableContext(path=path, catalog=env.catalog(), options={}, fields=fields))
    pickle.loads(pickle.dumps(hook)).on_created("job-1")
    assert env.list_tables() == ("other", "t")
    pickle.loads(pickle.dumps(hook)).on_failed("job-1", ts.StorageError("lost"))
    assert env.list_tables() == ("other",)
    hook.on_created("job-2")
    hook.on_finished("job-2")
    hook.on_canceled("job-2")
    assert env.list_tables() == ("other", "t")
    taken = replace(hook, context=replace(hook.context, path=replace(path, name="other")))
    with pytest.raises(ts.AlreadyExistsError):
        taken.on_created("job-3")
    taken.on_failed("job-3", ts.StorageError("lost"))
    assert "other" in env.list_tables()


def test_a_session_takes_one_name_of_a_setting() -> None:
    both = {"table.rtas-ctas.atomicity-enabled": "true", "table.ctas.atomicity-enabled": "false"}
    with pytest.raises(ts.InvalidInputError, match="are one setting; give one of them"):
        ts.TableEnvironment.create(ts.open_catalog(metastore="memory"), config=both)


def test_a_catalog_in_memory_is_refused_before_anything_is_made() -> None:
    catalog = ts.open_catalog(metastore="memory")
    with ts.TableEnvironment.create(catalog, engine="duckdb", config={"table.rtas-ctas.atomicity-enabled": "true"}) as env:
        message = "Catalog 'tablestore' can not be serialized, so it does not support atomic CREATE TABLE AS SELECT."
        for run in (
            lambda: env.execute_sql("CREATE TABLE t AS SELECT 1 AS id"),
            lambda: env.sql_query("SELECT 1 AS id").save_as("t").create(),
        ):
            with pytest.raises(ts.UnsupportedError) as refused:
                run()
            assert str(refused.value).startswith(message)
        assert catalog.list_databases() == ()
        env.execute_sql("SET 'table.ctas.atomicity-enabled' = 'false'")
        env.execute_sql("CREATE TABLE t AS SELECT 1 AS id")
        assert env.list_tables() == ("t",)


def test_a_catalog_that_cannot_be_pickled_is_refused(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> Any:
        raise TypeError("cannot pickle this")

    monkeypatch.setattr(type(duck.catalog()), "__reduce__", refuse)
    duck.get_config().set("table.ctas.atomicity-enabled", "true")
    with pytest.raises(ts.UnsupportedError, match="Catalog 'tablestore' can not be serialized"):
        duck.execute_sql("CREATE TABLE t AS SELECT 1 AS id")


def test_what_a_driver_that_died_left_is_removed_by_the_next_creation(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "wh"), clock=ManualClock())
    catalog.create_database("default", ignore_if_exists=True)
    dead = catalog.stage_table("default.t", pa.schema([("id", pa.int64())]), job_id="dead")
    dead.table.append(pa.table({"id": [1]}))
    assert any("_ctas" in name for name in left(tmp_path))
    duck.get_config().set("table.ctas.atomicity-enabled", "true")
    duck.execute_sql("CREATE TABLE t AS SELECT 2 AS id")
    assert not [name for name in left(tmp_path) if "_ctas" in name]


def test_the_next_session_removes_what_a_dead_one_has_left_and_spares_a_live_one(tmp_path: Path) -> None:
    clock, warehouse = ManualClock(), str(tmp_path / "wh")
    catalog = ts.open_catalog(warehouse, clock=clock)
    catalog.create_database("default")
    schema = pa.schema([("id", pa.int64())])
    catalog.stage_table("default.dead", schema, job_id="dead").table.append(pa.table({"id": [1]}))
    visible = catalog.intend_creation("gone", "default.visible")
    visible.create_table(schema)
    clock.advance(3_700_000)
    live = catalog.stage_table("default.live", schema, job_id="live")
    live.table.append(pa.table({"id": [2]}))
    with ts.TableEnvironment.create(warehouse, clock=clock) as later:
        assert later.list_tables() == ()
        assert later.catalog().list_creations() == ("live",)
    live.publish()
    assert catalog.list_tables("default") == ("live",)


@pytest.mark.parametrize("atomic", ["false", "true"])
@pytest.mark.parametrize(
    ("statement", "lost"),
    [("CREATE TABLE d.t", "table"), ("CREATE TABLE d.t", "database"), ("CREATE OR REPLACE TABLE d.t", "table")],
)
def test_what_is_dropped_under_a_creation_is_named(
    duck: ts.TableEnvironment, tmp_path: Path, atomic: str, statement: str, lost: str
) -> None:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("d")
    if "REPLACE" in statement:
        duck.execute_sql("CREATE TABLE d.t (id BIGINT)")

    def drop() -> None:
        if lost == "database":
            catalog.drop_database("d", cascade=True)
        else:
            catalog.drop_table("d.t", ignore_if_not_exists=True)

    held = Held()
    duck.create_temporary_view("held", held)
    duck.get_config().set("table.ctas.atomicity-enabled", atomic).set("table.dml-sync", "false")
    job = duck.execute_sql(f"{statement} AS SELECT * FROM held").job
    assert job is not None and held.asked.wait(60)
    drop()
    held.go_on.set()
    if (statement, lost, atomic) == ("CREATE TABLE d.t", "table", "true"):
        # Nobody sees it before it is whole.
        assert job.result(60).snapshot is not None
        return
    with pytest.raises(ts.NotFoundError, match=r"tablestore\.d\.t was dropped while"):
        job.result(60)
    assert not catalog.table_exists("d.t") and catalog.list_creations() == ()
