"""DISTRIBUTED BY RANGE on Spark: bounds are sampled, and each task writes a range."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


def test_a_table_of_a_query(spark: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="spark", spark=spark) as env:
        spark.range(0, 4000, 1, 3).selectExpr("pmod(id * 7919, 4000) AS id", "pmod(id, 2) AS half").createOrReplaceTempView("s")
        env.execute_sql("CREATE TABLE t DISTRIBUTED BY RANGE (id) INTO 5 BUCKETS AS SELECT * FROM s")
        env.execute_sql("CREATE TABLE p PARTITIONED BY (half) DISTRIBUTED BY RANGE (id) INTO 3 BUCKETS AS SELECT * FROM s")
        for name, count, read in (("t", 5, 1), ("p", 6, 2)):
            table = env.catalog().table(f"default.{name}")
            assert isinstance(table, ts.Table)
            assert table.scan().count() == 4000 and table.files().num_rows == count
            # Bounds are those of a sample: the range may begin in one file and end in the next.
            text = table.scan(filter="id BETWEEN 2100 AND 2110").explain()
            assert int(text.split("files      ")[1].split(" of ")[0]) in (read, 2 * read)
