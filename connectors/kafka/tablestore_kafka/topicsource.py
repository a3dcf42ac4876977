"""Reads any topic as a source of records (implements `tablestore.cdc.topicsource`): only what transactions have committed."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tablestore.cdc.topicsource import Offsets, PositionLost, TopicRecords
from tablestore.errors import NotFoundError, StorageError
from tablestore_kafka.client import (
    ADMIN,
    CONSUMER,
    LOG,
    UNKNOWN,
    code_of,
    consume,
    create_client,
    translated,
)
from tablestore_kafka.clientsettings import BOOTSTRAP, client_settings

CALL_TIMEOUT_S = 15.0
# The client makes an object of every record. So many at a time stay in the processor's cache until they are taken apart.
_AT_ONCE = 500
_LOST = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._NO_OFFSET)


def open_topic_source(topic: str, properties: Mapping[str, str]) -> "KafkaTopicSource":
    """A topic: the client properties given, and what the environment adds (``TABLESTORE_KAFKA_…``).

    Raises InvalidInputError, as :func:`client_settings` does.
    """
    settings = client_settings(properties, os.environ, owner=f"topic {topic}", named_by_caller=True)
    return KafkaTopicSource(topic, settings)


class KafkaTopicSource:
    """One topic. ``settings`` are properties of the Kafka client, ``bootstrap.servers`` among them."""

    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        self._topic, self._settings = topic, dict(settings)
        self._servers = str(settings[BOOTSTRAP])

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._topic

    def incarnation(self) -> str:
        """Kafka's id of the topic."""
        return str(self._described().topic_id)

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """First offset, and the one behind the last record that is visible, per partition."""
        consumer = self._consumer()
        bounds_by_partition = {}
        try:
            for partition in range(len(self._described().partitions)):
                # None: no answer in time.
                bounds = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=CALL_TIMEOUT_S)
                if bounds is None:
                    raise StorageError(
                        f"Kafka at {self._servers} did not say within {CALL_TIMEOUT_S:.0f} s where partition {partition} of topic "
                        f"{self._topic} ends; check that its leader is up, then repeat it",
                        kind="kafka",
                    )
                bounds_by_partition[partition] = (int(bounds[0]), int(bounds[1]))
        except KafkaException as error:
            raise translated(error, f"looking at topic {self._topic}", self._servers) from error
        finally:
            consumer.close()
        return bounds_by_partition

    def open_cursor(self, offsets: Offsets) -> "KafkaTopicCursor":
        """A consumer of these offsets, outside of any consumer group."""
        return KafkaTopicCursor(self._consumer(), self._topic, offsets, self._servers)

    def _described(self) -> Any:
        settings = {**ADMIN, **self._settings}
        admin = create_client(lambda: AdminClient(settings, logger=LOG), settings)
        try:
            return admin.describe_topics(TopicCollection([self._topic]), request_timeout=CALL_TIMEOUT_S)[self._topic].result()
        except KafkaException as error:
            if code_of(error) in UNKNOWN:
                raise NotFoundError(
                    f"there is no topic {self._topic} at {self._servers}; check its name and the brokers", kind="no-such-topic"
                ) from error
            raise translated(error, f"looking at topic {self._topic}", self._servers) from error

    def _consumer(self) -> Consumer:
        settings = {**CONSUMER, **self._settings, "isolation.level": "read_committed", "enable.partition.eof": True}
        return create_client(lambda: Consumer(settings, logger=LOG), settings)


class KafkaTopicCursor:
    """A consumer with fixed partitions."""

    def __init__(self, consumer: Consumer, topic: str, offsets: Offsets, servers: str) -> None:
        self._consumer, self._topic, self._servers = consumer, topic, servers
        try:
            consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
        except KafkaException as error:
            consumer.close()
            raise translated(error, f"reading topic {topic}", servers) from error

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> TopicRecords:
        """The records that are visible now; waits only while there is none."""
        partitions: list[int] = []
        offsets: list[int] = []
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        ended: dict[int, int] = {}
        size = 0
        while len(values) < max_records and size < max_bytes:
            wait_s, most = 0 if values or ended else timeout_s, min(_AT_ONCE, max_records - len(values))
            messages = consume(self._consumer, most, timeout_s=wait_s, topic=self._topic, servers=self._servers)
            if not messages:
                break
            if any(message.error() is not None for message in messages):
                messages = self._records_of(messages, ended)
            payloads = [message.value() for message in messages]
            partitions += [message.partition() for message in messages]  # type: ignore[misc]
            offsets += [message.offset() for message in messages]  # type: ignore[misc]
            keys += [message.key() for message in messages]
            values += payloads
            size += sum([len(value) for value in payloads if value])
        return TopicRecords(
            partitions=np.array(partitions, dtype=np.int32),
            offsets=np.array(offsets, dtype=np.int64),
            keys=keys,
            values=values,
            ended=ended,
        )

    def _records_of(self, messages: Sequence[Message], ended: dict[int, int]) -> list[Message]:
        """The records among what the client hands out; the ends of partitions are noted."""
        records = []
        for message in messages:
            fault = message.error()
            if fault is None:
                records.append(message)
            elif fault.code() == KafkaError._PARTITION_EOF:
                ended[message.partition() or 0] = message.offset() or 0
            elif fault.code() in _LOST:
                raise PositionLost(
                    f"partition {message.partition()} of topic {self._topic} no longer holds the offset asked for: its retention "
                    "has passed, or it was cut; records are lost. To go on with what is there, begin anew (reset) at the earliest "
                    "or the latest record"
                )
            elif not fault.retriable():
                raise translated(KafkaException(fault), f"reading topic {self._topic}", self._servers)
        return records

    def close(self) -> None:
        """Gives up the connection."""
        self._consumer.close()
