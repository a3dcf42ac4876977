"""Tables whose data files we write as ORC or Avro: other implementations read them as they read our Parquet files.

pypaimon's native reader of Avro gives maps in any order and loses rows within rows: of Avro only the others judge.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ours
import pytest
from canonical import comparable
from limits import seen_by
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import SHAPES, History, Model, TableSpec, number_fields, random_rows, random_spec
from test_fileformats import FORMATS, SEEDS, formats_of, types_of

import tablestore as ts
from tablestore.table.inspect.check import check_table

pytestmark = pytest.mark.interop

KEYED = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "n", "type": "BIGINT"}, {"name": "s", "type": "STRING"}])
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "max"},
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
    "deletion-vectors": {"deletion-vectors.enabled": "true"},
}


def created(path: Path, columns: Sequence[Any], options: dict[str, str], key: tuple[str, ...] = ()) -> Ours:
    us = Ours()
    ours.create(us, path, TableSpec(number_fields(list(columns)), key, options=options))
    return us


@pytest.mark.parametrize("file_format", FORMATS)
def test_all_types_are_read_by_everyone(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path, file_format: str
) -> None:
    columns = number_fields([{"name": f"c{n}", "type": kind} for n, kind in enumerate(types_of(file_format))])
    rows = [*random_rows(random.Random(21), columns, 300), {column["name"]: None for column in columns}]
    path = warehouse / "db.db" / "types"
    us = created(path, columns, {"bucket": "-1", "file.format": file_format})
    us.write(path, rows)
    assert formats_of(ts.open_table(str(path))) == {file_format}
    for reader in (us, java, pypaimon_pure, *([pypaimon_native] if file_format == "orc" else [])):
        assert comparable(reader.read(path)) == comparable(rows), reader.name


@pytest.mark.parametrize("precision", [0, 3, 6, 9])
def test_orc_timestamps_are_read_by_java(java: JavaOracle, warehouse: Path, precision: int) -> None:
    zoned = f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE"
    columns = [{"name": "t", "type": f"TIMESTAMP({precision})"}, {"name": "l", "type": zoned}]
    texts = [
        "1970-01-01T00:00:00",
        "1969-12-31T23:59:59",
        "1969-12-31T23:59:58",
        "1678-01-01T00:00:00",
        "2261-12-31T23:59:59",
        "2024-02-29T12:30:01",
    ]
    digits = 9 if precision > 6 else 6
    fractions = ["0" * digits, "1".ljust(precision, "5")[:precision].ljust(digits, "0")]
    times = [
        f"{text}.{fraction if text >= '1970' else fraction[:3].ljust(digits, '0')}" for text in texts for fraction in fractions
    ]
    rows = [{"t": None, "l": None}, *({"t": text, "l": f"{text}Z"} for text in times)]
    path = warehouse / "db.db" / "times"
    us = created(path, columns, {"bucket": "-1", "file.format": "orc"})
    us.write(path, rows)
    assert comparable(us.read(path)) == comparable(java.read(path)) == comparable(rows)


def test_orc_columns_of_any_name_are_read_by_java(java: JavaOracle, warehouse: Path) -> None:
    names = ["k", "K", "a b", "a.b", "é中", "a,b", "a", "1", "a\"<>:'"]
    kinds = ["INT"] * 6 + [{"type": "ROW", "fields": [{"name": "b", "type": "STRING"}]}] + ["DOUBLE", "FLOAT"]
    columns = number_fields([{"name": name, "type": kind} for name, kind in zip(names, kinds, strict=True)])
    rows = random_rows(random.Random(2), columns, 30)
    path = warehouse / "db.db" / "names"
    us = created(path, columns, {"bucket": "-1", "file.format": "orc"})
    us.write(path, rows)
    assert comparable(us.read(path)) == comparable(java.read(path)) == comparable(rows)


@pytest.mark.parametrize("file_format", FORMATS)
def test_java_finds_rows_by_a_value_of_ours(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    """It prunes by what the files and the manifests say of their columns."""
    columns = number_fields(
        [{"name": name, "type": kind} for name, kind in {"d": "DOUBLE", "s": "STRING", "n": "DECIMAL(20, 2)", "t": "DATE"}.items()]
    )
    rows: list[dict[str, Any]] = [
        {"d": "NaN", "s": "", "n": None, "t": "1969-12-31"},
        {"d": 1.5, "s": "é", "n": "-1.00", "t": None},
        {"d": -0.0, "s": None, "n": "99999999999999999.99", "t": "2024-02-29"},
        {"d": None, "s": "z" * 300, "n": "0.00", "t": "1970-01-01"},
    ]
    path = warehouse / "db.db" / "found"
    us = created(path, columns, {"bucket": "-1", "file.format": file_format})
    us.write(path, rows)
    for name, at in (("d", 1), ("s", 0), ("s", 3), ("n", 2), ("t", 0)):
        expected = comparable([rows[at]])
        assert comparable(java.read(path, equals={name: rows[at][name]})) == expected, (name, at)
        assert comparable(us.read(path, equals={name: rows[at][name]})) == expected, (name, at)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("engine", ENGINES)
def test_merge_engines_give_java_what_they_give_in_parquet(
    java: JavaOracle, warehouse: Path, file_format: str, engine: str
) -> None:
    rng = random.Random(f"{file_format} {engine}")
    path, twin = warehouse / "db.db" / "merged", warehouse / "db.db" / "twin"
    us = created(path, KEYED, {"bucket": "2", "file.format": file_format, **ENGINES[engine]}, ("k",))
    created(twin, KEYED, {"bucket": "2", **ENGINES[engine]}, ("k",))
    kinds = ["+I"] if engine in ("partial-update", "first-row", "aggregation") else ["+I", "+I", "-D"]
    for step in range(4):
        rows = [
            {"k": key, "n": rng.choice([None, rng.randrange(100)]), "s": rng.choice([None, "a", "é"])}
            for key in rng.sample(range(30), 20)
        ]
        written = [rng.choice(kinds) for _ in rows]
        for table in (path, twin):
            us.write(table, rows, kinds=written)
            if step in (1, 3):
                us.compact(table)
        assert comparable(us.read(path)) == comparable(us.read(twin))
        assert comparable(java.read(path)) == comparable(java.read(twin))
    assert comparable(java.read(path)) == comparable(us.read(path))
    assert not check_table(ts.open_table(str(path)).context, deep=True)


def test_levels_and_changelog_files_have_formats_of_their_own(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "levels"
    formats = {"file.format": "orc", "file.format.per.level": "0:avro", "changelog-file.format": "parquet"}
    us = created(path, KEYED, {"bucket": "1", "changelog-producer": "input", **formats}, ("k",))
    us.write(path, [{"k": key, "n": key, "s": None} for key in range(9)], kinds=["+I"] * 9)
    last = us.write(path, [{"k": 3, "n": 7, "s": "x"}, {"k": 4, "n": 4, "s": None}], kinds=["+I", "-D"])
    table = ts.open_table(str(path))
    assert formats_of(table) == {"avro"}
    assert len(list(path.rglob("changelog-*.parquet"))) == 2
    ours_changes = us.changes(path, from_snapshot=0, to_snapshot=last)
    assert sorted(map(repr, ours_changes)) == sorted(map(repr, java.changes(path, from_snapshot=0, to_snapshot=last)))
    us.compact(path)
    assert formats_of(ts.open_table(str(path))) == {"orc"}
    java.write(path, [{"k": 5, "n": None, "s": "java"}])
    us.write(path, [{"k": 6, "n": 6, "s": "us"}])
    assert len(us.read(path)) == 8 and comparable(us.read(path)) == comparable(java.read(path))


@pytest.mark.parametrize("file_format", FORMATS)
def test_schemas_evolve_over_files_of_all_formats(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    path = warehouse / "db.db" / "evolved"
    us = created(path, KEYED, {"bucket": "1", "file.format": file_format}, ("k",))
    us.write(path, [{"k": 1, "n": 1, "s": "a"}, {"k": 2, "n": 2, "s": "b"}])
    table = ts.open_table(str(path))
    table.alter([ts.RenameColumn("s", to="t"), ts.AddColumn("x", "DECIMAL(20, 3)"), ts.SetOption("file.format", "parquet")])
    us.write(path, [{"k": 2, "n": 3, "t": "c", "x": "1.500"}])
    ts.open_table(str(path)).alter(ts.SetOption("file.format", file_format))
    us.write(path, [{"k": 3, "n": 4, "t": None, "x": None}])
    expected = [
        {"k": 1, "n": 1, "t": "a", "x": None},
        {"k": 2, "n": 3, "t": "c", "x": "1.500"},
        {"k": 3, "n": 4, "t": None, "x": None},
    ]
    assert formats_of(ts.open_table(str(path))) == {file_format, "parquet"}
    assert comparable(us.read(path)) == comparable(java.read(path)) == comparable(expected)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_every_snapshot_of_a_random_table_is_read_by_java(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, warehouse: Path, file_format: str, shape: str, seed: int
) -> None:
    rng = random.Random(f"we write {file_format} {shape} {seed}")
    spec = random_spec(rng, shape, types=types_of(file_format), options={"file.format": file_format})
    while file_format == "orc" and "TIMESTAMP" in str(spec.columns):
        # A key may be one.
        spec = random_spec(rng, shape, types=types_of(file_format), options={"file.format": file_format})
    path = warehouse / "db.db" / "t"
    us = Ours()
    ours.create(us, path, spec)
    model, history = Model(spec), History(rng, spec)
    for _ in range(4):
        batch = history.batch(rng.choice([1, 20, 60]), delete_rate=0.25)
        model.apply(batch.rows, batch.kinds)
        model.snapshot(us.write(path, batch.rows, kinds=batch.kinds))
    model.snapshot(us.compact(path))
    model.snapshot(java.compact(path))
    for snapshot, rows in model.at.items():
        for reader in (us, java, pypaimon_pure):
            assert seen_by(reader.name, reader.read(path, snapshot=snapshot)) == seen_by(reader.name, rows), (reader.name, snapshot)
    assert not check_table(ts.open_table(str(path)).context, deep=True)
