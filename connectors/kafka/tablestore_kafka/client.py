"""Holds the settings that every client of Kafka has, and turns its errors into ours.

Settings that are not obvious were found by trial on a real broker: ``metadata.recovery.strategy=none`` keeps calls from hanging
after a broker restart, a short ``retry.backoff.ms`` saves 20 ms on every second transaction in a row.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from tablestore.errors import InvalidInputError, StorageError, TablestoreError
from tablestore.log.logstore import SlotFenced
from tablestore_kafka.clientsettings import BOOTSTRAP, variable

# The client's messages go here and not to the terminal; what matters reaches the caller as an error.
LOG = logging.getLogger("tablestore.kafka")
LOG.addHandler(logging.NullHandler())

_COMMON: Mapping[str, Any] = {
    "metadata.recovery.strategy": "none",
    "socket.keepalive.enable": True,
    "topic.metadata.propagation.max.ms": 500,
}
PRODUCER: Mapping[str, Any] = {
    **_COMMON,
    "linger.ms": 5,
    "retry.backoff.ms": 10,
    "enable.idempotence": True,
    "queue.buffering.max.messages": 1_000_000,
    "transaction.timeout.ms": 60_000,
}
CONSUMER: Mapping[str, Any] = {
    **_COMMON,
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "fetch.error.backoff.ms": 50,
    # A reader that has taken what was fetched ahead would else wait for up to a second.
    "fetch.queue.backoff.ms": 20,
    # No group is ever joined; the client wants a name all the same.
    "group.id": "tablestore",
}
ADMIN: Mapping[str, Any] = _COMMON

CONNECTING = "making a client of Kafka"
# `… property "a.b"`, or `Failed to create producer: a.b …`.
_PROPERTY = re.compile(r'property:? "([\w.]+)"|: ([a-z]+(?:\.[a-z]+)+) ')
# The names that librdkafka goes by in its messages, where it takes others as well (librdkafka, CONFIGURATION.md, "Alias for").
_ALIASES: Mapping[str, str] = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight.requests.per.connection": "max.in.flight",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": BOOTSTRAP,
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
}
_Client = TypeVar("_Client")


def consume(consumer: Consumer, most: int, *, timeout_s: float, topic: str, servers: str) -> list[Message]:
    """The messages that have come, ``most`` at the most; waits so long for the first one. Raises StorageError,
    InvalidInputError."""
    try:
        messages = consumer.consume(most, timeout=0)
        if not messages and timeout_s and (first := consumer.poll(timeout_s)) is not None:
            # consume() would wait for the whole number: the rest is what has come with the first.
            messages = [first, *(consumer.consume(most - 1, timeout=0) if most > 1 else ())]
        return messages
    except KafkaException as error:
        raise translated(error, f"reading topic {topic}", servers) from error


def code_of(error: Exception) -> int | None:
    """Kafka's code of a client's error."""
    cause = error.args[0] if isinstance(error, KafkaException) and error.args else None
    return cause.code() if isinstance(cause, KafkaError) else None


# Advice where a record is too large: for the topic that is a table's log, and for others.
_ROOM_IN_LOG = "raise log.kafka.message.max.bytes of the table, which its topic follows"
ROOM_IN_TOPIC = (
    "raise max.message.bytes of the topic, and message.max.bytes of the client (a property, or in the environment "
    "TABLESTORE_KAFKA_MESSAGE_MAX_BYTES)"
)


def translated(
    error: Exception, doing: str, servers: str, *, properties: Collection[str] = (), room: str = _ROOM_IN_LOG
) -> TablestoreError:
    """A client's error as one of ours: names the action, the place, what Kafka said, and what to do. ``properties``: those that
    were set; ``room``: what to do where a record is too large."""
    cause = error.args[0] if isinstance(error, KafkaException) and error.args else None
    code = code_of(error)
    if code in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED):
        return SlotFenced(
            f"{doing}: another process has taken over this publisher slot; nothing of it is visible. Leave it the work"
        )
    reason_text = cause.str() if isinstance(cause, KafkaError) else str(error)
    if code == KafkaError._INVALID_ARG and doing == CONNECTING:
        return misconfigured(reason_text, properties)
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return InvalidInputError(
            f"{doing}: Kafka at {servers} takes no record of that size; {room}",
            kind="log-record-too-large",
        )
    name = cause.name() if isinstance(cause, KafkaError) else type(error).__name__
    if code in _REFUSED:
        return InvalidInputError(
            f"{doing}: Kafka at {servers} refuses it: {reason_text} ({name}); ask for the right, or name other credentials in "
            "the environment (TABLESTORE_KAFKA_…)",
            kind="kafka-denied",
        )
    return StorageError(
        f"{doing}: Kafka at {servers} does not do it: {reason_text} ({name}); check that the brokers are up and reachable, then "
        "repeat it. Snapshots stay readable meanwhile",
        kind="kafka",
    )


def create_client(client: Callable[[], _Client], settings: Mapping[str, Any]) -> _Client:
    """A client of Kafka, made with ``settings``. Raises InvalidInputError (kind ``kafka-settings``) for those that it refuses."""
    try:
        return client()
    except KafkaException as error:
        cause = None if code_of(error) == KafkaError._INVALID_ARG else error
        raise translated(error, CONNECTING, str(settings[BOOTSTRAP]), properties=settings) from cause


def misconfigured(message: str, properties: Collection[str]) -> InvalidInputError:
    """The error for a client that refuses one of its ``properties``. Its words may hold the value, which may be a secret: they
    are not repeated."""
    named = _PROPERTY.search(message)
    name = (named[1] or named[2]) if named else None
    if name not in properties and (alias := _ALIASES.get(name or "")) in properties:
        name = alias
    which = f"the property {name!r}, or its value," if name else "its settings"
    set_by = variable(name) if name else "TABLESTORE_KAFKA_…"
    return InvalidInputError(
        f"the Kafka client does not take {which} as the environment ({set_by}) or the table (log.kafka.{name or '…'}) sets it; "
        "expected a property of librdkafka with a value that it allows; correct or remove it, then repeat. No broker was asked",
        kind="kafka-settings",
    )


# A topic that is not there, or a broker that does not know of it yet.
UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
# The same, or a partition whose leader is just being chosen.
LEADERLESS = UNKNOWN | {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}
_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)
