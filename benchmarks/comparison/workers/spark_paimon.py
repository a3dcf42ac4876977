"""Drives Paimon in Spark."""

from typing import Any

from spark import Rows, SparkSystem
from system import System


class SparkPaimon(SparkSystem):
    """Tables with a primary key; rows of an equal key replace each other by INSERT."""

    def configuration(self) -> dict[str, str]:
        return {
            "spark.sql.catalog.bench": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.bench.warehouse": f"file:{self.directory}/warehouse",
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        }

    def location(self, table: str) -> str:
        return f"{self.directory}/warehouse/db.db/{table}"

    def definition(self) -> str:
        return f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '{self.settings['bucket']}', 'file.format' = 'parquet')"

    def constraint(self, column: str) -> str:
        return " NOT NULL" if column == "id" else ""

    def append(self, table: str, rows: Rows) -> None:
        rows.frame.createOrReplaceTempView("changed")
        self.spark.sql(f"INSERT INTO {self.named(table)} SELECT * FROM changed").collect()

    def upsert(self, table: str, rows: Rows) -> None:
        self.append(table, rows)

    def compact(self, table: str) -> None:
        self.spark.sql(f"CALL bench.sys.compact(table => 'db.{table}')").collect()


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkPaimon(directory, settings)
