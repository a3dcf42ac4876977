"""A session whose ``python3`` is an interpreter without tablestore: nothing works until ``register``, and then everything does.

Arguments: an empty folder. Run by test_processes.py, which puts such a ``python3`` first on PATH.
"""

import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark_tablestore import compact, read, register, write

from tablestore import TableEnvironment, open_catalog

# What this process has loaded, its workers are not to find on the way.
del os.environ["PYSPARK_PYTHON"]
os.environ.pop("PYTHONPATH", None)

folder = Path(sys.argv[1])
catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
table = catalog.create_table("shop.t", schema=schema, primary_key=["id"], options={"bucket": "2"})
table.upsert(pa.table({"id": range(10), "note": ["old"] * 10}))

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
    spark.read.format("tablestore").load(table.location)

register(spark)
frame = spark.read.format("tablestore").load(table.location)
assert frame.count() == 10
frame.selectExpr("id + 100 AS id", "note").write.format("tablestore").mode("append").save(table.location)
assert write(frame.selectExpr("id + 200 AS id", "note"), table.location) is not None
assert read(spark, table.location).count() == 30
compact.compact(spark, table.location, full=True)
with TableEnvironment.create(str(folder / "warehouse"), spark=spark) as env:
    env.execute_sql("UPDATE shop.t SET note = upper(note) WHERE id < 5")
stream = spark.readStream.format("tablestore").load(table.location).writeStream.format("noop")
query = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
query.awaitTermination()
assert table.scan(filter="note = 'OLD'").count() == 5
