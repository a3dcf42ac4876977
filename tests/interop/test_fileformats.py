"""Tables of other engines whose data files are ORC or Avro: tablestore reads them as it reads Parquet (what it writes:
test_writtenformats.py).

Java's ORC writer itself changes some timestamps (days before 1582, the last second before 1970): there what Java reads is the
reference, and times that Arrow's ORC reader does not hold are refused.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import setup_oracles
from canonical import comparable
from oracles import JavaOracle
from ours import Ours
from random_tables import ATOMIC_TYPES, SHAPES, History, Model, nested_types, number_fields, random_rows, random_spec

import tablestore as ts
from tablestore.errors import FormatError, UnsupportedError
from tablestore.table.inspect.check import check_table

pytestmark = pytest.mark.interop

FORMATS = ("orc", "avro")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]


def types_of(file_format: str) -> list[Any]:
    """The types that every value of goes through the format unchanged."""
    refused = "TIMESTAMP" if file_format == "orc" else "(9)"
    return [kind for kind in (*ATOMIC_TYPES, *nested_types()) if "TIMESTAMP" not in str(kind) or refused not in str(kind)]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_every_snapshot_of_a_random_table_is_read(
    java: JavaOracle, warehouse: Path, file_format: str, shape: str, seed: int
) -> None:
    rng = random.Random(f"{file_format} {shape} {seed}")
    types, options = types_of(file_format), {"file.format": file_format}
    spec = random_spec(rng, shape, types=types, options=options)
    while file_format == "orc" and "TIMESTAMP" in str(spec.columns):
        # A key may be one.
        spec = random_spec(rng, shape, types=types, options=options)
    path = warehouse / "db.db" / "t"
    java.create(path, spec.columns, primary_key=spec.primary_key, partition_by=spec.partition_by, options=spec.options)
    model, history = Model(spec), History(rng, spec)
    for _ in range(4):
        batch = history.batch(rng.choice([1, 20, 60]), delete_rate=0.25)
        model.apply(batch.rows, batch.kinds)
        model.snapshot(java.write(path, batch.rows, kinds=batch.kinds))
    us = Ours()
    for snapshot, rows in model.at.items():
        expected = comparable(java.read(path, snapshot=snapshot) if file_format == "orc" else rows)
        assert comparable(us.read(path, snapshot=snapshot)) == expected
    table = ts.open_table(str(path))
    assert table.scan().count() == len(model.contents())
    assert not check_table(table.context, deep=True)
    wanted = rng.choice(model.contents() or [None])
    if wanted is not None and spec.primary_key and file_format == "avro":
        assert us.read(path, equals={name: wanted[name] for name in spec.primary_key}) == [wanted]


@pytest.mark.parametrize("file_format", FORMATS)
def test_all_types_are_read_as_java_reads_them(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    columns = number_fields([{"name": f"c{n}", "type": kind} for n, kind in enumerate(types_of(file_format))])
    rows = random_rows(random.Random(23), columns, 300)
    path = warehouse / "db.db" / "types"
    java.create(path, columns, options={"file.format": file_format})
    java.write(path, rows)
    assert comparable(Ours().read(path)) == comparable(rows)


@pytest.mark.parametrize("precision", [0, 3, 6, 9])
@pytest.mark.parametrize("zone", ["", " WITH LOCAL TIME ZONE"])
def test_orc_timestamps_are_read_as_java_reads_them(java: JavaOracle, warehouse: Path, precision: int, zone: str) -> None:
    columns = number_fields([{"name": "t", "type": f"TIMESTAMP({precision}){zone}"}])
    texts = ["1970-01-01T00:00:00", "1969-12-31T23:59:59", "1678-01-01T00:00:00", "2261-12-31T23:59:59", "2024-02-29T12:30:01"]
    fractions = ["000000000", "1".ljust(precision, "0").ljust(9, "0")[:9] if precision else "000000000"]
    digits = 9 if precision > 6 else 6
    rows = [{"t": f"{text}.{fraction[:digits]}{'Z' if zone else ''}"} for text in texts for fraction in fractions]
    path = warehouse / "db.db" / "times"
    java.create(path, columns, options={"file.format": "orc"})
    java.write(path, [*rows, {"t": None}])
    assert comparable(Ours().read(path)) == comparable(java.read(path))


@pytest.mark.parametrize("text", ["9999-12-31T00:00:00.000000", "0001-01-01T00:00:00.000000"])
def test_orc_timestamps_that_arrow_does_not_hold_are_refused(java: JavaOracle, warehouse: Path, text: str) -> None:
    columns = number_fields([{"name": "k", "type": "INT"}, {"name": "t", "type": "TIMESTAMP(6)"}])
    path = warehouse / "db.db" / "far"
    java.create(path, columns, options={"file.format": "orc"})
    java.write(path, [{"k": 1, "t": text}])
    with pytest.raises(UnsupportedError, match="1678 or after 2262"):
        Ours().read(path)
    assert Ours().read(path, columns=["k"]) == [{"k": 1}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "first-row", "deletion-vectors"])
def test_merge_engines_are_read_as_java_reads_them(java: JavaOracle, warehouse: Path, file_format: str, engine: str) -> None:
    rng = random.Random(f"{file_format} {engine}")
    columns = number_fields(
        [{"name": "k", "type": "INT NOT NULL"}, {"name": "n", "type": "BIGINT"}, {"name": "s", "type": "STRING"}]
    )
    options = {"file.format": file_format, "bucket": "2"}
    if engine == "deletion-vectors":
        options["deletion-vectors.enabled"] = "true"
    else:
        options["merge-engine"] = engine
    if engine == "aggregation":
        options |= {"fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "max"}
    if engine == "first-row":
        options["changelog-producer"] = "lookup"
    path = warehouse / "db.db" / "merged"
    java.create(path, columns, primary_key=("k",), options=options)
    for step in range(6):
        rows = [
            {"k": rng.randrange(30), "n": rng.choice([None, rng.randrange(100)]), "s": rng.choice([None, "a", "é"])}
            for _ in range(20)
        ]
        snapshot = java.write(path, rows)
        if step in (2, 5):
            snapshot = java.compact(path, full=step == 5)
        assert comparable(Ours().read(path, snapshot=snapshot)) == comparable(java.read(path, snapshot=snapshot))


@pytest.mark.parametrize("file_format", FORMATS)
def test_changes_are_delivered_as_java_delivers_them(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    rng = random.Random(7)
    columns = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "BIGINT"}])
    path = warehouse / "db.db" / "changes"
    options = {"bucket": "2", "changelog-producer": "input", "file.format": file_format}
    java.create(path, columns, primary_key=("k",), options=options)
    for _ in range(4):
        rows = [{"k": rng.randrange(12), "v": rng.randrange(1000)} for _ in range(15)]
        last = java.write(path, rows, kinds=[rng.choice(["+I", "+I", "-D"]) for _ in rows])
    ours = Ours().changes(path, from_snapshot=0, to_snapshot=last)
    theirs = java.changes(path, from_snapshot=0, to_snapshot=last)
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_files_of_all_formats_lie_in_one_table(java: JavaOracle, warehouse: Path) -> None:
    columns = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "DECIMAL(20, 2)"}])
    path = warehouse / "db.db" / "mixed"
    java.create(path, columns, primary_key=("k",), options={"bucket": "1", "file.format": "orc"})
    expected = {}
    for number, file_format in enumerate(("orc", "avro", "parquet")):
        java.alter(path, {"action": "set", "key": "file.format", "value": file_format}) if number else None
        rows = [{"k": key, "v": f"{key}.0{number}"} for key in range(number, 9, number + 1)]
        java.write(path, rows)
        expected |= {row["k"]: row for row in rows}
    java.alter(path, {"action": "add", "column": "later", "type": "INT"})
    table = ts.open_table(str(path))
    assert formats_of(table) == {"orc", "avro", "parquet"}
    read = {row["k"]: row for row in Ours().read(path)}
    assert read == {key: row | {"later": None} for key, row in expected.items()}
    # Ours go on in Parquet, and a compaction leaves nothing else.
    table.upsert(pa.table({"k": [0], "v": [None], "later": [7]}, schema=table.schema))
    table.compact(full=True)
    assert formats_of(ts.open_table(str(path))) == {"parquet"}
    read = {row["k"]: row for row in java.read(path)}
    assert read == {key: row | {"later": None} for key, row in expected.items()} | {0: {"k": 0, "v": None, "later": 7}}


def formats_of(table: ts.Table) -> set[str]:
    return set(table.system("files").to_arrow()["file_format"].to_pylist())


@pytest.fixture
def java_in_new_york() -> Iterator[JavaOracle]:
    home = setup_oracles.ensure_java()
    oracle = JavaOracle(home)
    oracle._command = [part.replace("-Duser.timezone=UTC", "-Duser.timezone=America/New_York") for part in oracle._command]
    yield oracle
    oracle.close()


@pytest.mark.deep
def test_orc_timestamps_of_a_writer_in_another_zone(java: JavaOracle, java_in_new_york: JavaOracle, warehouse: Path) -> None:
    """Java writes a time with local zone as the clock of its own machine shows it (``orc.timestamp-ltz.legacy.type``), and reads
    it so: we read what a Java in UTC reads."""
    columns = number_fields([{"name": "t", "type": "TIMESTAMP(3)"}, {"name": "l", "type": "TIMESTAMP(3) WITH LOCAL TIME ZONE"}])
    path = warehouse / "db.db" / "zones"
    rows = [{"t": f"2024-{month:02d}-10T12:30:00.125000", "l": f"2024-{month:02d}-10T12:30:00.125000Z"} for month in (1, 3, 7, 11)]
    java_in_new_york.create(path, columns, options={"file.format": "orc"})
    java_in_new_york.write(path, rows)
    assert comparable(Ours().read(path)) == comparable(java.read(path))
    assert comparable(Ours().read(path, columns=["t"])) == comparable([{"t": row["t"]} for row in rows])


@pytest.mark.parametrize("file_format", FORMATS)
def test_damage_is_an_error_and_no_other_rows(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    columns = number_fields([{"name": "k", "type": "INT"}, {"name": "s", "type": "STRING"}])
    rows = [{"k": number, "s": f"row {number}" * 3} for number in range(500)]
    path = warehouse / "db.db" / "damaged"
    java.create(path, columns, options={"file.format": file_format})
    java.write(path, rows)
    (file,) = path.rglob(f"*.{file_format}")
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    with pytest.raises(FormatError, match="cut or replaced"):
        Ours().read(path)
    if file_format == "orc":
        # Arrow's reader of ORC may crash over a flipped bit (SECURITY.md).
        return
    rng = random.Random(5)
    for _ in range(60):
        place = rng.randrange(len(data))
        file.write_bytes(data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :])
        try:
            Ours().read(path)
        except ts.TablestoreError:
            continue
        # Neither format has a checksum of its own: a bit of a value may change, and no other error comes out.


@pytest.mark.parametrize("options", [{"file.format": "csv"}, {"file.format": "orc", "file.format.per.level": "0:json"}])
def test_other_formats_are_refused_by_name(java: JavaOracle, warehouse: Path, options: dict[str, str]) -> None:
    path = warehouse / "db.db" / "written"
    java.create(path, number_fields([{"name": "k", "type": "INT"}]), options=options)
    assert Ours().read(path) == []
    with pytest.raises(UnsupportedError, match=r"file.format = (csv|json): tablestore writes parquet, orc, avro"):
        ts.open_table(str(path)).append(pa.table({"k": pa.array([1], pa.int32())}))


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_restore_gives_the_rows_back_without_a_word_of_compaction(
    java: JavaOracle, warehouse: Path, file_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = warehouse / "db.db" / "restored"
    columns = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}])
    java.create(path, columns, primary_key=("k",), options={"bucket": "1", "file.format": file_format})
    first = java.write(path, [{"k": 1, "v": "a"}])
    java.write(path, [{"k": 1, "v": "b"}, {"k": 2, "v": "c"}])
    java.compact(path, full=True)
    ts.open_table(str(path)).rollback_to(first)
    assert Ours().read(path) == java.read(path) == [{"k": 1, "v": "a"}]
    assert not caplog.records


@pytest.mark.deep
def test_old_days_and_fixed_texts_of_orc_are_those_that_java_reads(java: JavaOracle, warehouse: Path) -> None:
    columns = number_fields(
        [{"name": "id", "type": "INT NOT NULL"}, {"name": "d", "type": "DATE"}, {"name": "c", "type": "CHAR(5)"}]
    )
    # Each is a day of today's calendar, whatever the year; the third was none when it would have been.
    days = ("1582-10-04", "0001-01-01", "1582-10-10", "1500-02-28", "1582-10-15", "9999-12-31")
    rows = [{"id": place, "d": day, "c": "ab"[:place]} for place, day in enumerate(days)]
    for key in ((), ("id",), ("c", "id")):
        fixed = [
            {**column, "type": f"{column['type']} NOT NULL"} if column["name"] in key and column["name"] == "c" else column
            for column in columns
        ]
        for writer in (java, Ours()):
            path = warehouse / "db.db" / f"{writer.name}{len(key)}"
            bucket = "1" if key else "-1"
            writer.create(path, fixed, primary_key=key, options={"file.format": "orc", "bucket": bucket})
            writer.write(path, rows)
            assert comparable(Ours().read(path)) == comparable(java.read(path)) == comparable(rows), path.name
            if key:
                Ours().write(path, rows[:2])
                java.compact(path)
                assert comparable(Ours().read(path)) == comparable(java.read(path)) == comparable(rows), path.name
