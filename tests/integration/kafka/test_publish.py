"""The outbox on a real broker: the topic holds each snapshot's changes once, in order, whatever happens to publishers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from tablestore_kafka import KafkaLogStore

import tablestore as ts
from tablestore.log.logprogress import LogProgress
from tablestore.log.logstore import cut_into_transactions
from tablestore.log.publish.publisher import LogPublisher
from tablestore.log.publish.slotlocks import SlotLocks, user_lock_folder
from tablestore.log.settings import log_settings
from tablestore.store.history.consumers import LOG_CONSUMER, Consumers
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import plain_consumer

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
MakeLog = Callable[..., KafkaLogStore]
LOCKS = SlotLocks(user_lock_folder())


def make(path: Path, **options: str) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    options = {"bucket": "2", "write-only": "true", **options}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def publisher(table: ts.Table, log: KafkaLogStore, *, slot: int = 0, **options: str) -> LogPublisher:
    schema = table.table_schema
    settings = log_settings(
        replace(schema, options={**schema.options, **options, "log.kafka.bootstrap.servers": "set"}), name=log.name
    )
    return LogPublisher(table.context, log, settings, LOCKS, slot=slot)


def messages(log: KafkaLogStore, servers: str, bucket: int) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """(snapshot, ordinal, key, value) as a plain read_committed consumer sees them."""
    consumer = plain_consumer(servers)
    consumer.assign([TopicPartition(log.name, bucket, 0)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            break
        headers: Any = dict(message.headers() or ())
        found.append((int(headers["snapshot"]), int(headers["ordinal"]), message.key(), message.value()))
    consumer.close()
    return found


def folded(log: KafkaLogStore, servers: str, buckets: int) -> dict[int, str]:
    state: dict[int, str] = {}
    for bucket in range(buckets):
        for _, _, key, value in messages(log, servers, bucket):
            number = json.loads(key or b"")["id"]
            if value is None:
                state.pop(number, None)
            else:
                state[number] = json.loads(value)["after"]["v"]
    return state


def content(table: ts.Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def exactly_once(log: KafkaLogStore, servers: str, buckets: int) -> bool:
    for bucket in range(buckets):
        places = [(snapshot, ordinal) for snapshot, ordinal, _, _ in messages(log, servers, bucket)]
        if places != sorted(set(places)):
            return False
    return True


@pytest.mark.deep
def test_the_topic_holds_what_the_snapshots_changed(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path), log_of(2)
    outbox = publisher(table, log)
    assert outbox.publish().records == 0
    table.upsert(rows([1, 2, 3], "a"))
    assert outbox.publish().records == 3
    table.upsert(rows([2, 4], "b"))
    table.delete(pa.table({"id": [3]}))
    report = outbox.publish()
    assert (report.records, report.snapshot_id, report.transactions) == (3, 3, 1)
    assert outbox.publish().transactions == 0
    outbox.close()
    assert folded(log, broker.servers, 2) == content(table) == {1: "a1", 2: "b2", 4: "b4"}
    assert exactly_once(log, broker.servers, 2)


@pytest.mark.deep
def test_another_publisher_goes_on_where_the_topic_ends(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path), log_of(2)
    for step in range(6):
        table.upsert(rows([step, step + 1], f"s{step}-"))
        outbox = publisher(table, log)
        outbox.publish()
        outbox.close()
    assert exactly_once(log, broker.servers, 2) and folded(log, broker.servers, 2) == content(table)


@pytest.mark.deep
def test_a_crash_between_sending_and_recording_repeats_nothing(
    tmp_path: Path, log_of: MakeLog, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows(list(range(50)), "a"))
    outbox = publisher(table, log)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LogPublisher, "_record", crash)
    with pytest.raises(KeyboardInterrupt):
        outbox.publish()
    monkeypatch.undo()
    table.upsert(rows([1], "b"))
    again = publisher(table, log)
    assert again.publish().records == 1
    again.close()
    assert exactly_once(log, broker.servers, 2) and folded(log, broker.servers, 2) == content(table)


@pytest.mark.deep
def test_a_large_snapshot_is_cut_and_resumed_in_the_middle(
    tmp_path: Path, log_of: MakeLog, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore.log.publish.publisher.MAX_RECORDS", 100)
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows(list(range(1000)), "a"))
    outbox = publisher(table, log)
    outbox.open()
    sent = outbox._slot
    assert sent is not None
    first, second, *_ = cut_into_transactions(outbox._pending(1), max_records=100, max_bytes=10**9)
    sent.publish(first, table=table.context.table_uuid or "")
    sent.publish(second, table=table.context.table_uuid or "")
    outbox.close()
    again = publisher(table, log)
    assert again.publish().records == 800
    again.close()
    assert exactly_once(log, broker.servers, 2) and folded(log, broker.servers, 2) == content(table)


@pytest.mark.deep
def test_slots_share_the_buckets_and_their_number_may_change(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path, bucket="3"), log_of(3)
    layouts = [1, 3, 1, 2]
    for step, slots in enumerate(layouts):
        table.upsert(rows(list(range(step, step + 20)), f"s{step}-"))
        for slot in range(slots):
            outbox = publisher(table, log, slot=slot, **{"tablestore.log.publisher-slots": str(slots)})
            outbox.publish()
            outbox.close()
    assert exactly_once(log, broker.servers, 3) and folded(log, broker.servers, 3) == content(table)
    assert Consumers(table.context.files).get(LOG_CONSUMER).next_snapshot == 5


def test_overwrites_are_not_published_and_what_follows_is(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows([1], "a"))
    table.overwrite(rows([2], "o"))
    table.upsert(rows([3], "b"))
    outbox = publisher(table, log)
    assert (outbox.publish().records, outbox.publish().snapshot_id) == (2, 3)
    outbox.close()


def test_all_mode_has_both_rows_of_an_update(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path, bucket="1"), log_of(1)
    table.upsert(rows([1], "a"))
    table.upsert(rows([1, 2], "b"))
    outbox = publisher(table, log, **{"log.changelog-mode": "all"})
    outbox.publish()
    outbox.close()
    found = [json.loads(value or b"") for _, _, _, value in messages(log, broker.servers, 0)]
    assert [(m["op"], (m["before"] or m["after"])["v"]) for m in found] == [("c", "a1"), ("d", "a1"), ("c", "b1"), ("c", "b2")]


def test_the_log_of_another_table_is_refused(tmp_path: Path, log_of: MakeLog) -> None:
    one, other, log = make(tmp_path / "a"), make(tmp_path / "b"), log_of(2)
    for table in (one, other):
        table.upsert(rows(list(range(10)), "a"))
    first = publisher(one, log)
    first.publish()
    first.close()
    second = publisher(other, log)
    with pytest.raises(ts.errors.ConflictError, match="two tables name the same topic"):
        second.publish()
    second.close()


def test_records_of_strangers_at_the_end_are_refused(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path, bucket="1"), log_of(1)
    table.upsert(rows([1], "a"))
    stranger = Producer({"bootstrap.servers": broker.servers})
    stranger.produce(log.name, b"poison", None, 0)
    stranger.flush(10)
    stranger.close()
    outbox = publisher(table, log)
    with pytest.raises(ts.errors.ConflictError, match="no tablestore has written"):
        outbox.publish()
    outbox.close()


def test_a_topic_that_was_made_again_is_refused(tmp_path: Path, log_of: MakeLog) -> None:
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows([1], "a"))
    outbox = publisher(table, log)
    outbox.publish()
    outbox.close()
    log.drop(ignore_if_not_exists=False)
    log.create(partitions=2, retention_ms=None, ignore_if_exists=False)
    table.upsert(rows([2], "b"))
    again = publisher(table, log)
    with pytest.raises(ts.errors.ConflictError, match="log rebuild"):
        again.publish()
    again.close()


@pytest.mark.deep
@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_broker_that_dies_right_after_a_commit_hangs_nobody(
    tmp_path: Path, own_broker: KafkaBroker, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Apache Kafka 4.3.1 forgets the markers of such a transaction about every second time; it then is open for ever.
    monkeypatch.setattr("tablestore.log.publish.publisher.OPEN_TIMEOUT_S", 20.0)
    table = make(tmp_path)
    log = KafkaLogStore("dies", {"bootstrap.servers": own_broker.servers})
    log.create(partitions=2, retention_ms=None, ignore_if_exists=False)
    for number in range(rounds):
        table.upsert(rows(list(range(number, number + 4)), f"r{number}-"))
        outbox = publisher(table, log)
        outbox.publish()
        own_broker.kill()
        outbox.close()
        own_broker.start()
    last = publisher(table, log)
    last.publish(look=True)
    last.close()
    assert exactly_once(log, own_broker.servers, 2) and folded(log, own_broker.servers, 2) == content(table)


def acknowledged_but_gone(table: ts.Table, log: KafkaLogStore, servers: str, *, aborted: int) -> None:
    """Note a snapshot as sent whose records nobody sees; ``aborted`` records of the partition are there, but not visible."""
    progress = LogProgress(table.context.files)
    noted = progress.read(0, 1)
    assert noted is not None
    table.upsert(rows([1, 2, 3, 4], "gone"))
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{log.name}-stranger"})
    producer.init_transactions()
    producer.begin_transaction()
    for bucket in (0, 1):
        for _ in range(aborted):
            producer.produce(log.name, b"{}", partition=bucket)
    producer.flush()
    producer.abort_transaction()
    producer.close()
    offsets = {bucket: offset + 2 for bucket, offset in noted.offsets.items()}
    progress.record(0, 1, replace(noted, snapshot_id=noted.snapshot_id + 1, snapshot_uuid=None, offsets=offsets))


@pytest.mark.deep
def test_what_the_log_has_lost_is_sent_again(
    tmp_path: Path, log_of: MakeLog, broker: KafkaBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows([1, 2, 3, 4, 5], "a"))
    outbox = publisher(table, log)
    outbox.publish()
    outbox.close()
    acknowledged_but_gone(table, log, broker.servers, aborted=2)
    assert outbox.publish().records == 0, "who only looks at what is recorded sees nothing to do"

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as m, pytest.raises(KeyboardInterrupt):
        m.setattr("tablestore.log.publish.publisher.cut_into_transactions", crash)
        outbox.publish(look=True)
    table.upsert(rows([5], "b"))
    assert outbox.publish(look=True).records == 5 and "sending them again" in caplog.text
    outbox.close()
    assert exactly_once(log, broker.servers, 2) and folded(log, broker.servers, 2) == content(table)


def test_a_log_that_was_cut_off_is_refused(tmp_path: Path, log_of: MakeLog, broker: KafkaBroker) -> None:
    table, log = make(tmp_path), log_of(2)
    table.upsert(rows([1, 2, 3, 4, 5], "a"))
    outbox = publisher(table, log)
    outbox.publish()
    outbox.close()
    progress = LogProgress(table.context.files)
    noted = progress.read(0, 1)
    assert noted is not None
    progress.record(0, 1, replace(noted, snapshot_id=2, offsets=dict.fromkeys(noted.offsets, 100)))
    with pytest.raises(ts.errors.ConflictError, match="log rebuild"):
        outbox.publish(look=True)
