"""What a scan, a compaction and the other tasks hold in memory is bounded by bytes, whatever the size of a row.

Bounds are made small here, and what Arrow holds is measured by a pool that counts. Each table has many times the bounds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablestore
from tablestore.bounds import ReadBounds
from tablestore.format.parquet import ParquetOptions
from tablestore.table.compact import compact_table
from tablestore.table.table import Table

MIB = 1 << 20
BOUNDS = ReadBounds(batch_bytes=4 * MIB, window_bytes=8 * MIB, open_files=4)
ROW_GROUP_BYTES = 4 * MIB
# Pages, dictionaries, and what compressing takes; tests add a row or two where rows are large.
CONSTANT = 6 * MIB
RUNS = 6
RUN_BYTES = 10 * MIB
WIDTHS = [100, 10_000, 1_000_000]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64()), pa.field("w", pa.string())])
# Buffers may outlive the test that made them, and need their pool.
_POOLS: list[pa.MemoryPool] = []


@contextmanager
def measured() -> Iterator[pa.MemoryPool]:
    """A pool that counts what Arrow takes meanwhile."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


def bounded(table: Table) -> Table:
    settings = table.context.settings
    small = replace(settings, bounds=BOUNDS, parquet=ParquetOptions(row_group_bytes=ROW_GROUP_BYTES))
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


@pytest.mark.parametrize("width", WIDTHS)
def test_a_merging_scan_holds_a_window_and_no_more(tmp_path: Path, width: int) -> None:
    table = overlapping(tmp_path, width)
    with measured() as pool:
        rows = sum(batch.num_rows for batch in table.scan().to_batches())
    assert rows == 4 * (RUN_BYTES // width)
    assert pool.max_memory() <= 2 * BOUNDS.window_bytes + CONSTANT + 2 * width


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_compaction_holds_a_window_and_a_row_group(tmp_path: Path, width: int, engine: str) -> None:
    table = overlapping(tmp_path, width, merge_engine=engine)
    before = table.scan(["id", "v"]).to_arrow().sort_by("id")
    with measured() as pool:
        compact_table(table.context, full=True)
    assert pool.max_memory() <= 2 * (BOUNDS.window_bytes + BOUNDS.batch_bytes + ROW_GROUP_BYTES) + CONSTANT + 2 * width
    assert table.scan(["id", "v"]).to_arrow().sort_by("id").equals(before)
