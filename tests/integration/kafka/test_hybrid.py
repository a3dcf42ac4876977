"""Seams of the hybrid read that only a topic has; what it shares with the file store is in test_conformance."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import tablestore as ts
from tablestore.log.position import LogPlace
from tablestore.testing.kafka import KafkaBroker

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


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


@pytest.mark.deep
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


@pytest.mark.deep
def test_snapshots_that_nobody_published_are_read_from_the_file_store_and_left_out_of_the_log_later(
    table: ts.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(rows([1], "a"))
    reading = table.consume("from-timestamp", timestamp=0, follow=False, consumer_id="c")
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
    table.upsert(rows([2], "b"))
    got = []
    for batch in reading:
        got += listed([batch])
        batch.commit()
    assert folded(got) == {1: "a1", 2: "b2"}
    monkeypatch.undo()
    table.upsert(rows([3], "c"))
    assert listed(table.consume(consumer_id="c", follow=False)) == [(3, "+I", 3, "c3")]


def only_the_newest(table: ts.Table) -> None:
    # A publisher that has just begun tells expiry how far it is.
    table.change_log.publish(look=True)
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert [snapshot.id for snapshot in table.snapshots()] == [table.snapshots()[-1].id]


def cut(broker: KafkaBroker, topic: str, bucket: int, before: int) -> None:
    """What retention does to a partition."""
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, bucket, before)]).values():
        future.result()


@pytest.mark.deep
def test_a_time_that_snapshots_no_longer_reach_is_found_in_the_log(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table = make(catalog, broker, "older-than-snapshots", **{"write-only": "true"})
    for step in range(12):
        table.upsert(rows([step, 100 + step], f"s{step}-"))
    snapshots = table.snapshots()
    everything = listed(table.consume("from-timestamp", timestamp=0, follow=False))
    assert len(everything) == 24
    only_the_newest(table)

    def since(number: int, **how: Any) -> list[tuple[int, str, int, str | None]]:
        return sorted(listed(table.consume("from-timestamp", timestamp=snapshots[number - 1].time_millis, follow=False, **how)))

    for number in (1, 5, 12):
        assert since(number) == sorted(change for change in everything if change[0] >= number)
    # Between two snapshots, before and behind all of them.
    assert listed(table.consume("from-timestamp", timestamp=snapshots[-1].time_millis + 1, follow=False)) == []
    assert len(listed(table.consume("from-timestamp", timestamp=snapshots[4].time_millis - 1, follow=False))) == 16
    assert len(listed(table.consume("from-timestamp", timestamp=0, follow=False))) == 24
    # A named consumer goes on from there as from anywhere.
    for batch in table.consume("from-timestamp", timestamp=snapshots[9].time_millis, consumer_id="c", follow=False):
        batch.commit()
    table.upsert(rows([1], "new"))
    assert listed(table.consume(consumer_id="c", follow=False)) == [(13, "+I", 1, "new1")]
    # Retention has taken the first records of one bucket, in the midst of a snapshot perhaps: the next one is whole.
    topic, behind = table.options()["log.kafka.topic"], {}
    for batch in table.consume("from-timestamp", timestamp=0, follow=False):
        place = batch.position.place
        assert isinstance(place, LogPlace)
        behind |= {b: place.offsets[b] for b, mark in place.marks.items() if mark.snapshot_id == 4}
    bucket, before = next(iter(behind.items()))
    cut(broker, topic, bucket, before)
    first = min(change[0] for change in since(1))
    assert 4 < first <= 6
    assert since(1) == since(first) and {change for change in everything if change[0] >= first} <= set(since(1))
    # All of a bucket is gone: what the log holds of the others is not all there was.
    for one in (0, 1):
        cut(broker, topic, one, -1)
    assert {change[0] for change in since(1)} == {12, 13} == {snapshot.id for snapshot in table.snapshots()}


@pytest.mark.deep
def test_an_overwrite_that_expired_stops_who_reads_across_it(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    table.overwrite(rows([2], "b"))
    table.upsert(rows([3], "c"))
    only_the_newest(table)
    with pytest.raises(ts.NotFoundError, match="snapshot 2, which has expired, replaced rows"):
        list(table.consume("from-timestamp", timestamp=0, follow=False))
    left = listed(table.consume("from-timestamp", timestamp=0, follow=False, on_discontinuity="skip"))
    assert left == [(1, "+I", 1, "a1"), (3, "+I", 3, "c3")]
    anew = listed(table.consume("from-timestamp", timestamp=0, follow=False, on_discontinuity="restart"))
    assert folded([change for change in anew if change[0] == 3]) == content(table)


@pytest.mark.deep
def test_a_log_that_was_made_anew_is_noticed_and_the_hole_filled(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    table.upsert(rows([2], "b"))
    table.change_log.rebuild()
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
    headers: Any = [("table", uuid.encode()), ("snapshot", b"1"), ("ordinal", b"1000"), ("row-kind", b"+I")]
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


@pytest.mark.deep
def test_a_broker_that_is_down_stops_no_write_and_one_that_is_back_is_caught_up_with(
    own_broker: KafkaBroker, catalog: ts.Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore_kafka.slot._COMMIT_TRY_S", 1.0)
    monkeypatch.setattr("tablestore_kafka.logstore.CALL_TIMEOUT_S", 3.0)
    monkeypatch.setattr("tablestore.log.publish.circuitbreaker.PAUSE_S", 0.0)
    table = make(catalog, own_broker, "down", **{"log.kafka.socket.timeout.ms": "2000"})
    table.upsert(rows([1], "a"))
    own_broker.kill()
    with monkeypatch.context() as patch:
        patch.setattr("tablestore_kafka.topics.ADMIN_TIMEOUT_S", 1.0)
        for number in (2, 3, 4):
            assert table.upsert(rows([number], "b")) is not None
        # The first write has waited for the broker, the others have only looked whether it is back.
        assert caplog.text.count("has landed; its changes are not in the log yet") == 1
        assert folded(listed(table.consume(follow=False))) == content(table), "read from the snapshots meanwhile"
    assert content(table) == {1: "a1", 2: "b2", 3: "b3", 4: "b4"}
    own_broker.start()
    for number in range(5, 15):
        table.upsert(rows([number], "c"))
        if all(bucket.lag_snapshots == 0 for bucket in table.change_log.status().buckets):
            break
    else:
        raise AssertionError("the broker is back and no write publishes")
    got = listed(table.consume("from-timestamp", timestamp=0, follow=False))
    assert once(got) and folded(got) == content(table)
