"""Random changes of a table go into a topic, and from there into tables with an order and with sums, as a dict says."""

import random
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.environment.conftest import _entry_points  # noqa: F401

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("g", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
GROUPED = pa.schema([pa.field("g", pa.int64(), nullable=False), ("v", pa.int64())])
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}


@pytest.fixture
def catalog(tmp_path: Path, _entry_points: None) -> ts.Catalog:  # noqa: F811
    opened = ts.open_catalog(str(tmp_path / "wh"))
    opened.create_database("d")
    return opened


@pytest.mark.slow_after(1)
@pytest.mark.deep_after(1)
@pytest.mark.parametrize("form", ["json", "debezium-json"])
@pytest.mark.parametrize("producer", ["none", "input"])
def test_a_table_comes_back_through_a_topic_with_its_deletes(
    form: Literal["json", "debezium-json"], producer: str, catalog: ts.Catalog, broker: KafkaBroker
) -> None:
    chance, topic = random.Random(f"{form} {producer}"), f"roundtrip-{form}-{producer}"
    options = {"bucket": "2", "changelog-producer": producer}
    source = catalog.create_table("d.source", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    ordered = catalog.create_table("d.ordered", schema=SCHEMA, primary_key=["id"], options={**options, "sequence.field": "ts"})
    sums = catalog.create_table("d.sums", schema=GROUPED, primary_key=["g"], options={"bucket": "1", **SUM})
    rows: dict[int, dict[str, Any]] = {}
    for clock in range(1, 16):
        chosen = chance.sample(range(10), chance.randint(1, 6))
        if chance.random() < 0.4:
            source.delete([{"id": id} for id in chosen])
            rows = {id: one for id, one in rows.items() if id not in chosen}
        else:
            rows |= {id: {"id": id, "g": chance.randrange(3), "ts": clock, "v": chance.randint(-5, 5)} for id in chosen}
            source.upsert([rows[id] for id in chosen])
        if chance.random() < 0.4 or clock == 15:
            ts.deliver(source, ts.Topic(topic, broker.servers, format=form))
            ts.ingest(ordered, topic, servers=broker.servers, format=form, name="ordered", commit_records=chance.choice([3, 1000]))
            if form == "debezium-json":
                ts.ingest(sums, topic, servers=broker.servers, format=form, name="sums")
        if chance.random() < 0.2:
            ordered.refresh().compact(full=True)
    found = ordered.refresh().scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda one: one["id"]) == sorted(rows.values(), key=lambda one: one["id"])
    if form == "debezium-json":
        expected = {g: sum(one["v"] for one in rows.values() if one["g"] == g) for g in range(3)}
        found_sums = {one["g"]: one["v"] for one in sums.refresh().scan().to_arrow().to_pylist()}
        assert {g: v for g, v in found_sums.items() if v} == {g: v for g, v in expected.items() if v}
