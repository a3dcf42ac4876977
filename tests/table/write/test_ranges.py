"""Tables that are distributed by range: a write lays its rows out in files of ranges, in bounded memory."""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, StorageError
from tablestore.store.write import spillablerows
from tablestore.table.inspect.check import check_table

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64()), ("s", pa.string()), ("day", pa.string())])
BY_RANGE = {"clustering.columns": "a,b", "clustering.strategy": "order", "clustering.incremental": "true"}


def rows(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(rng.integers(0, 1000, count), mask=rng.random(count) < 0.01),
            "b": rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5], count),
            "s": rng.integers(0, 10**9, count).astype(str),
            "day": rng.choice(["x", "y"], count),
        },
        schema=SCHEMA,
    )


def create(path: Path, ranges: int, *, partition_by: tuple[str, ...] = (), **options: str) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("d", ignore_if_exists=True)
    chosen = {**BY_RANGE, "tablestore.clustering.ranges": str(ranges), **options}
    return catalog.create_table("d.t", SCHEMA, partition_by=list(partition_by), options=chosen)


def bounds(table: ts.Table) -> list[list[tuple[int, int]]]:
    """Of each partition the least and the largest ``a`` of its files, in order."""
    result = []
    for partition in table.partitions().column("partition").to_pylist() if table.partition_by else [None]:
        files = [row for row in table.files().to_pylist() if partition is None or row["partition"] == partition]
        parts = [pc.min_max(pa.parquet.read_table(f"{table.location}/{row['file_path']}").column("a")).as_py() for row in files]
        result.append(sorted((part["min"], part["max"]) for part in parts))
    return result


def files_read(table: ts.Table, filter: str) -> int:
    return int(table.scan(filter=filter).explain().split("files      ")[1].split(" of ")[0])


def same(left: pa.Table, right: pa.Table) -> bool:
    return sorted(map(str, left.to_pylist())) == sorted(map(str, right.to_pylist()))


@pytest.mark.parametrize("partition_by", [(), pytest.param(("day",), marks=pytest.mark.deep)])
def test_an_overwrite_makes_a_file_for_each_range(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    table = create(tmp_path, 6, partition_by=partition_by)
    table.append(rows(100, seed=9))
    new = rows(5000)
    table.overwrite(new, partition={})
    assert same(table.to_arrow(), new)
    for files in bounds(table):
        assert len(files) == 6 and all(before[1] <= after[0] for before, after in pairwise(files))
    assert set(table.files().column("level").to_pylist()) == {5}
    assert files_read(table, "a BETWEEN 500 AND 505") <= 2 * len(bounds(table))
    assert check_table(table.context, deep=True) == ()
    assert table.compact().tasks == 0, "they are one run"


def test_rows_beyond_the_buffer_wait_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    table = create(tmp_path, 5, partition_by=("day",), **{"write-buffer-size": "64 kb"})
    parts, seen = [rows(1000, seed=seed) for seed in range(8)], set()
    with table.new_writer() as writer:
        for part in parts:
            writer.write(part)
            seen |= {name for name in os.listdir(scratch) if name.startswith("tablestore-ranges-")}
        writer.commit()
    assert len(seen) == 1 and os.listdir(scratch) == []
    assert same(table.to_arrow(), pa.concat_tables(parts))
    for files in bounds(table):
        assert len(files) == 5 and all(before[1] <= after[0] for before, after in pairwise(files))
    with pytest.raises(RuntimeError), table.new_writer() as writer:
        for part in parts:
            writer.write(part)
        raise RuntimeError
    assert os.listdir(scratch) == [], "nothing is left of a writer that failed"


def test_a_full_disk_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spillablerows.pa.ipc, "new_file", full)
    table = create(tmp_path, 5, **{"write-buffer-size": "64 kb"})
    with table.new_writer() as writer, pytest.raises(StorageError, match="set TMPDIR to a larger disk"):
        for seed in range(8):
            writer.write(rows(1000, seed=seed))
    assert table.snapshots() == ()


@pytest.mark.deep
def test_without_a_number_files_have_their_target_size(tmp_path: Path) -> None:
    table = create(tmp_path, 0, **{"target-file-size": "1 mb", "file.block-size": "256 kb"})
    for seed in range(2):
        wide = [np.random.default_rng(seed + number).bytes(200).hex() for number in range(16_000)]
        table.overwrite(rows(16_000, seed=seed).set_column(2, "s", pa.array(wide)), {})
        [files] = bounds(table)
        assert len(files) > 1 and all(before[1] <= after[0] for before, after in pairwise(files))


def test_compactions_order_later_rows_with_them_and_keep_the_number(tmp_path: Path) -> None:
    table = create(tmp_path, 4)
    written = [rows(2000, seed=seed) for seed in range(3)]
    for part in written:
        table.append(part)
    table.compact(full=True)
    assert same(table.to_arrow(), pa.concat_tables(written))
    [files] = bounds(table)
    assert len(files) == 4 and all(before[1] <= after[0] for before, after in pairwise(files))


def test_rows_that_are_written_again_keep_their_values(tmp_path: Path) -> None:
    table = create(tmp_path, 3)
    table.append(rows(500))
    table.update({"s": "'changed'"}, "a < 100")
    table.delete("a > 900")
    expected = rows(500).to_pylist()
    kept = [row | {"s": "changed"} if row["a"] is not None and row["a"] < 100 else row for row in expected]
    kept = [row for row in kept if row["a"] is None or row["a"] <= 900]
    assert sorted(map(str, table.to_arrow().to_pylist())) == sorted(map(str, kept))


def test_ranges_need_columns(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"needs the option clustering\.columns"):
        create(tmp_path, 4, **{"clustering.columns": "", "clustering.incremental": "false"})
