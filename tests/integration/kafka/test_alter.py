"""ALTER of a table's log options on a real broker: all or nothing, or refused with the way out."""

import sys
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

import tablestore as ts
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.log import alterlog as logalter
from tablestore.log.connector import open_log_store
from tablestore.store.history.consumers import Consumers
from tablestore.testing.contracts.following import SCHEMA, all_of, content, folded, from_the_start, once, rows, told
from tablestore.testing.kafka import KafkaBroker
from tablestore.types.evolution.schemachanges import RemoveOption, SetOption

sys.path.insert(0, str(Path(__file__).parent))

from topics import records, topics

TOPICS = (f"altered-{number}" for number in count())


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def plain(catalog: ts.Catalog) -> ts.Table:
    """A table whose log is the file store."""
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2", "write-only": "true"})


def with_topic(table: ts.Table, broker: KafkaBroker, **options: str) -> ts.Table:
    given = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": next(TOPICS), **options}
    return table.alter([SetOption(key, value) for key, value in given.items()])


def retention_of(table: ts.Table, broker: KafkaBroker) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, table.options()["log.kafka.topic"])
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    return str(admin.describe_configs([resource])[resource].result()["retention.ms"].value)


@pytest.mark.deep
def test_a_table_gets_a_topic_and_readers_find_the_rest_in_the_file_store(plain: ts.Table, broker: KafkaBroker) -> None:
    plain.upsert(rows([1, 2], "a"))
    plain.upsert(rows([2], "b"))
    before = all_of(plain, scan="latest", consumer_id="early")
    early = all_of(plain, scan="from-timestamp", timestamp=0, consumer_id="whole")
    early[0].commit()
    table = with_topic(plain, broker)
    table.upsert(rows([3], "c"))
    assert [record[:1] + record[3:] for record in records(table)] == [(3, 3, "c3")]
    assert before == [] and told(all_of(table, consumer_id="early")) == [(3, "+I", 3, "c3")]
    whole = told(from_the_start(table))
    assert once(whole) and len(whole) == 4 and folded(whole) == content(table)
    rest = told(early[:1]) + told(all_of(table, consumer_id="whole"))
    assert once(rest) and folded(rest) == content(table)
    assert table.change_log.verify().problems == ()


@pytest.mark.deep
def test_a_log_ends_and_another_begins_with_another_number_of_buckets(plain: ts.Table, broker: KafkaBroker) -> None:
    table = with_topic(plain, broker)
    table.upsert(rows(range(4), "a"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    topic = table.options()["log.kafka.topic"]
    with pytest.raises(UnsupportedError, match="filestore"):
        table.rescale(3)
    silent = table.alter([SetOption("log.system", "filestore")])
    assert topic not in topics(broker.servers) and Consumers(silent.context.files).find("tablestore-log-publisher") is None
    silent.upsert(rows([1], "b"))
    assert told(all_of(silent, consumer_id="c")) == [(2, "+I", 1, "b1")]
    for batch in silent.consume(consumer_id="c", follow=False):
        batch.commit()
    again = silent.rescale(3).alter([SetOption("log.system", "kafka")])
    assert open_log_store(again.change_log.settings).incarnation(partitions=3)
    again.upsert(rows([2], "c"))
    with pytest.raises(NotFoundError, match="snapshot 3") as caught:
        all_of(again, consumer_id="c")
    assert caught.value.kind == "discontinuity", "the rescale"
    got = told(all_of(again, consumer_id="c", on_discontinuity="restart"))
    assert folded([change for change in got if change[0] > 2]) == content(again)
    assert [record[3:] for record in records(again)] == [(2, "c2")]


@pytest.mark.deep
def test_an_alteration_that_fails_leaves_neither_topic_nor_option(
    plain: ts.Table, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = with_topic(plain, broker).options()["log.kafka.topic"]
    catalog = ts.open_catalog(str(Path(plain.location.removeprefix("file://")).parents[1]))
    other = catalog.create_table("shop.other", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    with pytest.raises(AlreadyExistsError, match="Failed to create kafka topic"):
        with_topic(other, broker, **{"log.kafka.topic": taken})
    with pytest.raises(InvalidInputError, match="may not set"):
        with_topic(other, broker, **{"log.kafka.sasl.password": "x"})
    with pytest.raises(UnsupportedError, match="fixed partition per bucket"):
        with_topic(other, broker, bucket="-1")
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="check that the brokers are up"):
        patch.setattr("tablestore_kafka.topics.ADMIN_TIMEOUT_S", 1.0)
        with_topic(other, broker, **{"log.kafka.bootstrap.servers": "127.0.0.1:1", "log.kafka.socket.timeout.ms": "1000"})

    def lose(*_: object, **__: object) -> None:
        raise ConflictError("lost", kind="commit-timeout")

    monkeypatch.setattr(logalter, "alter_schema", lose)
    with pytest.raises(ConflictError, match="lost"):
        with_topic(other, broker, **{"log.kafka.topic": "never"})
    assert "never" not in topics(broker.servers) and taken in topics(broker.servers)
    assert Consumers(other.context.files).all() == ()
    assert other.refresh().options() == other.options()
    other.upsert(rows([1], "a"))
    assert folded(told(all_of(other))) == {1: "a1"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("key", "value"),
    [("log.kafka.topic", "elsewhere"), ("log.changelog-mode", "all"), ("bucket", "3"), ("log.consistency", "eventual")],
)
def test_what_published_records_rest_on_is_refused_with_the_way_out(
    plain: ts.Table, broker: KafkaBroker, key: str, value: str
) -> None:
    table = with_topic(plain, broker)
    with pytest.raises(UnsupportedError, match=r"set log\.system = filestore") as caught:
        table.alter([SetOption(key, value)])
    assert caught.value.kind == "immutable-option" and table.refresh().options() == table.options()


@pytest.mark.deep
def test_other_brokers_must_have_the_same_topic(plain: ts.Table, broker: KafkaBroker) -> None:
    table = with_topic(plain, broker)
    table.upsert(rows([1], "a"))
    moved = table.alter([SetOption("log.kafka.bootstrap.servers", broker.servers.replace("127.0.0.1", "localhost"))])
    moved.upsert(rows([2], "b"))
    assert {record[3] for record in records(moved)} == {1, 2}
    log = open_log_store(moved.change_log.settings)
    log.drop(ignore_if_not_exists=False)
    log.create(partitions=2, retention_ms=None, ignore_if_exists=False)
    with pytest.raises(InvalidInputError, match="is not the log of table"):
        moved.alter([SetOption("log.kafka.bootstrap.servers", broker.servers)])


@pytest.mark.deep
def test_the_topic_hears_of_another_retention(plain: ts.Table, broker: KafkaBroker) -> None:
    table = with_topic(plain, broker, **{"log.retention": "2 h"})
    assert retention_of(table, broker) == "7200000"
    table = table.alter([SetOption("log.retention", "1 h")])
    assert retention_of(table, broker) == "3600000"
    table = table.alter([RemoveOption("log.retention")])
    assert retention_of(table, broker) == "604800000"


@pytest.mark.deep
def test_what_is_not_about_the_log_leaves_it_alone(plain: ts.Table, broker: KafkaBroker) -> None:
    table = with_topic(plain, broker)
    table.upsert(rows([1], "a"))
    table = table.alter([SetOption("log.scan", "latest"), SetOption("log.kafka.linger.ms", "1")])
    with pytest.raises(InvalidInputError, match="may not set"):
        table.alter([SetOption("log.kafka.ssl.ca.location", "/etc/passwd")])
    table.upsert(rows([2], "b"))
    assert len(records(table)) == 2 and all_of(table) == []


@pytest.mark.deep
def test_dropping_a_database_drops_the_topics_of_its_tables(catalog: ts.Catalog, plain: ts.Table, broker: KafkaBroker) -> None:
    topic = with_topic(plain, broker).options()["log.kafka.topic"]
    assert topic in topics(broker.servers)
    catalog.drop_database("shop", cascade=True)
    assert topic not in topics(broker.servers)
