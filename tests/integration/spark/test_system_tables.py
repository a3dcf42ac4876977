"""Spark reads system tables and branches by the name behind the table's."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

from tablestore.store.history.branchfiles import branch_files
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemkinds import SYSTEM_TABLES
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])


def rows(ids: range, v: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def orders(catalog: Catalog) -> Table:
    """A compacted snapshot below an upsert and a delete."""
    table = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"], options={"bucket": "2", "write-only": "true"})
    table.upsert(rows(range(10), "a"))
    table.compact(full=True)
    table.upsert(rows(range(5, 15), "b"))
    table.delete("id = 0")
    return table


def load(spark: "SparkSession", path: str, **options: object) -> "DataFrame":
    texts = {key.replace("_", "-"): str(value) for key, value in options.items()}
    return spark.read.format("tablestore").options(**texts).load(path)


def content(frame: "DataFrame") -> list[str]:
    return sorted(str(sorted(row.items())) for row in frame.toArrow().to_pylist())


def expected(table: Table, name: str, **how: object) -> list[str]:
    data = table.system(name).scan(**how).to_arrow()  # type: ignore[arg-type]
    # Spark's times count microseconds.
    times = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in data.schema]
    return sorted(str(sorted(row.items())) for row in data.cast(pa.schema(times)).to_pylist())


FEW = ("snapshots", "partitions", "tags", "audit_log")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in SYSTEM_TABLES])
def test_every_system_table_by_path(spark: "SparkSession", orders: Table, name: str) -> None:
    frame = load(spark, f"{orders.location}${name}")
    assert frame.columns == orders.system(name).schema.names
    assert content(frame) == expected(orders, name)


def test_by_warehouse_and_table_with_columns_filter_and_snapshot(spark: "SparkSession", orders: Table, warehouse: str) -> None:
    reader = spark.read.format("tablestore").option("warehouse", warehouse).option("table", "shop.orders$files")
    assert content(reader.load()) == expected(orders, "files")
    some = load(spark, f"{orders.location}$files", columns="level,record_count", filter="level > 0", snapshot_id=2)
    assert some.columns == ["level", "record_count"]
    wanted = expected(orders, "files", columns=["level", "record_count"], filter="level > 0", snapshot_id=2)
    assert content(some) == wanted != []


@pytest.mark.deep
def test_a_view_of_a_system_table_sees_what_landed_since_and_joins(spark: "SparkSession", orders: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW history USING tablestore OPTIONS (path '{orders.location}$snapshots')")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW schemas USING tablestore OPTIONS (path '{orders.location}$schemas')")
    orders.upsert(rows(range(1), "c"))
    query = "SELECT max(snapshot_id) AS newest FROM history JOIN schemas USING (schema_id) WHERE commit_kind = 'APPEND'"
    assert spark.sql(query).collect()[0].newest == orders.snapshots()[-1].id


def test_read_optimised_is_planned_like_the_table_and_reads_plain_files(spark: "SparkSession", orders: Table) -> None:
    frame = pyspark_tablestore.read(spark, f"{orders.location}$ro")
    assert content(frame) == expected(orders, "ro")
    assert content(frame.filter("id > 8")) == expected(orders, "ro", filter="id > 8")
    assert {row["v"] for row in frame.toArrow().to_pylist()} == {"a"}


def test_the_function_read_takes_system_tables_too(spark: "SparkSession", orders: Table, warehouse: str) -> None:
    frame = pyspark_tablestore.read(
        spark, "shop.orders$snapshots", warehouse=warehouse, columns=["snapshot_id"], filter="snapshot_id > 1"
    )
    assert content(frame) == expected(orders, "snapshots", columns=["snapshot_id"], filter="snapshot_id > 1")


@pytest.mark.deep
def test_a_branch_is_read_and_written_as_the_branch(spark: "SparkSession", orders: Table) -> None:
    files = orders.context.files
    for directory in ("snapshot", "schema"):
        for info in files.list(directory, prefix=f"{directory}-"):
            branch_files(files, "b1").write(f"{directory}/{info.name}", files.read(f"{directory}/{info.name}"))
    path = f"{orders.location}$branch_b1"
    spark.createDataFrame([(0, "branch")], "id long, v string").write.format("tablestore").mode("append").save(path)
    assert content(load(spark, path, filter="id = 0")) == ["[('id', 0), ('v', 'branch')]"]
    assert content(pyspark_tablestore.read(spark, path, filter="id = 0")) == ["[('id', 0), ('v', 'branch')]"]
    assert content(pyspark_tablestore.read(spark, path)) != content(pyspark_tablestore.read(spark, orders.location))
    assert orders.scan(filter="id = 0").count() == 0
    assert load(spark, f"{path}$snapshots").count() == len(orders.snapshots()) + 1


@pytest.mark.deep
def test_a_system_table_cannot_be_written_and_a_wrong_name_is_said(spark: "SparkSession", orders: Table) -> None:
    frame = spark.createDataFrame([("x", "y")], "key string, value string")
    with pytest.raises(Exception, match="cannot be written"):
        frame.write.format("tablestore").mode("append").save(f"{orders.location}$options")
    with pytest.raises(Exception, match="did you mean 'options'"):
        load(spark, f"{orders.location}$option")
    with pytest.raises(Exception, match="no column 'nope'"):
        load(spark, f"{orders.location}$options", columns="nope")
