"""What others write, tablestore reads: random tables by each writer at every snapshot, compacted, evolved, with
changelogs, deletion vectors and merge engines. What a released writer or reader cannot do is listed in limits.py.
"""

import random
from pathlib import Path
from typing import Any

import canonical
import ours
import pytest
from canonical import comparable
from oracles import JavaOracle, Oracle
from ours import Ours
from random_tables import (
    SHAPES,
    History,
    Model,
    TableSpec,
    all_type_columns,
    number_fields,
    random_rows,
    random_spec,
)

import tablestore as ts

pytestmark = pytest.mark.interop

WRITERS = ("java", "pypaimon_pure", "pypaimon_native")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


def write(writer: Oracle, path: Path, history: History, model: Model, count: int, delete_rate: float) -> None:
    """One commit to table and model. Java may compact by itself; those snapshots have the same content."""
    batch = history.batch(count, delete_rate=delete_rate)
    model.apply(batch.rows, batch.kinds)
    last = max(model.at, default=0)
    for snapshot in range(last + 1, writer.write(path, batch.rows, kinds=batch.kinds) + 1):
        model.snapshot(snapshot)


def assert_we_read(path: Path, model: Model) -> None:
    us = Ours()
    for snapshot, rows in model.at.items():
        assert comparable(us.read(path, snapshot=snapshot)) == comparable(rows), f"snapshot {snapshot}"
    assert comparable(us.read(path)) == comparable(model.contents())


@pytest.mark.deep_after(6)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("writer_name", WRITERS)
def test_we_read_every_snapshot_of_a_random_table(
    request: pytest.FixtureRequest, warehouse: Path, writer_name: str, shape: str, seed: int
) -> None:
    print(f"writer {writer_name} shape {shape} seed {seed}")
    writer = request.getfixturevalue(writer_name)
    rng = random.Random(f"they write {writer_name} {shape} {seed}")
    spec = random_spec(rng, shape)
    path = warehouse / "db.db" / "t"
    ours.create(writer, path, spec)
    model, history = Model(spec), History(rng, spec)
    for _ in range(4):
        write(writer, path, history, model, rng.choice([1, 20, 60]), 0.25 if writer_name == "java" else 0)
    assert_we_read(path, model)
    wanted = rng.choice(model.contents() or [None])
    if wanted is not None and spec.primary_key:
        equals = {name: wanted[name] for name in spec.primary_key}
        assert Ours().read(path, equals=equals) == [wanted]


@pytest.mark.parametrize("writer_name", WRITERS)
def test_we_read_all_types(request: pytest.FixtureRequest, warehouse: Path, writer_name: str) -> None:
    writer = request.getfixturevalue(writer_name)
    columns = number_fields(all_type_columns())
    rows = random_rows(random.Random(23), columns, 300)
    path = warehouse / "db.db" / "types"
    writer.create(path, columns)
    writer.write(path, rows)
    assert comparable(Ours().read(path)) == comparable(rows)


@pytest.mark.parametrize("writer_name", WRITERS)
def test_we_read_deletes_right_even_where_the_writer_counts_them_wrong(
    request: pytest.FixtureRequest, warehouse: Path, writer_name: str
) -> None:
    writer = request.getfixturevalue(writer_name)
    rng = random.Random(24)
    spec = TableSpec(
        number_fields(
            [
                {"name": "k", "type": "INT NOT NULL"},
                {"name": "op", "type": "STRING"},
                {"name": "v", "type": "BIGINT"},
            ]
        ),
        ("k",),
        options={"bucket": "2", "rowkind.field": "op"},
    )
    path = warehouse / "db.db" / "deletes"
    ours.create(writer, path, spec)
    model = Model(spec)
    for _ in range(4):
        kinds = [rng.choice(["+I", "+I", "-D"]) for _ in range(30)]
        rows = [{"k": rng.randrange(20), "op": kind, "v": rng.randrange(1000)} for kind in kinds]
        model.apply(rows, kinds)
        model.snapshot(writer.write(path, rows, kinds=kinds))
    assert_we_read(path, model)


@pytest.mark.deep
@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_we_read_tables_that_java_compacts(java: JavaOracle, warehouse: Path, producer: str) -> None:
    rng = random.Random(f"compacted {producer}")
    spec = random_spec(rng, "keyed-partitioned", options={"changelog-producer": producer, "bucket": "2"})
    path = warehouse / "db.db" / "compacted"
    ours.create(java, path, spec)
    model, history = Model(spec), History(rng, spec)
    for step in range(8):
        write(java, path, history, model, 30, 0.25)
        if step in (3, 6):
            model.snapshot(java.compact(path, full=step == 3))
    assert_we_read(path, model)


@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_we_deliver_the_changes_that_java_delivers(java: JavaOracle, warehouse: Path, producer: str) -> None:
    rng = random.Random(f"changes {producer}")
    spec = TableSpec(
        number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "BIGINT"}]),
        ("k",),
        options={"bucket": "2", "changelog-producer": producer},
    )
    path = warehouse / "db.db" / "changes"
    ours.create(java, path, spec)
    for _ in range(4):
        rows = [{"k": rng.randrange(12), "v": rng.randrange(1000)} for _ in range(15)]
        last = java.write(path, rows, kinds=[rng.choice(["+I", "+I", "-D"]) for _ in rows])
    if producer != "input":
        last = java.compact(path)
    theirs = java.changes(path, from_snapshot=0, to_snapshot=last)
    mine = Ours().changes(path, from_snapshot=0, to_snapshot=last)
    assert theirs
    assert sorted(map(repr, mine)) == sorted(map(repr, theirs))
    for key in range(12):
        assert [c for c in mine if c[1]["k"] == key] == [c for c in theirs if c[1]["k"] == key], key


def test_we_read_deletion_vectors(java: JavaOracle, warehouse: Path) -> None:
    rng = random.Random(25)
    spec = random_spec(rng, "keyed", options={"deletion-vectors.enabled": "true", "bucket": "2"})
    path = warehouse / "db.db" / "vectors"
    ours.create(java, path, spec)
    model, history = Model(spec), History(rng, spec, keys=60)
    us = Ours()
    for _ in range(5):
        batch = history.batch(40)
        model.apply(batch.rows, batch.kinds)
        java.write(path, batch.rows, kinds=batch.kinds)
        # Batch readers of such tables see what compaction has digested, so ask Java what that is at each snapshot.
        java.compact(path, full=False)
        assert comparable(us.read(path)) == comparable(java.read(path))
    java.compact(path)
    assert comparable(us.read(path)) == comparable(model.contents())
    for snapshot in java.snapshots(path):
        assert comparable(us.read(path, snapshot=snapshot["id"])) == comparable(java.read(path, snapshot=snapshot["id"]))


MERGE_ENGINES: dict[str, dict[str, str]] = {
    "first-row": {"merge-engine": "first-row"},
    "sequence-field": {"sequence.field": "g"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"},
}


@pytest.mark.parametrize("engine", sorted(MERGE_ENGINES))
def test_we_merge_as_java_does(java: JavaOracle, warehouse: Path, engine: str) -> None:
    rng = random.Random(f"engine {engine}")
    columns = number_fields(
        [
            {"name": "k", "type": "INT NOT NULL"},
            {"name": "a", "type": "BIGINT"},
            {"name": "b", "type": "DOUBLE"},
            {"name": "g", "type": "INT"},
            {"name": "s", "type": "STRING"},
        ]
    )
    path = warehouse / "db.db" / "merged"
    java.create(path, columns, primary_key=["k"], options={"bucket": "1", **MERGE_ENGINES[engine]})
    us = Ours()
    for step in range(6):
        rows = [
            {
                "k": rng.randrange(8),
                "a": rng.choice([None, rng.randrange(100)]),
                "b": rng.choice([None, rng.randrange(100) / 4]),
                "g": rng.choice([None, rng.randrange(5)]),
                "s": rng.choice([None, "x", "yy"]),
            }
            for _ in range(10)
        ]
        java.write(path, rows)
        if step in (2, 5):
            java.compact(path, full=step == 5)
        assert comparable(us.read(path)) == comparable(java.read(path)), f"after commit {step}"


@pytest.mark.parametrize("shape", ["keyed", "append"])
@pytest.mark.parametrize("writer_name", ["java", "pypaimon_native"])
def test_we_read_evolved_tables_at_every_snapshot(
    request: pytest.FixtureRequest, java: JavaOracle, warehouse: Path, writer_name: str, shape: str
) -> None:
    writer = request.getfixturevalue(writer_name)
    keyed = shape == "keyed"
    path = warehouse / "db.db" / "evolved"
    writer.create(
        path,
        number_fields(
            [
                {"name": "id", "type": "INT NOT NULL"},
                {"name": "a", "type": "INT"},
                {"name": "b", "type": "FLOAT"},
                {"name": "r", "type": {"type": "ROW", "fields": [{"name": "x", "type": "INT"}]}},
                {"name": "gone", "type": "STRING"},
            ]
        ),
        primary_key=["id"] if keyed else [],
        options={"bucket": "1" if keyed else "-1"},
    )
    rows: list[dict[str, Any]] = [{"id": i, "a": i * 10, "b": i / 4, "r": {"x": i}, "gone": f"g{i}"} for i in range(6)]
    writer.write(path, rows)
    writer.alter(path, {"action": "add", "column": "c", "type": "DECIMAL(20, 2)"})
    writer.alter(path, {"action": "rename", "column": "a", "to": "a2"})
    writer.alter(path, {"action": "widen", "column": "a2", "type": "BIGINT"})
    writer.alter(path, {"action": "widen", "column": "b", "type": "DOUBLE"})
    writer.alter(path, {"action": "drop", "column": "gone"})
    # A new column with the name of a dropped one is another column.
    writer.alter(path, {"action": "add", "column": "gone", "type": "INT"})
    writer.write(path, [{"id": i, "a2": 2**40, "b": 0.1, "r": None, "c": "1.50", "gone": 7} for i in range(4, 8)])
    us = Ours()
    for snapshot in (1, 2, None):
        assert comparable(us.read(path, snapshot=snapshot)) == comparable(java.read(path, snapshot=snapshot)), snapshot
    assert comparable(us.read(path, equals={"gone": 7})) == comparable(java.read(path, equals={"gone": 7}))
    assert comparable(us.read(path, equals={"a2": 10})) == comparable(java.read(path, equals={"a2": 10}))
    java.compact(path)
    assert comparable(us.read(path)) == comparable(java.read(path))


def test_we_filter_by_every_column_as_java_does(java: JavaOracle, warehouse: Path) -> None:
    rng = random.Random(26)
    columns = number_fields([c for c in all_type_columns() if isinstance(c["type"], str)])
    path = warehouse / "db.db" / "filtered"
    java.create(path, columns, options={"metadata.stats-mode": "truncate(4)"})
    rows = random_rows(rng, columns, 60)
    for start in range(0, 60, 20):
        java.write(path, rows[start : start + 20])
    us = Ours()
    for column in columns:
        values = [row[column["name"]] for row in rows if row[column["name"]] not in (None, "NaN")]
        equals = {column["name"]: rng.choice(values)}
        expected = [row for row in rows if row[column["name"]] == equals[column["name"]]]
        assert comparable(us.read(path, equals=equals)) == comparable(expected), (column, equals)


@pytest.mark.parametrize("writer_name", ["pypaimon_pure", "pypaimon_native"])
def test_we_read_dynamic_buckets(request: pytest.FixtureRequest, warehouse: Path, writer_name: str) -> None:
    writer = request.getfixturevalue(writer_name)
    rng = random.Random(27)
    spec = random_spec(rng, "keyed", options={"bucket": "-1", "dynamic-bucket.target-row-num": "10"})
    path = warehouse / "db.db" / "dynamic"
    ours.create(writer, path, spec)
    model, history = Model(spec), History(rng, spec, keys=40)
    for _ in range(3):
        write(writer, path, history, model, 30, 0)
    assert len({file["bucket"] for file in writer.files(path)}) > 1
    assert_we_read(path, model)


def test_we_read_multisets_and_tags(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "multisets"
    us = Ours()
    java.create(path, number_fields([{"name": "m", "type": {"type": "MULTISET", "element": "STRING NOT NULL"}}]))
    rows = [{"m": [["a", 2], ["b", 1]]}, {"m": None}, {"m": []}]
    java.write(path, rows)
    java.call("tag", path, name="first", snapshot=1)
    us.write(path, rows)
    assert comparable(us.read(path)) == comparable(java.read(path)) == comparable(rows * 2)
    tagged = ts.open_table(str(path)).scan(tag="first").to_arrow()
    assert comparable(canonical.encode_rows(tagged)) == comparable(rows)
