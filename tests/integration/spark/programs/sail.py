"""A server of Sail in this process: whatever would read or write a table through it is refused by name.

Argument: an empty folder. Run by test_sail.py where pysail is installed.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyspark_tablestore
from pysail.spark import SparkConnectServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_tablestore.engine import open_engine

import tablestore as ts

folder = Path(sys.argv[1])
catalog = ts.open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
table = catalog.create_table("shop.t", schema=pa.schema([("id", pa.int64())]), primary_key=["id"])
table.upsert(pa.table({"id": range(10)}))
table.compact(full=True)

server = SparkConnectServer(port=0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
rows = spark.sql("SELECT 11L AS id")


def refused(call: Callable[[], object], error: type[Exception], words: str) -> None:
    try:
        call()
    except error as raised:
        assert words in str(raised), str(raised)
        return
    raise AssertionError(f"{words}: nothing was refused")


NO_SPARK = "expected a session of Apache Spark"
refused(lambda: pyspark_tablestore.read(spark, table.location), ts.UnsupportedError, NO_SPARK)
refused(lambda: pyspark_tablestore.write(rows, table.location), ts.UnsupportedError, NO_SPARK)
refused(lambda: pyspark_tablestore.register(spark), ts.UnsupportedError, NO_SPARK)
refused(lambda: open_engine(spark), ts.UnsupportedError, NO_SPARK)

# Past all of these, the source itself.
spark.dataSource.register(pyspark_tablestore.DefaultSource)
NO_SCHEMA = "expected a StructType of Apache Spark, found a pyarrow.lib.Schema"
source = spark.read.format("tablestore")
refused(lambda: source.load(table.location).selectExpr("sum(id)").collect(), PySparkException, NO_SCHEMA)
writer = rows.write.format("tablestore").mode("append")
refused(lambda: writer.save(table.location), PySparkException, NO_SCHEMA)
assert table.refresh().scan().count() == 10
server.stop()
