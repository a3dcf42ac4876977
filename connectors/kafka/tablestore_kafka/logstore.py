"""Keeps the change log of one table in a Kafka topic: partition b holds bucket b (implements `tablestore.log.logstore`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tablestore.clock import Clock, SystemClock
from tablestore.errors import StorageError
from tablestore.log.logstore import LogCursor, LogSlot
from tablestore.log.record import Offsets, Since, Tail
from tablestore_kafka.client import ADMIN, CONSUMER, LEADERLESS, LOG, PRODUCER, UNKNOWN, create_client, misconfigured, translated
from tablestore_kafka.clientsettings import BOOTSTRAP
from tablestore_kafka.slot import KafkaSlot
from tablestore_kafka.tail import read_since, read_tails
from tablestore_kafka.topiccursor import KafkaCursor, describe
from tablestore_kafka.topics import Topics

CALL_TIMEOUT_S = 15.0
RECORD_LIMIT = "message.max.bytes"
# The client's own default.
DEFAULT_RECORD_BYTES = 1_000_000
BATCH_LIMIT = "batch.size"
# Room for the headers of a record; less than what is given away of a topic's limit (topics.RECORD_OVERHEAD_BYTES).
PRODUCER_OVERHEAD_BYTES = 7 * 1024
# The most that the client accepts.
LARGEST_RECORD_BYTES = 1_000_000_000
_POLL_S = 0.02

_Answer = TypeVar("_Answer")


class KafkaLogStore:
    """One topic. ``settings`` are properties of the Kafka client, ``bootstrap.servers`` among them. Thread-safe."""

    def __init__(self, topic: str, settings: Mapping[str, Any], *, clock: Clock | None = None) -> None:
        self._topic, self._settings = topic, dict(settings)
        self._clock = clock or SystemClock()
        self._servers = str(settings[BOOTSTRAP])
        self._admin_client: AdminClient | None = None

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._topic

    @property
    def max_record_bytes(self) -> int | None:
        """The bytes of key and value of a record by ``message.max.bytes`` as it is set; the topic may take less."""
        return self._record_limit or DEFAULT_RECORD_BYTES

    @property
    def _record_limit(self) -> int | None:
        limit = self._settings.get(RECORD_LIMIT)
        if limit is None:
            return None
        if not str(limit).isascii() or not str(limit).isdigit():
            raise misconfigured(f'property "{RECORD_LIMIT}"', self._settings)
        return int(limit)

    def answers(self, timeout_s: float) -> bool:
        """True if a broker answers within so long."""
        try:
            self._admin.list_topics(self._topic, timeout=timeout_s)
        except KafkaException:
            return False
        return True

    def create(self, *, partitions: int, retention_ms: int | None, ignore_if_exists: bool) -> bool:
        """Makes the topic; False if it was there and may be used."""
        return self._topics.create(
            self._topic,
            partitions=partitions,
            retention_ms=retention_ms,
            record_bytes=self._record_limit,
            ignore_if_exists=ignore_if_exists,
        )

    def retain(self, retention_ms: int | None) -> None:
        """Sets ``retention.ms`` of the topic (None: the brokers' own), and ``max.message.bytes`` to hold our largest records."""
        self._topics.retain(self._topic, retention_ms, record_bytes=self._record_limit)

    def drop(self, *, ignore_if_not_exists: bool) -> None:
        """Deletes the topic."""
        self._topics.drop(self._topic, ignore_if_not_exists=ignore_if_not_exists)

    def incarnation(self, *, partitions: int) -> str:
        """Kafka's id of the topic."""
        return self._topics.incarnation(self._topic, partitions=partitions)

    def open_slot(self, slot: int, buckets: Sequence[int], *, timeout_s: float) -> LogSlot:
        """A transactional producer; opening it aborts what a predecessor of the slot has begun, and fences it."""
        transactional_id = f"{self._topic}-{slot}"
        # Batches of small records are to be within the topic's limit, too.
        limit = self._limit_of_topic()
        batch = str(self._settings.get(BATCH_LIMIT, limit))
        settings = {
            **PRODUCER,
            **self._settings,
            # The client counts headers too: what we let through must not fail there, with all others of its transaction.
            RECORD_LIMIT: min(limit + PRODUCER_OVERHEAD_BYTES, LARGEST_RECORD_BYTES),
            BATCH_LIMIT: min(int(batch), limit) if batch.isascii() and batch.isdigit() else batch,
            "transactional.id": transactional_id,
        }
        opened = KafkaSlot(self._topic, transactional_id, settings, clock=self._clock, timeout_s=timeout_s, record_bytes=limit)
        try:
            # By now the broker holds all transactions of the slot for complete: what still is open, it has lost track of.
            if hanging := self._with_open_transactions(buckets):
                LOG.warning("topic %s: a transaction of slot %d hangs in partition(s) %s; aborting it", self._topic, slot, hanging)
                opened.abort_what_hangs(hanging)
        except BaseException:
            opened.close()
            raise
        return opened

    def tails(self, buckets: Sequence[int], *, uncommitted: bool = False) -> dict[int, Tail]:
        """The last visible record of each bucket, once no transaction is open on it; ``uncommitted``: the last one of all."""
        if not uncommitted:
            self._wait_for_open_transactions(buckets)
        consumer = self._consumer({"enable.partition.eof": True}, uncommitted=uncommitted)
        try:
            return read_tails(consumer, self._topic, self._bounds(consumer, buckets), self._clock, self._servers)
        finally:
            consumer.close()

    def bounds(self, buckets: Sequence[int]) -> dict[int, tuple[int, int]]:
        """First position that is there, and the one behind the last visible record, per bucket."""
        consumer = self._consumer({})
        try:
            return self._bounds(consumer, buckets)
        finally:
            consumer.close()

    def since(self, time_millis: int, buckets: Sequence[int], *, table: bytes) -> dict[int, Since]:
        """The first records at or after a time. Those before the first position that is still there may have been of that time."""
        consumer = self._consumer({"enable.partition.eof": True})
        try:
            bounds = self._bounds(consumer, buckets)
            starts = self._offsets({bucket: OffsetSpec.for_timestamp(time_millis) for bucket in buckets})
            # None is named where all are older.
            starts = {bucket: start if start >= 0 else bounds[bucket][1] for bucket, start in starts.items()}
            ends = {bucket: end for bucket, (_, end) in bounds.items()}
            first_records = read_since(consumer, self._topic, starts, ends, time_millis, table, self._clock, self._servers)
        finally:
            consumer.close()
        return {
            bucket: Since(
                offset=offset,
                mark=None if message is None else describe(message).mark,
                time_millis=None if message is None else message.timestamp()[1],
                whole=bounds[bucket][0] == 0 or starts[bucket] > bounds[bucket][0],
            )
            for bucket, (offset, message) in first_records.items()
        }

    def open_cursor(self, offsets: Offsets, *, dense: bool = False, keys: bool = False, uncommitted: bool = False) -> LogCursor:
        """A consumer of these positions, outside of any consumer group."""
        consumer = self._consumer({}, uncommitted=uncommitted)
        return KafkaCursor(consumer, self._topic, offsets, self._servers, dense=dense, keys=keys)

    def _limit_of_topic(self) -> int:
        """The largest size of records: as the settings say, or the topic where it takes less."""
        limit = self._record_limit or DEFAULT_RECORD_BYTES
        if self._settings.get("compression.codec", self._settings.get("compression.type", "none")) != "none":
            # A topic counts compressed bytes.
            return limit
        topic_limit = self._topics.record_bytes(self._topic)
        return limit if topic_limit is None else min(limit, topic_limit)

    @property
    def _transaction_timeout_s(self) -> float:
        timeout_ms = str(self._settings.get("transaction.timeout.ms", PRODUCER["transaction.timeout.ms"]))
        if not timeout_ms.isascii() or not timeout_ms.isdigit():
            raise misconfigured('property "transaction.timeout.ms"', self._settings)
        return int(timeout_ms) / 1000

    @property
    def _topics(self) -> Topics:
        return Topics(self._admin, self._servers, self._clock)

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            settings = {**ADMIN, **_without_transfer(self._settings)}
            self._admin_client = create_client(lambda: AdminClient(settings, logger=LOG), settings)
        return self._admin_client

    def _consumer(self, more: Mapping[str, Any], *, uncommitted: bool = False) -> Consumer:
        isolation = "read_uncommitted" if uncommitted else "read_committed"
        settings = {**CONSUMER, **_without_producer(self._settings), **more, "isolation.level": isolation}
        return create_client(lambda: Consumer(settings, logger=LOG), settings)

    def _bounds(self, consumer: Consumer, buckets: Sequence[int]) -> dict[int, tuple[int, int]]:
        bounds_by_bucket: dict[int, tuple[int, int]] = {}
        for bucket in buckets:
            where = TopicPartition(self._topic, bucket)
            bounds = self._once_led(
                partial(consumer.get_watermark_offsets, where, timeout=CALL_TIMEOUT_S),
                f"looking at partition {bucket} of topic {self._topic}",
            )
            if bounds is None:
                raise StorageError(
                    f"Kafka at {self._servers} did not say within {CALL_TIMEOUT_S:.0f} s where partition {bucket} of topic "
                    f"{self._topic} ends; check that its leader is up, then repeat it",
                    kind="kafka",
                )
            bounds_by_bucket[bucket] = (int(bounds[0]), int(bounds[1]))
        return bounds_by_bucket

    def _wait_for_open_transactions(self, buckets: Sequence[int]) -> None:
        """Waits until no record is hidden: one behind an open transaction is not visible yet."""
        deadline_s = self._clock.steady_s() + self._transaction_timeout_s + CALL_TIMEOUT_S
        while self._with_open_transactions(buckets):
            if self._clock.steady_s() >= deadline_s:
                raise StorageError(
                    f"a transaction on topic {self._topic} stays open: somebody else writes to it, or its producer hangs; stop "
                    "that producer, or give the table a topic of its own",
                    kind="kafka",
                )
            self._clock.sleep(_POLL_S)

    def _with_open_transactions(self, buckets: Sequence[int]) -> list[int]:
        """The buckets in which something is written that is not visible yet."""
        if not buckets:
            return []
        stable = self.bounds(buckets)
        written = self._offsets({bucket: OffsetSpec.latest() for bucket in buckets})  # type: ignore[no-untyped-call]
        return [bucket for bucket in buckets if stable[bucket][1] < written[bucket]]

    def _offsets(self, specs: Mapping[int, OffsetSpec]) -> dict[int, int]:
        requests = {TopicPartition(self._topic, bucket): spec for bucket, spec in specs.items()}

        def ask() -> dict[int, int]:
            futures = self._admin.list_offsets(requests, request_timeout=CALL_TIMEOUT_S)
            return {tp.partition: int(future.result().offset) for tp, future in futures.items()}

        return self._once_led(ask, f"looking at topic {self._topic}")

    def _once_led(self, ask: Callable[[], _Answer], doing: str) -> _Answer:
        """Kafka's answer. Of a topic just made, or after a broker went, a partition has no leader for a moment."""
        deadline_s = self._clock.steady_s() + CALL_TIMEOUT_S
        while True:
            try:
                return ask()
            except KafkaException as error:
                code = error.args[0].code()
                if code in UNKNOWN:
                    self._topics.refuse_missing(self._topic)
                if code not in LEADERLESS or self._clock.steady_s() >= deadline_s:
                    raise translated(error, doing, self._servers) from error
            self._clock.sleep(_POLL_S)


_PRODUCER_ONLY = frozenset(
    {"compression.codec", "compression.level", "compression.type", "batch.num.messages", "batch.size", "linger.ms"}
    | {"queue.buffering.max.kbytes", "queue.buffering.max.messages", "transaction.timeout.ms"}
)
_CONSUMER_ONLY = frozenset(
    {"fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.wait.max.ms", "max.partition.fetch.bytes"}
    | {"queued.max.messages.kbytes", "queued.min.messages"}
)


def _without_producer(settings: Mapping[str, Any]) -> dict[str, Any]:
    # The client warns of properties that a kind of client does not use.
    return {key: value for key, value in settings.items() if key not in _PRODUCER_ONLY}


def _without_transfer(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in _without_producer(settings).items() if key not in _CONSUMER_ONLY}
