"""INSERT INTO in streaming mode over tables whose changes are in a topic: Spark reads the topic, and each change lands once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.deep]

KEY = ", PRIMARY KEY (id) NOT ENFORCED"
QUERY = "SELECT id, upper(v) AS v FROM s WHERE id % 5 <> 0"


@pytest.fixture
def env(spark: "SparkSession", warehouse: str, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(warehouse=warehouse, spark=spark) as env:
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        env.execute_sql(f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoints'}'")
        yield env


def table(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def expected(env: ts.TableEnvironment) -> list[tuple[object, object]]:
    held = table(env, "s").to_arrow().to_pylist()
    return sorted((row["id"], row["v"].upper()) for row in held if row["id"] % 5)


def landed(env: ts.TableEnvironment) -> list[tuple[object, object]]:
    return sorted((row["id"], row["v"]) for row in table(env, "k").to_arrow().to_pylist())


def run(env: ts.TableEnvironment, statement: str, doing: Callable[[], None]) -> None:
    """Runs a stream, does something meanwhile, and ends it when its target holds what its source does."""
    job = env.execute_sql(statement).job
    assert job is not None
    doing()
    while landed(env) != expected(env):
        assert not job.wait(0.05), job.result()
    job.cancel()
    job.wait()


@pytest.mark.parametrize(
    ("key", "options"),
    [
        pytest.param(KEY, {}, id="keyed"),
        pytest.param("", {"log.format": "avro"}, id="append-avro", marks=pytest.mark.slow),
        pytest.param(KEY, {"log.changelog-mode": "all", "changelog-producer": "lookup"}, id="keyed-all", marks=pytest.mark.slow),
        pytest.param(KEY, {"log.consistency": "eventual"}, id="keyed-eventual", marks=pytest.mark.slow),
    ],
)
def test_an_insert_reads_a_topic_and_goes_on_where_it_was(
    env: ts.TableEnvironment,
    broker: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    key: str,
    options: dict[str, str],
) -> None:
    topic = "spark-stream-" + request.node.callspec.id
    for name in ("s", "k"):
        brokers = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": f"{topic}-{name}"}
        own = {"bucket": "2" if key else "-1", **brokers, **(options if name == "s" else {})}
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in own.items())
        env.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING{key}) WITH ({listed})")
    source = table(env, "s")

    def write(first: int) -> None:
        for step in range(2):
            ids = [first + number for number in range(8 + step)]
            kinds = ["-D" if key and number % 7 == 3 else "+I" for number in ids]
            source.write_changes(
                pa.table({"_row_kind": kinds, "id": [n % 20 if key else n for n in ids], "v": [f"v{n}" for n in ids]})
            )

    def write_unpublished() -> None:
        write(100)
        with monkeypatch.context() as m:
            m.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
            write(200)

    write(0)
    insert = f"INSERT INTO k {QUERY}"
    run(env, insert, write_unpublished)
    write(300)
    source.compact(full=True)
    source.expire_snapshots(retain_max=1, retain_min=1)
    assert landed(env) != expected(env)
    run(env, insert, lambda: write(400))
    said = [row for batch in table(env, "k").consume("from-timestamp", timestamp=0, follow=False) for row in batch.rows.to_pylist()]
    state = {row["id"]: None if row["_row_kind"] == "-D" else row["v"] for row in said}
    assert sorted((number, v) for number, v in state.items() if v is not None) == landed(env)
    assert key or len(said) == len(landed(env))
