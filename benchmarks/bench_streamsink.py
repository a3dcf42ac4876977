"""What does a batch of a stream cost, next to Spark's own Parquet file sink?

    batch     1,000 rows into a keyed table of 4 buckets: from the begin of the batch's work to its snapshot (Spark's ``addBatch``),
              by the sink, by ``foreach_batch_writer``, and by Spark's Parquet sink; warm, the queries take turns
    memory    of all Python processes below Spark, after 500 batches next to after 50

Run with ``--rows`` below a million the memory is not measured.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tablestore as ts
from benchmarks.measure import Sample, Timing, WrongRows
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

ROWS, BUCKETS = 1_000, 4
BATCHES, COLD = 12, 2
LONG, EARLY = 500, 50
SINK, WRITER, PARQUET = 'writeStream.format("tablestore")', "foreach_batch_writer", "Spark's Parquet sink"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("price", pa.float64())])
Sink = Callable[["DataFrame"], "DataStreamWriter"]


def run(setting: Setting) -> None:
    """All questions of this module, if there is a Spark."""
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"Spark: {why}")
        return
    import pyspark_tablestore

    with setting.workspace("stream") as space, spark_session(space) as spark:
        catalog = ts.open_catalog(str(space / "warehouse"))
        catalog.create_database("b")

        def table(name: str) -> ts.Table:
            return catalog.create_table(f"b.{name}", schema=SCHEMA, primary_key=["id"], options={"bucket": str(BUCKETS)})

        sink, batches, long = table("sink"), table("batches"), table("long")
        writer = pyspark_tablestore.foreach_batch_writer(batches.location)
        sinks: dict[str, Sink] = {
            PARQUET: lambda rows: rows.writeStream.format("parquet").option("path", str(space / "parquet")),
            SINK: lambda rows: rows.writeStream.format("tablestore").option("path", sink.location),
            WRITER: lambda rows: rows.writeStream.foreachBatch(writer),
        }
        _batches(setting, spark, space, sinks)
        expected = ROWS * BATCHES * (setting.repeats + 1)
        for one in (sink, batches):
            if (found := one.scan().count()) != expected:
                raise WrongRows(f"{one.name}: expected {expected} rows, found {found}")
        if setting.scale >= 1:
            _memory(setting, spark, space, long)


def _batches(setting: Setting, spark: "SparkSession", space: Path, sinks: dict[str, Sink]) -> None:
    samples: dict[str, list[Sample]] = {name: [] for name in sinks}
    feed = space / "feed"
    for turn in range(setting.repeats + 1):
        _add(feed, turn * BATCHES, BATCHES, setting.seed)
        for number, (name, sink) in enumerate(sinks.items()):
            found = _run(spark, feed, sink, space / f"checkpoint{number}")
            if turn:
                # Spark says how long a batch takes on the wall only.
                samples[name] += [Sample(seconds, 0.0) for seconds in found[COLD:]]
    result = Result(
        name="Spark: a batch of a stream",
        question=f"How long does a batch of {ROWS:,} rows take, from its begin to the commit ({BUCKETS} buckets)?",
        rows=ROWS,
        base=PARQUET,
        timings={name: Timing(name, tuple(taken)) for name, taken in samples.items()},
    )
    setting.add(result)
    for name in (SINK, WRITER):
        setting.add_bar(result.bar(f"batch of {ROWS:,} rows by {name} / {PARQUET}", name, PARQUET, 2.0))


def _memory(setting: Setting, spark: "SparkSession", space: Path, table: ts.Table) -> None:
    feed, found = space / "long", []
    for first, count in ((0, EARLY), (EARLY, LONG - EARLY)):
        _add(feed, first, count, setting.seed)
        _run(
            spark,
            feed,
            lambda rows: rows.writeStream.format("tablestore").option("path", table.location),
            space / "checkpoint-long",
        )
        found.append(_python_memory())
    early, late = found
    setting.add_bar(
        Bar(
            name=f"memory of Spark's Python processes after {LONG} batches / after {EARLY}",
            measured=late / early,
            bound=1.1,
            note=f"{early / 2**20:.0f} MiB and {late / 2**20:.0f} MiB",
        )
    )


def _add(folder: Path, first: int, count: int, seed: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        random = np.random.default_rng((seed, number))
        ids = number * ROWS + np.arange(ROWS, dtype=np.int64)
        random.shuffle(ids)
        columns = {"id": ids, "name": [f"name {one}" for one in ids], "price": random.random(ROWS)}
        path = folder / f"{number:06d}.parquet"
        pq.write_table(pa.table(columns, schema=SCHEMA), path)
        os.utime(path, (number + 1, number + 1))


def _run(spark: "SparkSession", feed: Path, sink: Sink, checkpoint: Path) -> list[float]:
    """Write all that is there and not written; the seconds of each batch."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(LONG))
    rows = spark.readStream.schema("id BIGINT, name STRING, price DOUBLE").option("maxFilesPerTrigger", 1).parquet(str(feed))
    query = sink(rows).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress.durationMs["addBatch"] / 1000 for progress in query.recentProgress if progress.numInputRows]


def _python_memory() -> int:
    """Bytes that the Python processes below this one hold (Spark's workers), shared pages counted once each."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                head, _, tail = (path / "stat").read_text().rpartition(")")
            except OSError:
                continue
            pid = int(path.name)
            parents[pid], names[pid] = int(tail.split()[1]), head.partition("(")[2]
    total = 0
    for pid, name in names.items():
        above = pid
        while above not in (0, 1, os.getpid()):
            above = parents.get(above, 0)
        if above == os.getpid() and pid != above and "python" in name:
            total += sum(
                int(line.split()[1]) * 1024
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                if line.startswith("Pss:")
            )
    return total
