"""Drives Spark for the systems that are tables of Spark: what they share. One session, all cores, warmed by its own queries.

Reads are aggregates whose result is small, so that no system pays for rows in Python.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sums import CODE_MODULUS
from system import System

_TIE = 1009
_DEFINITIONS = {"int64": "BIGINT", "double": "DOUBLE", "string": "STRING"}


class SparkSystem(System):
    """A catalog ``bench`` with tables of one format. A subclass says what is special."""

    packages = ("pyspark",)
    catalog = "bench"

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        super().__init__(directory, settings)
        self.spark = _session(directory, settings.get("jars", ()), self.configuration())

    # -- what is special

    def configuration(self) -> dict[str, str]:
        """Settings of the session."""
        return {}

    def definition(self) -> str:
        """What follows the columns in CREATE TABLE."""
        return ""

    def named(self, table: str) -> str:
        """What SQL calls a table."""
        return f"{self.catalog}.db.{table}"

    # -- what all do

    def versions(self) -> dict[str, str]:
        java = self.spark._jvm.java.lang.System.getProperty("java.version")
        jars = {Path(jar).stem: "jar" for jar in self.settings.get("jars", ())}
        return {**super().versions(), "java": java, **jars}

    def cpu_seconds(self) -> float:
        return tree_cpu_seconds(os.getpid())

    def load(self, path: str) -> Any:
        """Rows in Spark's memory, with the schema of their file."""
        rows = self.spark.read.parquet(path).cache()
        rows.count()
        return Rows(rows)

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.named('t').rpartition('.')[0]}")
        columns = ", ".join(f"{field.name} {_DEFINITIONS[str(field.type)]}{self.constraint(field.name)}" for field in schema)
        self.spark.sql(f"CREATE TABLE {self.named(table)} ({columns}) {self.definition()}")

    def constraint(self, column: str) -> str:
        """What follows a column's type."""
        return ""

    def append(self, table: str, rows: "Rows") -> None:
        rows.frame.writeTo(self.named(table)).append()

    def upsert(self, table: str, rows: "Rows") -> None:
        rows.frame.createOrReplaceTempView("changed")
        self.spark.sql(
            f"MERGE INTO {self.named(table)} t USING changed s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def update(self, table: str) -> None:
        self.spark.sql(f"UPDATE {self.named(table)} SET quantity = quantity + 1 WHERE id % 100 = 3").collect()

    def delete(self, table: str) -> None:
        self.spark.sql(f"DELETE FROM {self.named(table)} WHERE id % 100 = 5").collect()

    def read(self, table: str, columns: Sequence[str]) -> Any:
        return summed(self.frame(table), columns)

    def frame(self, table: str) -> DataFrame:
        """All rows."""
        return self.spark.table(self.named(table))

    def close(self) -> None:
        self.spark.stop()


class Rows:
    """Rows in Spark's memory."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    @property
    def schema(self) -> pa.Schema:
        types = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
        return pa.schema([(field.name, types[field.dataType.simpleString()]) for field in self.frame.schema.fields])


def summed(frame: DataFrame, columns: Sequence[str]) -> dict[str, int]:
    """The sums of :mod:`sums`, by Spark."""
    expressions = {
        "id": "sum(id)",
        "quantity": "sum(quantity)",
        "price": "sum(cast(round(price * 100) as bigint))",
        "code": f"sum(cast(code as bigint) % {CODE_MODULUS})",
    }
    chosen = {"rows": "count(*)", **{name: expressions[name] for name in columns}}
    if {"id", "quantity"} <= set(columns):
        chosen["tied"] = f"sum((id % {_TIE}) * (quantity % {_TIE}))"
    (row,) = frame.selectExpr(*chosen.values()).collect()
    return dict(zip(chosen, map(int, row), strict=True))


def tree_cpu_seconds(root: int) -> float:
    """Processor seconds of a process and of all that it has started (the Java machine and its workers), where /proc tells."""
    parents: dict[int, list[int]] = {}
    taken: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        taken[int(folder.name)] = sum(map(int, fields[11:15]))
        parents.setdefault(int(fields[1]), []).append(int(folder.name))
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += taken.get(process, 0)
        todo += parents.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def _session(directory: str, jars: Sequence[str], configuration: dict[str, str]) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("comparison")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", f"{directory}/spark-warehouse")
        .config("spark.local.dir", f"{directory}/local")
        # As many as there are cores: the default of 200 is for clusters, and costs every system the same.
        .config("spark.sql.shuffle.partitions", "2")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    for name, value in configuration.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
