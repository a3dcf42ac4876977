"""A Spark Connect client and server; a broken neighbour keeps the source from being found, registering it helps.

Arguments: an empty folder. Run by test_processes.py, which puts the broken neighbour on PYTHONPATH.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark_tablestore import read, register, write

from tablestore import InvalidInputError, TableEnvironment, open_catalog

folder = Path(sys.argv[1])
catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
table = catalog.create_table("shop.t", schema=schema, primary_key=["id"], options={"bucket": "2"})
table.upsert(pa.table({"id": range(10), "at": pa.array(range(10), pa.timestamp("us", tz="UTC"))}))

spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.sql.session.timeZone", "America/New_York")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", str(folder / "spark"))
    .getOrCreate()
)
assert "connect" in type(spark).__module__
register(spark)

frame = spark.read.format("tablestore").load(table.location)
assert frame.count() == 10
frame.selectExpr("id + 100 AS id", "at").write.format("tablestore").mode("append").save(table.location)
assert table.scan().count() == 20
spark.sql(f"CREATE TEMPORARY VIEW t USING tablestore OPTIONS (path '{table.location}')")
spark.sql("INSERT INTO t SELECT id + 1000, at FROM t WHERE id < 5")
assert table.scan().count() == 25
snapshot = write(frame.selectExpr("id + 2000 AS id", "at"), table.location)
assert snapshot is not None
assert snapshot.id == 4
union = read(spark, table.location)
assert union.count() == 35
assert {row["at"] for row in table.scan().to_arrow().to_pylist()} == {row["at"] for row in union.toArrow().to_pylist()}
layered = catalog.create_table("shop.layered", schema=schema, primary_key=["id"], options={"bucket": "1", "write-only": "true"})
for ids, at in ((range(100), 0), (range(5, 10), 1), (range(8, 12), 2)):
    layered.upsert(pa.table({"id": ids, "at": pa.array([at] * len(ids), pa.timestamp("us", tz="UTC"))}))
layered.delete(pa.table({"id": [50]}))
for filter in (None, "id IN (9, 50, 51)"):
    found = read(spark, layered.location, filter=filter)
    assert found.toArrow().sort_by("id").to_pylist() == layered.scan(filter=filter).to_arrow().sort_by("id").to_pylist()
# This program runs where file names are ASCII: other paths are read by us, in a table that Spark reads natively.
parts = catalog.create_table("shop.parts", schema=pa.schema([("p", pa.string()), ("x", pa.float64())]), partition_by=["p"])
parts.append(pa.table({"p": ["\u00e9", "\U0001f9ee", "plain"], "x": [1.0, float("nan"), 3.0]}))
for filter in (None, "x > 1"):
    both = read(spark, parts.location, filter=filter)
    found = sorted(row.p for row in both.collect())
    assert found == sorted(parts.scan(filter=filter).to_arrow()["p"].to_pylist())
assert len(read(spark, parts.location).inputFiles()) == 1
abroad = open_catalog(str(folder / "\u00e9"))
abroad.create_database("shop")
other = abroad.create_table("shop.t", schema=pa.schema([("id", pa.int64())]))
other.append(pa.table({"id": [1]}))
assert read(spark, other.location).count() == 1
# The environment works through Connect too.
with TableEnvironment.create(folder / "env", spark=spark) as env:
    env.execute_sql("CREATE TABLE t (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    env.execute_sql("UPDATE t SET v = v + 1 WHERE id = 2")
    env.execute_sql("MERGE INTO t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert env.execute_sql("SELECT id, v FROM t WHERE v < :most ORDER BY id", most=100).to_arrow().to_pylist() == [
        {"id": 1, "v": 10},
        {"id": 2, "v": 21},
    ]
    env.execute_sql("ALTER TABLE t COMPACT")
    with pytest.raises(InvalidInputError, match="NOT NULL") as refused:
        env.execute_sql("INSERT INTO t SELECT nullif(id, 1), 1 FROM t")
    assert refused.value.kind == "null-in-not-null"
    with pytest.raises(InvalidInputError, match="nope"):
        env.execute_sql("SELECT nope FROM t").to_arrow()
    env.create_temporary_function("half", lambda x: x / 2, arguments=["DOUBLE"], returns="DOUBLE")
    # Called twice, so that no place is said: the message ends with what the function raised.
    with pytest.raises(InvalidInputError, match=r"function half raised TypeError: [^\n]* \([^\n]*, line \d+\)\Z"):
        env.execute_sql("SELECT half(3) AS x, half(NULL) AS y").to_arrow()
with pytest.raises(Exception, match="no table at"):
    spark.read.format("tablestore").load(str(folder / "none")).count()
spark.stop()
