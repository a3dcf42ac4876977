"""What does it cost a stream of Spark to look rows up by their keys, next to Spark's own join with the table?

    look-up            pyspark_tablestore.lookup: the keys of a batch are looked up in the table's files
    broadcast join     Spark sends the keys of a batch to all tasks, and reads the table to find them: its fastest join here

Batches of 10,000 keys from all over a table of 10 million rows, one task at a time (``local[1]``). The first batches, which start
workers and fill caches, do not count.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ours
from benchmarks.measure import Sample, Timing, WrongRows
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS, ROWS, KEYS = 4, 10_000_000, 10_000
COLD = 3
LOOKUP, JOIN = "look-up", "broadcast join"


def run(setting: Setting) -> None:
    """The question of this module, if there is a Spark."""
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"Spark: {why}")
        return
    with setting.workspace("lookup") as space:
        workload = Workload("bigint", setting.scaled(ROWS), setting.seed)
        table = ours.create(space, "looked_up", workload, buckets=BUCKETS)
        ours.load(table, workload.base())
        table.compact(full=True)
        keys = _write_keys(setting, workload, space / "keys")
        with spark_session(space) as spark:
            import pyspark_tablestore
            from pyspark.sql import functions as sf

            stream = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(space / "keys"))
            joins = {
                LOOKUP: pyspark_tablestore.lookup(stream, table.location, on="id", how="inner"),
                JOIN: pyspark_tablestore.read(spark, table.location).join(sf.broadcast(stream), "id"),
            }
            timings = {name: _batches(spark, name, frame, space, keys) for name, frame in joins.items()}
    result = Result(
        name="Spark: look-ups of a stream",
        question=f"How long does a batch of {keys:,} keys take that is joined with a table of {workload.rows:,} rows?",
        rows=keys,
        base=JOIN,
        timings=timings,
    )
    setting.add(result)
    setting.add_bar(result.bar("look-up / broadcast join with the table, a batch of a stream", LOOKUP, JOIN, 1.0))


def _write_keys(setting: Setting, workload: Workload, folder: Path) -> int:
    """A file of keys for each batch; how many keys that is."""
    folder.mkdir()
    random, count = np.random.default_rng(setting.seed), min(KEYS, workload.rows)
    for number in range(COLD + setting.repeats):
        pq.write_table(pa.table({"id": random.choice(workload.rows, count, replace=False)}), folder / f"{number:03}.parquet")
    return count


def _batches(spark: "SparkSession", name: str, frame: "DataFrame", space: Path, keys: int) -> Timing:
    """The time of each batch, from planning it to Spark's own log."""
    found: list[int] = []
    writer = frame.writeStream.foreachBatch(lambda rows, _: found.append(rows.agg({"quantity": "count"}).collect()[0][0]))
    query = writer.option("checkpointLocation", str(space / name)).trigger(availableNow=True).start()
    query.awaitTermination()
    if set(found) != {keys}:
        raise WrongRows(f"{name}: expected {keys} rows in each batch, found {found}")
    taken = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress if progress.numInputRows]
    # The time of the processor is not known for a batch alone.
    return Timing(name, tuple(Sample(seconds, 0.0) for seconds in taken[COLD:]))
