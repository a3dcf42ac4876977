"""Drives Spark's own Parquet files: the floor."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from spark import Rows, SparkSystem, summed
from system import Cannot, System


class SparkParquet(SparkSystem):
    """A folder of files a table."""

    def configuration(self) -> dict[str, str]:
        return {"spark.sql.parquet.compression.codec": "zstd"}

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        """Nothing is made before the first rows."""

    def append(self, table: str, rows: Rows) -> None:
        rows.frame.write.mode("append").parquet(self.location(table))

    def upsert(self, table: str, rows: Rows) -> None:
        raise Cannot("upserts: it has no key and no merge")

    def read(self, table: str, columns: Sequence[str]) -> Any:
        return summed(self.spark.read.parquet(self.location(table)), columns)

    def compact(self, table: str) -> None:
        raise Cannot("compaction")


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkParquet(directory, settings)
