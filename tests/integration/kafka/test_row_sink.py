"""CREATE TABLE … AS and INSERT into a topic, without Spark: rows become JSON messages, all of a job or none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.environment.conftest import _entry_points  # noqa: F401
from tests.integration.kafka.topics import messages, topics


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        made.execute_sql("CREATE TABLE s (id BIGINT, name STRING, at DATE)")
        made.execute_sql("INSERT INTO s VALUES (1, 'ü \"quoted\"', DATE '2026-01-31'), (2, NULL, NULL)")
        yield made


def clause(broker: KafkaBroker, topic: str, more: str = "") -> str:
    return (
        f"WITH ('connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker.servers}', "
        f"'value.format' = 'json'{more})"
    )


def test_a_table_of_a_topic_is_filled_and_added_to(env: ts.TableEnvironment, broker: KafkaBroker) -> None:
    made = clause(broker, "sink-filled", ", 'key.fields' = 'id'")
    assert env.execute_sql(f"CREATE TABLE k {made} AS SELECT * FROM s").kind == "nothing"
    first = [
        ({"id": 1}, {"id": 1, "name": 'ü "quoted"', "at": "2026-01-31"}),
        ({"id": 2}, {"id": 2, "name": None, "at": None}),
    ]
    assert sorted(messages(broker.servers, "sink-filled"), key=str) == sorted(first, key=str)
    env.execute_sql("INSERT INTO k (name, id) SELECT 'c', 3")
    assert ({"id": 3}, {"id": 3, "name": "c"}) in [
        (key, {name: value for name, value in row.items() if value is not None})  # type: ignore[attr-defined]
        for key, row in messages(broker.servers, "sink-filled")
    ]
    with pytest.raises(ts.UnsupportedError, match="only adds rows"):
        env.execute_sql("INSERT OVERWRITE k SELECT 1, 'x', NULL")


def test_the_primary_key_is_the_key_and_a_job_that_fails_sends_nothing(env: ts.TableEnvironment, broker: KafkaBroker) -> None:
    made = clause(broker, "sink-failed")
    env.execute_sql(f"CREATE TABLE k (PRIMARY KEY (id) NOT ENFORCED) {made} AS SELECT id FROM s WHERE id = 1")
    assert messages(broker.servers, "sink-failed") == [({"id": 1}, {"id": 1})]
    with pytest.raises(ts.InvalidInputError, match="'b'"):
        env.execute_sql("INSERT INTO k SELECT CAST(v AS BIGINT) FROM (VALUES ('5'), ('b')) AS r (v)")
    with pytest.raises(ts.UnsupportedError, match="cannot be taken back"):
        env.get_config().set("table.ctas.atomicity-enabled", "true")
        env.execute_sql(f"CREATE TABLE x {clause(broker, 'sink-atomic')} AS SELECT id FROM s")
    assert messages(broker.servers, "sink-failed") == [({"id": 1}, {"id": 1})]
    assert "sink-atomic" not in topics(broker.servers)


def test_wrong_options_are_refused_and_no_topic_is_made(env: ts.TableEnvironment, broker: KafkaBroker) -> None:
    for number, (more, message) in enumerate(
        [
            (", 'key.fields' = 'nope'", "key.fields names 'nope'"),
            (", 'key.format' = 'avro'", "only json"),
            (", 'partitions' = '3'", "the option 'partitions' is not known.* may hold a secret"),
            (", 'properties.ssl.key.location' = '/etc/passwd'", "the option 'properties.ssl.key.location' may hold a secret"),
        ]
    ):
        with pytest.raises(ts.TablestoreError, match=message):
            env.execute_sql(f"CREATE TABLE w{number} {clause(broker, 'sink-wrong', more)} AS SELECT id FROM s")
    assert "sink-wrong" not in topics(broker.servers)
