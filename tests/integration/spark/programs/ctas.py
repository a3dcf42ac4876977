"""CREATE TABLE … AS, atomic, on two executor processes: tasks fail and executors are killed at each step of a task.

Arguments: an empty folder. Each case is tried once, after which the table is whole, and again and again until Spark gives up, after
which there is nothing. A reader polls all the while.
"""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark_tablestore.engine import SparkEngine

import tablestore as ts
from tests.integration.spark.programs.failingdaemon import CASE, HOWS
from tests.table.creation.creationsteps import Step

ROWS, POLLS, ALWAYS = 40_000, 200, 1_000
folder = Path(sys.argv[1])
warehouse = folder / "warehouse"


def count(environment: ts.TableEnvironment) -> int | None:
    """How many rows another reader sees; None: there is no table."""
    try:
        return environment.catalog().table("default.t").scan().count()
    except ts.NotFoundError:
        return None


def try_case(environment: ts.TableEnvironment, step: Step, how: str, times: int) -> None:
    """Make the table while a task dies ``times`` times at a step."""
    marks = folder / f"{step.name}-{how}-{times}"
    marks.mkdir()
    (folder / "case").write_text(json.dumps({"step": step.name, "how": how, "times": times, "marks": str(marks)}))
    job = environment.execute_sql(
        "CREATE TABLE t WITH ('bucket' = '-1', 'write-buffer-size' = '64 kb') "
        f"AS SELECT id, sha2(CAST(id AS STRING), 256) AS text FROM range(0, {ROWS}, 1, 4)"
    ).job
    assert job is not None
    seen = [count(environment)]
    while not job.wait(0.05):
        seen.append(count(environment))
    seen += [count(environment) for _ in range(POLLS - len(seen))]
    assert list(marks.iterdir()), f"nothing happened at {marks.name}"
    catalog = environment.catalog()
    if times == 1:
        job.result()
        assert set(seen) <= {None, ROWS}, f"{marks.name}: a reader saw a part: {set(seen)}"
        table = catalog.table("default.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(ROWS)), marks.name
        catalog.drop_table("default.t")
    else:
        try:
            job.result()
        except ts.TablestoreError:
            pass
        else:
            raise AssertionError(f"{marks.name}: the job ended well")
        assert set(seen) == {None}, f"{marks.name}: a reader saw {set(seen)}"
    catalog.sweep_creations(older_than=timedelta(0))
    left = [path for path in warehouse.rglob("*") if path.is_file() and path.name != "_database"]
    assert not left, f"{marks.name}: {left}"


os.environ[CASE] = str(folder / "case")
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    f"spark.executorEnv.{CASE}": str(folder / "case"),
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.python.daemon.module": "tests.integration.spark.programs.failingdaemon",
    "spark.task.maxFailures": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.warehouse.dir": str(folder / "spark"),
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

settings = {"table.ctas.atomicity-enabled": "true", "table.dml-sync": "false"}
with ts.TableEnvironment.create(warehouse, engine=SparkEngine(spark), config=settings) as made:
    for one in (step for step in Step if step.is_of_a_task):
        for kind in HOWS:
            for often in (1, ALWAYS):
                try_case(made, one, kind, often)
spark.stop()
