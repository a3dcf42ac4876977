"""CREATE TABLE … AS in a process that stops at a named step, says so, and waits to be killed.

python stopping.py '{"catalog": {…}, "engine": "duckdb", "step": "NAMED", "options": {…}, "mark": "/tmp/…"}'

Spark's workers stop too (``stoppingdaemon``).
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import tablestore as ts
from tablestore.io.local import LocalFileStore
from tablestore.table.read.scan import ArrowSource
from tests.table.creation.creationsteps import Step, watch

ROWS = 40_000
SETTING = "TABLESTORE_TEST_STOPPING"


class Rows(ArrowSource):
    """Two batches for each of two files."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field("id", pa.int64(), nullable=False)])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, ROWS, 10_000):
            yield pa.record_batch({"id": range(start, start + 10_000)}, schema=self.schema)


def stop_at(step: Step, mark: Path) -> None:
    """Make the mark where the step is first come to, and wait to be killed."""

    def come(found: Step) -> None:
        if found is step:
            mark.touch()
            while True:
                signal.pause()

    stores: list[type] = [LocalFileStore]
    try:
        from tablestore.io.s3 import S3FileStore
    except ImportError:
        pass
    else:
        stores.append(S3FileStore)
    for store in stores:
        watch(store, come)


def arm() -> dict[str, object]:
    """Stop at the step of the setting; the setting."""
    given: dict[str, object] = json.loads(os.environ[SETTING])
    stop_at(Step[str(given["step"])], Path(str(given["mark"])))
    return given


def main() -> None:
    os.environ.setdefault(SETTING, sys.argv[1])
    given = arm()
    engine: object = given["engine"]
    if engine == "spark":
        from pyspark.sql import SparkSession
        from pyspark_tablestore.engine import SparkEngine

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.python.daemon.module", "tests.environment.programs.stoppingdaemon")
        engine = SparkEngine(builder.getOrCreate())
    settings = {"table.ctas.atomicity-enabled": "true"}
    with ts.TableEnvironment.create(given["catalog"], engine=engine, config=settings) as environment:  # type: ignore[arg-type]
        environment.create_temporary_view("rows", Rows())
        pipeline = environment.from_path("rows").save_as("t").options(given["options"]).primary_key("id")  # type: ignore[arg-type]
        pipeline.create().execute()


if __name__ == "__main__":
    main()
