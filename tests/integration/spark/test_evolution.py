"""Spark reads and writes tables that were altered: files of every older schema in the newest columns."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

import tablestore as ts
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32()), pa.field("s", pa.string())])


@pytest.fixture(params=["keyed", "append"])
def evolved(request: pytest.FixtureRequest, catalog: Catalog) -> Table:
    """Rows of three schemas; the names of two columns have changed hands."""
    keyed = request.param == "keyed"
    options = {"bucket": "2", "write-only": "true"} if keyed else {"write-only": "true"}
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"] if keyed else [], options=options)
    write = Table.upsert if keyed else Table.append
    write(table, pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    table = table.alter([ts.RenameColumn("n", to="x"), ts.RenameColumn("s", to="n"), ts.ChangeType("x", "BIGINT")])
    write(table, pa.table({"id": [3], "x": [2**40], "n": ["c"]}))
    table = table.alter([ts.AddColumn("s", "DOUBLE", default="0.5"), ts.SetTableComment("third")])
    write(table, pa.table({"id": [2, 4], "x": [None, 4], "n": ["B", None], "s": [None, 0.5]}, schema=table.schema))
    return table


def expected(table: Table) -> list[str]:
    return sorted(str(sorted(row.items())) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.deep
def test_old_files_read_in_the_newest_columns_both_ways(spark: "SparkSession", evolved: Table) -> None:
    loaded = spark.read.format("tablestore").load(evolved.location)
    assert loaded.columns == ["id", "x", "n", "s"]
    for frame in (loaded, pyspark_tablestore.read(spark, evolved.location)):
        assert sorted(str(sorted(row.items())) for row in frame.toArrow().to_pylist()) == expected(evolved)
    narrow = pyspark_tablestore.read(spark, evolved.location, columns=["id"])
    assert sorted(row.id for row in narrow.collect()) == sorted(evolved.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    then = spark.read.format("tablestore").option("snapshot-id", "1").load(evolved.location)
    assert then.columns == ["id", "n", "s"]
    assert sorted(row.n for row in then.collect()) == [1, 2]


@pytest.mark.deep
def test_spark_writes_the_newest_columns_and_their_defaults(spark: "SparkSession", evolved: Table) -> None:
    rows = spark.createDataFrame([(9, 9, "nine", None)], "id long, x long, n string, s double")
    rows.write.format("tablestore").mode("append").save(evolved.location)
    found = evolved.scan(filter="id = 9").to_arrow().to_pylist()
    assert found == [{"id": 9, "x": 9, "n": "nine", "s": 0.5}]
