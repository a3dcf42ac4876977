"""Events of OpenLineage: what each kind of statement says, by the schemas of the specification, through a real HTTP server."""

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from openlineage.client.event_v2 import RunEvent
from referencing import Registry, Resource

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.telemetry.lineage import LineageDataset, LineageJob
from tablestore.telemetry.lineageevents import dataset_name
from tablestore.telemetry.lineagesender import MOST_WAITING, OpenLineage
from tablestore.telemetry.observers import Observers

SCHEMAS = {
    schema["$id"]: schema
    for schema in map(json.loads, (p.read_text() for p in (Path(__file__).parent / "openlineage").glob("*.json")))
}
REGISTRY: Registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items())
(SPEC,) = (name for name in SCHEMAS if name.endswith("/OpenLineage.json"))


def check_event(event: dict[str, Any]) -> None:
    """By the schema of events, and each facet by its own, which it names."""
    Draft202012Validator({"$ref": f"{SPEC}#/$defs/RunEvent"}, registry=REGISTRY).validate(event)
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    facets = [
        facet for one in holders for group in ("facets", "outputFacets", "inputFacets") for facet in one.get(group, {}).values()
    ]
    assert facets
    for facet in facets:
        assert facet["_producer"] == event["producer"] or "OpenLineage/tree" in facet["_producer"], "ours, or the client's own"
        Draft202012Validator({"$ref": facet["_schemaURL"]}, registry=REGISTRY).validate(facet)


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


class Kept:
    """A client that keeps events as what they are on the wire."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: RunEvent) -> None:
        from openlineage.client.serde import Serde

        self.events.append(json.loads(Serde.to_json(event)))


class Recorded:
    """An environment whose lineage is kept."""

    def __init__(self, place: Path, engine: str = "duckdb") -> None:
        self.client = Kept()
        self.lineage = OpenLineage(SystemClock(), SystemIds(), lambda: self.client)
        self.catalog = ts.open_catalog(place / "wh", observers=Observers(lineage=self.lineage))
        self.env = ts.TableEnvironment.create(self.catalog, engine=engine)
        self.run("CREATE TABLE s (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
        self.run("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
        self.run("INSERT INTO s VALUES (1, 2.0, 'a'), (2, 3.0, 'b')")

    def run(self, text: str) -> Any:
        return self.env.execute_sql(text)

    def events(self) -> list[dict[str, Any]]:
        self.lineage.close()
        return self.client.events

    def of(self, run: Any) -> list[dict[str, Any]]:
        """The events of what is run, each checked."""
        before = len(self.events())
        run()
        events = self.events()[before:]
        for event in events:
            check_event(event)
        return events


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    yield made
    made.env.close()


def names(datasets: list[dict[str, Any]]) -> list[str]:
    """The names in the catalog."""
    return [one["facets"]["symlinks"]["identifiers"][0]["name"] for one in datasets]


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


def test_columns_say_where_they_are_from(recorded: Recorded) -> None:
    statement = "CREATE TABLE u AS SELECT item, sum(price) AS p, count(*) AS n FROM s WHERE id > 0 GROUP BY item"
    *_, complete = recorded.of(lambda: recorded.run(statement))
    facet = complete["outputs"][0]["facets"]["columnLineage"]
    assert {column: _ways(one["inputFields"]) for column, one in facet["fields"].items()} == {
        "item": {("item", "DIRECT", "IDENTITY")},
        "p": {("price", "DIRECT", "AGGREGATION")},
    }
    assert _ways(facet["dataset"]) == {("id", "INDIRECT", "FILTER"), ("item", "INDIRECT", "GROUP_BY")}
    (place,) = {one["name"] for one in facet["dataset"]}
    assert place == complete["inputs"][0]["name"]


def _ways(fields: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(one["field"], way["type"], way["subtype"]) for one in fields for way in one["transformations"]}


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
