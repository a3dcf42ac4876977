"""``log status``, ``publish``, ``verify`` and ``rebuild``: what the command line says of a topic, and sees wrong in it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.support.commandline import run_command

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    options = {"bucket": "2", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def say(*arguments: str, code: int = 0) -> Any:
    return run_command("log", *arguments, "--json", code=code).json


def strange(table: ts.Table, broker: KafkaBroker, value: bytes | None, *, snapshot: int, ordinal: int, key: bytes) -> None:
    """A record that claims to be the table's."""
    producer = Producer({"bootstrap.servers": broker.servers})
    headers: Any = [
        ("table", (table.context.table_uuid or "").encode()),
        ("snapshot", str(snapshot).encode()),
        ("ordinal", str(ordinal).encode()),
        ("row-kind", b"+I"),
    ]
    producer.produce(table.options()["log.kafka.topic"], value, key, 0, headers=headers)
    producer.flush(10)
    producer.close()


def test_status_says_what_the_topic_lacks_and_publish_brings_it(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.upsert(rows([1, 2, 3, 4], "a"))
    before = say("status", table.location)
    assert before["mode"] == "upsert" and [b["lag_snapshots"] for b in before["buckets"]] == [0, 0]
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
    table.upsert(rows([1, 5], "b"))
    lagging = say("status", table.location)
    assert [b["lag_snapshots"] for b in lagging["buckets"]] == [1, 1]
    assert sum(b["lag_records"] for b in lagging["buckets"]) == 2
    assert sum(slot["records"] for slot in say("publish", table.location)["slots"]) == 2
    assert [b["lag_records"] for b in say("status", table.location)["buckets"]] == [0, 0]


@pytest.mark.deep
def test_verify_agrees_with_a_sound_log(table: ts.Table) -> None:
    for step in range(4):
        table.upsert(rows([step, step + 1, step + 2], f"s{step}-"))
    table.delete(pa.table({"id": [3]}))
    found = say("verify", table.location)
    assert found["problems"] == [] and found["complete"] and found["records"] == 13
    table.overwrite(rows([77], "o"))
    table.upsert(rows([78], "p"))
    assert say("verify", table.location)["complete"] is False


@pytest.mark.deep
@pytest.mark.parametrize(
    ("value", "key", "problem"),
    [
        (b'{"before":null,"after":{"id":1,"v":"lie"},"op":"c"}', b'{"id":1}', "differ from their last record"),
        (b'{"before":null,"after":{"id":99,"v":"ghost"},"op":"c"}', b'{"id":99}', "are not in the table"),
        (None, b'{"id":1}', "deletes them are in the table"),
    ],
)
def test_verify_sees_a_log_that_says_something_else(
    table: ts.Table, broker: KafkaBroker, value: bytes | None, key: bytes, problem: str
) -> None:
    table.upsert(rows(list(range(10)), "a"))
    strange(table, broker, value, snapshot=1, ordinal=1000, key=key)
    found = say("verify", table.location, code=3)
    assert any(problem in one for one in found["problems"])


@pytest.mark.deep
def test_rebuild_makes_a_sound_log_of_a_broken_one(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1, 2], "a"))
    strange(table, broker, b"poison", snapshot=1, ordinal=1000, key=b"{}")
    assert "cannot be understood" in run_command("log", "verify", table.location, code=1).err
    assert "Would delete topic" in run_command("log", "rebuild", table.location, code=3).out
    assert sum(slot["records"] for slot in say("rebuild", table.location, "--yes")["slots"]) == 2
    assert say("verify", table.location)["problems"] == []


def test_a_table_without_a_topic_has_nothing_to_look_at(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "plain"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"])
    assert "file store itself" in run_command("log", "status", table.location, code=1).err
