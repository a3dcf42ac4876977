"""A topic as somebody sees it who knows nothing of tablestore."""

import json
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

import tablestore as ts

Record = tuple[int, int, str, int, str | None]


def plain_consumer(servers: str, isolation: str = "read_committed") -> Consumer:
    """A consumer that is told where a partition ends, soon: by default a broker waits half a second for another record."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "plain",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )


def records(table: ts.Table) -> list[Record]:
    """(snapshot, ordinal, row kind, id, v) of all committed records of a keyed table's topic, bucket by bucket."""
    options = table.options()
    servers, topic = options["log.kafka.bootstrap.servers"], options["log.kafka.topic"]
    consumer = plain_consumer(servers)
    found: list[Record] = []
    for bucket in range(int(options["bucket"])):
        consumer.assign([TopicPartition(topic, bucket, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            headers: Any = dict(message.headers() or ())
            value = message.value()
            row = json.loads(value)["after"] if value else {"v": None}
            place = int(headers["snapshot"]), int(headers["ordinal"])
            found.append((*place, headers["row-kind"].decode(), json.loads(message.key() or b"")["id"], row["v"]))
        assert message is not None, "the broker did not say where the partition ends"
    consumer.close()
    return found


def topics(servers: str) -> set[str]:
    """The names of all topics."""
    return set(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=30).topics)


def messages(servers: str, topic: str) -> list[tuple[object, object]]:
    """Keys and values of all committed messages."""
    consumer = plain_consumer(servers)
    found: list[tuple[object, object]] = []
    for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            key = message.key()
            found.append((None if key is None else json.loads(key), json.loads(message.value() or b"null")))
        assert message is not None, "the broker did not say where the partition ends"
    consumer.close()
    return found
