"""Tables with ``bucket = -2`` on Spark: tasks write rows that wait, executors compact them."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


def test_inserts_statements_and_compactions(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark_tablestore.compact import compact

    with ts.TableEnvironment.create(tmp_path / "wh", engine="spark", spark=spark) as env:
        env.execute_sql(
            "CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) "
            "WITH ('bucket' = '-2', 'postpone.default-bucket-num' = '2')"
        )
        table = env.catalog().table("default.t")
        assert isinstance(table, ts.Table)

        def rows() -> list[tuple[object, ...]]:
            return [tuple(row.values()) for row in env.execute_sql("SELECT * FROM t ORDER BY id").to_arrow().to_pylist()]

        spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS v").createOrReplaceTempView("hundred")
        env.execute_sql("INSERT INTO t SELECT * FROM hundred")
        env.execute_sql("INSERT INTO t SELECT id, 'b' FROM hundred WHERE id < 2")
        assert rows() == [] and len(list((Path(table.location) / "bucket-postpone").iterdir())) > 1
        report = compact(spark, table.location)
        assert report.buckets >= 2
        assert rows()[:3] == [(0, "b"), (1, "b"), (2, "a")] and len(rows()) == 100
        env.execute_sql("DELETE FROM t WHERE v = 'b' OR id > 3")
        env.execute_sql("ALTER TABLE t COMPACT")
        assert rows() == [(2, "a"), (3, "a")]
