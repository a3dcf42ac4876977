"""A stream from one table into another in 500 batches: what the JVM, its Python workers and this process hold on the way.

Arguments: an empty folder, and how the batches are written: ``sink`` or ``writer``. Prints a line of JSON: megabytes by
batch. Run by test_stream_memory.py.
"""

import gc
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark_tablestore import foreach_batch_writer

from tablestore import open_catalog

BATCHES, EVERY = 500, 10


def resident(process: int) -> int:
    """0 for one that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def below(parent: int) -> set[int]:
    """The processes that a process and those below it have started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, last = set[int](), {parent}
    while last:
        last = {process for process, its in parents.items() if its in last}
        found |= last
    return found


def measured(java: Any) -> dict[str, float]:
    runtime = java.java.lang.Runtime.getRuntime()
    for _ in range(2):
        # What the first one finds unused, threads of Spark's then let go.
        java.java.lang.System.gc()
    gc.collect()
    workers = [resident(one) for one in below(java.java.lang.ProcessHandle.current().pid())]
    heap = runtime.totalMemory() - runtime.freeMemory()
    sizes = {"heap": heap, "workers": sum(workers), "largest": max(workers), "driver": resident(os.getpid())}
    return {name: round(size / 1e6, 1) for name, size in sizes.items()}


folder, way = Path(sys.argv[1]), sys.argv[2]
catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("d")
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
source = catalog.create_table("d.source", schema=schema, primary_key=["id"], options={"bucket": "2", "write-only": "true"})
target = catalog.create_table("d.target", schema=schema, primary_key=["id"], options={"bucket": "2"})
for number in range(BATCHES):
    source.upsert(pa.table({"id": range(number, number + 1000), "v": [f"{number}-{one}" for one in range(1000)]}, schema=schema))

builder = SparkSession.builder.master("local[2]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # What Spark keeps of jobs that are done, for its pages, is no part of the stream.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
java: Any = spark.sparkContext._jvm
found: dict[int, dict[str, float]] = {}

stream = spark.readStream.format("tablestore").option("row-kinds", "true").option("from-snapshot", "0")
changes = stream.option("max-files-per-trigger", "2").load(source.location)
writer = foreach_batch_writer(target.location)


def write(rows: DataFrame, number: int) -> None:
    writer(rows, number)
    if number % EVERY == 0:
        found[number] = measured(java)


made = changes.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
if way == "writer":
    made.foreachBatch(write).start().awaitTermination()
else:
    query = made.format("tablestore").start(target.location)
    while not query.awaitTermination(0.05):  # type: ignore[arg-type]
        if (last := query.lastProgress) is not None and last.batchId // EVERY * EVERY not in found:
            found[last.batchId // EVERY * EVERY] = measured(java)
rows, copied = (table.refresh().scan().to_arrow().sort_by("id") for table in (source, target))
assert rows == copied, "the stream has written something else"
assert target.refresh().snapshots()[-1].id >= BATCHES
sys.stdout.write(json.dumps(found) + "\n")
spark.stop()
