"""Events of OpenLineage: what each kind of statement says, by the schemas of the specification, through a real HTTP server."""

import json
import logging
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openlineage.client.event_v2 import RunEvent

import tablestore as ts
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestRequest
from tablestore.cdc.topicsource import TopicSource
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.telemetry.lineage import LineageDataset, LineageJob
from tablestore.telemetry.lineageevents import dataset_name
from tablestore.telemetry.lineagesender import MOST_WAITING, OpenLineage
from tablestore.telemetry.observers import Observers
from tests.distributed.test_ingest import rounds
from tests.support.changelogs.memorytopic import MemoryTopic
from tests.telemetry.recordedevents import Kept, Recorded, check_event, names, ways


class Server:
    """A server that takes events, as Marquez does."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.events.append(json.loads(body))
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return None

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    yield made
    made.env.close()


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(
    ("statement", "job", "inputs", "rows"),
    [
        ("INSERT INTO t SELECT id, price * 2, item FROM s", "default.t.insert", ["default.s"], 2),
        ("CREATE TABLE u AS SELECT item, sum(price) AS p FROM s GROUP BY item", "default.u.create_table_as", ["default.s"], 2),
        ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", "default.t.merge", ["default.t", "default.s"], 2),
        ("UPDATE s SET price = 7.0 WHERE id = 1", "default.s.update", ["default.s"], 1),
        ("DELETE FROM s WHERE id = 1", "default.s.delete", ["default.s"], 1),
        ("CREATE OR REPLACE TABLE t AS SELECT id FROM s", "default.t.create_table_as", ["default.s"], 2),
        ("INSERT INTO t VALUES (1, 2.0, 'a')", "default.t.insert", [], 1),
        ("INSERT OVERWRITE t SELECT * FROM s", "default.t.insert_overwrite", ["default.s"], None),
        ("CREATE MATERIALIZED TABLE m AS SELECT id, price FROM s", "default.m.refresh", ["default.s"], 2),
    ],
)
def test_a_statement_starts_and_completes(
    recorded: Recorded, statement: str, job: str, inputs: list[str], rows: int | None
) -> None:
    start, complete = recorded.of(lambda: recorded.run(statement))
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"]["name"] == complete["job"]["name"] == job
    assert sorted(names(complete["inputs"])) == sorted(inputs)
    (output,) = complete["outputs"]
    assert output["namespace"] == "file"
    assert output["name"] == recorded.catalog.table(names([output])[0]).location
    if rows is not None:
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == rows
    assert complete["run"]["facets"]["processing_engine"]["name"] == "tablestore, duckdb"


def test_each_insert_of_a_set_is_a_run(recorded: Recorded) -> None:
    recorded.run("CREATE TABLE u (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING)")
    statement = "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT * FROM s; INSERT INTO u SELECT * FROM s; END"
    events = recorded.of(lambda: recorded.run(statement))
    assert [(event["job"]["name"], event["eventType"]) for event in events] == [
        ("default.t.insert", "START"),
        ("default.t.insert", "COMPLETE"),
        ("default.u.insert", "START"),
        ("default.u.insert", "COMPLETE"),
    ]


def test_each_statement_of_a_script_has_its_own_text(recorded: Recorded) -> None:
    statements = [
        "INSERT INTO t SELECT id, price, item FROM s",
        "UPDATE t SET price = 1.0 WHERE id = 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "CREATE TABLE u AS SELECT id FROM s",
        "CREATE OR REPLACE TABLE u AS\nSELECT id + 1 AS id FROM s",
        "INSERT INTO u VALUES (7)",
    ]
    script = "-- what a night does\nSET 'table.dml-sync' = 'true';\n" + " ;\n-- and then\n".join(statements) + ";\n"
    events = recorded.of(lambda: recorded.env.execute_script(script))
    assert [event["job"]["facets"]["sql"]["query"] for event in events if event["eventType"] == "COMPLETE"] == statements


def test_columns_say_where_they_are_from(recorded: Recorded) -> None:
    statement = "CREATE TABLE u AS SELECT item, sum(price) AS p, count(*) AS n FROM s WHERE id > 0 GROUP BY item"
    *_, complete = recorded.of(lambda: recorded.run(statement))
    facet = complete["outputs"][0]["facets"]["columnLineage"]
    assert {column: ways(one["inputFields"]) for column, one in facet["fields"].items()} == {
        "item": {("item", "DIRECT", "IDENTITY")},
        "p": {("price", "DIRECT", "AGGREGATION")},
    }
    assert ways(facet["dataset"]) == {("id", "INDIRECT", "FILTER"), ("item", "INDIRECT", "GROUP_BY")}
    (place,) = {one["name"] for one in facet["dataset"]}
    assert place == complete["inputs"][0]["name"]


def test_a_statement_that_fails_says_why_without_its_secrets(recorded: Recorded) -> None:
    def fail() -> None:
        with pytest.raises(ts.InvalidInputError):
            recorded.run("INSERT INTO t SELECT id, price / 0, item FROM s")

    start, failed = recorded.of(fail)
    assert [start["eventType"], failed["eventType"]] == ["START", "FAIL"]
    assert "division by zero" in failed["run"]["facets"]["errorMessage"]["message"]


def test_a_refresh_says_its_sources_and_columns(recorded: Recorded) -> None:
    recorded.run("CREATE MATERIALIZED TABLE m AS SELECT item AS i, sum(price) AS total FROM s GROUP BY item")
    recorded.run("INSERT INTO s VALUES (3, 4.0, 'b')")
    *_, complete = recorded.of(lambda: recorded.run("ALTER MATERIALIZED TABLE m REFRESH"))
    assert complete["job"]["name"] == "default.m.refresh"
    fields = complete["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert set(fields) == {"i", "total"}
    # Nothing has changed: there is a run, and nothing that it wrote.
    *_, complete = recorded.of(lambda: recorded.run("ALTER MATERIALIZED TABLE m REFRESH"))
    assert complete["eventType"] == "COMPLETE"
    assert "version" not in complete["outputs"][0]["facets"]


def test_a_delivery_names_both_ends(recorded: Recorded, tmp_path: Path) -> None:
    source, target = (recorded.catalog.table(f"default.{name}") for name in "st")
    *_, complete = recorded.of(lambda: ts.deliver(source, target))
    assert complete["job"]["name"] == "default.t.deliver"
    assert names(complete["inputs"]) == ["default.s"]
    assert complete["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2
    *_, complete = recorded.of(lambda: ts.deliver(source, str(tmp_path / "files")))
    assert complete["outputs"][0]["name"] == str(tmp_path / "files")


@pytest.mark.deep
def test_an_ingest_that_finds_no_broker_fails_and_names_its_topic(recorded: Recorded) -> None:
    table = recorded.catalog.table("default.t")

    def fail() -> None:
        with pytest.raises(ts.TablestoreError):
            ts.ingest(table, "changes", servers="127.0.0.1:1", format="json", properties={"socket.timeout.ms": "100"})

    _, failed = recorded.of(fail)
    assert failed["eventType"] == "FAIL"
    assert (failed["inputs"][0]["namespace"], failed["inputs"][0]["name"]) == ("kafka://127.0.0.1:1", "changes")


class TasksHere:
    """An engine of ingests whose tasks run here, on a topic in memory."""

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic = topic

    def commits(
        self,
        table: ts.Table,
        open_source: Callable[[], TopicSource],
        request: IngestRequest,
        dead_letters: ts.Table | None,
        stop: Callable[[], bool],
    ) -> Iterator[IngestCommit]:
        return rounds(table, self._topic, request).commits(stop)


def test_an_ingest_by_an_engine_says_its_topic_and_rows(recorded: Recorded) -> None:
    table, topic = recorded.catalog.table("default.t"), MemoryTopic()
    topic.partitions[0] = [(None, json.dumps({"id": id, "price": 1.0, "item": "x"}).encode()) for id in range(3)]

    def run() -> None:
        report = ts.ingest(table, "changes", servers="k1", format="json", engine=TasksHere(topic))
        assert report.rows == 3

    start, complete = recorded.of(run)
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert complete["job"]["name"] == "default.t.ingest"
    assert [(one["namespace"], one["name"]) for one in complete["inputs"]] == [("kafka://k1:9092", "changes")]
    (output,) = complete["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert output["facets"]["version"]["datasetVersion"] == str(table.refresh().snapshots()[-1].id)


def test_a_stream_runs_until_it_is_canceled(recorded: Recorded) -> None:
    def stream() -> None:
        recorded.run("SET 'execution.runtime-mode' = 'streaming'")
        job = recorded.run("INSERT INTO t SELECT * FROM s").job
        assert job is not None
        job.cancel()
        job.wait()
        recorded.run("RESET 'execution.runtime-mode'")

    events = recorded.of(stream)
    assert [event["eventType"] for event in events] == ["START", "ABORT"]
    assert {event["job"]["facets"]["jobType"]["processingType"] for event in events} == {"STREAMING"}


def test_events_reach_a_server_that_the_clients_own_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        warehouse = {"warehouse": str(tmp_path / "wh"), "telemetry.openlineage": "true"}
        with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
            env.execute_sql("CREATE TABLE t (id BIGINT)")
            env.execute_sql("INSERT INTO t VALUES (1)")
        assert [event["eventType"] for event in server.events] == ["START", "COMPLETE"]
        for event in server.events:
            check_event(event)


DAG_RUN, TASK_RUN = "01890a5d-ac96-774b-bcce-b302099a8057", "f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11"


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"OPENLINEAGE_PARENT_ID": f"http://host/nightly.load/{TASK_RUN}"}, ("http://host", "nightly.load", TASK_RUN)),
        (
            {
                "OPENLINEAGE_PARENT_ID": f"http://host/nightly.load/{TASK_RUN}",
                "OPENLINEAGE_ROOT_PARENT_ID": f"airflow/nightly/{DAG_RUN}",
            },
            ("airflow", "nightly", DAG_RUN),
        ),
        (
            {
                "OPENLINEAGE_PARENT_ID": "unused",
                "OPENLINEAGE_CONTEXT": json.dumps(
                    {
                        "parent": {
                            "run": {"runId": TASK_RUN},
                            "job": {"namespace": "http://host", "name": "nightly.load"},
                            "root": {"run": {"runId": DAG_RUN}, "job": {"namespace": "airflow", "name": "nightly"}},
                        }
                    }
                ),
            },
            ("airflow", "nightly", DAG_RUN),
        ),
    ],
    ids=["one", "root", "context"],
)
def test_a_run_of_an_orchestrator_is_the_parent(environment: dict[str, str], root: tuple[str, str, str]) -> None:
    client = Kept()
    lineage = OpenLineage(SystemClock(), SystemIds(), lambda: client, environment)
    lineage.begin(LineageJob(operation="REFRESH", inputs=(), output=LineageDataset(location="/t"))).completed(None)
    lineage.close()
    assert len(client.events) == 2
    for event in client.events:
        check_event(event)
        parent = event["run"]["facets"]["parent"]
        of_task, of_dag = ((one["job"]["namespace"], one["job"]["name"], one["run"]["runId"]) for one in (parent, parent["root"]))
        assert of_task == ("http://host", "nightly.load", TASK_RUN)
        assert of_dag == root


@pytest.mark.parametrize(
    "environment",
    [
        {"OPENLINEAGE_PARENT_ID": "load"},
        {"OPENLINEAGE_PARENT_ID": "airflow/load/7"},
        {"OPENLINEAGE_CONTEXT": "{"},
        {"OPENLINEAGE_CONTEXT": '{"parent": {"run": {"runId": 7}}}'},
        {"OPENLINEAGE_CONTEXT": '{"parent": []}'},
        {"OPENLINEAGE_CONTEXT": "[" * 100_000},
    ],
)
def test_a_parent_that_cannot_be_read_costs_one_warning(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    client = Kept()
    lineage = OpenLineage(SystemClock(), SystemIds(), lambda: client, environment)
    lineage.begin(LineageJob(operation="REFRESH", inputs=(), output=LineageDataset(location="/t")))
    lineage.close()
    (event,) = client.events
    assert "parent" not in event["run"]["facets"] and len(caplog.records) == 1


class Refusing:
    """A client whose server is not there."""

    def __init__(self) -> None:
        self.calls = 0

    def emit(self, event: RunEvent) -> None:
        self.calls += 1
        raise ConnectionError("no server")


def test_a_server_that_is_not_there_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = Refusing()
    lineage = OpenLineage(SystemClock(), SystemIds(), lambda: client)
    catalog = ts.open_catalog(tmp_path / "wh", observers=Observers(lineage=lineage))
    with caplog.at_level(logging.WARNING), ts.TableEnvironment.create(catalog, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id BIGINT)")
        for number in range(5):
            assert env.execute_sql(f"INSERT INTO t VALUES ({number})").snapshot is not None
            lineage.close()
    assert client.calls == 1
    assert len([record for record in caplog.records if "lineage could not be sent" in record.message]) == 1


def test_a_server_that_never_answers_costs_one_warning_and_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, caplog.at_level(logging.WARNING):
        for name, value in settings_of(server, timeout_s=0.2).items():
            monkeypatch.setenv(name, value)
        warehouse = {"warehouse": str(tmp_path / "wh"), "telemetry.openlineage": "true"}
        with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
            env.execute_sql("CREATE TABLE t (id BIGINT)")
            assert [env.execute_sql(f"INSERT INTO t VALUES ({number})").snapshot.id for number in range(3)] == [1, 2, 3]
            observers = env.catalog()._observers
            observers.close()
            # Within the minute after it nobody tries again.
            env.execute_sql("INSERT INTO t VALUES (9)")
        server.setblocking(False)
        connection, _ = server.accept()
        with connection:
            assert b"RunEvent" in connection.recv(1 << 16) + connection.recv(1 << 16)
        with pytest.raises(BlockingIOError):
            server.accept()
    (warning,) = (record for record in caplog.records if "lineage" in record.message)
    assert "lineage could not be sent" in warning.message


def settings_of(server: socket.socket, *, timeout_s: float) -> dict[str, str]:
    """The settings of OpenLineage's own client for a server, with one attempt for an event."""
    host, port = server.getsockname()
    transport = {"TYPE": "http", "URL": f"http://{host}:{port}", "TIMEOUT": str(timeout_s), "RETRY": '{"total": 0}'}
    return {f"OPENLINEAGE__TRANSPORT__{name}": value for name, value in transport.items()}


PROGRAM = textwrap.dedent(
    """
    import sys
    import tablestore as ts
    from tablestore.telemetry import lineagesender

    lineagesender.CLOSE_S = float(sys.argv[2])
    env = ts.TableEnvironment.create({"warehouse": sys.argv[1], "telemetry.openlineage": "true"}, engine="duckdb")
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    print(env.execute_sql("INSERT INTO t VALUES (1)").snapshot.id)
    """
)


def end_without_closing(warehouse: Path, close_s: float, settings: dict[str, str]) -> str:
    """What a program prints that writes a row, and ends. It has a minute."""
    command = [sys.executable, "-c", PROGRAM, str(warehouse), str(close_s)]
    ran = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout


@pytest.mark.deep
def test_a_program_that_ends_does_not_wait_for_a_server_that_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert end_without_closing(tmp_path / "wh", 0.1, settings_of(server, timeout_s=600)) == "1\n"


@pytest.mark.deep
def test_a_program_that_ends_has_sent_its_events(tmp_path: Path) -> None:
    with Server() as server:
        assert end_without_closing(tmp_path / "wh", 60, {"OPENLINEAGE_URL": server.url}) == "1\n"
        assert [event["eventType"] for event in server.events] == ["START", "COMPLETE"]


def test_what_waits_to_be_sent_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    go_on, sent = threading.Event(), []

    class Slow:
        def emit(self, event: RunEvent) -> None:
            go_on.wait(60)
            sent.append(event)

    lineage = OpenLineage(SystemClock(), SystemIds(), Slow)
    job = LineageJob(operation="INSERT", inputs=(), output=LineageDataset(location="/t"))
    with caplog.at_level(logging.WARNING):
        for _ in range(MOST_WAITING + 10):
            lineage.begin(job)
    go_on.set()
    lineage.close()
    assert MOST_WAITING <= len(sent) <= MOST_WAITING + 1
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/data/wh/shop.db/orders", ("file", "/data/wh/shop.db/orders")),
        ("file:///data/orders", ("file", "/data/orders")),
        ("s3://bucket/wh/shop.db/orders", ("s3://bucket", "wh/shop.db/orders")),
        ("s3a://bucket/orders/", ("s3://bucket", "orders")),
        ("kafka://k1:9092/changes", ("kafka://k1:9092", "changes")),
        ("memory://wh/a.db/t", ("memory://wh", "a.db/t")),
    ],
)
def test_a_dataset_is_named_as_openlineage_says(location: str, expected: tuple[str, str]) -> None:
    assert dataset_name(location) == expected


def test_an_option_whose_package_is_missing_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tablestore.telemetry.lineagesender", None)
    with pytest.raises(ts.UnsupportedError, match=r"managed-tablestore\[telemetry\]"):
        ts.open_catalog({"warehouse": str(tmp_path), "telemetry.openlineage": "true"})


def test_rows_of_a_program_are_written_without_lineage(recorded: Recorded) -> None:
    table = recorded.catalog.table("default.t")
    assert recorded.of(lambda: table.upsert(pa.table({"id": [1], "price": [1.0], "item": ["x"]}))) == []
