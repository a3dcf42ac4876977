"""VARIANT columns of managed tables are VARIANT columns in Spark, both ways."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

from tablestore.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


def test_variants_go_through_the_data_source_and_back(spark: "SparkSession", catalog: Catalog) -> None:
    variant = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", variant, metadata={b"tablestore.type": b"VARIANT"})])
    first, second = (catalog.create_table(f"shop.{name}", schema=schema, primary_key=["id"]) for name in ("first", "second"))
    rows = spark.sql(
        """SELECT id, parse_json(j) AS v FROM VALUES (1L, '{"a":1,"b":[true,null]}'), (2L, 'null'), (3L, NULL) AS t (id, j)"""
    )
    rows.write.format("tablestore").mode("append").save(first.location)
    for frame in (spark.read.format("tablestore").load(first.location), pyspark_tablestore.read(spark, first.location)):
        assert frame.schema["v"].dataType.simpleString() == "variant"
        texts = frame.selectExpr("id", "to_json(v) AS j", "variant_get(v, '$.a', 'int') AS a", "is_variant_null(v) AS n")
        assert [tuple(row) for row in texts.orderBy("id").collect()] == [
            (1, '{"a":1,"b":[true,null]}', 1, False),
            (2, "null", None, True),
            (3, None, None, False),
        ]
        pyspark_tablestore.write(frame, second.location)
    first.compact(full=True)
    assert second.scan().to_arrow().sort_by("id").equals(first.scan().to_arrow().sort_by("id"))
