"""The half of the demo that needs Spark: the same table, read, queried and written by a Spark program."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from examples.flights.expected import difference, flights_at
from examples.flights.python import TABLE, LoadedYear, size
from examples.flights.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_NEEDED = 17
DELAYS = "SELECT origin, count(*), avg(arr_delay) FROM flights GROUP BY origin ORDER BY origin"
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
# Spark takes the level of this logger for its default, and says so aloud where it differs from the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


def why_not() -> str | None:
    """What is missing for Spark and how to get it, or None."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed; run: pip install 'managed-tablestore[spark]'"
    if find_spec("pyspark_tablestore") is None:
        return "the data source pyspark_tablestore is not installed; run: pip install . (or make demo) in the checkout"
    java = _java()
    fix = f"install Java {JAVA_NEEDED} or later (Debian, Ubuntu: apt install default-jre-headless), or set JAVA_HOME"
    if java is None:
        return f"there is no Java on this machine; {fix}"
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < JAVA_NEEDED:
        first = shown.strip().partition("\n")[0]
        return f"{java} is not Java {JAVA_NEEDED} or later ({first}); {fix}"
    return None


def run(warehouse: str, loaded: LoadedYear, report: Report, scratch: Path) -> None:
    """Read and write the same table through Spark."""
    with report.part("Spark") as counts:
        report.step("Start Spark on two cores")
        with report.busy("starting"):
            spark = session(scratch)
        report.say(f"Spark {spark.version}; the data source was found by its name, nothing to register")
        try:
            _read(report, spark, warehouse, loaded)
            _write(report, spark, loaded)
        finally:
            spark.stop()
        counts.rows, counts.snapshots, counts.files = size(loaded.table)


def _read(report: Report, spark: "SparkSession", warehouse: str, loaded: LoadedYear) -> None:
    report.step("Ask the same table in Spark SQL, now and as of the end of June")
    raw = loaded.raw
    place = f"warehouse '{warehouse}', table '{TABLE}'"
    spark.sql(f"CREATE TEMPORARY VIEW flights USING tablestore OPTIONS ({place}, columns 'origin, arr_delay')")
    with report.busy("reading"):
        rows = spark.sql(DELAYS).collect()
    ours = pd.DataFrame([tuple(row) for row in rows], columns=["origin", "flights", "delay"]).round(6)
    groups = raw[raw["dep_time"].notna()].groupby("origin")
    theirs = pd.DataFrame({"flights": groups.size(), "delay": groups["arr_delay"].mean().round(6)}).reset_index()
    report.rows(["origin", "flights", "mean arrival delay"], ours.to_numpy().tolist())
    same = ours.to_dict("records") == theirs.to_dict("records")
    report.check("the same flights and delays by airport as pandas", None if same else f"pandas has {theirs}")

    june = spark.read.format("tablestore").option("snapshot-id", str(loaded.midyear.id)).load(loaded.table.location)
    with report.busy("reading"):
        count = june.where("status = 'scheduled'").count()
    expected = int((raw["month"] > 6).sum())
    promise = f"as of the end of June (snapshot {loaded.midyear.id}) {count:,} flights are still to come"
    report.check(promise, None if count == expected else f"pandas has {expected:,}")


def _write(report: Report, spark: "SparkSession", loaded: LoadedYear) -> None:
    report.step("Write through Spark: flights that left and never arrived are marked as diverted")
    lost = spark.read.format("tablestore").option("filter", "status = 'departed'").load(loaded.table.location)
    diverted = lost.replace("departed", "diverted", subset=["status"])
    with report.busy("writing"):
        diverted.write.format("tablestore").mode("append").save(loaded.table.location)
    snapshot = loaded.table.snapshots()[-1]
    report.say(f"snapshot {snapshot.id}: upserted by Spark, read back by Python")
    rows = loaded.table.scan().to_arrow()
    expected = flights_at(loaded.raw, departed=12, arrived=12, cancelled=12, diverted=True)
    report.check(f"all {rows.num_rows:,} flights as pandas has them", difference(rows, expected))


def session(scratch: Path) -> "SparkSession":
    """A local session that says nothing but errors and leaves nothing outside of ``scratch``."""
    from pyspark.sql import SparkSession

    logging = scratch / "log4j2.properties"
    logging.write_text(LOGGING)
    # pyspark 4.3 warns of pandas 3 as soon as it starts; here rows go between Python and Spark as Arrow.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    # Spark's workers have to be an interpreter that has tablestore installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .appName("tablestore demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.as_uri()}")
        .config("spark.sql.warehouse.dir", str(scratch / "spark-warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
