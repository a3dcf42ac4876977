"""Drives pyarrow over plain Parquet files: the floor. No table, no key, no durability."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from system import System


class PlainParquet(System):
    """A folder of files."""

    packages = ("pyarrow",)

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        Path(self.location(table)).mkdir(parents=True)

    def append(self, table: str, rows: pa.Table) -> None:
        folder = Path(self.location(table))
        pq.write_table(rows, folder / f"{len(list(folder.iterdir()))}.parquet", compression="zstd")

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return pq.read_table(self.location(table), columns=list(columns))

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        condition = pc.field("id") == keys[0] if len(keys) == 1 else pc.field("id").isin(list(keys))
        return ds.dataset(self.location(table)).to_table(filter=condition)


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return PlainParquet(directory, settings)
