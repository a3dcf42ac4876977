"""A stream into a table in a process that kills itself, and its JVM, right after the commit of a batch. Run again, it goes on.

CRASH_AT=BATCH python streamcrash.py FOLDER      dies when this batch has landed and Spark has not noted it
"""

import os
import signal
import sys
from pathlib import Path

import pyspark_tablestore
from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    folder, crash = Path(sys.argv[1]), int(os.environ["CRASH_AT"])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    write = pyspark_tablestore.foreach_batch_writer(str(folder / "warehouse" / "d.db" / "t"))

    def write_and_die(rows: DataFrame, batch_id: int) -> None:
        write(rows, batch_id)
        if batch_id == crash:
            os.kill(java, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder / "feed"))
    sink = rows.writeStream.foreachBatch(write_and_die).option("checkpointLocation", str(folder / "checkpoint"))
    sink.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


main()
