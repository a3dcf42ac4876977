"""Drives Iceberg in Spark: format version 2, merge on read."""

from typing import Any

from spark import SparkSystem
from system import System


class SparkIceberg(SparkSystem):
    """Tables of a catalog of folders."""

    def configuration(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.bench.type": "hadoop",
            "spark.sql.catalog.bench.warehouse": f"file:{self.directory}/warehouse",
        }

    def location(self, table: str) -> str:
        return f"{self.directory}/warehouse/db/{table}"

    def definition(self) -> str:
        modes = ", ".join(f"'write.{name}.mode' = 'merge-on-read'" for name in ("delete", "update", "merge"))
        return f"USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})"

    def compact(self, table: str) -> None:
        options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        self.spark.sql(f"CALL bench.system.rewrite_data_files(table => 'db.{table}', options => {options})").collect()


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkIceberg(directory, settings)
