"""Tables with options that others set: tablestore reads and writes them so that all agree, or refuses them by name.

Refusing matters most for writing: a commit that puts a file where others do not look breaks the table for everyone.
"""

import random
from pathlib import Path

import pytest
from canonical import Row, comparable
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import number_fields

import tablestore as ts

pytestmark = pytest.mark.interop

COLUMNS = number_fields(
    [
        {"name": "part", "type": "DATE"},
        {"name": "k", "type": "INT NOT NULL"},
        {"name": "v", "type": "INT"},
        {"name": "s", "type": "STRING"},
    ]
)


def some_rows(rng: random.Random, count: int = 10) -> list[Row]:
    return [
        {
            "part": rng.choice(["2024-01-01", "1969-12-31", None]),
            "k": rng.randrange(12),
            "v": rng.choice([None, rng.randrange(9)]),
            "s": rng.choice([None, "", "x", "é" * 20]),
        }
        for _ in range(count)
    ]


UNDERSTOOD_KEYED = [
    "file.compression=snappy",
    pytest.param("file.compression=gzip", marks=pytest.mark.slow),
    "file.compression=lz4",
    pytest.param("file.compression=none", marks=pytest.mark.slow),
    "manifest.compression=snappy",
    pytest.param("manifest.compression=deflate", marks=pytest.mark.slow),
    pytest.param("manifest.compression=null", marks=pytest.mark.slow),
    "file.block-size=64 kb",
    "metadata.stats-mode=none",
    "metadata.stats-mode=none,fields.v.stats-mode=full,fields.k.stats-mode=counts",
    pytest.param("fields.v.stats-mode=none,fields.k.stats-mode=none,data-file.thin-mode=true", marks=pytest.mark.slow),
    "metadata.stats-mode=full",
    pytest.param("metadata.stats-dense-store=false", marks=pytest.mark.slow),
    "data-file.thin-mode=true",
    "bucket-function.type=mod",
    pytest.param("bucket-function.type=hive", marks=pytest.mark.slow),
    "file.suffix.include.compression=true",
    "data-file.prefix=x-",
    "sequence.field=v,sequence.field.sort-order=descending",
    "sequence.field=v",
    pytest.param("ignore-delete=true", marks=pytest.mark.slow),
    "file-index.bloom-filter.columns=v",
    "num-levels=3,num-sorted-run.compaction-trigger=2",
    "target-file-size=1 kb",
    "snapshot.num-retained.max=3,snapshot.num-retained.min=1,snapshot.time-retained=1 ms",
    # Ours, which others skip.
    "tablestore.constraint.small=v < 100",
]


def parsed(options: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in options.split(","))


@pytest.mark.deep
@pytest.mark.parametrize("options", UNDERSTOOD_KEYED)
def test_keyed_tables_with_options_of_others(java: JavaOracle, warehouse: Path, options: str) -> None:
    rng = random.Random(options)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, primary_key=["k"], options={"bucket": "2", **parsed(options)})
    for writer in (java, us, java, us):
        rows = some_rows(rng)
        writer.write(path, rows, kinds=[rng.choice(["+I", "+I", "-D"]) for _ in rows])
        assert comparable(us.read(path)) == comparable(java.read(path)), writer.name
    for snapshot in java.snapshots(path):
        at = snapshot["id"]
        assert comparable(us.read(path, snapshot=at)) == comparable(java.read(path, snapshot=at)), at
    before = comparable(java.read(path))
    java.compact(path)
    assert comparable(us.read(path)) == comparable(java.read(path)) == before


@pytest.mark.parametrize("options", ["partition.legacy-name=false", "partition.default-name=NULLS", "file.compression=lz4"])
def test_partitioned_append_tables_with_options_of_others(java: JavaOracle, warehouse: Path, options: str) -> None:
    rng = random.Random(options)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, partition_by=["part"], options={"bucket": "-1", **parsed(options)})
    rows: list[Row] = []
    for writer in (java, us, java, us):
        batch = some_rows(rng)
        writer.write(path, batch)
        rows += batch
        assert comparable(us.read(path)) == comparable(java.read(path)) == comparable(rows), writer.name


# (options, primary key, what the refusal names)
REFUSED = [
    ("deletion-vectors.enabled=true,deletion-vectors.bitmap64=true", ["k"], "bitmap64"),
    ("sequence.snapshot-ordering=true", ["k"], "snapshot-ordering"),
    ("row-tracking.enabled=true,data-evolution.enabled=true", [], "data-evolution"),
]


@pytest.mark.parametrize(("options", "primary_key", "named"), REFUSED)
def test_what_we_do_not_do_is_refused_by_name(
    java: JavaOracle, warehouse: Path, options: str, primary_key: list[str], named: str
) -> None:
    rng = random.Random(options)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, primary_key=primary_key, options={"bucket": "1" if primary_key else "-1", **parsed(options)})
    java.write(path, some_rows(rng))
    with pytest.raises(ts.UnsupportedError, match=named):
        us.read(path)
    before = java.snapshots(path)
    with pytest.raises(ts.UnsupportedError, match=named):
        us.write(path, some_rows(rng))
    assert java.snapshots(path) == before


def test_a_table_with_numbered_rows_is_read_and_not_written(java: JavaOracle, warehouse: Path) -> None:
    rng = random.Random(9)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, options={"bucket": "-1", "row-tracking.enabled": "true", "compaction.min.file-num": "2"})
    for _ in range(3):
        java.write(path, some_rows(rng))
        assert comparable(us.read(path)) == comparable(java.read(path))
    java.compact(path)
    before = java.snapshots(path)
    assert comparable(us.read(path)) == comparable(java.read(path))
    table = ts.open_table(str(path))
    assert table.scan().count() == len(java.read(path))
    for write in (
        lambda: us.write(path, some_rows(rng)),
        lambda: table.compact(full=True),
        lambda: table.rollback_to(1),
        lambda: table.overwrite(table.to_arrow()),
    ):
        with pytest.raises(ts.UnsupportedError, match="row-tracking"):
            write()
    assert java.snapshots(path) == before


@pytest.mark.parametrize(
    ("options", "primary_key"),
    [
        ("changelog-producer=lookup", ["k"]),
        ("changelog-producer=full-compaction", ["k"]),
        ("deletion-vectors.enabled=true", ["k"]),
        ("deletion-vectors.enabled=true", []),
    ],
)
def test_what_changes_how_rows_are_kept_is_kept_up_in_turns(
    java: JavaOracle, warehouse: Path, options: str, primary_key: list[str]
) -> None:
    rng = random.Random(options)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, primary_key=primary_key, options={"bucket": "1" if primary_key else "-1", **parsed(options)})
    for writer in (java, us, java, us):
        writer.write(path, some_rows(rng))
        assert comparable(us.read(path)) == comparable(java.read(path))


def test_a_directory_for_data_files_is_used_or_refused(java: JavaOracle, warehouse: Path) -> None:
    rng = random.Random(42)
    path = warehouse / "db.db" / "t"
    us = Ours()
    java.create(path, COLUMNS, options={"bucket": "-1", "data-file.path-directory": "data"})
    rows = some_rows(rng)
    java.write(path, rows)
    try:
        ours = some_rows(rng)
        us.write(path, ours)
        rows += ours
    except ts.UnsupportedError as refusal:
        assert "path-directory" in str(refusal)  # noqa: PT017 (refusing and doing it right are both fine)
    assert comparable(java.read(path)) == comparable(rows)


def test_files_at_external_paths_are_refused_by_name(
    java: JavaOracle, pypaimon_native: PypaimonOracle, warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    path = warehouse / "db.db" / "t"
    java.create(
        path,
        COLUMNS,
        options={
            "bucket": "-1",
            "data-file.external-paths": f"file://{outside}",
            "data-file.external-paths.strategy": "round-robin",
        },
    )
    rows = some_rows(random.Random(43))
    java.write(path, rows)
    with pytest.raises(ts.UnsupportedError, match="external path"):
        Ours().read(path)
    with pytest.raises(ts.UnsupportedError, match="external-paths"):
        Ours().write(path, rows)
    assert comparable(java.read(path)) == comparable(pypaimon_native.read(path)) == comparable(rows)
