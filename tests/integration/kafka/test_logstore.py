"""The Kafka log store on a real broker: topics, transactions, fencing, tails, and what plain consumers see."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tablestore_kafka import KafkaLogStore
from tablestore_kafka.clientsettings import client_settings, environment_settings

from tablestore.clock import SystemClock
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from tablestore.log.logstore import LogTruncated, SlotFenced
from tablestore.log.record import LogRecords, Mark
from tablestore.testing.contracts.logstore import TABLE, LogStoreContract, publish, records
from tablestore.testing.kafka import KafkaBroker

MakeLog = Callable[..., KafkaLogStore]


class TestKafka(LogStoreContract):
    @pytest.fixture
    def log_of(self, log_of: MakeLog) -> MakeLog:
        return log_of


def read_all(log: KafkaLogStore, bucket: int = 0) -> list[tuple[int, int]]:
    begin, end = log.bounds([bucket])[bucket]
    cursor = log.open_cursor({bucket: begin})
    found: list[tuple[int, int]] = []
    while (polled := cursor.poll(1.0, 1000)) or (not found and end > begin):
        for batch in polled:
            found += zip(batch.snapshots.tolist(), batch.ordinals.tolist(), strict=True)
    cursor.close()
    return found


def test_what_is_not_committed_is_not_seen_and_the_next_holder_of_the_slot_ends_it(log_of: MakeLog) -> None:
    log = log_of()
    publish(log, records(1, 2))
    zombie = log.open_slot(0, (), timeout_s=30)

    def taken_over_while_sending() -> Iterator[LogRecords]:
        yield records(2, 3)
        zombie._producer.flush()  # type: ignore[attr-defined]
        successor = log.open_slot(0, (), timeout_s=30)
        assert log.tails([0])[0].mark == Mark(1, 1), "what the zombie has sent is not visible"
        successor.publish([records(2, 2)], table=TABLE)
        successor.close()

    with pytest.raises(SlotFenced):
        zombie.publish(taken_over_while_sending(), table=TABLE)
    with pytest.raises(SlotFenced):
        zombie.publish([records(3, 1)], table=TABLE)
    zombie.close()
    assert read_all(log) == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_slot_that_was_overtaken_says_so_also_in_the_midst_of_sending(log_of: MakeLog) -> None:
    log = log_of()
    slow = log.open_slot(0, (), timeout_s=30)
    log.open_slot(0, (), timeout_s=30).close()

    def batches() -> Iterator[LogRecords]:
        for number in range(1, 200):
            yield records(number, 3)
            # The client learns of it behind our back, and then takes no more records.
            SystemClock().sleep(0.02)

    with pytest.raises(SlotFenced) as caught:
        slow.publish(batches(), table=TABLE)
    cause = caught.value.__cause__
    assert isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError._FATAL
    slow.close()
    assert log.tails([0])[0].empty


def test_the_tail_is_found_behind_the_markers_of_many_empty_transactions(log_of: MakeLog) -> None:
    log = log_of(2)
    publish(log, records(7, 4))
    slot = log.open_slot(0, (), timeout_s=30)
    for _ in range(20):
        slot._producer.begin_transaction()  # type: ignore[attr-defined]
        slot._send(records(8, 1), b"t")  # type: ignore[attr-defined]
        slot._producer.flush()  # type: ignore[attr-defined]
        slot._producer.abort_transaction()  # type: ignore[attr-defined]
    slot.close()
    tails = log.tails([0, 1])
    assert tails[0].mark == Mark(7, 3) and tails[0].table == TABLE.encode() and tails[0].next_offset == 4
    assert tails[1].mark is None and tails[1].next_offset == 0


def test_records_of_others_are_told_apart(log_of: MakeLog, broker: KafkaBroker) -> None:
    log = log_of()
    stranger = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
    stranger.produce(log.name, b"poison", None, 0, headers=[("snapshot", b"x1")])
    stranger.flush(10)
    stranger.close()
    tail = log.tails([0])[0]
    assert tail.mark is None and tail.table is None and tail.next_offset == 1
    cursor = log.open_cursor({0: 0})
    found = cursor.poll(5.0, 10)[0]
    cursor.close()
    assert found.snapshots.tolist() == [-1] and found.kinds.tolist() == [-1] and found.values == [b"poison"]


def test_headers_left_unread_are_told_all_the_same(log_of: MakeLog, broker: KafkaBroker) -> None:
    log = log_of()
    publish(log, records(1, 1200), records(2, 3), records(3, 400, first=7))
    # The broker answers a commit before its marker is in the partition.
    while log.bounds([0])[0][1] < 1604:
        pass
    stranger = Producer({"bootstrap.servers": broker.servers})
    stranger.produce(log.name, b"poison", None, 0)
    stranger.flush(10)
    stranger.close()
    # One snapshot in two transactions: the marker between them takes an offset and no ordinal.
    publish(log, records(4, 700))
    publish(log, records(4, 300, first=700))
    found: dict[bool, list[tuple[int, int, int, bytes | None, bytes | None]]] = {}
    for dense in (False, True):
        cursor = log.open_cursor({0: 0}, dense=dense)
        got: list[tuple[int, int, int, bytes | None, bytes | None]] = []
        while len(got) < 2604:
            for batch in cursor.poll(5.0, 10_000):
                columns = batch.offsets.tolist(), batch.snapshots.tolist(), batch.ordinals.tolist(), batch.keys, batch.values
                got += zip(*columns, strict=True)
                assert batch.next_offset == batch.offsets[-1] + 1
        cursor.close()
        found[dense] = got
    assert found[True] == found[False]
    assert [offset for offset, *_ in found[True]] == [*range(1603), 1604, *range(1605, 2305), *range(2306, 2606)]
    assert [mark[:2] for _, *mark in found[True]].count([-1, -1]) == 1


def test_a_plain_read_committed_consumer_sees_keys_and_values(log_of: MakeLog, broker: KafkaBroker) -> None:
    log = log_of()
    publish(log, records(1, 5))
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "x", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(log.name, 0, 0)])
    messages = consumer.consume(5, timeout=10)
    consumer.close()
    assert [message.value() for message in messages] == records(1, 5).values
    assert dict(messages[0].headers() or ())["row-kind"] == b"+U"  # type: ignore[arg-type]


def test_bounds_are_the_first_position_and_the_one_behind_the_last_marker(log_of: MakeLog) -> None:
    log = log_of()
    publish(log, records(1, 2))
    publish(log, records(5, 2))
    # Two transactions of two records and a marker each.
    assert log.bounds([0]) == {0: (0, 6)}


def test_a_position_that_retention_has_passed_is_said(log_of: MakeLog) -> None:
    log = log_of()
    publish(log, records(1, 3))
    cursor = log.open_cursor({0: 1000})
    with pytest.raises(LogTruncated, match="retention"):
        while True:
            cursor.poll(5.0, 10)
    cursor.close()


def test_topics_are_made_once_and_dropped_once(log_of: MakeLog) -> None:
    log = log_of(3)
    first = log.incarnation(partitions=3)
    with pytest.raises(AlreadyExistsError, match="IF NOT EXISTS"):
        log.create(partitions=3, retention_ms=1000, ignore_if_exists=False)
    assert log.create(partitions=3, retention_ms=1000, ignore_if_exists=True) is False
    with pytest.raises(InvalidInputError, match=r"has 3 partition\(s\), expected 4"):
        log.create(partitions=4, retention_ms=None, ignore_if_exists=True)
    log.drop(ignore_if_not_exists=False)
    with pytest.raises(NotFoundError, match="DROP TABLE IF EXISTS"):
        log.drop(ignore_if_not_exists=False)
    log.drop(ignore_if_not_exists=True)
    with pytest.raises(NotFoundError, match="does not exist"):
        log.incarnation(partitions=3)
    assert log.create(partitions=3, retention_ms=86_400_000, ignore_if_exists=False) is True
    assert log.incarnation(partitions=3) != first, "a topic made again is another one"


@pytest.mark.deep
def test_a_broker_that_is_away_is_said_and_a_killed_one_loses_nothing(
    own_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"bootstrap.servers": own_broker.servers, "socket.timeout.ms": "2000"}
    log = KafkaLogStore("orders", settings)
    log.create(partitions=1, retention_ms=None, ignore_if_exists=False)
    publish(log, records(1, 3))
    own_broker.kill()
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="check that the brokers are up"):
        patch.setattr("tablestore_kafka.topics.ADMIN_TIMEOUT_S", 1.0)
        log.open_slot(0, (), timeout_s=2)
    own_broker.start()
    publish(log, records(2, 1))
    assert read_all(log) == [(1, 0), (1, 1), (1, 2), (2, 0)]


@pytest.mark.deep
def test_a_commit_that_the_broker_sleeps_through_is_repeated_to_a_known_end(own_broker: KafkaBroker) -> None:
    log = KafkaLogStore("orders", {"bootstrap.servers": own_broker.servers})
    log.create(partitions=1, retention_ms=None, ignore_if_exists=False)
    slot = log.open_slot(0, (), timeout_s=40)

    def killing_between() -> list[LogRecords]:
        own_broker.kill()
        own_broker.start()
        return [records(2, 2)]

    slot.publish([records(1, 2)], table=TABLE)
    slot.publish(killing_between(), table=TABLE)
    slot.close()
    assert read_all(log) == [(1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.mark.parametrize("key", ["ssl.ca.location", "sasl.password", "security.protocol", "plugin.library.paths", "debug"])
def test_a_table_may_not_set_what_reaches_files_or_secrets(key: str) -> None:
    with pytest.raises(InvalidInputError, match="in the environment"):
        client_settings({key: "x", "bootstrap.servers": "y"}, {}, owner="table t")


def test_a_table_may_set_how_its_log_is_sent() -> None:
    settings = {"bootstrap.servers": "y", "linger.ms": "1"}
    assert client_settings(settings, {}, owner="table t") == settings
    assert environment_settings({"TABLESTORE_KAFKA_SASL_PASSWORD": "s", "HOME": "h"}) == {"sasl.password": "s"}
    assert environment_settings({"TABLESTORE_KAFKA_GROUP_ID": ""}) == {}, "the client ends the process for an empty one"


def test_a_partition_whose_leader_is_being_chosen_is_asked_again(log_of: MakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(1)
    asked: list[int] = []

    class Unled:
        def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
            asked.append(1)
            if len(asked) < 3:
                raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
            return 0, 7

        def close(self) -> None:
            pass

    monkeypatch.setattr(log, "_consumer", lambda *_, **__: Unled())
    assert log.bounds([0]) == {0: (0, 7)} and len(asked) == 3
