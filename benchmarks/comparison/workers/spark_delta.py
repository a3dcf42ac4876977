"""Drives Delta Lake in Spark, with deletion vectors."""

from typing import Any

from spark import SparkSystem
from system import System


class SparkDelta(SparkSystem):
    """Tables of Spark's own catalog, as Delta wants it."""

    catalog = "spark_catalog"

    def configuration(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def location(self, table: str) -> str:
        return f"{self.directory}/spark-warehouse/db.db/{table}"

    def definition(self) -> str:
        return "USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"

    def compact(self, table: str) -> None:
        # Files with deleted rows are written anew, then small ones put together.
        self.spark.sql(f"REORG TABLE {self.named(table)} APPLY (PURGE)").collect()
        self.spark.sql(f"OPTIMIZE {self.named(table)}").collect()


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkDelta(directory, settings)
