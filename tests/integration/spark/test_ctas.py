"""CREATE TABLE … AS and jobs in Spark."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tablestore.environment.jobs.job import JobStatus
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import messages, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SLOW = "SELECT count(*) AS n FROM range(100000) AS a, range(100000) AS b WHERE sin(a.id + b.id) = 2"


@pytest.fixture
def env(spark: "SparkSession", tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    from pyspark_tablestore.engine import SparkEngine

    with ts.TableEnvironment.create(tmp_path / "wh", engine=SparkEngine(spark)) as made:
        yield made


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def left(tmp_path: Path) -> list[str]:
    found = (name for _, _, names in os.walk(tmp_path / "wh") for name in names)
    return sorted(name for name in found if name != "_database")


def test_tables_of_sparks_own_tables_and_dataframes_atomic_or_not(
    env: ts.TableEnvironment, spark: "SparkSession", tmp_path: Path
) -> None:
    spark.range(7).createOrReplaceTempView("sparks_own")
    env.create_temporary_view("frame", spark.createDataFrame([(1, "a")], "id INT NOT NULL, name STRING"))
    for atomic in ("false", "true"):
        env.get_config().set("table.ctas.atomicity-enabled", atomic)
        env.execute_sql(f"CREATE TABLE o_{atomic} AS SELECT id, id % 2 AS odd FROM sparks_own WHERE id > 2")
        assert rows_of(env, f"SELECT sum(id), max(odd) FROM o_{atomic}") == [(18, 1)]
        pipeline = env.from_path("frame").save_as(f"f_{atomic}").option("bucket", 2).primary_key("id").create()
        assert pipeline.execute().snapshot is not None
        table = env.catalog().table(f"default.f_{atomic}")
        assert [(field.name, field.nullable) for field in table.scan().schema] == [("id", False), ("name", True)]
        assert rows_of(env, f"SELECT * FROM f_{atomic}") == [(1, "a")]
    assert "_ctas" not in os.listdir(tmp_path / "wh") or not os.listdir(tmp_path / "wh" / "_ctas")
    spark.catalog.dropTempView("sparks_own")


def test_a_task_that_fails_or_dies_leaves_nothing_of_an_atomic_table(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", "true")

    def die(x: int) -> int:
        if x > 400:
            os._exit(1)
        return x

    env.create_temporary_function("die", die, arguments=["BIGINT"], returns="BIGINT")
    for query in (
        "SELECT id, 1 / (id - 400) AS x FROM range(0, 500, 1, 4)",
        "SELECT die(id) AS id FROM range(0, 500, 1, 4)",
    ):
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(f"CREATE TABLE t AS {query}")
        assert (env.list_tables(), left(tmp_path)) == ((), [])


def test_a_job_is_canceled_and_others_go_on(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", "true").set("table.dml-sync", "false")
    job = env.execute_sql(f"CREATE TABLE t AS {SLOW}").job
    assert job is not None
    other = env.execute_sql("CREATE TABLE u AS SELECT 1 AS id").job
    assert other is not None and other.result(120).snapshot.id == 1  # type: ignore[union-attr]
    while not job.wait(0.1):
        job.cancel()
    with pytest.raises(ts.UnsupportedError) as refused:
        job.result()
    assert (refused.value.kind, job.status) == ("cancelled", JobStatus.CANCELED)
    assert env.list_tables() == ("u",)


def test_tables_with_a_connector_are_filled_and_of_any_format_of_sparks(env: ts.TableEnvironment, tmp_path: Path) -> None:
    for name, clause in (
        ("p", f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/p', 'format' = 'parquet')"),
        ("c", f"USING csv OPTIONS ('path' '{tmp_path}/c', 'header' 'true')"),
        ("o", f"USING orc LOCATION '{tmp_path}/o'"),
    ):
        env.execute_sql(f"CREATE TABLE {name} {clause} AS SELECT id, concat('n', id) AS name FROM range(3)")
        assert rows_of(env, f"SELECT count(*), max(name) FROM {name}") == [(3, "n2")]
        env.execute_sql(f"CREATE TABLE from_{name} AS SELECT * FROM {name}")
        assert rows_of(env, f"SELECT count(*), max(name) FROM from_{name}") == [(3, "n2")]
    env.get_config().set("table.ctas.atomicity-enabled", "true")
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"CREATE TABLE x USING parquet LOCATION '{tmp_path}/x' AS SELECT 1 / (id - 1) AS n FROM range(3)")
    with pytest.raises(ts.NotFoundError):
        env.execute_sql("SELECT * FROM x")
    with pytest.raises(ts.UnsupportedError, match="the connector 'jdbc' cannot be taken back"):
        env.execute_sql("CREATE TABLE x WITH ('connector' = 'jdbc') AS SELECT 1 AS n")


@pytest.mark.slow
@pytest.mark.kafka
def test_rows_become_messages_of_a_topic_all_of_a_job_or_none(env: ts.TableEnvironment, broker: KafkaBroker) -> None:
    where = f"'connector' = 'kafka', 'value.format' = 'json', 'properties.bootstrap.servers' = '{broker.servers}', 'topic' ="
    query = "SELECT id, concat('ü', id) AS name, DATE '2026-01-31' AS at FROM range(0, 5000, 1, 4)"
    assert (
        env.execute_sql(f"CREATE TABLE k (PRIMARY KEY (id) NOT ENFORCED) WITH ({where} 'spark-filled') AS {query}").kind
        == "nothing"
    )
    first = {(one, f"ü{one}", "2026-01-31") for one in range(5000)}
    assert sent(broker, "spark-filled") == sorted(first)
    env.execute_sql("INSERT INTO k (name, id) SELECT * FROM VALUES ('c', 5000)")
    assert sent(broker, "spark-filled")[5000:] == [(5000, "c", None)]
    with pytest.raises(ts.TablestoreError, match="Division by zero"):
        env.execute_sql("INSERT INTO k (id, name) SELECT id, CAST(1 / (id - 400) AS STRING) FROM range(0, 500, 1, 4)")
    assert len(sent(broker, "spark-filled")) == 5001
    with pytest.raises(ts.UnsupportedError, match="cannot be taken back"):
        env.get_config().set("table.ctas.atomicity-enabled", "true")
        env.execute_sql(f"CREATE TABLE x WITH ({where} 'spark-atomic') AS SELECT 1 AS id")
    assert "spark-atomic" not in topics(broker.servers)


def sent(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    """The rows of the committed messages of a topic whose key is ``id``, by it."""
    found: list[Any] = messages(broker.servers, topic)
    assert all(key == {"id": row["id"]} for key, row in found)
    return sorted((row["id"], row["name"], row.get("at")) for _, row in found)
