"""What does the log cost next to Kafka's client alone, and how long until a reader sees a change?

The floor of publishing is the client producing the same bytes with the same headers in the same transactions; that of consuming is
its ``consume()``. The broker is a real one on this machine, on the other core if there is one.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

import tablestore as ts
from benchmarks.measure import Case, Sample, WrongRows, stopwatch, take_turns
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from tablestore.clock import SystemClock
from tablestore.log.changemessages import encode_changes
from tablestore.log.connector import open_log_store
from tablestore.log.logprogress import LogProgress
from tablestore.log.logstore import cut_into_transactions
from tablestore.log.publish.changerecords import snapshot_records
from tablestore.log.publish.publisher import MAX_BYTES, MAX_RECORDS, LogPublisher
from tablestore.log.publish.slotlocks import SlotLocks, user_lock_folder
from tablestore.log.record import KIND_HEADER, ORDINAL_HEADER, SNAPSHOT_HEADER, TABLE_HEADER, LogRecords
from tablestore.log.settings import log_settings
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.testing.kafka import BrokerUnavailable, KafkaBroker, ensure_jars

PUBLISHED_ROWS = 200_000
CONSUMED_ROWS = 600_000
ENCODED_ROWS = 500_000
CHANGES = 200
_PARSED_AT_ONCE = 10_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("customer", pa.int64()),
        ("price", pa.float64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us")),
        ("paid", pa.bool_()),
    ]
)


def run(setting: Setting) -> None:
    """All questions of this module; without a broker only the first."""
    _encode(setting)
    with ExitStack() as stack:
        space = stack.enter_context(setting.workspace("log"))
        if (broker := start_broker(setting, stack, space)) is None:
            return
        _publish(setting, space, broker)
        _consume(setting, space, broker)
        _small_transactions(setting, space, broker)
        _latency(setting, space, broker)


def start_broker(setting: Setting, stack: ExitStack, space: Path) -> KafkaBroker | None:
    """A broker of its own, on all cores, until the stack is closed; None where there can be none, which the report says."""
    try:
        broker = stack.enter_context(KafkaBroker(ensure_jars(), space / "broker"))
    except BrokerUnavailable as error:
        setting.report.skipped.append(f"kafka: {error}")
        return None
    let_use_all_cores(broker.pid)
    return broker


def let_use_all_cores(pid: int) -> None:
    """The broker is not pinned to the core that is measured."""
    if hasattr(os, "sched_setaffinity"):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), range(os.cpu_count() or 1))


def _rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    ids = np.arange(count, dtype=np.int64)
    return pa.table(
        [
            ids,
            random.integers(0, 1 << 40, count),
            random.random(count),
            pa.array([f"customer-{number:06d}" for number in ids.tolist()]),
            pa.array(random.integers(0, 1 << 50, count)).cast(pa.timestamp("us")),
            random.random(count) > 0.5,
        ],
        schema=SCHEMA,
    )


def make_table(space: Path, name: str, broker: KafkaBroker | None, **options: str) -> ts.Table:
    """A table of :data:`SCHEMA`; with a broker, of a topic there."""
    catalog = ts.open_catalog(str(space / "warehouse"))
    catalog.create_database("bench", ignore_if_exists=True)
    options = {"bucket": "1", "write-only": "true", **options}
    if broker is not None:
        options["log.kafka.bootstrap.servers"] = broker.servers
    return catalog.create_table(f"bench.{name}", schema=SCHEMA, primary_key=["id"], options=options)


# -- encode


def _encode(setting: Setting) -> None:
    rows = _rows(setting.scaled(ENCODED_ROWS), setting.seed)
    kinds = np.zeros(rows.num_rows, dtype=np.int8)
    timings = setting.take_turns(
        [Case("tablestore", lambda: stopwatch(lambda: encode_changes(rows, kinds, key=["id"], mode="upsert"))[0])]
    )
    result = Result(
        name="encoding changes of 6 columns as Debezium JSON, with keys",
        question="How many rows become messages in a second?",
        rows=rows.num_rows,
        base="tablestore",
        timings=timings,
    )
    setting.add(result)
    rate = rows.num_rows / timings["tablestore"].cpu_median
    setting.add_bar(
        Bar(name="debezium-json encode, rows per second of one core", measured=rate, bound=500_000, unit="rows/s", at_least=True)
    )


# -- publish


def _publish(setting: Setting, space: Path, broker: KafkaBroker) -> None:
    count = setting.scaled(PUBLISHED_ROWS)
    table = make_table(space, "published", broker, **{"log.system": "filestore"})
    table.upsert(_rows(count, setting.seed))
    snapshot = table.snapshots()[-1]
    found, gap = snapshot_records(table.context, snapshot, [0], "upsert", {})
    assert gap is None, "the upsert tells its changes"
    groups = list(cut_into_transactions(found, max_records=MAX_RECORDS, max_bytes=MAX_BYTES))
    number = iter(range(1_000_000))

    def ours() -> Sample:
        schema = table.table_schema
        options = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": f"ours-{next(number)}", "log.system": "kafka"}
        settings = log_settings(_with_options(schema, options), name="")
        log = open_log_store(settings)
        log.create(partitions=1, retention_ms=None, ignore_if_exists=False)
        # Progress is recorded in the table: every run begins without any.
        LogProgress(table.context.files).forget()
        RetentionLeases(table.context.files).release(LOG_HOLD)
        outbox = LogPublisher(table.context, log, settings, SlotLocks(user_lock_folder()))
        outbox.open()
        sample, report = stopwatch(outbox.publish)
        outbox.close()
        log.drop(ignore_if_not_exists=True)
        if report.records != count:
            raise WrongRows(f"published {report.records} of {count} rows")
        return sample

    def floor() -> Sample:
        return _produce(broker, f"floor-{next(number)}", groups)

    timings = setting.take_turns([Case("confluent-kafka", floor), Case("tablestore", ours)])
    result = Result(
        name=f"publishing a snapshot of {count:,} rows",
        question="What does the outbox cost beyond Kafka's client: reading the rows, encoding them, noting progress?",
        rows=count,
        base="confluent-kafka",
        timings=timings,
        notes="The client produces the same keys, values and headers, made before, in the same transactions.",
    )
    setting.add(result)
    _at_least(setting, result, "publish / confluent-kafka producing the same bytes", 0.6)


def _with_options(schema: Any, options: dict[str, str]) -> Any:
    return replace(schema, options={**schema.options, **options})


def _produce(broker: KafkaBroker, topic: str, groups: Sequence[Sequence[LogRecords]]) -> Sample:
    from confluent_kafka import Producer
    from tablestore_kafka.client import PRODUCER

    log = _log(broker, topic)
    producer = Producer({**PRODUCER, "bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(30)
    prepared = [
        (key, value, [(TABLE_HEADER, b"u" * 36), (SNAPSHOT_HEADER, b"1"), (ORDINAL_HEADER, str(o).encode()), (KIND_HEADER, b"+I")])
        for group in groups
        for batch in group
        for key, value, o in zip(batch.keys, batch.values, batch.ordinals.tolist(), strict=True)
    ]
    sizes = [sum(map(len, group)) for group in groups]

    def send() -> None:
        position = 0
        for size in sizes:
            producer.begin_transaction()
            for key, value, headers in prepared[position : position + size]:
                producer.produce(topic, value, key, 0, headers=headers)
            producer.commit_transaction(60)
            position += size

    sample, _ = stopwatch(send)
    producer.close()
    log.drop(ignore_if_not_exists=True)
    return sample


def _log(broker: KafkaBroker, topic: str, partitions: int = 1) -> Any:
    from tablestore_kafka import KafkaLogStore

    log = KafkaLogStore(topic, {"bootstrap.servers": broker.servers})
    log.create(partitions=partitions, retention_ms=None, ignore_if_exists=True)
    return log


def _at_least(setting: Setting, result: Result, name: str, bound: float) -> None:
    floor, own = result.timings["confluent-kafka"], result.timings["tablestore"]
    setting.add_bar(
        Bar(
            name=name,
            measured=floor.median / own.median,
            bound=bound,
            at_least=True,
            note=f"{floor.cpu_median / own.cpu_median:.2f} x in processor time",
        )
    )


# -- consume


def _consume(setting: Setting, space: Path, broker: KafkaBroker) -> None:
    count = setting.scaled(CONSUMED_ROWS)
    table = make_table(space, "consumed", broker)
    table.upsert(_rows(10, setting.seed))
    position = None
    for batch in table.consume(follow=False):
        position = batch.position
    list(table.consume(position=position, follow=False))
    table.upsert(_rows(count, setting.seed))
    topic = table.options()["log.kafka.topic"]

    def ours() -> Sample:
        def read() -> int:
            seen = 0
            for batch in table.consume("from-timestamp", timestamp=0):
                seen += batch.rows.num_rows
                if seen >= count + 10:
                    break
            return seen

        sample, seen = stopwatch(read)
        if seen != count + 10:
            raise WrongRows(f"consumed {seen} of {count + 10} rows")
        return sample

    def client(at_once: int, *, values: bool = False, parse: bool = False) -> Sample:
        from confluent_kafka import Consumer, TopicPartition
        from tablestore_kafka.client import CONSUMER

        consumer = Consumer({**CONSUMER, "bootstrap.servers": broker.servers, "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(topic, 0, 0)])

        def read() -> int:
            seen = 0
            texts: list[bytes] = []
            while seen < count + 10:
                # Never more than are left: it would wait for them.
                messages = consumer.consume(min(at_once, count + 10 - seen), timeout=1)
                if values:
                    found = [message.value() for message in messages if message.error() is None]
                    texts += found
                seen += len(messages)
                if parse and (len(texts) >= _PARSED_AT_ONCE or seen == count + 10):
                    parse_envelopes(texts)
                    texts = []
                elif not parse:
                    texts = []
            return seen

        sample, _ = stopwatch(read)
        consumer.close()
        return sample

    timings = setting.take_turns(
        [
            Case("confluent-kafka", lambda: client(1000)),
            Case("… 100 at a time", lambda: client(100)),
            Case("… and value()", lambda: client(1000, values=True)),
            Case("… and Arrow's JSON reader", lambda: client(1000, values=True, parse=True)),
            Case("tablestore", ours),
        ]
    )
    result = Result(
        name=f"consuming {count:,} changes from a topic",
        question="What do decoding, skipping and positions cost beyond the client's consume()?",
        rows=count,
        base="confluent-kafka",
        timings=timings,
        notes="The client's consume(1000) alone is the bar. No reader does without value(), which gives undecoded bytes; what the "
        "fastest JSON reader at hand makes of those is no row of the table yet: texts still have to become timestamps.",
    )
    setting.add(result)
    _at_least(setting, result, "consume and decode / confluent-kafka's consume()", 0.6)


def parse_envelopes(texts: Sequence[bytes]) -> pa.Table:
    """What Arrow's JSON reader alone makes of messages whose columns it is told."""
    row = pa.struct([pa.field(f.name, pa.string() if pa.types.is_timestamp(f.type) else f.type) for f in SCHEMA])
    data = b"\n".join(texts)
    return pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(explicit_schema=pa.schema([("after", row)]), unexpected_field_behavior="ignore"),
    )


# -- small commits


def _small_transactions(setting: Setting, space: Path, broker: KafkaBroker) -> None:
    from confluent_kafka import Producer
    from tablestore_kafka.client import PRODUCER

    table = make_table(space, "small", broker, **{"log.system": "filestore"})
    settings = log_settings(
        _with_options(table.table_schema, {"log.system": "kafka", "log.kafka.bootstrap.servers": broker.servers}), name="small"
    )
    log = open_log_store(settings)
    log.create(partitions=1, retention_ms=None, ignore_if_exists=False)
    outbox = LogPublisher(table.context, log, settings, SlotLocks(user_lock_folder()))
    rows = _rows(1, setting.seed)
    table.upsert(rows)
    outbox.publish()
    bare_log = _log(broker, "bare")
    producer = Producer({**PRODUCER, "bootstrap.servers": broker.servers, "transactional.id": "bare"})
    producer.init_transactions(30)

    def ours() -> Sample:
        table.upsert(rows)
        return stopwatch(outbox.publish)[0]

    def bare() -> Sample:
        def send() -> None:
            producer.begin_transaction()
            producer.produce("bare", b"x" * 150, b"k", 0)
            producer.commit_transaction(30)

        # As ours, after a pause in which the broker ends the transaction before.
        SystemClock().sleep(0.02)
        return stopwatch(send)[0]

    timings = take_turns([Case("bare transaction", bare), Case("tablestore", ours)], 10 * setting.repeats)
    result = Result(
        name="publishing a commit of one row",
        question="What does a small commit's publication take next to a bare transaction of one record?",
        rows=1,
        base="bare transaction",
        timings=timings,
    )
    setting.add(result)
    setting.add_bar(result.bar("publish of a one-row commit / bare one-record transaction", "tablestore", "bare transaction", 3.0))
    outbox.close()
    producer.close()
    bare_log.drop(ignore_if_not_exists=True)


# -- latency


def _latency(setting: Setting, space: Path, broker: KafkaBroker) -> None:
    for name, where, options in (
        ("kafka", broker, {}),
        ("filestore", None, {"continuous.discovery-interval": "10 ms"}),
    ):
        waits = _waits(setting, make_table(space, f"latency-{name}", where, **options))
        p50, p99 = median(waits) * 1000, quantiles(waits, n=100)[98] * 1000
        setting.report.skipped.append(
            f"latency, {name}: commit called to batch seen, {len(waits)} changes: p50 {p50:.0f} ms, p99 {p99:.0f} ms"
        )
        if name == "kafka":
            setting.add_bar(Bar(name="commit to kafka consumer, p50", measured=p50, bound=100, unit="ms"))
            setting.add_bar(Bar(name="commit to kafka consumer, p99", measured=p99, bound=500, unit="ms"))
        else:
            setting.add_bar(Bar(name="commit to file store consumer, p50 (looks every 10 ms)", measured=p50, bound=1000, unit="ms"))
            setting.add_bar(Bar(name="commit to file store consumer, p99 (looks every 10 ms)", measured=p99, bound=1000, unit="ms"))


def _waits(setting: Setting, table: ts.Table) -> list[float]:
    """Seconds from the call of a commit to the moment that a follower in another thread has the row."""
    clock = SystemClock()
    changes = max(setting.scaled(CHANGES), 20)
    arrived: dict[int, float] = {}
    ready, seen = threading.Event(), threading.Event()
    done = threading.Event()

    def follow() -> None:
        reader = ts.open_table(table.location)
        for batch in reader.consume("latest", stop=done.is_set):
            now = clock.steady_s()
            for number in batch.rows.column("customer").to_pylist():
                arrived[number] = now
            ready.set()
            seen.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    row = _rows(1, setting.seed)
    sent: dict[int, float] = {}
    number = 0

    def write() -> None:
        nonlocal number
        number += 1
        sent[number] = clock.steady_s()
        table.upsert(row.set_column(1, "customer", pa.array([number])))

    while not ready.is_set():
        write()
        ready.wait(0.5)
    warm = number
    for _ in range(changes):
        seen.clear()
        write()
        if not seen.wait(30):
            raise WrongRows("a change did not reach its reader within 30 s")
        clock.sleep(0.02)
    done.set()
    follower.join(10)
    table.close()
    return [arrived[n] - sent[n] for n in range(warm + 1, number + 1)]
