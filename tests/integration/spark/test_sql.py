"""Temporary views read and write a table in SQL."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def items(catalog: Catalog) -> Table:
    schema = pa.schema([("item", pa.string()), ("kind", pa.string()), ("price", pa.decimal128(8, 2))])
    return catalog.create_table("shop.items", schema=schema, primary_key=["kind", "item"], partition_by=["kind"])


@pytest.mark.deep
def test_view_selects_inserts_and_overwrites(spark: "SparkSession", items: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW items USING tablestore OPTIONS (path '{items.location}')")
    assert spark.sql("INSERT INTO items VALUES ('pen', 'office', 1.5), ('cup', 'kitchen', 2), ('ink', 'office', 8)").collect() == []
    spark.sql("INSERT INTO items (price, kind, item) VALUES (9, 'office', 'ink')")
    assert {row["item"]: float(row["price"]) for row in items.scan().to_arrow().to_pylist()} == {"pen": 1.5, "cup": 2, "ink": 9}
    spark.sql("INSERT OVERWRITE items SELECT upper(item), kind, price FROM items WHERE kind = 'office'")
    assert sorted(items.scan().to_arrow()["item"].to_pylist()) == ["INK", "PEN", "cup"]


@pytest.mark.deep
def test_view_with_all_options(spark: "SparkSession", items: Table, warehouse: str) -> None:
    items.upsert(pa.table({"item": ["a", "b"], "kind": ["x", "y"]}), missing_columns="null")
    items.upsert(pa.table({"item": ["c"], "kind": ["x"]}), missing_columns="null")
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW part USING tablestore OPTIONS (warehouse '{warehouse}', table 'shop.items', "
        "`snapshot-id` 1, columns 'item', filter 'kind = ''x''')"
    )
    assert [row.item for row in spark.sql("SELECT * FROM part").collect()] == ["a"]
    with pytest.raises(Exception, match="a write takes no columns and no filter and no snapshot-id"):
        spark.sql("INSERT INTO part VALUES ('z')")


@pytest.mark.deep
def test_view_joins_and_aggregates(spark: "SparkSession", items: Table) -> None:
    items.upsert(pa.table({"item": [f"i{n}" for n in range(100)], "kind": ["x", "y"] * 50}), missing_columns="null")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW many USING tablestore OPTIONS (path '{items.location}')")
    query = "SELECT a.kind, count(*) AS n FROM many a JOIN many b USING (item) WHERE a.kind = 'x' GROUP BY a.kind"
    assert [tuple(row) for row in spark.sql(query).collect()] == [("x", 50)]
