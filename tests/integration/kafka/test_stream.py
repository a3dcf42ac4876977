"""A stream of a table with a topic: rows from its files, then changes from the topic, each once, on a real broker."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.stream.streamrequest import BatchLimits
from tablestore.testing.kafka import KafkaBroker
from tests.support.changelogs.streamengine import Engine, folded

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


@pytest.mark.deep
@pytest.mark.parametrize("restarts", [3, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("keyed", [True, False])
def test_restarts_lose_and_double_nothing(
    tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, keyed: bool, restarts: int
) -> None:
    monkeypatch.setattr("tablestore.distributed.stream.loggedchanges.SILENCE_S", 0)
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    options = {"bucket": "2" if keyed else "-1", "write-only": "true", "log.kafka.topic": topic}
    options["log.kafka.bootstrap.servers"] = broker.servers
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", schema=SCHEMA, options=options, **({"primary_key": ["id"]} if keyed else {}))
    rng = random.Random(restarts)
    engine, written, sources = Engine(table), 0, set()
    for step in range(restarts):
        for _ in range(rng.randrange(1, 4)):
            with monkeypatch.context() as m:
                if rng.random() < 0.2:
                    m.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
                ids = rng.sample(range(40), rng.randrange(1, 8))
                (table.upsert if keyed else table.append)(rows(ids, f"s{step}-"))
                written += len(ids)
        while engine.plan(BatchLimits(rows=10)):
            if rng.random() < 0.5:
                break
        unread = range(engine.committed + 1, len(engine.log))
        seen = [engine.read(number) for number in unread]
        table.compact()
        table.expire_snapshots(retain_min=1, retain_max=1)
        engine.restart()
        for number in unread:
            start, end = (json.loads(text) for text in engine.log[number - 1 : number + 1])
            tasks = engine.planner.tasks(start, end)
            sources |= {kind for task in tasks for kind in ("log", "splits") if getattr(task, kind) is not None}
        engine.finish()
        assert engine.batches[len(engine.batches) - len(seen) :] == seen
    engine.run()
    assert sources == {"log", "splits"}
    assert sum(map(len, engine.batches)) == written or keyed
    if keyed:
        assert folded(engine.batches) == {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
