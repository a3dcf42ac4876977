"""Delivers changes into a topic, in transactions that hold rows and where they end (`tablestore.cdc.deliver.changesink`).

    TOPIC                     the messages
    TOPIC.NAME.position       {"at": position, "topic": Kafka's id of TOPIC}, one record per commit; compacted, one partition

NAME is the delivery's, hashed where a topic's name cannot hold it. ``TOPIC.NAME.position`` is the ``transactional.id`` too: whoever
opens it ends the transaction of its predecessor and fences it. No other producer writes to the position topic, so from then on its
last committed record is where the delivery is. A position topic of one's own per delivery, since an open transaction of another one
would hide what is behind it; not the offsets of a consumer group, which brokers forget after a week.

Memory: what the client keeps until it is sent, at most 64 MiB.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tablestore.cdc.deliver.topicsink import Encode
from tablestore.clock import Clock, SystemClock
from tablestore.errors import ConflictError, FormatError, StorageError
from tablestore.log.logstore import SlotFenced
from tablestore_kafka.client import (
    CONSUMER,
    LOG,
    PRODUCER,
    ROOM_IN_TOPIC,
    code_of,
    create_client,
    translated,
)
from tablestore_kafka.clientsettings import BOOTSTRAP, client_settings
from tablestore_kafka.queryrows import make_topic, send
from tablestore_kafka.topicsource import CALL_TIMEOUT_S, KafkaTopicSource

_SETTINGS: Mapping[str, object] = {
    "queue.buffering.max.kbytes": 64 * 1024,
    # Readers wait so long for the transaction of a delivery that is gone, unless it is begun again.
    "transaction.timeout.ms": 300_000,
    # A broker under load says for a moment that it does not know the topic that it has just made.
    "topic.metadata.propagation.max.ms": 15_000,
}
_POSITIONS = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMIT_TIMEOUT_S, _ABORT_TIMEOUT_S = 60.0, 5.0
_FIRST_WINDOW = 16


def open_topic_sink(topic: str, properties: Mapping[str, str], delivery: str, encode: Encode) -> "KafkaDeliverySink":
    """Takes over the delivery; the topics are made if they are not there. Raises InvalidInputError, StorageError."""
    settings = client_settings(properties, os.environ, owner=f"topic {topic}", named_by_caller=True)
    return KafkaDeliverySink(topic, settings, delivery, encode, SystemClock())


class KafkaDeliverySink:
    """A transactional producer. Not thread-safe."""

    def __init__(self, topic: str, settings: Mapping[str, str], delivery: str, encode: Encode, clock: Clock) -> None:
        self._topic, self._settings, self._encode, self._clock = topic, settings, encode, clock
        self._servers, self._delivery = settings[BOOTSTRAP], delivery
        name = delivery if _PLAIN_NAME.fullmatch(delivery) else sha256(delivery.encode()).hexdigest()[:32]
        self._positions = f"{topic}.{name}.position"
        make_topic(topic, settings)
        make_topic(self._positions, settings, partitions=1, config=_POSITIONS)
        producer_settings = {**PRODUCER, **_SETTINGS, **settings, "transactional.id": self._positions}
        self._producer = create_client(lambda: Producer(producer_settings, logger=LOG), producer_settings)
        self._open = False
        with self._talking("taking over"):
            self._producer.init_transactions(CALL_TIMEOUT_S)
        self._incarnation = KafkaTopicSource(topic, settings).incarnation()

    def position(self) -> str | None:
        """The position of the last transaction that was committed."""
        with self._talking("looking for the last commit of"):
            text = self._last_record()
        if text is None:
            return None
        try:
            content = json.loads(text)
            at, incarnation = str(content["at"]), str(content["topic"])
        except (ValueError, TypeError, KeyError) as error:
            raise FormatError(
                f"topic {self._positions}: expected the position of the delivery {self._delivery!r}, found {text!r:.200}; deliver "
                "under another name",
                kind="source-position",
            ) from error
        if incarnation != self._incarnation:
            raise ConflictError(
                f"topic {self._topic} was deleted and made again since the delivery {self._delivery!r} wrote to it; deliver under "
                f"another name, or delete the topic {self._positions} to begin anew",
                kind="source-position",
            )
        return at

    def write(self, rows: pa.RecordBatch) -> None:
        """Sends messages; nobody sees them yet."""
        with self._talking("delivering"):
            self._begin()
            for keys, values in self._encode(rows):
                send(self._producer, self._topic, keys, values)

    def commit(self, position: str) -> None:
        """Ends the transaction, with the position in it."""
        text = json.dumps({"at": position, "topic": self._incarnation}, separators=(",", ":"))
        with self._talking("committing"):
            self._begin()
            send(self._producer, self._positions, [self._delivery.encode()], [text.encode()])
            self._producer.commit_transaction(_COMMIT_TIMEOUT_S)
        self._open = False

    def close(self) -> None:
        """Aborts what was not committed, and gives up the connection."""
        # The next producer of this name aborts what cannot be aborted here.
        with suppress(KafkaException, SystemError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if self._open:
                self._producer.purge()
                self._abort()
            self._producer.close()

    def _begin(self) -> None:
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def _abort(self) -> Exception | None:
        """Aborts the transaction; returns the reason if that cannot be done."""
        try:
            self._producer.abort_transaction(_ABORT_TIMEOUT_S)
        except (KafkaException, SystemError) as error:
            return error
        return None

    @contextmanager
    def _talking(self, doing: str) -> Iterator[None]:
        try:
            yield
        # A delivery report that meets a fatal error surfaces as SystemError.
        except (KafkaException, SystemError) as error:
            # Messages that meet a fatal error say no more than that; what it was, the transaction knows.
            vague = isinstance(error, SystemError) or code_of(error) == KafkaError._FATAL
            why = translated(
                (self._abort() if vague else None) or error, f"{doing} topic {self._topic}", self._servers, room=ROOM_IN_TOPIC
            )
            if isinstance(why, SlotFenced):
                why = ConflictError(
                    f"another process delivers to topic {self._topic} under the name {self._delivery!r}, or a transaction took "
                    "longer than transaction.timeout.ms; nothing of this commit is visible. Leave the other one the work, or give "
                    "this one another name",
                    kind="fenced",
                )
            raise why from error

    def _last_record(self) -> bytes | None:
        low, high = self._bounds()
        window = _FIRST_WINDOW
        while high > low:
            start = max(low, high - window)
            record = self._last_between(start, high)
            if record is not None or start == low:
                return record
            window *= _FIRST_WINDOW
        return None

    def _last_between(self, start: int, high: int) -> bytes | None:
        """The last committed record at ``start`` or behind it; everything before ``high`` has to be decided."""
        cursor = KafkaTopicSource(self._positions, self._settings).open_cursor({0: start})
        deadline_s, last = self._clock.steady_s() + 2 * CALL_TIMEOUT_S, None
        try:
            while self._clock.steady_s() < deadline_s:
                records = cursor.poll(1.0, 1000, 1 << 20)
                last = records.values[-1] if len(records) else last
                if records.ended.get(0, -1) >= high:
                    return last
        finally:
            cursor.close()
        raise StorageError(
            f"Kafka at {self._servers} holds a transaction of topic {self._positions} for open that has ended, or does not answer; "
            "check that all brokers are up, then repeat it",
            kind="kafka",
        )

    def _bounds(self) -> tuple[int, int]:
        """First offset, and the one behind the last record, whether it was committed or not."""
        settings = {**CONSUMER, **self._settings, "isolation.level": "read_uncommitted"}
        consumer = create_client(lambda: Consumer(settings, logger=LOG), settings)
        try:
            bounds = consumer.get_watermark_offsets(TopicPartition(self._positions, 0), timeout=CALL_TIMEOUT_S)
        finally:
            consumer.close()
        if bounds is None:
            raise StorageError(
                f"Kafka at {self._servers} does not say where topic {self._positions} ends; check that its leader is up, then "
                "repeat it",
                kind="kafka",
            )
        return int(bounds[0]), int(bounds[1])
