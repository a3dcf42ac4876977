"""Reads single visible records of each partition: the last one, and the first one at or after a time.

The end of a partition may hold nothing but the markers of transactions, so the window that is read backwards grows fourfold
until a record is in it. What the broker names for a time may be a marker too, and an older record may come behind it: from there on
records are looked at until one fits.
"""

from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tablestore.clock import Clock
from tablestore.errors import StorageError
from tablestore.log.record import Tail
from tablestore_kafka.client import consume, translated
from tablestore_kafka.topiccursor import describe, tail_of

_FIRST_WINDOW = 8
_LIMIT_S = 60.0


def read_tails(
    consumer: Consumer, topic: str, bounds: Mapping[int, tuple[int, int]], clock: Clock, servers: str
) -> dict[int, Tail]:
    """The tails of the partitions in ``bounds``; the consumer has ``enable.partition.eof``."""
    tails = {bucket: Tail(next_offset=begin, empty=True) for bucket, (begin, _) in bounds.items()}
    windows = {bucket: _FIRST_WINDOW for bucket, (begin, end) in bounds.items() if end > begin}
    deadline_s = clock.steady_s() + _LIMIT_S
    while windows:
        starts = {bucket: max(bounds[bucket][0], bounds[bucket][1] - window) for bucket, window in windows.items()}
        last = _last_records(consumer, topic, starts, clock, deadline_s, servers)
        for bucket, message in last.items():
            if message is not None:
                tails[bucket] = tail_of(message)
        windows = {
            bucket: window * 4 for bucket, window in windows.items() if last[bucket] is None and starts[bucket] > bounds[bucket][0]
        }
    return tails


def read_since(
    consumer: Consumer,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    time_millis: int,
    table: bytes,
    clock: Clock,
    servers: str,
) -> dict[int, tuple[int, Message | None]]:
    """Per partition the first message of the table from ``starts`` on that is not older, and its position; else the end, None."""
    first_messages: dict[int, tuple[int, Message | None]] = {bucket: (ends[bucket], None) for bucket in starts}
    reading = {bucket for bucket, start in starts.items() if start < ends[bucket]}
    begins = {bucket: starts[bucket] for bucket in reading}
    for message in _messages(consumer, topic, begins, reading, clock, clock.steady_s() + _LIMIT_S, servers):
        bucket = message.partition() or 0
        header = describe(message)
        if message.timestamp()[1] >= time_millis and header.table == table and header.mark is not None:
            first_messages[bucket] = (message.offset() or 0, message)
            reading.discard(bucket)
    return first_messages


def _last_records(
    consumer: Consumer, topic: str, starts: Mapping[int, int], clock: Clock, deadline_s: float, servers: str
) -> dict[int, Message | None]:
    last: dict[int, Message | None] = dict.fromkeys(starts)
    for message in _messages(consumer, topic, starts, set(starts), clock, deadline_s, servers):
        last[message.partition() or 0] = message
    return last


def _messages(
    consumer: Consumer, topic: str, starts: Mapping[int, int], reading: set[int], clock: Clock, deadline_s: float, servers: str
) -> Iterator[Message]:
    """The messages of the partitions in ``reading``, until they end, or are taken out of it."""
    consumer.assign([TopicPartition(topic, bucket, start) for bucket, start in starts.items()])
    while reading:
        if clock.steady_s() >= deadline_s:
            raise StorageError(
                f"Kafka at {servers} did not give the records of topic {topic} that were asked for within {_LIMIT_S:.0f} s; check "
                "that it is up, then repeat it",
                kind="kafka",
            )
        for message in consume(consumer, 500, timeout_s=0.2, topic=topic, servers=servers):
            error, partition = message.error(), message.partition()
            if error is None and partition in reading:
                yield message
            elif error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None:
                reading.discard(partition)
            elif error is not None and not error.retriable():
                raise translated(KafkaException(error), f"looking into topic {topic}", servers)
