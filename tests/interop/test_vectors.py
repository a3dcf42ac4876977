"""Deletion vectors and dynamic buckets in turn with others: who writes, deletes or compacts, all read the same rows.

| who             | what it does not take part in                                                               |
|-----------------|---------------------------------------------------------------------------------------------|
| java            | deletes by condition in append tables (an engine's business); it appends and compacts there   |
| pypaimon        | writes of tables with deletion vectors that compact (it never compacts)                       |
| pypaimon-native | dynamic buckets: its writer hands over to the Python one                                      |
"""

import random
from pathlib import Path
from typing import Any

import ours
import pytest
from canonical import comparable
from limits import has_nanoseconds, seen_by
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import Batch, History, Model, TableSpec, all_type_columns, number_fields, random_spec

import tablestore as ts
from tablestore.io.local import LocalFileStore
from tablestore.testing.auditor import Auditor

pytestmark = pytest.mark.interop

VECTORS = {"deletion-vectors.enabled": "true"}
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]


@pytest.fixture
def readers(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    """Everyone who must agree, us included."""
    return [Ours(), java, pypaimon_pure, pypaimon_native]


class Shared:
    """A table that several write to; which rows each snapshot shows is what Java says, and the last one what the model says."""

    def __init__(self, readers: list[Any], path: Path, spec: TableSpec, creator: Any) -> None:
        self.readers, self.path, self.spec = readers, path, spec
        self.us, self.java = readers[0], readers[1]
        self.model = Model(spec)
        self.seen = 0
        ours.create(creator, path, spec)

    @property
    def auditor(self) -> Auditor:
        return Auditor(LocalFileStore(str(self.path)))

    def write(self, writer: Any, batch: Batch) -> None:
        """One commit, and what must follow it to be seen."""
        self.model.apply(batch.rows, batch.kinds)
        writer.write(self.path, batch.rows, kinds=batch.kinds)
        if writer is not self.us and self.spec.primary_key and "deletion-vectors.enabled" in self.spec.options:
            self.java.compact(self.path, full=False)

    def check(self) -> None:
        """All agree on the latest rows, and on those of every snapshot since the last check."""
        for reader in self.readers:
            assert comparable(reader.read(self.path)) == comparable(self.model.contents()), reader.name
        for snapshot in self.java.snapshots(self.path):
            if snapshot["id"] > self.seen:
                expected = comparable(self.java.read(self.path, snapshot=snapshot["id"]))
                for reader in self.readers:
                    found = comparable(reader.read(self.path, snapshot=snapshot["id"]))
                    assert found == expected, (reader.name, snapshot["id"])
                self.seen = snapshot["id"]


@pytest.mark.deep
@pytest.mark.parametrize("creator", ["us", "java"])
@pytest.mark.parametrize("seed", SEEDS)
def test_keyed_tables_with_vectors_in_turn_with_java(readers: list[Any], warehouse: Path, creator: str, seed: int) -> None:
    rng = random.Random(f"vectors {creator} {seed}")
    us, java = readers[:2]
    spec = random_spec(rng, "keyed", types=["INT", "STRING", "DOUBLE", "DATE"], options={**VECTORS, "bucket": "2"})
    shared = Shared(readers, warehouse / "db.db" / "vectors", spec, us if creator == "us" else java)
    history = History(rng, spec, keys=80)
    # A large run first, so that later ones mark rows in it.
    shared.write(us, history.batch(400))
    shared.check()
    marked = 0
    for turn in range(6):
        shared.write([us, java][turn % 2], history.batch(rng.choice([1, 10, 30])))
        shared.check()
        marked = max(marked, len(shared.auditor.deleted_positions()))
    assert marked, "no row was ever marked, so this showed nothing"
    us.compact(shared.path)
    shared.check()
    shared.write(java, history.batch(20))
    java.compact(shared.path)
    shared.check()
    shared.write(us, history.batch(20))
    shared.check()


ENGINES = {
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "fields.g.aggregate-function": "max"},
    "first-row": {"merge-engine": "first-row"},
    "sequence-field": {"sequence.field": "g"},
}


@pytest.mark.deep
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_merge_engines_with_vectors_in_turn_with_java(readers: list[Any], warehouse: Path, engine: str) -> None:
    rng = random.Random(f"vectors {engine}")
    us, java = readers[:2]
    columns = number_fields(
        [
            {"name": "k", "type": "INT NOT NULL"},
            {"name": "a", "type": "BIGINT"},
            {"name": "g", "type": "INT"},
            {"name": "s", "type": "STRING"},
        ]
    )
    options = {"bucket": "1", **ENGINES[engine], **({} if engine == "first-row" else VECTORS)}
    tables = [warehouse / "db.db" / name for name in ("in_turn", "java_only")]
    for path in tables:
        us.create(path, columns, primary_key=["k"], options=options)
    for step in range(7):
        rows = [
            {
                "k": rng.randrange(40),
                "a": rng.choice([None, rng.randrange(100)]),
                "g": rng.choice([None, rng.randrange(5)]),
                "s": rng.choice([None, "x", "yy"]),
            }
            for _ in range(100 if step == 0 else 8)
        ]
        writer = us if step % 2 == 0 else java
        writer.write(tables[0], rows)
        java.write(tables[1], rows)
        java.compact(tables[1], full=False)
        if writer is java:
            java.compact(tables[0], full=False)
        expected = comparable(java.read(tables[1]))
        for reader in readers:
            assert comparable(reader.read(tables[0])) == expected, (reader.name, step)
    us.compact(tables[0])
    for reader in readers:
        assert comparable(reader.read(tables[0])) == expected, reader.name


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["append", "append-partitioned", "append-bucketed"])
def test_rows_that_we_mark_in_append_tables_are_gone_for_everyone(readers: list[Any], warehouse: Path, shape: str) -> None:
    rng = random.Random(f"marks {shape}")
    us, java = readers[:2]
    spec = random_spec(rng, shape, types=["INT NOT NULL", "STRING", "DATE"], options=VECTORS)
    number = next(c["name"] for c in spec.columns if c["name"] not in ("part", "k0") and c["type"].startswith(("INT", "S", "D")))
    columns = number_fields([{"name": c["name"], "type": "INT" if c["name"] == number else c["type"]} for c in spec.columns])
    spec = TableSpec(columns, (), spec.partition_by, spec.options)
    path = warehouse / "db.db" / "marks"
    ours.create(us, path, spec)
    history = History(rng, spec)
    rows: list[dict[str, Any]] = []

    def write(writer: Any, count: int) -> None:
        batch = [{**row, number: rng.randrange(100)} for row in history.batch(count).rows]
        rows.extend(batch)
        writer.write(path, batch)

    def delete(low: int, high: int) -> None:
        assert ts.open_table(str(path)).delete(f"{number} >= {low} AND {number} < {high}") is not None
        rows[:] = [row for row in rows if not low <= row[number] < high]

    def check() -> None:
        for reader in readers:
            assert comparable(reader.read(path)) == comparable(rows), reader.name

    write(us, 60)
    write(java, 40)
    delete(0, 20)
    check()
    delete(15, 30)
    check()
    write(java, 30)
    delete(40, 45)
    check()
    java.compact(path)
    check()
    delete(50, 60)
    check()
    us.compact(path)
    check()
    assert Auditor(LocalFileStore(str(path))).deleted_positions() == {}
    write(java, 10)
    delete(0, 10)
    check()


@pytest.mark.deep
@pytest.mark.parametrize("creator", ["us", "java", "pypaimon-pure"])
@pytest.mark.parametrize("shape", ["keyed", "keyed-partitioned"])
def test_dynamic_buckets_in_turn(readers: list[Any], warehouse: Path, creator: str, shape: str) -> None:
    rng = random.Random(f"dynamic {creator} {shape}")
    us, java, pure, _native = readers
    spec = random_spec(
        rng,
        shape,
        types=["INT", "STRING", "DOUBLE"],
        value_columns=3,
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "7"},
    )
    by_name = {"us": us, "java": java, "pypaimon-pure": pure}
    shared = Shared(readers, warehouse / "db.db" / "dynamic", spec, by_name[creator])
    history = History(rng, spec, keys=60)
    for turn, writer in enumerate([us, java, us, pure, us, java, pure, us]):
        shared.write(writer, history.batch(25, delete_rate=0 if writer is pure else 0.25))
        if turn % 3 == 2:
            shared.check()
    shared.check()
    shared.auditor.check_dynamic_buckets(spec.primary_key)
    assert len({file["bucket"] for file in java.files(shared.path)}) > 1
    java.compact(shared.path)
    us.compact(shared.path)
    shared.write(us, history.batch(25))
    shared.check()
    shared.auditor.check_dynamic_buckets(spec.primary_key)


def test_an_overwritten_dynamic_table_is_written_on_by_others(readers: list[Any], warehouse: Path) -> None:
    us, java, pure, _native = readers
    spec = TableSpec(
        number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]),
        ("k",),
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
    )
    shared = Shared(readers, warehouse / "db.db" / "rebuilt", spec, us)
    shared.write(us, Batch([{"k": k, "v": "old"} for k in range(30)], None))
    # The keys come in another order, so they lie in other buckets than before.
    replacement = [{"k": k, "v": "new"} for k in range(29, 9, -1)]
    shared.model.rows.clear()
    shared.model.apply(replacement)
    us.write(shared.path, replacement, overwrite={})
    shared.check()
    shared.write(java, Batch([{"k": k, "v": "java"} for k in range(5, 20)], None))
    shared.write(pure, Batch([{"k": k, "v": "pure"} for k in range(15, 40)], None))
    shared.check()
    shared.auditor.check_dynamic_buckets(("k",))


@pytest.mark.deep
@pytest.mark.parametrize("writer_name", ["java", "pypaimon_pure"])
@pytest.mark.parametrize("shape", ["keyed", "keyed-partitioned"])
def test_we_bring_postponed_rows_of_every_type_into_buckets(
    request: pytest.FixtureRequest, readers: list[Any], warehouse: Path, writer_name: str, shape: str
) -> None:
    rng = random.Random(f"postponed {writer_name} {shape}")
    us, java = readers[:2]
    writer = request.getfixturevalue(writer_name)
    # Paimon writes no nanoseconds to Avro, pypaimon nothing that is nested.
    types = [
        c["type"] for c in all_type_columns() if not has_nanoseconds(c["type"]) and (writer is java or isinstance(c["type"], str))
    ]
    spec = random_spec(rng, shape, types=types, options={"bucket": "-2", "postpone.default-bucket-num": "3"})
    columns = [{"name": c["name"], "type": c["type"]} for c in spec.columns if not c["name"].startswith("v")]
    columns += [{"name": f"v{number}", "type": kind} for number, kind in enumerate(types)]
    spec = TableSpec(number_fields(columns), spec.primary_key, spec.partition_by, spec.options)
    path = warehouse / "db.db" / "postponed"
    ours.create(java, path, spec)
    model, history = Model(spec), History(rng, spec, keys=40)
    for turn in range(3):
        for count in (30, 1, 12):
            batch = history.batch(count, delete_rate=0.25 if writer is java else 0)
            model.apply(batch.rows, batch.kinds)
            writer.write(path, batch.rows, kinds=batch.kinds)
        us.compact(path, full=turn == 1)
        for reader in readers:
            assert seen_by(reader.name, reader.read(path)) == seen_by(reader.name, model.contents()), (reader.name, turn)
    assert {file["bucket"] for file in java.files(path)} == {0, 1, 2}
