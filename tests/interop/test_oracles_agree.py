"""The oracles among themselves: what one writes the others read alike. It shows what a released reader cannot do,
before the engine is blamed for it. The table of such limits is in limits.py.
"""

import random
from pathlib import Path

import ours
import pytest
from canonical import comparable
from limits import has_nanoseconds
from oracles import JavaOracle, Oracle, OracleError, PypaimonOracle
from random_tables import SHAPES, History, Model, TableSpec, all_type_columns, number_fields, random_rows, random_spec

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("writer_name", ["java", "pypaimon_pure", "pypaimon_native"])
def test_all_types_survive_from_every_writer_to_every_reader(
    request: pytest.FixtureRequest,
    java: JavaOracle,
    pypaimon_pure: PypaimonOracle,
    pypaimon_native: PypaimonOracle,
    warehouse: Path,
    writer_name: str,
) -> None:
    writer: Oracle = request.getfixturevalue(writer_name)
    columns = number_fields([c for c in all_type_columns() if writer is java or not has_nanoseconds(c["type"])])
    rows = random_rows(random.Random(20), columns, 200)
    path = warehouse / "db.db" / "types"
    writer.create(path, columns)
    writer.write(path, rows)
    for reader in (java, pypaimon_pure, pypaimon_native):
        assert comparable(reader.read(path)) == comparable(rows), reader.name


@pytest.mark.deep
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("writer_name", ["java", "pypaimon_native"])
def test_random_histories_read_alike_at_every_snapshot(
    request: pytest.FixtureRequest,
    java: JavaOracle,
    pypaimon_pure: PypaimonOracle,
    pypaimon_native: PypaimonOracle,
    warehouse: Path,
    shape: str,
    writer_name: str,
) -> None:
    writer: Oracle = request.getfixturevalue(writer_name)
    seed = SHAPES.index(shape)
    print(f"seed {seed}")
    rng = random.Random(seed)
    types = [c["type"] for c in all_type_columns() if not has_nanoseconds(c["type"])]
    spec = random_spec(rng, shape, types=types)
    path = warehouse / "db.db" / "random"
    ours.create(writer, path, spec)
    model, history = Model(spec), History(rng, spec)
    for _ in range(4):
        batch = history.batch(30, delete_rate=0.25 if writer is java else 0)
        model.apply(batch.rows, batch.kinds)
        # Java compacts by itself at times, and that is a snapshot of its own with the same content.
        for snapshot in range(max(model.at, default=0) + 1, writer.write(path, batch.rows, kinds=batch.kinds) + 1):
            model.snapshot(snapshot)
    for reader in (java, pypaimon_pure, pypaimon_native):
        for snapshot, rows in model.at.items():
            assert comparable(reader.read(path, snapshot=snapshot)) == comparable(rows), (reader.name, snapshot)


@pytest.mark.parametrize("writer_name", ["pypaimon_pure", "pypaimon_native"])
def test_deletes_by_pypaimon(request: pytest.FixtureRequest, java: JavaOracle, warehouse: Path, writer_name: str) -> None:
    writer: Oracle = request.getfixturevalue(writer_name)
    spec = TableSpec(
        number_fields([{"name": "id", "type": "INT NOT NULL"}, {"name": "op", "type": "STRING"}]),
        ("id",),
        options={"bucket": "1", "rowkind.field": "op"},
    )
    path = warehouse / "db.db" / "deletes"
    ours.create(writer, path, spec)
    writer.write(path, [{"id": i} for i in range(4)], kinds=["+I", "+I", "-D", "+I"])
    # One file, so nothing has to be merged: readers take it as it is, unless its delete count says otherwise.
    seen = {row["id"] for row in java.read(path)}
    assert seen == ({0, 1, 2, 3} if writer_name == "pypaimon_pure" else {0, 1, 3})


def test_java_round_trips_multisets_and_pypaimon_refuses_them(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, warehouse: Path
) -> None:
    columns = number_fields([{"name": "m", "type": {"type": "MULTISET", "element": "STRING NOT NULL"}}])
    path = warehouse / "db.db" / "multisets"
    rows = [{"m": [["a", 2], ["b", 1]]}, {"m": None}, {"m": []}]
    java.create(path, columns)
    java.write(path, rows)
    assert comparable(java.read(path)) == comparable(rows)
    with pytest.raises(OracleError):
        pypaimon_pure.read(path)


def test_java_evolves_compacts_tags_and_expires(java: JavaOracle, pypaimon_native: PypaimonOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "evolved"
    java.create(
        path,
        number_fields([{"name": "id", "type": "INT NOT NULL"}, {"name": "a", "type": "INT"}, {"name": "b", "type": "STRING"}]),
        primary_key=["id"],
        options={"bucket": "1"},
    )
    java.write(path, [{"id": 1, "a": 10, "b": "x"}, {"id": 2, "a": 20, "b": "y"}])
    java.call("tag", path, name="first", snapshot=1)
    java.alter(
        path,
        {"action": "add", "column": "c", "type": "DOUBLE"},
        {"action": "rename", "column": "a", "to": "a2"},
        {"action": "widen", "column": "a2", "type": "BIGINT"},
        {"action": "drop", "column": "b"},
    )
    java.write(path, [{"id": 2, "a2": 2**40, "c": 0.5}, {"id": 3, "a2": None, "c": None}])
    now = [{"id": 1, "a2": 10, "c": None}, {"id": 2, "a2": 2**40, "c": 0.5}, {"id": 3, "a2": None, "c": None}]
    last = java.compact(path)
    assert [file["level"] for file in java.files(path)] == [5]
    for reader in (java, pypaimon_native):
        assert comparable(reader.read(path)) == comparable(now)
        assert comparable(reader.read(path, snapshot=1)) == comparable([{"id": 1, "a": 10, "b": "x"}, {"id": 2, "a": 20, "b": "y"}])
        assert reader.read(path, equals={"id": 3}) == [now[2]]
        assert comparable(reader.read(path, columns=["c"])) == comparable([{"c": row["c"]} for row in now])
    assert java.expire(path, retain=1) == last - 1
    assert [snapshot["id"] for snapshot in java.snapshots(path)] == [last]
    assert len(java.read(path, tag="first")) == 2


def test_a_refusal_keeps_the_oracle_alive(java: JavaOracle, pypaimon_pure: PypaimonOracle, warehouse: Path) -> None:
    for oracle in (java, pypaimon_pure):
        with pytest.raises(OracleError, match="NotExist"):
            oracle.read(warehouse / "db.db" / "absent")
        with pytest.raises(OracleError):
            oracle.call("no-such-command")
        assert oracle.hello()["version"]


def test_java_ignores_a_replayed_commit(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "replayed"
    java.create(path, number_fields([{"name": "id", "type": "INT"}]))
    assert java.write(path, [{"id": 1}], user="job", identifier=1) == 1
    assert java.write(path, [{"id": 1}], user="job", identifier=1) == 1
    assert java.write(path, [{"id": 2}], user="job", identifier=2) == 2
    assert comparable(java.read(path)) == comparable([{"id": 1}, {"id": 2}])


def test_pure_pypaimon_drops_nanoseconds_where_it_merges(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path
) -> None:
    path = warehouse / "db.db" / "nanoseconds"
    columns = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "t", "type": "TIMESTAMP(9)"}])
    java.create(path, columns, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    rows = [{"k": 1, "t": "2024-01-01T00:00:00.123456789"}, {"k": 2, "t": None}]
    java.write(path, rows)
    java.write(path, rows)
    assert comparable(pypaimon_native.read(path)) == comparable(rows)
    assert pypaimon_pure.read(path, equals={"k": 1}) == [{"k": 1, "t": "2024-01-01T00:00:00.123456000"}]


def test_java_misreads_nanoseconds_by_pypaimon(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path
) -> None:
    if java.hello()["version"] != "1.4.2":
        pytest.skip("a limit of 1.4.2 only")
    columns = number_fields([{"name": "t", "type": "TIMESTAMP(9)"}])
    for writer in (pypaimon_pure, pypaimon_native):
        path = warehouse / "db.db" / f"by_{writer.name.replace('-', '_')}"
        writer.create(path, columns)
        writer.write(path, [{"t": "2024-01-01T00:00:00.123456789"}])
        assert java.read(path) != pypaimon_pure.read(path) == [{"t": "2024-01-01T00:00:00.123456789"}]
        assert pypaimon_native.read(path) == pypaimon_pure.read(path)


def test_pure_pypaimon_finds_nothing_by_statistics_with_nan(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path
) -> None:
    path = warehouse / "db.db" / "nan"
    java.create(path, number_fields([{"name": "d", "type": "DOUBLE"}]))
    java.write(path, [{"d": value} for value in (0.5, "NaN", 0.25)])
    assert java.read(path, equals={"d": 0.25}) == [{"d": 0.25}]
    assert pypaimon_native.read(path, equals={"d": 0.25}) == [{"d": 0.25}]
    assert pypaimon_pure.read(path, equals={"d": 0.25}) == []


def test_java_drops_files_by_statistics_of_bytes(java: JavaOracle, pypaimon_native: PypaimonOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "bytes"
    rows = [{"k": "00ff"}, {"k": "45"}, {"k": "ff01"}]
    pypaimon_native.create(
        path, number_fields([{"name": "k", "type": "BYTES NOT NULL"}]), primary_key=["k"], options={"bucket": "1"}
    )
    pypaimon_native.write(path, rows)
    assert comparable(java.read(path)) == comparable(rows)
    # Bounds 00ff and ff01: read as signed bytes, the upper one is below the lower one, and nothing lies between.
    assert java.read(path, equals={"k": "45"}) == []
    assert pypaimon_native.read(path, equals={"k": "45"}) == [{"k": "45"}]
