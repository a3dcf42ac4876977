"""Forks the Python workers of the tests' Spark session, as ``pyspark.daemon`` does, with all modules imported once for all of them.

A task that fails or stops early costs Spark its worker, and the next one would import tablestore, Arrow and pandas for a second or
more. How workers begin by themselves is shown by the programs of tests/integration/spark/programs, which have Spark's own daemon.
"""

import importlib
from contextlib import suppress

from pyspark.daemon import manager

_PRELOADED = (
    "pandas",
    "pyspark.worker",
    "pyspark_tablestore.compact",
    "pyspark_tablestore.publish",
    "pyspark_tablestore.reader",
    "pyspark_tablestore.writer",
    "pytest",
    "tablestore.distributed.change",
    "tablestore.distributed.compact",
    "tablestore.distributed.publish",
    "tablestore.distributed.read",
    "tablestore.distributed.write",
    "tablestore.log.alterlog",
    "tablestore_kafka.logstore",
)

if __name__ == "__main__":
    for name in _PRELOADED:
        # What is not installed, or fails, shows where a task needs it.
        with suppress(Exception):
            importlib.import_module(name)
    manager()
