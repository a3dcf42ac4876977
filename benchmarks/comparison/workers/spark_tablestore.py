"""Drives tablestore in Spark: its data source to load and read, its SQL for statements."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyspark_tablestore
from spark import Rows, SparkSystem, summed
from system import System

import tablestore as ts


class SparkTablestore(SparkSystem):
    """Tables of one catalog on the local disk."""

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        super().__init__(directory, settings)
        self._env: ts.TableEnvironment | None = None

    def versions(self) -> dict[str, str]:
        return {"tablestore": ts.__version__, **super().versions()}

    def location(self, table: str) -> str:
        return f"{self.directory}/bench.db/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        catalog = ts.open_catalog(self.directory)
        catalog.create_database("bench", ignore_if_exists=True)
        keyed = pa.schema([field.with_nullable(field.name != "id") for field in schema])
        catalog.create_table(f"bench.{table}", schema=keyed, primary_key=["id"], options={"bucket": self.settings["bucket"]})

    def append(self, table: str, rows: Rows) -> None:
        pyspark_tablestore.write(rows.frame, self.location(table))

    def upsert(self, table: str, rows: Rows) -> None:
        # A table with a key takes rows as they come.
        self.append(table, rows)

    def update(self, table: str) -> None:
        self._sql(f"UPDATE bench.{table} SET quantity = quantity + 1 WHERE id % 100 = 3")

    def delete(self, table: str) -> None:
        self._sql(f"DELETE FROM bench.{table} WHERE id % 100 = 5")

    def read(self, table: str, columns: Sequence[str]) -> Any:
        return summed(pyspark_tablestore.read(self.spark, self.location(table)), columns)

    def compact(self, table: str) -> None:
        self._sql(f"CALL sys.compact(`table` => 'bench.{table}', full => true)")

    def _sql(self, statement: str) -> None:
        if self._env is None:
            self._env = ts.TableEnvironment.create(self.directory, engine="spark", spark=self.spark)
        self._env.execute_sql(statement)


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkTablestore(directory, settings)
