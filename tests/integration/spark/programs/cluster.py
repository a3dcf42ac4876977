"""A Spark program on a cluster of two executor processes: found by name, read in many tasks, written, retried.

Arguments: an empty folder. Run by test_processes.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark_tablestore import read, write

from tablestore import open_catalog


def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0 and context.partitionId() == 1:
        raise RuntimeError("lost on purpose")


folder = Path(sys.argv[1])
catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
table = catalog.create_table("shop.t", schema=schema, primary_key=["id"], options={"bucket": "4", "write-buffer-size": "64 kb"})

builder = SparkSession.builder.master("local-cluster[2,1,1024]")
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

rows = spark.range(0, 10_000, 1, 4).selectExpr("id", "concat('n', id) AS name")
rows.mapInArrow(fail_once, rows.schema).write.format("tablestore").mode("append").save(table.location)
assert table.scan().count() == 10_000, "a retried task must neither lose nor double rows"
frame = spark.read.format("tablestore").option("split-size", "1 kb").load(table.location)
assert frame.rdd.getNumPartitions() >= 4
assert frame.selectExpr("sum(id)", "count(DISTINCT name)").collect() == [(sum(range(10_000)), 10_000)]
snapshot = write(rows.where("id < 10").selectExpr("id", "'new' AS name"), table.location)
assert snapshot is not None
assert snapshot.id == 2
assert read(spark, table.location, filter="name = 'new'").count() == 10
assert frame.where("name = 'new'").count() == 0, "the older relation stays on its snapshot"
spark.stop()
