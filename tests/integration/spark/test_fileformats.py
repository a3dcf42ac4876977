"""Tables whose data files are ORC or Avro: tasks of Spark write the format of the table, and read it."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tablestore.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.decimal128(10, 2)), ("at", pa.timestamp("us"))]
)


@pytest.mark.deep
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_tasks_write_the_format_of_the_table_and_read_it(spark: "SparkSession", catalog: Catalog, file_format: str) -> None:
    from pyspark_tablestore import read

    table = catalog.create_table(
        "shop.formats", schema=COLUMNS, primary_key=["id"], options={"bucket": "2", "file.format": file_format}
    )
    query = "SELECT id, concat('v', id) AS v, CAST(id AS DECIMAL(10, 2)) AS n, TIMESTAMP_NTZ '2024-01-01 00:00:00.5' AS at"
    for first, last in ((0, 20), (10, 30)):
        spark.sql(f"{query} FROM range({first}, {last})").write.format("tablestore").mode("append").save(table.location)
    assert set(catalog.table("shop.formats").system("files").to_arrow()["file_format"].to_pylist()) == {file_format}
    expected = [(number, f"v{number}") for number in range(30)]
    loaded = spark.read.format("tablestore").load(table.location)
    assert sorted((row.id, row.v) for row in loaded.collect()) == expected
    assert sorted((row.id, row.v) for row in read(spark, table.location).collect()) == expected
