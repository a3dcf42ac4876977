"""Starts a Spark session for an environment that was given none: local, in UTC, and quiet.

Spark's log would come between the answers of a shell. What an error means is in the error itself; a session that the user hands in
logs as the user says.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pyspark
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from tablestore.errors import StorageError, UnsupportedError

_LOGGING = Path(__file__).with_name("quiet.properties")
_SETTINGS = {
    "spark.app.name": "tablestore",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A text means what it says: Spark would put variables of the process in the place of ${env:…}.
    "spark.sql.variable.substitute": "false",
    # TIME is a preview in Spark 4.3, off by default.
    "spark.sql.timeType.enabled": "true",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_WORKERS = "PYSPARK_PYTHON"
_SHOWN_BYTES = 1000


def running_session() -> SparkSession | None:
    """The session of this thread, or of the Spark that runs in this process; None if there is none."""
    active = SparkSession.getActiveSession()
    context: Any = getattr(pyspark, "SparkContext", None)
    if active is None and context is not None and context._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    return active


def own_session(settings: Mapping[str, str]) -> SparkSession:
    """Starts Spark in this process. Raises UnsupportedError without Java or Spark, StorageError if it does not start."""
    if not hasattr(pyspark, "SparkContext"):
        raise UnsupportedError(
            "the package pyspark-client starts no Spark: hand in a session of a server, spark=SparkSession.builder.remote(…), or "
            "pip install 'managed-tablestore[spark]'",
            kind="no-engine",
        )
    # Said by pyspark beside a newer pandas, to a user who did not ask for either.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    # Workers have to be this interpreter, and pyspark asks the environment alone.
    os.environ.setdefault(_WORKERS, sys.executable)
    conf = pyspark.SparkConf(loadDefaults=False).setAll([*_SETTINGS.items(), *settings.items()])
    builder = SparkSession.builder.config(map=dict(conf.getAll()))
    with tempfile.TemporaryFile() as output:
        try:
            if not is_remote() and pyspark.SparkContext._gateway is None:
                pyspark.SparkContext._ensure_initialized(gateway=_gateway(conf, output), conf=conf)
            session = builder.getOrCreate()
        except Exception as error:
            raise _not_started(error, output) from error
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    return session


def _gateway(conf: "pyspark.SparkConf", output: IO[bytes]) -> Any:
    # Classic Spark alone has it.
    from pyspark.java_gateway import launch_gateway

    launch: Any = launch_gateway
    return launch(conf, {"stderr": output})


def _not_started(error: Exception, output: IO[bytes]) -> UnsupportedError | StorageError:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
    words = output.read().decode(errors="replace").strip() or str(error)
    if "JAVA_HOME" in words or "java: not found" in words or "java: No such file" in words:
        return UnsupportedError(f"the engine spark needs Java 17 or newer: install it, or set JAVA_HOME ({words})", kind="no-java")
    return StorageError(f"Spark did not start: {words}", kind="spark")
