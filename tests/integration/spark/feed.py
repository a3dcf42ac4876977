"""A stream of files for tests, and the crash that is worst for its sink."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Feed:
    """A folder of Parquet files; each is a batch of its stream."""

    spark: "SparkSession"
    folder: Path
    schema: pa.Schema

    def add(self, rows: Mapping[int, object], **columns: list[object]) -> None:
        """A batch: ids and their values."""
        self.folder.mkdir(exist_ok=True)
        number = len(list(self.folder.iterdir()))
        table = pa.table({"id": list(rows), "v": list(rows.values()), **columns}, schema=self.schema)
        file = self.folder / f"{number:06d}.parquet"
        pq.write_table(table, file)
        # The source takes files in the order of their times.
        os.utime(file, (number + 1, number + 1))

    def read(self) -> "DataFrame":
        """The stream of all that was added, now and later."""
        from pyspark_tablestore.typemapping import spark_schema

        from tablestore.types.arrowtypes import fields_from_arrow

        schema = spark_schema(fields_from_arrow(self.schema)[0])
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


def forget_last(checkpoint: Path) -> int:
    """What a crash between the commit of a batch and Spark's note of it leaves behind; the batch."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    return last
