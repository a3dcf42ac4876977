"""Constraints hold for rows that Spark's tasks write: of frames, of statements, and of streams."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tablestore.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHECKS = {"positive": "price > 0"}


def table_of(catalog: Catalog) -> ts.Table:
    return catalog.create_table("shop.t", "id BIGINT NOT NULL, price DOUBLE", "id", checks=CHECKS)


def rows(table: ts.Table) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


@pytest.mark.deep
def test_a_frame_with_a_row_that_violates_a_constraint_is_not_written(spark: "SparkSession", catalog: Catalog) -> None:
    table = table_of(catalog)
    frame = spark.createDataFrame([(1, 2.0), (2, -1.0)], "id BIGINT, price DOUBLE")
    with pytest.raises(Exception, match=r"'positive', CHECK \(price > 0\): price = -1.0"):
        frame.write.format("tablestore").mode("append").save(table.location)
    frame.where("price > 0").write.format("tablestore").mode("append").save(table.location)
    assert rows(table) == [(1, 2.0)]


def test_statements_on_spark_refuse_rows_that_violate_a_constraint(spark: "SparkSession", warehouse: str) -> None:
    with ts.TableEnvironment.create(warehouse, spark=spark) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, price DOUBLE CONSTRAINT positive CHECK (price > 0))")
        env.execute_sql("INSERT INTO t SELECT id, id + 1.0D FROM range(3)")
        for statement in (
            "INSERT INTO t SELECT id, -1.0D FROM range(3)",
            "UPDATE t SET price = price - 2 WHERE id < 2",
            "MERGE INTO t USING (SELECT id, -5.0D AS price FROM range(9)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        ):
            with pytest.raises(ts.InvalidInputError, match="'positive'") as error:
                env.execute_sql(statement)
            assert error.value.kind == "constraint"
        assert rows(env.catalog().table("default.t")) == [(0, 1.0), (1, 2.0), (2, 3.0)]


@pytest.mark.deep
def test_a_stream_stops_at_a_row_that_violates_a_constraint(spark: "SparkSession", catalog: Catalog, tmp_path: Path) -> None:
    source, table = catalog.create_table("shop.s", "id BIGINT, price DOUBLE"), table_of(catalog)
    source.append([{"id": 1, "price": 3.0}, {"id": 2, "price": -1.0}])
    stream = spark.readStream.format("tablestore").load(source.location).selectExpr("id", "price")
    query = (
        stream.writeStream.format("tablestore")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(table.location)
    )
    with pytest.raises(Exception, match="'positive'"):
        query.awaitTermination()
    assert rows(table) == []
