"""What does it cost to read a table as a stream of Spark?

    full phase    the rows of a table as the first batches of a stream, next to a batch read of the same rows
    catching up   1,000 snapshots of 1,000 rows each, in one go
    freshness     from a commit of 1,000 rows to the end of the batch that has them, with a trigger of 200 ms

One task at a time (``local[1]``), the JVM and its Python workers on one core. Of a stream the time of its batches counts, from
planning to Spark's own log; not the start of the query.
"""

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import tablestore as ts
from benchmarks import ours
from benchmarks.measure import Case, Sample, WrongRows, tree_stopwatch
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS = 4
SNAPSHOTS, ROWS = 1_000, 1_000
COMMITS, COLD = 25, 5
TRIGGER = "200 milliseconds"
STREAM, BATCH = "stream", "batch read"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("price", pa.float64())])


def run(setting: Setting) -> None:
    """All questions of this module, if there is a Spark."""
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"Spark: {why}")
        return
    with setting.workspace("streamsource") as space, spark_session(space) as spark:
        _full(setting, spark, space)
        catalog = ts.open_catalog(str(space / "warehouse"))
        catalog.create_database("b")
        _catching_up(setting, spark, space, catalog)
        _freshness(setting, spark, space, catalog)


def _full(setting: Setting, spark: "SparkSession", space: Path) -> None:
    workload = Workload("bigint", setting.scaled(5_000_000), setting.seed)
    table = ours.create(space, "full", workload, buckets=BUCKETS)
    ours.load(table, workload.base())
    count = iter(range(1_000))

    def stream() -> Sample:
        return _streamed(spark, table, space / f"full{next(count)}", rows=workload.rows)

    def batch() -> Sample:
        frame = spark.read.format("tablestore").load(table.location)
        return tree_stopwatch(lambda: frame.write.format("noop").mode("overwrite").save())[0]

    result = Result(
        name="Spark: full phase of a stream",
        question="How fast does Spark read the rows of a table as a stream, next to a batch read of the same rows?",
        rows=workload.rows,
        base=BATCH,
        timings=setting.take_turns([Case(BATCH, batch), Case(STREAM, stream)]),
    )
    setting.add(result)
    setting.add_bar(Bar(name="batch read / full phase of a stream", measured=result.ratio(BATCH, STREAM), bound=0.6, at_least=True))


def _catching_up(setting: Setting, spark: "SparkSession", space: Path, catalog: Any) -> None:
    snapshots = setting.scaled(SNAPSHOTS)
    table = catalog.create_table("b.late", schema=SCHEMA, primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    for number in range(snapshots):
        table.upsert(_rows(number))
    count = iter(range(1_000))

    def stream() -> Sample:
        return _streamed(spark, table, space / f"late{next(count)}", rows=snapshots * ROWS, from_snapshot="0")

    timings = setting.take_turns([Case(STREAM, stream)])
    setting.add(
        Result(
            name="Spark: a stream catches up",
            question=f"How fast does a stream read {snapshots:,} snapshots of {ROWS:,} rows each?",
            rows=snapshots * ROWS,
            base=STREAM,
            timings=timings,
        )
    )
    rows, timing = snapshots * ROWS, timings[STREAM]
    # Of the JVM and all Python processes together: what one core would take, whatever else the machine does.
    setting.add_bar(
        Bar(
            name="rows of a stream that catches up, in a second of processor time",
            measured=rows / timing.cpu_median,
            bound=200_000,
            unit="",
            at_least=True,
            note=f"{rows / timing.median:,.0f} rows/s on the clock",
        )
    )


def _freshness(setting: Setting, spark: "SparkSession", space: Path, catalog: Any) -> None:
    table = catalog.create_table("b.fresh", schema=SCHEMA, primary_key=["id"], options={"bucket": str(BUCKETS)})
    ended: dict[int, float] = {}

    def note(rows: "DataFrame", number: int) -> None:
        if rows.count():
            ended[len(ended)] = time.perf_counter()

    stream = spark.readStream.format("tablestore").option("log.scan", "latest").load(table.location)
    writer = stream.writeStream.foreachBatch(note).option("checkpointLocation", str(space / "fresh"))
    query = writer.trigger(processingTime=TRIGGER).start()
    taken = []
    try:
        while not query.recentProgress:
            time.sleep(0.1)
        for number in range(COMMITS):
            table.upsert(_rows(number))
            landed = time.perf_counter()
            while len(ended) <= number:
                time.sleep(0.01)
            taken.append(max(ended[number] - landed, 0.0))
    finally:
        query.stop()
    found = statistics.median(taken[COLD:])
    setting.add_bar(
        Bar(name=f"s from a commit to the end of its batch, trigger of {TRIGGER}", measured=found, bound=1.0, unit=" s")
    )


def _streamed(spark: "SparkSession", table: ts.Table, checkpoint: Path, *, rows: int, **options: str) -> Sample:
    """All there is as a stream, into nothing."""
    texts = {key.replace("_", "-"): value for key, value in options.items()}
    stream = spark.readStream.format("tablestore").options(**texts).load(table.location)
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    sample, query = tree_stopwatch(lambda: _ended(writer.trigger(availableNow=True).start()))
    if (found := sum(progress.numInputRows for progress in query.recentProgress)) != rows:
        raise WrongRows(f"a stream of {table.name}: expected {rows} rows, found {found}")
    seconds = sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress) / 1000
    return Sample(seconds, sample.cpu)


def _ended(query: Any) -> Any:
    query.awaitTermination()
    return query


def _rows(number: int) -> pa.Table:
    ids = number * ROWS + np.arange(ROWS, dtype=np.int64)
    return pa.table({"id": ids, "name": [f"name {one}" for one in ids], "price": ids / 7}, schema=SCHEMA)
