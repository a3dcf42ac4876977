"""A topic that somebody else writes to, and a process that ingests it until somebody kills it."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import tablestore as ts

Message = tuple[bytes | None, bytes | None]


def make_topic(servers: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def produce(servers: str, topic: str, messages: Sequence[tuple[int, Message]], *, transaction: str | None = None) -> None:
    """Send (partition, (key, value)); in a transaction of that id."""
    more: dict[str, Any] = {"transactional.id": transaction} if transaction else {}
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **more})
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    for partition, (key, value) in messages:
        while True:
            try:
                producer.produce(topic, value, key, partition=partition)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(60) == 0
    if transaction:
        producer.commit_transaction(30)


def aborted(servers: str, topic: str, messages: Sequence[tuple[int, Message]], transaction: str) -> None:
    """Send in a transaction that is given up."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transaction})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition, (key, value) in messages:
        producer.produce(topic, value, key, partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Message:
    row = after or before or {}
    value = {"before": before, "after": after, "source": {"lsn": 17, "name": "db"}, "op": op, "ts_ms": 1}
    return json.dumps({"id": row["id"]}).encode(), json.dumps(value, separators=(",", ":")).encode()


def ingest_for_ever(location: str, letters: str, servers: str, topic: str) -> None:
    """Ingest in small commits until somebody kills this process."""
    ts.ingest(
        ts.open_table(location),
        topic,
        servers=servers,
        follow=True,
        commit_records=700,
        commit_every=timedelta(milliseconds=100),
        dead_letters=ts.open_table(letters),
    )
