"""A stream into a table with a topic. A task that publishes its batch kills the driver and its JVM, and lives on for a while.

Arguments: a folder with the table and the feed. Run twice by test_processes.py: nobody is killed the second time.
"""

import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession
from pyspark_tablestore import foreach_batch_writer

from tablestore.distributed.spec import TableSpec
from tablestore.log.publish.backlog import Backlog
from tablestore.log.publish.publisher import PublishReport

folder, driver = Path(sys.argv[1]), os.getpid()


def killing(spec: TableSpec, slots: int, slot: int, *, look: bool) -> PublishReport:
    import signal

    from tablestore.distributed.publish import publish_slot
    from tablestore.log.publish.publisher import LogPublisher

    record = LogPublisher._record

    def recorded(self: LogPublisher, *progress: Any) -> None:
        record(self, *progress)
        if slot == 1 and not (folder / "killed").exists():
            (folder / "killed").touch()
            # Worker, daemon, JVM.
            os.kill(int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
            os.kill(driver, signal.SIGKILL)

    with patch("tablestore.log.publish.publisher.MAX_RECORDS", 50), patch.object(LogPublisher, "_record", recorded):
        return publish_slot(spec, slots, slot, look=look)


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
rows = spark.readStream.schema("id BIGINT, v STRING").parquet(str(folder / "feed"))
sink = rows.writeStream.foreachBatch(foreach_batch_writer(str(folder / "warehouse" / "d.db" / "t")))
with (
    patch("pyspark_tablestore.publish.publish_slot", killing),
    patch("pyspark_tablestore.publish.PARALLEL_BACKLOG", Backlog(rows=1, bytes=1)),
):
    sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
spark.stop()
