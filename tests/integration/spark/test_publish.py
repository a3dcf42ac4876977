"""The log is published from Spark tasks, a slot each, and holds every change once, whatever happens to the tasks."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_tablestore.streaming.batches import foreach_batch_writer

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.log.connector import open_log_store
from tablestore.log.publish.backlog import Backlog
from tablestore.log.publish.publisher import PublishReport
from tablestore.table.catalog import Catalog
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import check_topic, content, records_of
from tests.integration.spark.feed import Feed, forget_last
from tests.telemetry.test_spans import Watched, parents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tablestore.distributed.spec import TableSpec

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
CLOCK = SystemClock()
PublishSlot = Callable[..., PublishReport]
THREE_SLOTS = {"bucket": "6", "tablestore.log.publisher-slots": "3"}


@pytest.fixture
def make(catalog: Catalog, broker: KafkaBroker, request: pytest.FixtureRequest) -> Callable[..., ts.Table]:
    """Makes a table of two buckets, each with a publisher slot, whose topic is named after the test."""
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)

    def table(**options: str) -> ts.Table:
        given = {
            "bucket": "2",
            "tablestore.log.publisher-slots": "2",
            "log.kafka.bootstrap.servers": broker.servers,
            "log.kafka.topic": topic,
            "write-only": "true",
            **options,
        }
        return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=given)

    return table


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers of this process leave publishing to others."""
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)


def rows(start: int, end: int, text: str) -> pa.Table:
    return pa.table({"id": list(range(start, end)), "v": [f"{text}{i}" for i in range(start, end)]}, schema=SCHEMA)


def frame(spark: "SparkSession", start: int, end: int, text: str) -> "DataFrame":
    return spark.range(start, end, 1, 2).selectExpr("id", f"concat('{text}', id) AS v")


def check(table: ts.Table, broker: KafkaBroker) -> None:
    """A plain consumer, a reader of ours and the verification agree with the table."""
    check_topic(table, broker.servers)
    found = table.refresh().change_log.verify()
    assert found.problems == () and found.complete
    state: dict[int, str] = {}
    for batch in table.consume(follow=False):
        for row in batch.rows.to_pylist():
            if row["_row_kind"] in ("+I", "+U"):
                state[row["id"]] = row["v"]
            else:
                state.pop(row["id"], None)
    assert state == content(table)


@pytest.mark.deep
@pytest.mark.usefixtures("unpublished")
def test_every_slot_is_a_task_and_sends_what_is_behind_once(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker
) -> None:
    from pyspark_tablestore.publish import publish

    table = make(**THREE_SLOTS)
    assert [(r.slot, r.records) for r in publish(spark, table.location)] == [(0, 0), (1, 0), (2, 0)]
    table.upsert(rows(0, 300, "a"))
    table.delete(rows(0, 10, "").select(["id"]))
    reports = publish(spark, table.location)
    assert [(r.slot, r.snapshot_id, r.busy) for r in reports] == [(0, 2, False), (1, 2, False), (2, 2, False)]
    assert all(r.records for r in reports) and sum(r.records for r in reports) == 310
    assert sum(r.records for r in publish(spark, table.location)) == 0
    check(table, broker)


def test_a_table_without_a_topic_has_nothing_to_publish(spark: "SparkSession", catalog: Catalog) -> None:
    from pyspark_tablestore.publish import publish

    table = catalog.create_table("shop.plain", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    table.upsert(rows(0, 3, "a"))
    assert publish(spark, table.location) == ()


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.usefixtures("unpublished")
@pytest.mark.parametrize("where", ["between two transactions", "inside of a transaction"])
def test_a_task_whose_process_dies_is_tried_again_and_goes_on_behind_what_is_visible(
    where: str, spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablestore.publish import publish

    # Nested functions travel by value, so workers need not import this test.
    def dying(spec: "TableSpec", slots: int, slot: int, *, look: bool) -> PublishReport:
        import os
        from unittest.mock import patch

        from pyspark import TaskContext
        from tablestore_kafka.slot import KafkaSlot

        from tablestore.distributed.publish import publish_slot
        from tablestore.log.publish.publisher import LogPublisher

        def die(self: Any, *_: Any) -> None:
            if isinstance(self, KafkaSlot):
                self._producer.flush(10)
            os._exit(1)

        context = TaskContext.get()
        with patch("tablestore.log.publish.publisher.MAX_RECORDS", 20):
            if context is None or context.attemptNumber() > 0:
                return publish_slot(spec, slots, slot, look=look)
            with patch.object(*(LogPublisher, "_record") if where == "between two transactions" else (KafkaSlot, "_commit"), die):
                return publish_slot(spec, slots, slot, look=look)

    table = make()
    table.upsert(rows(0, 400, "a"))
    monkeypatch.setattr("pyspark_tablestore.publish.publish_slot", dying)
    reports = publish(spark, table.location)
    already = 2 * 20 if where == "between two transactions" else 0
    assert sum(r.records for r in reports) == 400 - already
    check(table, broker)


@pytest.mark.deep
@pytest.mark.usefixtures("unpublished")
def test_two_jobs_and_a_writer_at_once_do_not_disturb_each_other(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker
) -> None:
    from pyspark_tablestore.publish import publish

    table = make()
    table.upsert(rows(0, 200, "a"))
    failures: list[BaseException] = []
    sent: list[int] = []

    def run() -> None:
        try:
            for _ in range(2):
                sent.extend(report.records for report in publish(spark, table.location))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(5):
        table.upsert(rows(step * 10, step * 10 + 30, f"s{step}-"))
    for thread in threads:
        thread.join()
    assert failures == []
    sent.extend(report.records for report in publish(spark, table.location))
    assert sum(sent) == 200 + 5 * 30
    check(table, broker)


def test_a_task_waits_for_whoever_holds_its_slot_until_that_has_sent_what_there_was(
    make: Callable[..., ts.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tablestore.distributed.publish import publish_slot
    from tablestore.distributed.spec import TableSpec

    table = make()
    for step in range(2):
        table.upsert(rows(0, 5, f"s{step}-"))
    answers = [PublishReport(slot=1, snapshot_id=done, records=0, transactions=0, busy=True) for done in (0, 1, 2, 3)]
    left = iter(answers)
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.publish", lambda log, *, slots, look: (next(left),))
    assert publish_slot(TableSpec(location=table.location, storage_options={}), 2, 1, look=False) == answers[2]


@pytest.mark.deep
@pytest.mark.usefixtures("unpublished")
def test_a_task_that_another_host_has_fenced_sends_nothing_twice(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark_tablestore.publish import publish

    table = make(**{"tablestore.log.publisher-slots": "1"})
    table.upsert(rows(0, 400, "a"))
    signs = str(tmp_path)

    def on_host(host: str, *, stands_still: bool) -> PublishSlot:
        def publish_there(spec: "TableSpec", slots: int, slot: int, *, look: bool) -> PublishReport:
            from pathlib import Path
            from unittest.mock import patch

            from tablestore.clock import SystemClock
            from tablestore.distributed.publish import publish_slot
            from tablestore.log.publish.publisher import LogPublisher

            clock, record, own = SystemClock(), LogPublisher._record, Path(signs, host)
            own.mkdir()

            def recorded(self: LogPublisher, *progress: Any) -> None:
                record(self, *progress)
                if stands_still and not Path(signs, "sent").exists():
                    Path(signs, "sent").touch()
                    deadline_s = clock.steady_s() + 120
                    while not Path(signs, "overtaken").exists() and clock.steady_s() < deadline_s:
                        clock.sleep(0.01)

            # Hosts share the table and the broker, but no lock.
            with (
                patch("tablestore.log.publish.slotlocks.user_lock_folder", lambda: own),
                patch("tablestore.log.publish.publisher.MAX_RECORDS", 50),
                patch.object(LogPublisher, "_record", recorded),
            ):
                return publish_slot(spec, slots, slot, look=look)

        return publish_there

    first: list[Any] = []
    monkeypatch.setattr("pyspark_tablestore.publish.publish_slot", on_host("first", stands_still=True))
    thread = threading.Thread(target=lambda: first.extend(publish(spark, table.location)))
    thread.start()
    deadline_s = CLOCK.steady_s() + 120
    while not (tmp_path / "sent").exists():
        assert CLOCK.steady_s() < deadline_s, "the first job does not get to work"
        CLOCK.sleep(0.01)
    monkeypatch.setattr("pyspark_tablestore.publish.publish_slot", on_host("second", stands_still=False))
    (second,) = publish(spark, table.location)
    (tmp_path / "overtaken").touch()
    thread.join()
    assert [(r.records, r.transactions, r.snapshot_id) for r in first] == [(50, 1, 1)]
    assert (second.records, second.snapshot_id) == (350, 1)
    check(table, broker)


@pytest.mark.deep
@pytest.mark.usefixtures("unpublished")
def test_errors_of_tasks_are_ours_and_other_slots_go_on(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablestore.publish import publish

    def half(spec: "TableSpec", slots: int, slot: int, *, look: bool) -> PublishReport:
        from tablestore.distributed.publish import publish_slot
        from tablestore.log.logstore import SlotFenced

        if slot == 0:
            raise SlotFenced("taken on purpose")
        return publish_slot(spec, slots, slot, look=look)

    def broken(*_: Any, look: bool) -> PublishReport:
        raise RuntimeError("lost on purpose")

    table = make(**THREE_SLOTS)
    table.upsert(rows(0, 60, "a"))
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_tablestore.publish.publish_slot", half)
        with pytest.raises(ts.ConflictError, match="taken on purpose") as caught:
            publish(spark, table.location)
        assert caught.value.kind == "fenced"
        found = records_of(table, broker.servers)
        assert {bucket for bucket, records in found.items() if records} == {1, 2, 4, 5}
        patch.setattr("pyspark_tablestore.publish.publish_slot", broken)
        with pytest.raises(ts.StorageError, match=r"Spark gave the job up \(RuntimeError: lost on purpose\)"):
            publish(spark, table.location)
    publish(spark, table.location)
    check(table, broker)
    log = open_log_store(table.change_log.settings)
    log.drop(ignore_if_not_exists=False)
    log.create(partitions=6, retention_ms=None, ignore_if_exists=False)
    table.upsert(rows(0, 60, "b"))
    with pytest.raises(ts.ConflictError, match="log rebuild") as caught:
        publish(spark, table.location)
    assert caught.value.kind == "log-replaced"


@pytest.mark.deep
def test_what_spark_writes_is_published_once(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark_tablestore
    from pyspark_tablestore import publish

    jobs: list[str] = []
    real = publish._publish_slots

    def counted(*arguments: Any, **named: Any) -> tuple[PublishReport, ...]:
        jobs.append("job")
        return real(*arguments, **named)

    monkeypatch.setattr(publish, "_publish_slots", counted)
    table = make()
    # The data source commits in a process without a session: that process publishes.
    frame(spark, 0, 50, "a").write.format("tablestore").mode("append").save(table.location)
    assert sum(map(len, records_of(table, broker.servers).values())) == 50
    # Little is published by the process of the user, much as tasks.
    pyspark_tablestore.write(frame(spark, 25, 75, "b"), table.location)
    assert jobs == [] and sum(map(len, records_of(table, broker.servers).values())) == 100
    monkeypatch.setattr(publish, "PARALLEL_BACKLOG", publish.Backlog(rows=40, bytes=2**60))
    pyspark_tablestore.write(frame(spark, 50, 100, "c"), table.location)
    gone = spark.range(0, 5).selectExpr("id", "CAST(NULL AS STRING) AS v", "'-D' AS _row_kind")
    pyspark_tablestore.write(gone, table.location)
    assert jobs == ["job"]
    monkeypatch.setattr(publish, "PARALLEL_BACKLOG", publish.Backlog(rows=2**60, bytes=1))
    pyspark_tablestore.write(frame(spark, 90, 110, "d"), table.location)
    assert jobs == ["job", "job"]
    check(table, broker)
    # An overwrite does not tell its changes: the publisher moves on, and what follows is in the topic.
    frame(spark, 0, 10, "o").write.format("tablestore").mode("overwrite").save(table.location)
    pyspark_tablestore.write(frame(spark, 5, 15, "p"), table.location, "overwrite")
    pyspark_tablestore.write(frame(spark, 5, 6, "q"), table.location)
    assert sum(map(len, records_of(table, broker.servers).values())) == 50 + 50 + 50 + 5 + 20 + 1
    assert {report.snapshot_id for report in table.change_log.publish()} == {table.snapshots()[-1].id}
    assert table.refresh().change_log.verify().problems == ()


@pytest.mark.deep
def test_a_publish_by_tasks_is_a_span_of_its_insert(
    spark: "SparkSession", broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablestore import publish
    from pyspark_tablestore.engine import SparkEngine

    monkeypatch.setattr(publish, "PARALLEL_BACKLOG", publish.Backlog(rows=1, bytes=1))
    watched = Watched(tmp_path, SparkEngine(spark))
    table = watched.table(**{"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "spans", **THREE_SLOTS})
    spans = watched.spans(lambda: watched.run("INSERT INTO t SELECT id, 1.0D FROM range(50)"))
    watched.env.close()
    assert parents(spans)["publish"] == {"insert"}
    published = [span.attributes or {} for span in spans if span.name == "tablestore.publish"]
    assert sum(attributes["tablestore.rows"] for attributes in published) == 50
    assert sum(map(len, records_of(table, broker.servers).values())) == 50


@pytest.mark.deep
def test_what_a_compaction_tells_is_published_by_it(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablestore import publish
    from pyspark_tablestore.compact import compact

    monkeypatch.setattr(publish, "PARALLEL_BACKLOG", publish.Backlog(rows=1, bytes=1))
    table = make(**{"changelog-producer": "full-compaction"})
    table.upsert(rows(0, 50, "a"))
    assert sum(map(len, records_of(table, broker.servers).values())) == 0
    compact(spark, table.location, full=True)
    assert sum(map(len, records_of(table, broker.servers).values())) == 50
    table.upsert(rows(0, 5, "b"))
    table.compact(full=True)
    assert sum(map(len, records_of(table, broker.servers).values())) == 55
    assert table.refresh().change_log.verify().problems == ()


@pytest.mark.deep
def test_a_write_lands_when_its_publish_fails_and_the_next_one_catches_up(
    spark: "SparkSession",
    make: Callable[..., ts.Table],
    broker: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import pyspark_tablestore
    from pyspark_tablestore import publish

    def broken(*_: Any, look: bool) -> PublishReport:
        import os

        os._exit(1)

    table = make()
    monkeypatch.setattr(publish, "PARALLEL_BACKLOG", publish.Backlog(rows=1, bytes=1))
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(publish, "publish_slot", broken)
        snapshot = pyspark_tablestore.write(frame(spark, 0, 50, "a"), table.location)
    assert snapshot is not None and snapshot.id == 1 and len(content(table)) == 50
    assert "snapshot 1 of" in caplog.text and "Python worker exited unexpectedly" in caplog.text
    pyspark_tablestore.write(frame(spark, 50, 60, "b"), table.location)
    check(table, broker)


@pytest.mark.deep
def test_batches_of_a_stream_are_published_once_by_a_task_per_slot(
    spark: "SparkSession", make: Callable[..., ts.Table], broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    # Every backlog is large enough for tasks.
    monkeypatch.setattr("pyspark_tablestore.publish.PARALLEL_BACKLOG", Backlog(rows=1, bytes=1))
    feed = Feed(spark, tmp_path / "feed", SCHEMA)
    feed.folder.mkdir()
    for number in range(2):
        pq.write_table(rows(number * 50, number * 50 + 100, "v"), feed.folder / f"{number}.parquet")
    writer = foreach_batch_writer(table.location)
    for _ in range(2):
        sink = feed.read().writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start().awaitTermination()
        forget_last(tmp_path / "checkpoint")
    assert [one.commit_identifier for one in table.snapshots()] == [0, 1]
    check_topic(table, broker.servers)
    assert sum(len(found) for found in records_of(table, broker.servers).values()) == 200
