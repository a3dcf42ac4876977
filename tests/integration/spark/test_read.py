"""Spark reads what the table holds, as of the snapshot that its relation was made with."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


def rows(ids: range, price: float = 1.0, day: str = "mon") -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids), "price": [price] * len(ids)}, schema=ROWS)


@pytest.fixture
def prices(catalog: Catalog) -> Table:
    """Two overlapping snapshots and a delete: 25 rows."""
    table = catalog.create_table("shop.prices", schema=ROWS, primary_key=["id"], options={"bucket": "2"})
    table.upsert(rows(range(20)))
    table.upsert(rows(range(10, 30), price=2.0))
    table.delete("id < 5")
    return table


def load(spark: "SparkSession", table: Table, **options: object) -> "DataFrame":
    texts = {key.replace("_", "-"): str(value) for key, value in options.items()}
    return spark.read.format("tablestore").options(**texts).load(table.location)


def content(frame: "DataFrame") -> list[dict[str, object]]:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: str(row))


def scanned(table: Table, **how: object) -> list[dict[str, object]]:
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=lambda row: str(row))  # type: ignore[arg-type]


@pytest.mark.deep
def test_by_path_and_by_warehouse_and_table(spark: "SparkSession", prices: Table, warehouse: str) -> None:
    assert content(load(spark, prices)) == scanned(prices)
    named = spark.read.format("tablestore").option("warehouse", warehouse).option("table", "shop.prices").load()
    assert content(named) == scanned(prices)
    assert load(spark, prices).schema.simpleString() == "struct<id:bigint,day:string,price:double>"
    assert [field.nullable for field in named.schema] == [False, True, True]


def test_columns_filter_and_pruned_schema_read_less(spark: "SparkSession", prices: Table) -> None:
    some = load(spark, prices, columns="price, id", filter="price > 1.5 AND id < 15")
    assert some.columns == ["price", "id"]
    assert content(some) == scanned(prices, columns=["price", "id"], filter="price > 1.5 AND id < 15")
    assert load(spark, prices, columns='["day"]').columns == ["day"]
    pruned = spark.read.format("tablestore").schema("price double, id long").load(prices.location)
    assert content(pruned) == scanned(prices, columns=["price", "id"])


@pytest.mark.deep
def test_time_travel(spark: "SparkSession", prices: Table) -> None:
    first, second, _ = prices.snapshots()
    assert content(load(spark, prices, snapshot_id=1)) == scanned(prices, snapshot_id=1)
    assert content(load(spark, prices, timestamp_millis=second.time_millis)) == scanned(prices, snapshot_id=2)
    assert load(spark, prices, timestamp_millis=first.time_millis).count() == 20


@pytest.mark.deep
def test_one_frame_with_different_filters_and_joined_with_itself(spark: "SparkSession", prices: Table) -> None:
    frame = load(spark, prices)
    cheap, dear = frame.where("price < 1.5"), frame.where("price > 1.5")
    assert (cheap.count(), dear.count(), frame.count()) == (5, 20, 25)
    assert cheap.union(dear).count() == 25
    assert cheap.alias("a").join(frame.alias("b"), "id").count() == 5
    assert frame.select("id").where("id = 12").collect()[0].id == 12


@pytest.mark.deep
def test_relation_stays_on_its_snapshot_and_a_new_one_sees_the_newest(spark: "SparkSession", prices: Table) -> None:
    before = load(spark, prices)
    assert before.count() == 25
    prices.upsert(rows(range(100, 110)))
    assert before.count() == 25
    assert before.where("id > 0").count() == 25
    assert load(spark, prices).count() == 35


@pytest.mark.since(4, 1)
def test_relation_gets_its_snapshot_when_it_is_first_used(spark: "SparkSession", prices: Table) -> None:
    newest, first = load(spark, prices), load(spark, prices, snapshot_id=1)
    at = load(spark, prices, timestamp_millis=prices.snapshots()[1].time_millis)
    prices.upsert(rows(range(100, 110)))
    assert (newest.count(), first.count(), at.count()) == (35, 20, 30)


@pytest.mark.deep
def test_many_tasks_read_each_row_once(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.many", schema=ROWS, partition_by=["day"])
    for day in "abcde":
        table.append(rows(range(50), day=day))
    frame = load(spark, table, split_size="1 kb")
    assert frame.rdd.getNumPartitions() == 5
    assert content(frame) == scanned(table)


def test_table_without_rows_and_query_without_columns(spark: "SparkSession", catalog: Catalog, prices: Table) -> None:
    empty = catalog.create_table("shop.empty", schema=ROWS)
    frame = load(spark, empty)
    assert frame.collect() == []
    assert frame.columns == ROWS.names
    assert load(spark, prices).selectExpr("1 AS one").count() == 25


def test_schema_evolution_of_old_snapshots(spark: "SparkSession", prices: Table) -> None:
    assert load(spark, prices, snapshot_id=1).columns == ["id", "day", "price"]


def test_large_batches_come_whole(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.large", schema=pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": pa.array(range(300_000), pa.int64())}))
    total, count = load(spark, table).selectExpr("sum(n)", "count(n)").collect()[0]
    assert (total, count) == (sum(range(300_000)), 300_000)
