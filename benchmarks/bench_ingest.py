"""How many records a second does one core take from a topic into a table, and how many changes out of one?

Debezium JSON in four partitions, into a keyed table of four buckets. The floor is Kafka's client handing out the values, which is
what anybody pays who reads a topic from Python. Out of that table its rows go into another one, files and a topic; the floor is
reading them.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import tablestore as ts
from benchmarks.bench_log import make_table, start_broker
from benchmarks.measure import Case, Sample, WrongRows, stopwatch
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from tablestore.testing.kafka import KafkaBroker

RECORDS = 600_000
PARTITIONS = 4
# What Debezium says of where a change comes from: as much again as the row.
_SOURCE = {
    "version": "2.7.0.Final",
    "connector": "postgresql",
    "name": "shop",
    "ts_ms": 1_700_000_000_000,
    "snapshot": "false",
    "db": "shop",
    "sequence": '["24023119","24023128"]',
    "schema": "public",
    "table": "orders",
    "txId": 771,
    "lsn": 24_023_128,
    "xmin": None,
}


def run(setting: Setting) -> None:
    """All questions of this module; without a broker none."""
    with ExitStack() as stack:
        space = stack.enter_context(setting.workspace("ingest"))
        if (broker := start_broker(setting, stack, space)) is None:
            return
        _ingest(setting, space, broker, "rows alone", {})
        _ingest(setting, space, broker, "with their source", {"source": _SOURCE, "ts_ms": 1_700_000_000_001})
        _deliver(setting, space, broker)


def _ingest(setting: Setting, space: Path, broker: KafkaBroker, name: str, more: dict[str, Any]) -> None:
    count, topic = setting.scaled(RECORDS), name.replace(" ", "-")
    size = _fill(broker, topic, count, more)
    number = iter(range(1_000_000))

    def ours() -> Sample:
        table = make_table(space, f"{topic}-{next(number)}", None, bucket="4")
        sample, report = stopwatch(lambda: ts.ingest(table, topic, servers=broker.servers))
        found = table.scan().count()
        if (report.rows, found) != (count, count):
            raise WrongRows(f"ingested {report.rows} of {count} rows, the table has {found}")
        return sample

    timings = setting.take_turns([Case("confluent-kafka", lambda: _client(broker, topic, count)), Case("tablestore", ours)])
    setting.add(
        Result(
            name=f"ingesting {count:,} records of Debezium JSON, {name}, {size:,} bytes each",
            question="How many records a second does one core take from a topic into a table?",
            rows=count,
            base="confluent-kafka",
            timings=timings,
            notes="The client's consume() and value() alone, which gives undecoded bytes and no commit.",
        )
    )
    rate = count / timings["tablestore"].cpu_median
    bar = f"ingest of debezium-json, {name}: records per second of one core"
    setting.add_bar(Bar(name=bar, measured=rate, bound=150_000, unit="records/s", at_least=True))


def _deliver(setting: Setting, space: Path, broker: KafkaBroker) -> None:
    count = setting.scaled(RECORDS)
    source = make_table(space, "delivered", None, bucket="4")
    _fill(broker, "to-be-delivered", count, {})
    ts.ingest(source, "to-be-delivered", servers=broker.servers)
    number = iter(range(1_000_000))

    def delivering(to: Callable[[int], ts.Table | ts.Topic | str]) -> Callable[[], Sample]:
        def run_once() -> Sample:
            target = to(next(number))
            sample, report = stopwatch(lambda: ts.deliver(source, target))
            if report.rows != count:
                raise WrongRows(f"delivered {report.rows} of {count} rows")
            return sample

        return run_once

    def read() -> Sample:
        sample, rows = stopwatch(lambda: sum(batch.rows.num_rows for batch in source.consume("full", follow=False)))
        if rows != count:
            raise WrongRows(f"read {rows} of {count} rows")
        return sample

    cases = [
        Case("consume", read),
        Case("to a table", delivering(lambda turn: make_table(space, f"copy-{turn}", None, bucket="4"))),
        Case("to files of JSON", delivering(lambda turn: str(space / f"files-{turn}"))),
        Case("to a topic", delivering(lambda turn: ts.Topic(f"out-{turn}", broker.servers))),
    ]
    setting.add(
        Result(
            name=f"delivering {count:,} rows of a table",
            question="How many changes a second does one core take out of a table?",
            rows=count,
            base="consume",
            timings=setting.take_turns(cases),
            notes="Commits of 100,000 rows. Reading them alone is the floor.",
        )
    )


def _fill(broker: KafkaBroker, topic: str, count: int, more: dict[str, Any]) -> int:
    """Send the records; returns how many bytes one has."""
    from confluent_kafka import Producer
    from tablestore_kafka import KafkaLogStore

    KafkaLogStore(topic, {"bootstrap.servers": broker.servers}).create(
        partitions=PARTITIONS, retention_ms=None, ignore_if_exists=False
    )
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    size = 0
    for number in range(count):
        row = {
            "id": number,
            "customer": number * 7919 % (1 << 40),
            "price": number / 7,
            "name": f"customer-{number:06d}",
            "at": 1_700_000_000_000_000 + number,
            "paid": number % 2 == 0,
        }
        value = json.dumps({"before": None, "after": row, **more, "op": "c"}, separators=(",", ":")).encode()
        size += len(value)
        while True:
            try:
                producer.produce(topic, value, b'{"id":%d}' % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(120)
    return size // count


def _client(broker: KafkaBroker, topic: str, count: int) -> Sample:
    from confluent_kafka import Consumer, TopicPartition
    from tablestore_kafka.client import CONSUMER

    consumer = Consumer({**CONSUMER, "bootstrap.servers": broker.servers, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])

    def read() -> int:
        seen = 0
        while seen < count:
            seen += len([message.value() for message in consumer.consume(min(500, count - seen), timeout=1)])
        return seen

    sample, _ = stopwatch(read)
    consumer.close()
    return sample
