"""What older versions of Spark lack is refused by name, and all else works: one table through everything."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.engine import BoundQuery, Function
from tests.integration.spark.sparkversion import sparkversion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("at", pa.timestamp("us"))])
AT = "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
ROWS = f"SELECT id, concat('v', id) AS v, {AT} AS at FROM range(%d, %d)"


@pytest.fixture
def stock(catalog: ts.Catalog, spark: "SparkSession") -> ts.Table:
    """A keyed table with the rows 0 to 9, written by the data source."""
    table = catalog.create_table("shop.stock", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    spark.sql(ROWS % (0, 10)).write.format("tablestore").mode("append").save(table.location)
    return table


def values(table: ts.Table) -> dict[int, str]:
    rows = table.refresh().scan().to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def test_rows_are_upserted_read_and_clustered(spark: "SparkSession", stock: ts.Table) -> None:
    from pyspark_tablestore import read, register, write

    # Whether Spark has found it by itself, or knows it already.
    register(spark)
    register(spark)
    frame = spark.read.format("tablestore").load(stock.location)
    assert (frame.count(), frame.join(frame, "id").count()) == (10, 10)
    snapshot = write(spark.sql(ROWS % (5, 15)).selectExpr("id", "'new' AS v", "at"), stock.location, cluster=True)
    assert snapshot is not None and sorted(values(stock)) == list(range(15))
    # As often as it is used.
    assert (frame.count(), frame.join(frame, "id").count()) == (10, 10)
    native = read(spark, stock.location)
    assert native.where(f"v = 'new' AND at = {AT}").count() == 10


def test_statements_read_and_change_tables(spark: "SparkSession", stock: ts.Table, warehouse: str) -> None:
    with ts.TableEnvironment.create(warehouse, spark=spark) as env:
        env.execute_sql("USE shop")
        env.execute_sql(
            f"MERGE INTO stock AS t USING ({ROWS % (8, 12)}) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = concat(t.v, '+') WHEN NOT MATCHED THEN INSERT *"
        )
        assert [values(stock)[id] for id in range(7, 12)] == ["v7", "v8+", "v9+", "v10", "v11"]
        env.execute_sql("CREATE TABLE copied (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, v, at FROM stock WHERE id > 7")
        assert env.execute_sql("SELECT count(*) AS n, max(at) = min(at) AS one FROM copied").to_arrow().to_pylist() == [
            {"n": 4, "one": True}
        ]
        # The rows of this process: in no session does a time without a zone get one.
        changes = env.execute_sql("SELECT at FROM table_changes('stock', 0)").to_arrow()
        assert changes.schema.types == [pa.timestamp("us")]
        assert changes["at"].unique().to_pylist() == stock.scan(columns=["at"]).to_arrow()["at"].unique().to_pylist()
        env.execute_sql("CREATE MATERIALIZED TABLE counted AS SELECT v, count(*) AS n FROM stock GROUP BY v")
        env.execute_sql("DELETE FROM stock WHERE id < 10")
        env.execute_sql("ALTER MATERIALIZED TABLE counted REFRESH")
        assert env.execute_sql("SELECT v, n FROM counted ORDER BY v").to_arrow().to_pylist() == [
            {"v": "v10", "n": 1},
            {"v": "v11", "n": 1},
        ]


def test_a_stream_is_written_by_the_sink_or_batch_by_batch(spark: "SparkSession", stock: ts.Table, tmp_path: Path) -> None:
    from pyspark_tablestore import foreach_batch_writer

    spark.sql(ROWS % (5, 15)).selectExpr("id", "'s' AS v", "at").write.parquet(str(tmp_path / "feed"))
    writer = spark.readStream.schema("id LONG, v STRING, at TIMESTAMP_NTZ").parquet(str(tmp_path / "feed")).writeStream
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    if sparkversion() < (4, 1):
        with pytest.raises(Exception, match=r"no writeStream\.format\(\"tablestore\"\), Spark 4\.1 has.*foreachBatch"):
            writer.format("tablestore").start(stock.location).awaitTermination()
        writer = writer.option("checkpointLocation", str(tmp_path / "other"))
        writer.foreachBatch(foreach_batch_writer(stock.location)).start().awaitTermination()
    else:
        writer.format("tablestore").start(stock.location).awaitTermination()
    assert [values(stock)[id] for id in (4, 5, 14)] == ["v4", "s", "s"]


def test_a_stream_of_a_table_is_read_or_refused(spark: "SparkSession", stock: ts.Table, tmp_path: Path) -> None:
    rows: list[Any] = []
    writer = spark.readStream.format("tablestore").load(stock.location).writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
    if sparkversion() < (4, 2):
        with pytest.raises(Exception, match=r"no readStream\.format\(\"tablestore\"\), Spark 4\.2 has.*table\.consume"):
            query.start().awaitTermination()
    else:
        query.start().awaitTermination()
        assert sorted(row.id for row in rows) == list(range(10))


def test_functions_take_columns_or_are_refused_and_take_values(spark: "SparkSession") -> None:
    from pyspark_tablestore.engine import SparkEngine

    engine, at = SparkEngine(spark), pa.timestamp("us")
    query = BoundQuery(text=f"SELECT same({AT}) AS at")
    by_column, by_value = (
        Function(name="same", call=lambda value: value, arguments=(at,), returns=at, by_column=by_column)
        for by_column in (True, False)
    )
    if sparkversion() < (4, 1):
        with pytest.raises(
            ts.UnsupportedError, match=r"no functions of Arrow columns, Spark 4\.1 has; let function same take"
        ) as refused:
            engine.register_function("same", by_column)
        assert refused.value.kind == "engine"
    for function in (by_value, *([by_column] if sparkversion() >= (4, 1) else [])):
        engine.register_function("same", function)
        rows = engine.read(query).read_all()
        assert (rows.schema.types, rows["at"].cast(pa.int64()).to_pylist()) == ([at], [253_402_300_799_999_999])
