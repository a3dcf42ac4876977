"""What the tests of eventual tables run in processes of their own, and how they look at a topic without the engine's reader."""

import json
import os
import random
import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from confluent_kafka import TopicPartition

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import SCHEMA, rows, topic_of
from tests.integration.kafka.topics import plain_consumer

CLOCK = SystemClock()
Rows = dict[int, str]


def make(path: Path, broker: KafkaBroker, topic: str, **more: str) -> ts.Table:
    """An eventual table of two buckets."""
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    options = {
        "bucket": "2",
        "log.kafka.bootstrap.servers": broker.servers,
        "log.kafka.topic": topic,
        "log.consistency": "eventual",
    }
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={**options, **more})


def told(table: ts.Table, servers: str, isolation: str = "read_uncommitted") -> Rows:
    """What the whole topic adds up to for a plain consumer: the last record of a key counts."""
    state: Rows = {}
    consumer = plain_consumer(servers, isolation)
    for bucket in range(int(table.options()["bucket"])):
        consumer.assign([TopicPartition(topic_of(table), bucket, 0)])
        while True:
            message = consumer.poll(30)
            assert message is not None, "the topic does not answer"
            if message.error():
                break
            if message.key() is None:
                # What cleared a transaction away that the broker had lost track of: no row.
                continue
            number, value = json.loads(message.key() or b"")["id"], message.value()
            if value is None:
                state.pop(number, None)
            else:
                state[number] = json.loads(value)["after"]["v"]
    consumer.close()
    return state


class Follower(threading.Thread):
    """Reads the whole table, follows it, and applies every row to what it has."""

    def __init__(self, table: ts.Table) -> None:
        super().__init__(daemon=True)
        self._table = ts.open_table(table.location)
        self._expected: Mapping[int, str] | None = None
        self._deadline_s = CLOCK.steady_s() + 600
        self.state: Rows = {}
        self.seen: list[tuple[str, int, str]] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for batch in self._table.consume("full", stop=self._is_done, on_discontinuity="skip"):
                for row in batch.rows.to_pylist():
                    self.seen.append((row["_row_kind"], row["id"], row["v"]))
                    if row["_row_kind"] == "-D":
                        self.state.pop(row["id"], None)
                    else:
                        self.state[row["id"]] = row["v"]
        except BaseException as error:
            self.error = error

    def sees(self, expected: Mapping[int, str]) -> None:
        """Wait until this is what it has, and end it."""
        self._deadline_s = CLOCK.steady_s() + 60
        self._expected = dict(expected)
        self.join(120)
        assert not self.is_alive() and self.error is None, self.error
        assert self.state == expected

    def _is_done(self) -> bool:
        late = CLOCK.steady_s() >= self._deadline_s
        return late or (self._expected is not None and self.state == self._expected)


def wait_for_commits(table: ts.Table, count: int) -> None:
    """Wait until others have committed so many times."""
    snapshots, deadline_s = table.context.snapshots, CLOCK.steady_s() + 120
    wanted = max(snapshots.listed_ids(), default=0) + count
    while max(snapshots.listed_ids(), default=0) < wanted:
        assert CLOCK.steady_s() < deadline_s, "the writers do not get to work"
        CLOCK.sleep(0.01)


def write_and_hang(location: str, ids: list[int], text: str) -> None:
    """Write rows that are seen early, and never commit them."""
    with ts.open_table(location).new_writer() as writer:
        writer.write(rows(ids, text))
        threading.Event().wait()


def upsert_elsewhere(location: str, ids: list[int], text: str, directory: str) -> None:
    """Upsert as another host does, which shares no locks with this one."""
    os.environ["XDG_CACHE_HOME"] = directory
    Path(directory).mkdir(exist_ok=True)
    ts.open_table(location).upsert(rows(ids, text))


def write_at_random(location: str, seed: int, directory: str | None = None) -> None:
    """Write, delete, commit or give up, until somebody kills this process; with a ``directory`` as another host does."""
    if directory is not None:
        os.environ["XDG_CACHE_HOME"] = directory
        Path(directory).mkdir(exist_ok=True)
    chance = random.Random(seed)
    table = ts.open_table(location)
    step = 0
    while True:
        with table.new_writer() as writer:
            for _ in range(chance.randrange(1, 4)):
                step += 1
                writer.write(rows(chance.sample(range(40), 6), f"{seed}-{step}-"))
                if chance.random() < 0.5:
                    writer.delete(pa.table({"id": [chance.randrange(40)]}))
            if chance.random() < 0.75:
                writer.commit()
