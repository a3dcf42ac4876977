"""A topic is that of one table, in one place, and of one history: whoever else comes is refused by name, and loses no write."""

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import tablestore as ts
from tablestore.errors import ConflictError
from tablestore.log.publish.ownerfile import read_log_owner
from tablestore.testing.contracts.following import SCHEMA, all_of, content, folded, from_the_start, rows, told
from tablestore.testing.kafka import KafkaBroker
from tablestore.types.evolution.schemachanges import SetOption
from tests.integration.kafka.topics import plain_consumer
from tests.support.commandline import run_command

TOPICS = (f"owned-{number}" for number in count())
NewTable = Callable[..., ts.Table]


@pytest.fixture
def new_table(tmp_path: Path, broker: KafkaBroker) -> NewTable:
    def make(warehouse: str = "wh", *, ignore_if_exists: bool = False, **options: str) -> ts.Table:
        catalog = ts.open_catalog(str(tmp_path / warehouse))
        catalog.create_database("shop", ignore_if_exists=True)
        given = {
            "log.kafka.bootstrap.servers": broker.servers,
            "log.kafka.topic": next(TOPICS),
            "bucket": "2",
            "write-only": "true",
        }
        return catalog.create_table(
            "shop.t", schema=SCHEMA, primary_key=["id"], options={**given, **options}, ignore_if_exists=ignore_if_exists
        )

    return make


def at(path: Path) -> ts.Table:
    return ts.open_catalog(str(path)).table("shop.t")


def publish(table: ts.Table) -> int:
    return sum(report.records for report in table.change_log.publish())


def seen(broker: KafkaBroker, topic: str, *, level: str = "read_committed") -> list[tuple[bytes | None, bytes | None]]:
    """What a plain consumer gets."""
    consumer = plain_consumer(broker.servers, level)
    found, ends = [], 0
    consumer.assign([TopicPartition(topic, bucket, 0) for bucket in (0, 1)])
    while ends < 2:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ends += 1
        else:
            found.append((message.key(), message.value()))
    consumer.close()
    return found


def topic_of(table: ts.Table) -> str:
    return table.options()["log.kafka.topic"]


def there(broker: KafkaBroker, topic: str) -> bool:
    return topic in AdminClient({"bootstrap.servers": broker.servers}).list_topics(timeout=10).topics


@pytest.mark.deep
def test_a_copy_of_a_warehouse_does_not_publish_to_the_topic_of_the_original(
    new_table: NewTable, tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table()
    table.upsert(rows([1, 2], "a"))
    shutil.copytree(tmp_path / "wh", tmp_path / "copy")
    copy = at(tmp_path / "copy")
    assert copy.upsert(rows([3], "copy")) is not None, "the write lands"
    assert f"belongs to {table.location}" in caplog.text and "`tablestore log adopt`" in caplog.text
    table.upsert(rows([4], "original"))
    assert content(table) == {1: "a1", 2: "a2", 4: "original4"}
    assert folded(told(from_the_start(table))) == content(table) and len(seen(broker, topic_of(table))) == 3
    assert table.change_log.verify().problems == () and table.change_log.status().problem is None
    # Who follows the copy gets the copy's changes.
    assert folded(told(from_the_start(copy))) == folded(told(all_of(copy))) == content(copy) == {1: "a1", 2: "a2", 3: "copy3"}
    for refused in (publish, lambda table: table.change_log.rebuild()):
        with pytest.raises(ConflictError, match="this is a copy of it, or it was moved") as caught:
            refused(copy)
        assert caught.value.kind == "log-moved"
    assert "this is a copy" in str(copy.change_log.status().problem)
    # Dropping the copy, or giving it another log, leaves the topic alone.
    ended = copy.alter([SetOption("log.system", "filestore")])
    again = ended.alter([SetOption("log.kafka.topic", next(TOPICS)), SetOption("log.system", "kafka")])
    again.upsert(rows([5], "copy"))
    assert publish(again) == 0 and again.change_log.status().problem is None
    shutil.copytree(tmp_path / "wh", tmp_path / "dropped")
    ts.open_catalog(str(tmp_path / "dropped")).drop_table("shop.t")
    assert there(broker, topic_of(table))
    table.upsert(rows([6], "original"))
    assert folded(told(from_the_start(table))) == content(table)


@pytest.mark.deep
def test_a_table_that_was_moved_takes_its_topic_along_when_it_is_told_to(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    table.close()
    (tmp_path / "wh").rename(tmp_path / "moved")
    moved = at(tmp_path / "moved")
    moved.upsert(rows([2], "b"))
    assert "was moved here by hand" in run_command("log", "status", moved.location, "--json").json["problem"]
    assert "Nothing is published" in run_command("log", "status", moved.location).out
    assert "Would make" in run_command("log", "adopt", moved.location, code=3).out
    adopted = run_command("log", "adopt", moved.location, "--yes", "--json").json
    assert (adopted["location"], adopted["former"]) == (moved.location, [table.location])
    assert publish(moved) == 1 and moved.change_log.status().problem is None
    assert moved.change_log.verify().complete and moved.change_log.verify().problems == ()
    assert folded(told(from_the_start(moved))) == content(moved) == {1: "a1", 2: "b2"}


@pytest.mark.deep
def test_of_a_table_and_its_copy_that_adopted_the_topic_only_one_publishes(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    shutil.copytree(tmp_path / "wh", tmp_path / "copy")
    copy = at(tmp_path / "copy")
    copy.change_log.adopt()
    table.upsert(rows([2], "original"))
    with pytest.raises(ConflictError, match=f"belongs to {copy.location} by now") as caught:
        publish(table)
    assert caught.value.kind == "foreign-log"
    copy.upsert(rows([3], "copy"))
    assert folded(told(from_the_start(copy))) == content(copy) == {1: "a1", 3: "copy3"}
    assert folded(told(all_of(table))) == content(table) == {1: "a1", 2: "original2"}
    # Taken back, the topic holds the other's history: that is refused too, until it is made anew.
    table.change_log.adopt()
    with pytest.raises(ConflictError, match=r"snapshot 2 that .* does not have") as caught:
        publish(table)
    assert caught.value.kind == "log-history"
    table.change_log.rebuild()
    assert table.change_log.verify().problems == () and folded(told(from_the_start(table))) == content(table)


@pytest.mark.deep
@pytest.mark.parametrize("written", [pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow), 4])
def test_an_older_copy_in_the_tables_place_does_not_mix_two_histories(
    new_table: NewTable, tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture, written: int
) -> None:
    table = new_table(bucket="2")
    table.upsert(rows(range(4), "a"))
    shutil.copytree(tmp_path / "wh", tmp_path / "backup")
    for number in range(2):
        table.upsert(rows(range(4), f"lost{number}-"))
    before = seen(broker, topic_of(table))
    table.close()
    shutil.rmtree(tmp_path / "wh")
    (tmp_path / "backup").rename(tmp_path / "wh")
    restored = at(tmp_path / "wh")
    for number in range(written):
        restored.upsert(rows([number], f"new{number}-"))
    with pytest.raises(ConflictError, match="older copy") as caught:
        restored.change_log.publish(look=True)
    assert caught.value.kind == ("log-history" if written > 2 else "log-ahead")
    assert seen(broker, topic_of(restored)) == before
    assert "`tablestore log rebuild`" in str(restored.change_log.status().problem)
    assert folded(told(all_of(restored))) == folded(told(from_the_start(restored))) == content(restored)
    assert "read from the file store" in caplog.text
    restored.change_log.rebuild()
    assert restored.change_log.verify().problems == () and restored.change_log.status().problem is None


@pytest.mark.deep
def test_an_empty_topic_of_another_table_is_neither_adopted_nor_deleted(
    new_table: NewTable, tmp_path: Path, broker: KafkaBroker
) -> None:
    table = new_table()
    topic = topic_of(table)
    for ignoring in (True, False):
        with pytest.raises(ts.TablestoreError, match=topic):
            new_table("other", ignore_if_exists=ignoring, **{"log.kafka.topic": topic})
    assert ts.open_catalog(str(tmp_path / "other")).list_tables("shop") == () and there(broker, topic)
    assert seen(broker, topic) == [], "the claim is not for plain readers"
    table.upsert(rows([1], "a"))
    assert folded(told(from_the_start(table))) == {1: "a1"} and len(seen(broker, topic)) == 1
    # The same again changes nothing.
    assert content(new_table(ignore_if_exists=True, **{"log.kafka.topic": topic})) == {1: "a1"}


def test_a_topic_that_was_made_beforehand_and_never_used_is_taken(new_table: NewTable, broker: KafkaBroker) -> None:
    topic = next(TOPICS)
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    table = new_table(ignore_if_exists=True, **{"log.kafka.topic": topic})
    table.upsert(rows([1], "a"))
    assert folded(told(from_the_start(table))) == {1: "a1"} and table.change_log.status().problem is None


@pytest.mark.deep
def test_a_table_that_is_renamed_keeps_its_topic(new_table: NewTable, tmp_path: Path, broker: KafkaBroker) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.rename_table("shop.t", "shop.u")
    renamed = catalog.table("shop.u")
    renamed.upsert(rows([2], "b"))
    assert len(seen(broker, topic_of(renamed))) == 2 and renamed.change_log.status().problem is None
    catalog.drop_table("shop.u")
    assert not there(broker, topic_of(renamed))


@pytest.mark.deep
def test_a_table_of_an_early_version_records_where_it_lies_with_its_next_publish(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    table.context.files.delete("tablestore-log/owner.json")
    shutil.copytree(tmp_path / "wh", tmp_path / "copy")
    table.close()
    table.upsert(rows([2], "b"))
    owner = read_log_owner(table.context.files)
    assert owner is not None and owner.location == table.location and owner.incarnation
    copy = at(tmp_path / "copy")
    copy.upsert(rows([3], "copy"))
    with pytest.raises(ConflictError, match="belongs to"):
        publish(copy)
    assert table.change_log.verify().problems == ()


def test_a_table_seen_through_a_link_is_no_copy(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    table.close()
    (tmp_path / "link").symlink_to(tmp_path / "wh")
    linked = at(tmp_path / "link")
    linked.upsert(rows([2], "b"))
    assert linked.change_log.status().problem is None and table.change_log.status().buckets[0].lag_snapshots == 0
