"""Spans of operations: one trace for one upsert and one refresh, in order, and nothing where nobody asked for them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.environment.engine import QueryEngine
from tablestore.telemetry.observers import Observers
from tablestore.telemetry.otelspans import OpenTelemetryTracer, collection_of
from tests.table.creation.places import broker_of

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64())])


class Watched:
    """A warehouse whose operations are kept."""

    def __init__(self, place: Path, engine: str | QueryEngine = "duckdb") -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        tracer = OpenTelemetryTracer(SystemClock(), traces, meters)
        self.catalog = ts.open_catalog(place / "wh", observers=Observers(tracer=tracer))
        self.env = ts.TableEnvironment.create(self.catalog, engine=engine)

    def run(self, text: str) -> Any:
        return self.env.execute_sql(text)

    def table(self, name: str = "t", **options: str) -> ts.Table:
        given = ", ".join(f"'{key}' = '{value}'" for key, value in {"bucket": "1", **options}.items())
        self.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE) WITH ({given})")
        return self.catalog.table(f"default.{name}")

    def spans(self, run: Callable[[], object]) -> list[ReadableSpan]:
        self.exporter.clear()
        run()
        return list(self.exporter.get_finished_spans())

    def points(self, metric: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = [one for resource in data.resource_metrics for scope in resource.scope_metrics for one in scope.metrics]
        return [point for one in metrics if one.name == metric for point in one.data.data_points]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.env.close()


def parents(spans: list[ReadableSpan]) -> dict[str, set[str | None]]:
    """The names of the spans, with those that they lie below."""
    names = {span.context.span_id: span.name.removeprefix("tablestore.") for span in spans}
    below: dict[str, set[str | None]] = {}
    for span in spans:
        parent = None if span.parent is None else names[span.parent.span_id]
        below.setdefault(names[span.context.span_id], set()).add(parent)
    return below


def test_one_merge_from_python_is_one_trace(watched: Watched) -> None:
    table = watched.table()
    rows = pa.table({"id": [1], "price": [1.0]}, schema=SCHEMA)
    spans = watched.spans(lambda: table.merge(rows, on="id").when_matched_update_all().when_not_matched_insert_all().execute())
    assert len({span.context.trace_id for span in spans}) == 1
    assert parents(spans)["merge"] == {None} and parents(spans)["commit"] == {"merge"}


def test_one_upsert_is_one_trace(watched: Watched) -> None:
    table = watched.table()
    spans = watched.spans(lambda: table.upsert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}, schema=SCHEMA)))
    assert len({span.context.trace_id for span in spans}) == 1
    assert parents(spans) == {"upsert": {None}, "write": {"upsert"}, "commit": {"upsert"}, "compact": {"upsert"}}
    (commit,) = (span for span in spans if span.name == "tablestore.commit")
    assert commit.attributes is not None
    assert commit.attributes["db.system.name"] == "tablestore"
    assert commit.attributes["db.operation.name"] == "commit"
    assert commit.attributes["db.collection.name"] == "default.t"
    assert commit.attributes["tablestore.rows"] == 2
    assert commit.attributes["tablestore.snapshot.id"] == 1


def test_an_upsert_of_a_table_with_a_topic_publishes_in_its_trace(watched: Watched) -> None:
    with broker_of("spans") as broker:
        table = watched.table(**{"log.kafka.bootstrap.servers": broker.address, "bucket": "2"})
        spans = watched.spans(lambda: table.upsert(pa.table({"id": [1, 2, 3], "price": [1.0, 2.0, 3.0]}, schema=SCHEMA)))
        table.change_log.close()
    assert len({span.context.trace_id for span in spans}) == 1
    assert parents(spans)["publish"] == {"upsert"}
    # One after the rows, one after the compaction, which has none for the log.
    published = [span.attributes or {} for span in spans if span.name == "tablestore.publish"]
    assert [attributes["tablestore.rows"] for attributes in published] == [3, 0]
    assert {attributes["db.collection.name"] for attributes in published} == {"default.t"}


def test_a_publish_that_fails_says_so_and_the_upsert_does_not(watched: Watched) -> None:
    with broker_of("silent") as broker:
        table = watched.table(**{"log.kafka.bootstrap.servers": broker.address})
        broker.silent = True
        spans = watched.spans(lambda: table.upsert(pa.table({"id": [1], "price": [1.0]}, schema=SCHEMA)))
        table.change_log.close()
    by_name = {span.name: span for span in spans}
    assert not by_name["tablestore.publish"].status.is_ok
    assert "error.type" not in (by_name["tablestore.upsert"].attributes or {})


def test_one_refresh_is_one_trace(watched: Watched) -> None:
    table = watched.table()
    table.upsert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}, schema=SCHEMA))
    watched.run("CREATE MATERIALIZED TABLE m AS SELECT price, count(*) AS n FROM t GROUP BY price")
    table.upsert(pa.table({"id": [3], "price": [2.0]}, schema=SCHEMA))
    for expected in ("incremental", "none"):
        spans = watched.spans(lambda: watched.run("ALTER MATERIALIZED TABLE m REFRESH"))
        assert len({span.context.trace_id for span in spans}) == 1
        below = parents(spans)
        assert below["refresh"] == {None}
        if expected == "incremental":
            assert below["commit"] == {"refresh"}
            assert "write" in below


def test_a_refresh_of_all_rows_scans_its_sources_in_its_trace(watched: Watched) -> None:
    table = watched.table()
    table.upsert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}, schema=SCHEMA))
    spans = watched.spans(lambda: watched.run("CREATE MATERIALIZED TABLE m AS SELECT DISTINCT price + rand() * 0 AS p FROM t"))
    assert len({span.context.trace_id for span in spans}) == 1
    assert {"refresh", "scan", "write", "commit"} <= set(parents(spans))


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("INSERT INTO t VALUES (1, 2.0)", "insert"),
        ("INSERT INTO t SELECT id + 10, price FROM t", "insert"),
        ("UPDATE t SET price = 3.0 WHERE id = 1", "update"),
        ("DELETE FROM t WHERE id = 1", "delete"),
        ("MERGE INTO t USING (SELECT 1 AS id, 5.0D AS price) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", "merge"),
    ],
)
def test_a_statement_that_writes_is_one_trace(watched: Watched, statement: str, operation: str) -> None:
    watched.table().upsert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}, schema=SCHEMA))
    spans = watched.spans(lambda: watched.run(statement))
    assert len({span.context.trace_id for span in spans}) == 1
    assert parents(spans)[operation] == {None}
    assert parents(spans)["commit"] == {operation}


def test_a_job_of_its_own_thread_lies_below_what_started_it(watched: Watched) -> None:
    watched.table()
    watched.run("SET 'table.dml-sync' = 'false'")
    tracer = watched.catalog._observers.tracer
    assert tracer is not None

    def run() -> None:
        with tracer.span("caller", "/wh/default.db/t"):
            watched.run("INSERT INTO t VALUES (1, 2.0)").job.result()

    spans = watched.spans(run)
    assert parents(spans)["insert"] == {"caller"}


def test_a_read_counts_its_rows_though_it_ends_in_the_middle(watched: Watched) -> None:
    table = watched.table()
    table.upsert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}, schema=SCHEMA))
    spans = watched.spans(lambda: table.scan().to_arrow())
    (read,) = (span for span in spans if span.name == "tablestore.read")
    assert read.attributes is not None
    assert read.attributes["tablestore.rows"] == 2

    def one_batch() -> None:
        batches = table.scan().to_batches()
        next(batches)
        batches.close()  # type: ignore[attr-defined]

    (read,) = (span for span in watched.spans(one_batch) if span.name == "tablestore.read")
    assert read.attributes is not None
    assert "error.type" not in read.attributes


def test_an_error_is_named_by_its_kind(watched: Watched) -> None:
    table = watched.table()

    def refused() -> None:
        with pytest.raises(ts.InvalidInputError):
            table.upsert(pa.table({"id": [None], "price": [1.0]}))

    (upsert,) = watched.spans(refused)
    assert upsert.attributes is not None
    assert upsert.attributes["error.type"] == "null-in-not-null"
    assert not upsert.status.is_ok


def test_operations_are_counted_and_timed(watched: Watched) -> None:
    table = watched.table()
    for number in range(3):
        table.upsert(pa.table({"id": [number], "price": [1.0]}, schema=SCHEMA))
    commits = [point for point in watched.points("tablestore.operation.duration") if _of(point, "commit")]
    assert sum(point.count for point in commits) == 3
    assert sum(point.value for point in watched.points("tablestore.rows") if _of(point, "commit")) == 3
    assert sum(point.value for point in watched.points("tablestore.bytes") if _of(point, "commit")) > 0


def _of(point: Any, operation: str) -> bool:
    return bool(point.attributes["db.operation.name"] == operation)


def test_nobody_watches_by_default(tmp_path: Path) -> None:
    observers = ts.open_catalog(tmp_path / "wh")._observers
    assert (observers.tracer, observers.lineage) == (None, None)
    on = ts.open_catalog({"warehouse": str(tmp_path / "wh"), "telemetry.opentelemetry": "true"})
    assert isinstance(on._observers.tracer, OpenTelemetryTracer)
    assert on.properties["telemetry.opentelemetry"] == "true"
    # Without an SDK that does nothing.
    on.create_database("d")
    assert on.create_table("d.t", SCHEMA, primary_key="id").upsert(pa.table({"id": [1], "price": [1.0]}, schema=SCHEMA))


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("/data/wh/shop.db/orders", "shop.orders"),
        ("s3://bucket/wh/shop.db/orders/", "shop.orders"),
        ("/data/orders", "orders"),
        ("orders", "orders"),
    ],
)
def test_a_table_is_named_by_its_place(location: str, name: str) -> None:
    assert collection_of(location) == name
