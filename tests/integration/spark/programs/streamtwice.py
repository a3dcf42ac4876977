"""A stream into a table whose task waits at one row, so that another process can run the same query from the same checkpoint.

HOLD_AT=ID python streamtwice.py FOLDER      at the row with this id makes the file ``held`` and reads the pipe ``go``
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

folder, hold = Path(sys.argv[1]), int(os.environ["HOLD_AT"])


def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if hold in batch["id"].to_pylist():
            (folder / "held").touch()
            (folder / "go").read_bytes()
        yield batch


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder / "feed"))
sink = rows.mapInArrow(held, "id BIGINT").writeStream.format("tablestore").option("checkpointLocation", str(folder / "checkpoint"))
try:
    sink.trigger(availableNow=True).start(str(folder / "warehouse" / "d.db" / "t")).awaitTermination()
finally:
    spark.stop()
