"""Seams of the hybrid read that only a topic has; what it shares with the file store is in test_conformance."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import tablestore as ts
from tablestore.table.logs import PUBLISHERS, publish_log, rebuild_log
from tablestore.testing.kafka import KafkaBroker

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture(autouse=True)
def _closed_publishers() -> Iterator[None]:
    yield
    PUBLISHERS.close()


@pytest.fixture
def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def make(catalog: ts.Catalog, broker: KafkaBroker, topic: str, **options: str) -> ts.Table:
    options = {"bucket": "2", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic, **options}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


@pytest.fixture
def table(catalog: ts.Catalog, broker: KafkaBroker, request: pytest.FixtureRequest) -> ts.Table:
    return make(catalog, broker, "".join(c if c.isalnum() else "-" for c in request.node.name))


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def listed(batches: Any) -> list[tuple[int, str, int, str | None]]:
    return [(batch.snapshot_id, row["_row_kind"], row["id"], row["v"]) for batch in batches for row in batch.rows.to_pylist()]


def folded(changes: list[tuple[int, str, int, str | None]]) -> dict[int, str | None]:
    state: dict[int, str | None] = {}
    for _, kind, key, value in changes:
        if kind in ("+I", "+U"):
            state[key] = value
        elif kind == "-D":
            state.pop(key, None)
    return state


def content(table: ts.Table) -> dict[int, str | None]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def once(changes: list[tuple[int, str, int, str | None]]) -> bool:
    places = [(snapshot, key) for snapshot, _, key, _ in changes]
    return len(places) == len(set(places))


def test_a_named_consumer_goes_on_in_the_log(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="billing", follow=False):
        batch.commit()
    for step in range(3):
        table.upsert(rows([step], f"s{step}-"))
        got = listed(table.consume(consumer_id="billing", follow=False))
        assert (step + 2, "+I", step, f"s{step}-{step}") in got and once(got)
        for batch in table.consume(consumer_id="billing", follow=False):
            batch.commit()
        assert listed(table.consume(consumer_id="billing", follow=False)) == []


def test_snapshots_that_nobody_published_are_read_from_the_file_store_and_left_out_of_the_log_later(
    table: ts.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(rows([1], "a"))
    reading = table.consume("from-timestamp", timestamp=0, follow=False, consumer_id="c")
    monkeypatch.setattr("tablestore.table.writer.publish_after_commit", lambda *_: None)
    table.upsert(rows([2], "b"))
    got = []
    for batch in reading:
        got += listed([batch])
        batch.commit()
    assert folded(got) == {1: "a1", 2: "b2"}
    monkeypatch.undo()
    table.upsert(rows([3], "c"))
    assert listed(table.consume(consumer_id="c", follow=False)) == [(3, "+I", 3, "c3")]


def test_a_log_that_was_made_anew_is_noticed_and_the_hole_filled(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    table.upsert(rows([2], "b"))
    rebuild_log(table.context)
    table.upsert(rows([3], "c"))
    got = listed(table.consume(consumer_id="c", follow=False))
    assert once(got) and folded(got) == {2: "b2", 3: "c3"}


def test_a_poison_message_of_ours_is_named_and_one_of_strangers_left_out(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1], "a"))
    topic, uuid = table.options()["log.kafka.topic"], table.context.table_uuid or ""
    stranger = Producer({"bootstrap.servers": broker.servers})
    stranger.produce(topic, b"poison", None, 0)
    stranger.flush(10)
    assert folded(listed(table.consume("from-timestamp", timestamp=0, follow=False))) == {1: "a1"}
    headers: Any = [("table", uuid.encode()), ("snapshot", b"2"), ("ordinal", b"0"), ("row-kind", b"+I")]
    stranger.produce(topic, b"poison", None, 0, headers=headers)
    stranger.flush(10)
    stranger.close()
    with pytest.raises(ts.errors.FormatError, match="cannot be understood"):
        list(table.consume("from-timestamp", timestamp=0, follow=False))


def test_dropping_a_table_drops_its_topic_and_creating_fails_whole(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table = make(catalog, broker, "life-cycle")
    table.upsert(rows([1], "a"))
    other = ts.open_catalog(str(Path(table.location.removeprefix("file://")).parents[1] / "other"))
    other.create_database("shop")
    with pytest.raises(ts.errors.AlreadyExistsError, match="Failed to create kafka topic"):
        make(other, broker, "life-cycle")
    assert other.list_tables("shop") == ()
    catalog.drop_table("shop.t")
    again = make(catalog, broker, "life-cycle")
    again.upsert(rows([5], "z"))
    assert folded(listed(again.consume(follow=False))) == {5: "z5"}


def _published_in_the_end(table: ts.Table) -> int:
    """The records that were sent; a broker that comes back may need a second call."""
    for _ in range(3):
        try:
            return sum(report.records for report in publish_log(table.context))
        except ts.StorageError:
            continue
    raise AssertionError("the broker is back and nothing can be published")


def test_a_broker_that_is_down_stops_no_write_and_the_next_publisher_catches_up(
    own_broker: KafkaBroker, catalog: ts.Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore.table.publish.OPEN_TIMEOUT_S", 2.0)
    table = make(catalog, own_broker, "down", **{"log.kafka.socket.timeout.ms": "2000"})
    table.upsert(rows([1], "a"))
    own_broker.kill()
    PUBLISHERS.close()
    snapshot = table.upsert(rows([2], "b"))
    assert snapshot is not None and "has landed" in caplog.text
    with pytest.raises(ts.errors.StorageError, match="Snapshots stay readable"):
        table.consume(follow=False)
    assert content(table) == {1: "a1", 2: "b2"}
    own_broker.start()
    # Two: the broker was killed before it had written the markers of the first transaction, and has lost it.
    assert _published_in_the_end(table) in (1, 2)
    assert folded(listed(table.consume("from-timestamp", timestamp=0, follow=False))) == {1: "a1", 2: "b2"}
