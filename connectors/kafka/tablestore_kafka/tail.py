"""The last visible record of each partition.

The end of a partition may hold nothing but the markers of transactions, so the window that is read backwards grows fourfold
until a record is in it.
"""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tablestore.clock import Clock
from tablestore.errors import StorageError
from tablestore.log.record import Tail
from tablestore_kafka.client import translated
from tablestore_kafka.cursor import describe

_FIRST_WINDOW = 8
_LIMIT_S = 60.0


def read_tails(
    consumer: Consumer, topic: str, bounds: Mapping[int, tuple[int, int]], clock: Clock, servers: str
) -> dict[int, Tail]:
    """The tails of the partitions in ``bounds``; the consumer has ``enable.partition.eof``."""
    tails = {bucket: Tail(next_offset=begin, empty=True) for bucket, (begin, _) in bounds.items()}
    wanted = {bucket: _FIRST_WINDOW for bucket, (begin, end) in bounds.items() if end > begin}
    deadline_s = clock.steady_s() + _LIMIT_S
    while wanted:
        starts = {bucket: max(bounds[bucket][0], bounds[bucket][1] - window) for bucket, window in wanted.items()}
        last = _last_records(consumer, topic, starts, clock, deadline_s, servers)
        for bucket, message in last.items():
            if message is not None:
                header = describe(message)
                tails[bucket] = Tail(table=header.table, mark=header.mark, next_offset=(message.offset() or 0) + 1)
        wanted = {
            bucket: window * 4 for bucket, window in wanted.items() if last[bucket] is None and starts[bucket] > bounds[bucket][0]
        }
    return tails


def _last_records(
    consumer: Consumer, topic: str, starts: Mapping[int, int], clock: Clock, deadline_s: float, servers: str
) -> dict[int, Message | None]:
    consumer.assign([TopicPartition(topic, bucket, start) for bucket, start in starts.items()])
    last: dict[int, Message | None] = dict.fromkeys(starts)
    reading = set(starts)
    while reading:
        if clock.steady_s() >= deadline_s:
            raise StorageError(
                f"Kafka at {servers} did not give the end of topic {topic} within {_LIMIT_S:.0f} s; check that it is up, then "
                "repeat it",
                kind="kafka",
            )
        for message in consumer.consume(500, timeout=0.2):
            error = message.error()
            partition = message.partition()
            if error is None and partition is not None:
                last[partition] = message
            elif error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None:
                reading.discard(partition)
            elif error is not None and not error.retriable():
                raise translated(KafkaException(error), f"reading the end of topic {topic}", servers)
    return last
