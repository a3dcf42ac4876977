"""Pipelines: INSERTs and sets of them from Python, in the thread of the caller or in one of their own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.jobs import JobStatus
from tablestore.environment.result import ROW_COUNTS
from tablestore.table.read.scan import ArrowSource

Rows = Callable[[Any], list[tuple[Any, ...]]]
HEARD: list[str] = []


class Listener:
    """A hook that notes what it hears."""

    def on_created(self, job_id: str) -> None:
        HEARD.append("created")

    def on_finished(self, job_id: str) -> None:
        HEARD.append("finished")

    def on_failed(self, job_id: str, error: BaseException) -> None:
        HEARD.append(f"failed: {type(error).__name__}")

    def on_canceled(self, job_id: str) -> None:
        HEARD.append("canceled")


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    HEARD.clear()
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
    duck.execute_sql("CREATE TABLE s (id BIGINT)")
    return duck


def test_a_query_is_inserted_each_time_its_pipeline_runs(env: ts.TableEnvironment, rows_of: Rows) -> None:
    pipeline = env.sql_query("SELECT :n AS id, 'x' AS v", n=1).insert_into("t")
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]
    assert [rows_of(pipeline.execute())[0][0] for _ in range(2)] == [1, 2]
    assert env.insert_into("default.t", "SELECT 9, 'y'", overwrite=True).execute().snapshot.id == 3  # type: ignore[union-attr]
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(9, "y")]
    assert env.from_path("t").insert_into("`t`").execute().snapshot.id == 4  # type: ignore[union-attr]


def test_a_pipeline_explains_itself_and_nothing_happens(env: ts.TableEnvironment, rows_of: Rows) -> None:
    assert "tablestore.default.t: no snapshot" in env.from_path("t").insert_into("t").explain()
    both = "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT id, 'x' FROM s; INSERT INTO s SELECT id FROM t; END"
    plan = str(rows_of(env.execute_sql(f"EXPLAIN {both.removeprefix('EXECUTE ')}"))[0][0])
    assert "== INSERT 1 of 2 ==" in plan and "== INSERT 2 of 2 ==" in plan
    assert "tablestore.default.s: no snapshot" in plan and "tablestore.default.t: no snapshot" in plan
    assert env.catalog().table("default.t").snapshots() == ()


def test_what_is_wrong_with_a_pipeline_is_said_before_it_begins(env: ts.TableEnvironment) -> None:
    for path, query, message in [
        ("nowhere", "SELECT 1, 'x'", "does not exist"),
        ("t", "SELECT 1", "expected 2 columns"),
        ("t", "DROP TABLE t", "insert_into: expected a query"),
        ("t", 7, "expected a Query or the SQL text of one, found int"),
        ("a.b.c.d", "SELECT 1, 'x'", "at most 3 parts"),
        ("t`", "SELECT 1, 'x'", "is not closed: expected another `"),
        ("", "SELECT 1, 'x'", "expected a name"),
        (None, "SELECT 1, 'x'", "expected a name as text, such as orders or shop.orders, found NoneType"),
    ]:
        with pytest.raises(ts.TablestoreError, match=message):
            env.insert_into(path, query).register_job_status_hook(Listener()).execute_async()  # type: ignore[arg-type]
    assert HEARD == []


def test_what_is_no_text_no_name_or_no_hook_is_said(env: ts.TableEnvironment) -> None:
    query: Any = env.sql_query("SELECT 1 AS id, 'x' AS v")
    given: list[tuple[Callable[[], object], str]] = [
        (lambda: query.save_as(None), "a name as text"),
        (lambda: env.from_path(5), "a name as text"),  # type: ignore[arg-type]
        (lambda: env.create_temporary_view(None, query), "a name as text"),  # type: ignore[arg-type]
        (lambda: env.drop_temporary_view(5), "a name as text"),  # type: ignore[arg-type]
        (lambda: env.create_statement_set().add_insert(None, query), "a name as text"),  # type: ignore[arg-type]
        (lambda: env.create_statement_set().add_insert_sql(None), "SQL text, found NoneType"),  # type: ignore[arg-type]
        (lambda: query.insert_into("t", overwrite="false"), "expected True or False as overwrite, found 'false'"),
        (lambda: env.create_statement_set().add_insert("t", query, overwrite=1), "as overwrite, found 1"),  # type: ignore[arg-type]
        (lambda: env.catalog().drop_database("default", cascade="no"), "as cascade, found 'no'"),  # type: ignore[arg-type]
        (lambda: query.insert_into("t").register_job_status_hook(Listener), "found the class Listener itself"),
        (lambda: env.create_temporary_view("x$files", query), "the name of a part of a table"),
        (lambda: env.create_temporary_view("x$files", pa.table({"a": [1]})), "the name of a part of a table"),
        (lambda: env.execute_sql("CREATE TEMPORARY VIEW `x$files` AS SELECT 1 AS a"), "the name of a part of a table"),
    ]
    for call, message in given:
        with pytest.raises(ts.InvalidInputError, match=message):
            call()
    assert env.list_temporary_views() == ()


def test_hooks_of_a_pipeline_hear_of_each_job(env: ts.TableEnvironment) -> None:
    pipeline = env.insert_into("t", "SELECT CAST(v AS BIGINT), v FROM (VALUES ('1'), ('b')) AS r (v)")
    pipeline.register_job_status_hook(Listener()).register_job_status_hook(Listener())
    with pytest.raises(ts.InvalidInputError):
        pipeline.execute()
    assert HEARD == ["created", "created", "failed: InvalidInputError", "failed: InvalidInputError"]
    HEARD.clear()
    env.insert_into("t", "SELECT 1, 'x'").register_job_status_hook(Listener()).execute()
    assert HEARD == ["created", "finished"]
    with pytest.raises(ts.InvalidInputError, match="expected a hook: an object with the methods on_created"):
        pipeline.register_job_status_hook(lambda: None)


def test_a_statement_set_runs_its_inserts_as_one_job_on_the_tables_as_they_were(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("INSERT INTO s VALUES (1)")
    statements = env.create_statement_set()
    statements.add_insert_sql("INSERT INTO s SELECT id + ? FROM s", 10).add_insert("t", "SELECT id, 'a' FROM s")
    statements.add_insert("t", env.sql_query("SELECT :id AS id, 'b' AS v", id=7))
    statements.register_job_status_hook(Listener())
    names = ["tablestore.default.s", "tablestore.default.t", "tablestore.default.t"]
    assert [row[:2] for row in rows_of(statements.execute())] == list(zip(names, [2, 1, 2], strict=True))
    assert HEARD == ["created", "finished"]
    assert rows_of(env.execute_sql("SELECT * FROM t ORDER BY id")) == [(1, "a"), (7, "b")]
    with pytest.raises(ts.InvalidInputError, match="the statement set is empty"):
        statements.execute()


def test_a_statement_set_with_a_wrong_insert_writes_nothing(env: ts.TableEnvironment, rows_of: Rows) -> None:
    statements = env.create_statement_set().add_insert("t", "SELECT 1, 'x'").add_insert("s", "SELECT 'no number'")
    with pytest.raises(ts.InvalidInputError, match="INSERT 2 of 2; landed before it: nothing"):
        statements.execute()
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]
    with pytest.raises(ts.InvalidInputError, match="expected an INSERT"):
        statements.add_insert_sql("SELECT 1")


class Held(ArrowSource):
    """Rows that come when they are let go."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), ("v", pa.string())])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        self.asked.set()
        assert self.go_on.wait(60)
        yield pa.record_batch({"id": [1], "v": ["x"]}, schema=self.schema)


@pytest.fixture
def held(env: ts.TableEnvironment) -> Iterator[Held]:
    """``held`` is a view of rows that wait."""
    made = Held()
    env.create_temporary_view("held", made)
    yield made
    made.go_on.set()


def test_with_dml_sync_off_a_statement_gives_its_job_and_reading_waits(env: ts.TableEnvironment, held: Held, rows_of: Rows) -> None:
    env.execute_sql("SET 'table.dml-sync' = 'false'")
    result = env.execute_sql("INSERT INTO t SELECT * FROM held")
    job = result.job
    assert job is not None and not job.done()
    assert (result.kind, result.schema.names) == ("snapshot", ["snapshot_id", *ROW_COUNTS])
    assert held.asked.wait(60)
    assert job.status is JobStatus.RUNNING
    assert rows_of(env.execute_sql("SHOW JOBS")) == [(job.id, "RUNNING", None)]
    # The environment goes on meanwhile.
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]
    held.go_on.set()
    assert rows_of(result) == [(1, 1, 1, 0, 0)]
    assert result.snapshot is not None and result.snapshot.id == 1
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(1, "x")]
    assert rows_of(env.execute_sql("SHOW JOBS")) == []
    both = env.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO s VALUES (1); INSERT INTO t VALUES (2, 'y'); END")
    assert [row[:3] for row in rows_of(both)] == [("tablestore.default.s", 1, 1), ("tablestore.default.t", 2, 1)]
    env.execute_sql("RESET 'table.dml-sync'")
    assert env.execute_sql("INSERT INTO s VALUES (1)").job is None


def test_the_error_of_a_job_that_was_not_waited_for_comes_with_its_place(env: ts.TableEnvironment) -> None:
    env.get_config().set("table.dml-sync", "false")
    result = env.execute_sql("INSERT INTO s SELECT CAST(v AS BIGINT) FROM (VALUES ('b')) AS r (v)")
    with pytest.raises(ts.InvalidInputError, match="'b'"):
        result.to_arrow()
    assert result.job is not None and result.job.status is JobStatus.FAILED


def test_a_job_that_is_canceled_lands_nothing_and_another_goes_on(env: ts.TableEnvironment, held: Held, rows_of: Rows) -> None:
    endless = " CROSS JOIN ".join(f"(SELECT explode(sequence(1, 1000)) AS x{n}) AS a{n}" for n in range(6))
    other = env.insert_into("t", "SELECT * FROM held").execute_async()
    job = env.insert_into("s", f"SELECT sum(x0) FROM {endless}").register_job_status_hook(Listener()).execute_async()
    assert held.asked.wait(60)
    while not job.wait(0.05):
        job.cancel()
    with pytest.raises(ts.UnsupportedError) as raised:
        job.result()
    assert (raised.value.kind, job.status, HEARD[-1]) == ("cancelled", JobStatus.CANCELED, "canceled")
    held.go_on.set()
    assert rows_of(other.result(60)) == [(1, 1, 1, 0, 0)]
    assert rows_of(env.execute_sql("SELECT count(*) FROM s")) == [(0,)]


def test_jobs_are_awaited_together(env: ts.TableEnvironment) -> None:
    async def both() -> list[Any]:
        jobs = [env.insert_into("t", f"SELECT {n}, 'x'").execute_async() for n in range(2)]
        return [await job for job in jobs]

    assert {result.snapshot.id for result in asyncio.run(both())} == {1, 2}


def test_closing_waits_for_the_jobs_that_run(env: ts.TableEnvironment, held: Held) -> None:
    job = env.insert_into("t", "SELECT * FROM held").execute_async()
    table = env.catalog().table("default.t")
    assert held.asked.wait(60)
    letting_go = threading.Thread(target=held.go_on.set)
    letting_go.start()
    env.close()
    letting_go.join()
    assert job.done() and table.scan().count() == 1


def test_a_closed_environment_says_so_whatever_it_is_asked(env: ts.TableEnvironment) -> None:
    query, pipeline = env.sql_query("SELECT 1 AS id"), env.insert_into("t", "SELECT 1, 'a'")
    result, settings = env.execute_sql("SELECT * FROM t"), env.get_config()
    env.create_temporary_function("f", len, arguments=["STRING"], returns="INT")
    env.close()
    asked: list[Callable[[], object]] = [
        lambda: env.execute_sql("SELECT 1"),
        lambda: env.execute_sql("SHOW TABLES"),
        lambda: env.execute_script("SELECT 1; SELECT 2"),
        lambda: env.create_temporary_view("v", "SELECT 1 AS a"),
        lambda: env.create_temporary_table("v", {"connector": "kafka"}),
        lambda: env.create_temporary_function("g", len, arguments=["STRING"], returns="INT"),
        lambda: env.drop_temporary_function("f"),
        lambda: env.from_path("t"),
        lambda: env.list_tables(),
        lambda: env.list_catalogs(),
        lambda: env.use_database("default"),
        lambda: env.register_catalog("more", "/nowhere"),
        lambda: env.current_catalog,
        lambda: env.catalog(),
        lambda: env.get_config(),
        lambda: settings.set("threads", "1"),
        query.to_arrow,
        query.explain,
        pipeline.execute,
        pipeline.explain,
        lambda: query.save_as("u").create(),
        lambda: result.to_arrow(),
        lambda: env.create_statement_set().add_insert_sql("INSERT INTO t VALUES (1, 'a')").execute(),
    ]
    for ask in asked:
        with pytest.raises(ts.InvalidInputError, match=r"close\(\)") as refused:
            ask()
        assert refused.value.kind == "closed"
    env.close()
    assert "TableEnvironment(engine='duckdb'" in repr(env)
