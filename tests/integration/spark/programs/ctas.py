"""CREATE TABLE … AS, atomic, on two executor processes that are killed in the middle: once, and again and again.

Arguments: an empty folder. Run by test_processes.py, which looks at what is left of it.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark_tablestore.engine import SparkEngine

import tablestore as ts

ROWS, FATAL = 400_000, 390_000
folder = Path(sys.argv[1])


def killer(marks: Path, times: int) -> Callable[[int], int]:
    """A function that ends the executor it runs in at one row in the middle of the last task, ``times`` times."""

    def kill(number: int) -> int:
        import os
        import signal

        if number == FATAL and len(list(marks.iterdir())) < times:
            # Worker, daemon, executor. The workers live on for a while beside the attempt that follows.
            daemon = os.getppid()
            (marks / str(daemon)).touch()
            os.kill(int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
        return number

    return kill


def count(environment: ts.TableEnvironment, name: str) -> int | None:
    """How many rows another reader sees; None: there is no table."""
    try:
        return environment.catalog().table(f"default.{name}").scan().count()
    except ts.NotFoundError:
        return None


builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.task.maxFailures": "2",
    # Small batches and many rows: the killed task has begun its file by then, though the function runs ahead of the writer.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.warehouse.dir": str(folder / "spark"),
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

settings = {"table.ctas.atomicity-enabled": "true", "table.dml-sync": "false"}
with ts.TableEnvironment.create(folder / "warehouse", engine=SparkEngine(spark), config=settings) as environment:
    for name, times in (("whole", 1), ("nothing", 2)):
        marks = folder / name
        marks.mkdir()
        environment.create_temporary_function(f"kill_{name}", killer(marks, times), arguments=["BIGINT"], returns="BIGINT")
        job = environment.execute_sql(
            f"CREATE TABLE {name} WITH ('bucket' = '-1', 'write-buffer-size' = '64 kb') "
            f"AS SELECT kill_{name}(id) AS id, sha2(CAST(id AS STRING), 256) AS text FROM range(0, {ROWS}, 1, 4)"
        ).job
        assert job is not None
        seen = {count(environment, name)}
        while not job.wait(0.1):
            seen.add(count(environment, name))
        assert len(list(marks.iterdir())) == times, "no executor was killed"
        failed: ts.TablestoreError | None = None
        try:
            job.result()
        except ts.TablestoreError as error:
            failed = error
        if name == "whole":
            assert failed is None, failed
        else:
            assert isinstance(failed, ts.StorageError) and "Spark gave the job up" in str(failed), failed
        assert seen <= {None, ROWS}, f"a reader saw a part: {seen}"
spark.stop()
