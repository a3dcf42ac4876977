"""Sends the rows of a query as messages of a topic: JSON objects, in one transaction.

    topic                           where they go; it is made, with the partitions that brokers give by default, if it is not there
    properties.bootstrap.servers    the brokers; other ``properties.*`` are those of the client that a table may set
    value.format                    json: all columns, an object for each row
    key.fields                      columns of the key, as ``a;b``, also a JSON object; else the primary key; else no key

Readers of committed messages see all of them or none. Memory: a batch of rows, and what the client keeps until it is sent.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tablestore.clock import SystemClock
from tablestore.errors import InvalidInputError, StorageError, UnsupportedError
from tablestore.json.jsontext import rows_to_json
from tablestore.names import did_you_mean
from tablestore_kafka.client import (
    ADMIN,
    LOG,
    PRODUCER,
    ROOM_IN_TOPIC,
    create_client,
    translated,
)
from tablestore_kafka.clientsettings import BOOTSTRAP, client_settings
from tablestore_kafka.topics import Topics

_PREFIX = "properties."
_OPTIONS = ("topic", "value.format", "key.format", "key.fields")
_FORMAT = "json"
# The longest time of a transaction; brokers take no more by default.
_MOST_MS = 900_000
_TIMEOUT_S = 15.0
_QUEUE_FULL_WAIT_S = 0.05


def write_rows(
    name: str, options: Mapping[str, str], key: Sequence[str], rows: pa.RecordBatchReader, transactional_id: str
) -> None:
    """Sends rows of the table ``name``. ``key``: its primary key. Raises InvalidInputError, UnsupportedError, StorageError."""
    topic, settings = _topic(name, options), _settings(name, options)
    key = _key(name, options, key, rows.schema.names)
    make_topic(topic, settings)
    servers = settings[BOOTSTRAP]
    # A broker under load says for a moment that it does not know the topic that it has just made.
    waiting = {"transaction.timeout.ms": _MOST_MS, "topic.metadata.propagation.max.ms": int(_TIMEOUT_S * 1000)}
    producer_settings = {**PRODUCER, **waiting, **settings, "transactional.id": transactional_id}
    producer = create_client(lambda: Producer(producer_settings, logger=LOG), producer_settings)
    try:
        producer.init_transactions(_TIMEOUT_S)
        producer.begin_transaction()
        try:
            for batch in rows:
                _send(producer, topic, batch, key)
            producer.commit_transaction(_TIMEOUT_S)
        except BaseException:
            with suppress(KafkaException):
                producer.purge()
                producer.abort_transaction(_TIMEOUT_S)
            raise
    except KafkaException as error:
        raise translated(
            error, f"writing {name} to topic {topic}", servers, properties=producer_settings, room=ROOM_IN_TOPIC
        ) from error


def _send(producer: Producer, topic: str, batch: pa.RecordBatch, key: Sequence[str]) -> None:
    if batch.num_rows == 0:
        return
    values: list[bytes | None] = rows_to_json(batch.columns, batch.schema.names).cast(pa.binary()).to_pylist()
    keys: list[bytes | None] = [None] * batch.num_rows
    if key:
        keys = rows_to_json([batch.column(column) for column in key], key).cast(pa.binary()).to_pylist()
    send(producer, topic, keys, values)


def send(producer: Producer, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> None:
    """Hands messages to the client, and waits while it holds as many as it may."""
    # It takes one message at a time.
    for key, value in zip(keys, values, strict=True):
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(_QUEUE_FULL_WAIT_S)


def _topic(name: str, options: Mapping[str, str]) -> str:
    own_options = [key for key in options if key in _OPTIONS or key.startswith(_PREFIX)]
    if unknown := [key for key in options if key not in own_options]:
        raise InvalidInputError(
            f"table {name}: the connector kafka has no option {unknown[0]!r}{did_you_mean(unknown[0], _OPTIONS)}; it takes "
            f"{', '.join(_OPTIONS)} and {_PREFIX}*",
            kind="unknown-option",
        )
    for kind in ("value.format", "key.format"):
        if options.get(kind, _FORMAT).lower() != _FORMAT:
            raise UnsupportedError(f"table {name}: {kind} = {options[kind]!r:.80} is not supported, only {_FORMAT}", kind="format")
    if not options.get("topic"):
        raise InvalidInputError(f"table {name} has the connector kafka and no option 'topic'", kind="missing-option")
    return options["topic"]


def _settings(name: str, options: Mapping[str, str]) -> dict[str, str]:
    client_options = {key.removeprefix(_PREFIX): value for key, value in options.items() if key.startswith(_PREFIX)}
    return client_settings(client_options, os.environ, owner=f"table {name}")


def _key(name: str, options: Mapping[str, str], key: Sequence[str], columns: Sequence[str]) -> list[str]:
    fields = [field.strip() for field in options.get("key.fields", "").split(";") if field.strip()] or list(key)
    if unknown := [field for field in fields if field not in columns]:
        raise InvalidInputError(
            f"table {name}: key.fields names {unknown[0]!r}{did_you_mean(unknown[0], columns)}; its columns are "
            f"{', '.join(columns)}",
            kind="unknown-column",
        )
    return fields


def make_topic(topic: str, settings: Mapping[str, str], *, partitions: int = -1, config: Mapping[str, str] | None = None) -> None:
    """Makes a topic, if it is not there, and waits until it is known; -1: with as many partitions as brokers give by default."""
    admin = create_client(lambda: AdminClient({**ADMIN, **settings}, logger=LOG), settings)
    new_topic = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
    made_now = admin.create_topics([new_topic], request_timeout=_TIMEOUT_S)
    try:
        # The request ends before.
        made_now[topic].result(2 * _TIMEOUT_S)
        Topics(admin, settings[BOOTSTRAP], SystemClock()).wait_until_known(topic, max(partitions, 1))
    except TimeoutError as error:
        raise StorageError(
            f"creating topic {topic}: Kafka at {settings[BOOTSTRAP]} does not answer; check that the brokers are up and reachable",
            kind="kafka",
        ) from error
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise translated(error, f"creating topic {topic}", settings[BOOTSTRAP]) from error
