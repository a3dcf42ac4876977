"""A Spark program on a cluster of two executor processes: written, read in many tasks, streamed and compacted. A task is run again.

Arguments: an empty folder. Run by test_processes.py. In the environment TEST_MASTER may name a cluster, TEST_INSTALLED the only
folder that tablestore may come from; with TEST_KILL an executor is killed in the middle of the stream.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import tablestore_kafka
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark_tablestore import read, write
from pyspark_tablestore.compact import compact

import tablestore
from tablestore import open_catalog

folder = Path(sys.argv[1])


def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0 and context.partitionId() == 1:
        raise RuntimeError("lost on purpose")


def kill_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import signal

    yield from batches
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() == 0 and not (folder / "killed").exists():
        (folder / "killed").touch()
        # Worker, daemon, executor. The worker lives on for a while beside the attempt that follows.
        os.kill(int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyspark_tablestore
    import tablestore_kafka

    import tablestore

    del batches
    modules = [tablestore, pyspark_tablestore, tablestore_kafka]
    yield pa.record_batch({"place": [str(module.__file__) for module in modules], "process": [os.getppid()] * len(modules)})


builder = SparkSession.builder.master(os.environ.get("TEST_MASTER", "local-cluster[2,1,1024]"))
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": str(folder / "spark"),
    "spark.sql.session.timeZone": "America/New_York",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

if installed := os.environ.get("TEST_INSTALLED"):
    found = spark.range(0, 2, 1, 2).mapInArrow(places, "place STRING, process BIGINT", barrier=True).collect()
    used = {tablestore.__file__, tablestore_kafka.__file__, *(row.place for row in found)}
    assert all(place and Path(place).is_relative_to(installed) for place in used), used
    assert len({row.process for row in found}) == 2, "the two tasks run at one time, in both executors"

catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
options = {"bucket": "4", "write-buffer-size": "64 kb", "write-only": "true"}
table, copy = (catalog.create_table(f"shop.{name}", schema=schema, primary_key=["id"], options=options) for name in ("t", "copy"))

rows = spark.range(0, 10_000, 1, 4).selectExpr("id", "concat('n', id) AS name")
rows.mapInArrow(fail_once, rows.schema).write.format("tablestore").mode("append").save(table.location)
assert table.scan().count() == 10_000, "a retried task must neither lose nor double rows"
frame = spark.read.format("tablestore").option("split-size", "1 kb").load(table.location)
assert frame.rdd.getNumPartitions() >= 4
assert frame.selectExpr("sum(id)", "count(DISTINCT name)").collect() == [(sum(range(10_000)), 10_000)]

snapshot = write(rows.where("id < 10").selectExpr("id", "'new' AS name"), table.location)
assert snapshot is not None
assert snapshot.id == 2
table.delete("id >= 9000")

# All of that as changes into another table.
stream = spark.readStream.format("tablestore").options(**{"row-kinds": "true", "from-snapshot": "0"}).load(table.location)
changes = stream.mapInArrow(kill_once, stream.schema) if "TEST_KILL" in os.environ else stream
sink = changes.writeStream.format("tablestore").option("checkpointLocation", str(folder / "checkpoint"))
sink.trigger(availableNow=True).start(copy.location).awaitTermination()
assert copy.scan().to_arrow().sort_by("id") == table.scan().to_arrow().sort_by("id")
assert "TEST_KILL" not in os.environ or (folder / "killed").exists(), "no executor was killed"

report = compact(spark, table.location, full=True)
assert report.tasks == 4, report
assert read(spark, table.location, filter="name = 'new'").count() == 10
assert frame.where("name = 'new'").count() == 0, "the older relation stays on its snapshot"
spark.stop()
