"""What a scan, a compaction and the other tasks hold in memory is bounded by bytes, whatever the size of a row.

Bounds are made small here, and what Arrow holds is measured by a pool that counts. Each table has many times the bounds.
"""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablestore
from tablestore.bounds import BATCH_BYTES, WINDOW_BYTES, ReadBounds
from tablestore.bounds import ROW_GROUP_BYTES as STATED_ROW_GROUP_BYTES
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import compact_table

MIB = 1 << 20
BOUNDS = ReadBounds(batch_bytes=4 * MIB, window_bytes=8 * MIB, open_files=4)
ROW_GROUP_BYTES = 4 * MIB
# Pages, dictionaries, and what compressing takes; tests add a row or two where rows are large.
CONSTANT = 6 * MIB
RUNS = 6
RUN_BYTES = 6 * MIB
WIDTHS = [100, 10_000, 1_000_000]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64()), pa.field("w", pa.string())])


@contextmanager
def measured() -> Iterator[pa.MemoryPool]:
    """A pool that counts what Arrow takes meanwhile."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    # A buffer needs its pool until the process has ended.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


def bounded(table: Table) -> Table:
    settings = table.context.settings
    small = replace(settings, bounds=BOUNDS, data_files=DataFileOptions(row_group_bytes=ROW_GROUP_BYTES))
    return Table(replace(table.context, settings=small), table.location)


def overlapping(path: Path, width: int, **options: str) -> Table:
    """A table of runs that overlap wholly."""
    catalog = tablestore.open_catalog(str(path))
    catalog.create_database("db")
    given = {"bucket": "1", "write-only": "true"} | {key.replace("_", "-"): value for key, value in options.items()}
    table = bounded(catalog.create_table("db.t", SCHEMA, primary_key=["id"], options=given))
    rows = RUN_BYTES // width
    for run in range(RUNS):
        ids = np.arange(rows) * RUNS + (run if run % 2 else 0)
        texts = pa.array([f"{run}:{i}:".ljust(width, "x") for i in range(rows)])
        table.upsert(pa.table({"id": ids, "v": np.full(rows, run), "w": texts}, schema=SCHEMA))
    return table


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_merging_scan_holds_a_window_and_no_more(tmp_path: Path, width: int) -> None:
    table = overlapping(tmp_path, width)
    with measured() as pool:
        rows = sum(batch.num_rows for batch in table.scan().to_batches())
    assert rows == 4 * (RUN_BYTES // width)
    assert pool.max_memory() <= 2 * BOUNDS.window_bytes + CONSTANT + 2 * width


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_compaction_holds_a_window_and_a_row_group(tmp_path: Path, width: int, engine: str) -> None:
    table = overlapping(tmp_path, width, merge_engine=engine)
    before = table.scan(["id", "v"]).to_arrow().sort_by("id")
    with measured() as pool:
        compact_table(table.context, full=True)
    assert pool.max_memory() <= 2 * (BOUNDS.window_bytes + BOUNDS.batch_bytes + ROW_GROUP_BYTES) + CONSTANT + 2 * width
    assert table.scan(["id", "v"]).to_arrow().sort_by("id").equals(before)


@pytest.mark.deep
@pytest.mark.parametrize("width", WIDTHS)
def test_changes_are_found_within_bounds(tmp_path: Path, width: int) -> None:
    table = overlapping(tmp_path, width, changelog_producer="lookup")
    with measured() as pool:
        compact_table(table.context, full=True)
    assert pool.max_memory() <= 2 * (BOUNDS.window_bytes + BOUNDS.batch_bytes + ROW_GROUP_BYTES) + CONSTANT + RUNS * width
    snapshot = table.refresh().context.snapshots.latest()
    assert snapshot is not None
    found = bounded(table.refresh()).changes(snapshot.id - 1, columns=["id", "v"])
    with measured() as pool:
        changes = pa.Table.from_batches(found.to_batches(), schema=found.schema)
    assert pool.max_memory() <= 2 * BOUNDS.batch_bytes + CONSTANT + 2 * width
    assert sorted(changes["id"].to_pylist()) == sorted(table.refresh().scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_changes_of_an_update_are_looked_up_within_bounds(tmp_path: Path, width: int) -> None:
    table = overlapping(tmp_path, width)
    with measured() as pool:
        rows = sum(batch.num_rows for batch in table.changes(RUNS - 2, RUNS).to_batches())
    # The first of the two snapshots replaces rows, the second has new ones.
    assert rows == 3 * (RUN_BYTES // width)
    assert pool.max_memory() <= 2 * (BOUNDS.window_bytes + BOUNDS.batch_bytes) + CONSTANT + RUNS * width


@pytest.mark.deep
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_upper_levels_are_folded_with_newer_ones_within_bounds(tmp_path: Path, width: int) -> None:
    options = {"deletion_vectors.enabled": "true", "merge_engine": "partial-update"}
    table = overlapping(tmp_path, width, **options)
    compact_table(table.context, full=True)
    ids = np.arange(RUN_BYTES // width) * RUNS
    table.upsert(pa.table({"id": ids, "v": np.full(len(ids), 99)}))
    with measured() as pool:
        compact_table(table.context)
    assert pool.max_memory() <= 2 * (BOUNDS.window_bytes + BOUNDS.batch_bytes + ROW_GROUP_BYTES) + CONSTANT + 4 * width
    assert table.refresh().scan(["v"], "v = 99").count() == len(ids)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_that_are_written_are_in_memory_as_often_as_stated(tmp_path: Path, width: int) -> None:
    catalog = tablestore.open_catalog(str(tmp_path))
    catalog.create_database("db")
    budget = 8 * MIB
    options = {"bucket": "2", "write-only": "true", "write-buffer-size": f"{budget} b"}
    table = catalog.create_table("db.t", SCHEMA, primary_key=["id"], options=options)

    def given() -> Iterator[pa.RecordBatch]:
        rows = max(MIB // width, 1)
        for start in range(0, 4 * budget // width, rows):
            texts = pa.array([f"{i}:".ljust(width, "x") for i in range(start, start + rows)])
            yield pa.record_batch([pa.array(range(start, start + rows)), pa.array(range(rows)), texts], schema=SCHEMA)

    with measured() as pool:
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, given()))
    assert pool.max_memory() <= 2 * (budget + BATCH_BYTES)


REAL_BOUNDS = """
import ctypes, sys
import numpy as np, pyarrow as pa, pyarrow.compute
import tablestore

engine, step = sys.argv[2:]
catalog = tablestore.open_catalog(sys.argv[1])
catalog.create_database("db")
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64()), pa.field("w", pa.string())])
options = {"bucket": "1", "write-only": "true", "merge-engine": engine}
table = catalog.create_table("db.t", schema, primary_key=["id"], options=options)
rng = np.random.default_rng(1)
noise = rng.bytes(200_000).hex()
for run in range(14):
    texts = pa.array([noise[i : i + 22_500] * 2 for i in rng.integers(0, 300_000, 4_000)])
    table.upsert(pa.table({"id": np.arange(4_000) * 2 + run % 2, "v": np.full(4_000, run), "w": texts}, schema=schema))
del texts
pool = pa.proxy_memory_pool(pa.default_memory_pool())
ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
pa.set_memory_pool(pool)
if step == "compact":
    table.compact(full=True)
rows = texts = 0
for batch in table.scan().to_batches():
    rows += batch.num_rows
    texts += int(pa.compute.sum(pa.compute.binary_length(batch.column("w"))).as_py())
assert (rows, texts) == (8_000, 8_000 * 45_000), (rows, texts)
print(pool.max_memory())
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("step", ["scan", "compact"])
def test_14_runs_of_180_mb_are_merged_within_the_bounds_that_are_stated(tmp_path: Path, engine: str, step: str) -> None:
    command = [sys.executable, "-c", REAL_BOUNDS, str(tmp_path), engine, step]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) <= 2 * (WINDOW_BYTES + BATCH_BYTES + STATED_ROW_GROUP_BYTES) + 32 * MIB
