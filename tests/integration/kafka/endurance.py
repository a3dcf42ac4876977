"""What the endurance tests run in processes of their own, and how they look at a topic without the engine's reader."""

import json
import multiprocessing
import random
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition

import tablestore as ts
from tests.integration.kafka.topics import plain_consumer

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])

# Children are forked from a process that has imported everything and opened nothing: a client does not survive a fork.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tablestore", "tablestore.table.table", "tablestore_kafka", "tests.integration.kafka.endurance"])


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def write_for_ever(location: str, seed: int) -> None:
    """Upsert and publish until somebody kills this process."""
    chance = random.Random(seed)
    table = ts.open_table(location)
    step = 0
    while True:
        step += 1
        ids = chance.sample(range(40), 6)
        table.upsert(rows(ids, f"{seed}-{step}-"))
        if step % 3 == 0:
            table.delete(pa.table({"id": [chance.randrange(40)]}))


def write_some(location: str, writer: int, commits: int) -> None:
    """One of several writers: every commit has keys of its own and one that all of them write."""
    table = ts.open_table(location)
    for step in range(commits):
        table.upsert(rows([1000 * (writer + 1) + step, 0], f"w{writer}-{step}-"))
    table.change_log.publish()


def topic_of(table: ts.Table) -> str:
    return table.options()["log.kafka.topic"]


def records_of(table: ts.Table, servers: str) -> dict[int, list[tuple[int, int, bytes | None, bytes | None]]]:
    """Per partition (snapshot, ordinal, key, value), as a plain read_committed consumer sees them."""
    found: dict[int, list[tuple[int, int, bytes | None, bytes | None]]] = {}
    consumer = plain_consumer(servers)
    for bucket in range(int(table.options()["bucket"])):
        consumer.assign([TopicPartition(topic_of(table), bucket, 0)])
        found[bucket] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, "the topic does not answer"
            if message.error():
                break
            headers: Any = dict(message.headers() or ())
            found[bucket].append((int(headers["snapshot"]), int(headers["ordinal"]), message.key(), message.value()))
    consumer.close()
    return found


def check_topic(table: ts.Table, servers: str) -> None:
    """Every change of every snapshot is in the topic once and in order, and they add up to the table."""
    found = records_of(table, servers)
    state: dict[int, str] = {}
    for bucket, records in found.items():
        places = [(snapshot, ordinal) for snapshot, ordinal, _, _ in records]
        assert places == sorted(set(places)), f"bucket {bucket}: a change is there twice or out of order"
        for _, _, key, value in records:
            number = json.loads(key or b"")["id"]
            if value is None:
                state.pop(number, None)
            else:
                state[number] = json.loads(value)["after"]["v"]
    assert state == content(table)
    said = {(snapshot, ordinal) for records in found.values() for snapshot, ordinal, _, _ in records}
    changed = sum(snapshot.delta_record_count for snapshot in table.snapshots() if snapshot.commit_kind.value == "APPEND")
    assert sum(map(len, found.values())) == changed, f"{changed} changes were committed, {len(said)} are in the topic"


def content(table: ts.Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}
