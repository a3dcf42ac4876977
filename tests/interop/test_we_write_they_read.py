"""What tablestore writes, every other implementation reads: row for row, at every snapshot, filtered and not,
before and after either side compacts. What a released reader cannot do is listed in limits.py.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import canonical
import ours
import pytest
from canonical import comparable
from limits import can_filter, seen_by
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import (
    ATOMIC_TYPES,
    SHAPES,
    History,
    Model,
    TableSpec,
    all_type_columns,
    nested_types,
    number_fields,
    random_rows,
    random_spec,
)

import tablestore as ts

pytestmark = pytest.mark.interop

# One seed a shape; `pytest -m slow` takes more.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


@pytest.fixture
def readers(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    """Everyone who must agree, us included."""
    return [Ours(), java, pypaimon_pure, pypaimon_native]


def assert_all_read(readers: Sequence[Any], path: Path, model: Model) -> None:
    for snapshot, rows in model.at.items():
        for reader in readers:
            got = seen_by(reader.name, reader.read(path, snapshot=snapshot))
            assert got == seen_by(reader.name, rows), (reader.name, snapshot)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_snapshot_of_a_random_table_reads_alike(
    readers: list[Any], java: JavaOracle, warehouse: Path, shape: str, seed: int
) -> None:
    print(f"shape {shape} seed {seed}")
    rng = random.Random(f"we write {shape} {seed}")
    spec = random_spec(rng, shape)
    path = warehouse / "db.db" / "t"
    us = Ours()
    ours.create(us, path, spec)
    model, history = Model(spec), History(rng, spec)
    for _ in range(4):
        batch = history.batch(rng.choice([1, 20, 60]))
        model.apply(batch.rows, batch.kinds)
        model.snapshot(us.write(path, batch.rows, kinds=batch.kinds))
    assert_all_read(readers, path, model)

    # One row by its key, or by any column: nobody's pruning drops it, ours least.
    wanted = rng.choice(model.contents() or [None])
    if wanted is not None:
        names = spec.primary_key or ("v0",)
        equals = {
            name: wanted[name]
            for name in names
            if not isinstance(wanted[name], list | dict | None)
            and all(can_filter(reader.name, spec.type_of(name)) for reader in readers)
        }
        matching = [row for row in model.contents() if all(row[name] == value for name, value in equals.items())]
        for reader in readers:
            if equals and "NaN" not in equals.values():
                got = seen_by(reader.name, reader.read(path, equals=equals))
                assert got == seen_by(reader.name, matching), (reader.name, equals)

    # Compaction by them, on top of it ours: nothing changes, at no snapshot.
    model.snapshot(java.compact(path))
    model.snapshot(us.compact(path))
    assert_all_read(readers, path, model)


def test_all_types_in_one_table(readers: list[Any], warehouse: Path) -> None:
    columns = number_fields(all_type_columns())
    rows = random_rows(random.Random(21), columns, 300)
    path = warehouse / "db.db" / "types"
    us = Ours()
    us.create(path, columns, options={"bucket": "-1"})
    us.write(path, rows)
    for reader in readers:
        assert comparable(reader.read(path)) == comparable(rows), reader.name


@pytest.mark.parametrize("strategy", ["order", pytest.param("hilbert", marks=pytest.mark.deep)])
def test_a_table_whose_rows_were_clustered(readers: list[Any], java: JavaOracle, warehouse: Path, strategy: str) -> None:
    columns = number_fields([{"name": n, "type": t} for n, t in {"a": "INT", "b": "STRING", "c": "DOUBLE"}.items()])
    rows = random_rows(random.Random(5), columns, 600)
    path = warehouse / "db.db" / "clustered"
    us = Ours()
    options = {"clustering.columns": "a,b", "clustering.incremental": "true", "clustering.strategy": strategy}
    us.create(path, columns, options={"bucket": "-1", **options})
    for start in range(0, 600, 100):
        us.write(path, rows[start : start + 100])
    assert set(ts.open_table(str(path)).files()["level"].to_pylist()) == {0, 5}
    for reader in readers:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
    # They add to it, and compact it in their own order; ours goes on.
    java.write(path, rows[:50])
    java.compact(path)
    us.compact(path)
    for reader in readers:
        assert comparable(reader.read(path)) == comparable([*rows, *rows[:50]]), reader.name


KEY_TYPES = [kind for kind in ATOMIC_TYPES if kind not in ("FLOAT", "DOUBLE")]


@pytest.mark.deep_after(7)
@pytest.mark.parametrize("kind", KEY_TYPES)
def test_every_key_type_goes_to_the_bucket_where_others_look_for_it(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path, kind: str
) -> None:
    """Others update our rows by key: in another bucket or order there would be two of them."""
    rng = random.Random(f"keys {kind}")
    spec = TableSpec(
        number_fields([{"name": "k", "type": f"{kind} NOT NULL"}, {"name": "v", "type": "INT"}]),
        ("k",),
        options={"bucket": "4"},
    )
    path = warehouse / "db.db" / "keys"
    us = Ours()
    ours.create(us, path, spec)
    rows = [{**row, "v": 0} for row in random_rows(rng, spec.columns, 40)]
    model = Model(spec)
    model.apply(rows)
    us.write(path, rows)
    updated = [{**row, "v": 1} for row in model.contents()[::2]]
    model.apply(updated)
    java.write(path, updated)
    for reader in (Ours(), java, pypaimon_pure, pypaimon_native):
        assert seen_by(reader.name, reader.read(path)) == seen_by(reader.name, model.contents()), reader.name
        if can_filter(reader.name, kind):
            for row in model.contents()[:4]:
                assert reader.read(path, equals={"k": row["k"]}) == [row], reader.name
    java.compact(path)
    assert comparable(us.read(path)) == comparable(model.contents())


def test_deletes_that_a_full_compaction_kept_are_no_rows_to_others(readers: list[Any], java: JavaOracle, warehouse: Path) -> None:
    """A file of the top level with -D rows, alone in its section: its exact count of them makes others look at the kinds."""
    columns = number_fields([{"name": n, "type": t} for n, t in {"k": "INT NOT NULL", "v": "INT", "q": "INT"}.items()])
    options = {"bucket": "1", "sequence.field": "q", "tablestore.tombstone-retention": "8 d", "write-only": "true"}
    path = warehouse / "db.db" / "kept"
    us = Ours()
    ours.create(us, path, TableSpec(columns, ("k",), options=options))
    rows = [{"k": k, "v": k, "q": 1} for k in range(10)]
    us.write(path, rows)
    us.write(path, [{**row, "q": 5} for row in rows[:4]], kinds=["-D"] * 4)
    table = ts.open_table(str(path))
    table.compact(full=True)
    (level,) = set(table.files()["level"].to_pylist())
    assert level > 0 and sum(table.files()["delete_row_count"].to_pylist()) == 4
    for reader in readers:
        assert comparable(reader.read(path)) == comparable(rows[4:]), reader.name
        assert reader.read(path, equals={"k": 2}) == [], reader.name
    java.write(path, [{"k": 2, "v": 7, "q": 3}, {"k": 3, "v": 8, "q": 6}])
    expected = comparable([*rows[4:], {"k": 3, "v": 8, "q": 6}])
    for reader in readers:
        assert comparable(reader.read(path)) == expected, reader.name


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_floats_go_to_the_buckets_where_java_looks_for_them(java: JavaOracle, warehouse: Path, kind: str) -> None:
    """Key by key, each in a table of its own: Java compares floats with < and >, so in one bucket NaN is any key to it."""
    spec = TableSpec(
        number_fields([{"name": "k", "type": f"{kind} NOT NULL"}, {"name": "v", "type": "INT"}]), ("k",), options={"bucket": "13"}
    )
    us = Ours()
    for number, key in enumerate(["NaN", 0.0, -0.0, 1.5, "Infinity", "-Infinity"]):
        path = warehouse / "db.db" / f"floats{number}"
        ours.create(us, path, spec)
        us.write(path, [{"k": key, "v": 0}])
        java.write(path, [{"k": key, "v": 1}])
        assert comparable(us.read(path)) == comparable(java.read(path)) == comparable([{"k": key, "v": 1}]), key


@pytest.mark.deep
@pytest.mark.parametrize("kind", ATOMIC_TYPES)
def test_everyone_filters_our_rows_by_a_column_of_every_type(readers: list[Any], warehouse: Path, kind: str) -> None:
    rng = random.Random(f"filter {kind}")
    columns = number_fields([{"name": "id", "type": "INT"}, {"name": "c", "type": kind}])
    path = warehouse / "db.db" / "filtered"
    us = Ours()
    us.create(path, columns, options={"bucket": "-1"})
    rows = [{**row, "id": i} for i, row in enumerate(random_rows(rng, columns, 24))]
    for start in range(0, 24, 8):
        # Twice each, so that columns are worth a dictionary.
        us.write(path, rows[start : start + 8] * 2)
    values = sorted({row["c"] for row in rows if row["c"] not in (None, "NaN")}, key=str)
    for value in values[:4]:
        expected = [row for row in rows for _ in range(2) if row["c"] == value]
        for reader in readers:
            if can_filter(reader.name, kind):
                got = comparable(reader.read(path, equals={"c": value}))
                assert got == comparable(expected), (reader.name, value)


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [
        {"metadata.stats-mode": "truncate(2)"},
        {"metadata.stats-mode": "full", "fields.c.stats-mode": "none", "manifest.compression": "null"},
        {"metadata.stats-mode": "none", "fields.c.stats-mode": "truncate(2)", "manifest.compression": "deflate"},
        {"metadata.stats-mode": "counts", "fields.k.stats-mode": "none", "manifest.compression": "snappy"},
        pytest.param({"metadata.stats-mode": "full", "fields.k.stats-mode": "counts"}, marks=pytest.mark.slow),
        pytest.param({"metadata.stats-mode": "none", "file.block-size": "64 kb"}, marks=pytest.mark.slow),
    ],
    ids=lambda options: ",".join(options.values()),
)
@pytest.mark.parametrize("keyed", [True, False])
def test_everyone_finds_our_texts_whatever_statistics_are_kept(
    readers: list[Any], warehouse: Path, options: dict[str, str], keyed: bool
) -> None:
    columns = number_fields([{"name": "k", "type": "STRING NOT NULL"}, {"name": "c", "type": "STRING"}])
    path = warehouse / "db.db" / "cut"
    us = Ours()
    us.create(path, columns, primary_key=["k"] if keyed else [], options={**options, "bucket": "1" if keyed else "-1"})
    ends = ["", "a", "ab", "abc", "b", "\ud7ff", "\ue000", "\U0010ffff"]
    starts = [first * count for first in ("a", "\ud7ff", "\U0010ffff") for count in (0, 1, 2, 127, 300)]
    texts = list(dict.fromkeys(start + end for start in starts for end in ends))
    rows = [{"k": text, "c": text[::-1]} for text in texts]
    for start in range(0, len(rows), 13):
        us.write(path, rows[start : start + 13])
    assert len(ts.open_table(str(path)).snapshots()) > 3
    for value in ["a", "ab", "a" * 300 + "b", "a" * 128, "\ud7ff" * 128, "\ud7ff\ue000", "\U0010ffff" * 128, "\U0010ffff" * 301]:
        for column in ("k", "c"):
            expected = comparable([row for row in rows if row[column] == value])
            for reader in readers:
                assert comparable(reader.read(path, equals={column: value})) == expected, (reader.name, column, value)


@pytest.mark.parametrize("shape", ["keyed-partitioned", "append-partitioned"])
def test_an_overwritten_partition_is_replaced_for_everyone(readers: list[Any], warehouse: Path, shape: str) -> None:
    spec = TableSpec(
        number_fields(
            [
                {"name": "part", "type": "STRING NOT NULL"},
                {"name": "k", "type": "INT NOT NULL"},
                {"name": "v", "type": "STRING"},
            ]
        ),
        ("part", "k") if shape.startswith("keyed") else (),
        ("part",),
        {"bucket": "2" if shape.startswith("keyed") else "-1"},
    )
    path = warehouse / "db.db" / "overwritten"
    us = Ours()
    ours.create(us, path, spec)
    rows = [{"part": part, "k": k, "v": "old"} for part in ("a", "b=c") for k in range(5)]
    us.write(path, rows)
    replacement = [{"part": "b=c", "k": 7, "v": "new"}]
    us.write(path, replacement, overwrite={"part": "b=c"})
    for reader in readers:
        assert comparable(reader.read(path)) == comparable([*rows[:5], *replacement]), reader.name
        assert comparable(reader.read(path, snapshot=1)) == comparable(rows), reader.name


def test_a_streaming_reader_gets_our_input_changelog(java: JavaOracle, warehouse: Path) -> None:
    spec = TableSpec(
        number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]),
        ("k",),
        options={"bucket": "1", "changelog-producer": "input"},
    )
    path = warehouse / "db.db" / "changes"
    us = Ours()
    ours.create(us, path, spec)
    us.write(path, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], kinds=["+I", "+I"])
    us.write(path, [{"k": 1, "v": "a"}, {"k": 1, "v": "c"}, {"k": 2, "v": "b"}], kinds=["-U", "+U", "-D"])
    expected = [
        ("-U", {"k": 1, "v": "a"}),
        ("+U", {"k": 1, "v": "c"}),
        ("-D", {"k": 2, "v": "b"}),
    ]
    assert java.changes(path, from_snapshot=1, to_snapshot=2) == expected
    assert us.changes(path, from_snapshot=1, to_snapshot=2) == expected


def test_others_expire_our_snapshots_and_lose_nothing(readers: list[Any], java: JavaOracle, warehouse: Path) -> None:
    rng = random.Random(22)
    spec = random_spec(rng, "keyed", types=["INT", "STRING", *nested_types()])
    path = warehouse / "db.db" / "expired"
    us = Ours()
    ours.create(us, path, spec)
    model, history = Model(spec), History(rng, spec)
    for step in range(6):
        batch = history.batch(30)
        model.apply(batch.rows, batch.kinds)
        model.snapshot(us.write(path, batch.rows, kinds=batch.kinds))
        if step == 3:
            # A compaction may move files to another level without rewriting them; expiry must not take those.
            model.snapshot(us.compact(path))
    assert java.expire(path, retain=2) > 0
    kept = sorted(model.at)[-2:]
    model.at = {snapshot: model.at[snapshot] for snapshot in kept}
    assert [snapshot["id"] for snapshot in java.snapshots(path)] == kept
    assert_all_read(readers, path, model)
    batch = history.batch(30)
    model.apply(batch.rows, batch.kinds)
    model.snapshot(us.write(path, batch.rows, kinds=batch.kinds))
    assert_all_read(readers, path, model)


@pytest.mark.parametrize("shape", ["keyed", "keyed-partitioned", "append", "append-partitioned"])
def test_deletes_by_condition_and_by_key_are_seen_by_everyone(
    readers: list[Any], java: JavaOracle, warehouse: Path, shape: str
) -> None:
    keyed, partitioned = shape.startswith("keyed"), shape.endswith("partitioned")
    spec = TableSpec(
        number_fields(
            [
                {"name": "part", "type": "STRING NOT NULL"},
                {"name": "k", "type": "INT NOT NULL"},
                {"name": "v", "type": "INT"},
            ]
        ),
        (("part", "k") if partitioned else ("k",)) if keyed else (),
        ("part",) if partitioned else (),
        {"bucket": "2" if keyed else "-1"},
    )
    path = warehouse / "db.db" / "deleted"
    us = Ours()
    ours.create(us, path, spec)
    model = Model(spec)
    for start in (0, 10):
        rows = [{"part": "ab"[k % 2], "k": k, "v": k if k % 5 else None} for k in range(start, start + 15)]
        model.apply(rows)
        model.snapshot(us.write(path, rows))
    table = ts.open_table(str(path))
    for condition, gone in (
        ("v > 20", lambda row: row["v"] is not None and row["v"] > 20),
        ("v IS NULL AND part = 'a'", lambda row: row["v"] is None and row["part"] == "a"),
        ("part = 'b' AND k < 7", lambda row: row["part"] == "b" and row["k"] < 7),
    ):
        snapshot = table.delete(condition)
        assert snapshot is not None
        model.rows = {key: row for key, row in model.rows.items() if not gone(row)}
        model.snapshot(snapshot.id)
    if keyed:
        keys = canonical.decode_rows([{"part": "a", "k": 4}, {"part": "b", "k": 11}], canonical.arrow_schema(spec.columns[:2]))
        snapshot = table.delete(keys.select(list(spec.primary_key)))
        assert snapshot is not None
        model.rows = {key: row for key, row in model.rows.items() if row["k"] not in (4, 11)}
        model.snapshot(snapshot.id)
    assert_all_read(readers, path, model)
    java.compact(path)
    for reader in readers:
        assert comparable(reader.read(path)) == comparable(model.contents()), reader.name


def test_a_replayed_batch_is_applied_once_even_with_foreign_commits_between(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "replayed"
    us = Ours()
    us.create(path, number_fields([{"name": "k", "type": "INT"}]), options={"bucket": "-1"})

    def commit(identifier: int, value: int) -> None:
        table = ts.open_table(str(path))
        with table.new_writer(commit_user="job") as writer:
            writer.write(canonical.decode_rows([{"k": value}], table.schema))
            writer.commit(identifier=identifier)

    commit(1, 1)
    java.write(path, [{"k": 100}], user="java-job", identifier=1)
    commit(1, 1)
    commit(2, 2)
    java.write(path, [{"k": 100}], user="java-job", identifier=1)
    assert comparable(java.read(path)) == comparable(us.read(path)) == comparable([{"k": 1}, {"k": 100}, {"k": 2}])
