"""A client of a Spark Connect server that cannot see its files: tables lie in an object store.

Arguments: the client's own folder, the server's address, the bucket, and the store's options as JSON. Run by test_remoteconnect.py.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark_tablestore import read, write

from tablestore import InvalidInputError, TableEnvironment, open_catalog

folder, address, bucket = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
storage = json.loads(sys.argv[4])
spark = SparkSession.builder.remote(address).getOrCreate()
assert "connect" in type(spark).__module__
# The server has a disk of its own.
(folder / "mine").mkdir()
spark.range(3).write.mode("overwrite").parquet(str(folder / "mine" / "rows"))
assert list((folder / "mine").iterdir()) == []

catalog = open_catalog(f"{bucket}/warehouse", **storage)
catalog.create_database("shop")
schema = pa.schema([("id", pa.int64()), ("v", pa.int32())])
table = catalog.create_table("shop.t", schema=schema, primary_key=["id"], options={"bucket": "2"})
table.upsert(pa.table({"id": range(10), "v": [0] * 10}, schema=schema))
options = {f"storage.{key}": str(value) for key, value in storage.items()}

frame = spark.read.format("tablestore").options(**options).load(table.location)
assert frame.count() == 10
frame.selectExpr("id + 5 AS id", "v + 1 AS v").write.format("tablestore").options(**options).mode("append").save(table.location)
expected = [{"id": number, "v": int(number > 4)} for number in range(15)]
assert table.scan().to_arrow().sort_by("id").to_pylist() == expected
assert read(spark, table.location, storage_options=storage).toArrow().sort_by("id").to_pylist() == expected
snapshot = write(spark.range(15, 20).selectExpr("id", "CAST(7 AS INT) AS v"), table.location, storage_options=storage)
assert snapshot is not None
assert table.scan(filter="v = 7").count() == 5

with TableEnvironment.create(catalog, spark=spark) as env:
    env.execute_sql("USE shop")
    env.execute_sql("INSERT INTO t SELECT id + 100, v FROM t WHERE v = 7")
    env.execute_sql("UPDATE t SET v = v + 1 WHERE id >= 100")
    env.execute_sql("MERGE INTO t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    env.execute_sql("CREATE TABLE totals (v INT, n BIGINT, PRIMARY KEY (v) NOT ENFORCED)")
    env.execute_sql("INSERT OVERWRITE totals SELECT v, count(*) FROM t GROUP BY v")
    totals = env.execute_sql("SELECT v, n FROM totals ORDER BY v").to_arrow().to_pylist()
    assert totals == [{"v": 0, "n": 4}, {"v": 1, "n": 10}, {"v": 7, "n": 5}, {"v": 8, "n": 5}]
    env.execute_sql("CREATE TABLE chosen AS SELECT id FROM t WHERE v = 8")
    env.execute_sql("CREATE MATERIALIZED TABLE board FRESHNESS = INTERVAL '1' HOUR AS SELECT v, sum(id) AS s FROM t GROUP BY v")
    env.execute_sql("ALTER MATERIALIZED TABLE board REFRESH")
    assert env.execute_sql("SELECT s FROM board WHERE v = 8").to_arrow().to_pylist() == [{"s": 585}]
    env.execute_sql("ALTER TABLE t COMPACT")
    with pytest.raises(InvalidInputError, match="NOT NULL"):
        env.execute_sql("INSERT INTO t SELECT nullif(id, 0), v FROM t")
assert catalog.table("shop.chosen").scan().count() == 5
spark.stop()
