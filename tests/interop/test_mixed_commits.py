"""Several implementations commit to one table in turn: the later snapshot's row wins, whoever wrote it, before and
after either side compacts; nobody's commit is lost.

| writer          | what it does not take part in                                                          |
|-----------------|----------------------------------------------------------------------------------------|
| pypaimon-pure   | deletes (its delete counts bring rows back in other readers); it writes upserts only     |
| pypaimon-native | deletes go through a column of the table (option rowkind.field, given per write)          |
"""

import random
from pathlib import Path
from typing import Any

import ours
import pytest
from canonical import comparable
from limits import has_nanoseconds
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import SHAPES, Batch, History, Model, TableSpec, all_type_columns, number_fields, random_spec

pytestmark = pytest.mark.interop

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 15))]


@pytest.fixture
def everyone(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    """All implementations, us first."""
    return [Ours(), java, pypaimon_pure, pypaimon_native]


class Mix:
    """One table that many write to, and its model."""

    def __init__(self, everyone: list[Any], path: Path, spec: TableSpec, creator: Any) -> None:
        self.everyone = everyone
        self.path = path
        self.spec = spec
        self.model = Model(spec)
        ours.create(creator, path, spec)

    def write(self, writer: Any, batch: Batch) -> None:
        """One commit by ``writer``; a compaction that it adds by itself is a snapshot of the same content."""
        self.model.apply(batch.rows, batch.kinds)
        self._upto(writer.write(self.path, batch.rows, kinds=batch.kinds))

    def compact(self, by: Any) -> None:
        """A full compaction; the content stays."""
        self._upto(by.compact(self.path))

    def _upto(self, latest: int) -> None:
        for snapshot in range(max(self.model.at, default=0) + 1, latest + 1):
            self.model.snapshot(snapshot)

    def check_latest(self) -> None:
        """All read what the model says now."""
        for reader in self.everyone:
            assert comparable(reader.read(self.path)) == comparable(self.model.contents()), reader.name

    def check_all(self) -> None:
        """All read what the model says, at every snapshot."""
        for reader in self.everyone:
            for snapshot, rows in self.model.at.items():
                got = comparable(reader.read(self.path, snapshot=snapshot))
                assert got == comparable(rows), (reader.name, snapshot)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_random_writers_take_turns(everyone: list[Any], warehouse: Path, shape: str, seed: int) -> None:
    print(f"shape {shape} seed {seed}")
    rng = random.Random(f"mixed {shape} {seed}")
    us, java, pure, native = everyone
    types = [c["type"] for c in all_type_columns() if not has_nanoseconds(c["type"])]
    spec = random_spec(rng, shape, types=types, value_columns=4)
    creator = rng.choice([us, java])
    mix = Mix(everyone, warehouse / "db.db" / "mixed", spec, creator)
    history = History(rng, spec)
    for turn in range(7):
        # Every second turn is ours, so that each foreign commit lies between two of ours.
        writer = us if turn % 2 == 0 else rng.choice([java, pure, native])
        mix.write(writer, history.batch(15, delete_rate=0.25 if writer in (us, java) else 0))
    mix.check_all()
    mix.compact(java)
    mix.check_latest()
    mix.write(us, history.batch(15))
    mix.compact(us)
    mix.check_latest()
    mix.write(rng.choice([java, native]), history.batch(15, delete_rate=0))
    mix.write(us, history.batch(15))
    mix.check_all()


@pytest.mark.deep
@pytest.mark.parametrize("compactor", ["nobody", "java", "us"])
def test_the_later_snapshot_wins_whoever_wrote_it(everyone: list[Any], warehouse: Path, compactor: str) -> None:
    """Every order of two writers on one key, each pair on a key of its own."""
    us, java, _pure, _native = everyone
    spec = TableSpec(
        number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]),
        ("k",),
        options={"bucket": "1"},
    )
    mix = Mix(everyone, warehouse / "db.db" / "order", spec, us)
    pairs = [(first, second) for first in everyone for second in everyone]
    for key, (first, second) in enumerate(pairs):
        mix.write(first, Batch([{"k": key, "v": f"{first.name} first"}], None))
        mix.write(second, Batch([{"k": key, "v": f"{second.name} second"}], None))
    if compactor != "nobody":
        mix.compact(java if compactor == "java" else us)
    mix.check_latest()
    assert all(row["v"].endswith("second") for row in us.read(mix.path))


def test_deletes_by_everyone_who_can(everyone: list[Any], warehouse: Path) -> None:
    rng = random.Random(31)
    us, java, _pure, native = everyone
    spec = TableSpec(
        number_fields(
            [
                {"name": "k", "type": "BIGINT NOT NULL"},
                {"name": "op", "type": "STRING"},
                {"name": "v", "type": "INT"},
            ]
        ),
        ("k",),
        options={"bucket": "2"},
    )
    mix = Mix(everyone, warehouse / "db.db" / "deletes", spec, us)
    for turn in range(9):
        kinds = [rng.choice(["+I", "-D"]) for _ in range(12)]
        rows = [{"k": rng.randrange(15), "op": kind, "v": rng.randrange(100)} for kind in kinds]
        writer = [us, java, native][turn % 3]
        if writer is native:
            mix.model.apply(rows, kinds)
            mix.model.snapshot(native.write(mix.path, rows, kinds=kinds, options={"rowkind.field": "op"}))
        else:
            mix.write(writer, Batch(rows, kinds))
        mix.check_latest()
    mix.compact(java)
    mix.check_latest()
    mix.compact(us)
    mix.check_all()


def test_we_write_to_a_table_that_java_evolves_meanwhile(everyone: list[Any], warehouse: Path) -> None:
    us, java, _pure, _native = everyone
    path = warehouse / "db.db" / "evolving"
    us.create(
        path,
        number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "a", "type": "INT"}]),
        primary_key=["k"],
        options={"bucket": "1"},
    )
    us.write(path, [{"k": 1, "a": 1}, {"k": 2, "a": 2}])
    java.alter(path, {"action": "add", "column": "b", "type": "STRING"})
    java.alter(path, {"action": "widen", "column": "a", "type": "BIGINT"})
    us.write(path, [{"k": 2, "a": 2**40, "b": "two"}])
    java.write(path, [{"k": 3, "a": -(2**40), "b": "three"}])
    java.alter(
        path,
        {"action": "rename", "column": "b", "to": "c"},
    )
    us.write(path, [{"k": 4, "a": 4, "c": "four"}])
    rows = [
        {"k": 1, "a": 1, "c": None},
        {"k": 2, "a": 2**40, "c": "two"},
        {"k": 3, "a": -(2**40), "c": "three"},
        {"k": 4, "a": 4, "c": "four"},
    ]
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
    us.compact(path)
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
    for reader in everyone:
        assert comparable(reader.read(path, snapshot=1)) == comparable([{"k": 1, "a": 1}, {"k": 2, "a": 2}])


def test_files_of_many_pages_and_row_groups_merge_alike(everyone: list[Any], warehouse: Path) -> None:
    us, java, _pure, native = everyone
    spec = TableSpec(
        number_fields(
            [
                {"name": "k", "type": "BIGINT NOT NULL"},
                {"name": "s", "type": "STRING NOT NULL"},
                {"name": "v", "type": "INT"},
            ]
        ),
        ("k", "s"),
        options={"bucket": "2"},
    )
    path = warehouse / "db.db" / "larger"
    ours.create(us, path, spec)
    rng = random.Random(32)
    model = Model(spec)
    for turn, writer in enumerate((us, native, us)):
        keys = rng.sample(range(20_000), 8_000)
        rows = [{"k": k, "s": f"key-{k % 97:>0{1 + k % 23}}", "v": turn} for k in keys]
        model.apply(rows)
        writer.write(path, rows)
    expected = comparable(model.contents())
    for reader in (us, java, native):
        assert comparable(reader.read(path)) == expected, reader.name
    java.compact(path)
    for reader in (us, native):
        assert comparable(reader.read(path)) == expected, reader.name
