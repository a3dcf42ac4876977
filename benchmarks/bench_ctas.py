"""What does CREATE TABLE … AS cost through Spark, next to writing the same rows into a table that is there?

From a cached DataFrame into a keyed table of 4 buckets: ``pyspark_tablestore.write`` into an empty table, and the statement, with
the table made first and with the table made whole. One task at a time (``local[1]``), warm.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import tablestore as ts
from benchmarks import ours
from benchmarks.measure import Case, Sample, WrongRows, tree_stopwatch
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS = 4
WRITE, PLAIN, ATOMIC = "pyspark_tablestore.write", "CREATE TABLE … AS", "CREATE TABLE … AS, atomic"


def run(setting: Setting) -> None:
    """The one question of this module, if there is a Spark."""
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"CREATE TABLE … AS: {why}")
        return
    with setting.workspace("ctas") as space, spark_session(space) as spark:
        workload = Workload("bigint", setting.scaled(5_000_000), setting.seed)
        table = ours.create(space, "loaded", workload, buckets=BUCKETS)
        ours.load(table, workload.base())
        rows = spark.read.format("tablestore").load(table.location).coalesce(BUCKETS).cache()
        if (found := rows.count()) != workload.rows:
            raise WrongRows(f"Spark counts {found} rows of {workload.rows}")
        options = {**table.options()}
        cases = [
            Case(WRITE, partial(_written, setting, workload, rows)),
            Case(PLAIN, partial(_made, setting, spark, rows, workload.rows, options, "false")),
            Case(ATOMIC, partial(_made, setting, spark, rows, workload.rows, options, "true")),
        ]
        result = Result(
            name="Spark: CREATE TABLE … AS",
            question=f"How fast do cached rows become a keyed table of {BUCKETS} buckets?",
            rows=workload.rows,
            base=WRITE,
            timings=setting.take_turns(cases),
        )
    setting.add(result)
    for name in (PLAIN, ATOMIC):
        setting.add_bar(result.bar(f"Spark: {name} of {workload.rows:,} rows / {WRITE}", name, WRITE, 1.2))


def _written(setting: Setting, workload: Workload, rows: "DataFrame") -> Sample:
    import pyspark_tablestore

    with setting.workspace("fresh") as space:
        table = ours.create(space, "loaded", workload, buckets=BUCKETS)
        sample, _ = tree_stopwatch(lambda: pyspark_tablestore.write(rows, table.location))
        _check(ts.open_table(table.location), workload.rows)
    return sample


def _made(setting: Setting, spark: "SparkSession", rows: "DataFrame", count: int, options: dict[str, str], atomic: str) -> Sample:
    with setting.workspace("fresh") as space, ts.TableEnvironment.create(space, spark=spark) as environment:
        environment.get_config().set("table.ctas.atomicity-enabled", atomic)
        environment.create_temporary_view("rows", rows)
        given = {key: value for key, value in options.items() if not key.startswith("tablestore.")}

        def make() -> Any:
            return environment.from_path("rows").save_as("made").primary_key("id").options(given).create().execute()

        sample, _ = tree_stopwatch(make)
        table = environment.catalog().table("default.made")
        assert isinstance(table, ts.Table)
        _check(table, count)
    return sample


def _check(table: ts.Table, count: int) -> None:
    if (found := table.scan().count()) != count:
        raise WrongRows(f"expected {count} rows in the table, found {found}")
