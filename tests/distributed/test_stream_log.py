"""A stream of a table whose log is a system of its own: rows from the files, then changes from the log, each once."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.stream.streamrequest import BatchLimits
from tablestore.log.position import LogPlace
from tablestore.testing.memorylog import MemoryBroker, memory_logs
from tests.support.changelogs.streamengine import Engine, folded

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    broker = MemoryBroker("streamed")
    with memory_logs():
        yield broker
    broker.close()


@pytest.fixture
def table(tmp_path: Path, broker: MemoryBroker) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    options = {
        "bucket": "3",
        "write-only": "true",
        "log.kafka.bootstrap.servers": "streamed",
        "tablestore.log.publisher-slots": "2",
    }
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


def rows(ids: range | list[int], text: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def content(table: ts.Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def sources(engine: Engine, number: int) -> set[str]:
    """Where the tasks of a batch read."""
    start, end = (json.loads(text) for text in engine.log[number - 1 : number + 1])
    kinds = ("splits", "log", "changes")
    return {kind for task in engine.planner.tasks(start, end) for kind in kinds if getattr(task, kind) is not None}


@pytest.mark.parametrize("row_kinds", [True, False])
def test_rows_come_from_the_files_and_changes_from_the_log(table: ts.Table, row_kinds: bool) -> None:
    table.upsert(rows(range(10), "a"))
    engine = Engine(table, row_kinds=row_kinds)
    engine.run()
    table.upsert(rows([3, 20], "b"))
    table.delete("id = 4")
    (changes,) = engine.run()
    assert [sources(engine, number) for number in (1, 2)] == [{"splits"}, {"log"}]
    assert sorted((row["id"], row["v"]) for row in changes if row["v"]) == [(3, "b3"), (20, "b20")]
    if row_kinds:
        assert [(row["_row_kind"], row["id"]) for row in changes if not row["v"]] == [("-D", 4)]
        assert folded(engine.batches) == content(table)


def test_a_batch_of_the_log_has_the_same_rows_when_it_is_run_again_much_later(table: ts.Table) -> None:
    engine = Engine(table)
    engine.run()
    for step in range(6):
        table.upsert(rows([step, step + 1], f"s{step}-"))
        engine.plan(BatchLimits(files=3))
    seen = [engine.read(number) for number in range(2, len(engine.log))]
    for step in range(6):
        table.upsert(rows([step], "later"))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    engine.restart()
    assert [engine.read(number) for number in range(2, len(engine.log))] == seen
    assert all(sources(engine, number) == {"log"} for number in range(2, len(engine.log)))
    engine.run()
    assert folded(engine.batches) == content(table)


def test_the_stream_waits_for_the_publishers_and_after_a_while_reads_the_files(
    table: ts.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    engine.run()
    with monkeypatch.context() as m:
        m.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
        table.upsert(rows([2], "b"))
    assert not engine.plan(), "it will be published in a moment"
    monkeypatch.setattr("tablestore.distributed.stream.loggedchanges.SILENCE_S", 0)
    assert engine.run() == [[{"_row_kind": "+I", "id": 2, "v": "b2"}]]
    assert sources(engine, 2) == {"changes"}
    table.upsert(rows([3], "c"))
    assert engine.run() == [[{"_row_kind": "+I", "id": 3, "v": "c3"}]], "the changes of 2 are in the log by now, and left out"
    assert sources(engine, 3) == {"log"}


def test_what_the_log_has_lost_comes_from_the_files(table: ts.Table, broker: MemoryBroker) -> None:
    engine = Engine(table)
    engine.run()
    table.upsert(rows(range(6), "a"))
    engine.plan()
    expected = sorted(engine.read(2), key=lambda row: row["id"])
    for lose in (lambda: table.change_log.rebuild(), lambda: setattr(broker, "silent", True)):
        lose()
        engine.restart()
        assert sorted(engine.read(2), key=lambda row: row["id"]) == expected
    assert [row["id"] for row in expected] == list(range(6))


def test_offsets_say_where_each_bucket_stands_in_the_log(table: ts.Table) -> None:
    from tablestore.distributed.stream.streamoffset import parse_offset

    table.upsert(rows(range(10), "a"))
    engine = Engine(table)
    engine.run()
    at = parse_offset(json.loads(engine.log[-1])).at
    assert at is not None and isinstance(at.place, LogPlace)
    assert at.place.base == 1 and set(at.place.offsets) == {0, 1, 2} and min(at.place.offsets.values()) > 0


@pytest.mark.parametrize(("seed", "restarts"), [(5, 6), pytest.param(6, 100, marks=pytest.mark.slow)])
def test_restarts_anywhere_lose_and_double_nothing(
    table: ts.Table, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, seed: int, restarts: int
) -> None:
    """With writers that publish or leave it to others, expiry, compaction, and a log that is silent at times or made anew."""
    monkeypatch.setattr("tablestore.distributed.stream.loggedchanges.SILENCE_S", 0)
    rng = random.Random(seed)
    engine = Engine(table)
    for step in range(restarts):
        for _ in range(rng.randrange(4)):
            with monkeypatch.context() as m:
                if rng.random() < 0.3:
                    m.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
                ids = rng.sample(range(40), rng.randrange(1, 6))
                if rng.random() < 0.7:
                    table.upsert(rows(ids, f"s{step}-"))
                else:
                    table.delete(f"id = {ids[0]}")
        for _ in range(rng.randrange(3)):
            engine.plan(BatchLimits(rows=rng.choice([1, 5, 1000])))
            if rng.random() < 0.5:
                engine.finish()
                engine.planner.commit(json.loads(engine.log[engine.committed]))
        broker.silent = rng.random() < 0.1
        if rng.random() < 0.1 and not broker.silent:
            table.change_log.rebuild()
        if rng.random() < 0.3:
            table.compact()
        if rng.random() < 0.3:
            table.expire_snapshots(retain_min=1, retain_max=1)
        engine.restart()
        engine.finish()
        broker.silent = False
    engine.run()
    assert folded(engine.batches) == content(table)
