"""Topics into tables by Spark tasks on a real broker: each record once, in turns with an ingest that needs no Spark."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.feeding import Message, aborted, change, make_topic, produce
from tests.support.commandline import run_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def content(table: ts.Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}


@pytest.mark.deep
def test_spark_tasks_and_one_process_take_turns_on_a_topic(
    spark: "SparkSession", catalog: ts.Catalog, warehouse: str, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes and deletes, transactions given up, poison, partitions cut among tasks, and an overtaken driver."""
    monkeypatch.setattr("tablestore.distributed.ingest.topicranges.LEAST_OF_A_TASK", 300)
    topic, chance, model, bad = "spark-ingest", random.Random(7), dict[int, str](), 0
    make_topic(broker.servers, topic, 2)
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    letters = ts.dead_letter_table(catalog, "shop.dead")
    by_spark = {"warehouse": warehouse, "servers": broker.servers, "dead_letters": "shop.dead"}
    for turn in range(4):
        messages: list[tuple[int, Message]] = []
        for step in range(1000):
            id, v = chance.randrange(80), f"{turn}-{step}"
            kind = chance.random()
            messages.append((id % 2, change("c", None, {"id": id, "v": v}) if kind < 0.9 else change("d", {"id": id}, None)))
            if kind < 0.9:
                model[id] = v
            else:
                model.pop(id, None)
        messages.insert(chance.randrange(1000), (turn % 2, (b"k", b"poison")))
        bad += 1
        produce(broker.servers, topic, messages, transaction="feeder" if turn % 2 else None)
        aborted(broker.servers, topic, [(0, change("c", None, {"id": 1, "v": "no"}))], "given-up")
        if turn == 2:
            report = ts.ingest(table, topic, servers=broker.servers, dead_letters=letters)
        else:
            report = pyspark_tablestore.ingest(spark, "shop.t", topic, commit_records=700, **by_spark)
        assert (report.rows, report.bad_records) == (1000, 1)
        assert content(table) == model
    assert pyspark_tablestore.ingest(spark, "shop.t", topic, **by_spark) == ts.IngestReport()
    assert letters.refresh().scan().count() == bad
    assert table.refresh().snapshots()[-1].properties["tablestore.source-position"]

    produce(broker.servers, topic, [(0, change("c", None, {"id": n, "v": "last"})) for n in range(1000)])
    overtaken: list[int] = []

    def overtake(commit: ts.IngestCommit) -> None:
        if not overtaken:
            overtaken.append(ts.ingest(table, topic, servers=broker.servers, dead_letters=letters).records)

    with pytest.raises(ts.ConflictError, match="another process ingests") as error:
        pyspark_tablestore.ingest(spark, "shop.t", topic, commit_records=400, on_commit=overtake, **by_spark)
    assert error.value.kind == "fenced" and overtaken == [600] and len(content(table)) == 1000


@pytest.mark.deep
def test_sql_and_the_command_line_ingest_with_spark_when_asked(
    spark: "SparkSession", catalog: ts.Catalog, warehouse: str, broker: KafkaBroker, tmp_path: Path
) -> None:
    topic, call = "spark-ingest-sql", f"CALL sys.ingest('shop.t', 'spark-ingest-sql', servers => '{broker.servers}', tasks => TRUE"
    make_topic(broker.servers, topic, 2)
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    produce(broker.servers, topic, [(n % 2, change("c", None, {"id": n, "v": "a"})) for n in range(6)])
    produce(broker.servers, topic, [(1, (None, b"x"))])
    with ts.TableEnvironment.create(warehouse, spark=spark) as env:
        with pytest.raises(ts.FormatError, match="offset 3 of partition 1 of topic spark-ingest-sql cannot become") as error:
            env.execute_sql(call + ")")
        assert error.value.kind == "bad-record" and content(table) == {}
        (report,) = env.execute_sql(call + ", on_error => 'skip')").to_arrow().to_pylist()
        assert (report["records"], report["rows"], report["bad_records"]) == (7, 6, 1)
        # Spark's own reader of topics is not needed, and not there.
        env.execute_sql(f"CREATE TEMPORARY TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{topic}')")
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        env.execute_sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'")
        with pytest.raises(ts.UnsupportedError, match=r"come into a managed table with CALL sys\.ingest"):
            env.execute_sql("INSERT INTO shop.t SELECT id, 'b' FROM k")
    produce(broker.servers, topic, [(0, change("d", {"id": 0}, None))])
    given = ("ingest", table.location, topic, "--brokers", broker.servers, "--on-error", "skip", "--engine")
    assert "duckdb has no tasks that ingest" in run_command(*given, "duckdb", "-w", warehouse, code=1).err
    assert "1 records became 1 rows" in run_command(*given, "spark", "-w", warehouse).out
    assert sorted(content(table)) == [1, 2, 3, 4, 5]
