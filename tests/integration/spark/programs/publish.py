"""A Spark program on two executor processes, one of which is killed while it publishes.

Arguments: an empty folder. In the environment TEST_BROKERS says where the topic is, and TEST_MASTER may name a cluster. Run by
test_processes.py, which looks at the topic.
"""

import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark_tablestore.publish import publish

from tablestore import open_catalog
from tablestore.distributed.spec import TableSpec
from tablestore.log.publish.publisher import PublishReport

folder = Path(sys.argv[1])
killed = str(folder / "killed")


def killing(spec: TableSpec, slots: int, slot: int, *, look: bool) -> PublishReport:
    import signal

    from tablestore.distributed.publish import publish_slot
    from tablestore.log.publish.publisher import LogPublisher

    record = LogPublisher._record

    def recorded(self: LogPublisher, *progress: Any) -> None:
        record(self, *progress)
        if slot == 1 and not Path(killed).exists():
            Path(killed).touch()
            # Worker, daemon, executor. The worker lives on for a while beside the attempt that follows.
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)

    with patch("tablestore.log.publish.publisher.MAX_RECORDS", 50), patch.object(LogPublisher, "_record", recorded):
        return publish_slot(spec, slots, slot, look=look)


catalog = open_catalog(str(folder / "warehouse"))
catalog.create_database("shop")
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
options = {
    "bucket": "4",
    "tablestore.log.publisher-slots": "2",
    "log.kafka.bootstrap.servers": os.environ["TEST_BROKERS"],
    "log.kafka.topic": "published-by-a-cluster",
    "write-only": "true",
}
table = catalog.create_table("shop.t", schema=schema, primary_key=["id"], options=options)
with patch("tablestore.log.publishedlog.PublishedLog.after_commit"):
    table.upsert(pa.table({"id": range(2000), "v": [f"a{i}" for i in range(2000)]}, schema=schema))
    table.upsert(pa.table({"id": range(0, 2000, 4), "v": [f"b{i}" for i in range(0, 2000, 4)]}, schema=schema))

builder = SparkSession.builder.master(os.environ.get("TEST_MASTER", "local-cluster[2,1,1024]"))
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.warehouse.dir": str(folder / "spark"),
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

with patch("pyspark_tablestore.publish.publish_slot", killing):
    reports = publish(spark, table.location)
assert Path(killed).exists(), "no executor was killed"
assert sum(report.records for report in reports) < 2500, "what the killed executor had sent was sent again"
again = publish(spark, table.location)
assert [(report.slot, report.snapshot_id, report.records) for report in again] == [(0, 2, 0), (1, 2, 0)]
spark.stop()
