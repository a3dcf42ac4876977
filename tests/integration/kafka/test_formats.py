"""The formats of messages on a real broker: a table reads what it publishes, and so do the decoders of others."""

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

import tablestore as ts
from tablestore.log.changemessages import LogFormat
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import plain_consumer

FORMS: tuple[LogFormat, ...] = ("canal-json", "json", "avro")
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("price", pa.decimal128(10, 2))])


def rows(*values: tuple[int, str | None, str | None]) -> pa.Table:
    ids, texts, prices = zip(*values, strict=True)
    return pa.table({"id": list(ids), "v": list(texts), "price": pa.array(prices).cast(pa.decimal128(10, 2))}, schema=SCHEMA)


def make(path: Path, broker: KafkaBroker, topic: str, *, keyed: bool, **options: str) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop")
    options = {"bucket": "1" if keyed else "-1", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic, **options}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"] if keyed else (), options=options)


def values(topic: str, broker: KafkaBroker) -> list[tuple[bytes | None, bytes | None]]:
    """The key and value of each message, as a plain consumer sees them."""
    consumer = plain_consumer(broker.servers)
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = []
    while not (message := consumer.poll(10)).error():
        messages.append((message.key(), message.value()))
    consumer.close()
    return messages


def decoded(form: LogFormat, value: bytes | None, table: ts.Table) -> Any:
    """A value as another program decodes it."""
    if value is None:
        return None
    if form != "avro":
        return json.loads(value)
    schema = json.loads(table.change_log.status().avro_schema or "")
    record = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
    return {**record, "price": None if record["price"] is None else str(record["price"])}  # type: ignore[dict-item]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_published_and_read(form: LogFormat, tmp_path: Path, broker: KafkaBroker) -> None:
    topic = f"format-{form}"
    table = make(tmp_path, broker, topic, keyed=True, **{"log.format": form})
    table.upsert(rows((1, "a", "1.50"), (2, None, None)))
    table.upsert(rows((1, "b", "-0.01")))
    table.delete(rows((2, None, None)).select(["id"]))
    one, two = {"id": 1, "v": "a", "price": "1.50"}, {"id": 2, "v": None, "price": None}
    three = {"id": 1, "v": "b", "price": "-0.01"}
    seen = [decoded(form, value, table) for _, value in values(topic, broker)]
    whole = {"canal-json": [{"data": [row], "type": "INSERT"} for row in (one, two, three)]}.get(form, [one, two, three])
    assert seen == [*whole, None]
    assert values(topic, broker)[3][0] == b'{"id":2}'
    changes = [row for batch in table.consume(follow=False, scan="full") for row in batch.rows.to_pylist()]
    assert [(row["_row_kind"], row["id"], row["v"]) for row in changes] == [("+I", 1, "b")]
    assert not table.change_log.verify().problems
    # The columns of a message are those of its snapshot.
    table.alter([ts.AddColumn("more", pa.int32()), ts.RenameColumn("v", to="w")])
    reader = table.refresh().consume(follow=False, scan="latest", consumer_id="c")
    for batch in reader:
        batch.commit()
    table.upsert(table.refresh().scan().to_arrow())
    changes = [row for batch in table.consume(follow=False, consumer_id="c") for row in batch.rows.to_pylist()]
    assert [(row["_row_kind"], row["id"], row["w"], row["more"]) for row in changes] == [("+I", 1, "b", None)]


@pytest.mark.deep
@pytest.mark.parametrize("form", FORMS)
def test_an_append_table_is_published_in_every_format(form: LogFormat, tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, f"format-append-{form}", keyed=False, **{"log.format": form})
    table.append(rows((1, "a", "1.50"), (1, None, None)))
    table.append(rows((3, "", "0.00")))
    assert len(values(f"format-append-{form}", broker)) == 3
    changes = [row for batch in table.consume(follow=False, scan="full") for row in batch.rows.to_pylist()]
    assert [(row["_row_kind"], row["id"], row["v"]) for row in changes] == [("+I", 1, "a"), ("+I", 1, None), ("+I", 3, "")]


@pytest.mark.deep
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_sent_before_their_snapshot_in_every_format(form: LogFormat, tmp_path: Path, broker: KafkaBroker) -> None:
    options = {"log.format": form, "log.consistency": "eventual"}
    table = make(tmp_path, broker, f"format-early-{form}", keyed=True, **options)
    table.upsert(rows((1, "a", None), (2, "b", "2.00")))
    last = {key: decoded(form, value, table) for key, value in values(f"format-early-{form}", broker)}
    assert set(last) == {b'{"id":1}', b'{"id":2}'} and None not in last.values()
    assert not table.change_log.verify().problems


@pytest.mark.deep
def test_rows_before_an_update_are_messages_of_canal(tmp_path: Path, broker: KafkaBroker) -> None:
    options = {"log.format": "canal-json", "log.changelog-mode": "all", "changelog-producer": "lookup"}
    table = make(tmp_path, broker, "format-all", keyed=True, **options)
    table.upsert(rows((1, "a", None)))
    table.upsert(rows((1, "b", None)))
    table.delete(rows((1, None, None)).select(["id"]))
    kinds = [json.loads(value or b"")["type"] for _, value in values("format-all", broker)]
    assert kinds == ["INSERT", "DELETE", "INSERT", "DELETE"]
