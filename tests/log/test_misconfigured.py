"""A Kafka client that cannot be made, and a lock that cannot be had: typed errors before a commit, warnings behind one.

No broker is asked: the client refuses its settings, or the address answers nothing.
"""

from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, StorageError
from tablestore.store.postcommit import read_undone
from tablestore.types.evolution.schemachanges import SetOption

pytest.importorskip("confluent_kafka")

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
KAFKA = {"bucket": "1", "log.kafka.bootstrap.servers": "localhost:1"}


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def table(catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> ts.Table:
    """A table whose topic was made at another time."""
    with monkeypatch.context() as m:
        m.setattr("tablestore.log.publishedlog.PublishedLog.begin", lambda *_, **__: None)
        return catalog.create_table("shop.t", SCHEMA, primary_key=["id"], options=KAFKA)


@pytest.fixture(params=[("SASL_MECHANSIM", "PLAIN"), ("SECURITY_PROTOCOL", "hunter2")])
def mistyped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name, value = request.param
    monkeypatch.setenv("TABLESTORE_KAFKA_TRUSTED_BROKERS", "localhost")
    monkeypatch.setenv(f"TABLESTORE_KAFKA_{name}", value)
    return f"TABLESTORE_KAFKA_{name}"


def rows(number: int) -> pa.Table:
    return pa.table({"id": [number], "v": ["x"]}, schema=SCHEMA)


def test_a_table_is_not_made_with_a_mistyped_property_of_the_client(catalog: ts.Catalog, mistyped: str) -> None:
    with pytest.raises(InvalidInputError, match=mistyped) as refused:
        catalog.create_table("shop.t", SCHEMA, primary_key=["id"], options=KAFKA)
    assert refused.value.kind == "kafka-settings" and "hunter2" not in str(refused.value)
    assert catalog.list_tables("shop") == ()
    catalog.drop_table("shop.t", ignore_if_not_exists=True)


@pytest.mark.parametrize("name", ["ACKS", "REQUEST_REQUIRED_ACKS", "RETRIES", "MAX_IN_FLIGHT"])
def test_a_property_is_named_as_it_was_set(table: ts.Table, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client names some of them otherwise."""
    monkeypatch.setenv(f"TABLESTORE_KAFKA_{name}", "hunter2")
    table.upsert(rows(1))
    (undone,) = read_undone(table.context.files)
    assert f"TABLESTORE_KAFKA_{name})" in undone.error and "hunter2" not in undone.error


def test_a_table_is_not_made_whose_log_fails_with_an_unexpected_error(catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of some library")

    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.begin", fail)
    with pytest.raises(RuntimeError):
        catalog.create_table("shop.t", SCHEMA, primary_key=["id"], options=KAFKA)
    assert catalog.list_tables("shop") == ()


def test_writes_land_with_a_mistyped_property_of_the_client(
    table: ts.Table, mistyped: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert table.upsert(rows(1)) is not None and table.scan().count() == 1
    assert mistyped in caplog.text and "hunter2" not in caplog.text
    (undone,) = read_undone(table.context.files)
    assert (undone.task, undone.error_kind) == ("publish", "kafka-settings") and mistyped in undone.error


@pytest.mark.parametrize("mistyped", [("SASL_MECHANSIM", "PLAIN")], indirect=True)
def test_a_table_is_dropped_with_a_mistyped_property_of_the_client(
    catalog: ts.Catalog, table: ts.Table, mistyped: str, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.drop_table("shop.t")
    assert catalog.list_tables("shop") == () and "left behind" in caplog.text and mistyped in caplog.text


@pytest.mark.parametrize("mistyped", [("SASL_MECHANSIM", "PLAIN")], indirect=True)
def test_a_table_is_altered_with_a_mistyped_property_of_the_client(
    catalog: ts.Catalog, table: ts.Table, mistyped: str, caplog: pytest.LogCaptureFixture
) -> None:
    ended = table.alter(SetOption("log.system", "filestore"))
    assert ended.options()["log.system"] == "filestore" and "left behind" in caplog.text
    with pytest.raises(InvalidInputError, match=mistyped):
        ended.alter(SetOption("log.system", "kafka"))
    assert ended.refresh().options()["log.system"] == "filestore"


def test_a_new_consumer_reads_the_snapshots_where_no_broker_answers(table: ts.Table, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.MonkeyPatch.context() as m:
        m.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)
        table.upsert(rows(1))
        table.upsert(rows(2))

    def silent(*_: object, **__: object) -> str:
        raise StorageError("Kafka at localhost:1 does not do it", kind="kafka")

    with pytest.MonkeyPatch.context() as m:
        m.setattr("tablestore_kafka.logstore.KafkaLogStore.incarnation", silent)
        found = [row["id"] for batch in table.consume("full", follow=False) for row in batch.rows.to_pylist()]
    assert sorted(found) == [1, 2] and "read from its snapshots instead" in caplog.text
