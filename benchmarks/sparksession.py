"""Spark as the benchmarks run it: one task at a time, and Parquet in the codec of our data files.

Each session has a Java machine of its own: what Java compiled for the queries of one question slows down those of another.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As many tasks behind a shuffle as the tables have buckets.
SHUFFLE_PARTITIONS = 4


def why_no_spark() -> str | None:
    """Why there can be no session; None if there can."""
    if missing := [name for name in ("pyspark", "pyspark_tablestore") if find_spec(name) is None]:
        return f"there is no {missing[0]}"
    return why_no_java()


def why_no_java() -> str | None:
    """Why no Java machine can be started; None if one can."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home, "bin"))) is None:
        return f"JAVA_HOME is {home}, where there is no bin/java"
    if not home and shutil.which("java") is None:
        return "no Java on this machine"
    return None


@contextmanager
def spark_session(space: Path) -> "Iterator[SparkSession]":
    """A session of one core, with its own files in a directory and a Java machine of its own, which ends with it."""
    from pyspark import SparkContext

    spark = _start(space)
    try:
        yield spark
    finally:
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None, "a session has a gateway"
        gateway.shutdown()
        # It ends when nobody is left to talk to it.
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def _start(space: Path) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .appName("tablestore benchmarks")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(space / "spark-warehouse"))
        .config("spark.sql.shuffle.partitions", str(SHUFFLE_PARTITIONS))
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
