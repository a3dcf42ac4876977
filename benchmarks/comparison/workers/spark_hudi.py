"""Drives Hudi in Spark: merge on read, a bucket index."""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from spark import Rows, SparkSystem
from system import System

_BUCKETS = "2"


class SparkHudi(SparkSystem):
    """Tables by path, which statements know as tables of Spark's own catalog."""

    catalog = "spark_catalog"

    def configuration(self) -> dict[str, str]:
        return {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        }

    def location(self, table: str) -> str:
        return f"{self.directory}/spark-warehouse/db.db/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        self.spark.sql("CREATE DATABASE IF NOT EXISTS db")
        super().create(table, schema, changes=changes)

    def definition(self) -> str:
        options = {
            "type": "mor",
            "primaryKey": "id",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": _BUCKETS,
            "hoodie.bucket.index.hash.field": "id",
        }
        return (
            f"USING hudi TBLPROPERTIES ({', '.join(f'{chr(39)}{k}{chr(39)} = {chr(39)}{v}{chr(39)}' for k, v in options.items())})"
        )

    def append(self, table: str, rows: Rows) -> None:
        self._write(table, rows, "bulk_insert")

    def upsert(self, table: str, rows: Rows) -> None:
        self._write(table, rows, "upsert")

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format("hudi").load(self.location(table))

    def compact(self, table: str) -> None:
        # By itself it compacts after five commits.
        where = f"path => '{self.location(table)}', options => 'hoodie.compact.inline.max.delta.commits=1'"
        for step in ("schedule", "run"):
            self.spark.sql(f"CALL run_compaction(op => '{step}', {where})").collect()

    def _write(self, table: str, rows: Rows, operation: str) -> None:
        options = {
            "hoodie.table.name": table,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": _BUCKETS,
            "hoodie.bucket.index.hash.field": "id",
            "hoodie.bulkinsert.shuffle.parallelism": _BUCKETS,
            "hoodie.upsert.shuffle.parallelism": _BUCKETS,
        }
        rows.frame.write.format("hudi").options(**options).mode("append").save(self.location(table))


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return SparkHudi(directory, settings)
