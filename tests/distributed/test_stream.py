"""A stream of a table, cut into batches that can be repeated, gives each change once, whatever happens between them."""

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.clock import Clock
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.stream.streamplanner import LOOK_S, StreamPlanner
from tablestore.distributed.stream.streamrequest import BatchLimits, StreamRequest
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.store.context import Shared, TableContext
from tablestore.store.history.consumers import Consumers
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FaultyFileStore
from tests.support.changelogs.streamengine import Engine, folded

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
KEYED = {"primary_key": ["id"], "options": {"bucket": "2", "write-only": "true"}}


def make(tmp_path: Path, **how: Any) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop", ignore_if_exists=True)
    return catalog.create_table("shop.t", schema=SCHEMA, **(how or KEYED))


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    return make(tmp_path)


def rows(ids: range | list[int], text: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def content(table: ts.Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_all_rows_come_first_and_then_every_change(table: ts.Table) -> None:
    table.upsert(rows(range(10), "a"))
    engine = Engine(table)
    (first,) = engine.run()
    assert sorted(row["id"] for row in first) == list(range(10)) and {row["_row_kind"] for row in first} == {"+I"}
    assert engine.run() == []
    table.upsert(rows([3, 20], "b"))
    table.delete("id = 4")
    (changes,) = engine.run()
    assert sorted((row["_row_kind"], row["id"]) for row in changes) == [("+I", 3), ("+I", 20), ("-D", 4)]
    assert folded(engine.batches) == content(table)


def test_without_kinds_only_new_rows_come(table: ts.Table, tmp_path: Path) -> None:
    engine = Engine(table, row_kinds=False, scan="latest", columns=("v",))
    assert engine.run() == [[]], "where it begins is logged at once"
    table.upsert(rows([1, 2], "a"))
    table.delete("id = 1")
    table.upsert(rows([2], "b"))
    (new,) = engine.run()
    assert sorted(row["v"] for row in new) == ["a1", "a2", "b2"] and set(new[0]) == {"v"}


def test_pairs_filter_and_columns(table: ts.Table) -> None:
    engine = Engine(table, scan="latest", pairs=True, filter="v < 'm'", columns=("v", "id"))
    engine.run()
    table.upsert(rows([1, 2], "a"))
    table.upsert(pa.table({"id": [1, 2], "v": ["b1", "z2"]}, schema=SCHEMA))
    (changes,) = engine.run()
    found = sorted((row["_row_kind"], row["v"], row["id"]) for row in changes)
    assert found == [("+I", "a1", 1), ("+I", "a2", 2), ("+U", "b1", 1), ("-D", "a2", 2), ("-U", "a1", 1)]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("limits", [BatchLimits(rows=5), BatchLimits(size_bytes=1), BatchLimits(files=1)])
def test_limits_cut_the_rows_and_the_changes_into_batches(tmp_path: Path, keyed: bool, limits: BatchLimits) -> None:
    table = make(tmp_path, **(KEYED if keyed else {"options": {"bucket": "-1", "write-only": "true"}}))
    write = table.upsert if keyed else table.append
    for step in range(3):
        write(rows(range(step * 10, step * 10 + 10), "a"))
    engine = Engine(table)
    full = engine.run(limits)
    assert len(full) > 2 and all(len(batch) <= 20 for batch in full)
    for step in range(3):
        write(rows(range(100 + step * 10, 100 + step * 10 + 10), "b"))
    assert len(engine.run(limits)) >= 3
    assert folded(engine.batches) == content(table)
    assert sum(map(len, engine.batches)) == 60


def test_a_batch_of_a_log_is_the_same_after_compaction_and_while_others_write(table: ts.Table) -> None:
    table.upsert(rows(range(10), "a"))
    engine = Engine(table)
    engine.run(BatchLimits(files=1))
    table.upsert(rows(range(5, 15), "b"))
    engine.plan(BatchLimits(files=1))
    engine.plan(BatchLimits(files=1))
    engine.restart()
    before = [engine.read(number) for number in range(1, len(engine.log))]
    table.compact(full=True)
    table.upsert(rows(range(3), "c"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    engine.restart()
    again = [engine.read(number) for number in range(len(engine.batches), len(engine.log))]
    assert again == before[len(engine.batches) - 1 :]
    engine.run()
    assert folded(engine.batches) == content(table)


def test_the_first_batch_begins_where_it_began_though_the_table_has_moved_on(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table, scan="latest")
    engine.plan()
    table.upsert(rows([2], "b"))
    engine.restart()
    assert engine.run() == [[], [{"_row_kind": "+I", "id": 2, "v": "b2"}]]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"from_snapshot": 1}, ["b2", "c3"]),
        ({"scan": "from-snapshot", "from_snapshot": 0}, ["a1", "b2", "c3"]),
        ({"from_snapshot": 3}, []),
        ({"scan": "from-timestamp", "time_millis": 0}, ["a1", "b2", "c3"]),
    ],
)
def test_a_stream_begins_behind_a_snapshot_or_at_a_time(table: ts.Table, how: dict[str, Any], expected: list[str]) -> None:
    for key, text in enumerate("abc", 1):
        table.upsert(rows([key], text))
    engine = Engine(table, **how)
    engine.run()
    assert [row["v"] for batch in engine.batches for row in batch] == expected


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"scan": "fully"}, "scan-mode", "expected scan to be one of"),
        ({"scan": "from-snapshot"}, "scan-mode", "from-snapshot"),
        ({"scan": "latest", "from_snapshot": 1}, "scan-mode", "from-snapshot"),
        ({"scan": "from-timestamp"}, "scan-mode", "Must specify a timestamp"),
        ({"from_snapshot": 9}, "no-such-snapshot", "its newest is 2"),
        ({"from_snapshot": 0}, "snapshot-expired", "begins anew with an empty checkpoint"),
        ({"pairs": True, "row_kinds": False}, "invalid-input", "row-kinds"),
        ({"on_discontinuity": "ignore"}, "invalid-input", "on_discontinuity"),
        ({"columns": ("nope",)}, "unknown-column", "no column 'nope'"),
        ({"filter": "nope = 1"}, None, "nope"),
        ({"consumer_id": "../x"}, None, "consumer"),
    ],
)
def test_bad_beginnings_are_refused_by_name(table: ts.Table, how: dict[str, Any], kind: str | None, message: str) -> None:
    for _ in range(2):
        table.upsert(rows([1], "a"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(TablestoreError, match=message) as caught:
        Engine(table, **how).run()
    assert kind is None or caught.value.kind == kind
    assert Consumers(table.context.files).all() == (), "what never began holds back no expiry"


def test_expiry_keeps_what_the_stream_has_still_to_read_and_nothing_more(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    engine.run()
    for step in range(4):
        table.upsert(rows([step], "b"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [2, 3, 4, 5]
    engine.restart()
    assert len(engine.run()) == 1 and folded(engine.batches) == content(table)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [5]
    assert Consumers(table.context.files).get(engine.consumer).next_snapshot == 6


def test_a_consumer_id_names_the_stream_and_a_new_checkpoint_goes_on_where_it_stood(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    Engine(table, consumer_id="board").run()
    table.upsert(rows([2], "b"))
    assert [row["v"] for batch in Engine(table, consumer_id="board").run() for row in batch] == ["b2"]
    (consumer,) = Consumers(table.context.files).all()
    assert consumer.id == "board"


def test_a_discontinuity_stops_the_stream_and_the_same_checkpoint_goes_on_as_asked(table: ts.Table) -> None:
    table.upsert(rows([1, 2], "a"))
    stopped = Engine(table)
    stopped.run()
    table.upsert(rows([3], "b"))
    table.overwrite(rows([7], "o"))
    table.upsert(rows([8], "c"))
    with pytest.raises(NotFoundError, match="on-discontinuity = restart") as caught:
        stopped.run()
    assert caught.value.kind == "discontinuity"
    assert folded(stopped.batches) == {1: "a1", 2: "a2", 3: "b3"}, "all before it was delivered"
    for way, expected in (("skip", {1, 2, 3, 8}), ("restart", {1, 2, 3, 7, 8})):
        engine = Engine(table, on_discontinuity=way)
        engine.log, engine.committed, engine.batches = list(stopped.log), stopped.committed, list(stopped.batches)
        engine.plan()
        engine.restart()
        engine.run()
        assert set(folded(engine.batches)) == expected, way


def test_other_columns_stop_the_stream_and_loading_it_again_goes_on_with_them(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    everything, part = Engine(table), Engine(table, columns=("id",))
    everything.run()
    part.run()
    wide = table.alter(ts.AddColumn("n", "INT"))
    wide.upsert(pa.table({"id": [2], "v": ["b"], "n": pa.array([5], pa.int32())}))
    with pytest.raises(ConflictError, match=r"column n came.*load the stream again") as caught:
        everything.run()
    assert caught.value.kind == "schema-changed"
    everything.restart()
    (new,) = everything.run()
    assert new == [{"_row_kind": "+I", "id": 2, "v": "b", "n": 5}]
    assert part.run() == [[{"_row_kind": "+I", "id": 2}]], "its columns have stayed"


def test_a_stream_of_older_columns_than_its_first_rows_does_not_begin(table: ts.Table) -> None:
    loaded = Engine(table)
    table.upsert(rows([1], "a"))
    wide = table.alter(ts.AddColumn("n", "INT"))
    wide.upsert(pa.table({"id": [2], "v": ["b"], "n": pa.array([5], pa.int32())}))
    with pytest.raises(ConflictError, match=r"column n came.*load the stream again") as caught:
        loaded.run()
    assert caught.value.kind == "schema-changed"
    assert Consumers(table.context.files).all() == (), "a stream that cannot begin holds back no expiry"
    loaded.restart()
    first = [row for batch in loaded.run() for row in batch]
    assert {row["id"]: row["n"] for row in first} == {1: None, 2: 5}


def test_a_stream_that_restarts_at_rows_with_other_columns_stops_before_them(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table, on_discontinuity="restart")
    engine.run()
    wide = table.alter(ts.AddColumn("n", "INT"))
    wide.overwrite(pa.table({"id": [2], "v": ["b"], "n": pa.array([5], pa.int32())}))
    with pytest.raises(ConflictError, match="load the stream again"):
        engine.run()
    engine.restart()
    (new,) = engine.run()
    assert new == [{"_row_kind": "+I", "id": 2, "v": "b", "n": 5}]


def test_offsets_of_others_are_refused_with_the_way_out(table: ts.Table, tmp_path: Path) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    engine.run()
    others: list[Any] = [7, {"logOffset": 3}, {"offset": 2}, {"offset": 1, "at": 5}, {"offset": 1, "pieces": -1}]
    for foreign in others:
        with pytest.raises(InvalidInputError) as refused:
            engine.planner.latest(foreign, None)
        assert refused.value.kind in ("stream-offset", "position")
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.drop_table("shop.t")
    again = make(tmp_path)
    again.upsert(rows([1], "a"))
    with pytest.raises(ConflictError, match="begins anew with an empty checkpoint") as dropped:
        engine.run()
    assert dropped.value.kind == "table-replaced"
    engine.restart()
    with pytest.raises(InvalidInputError, match=r"dropped and made again.*empty checkpoint") as remade:
        engine.run()
    assert remade.value.kind == "position-table"


def test_offsets_behind_expiry_are_refused_with_the_way_out(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    engine.run()
    Consumers(table.context.files).delete(engine.consumer)
    for step in range(3):
        table.upsert(rows([step], "b"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    engine.restart()
    with pytest.raises(NotFoundError, match=r"has expired.*empty checkpoint") as caught:
        engine.run()
    assert caught.value.kind == "snapshot-expired"
    assert Consumers(table.context.files).all() == (), "a stream that cannot go on holds back no expiry"


def test_an_offset_inside_of_a_snapshot_holds_for_the_same_filter_only(table: ts.Table) -> None:
    table.upsert(rows(range(10), "a"))
    engine = Engine(table, filter="id >= 0")
    engine.plan(BatchLimits(files=1))
    engine.request["filter"] = "id >= 1"
    engine.restart()
    with pytest.raises(InvalidInputError, match="another filter"):
        engine.run()


def test_what_is_there_now_ends_where_it_ended_when_it_was_asked(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    engine.run()
    table.upsert(rows([2], "b"))
    engine.planner.stop_at_newest()
    table.upsert(rows([3], "c"))
    assert [row["id"] for batch in engine.run() for row in batch] == [2]
    engine.restart()
    assert [row["id"] for batch in engine.run() for row in batch] == [3]


def test_snapshots_without_changes_make_no_batch_until_they_are_many(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table, filter="id > 100", consumer_id="quiet")
    engine.run()
    for step in range(15):
        table.upsert(rows([step], "b"))
        table.compact(full=True)
    assert len(engine.run()) >= 1
    assert folded(engine.batches) == {}
    assert Consumers(table.context.files).get("quiet").next_snapshot > 16


def test_lag_is_that_of_the_batch_planned_last(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    engine = Engine(table)
    assert engine.planner.newest() is None
    engine.run()
    assert engine.planner.newest() == {"snapshot": 1, "behind-snapshots": 0, "behind-millis": 0}
    for step in range(3):
        table.upsert(rows([step], "b"))
    engine.plan(BatchLimits(rows=1))
    lag = engine.planner.newest()
    assert lag is not None and (lag["snapshot"], lag["behind-snapshots"]) == (4, 2)


def test_an_idle_stream_looks_at_three_small_files_and_lists_nothing(table: ts.Table) -> None:
    for step in range(20):
        table.upsert(rows([step], "a"))
    engine = Engine(table)
    faults = Faults()
    calls: list[str] = []
    faults.before(lambda call: calls.append(f"{call.op} {call.path}"))
    engine.spec = replace(engine.spec, files=FaultyFileStore(table.context.files, faults))
    engine.restart()
    engine.run()
    calls.clear()
    assert not engine.plan()
    assert calls == ["exists snapshot/snapshot-21", "read snapshot/snapshot-20", "read snapshot/EARLIEST"]
    table.alter(ts.SetOption("consumer.expiration-time", "1 ms"))
    engine.restart()
    says = f"overwrite consumer/consumer-{engine.consumer}"
    # Once in a while is enough, however fast the disk.
    assert any(not engine.plan() and says in calls for _ in range(10_000)), "it says that it is alive"
    table.alter(ts.RemoveOption("consumer.expiration-time"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(TableSpec):
    """A table whose clock stands still until somebody sleeps."""

    clock: Clock

    def open(self, schema_id: int | None = None, shared: Shared | None = None) -> TableContext:
        return replace(TableSpec.open(self, schema_id, shared), clock=self.clock)


def test_a_stream_sees_what_landed_before_it_was_asked_and_looks_ten_times_a_second(table: ts.Table) -> None:
    clock, engine = ManualClock(), Engine(table)
    engine.spec = Timed(location=table.location, storage_options={}, files=table.context.files, clock=clock)
    engine.planner = StreamPlanner(engine.spec, StreamRequest(**engine.request))
    for step in range(20):
        table.upsert(rows([step], "a"))
        assert engine.plan() and not engine.plan()
        engine.finish()
    assert folded(engine.batches) == content(table)
    assert clock.steady_s() == pytest.approx(39 * LOOK_S), "between two looks nothing is asked"


@pytest.mark.parametrize(("seed", "restarts"), [(1, 6), pytest.param(3, 100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_restarts_anywhere_lose_and_double_nothing(tmp_path: Path, producer: str, seed: int, restarts: int) -> None:
    """While others write, compact and expire. A batch that was read, and is read again after a restart, has the same rows."""
    rng = random.Random(seed)
    options = {"bucket": "2", "write-only": str(producer == "none").lower(), "changelog-producer": producer}
    table = make(tmp_path, primary_key=["id"], options=options)
    table.upsert(rows(range(20), "a"))
    engine = Engine(table, pairs=True)
    for step in range(restarts):
        for _ in range(rng.randrange(4)):
            other = ts.open_table(table.location)
            ids = rng.sample(range(40), rng.randrange(1, 6))
            if rng.random() < 0.5:
                other.upsert(rows(ids, f"s{step}-"))
            else:
                other.delete(f"id = {ids[0]}")
        for _ in range(rng.randrange(3)):
            engine.plan(BatchLimits(rows=rng.choice([1, 5, 1000])))
            if rng.random() < 0.5:
                engine.finish()
                engine.planner.commit(json.loads(engine.log[engine.committed]))
        unread = len(engine.log) - 1 - engine.committed
        seen = [engine.read(number) for number in range(len(engine.log) - unread, len(engine.log))]
        if rng.random() < 0.4:
            table.compact(full=rng.random() < 0.5)
        if rng.random() < 0.4:
            table.expire_snapshots(retain_min=1, retain_max=1)
        engine.restart()
        engine.finish()
        assert engine.batches[len(engine.batches) - unread :] == seen
    engine.run()
    assert folded(engine.batches) == content(table)
    changes = [(row["id"], row["_row_kind"], row["v"]) for batch in engine.batches for row in batch]
    last: dict[int, str] = {}
    for key, kind, value in changes:
        if kind in ("-U", "-D"):
            assert last.pop(key) == value, "what goes is what was there: nothing came twice, or never"
        else:
            assert key not in last
            last[key] = value
