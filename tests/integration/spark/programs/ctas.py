"""CREATE TABLE … AS, atomic, on two executor processes: tasks fail and executors are killed at each step of a task.

Arguments: an empty folder. In the environment TEST_WHERE says in JSON where the table comes into being. Each case is tried once,
after which the table is whole, and again and again until Spark gives up, after which there is nothing. A reader polls all the
while.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark_tablestore.engine import SparkEngine

import tablestore as ts
from tests.integration.spark.programs.failingdaemon import CASE, HOWS
from tests.table.creation.creationsteps import Step
from tests.table.creation.where import LONG_AGO, Where, count

ROWS, POLLS, ALWAYS = 40_000, 200, 1_000
folder = Path(sys.argv[1])
where = Where(**json.loads(os.environ["TEST_WHERE"]))
# Only the topic of a keyed table is compared with its rows.
columns, bucket = ("", "-1") if where.servers is None else ("(PRIMARY KEY (id) NOT ENFORCED)", "2")
options = {"bucket": bucket, "write-buffer-size": "64 kb", **where.options}
given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


def try_case(environment: ts.TableEnvironment, step: Step, how: str, times: int) -> None:
    """Make the table while a task dies ``times`` times at a step."""
    case = f"{step.name}-{how}-{times}"
    marks = folder / case
    marks.mkdir()
    (folder / "case").write_text(json.dumps({"step": step.name, "how": how, "times": times, "marks": str(marks)}))
    catalog = where.open()
    job = environment.execute_sql(
        f"CREATE TABLE t {columns} WITH ({given}) AS SELECT id, sha2(CAST(id AS STRING), 256) AS text FROM range(0, {ROWS}, 1, 4)"
    ).job
    assert job is not None
    seen = [count(catalog)]
    while not job.wait(0.05):
        # It comes just before the table.
        assert times == 1 or not where.has_topic(), f"{case}: there is a topic without a table"
        seen.append(count(catalog))
    seen += [count(catalog) for _ in range(POLLS - len(seen))]
    assert list(marks.iterdir()), f"nothing happened at {case}"
    if times == 1:
        job.result()
        assert set(seen) <= {-1, ROWS}, f"{case}: a reader saw a part: {set(seen)}"
        check_whole(catalog, case)
        catalog.drop_table("default.t")
    else:
        try:
            job.result()
        except ts.TablestoreError:
            pass
        else:
            raise AssertionError(f"{case}: the job ended well")
        assert set(seen) == {-1}, f"{case}: a reader saw {set(seen)}"
    catalog.sweep_creations(LONG_AGO)
    assert not where.has_topic(), f"{case}: its topic is left"
    assert not (left := where.left()), f"{case}: {left}"


def check_whole(catalog: ts.Catalog, case: str) -> None:
    """Each row is in the table once, and so in its topic, if it has one."""
    table = catalog.table("default.t")
    assert isinstance(table, ts.Table)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(ROWS)), case
    if where.servers is not None:
        table.change_log.publish()
        assert table.change_log.verify().problems == (), case


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
# What it says of executors that are killed would hide what this program says.
spark.sparkContext.setLogLevel("OFF")

settings = {"table.ctas.atomicity-enabled": "true", "table.dml-sync": "false"}
with ts.TableEnvironment.create(dict(where.catalog), engine=SparkEngine(spark), config=settings) as made:
    for one in (step for step in Step if step.is_of_a_task):
        for kind in HOWS:
            for often in (1, ALWAYS):
                try_case(made, one, kind, often)
spark.stop()
