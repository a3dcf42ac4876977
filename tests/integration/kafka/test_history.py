"""A table's whole life over a topic: whatever happens to either, the topic and every reader are right, or say by name why not."""

import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import tablestore as ts
from tablestore.errors import ConflictError, NotFoundError, StorageError
from tablestore.log.connector import open_log_store
from tablestore.log.logstore import SlotFenced
from tablestore.log.publish.changerecords import snapshot_records
from tablestore.log.publish.publisher import LogPublisher
from tablestore.log.publish.slotlocks import SlotLocks, user_lock_folder
from tablestore.testing.contracts.following import SCHEMA, all_of, content, folded, from_the_start, keys, once, rows, told
from tablestore.testing.kafka import KafkaBroker
from tablestore.types.evolution.schemachanges import RenameColumn, SetOption

sys.path.insert(0, str(Path(__file__).parent))

from topics import records, topics

TOPICS = (f"history-{number}" for number in count())
NewTable = Callable[..., ts.Table]
LOCKS = SlotLocks(user_lock_folder())


@pytest.fixture
def new_table(tmp_path: Path, broker: KafkaBroker) -> NewTable:
    def make(warehouse: str = "a", *, ignore_if_exists: bool = False, **options: str) -> ts.Table:
        catalog = ts.open_catalog(str(tmp_path / warehouse))
        catalog.create_database("shop", ignore_if_exists=True)
        given = {"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": next(TOPICS), "bucket": "2"}
        return catalog.create_table(
            "shop.t",
            schema=SCHEMA,
            primary_key=["id"],
            options={**given, "write-only": "true", **options},
            ignore_if_exists=ignore_if_exists,
        )

    return make


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers publish nothing by themselves."""
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)


def publisher(table: ts.Table, slot: int = 0) -> LogPublisher:
    settings = table.change_log.settings
    return LogPublisher(table.context, open_log_store(settings), settings, LOCKS, slot=slot)


def publish(table: ts.Table) -> int:
    return sum(report.records for report in table.change_log.publish())


def expire_all_but_the_newest(table: ts.Table) -> None:
    """The publisher tells expiry now and then; one that has just begun does so at once."""
    table.close()
    table.upsert(rows([99], "last"))
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert len(table.snapshots()) == 1


@pytest.mark.deep
def test_rollbacks_overwrites_and_untracked_writes_are_not_in_the_topic_and_what_follows_is(
    new_table: NewTable, silent: None
) -> None:
    table = new_table()
    table.upsert(rows([1, 2], "a"))
    table.upsert(rows([2, 3], "b"))
    assert publish(table) == 4
    table.rollback_to(1)
    table.upsert(rows([4], "c"))
    table.overwrite(rows([5], "o"))
    assert publish(table) == 1
    quiet = table.alter([SetOption("change-tracking", "false")])
    quiet.upsert(rows([6], "u"))
    table = quiet.alter([SetOption("change-tracking", "true")])
    table.upsert(rows([7], "d"))
    table.delete(keys([7]))
    assert publish(table) == 2
    assert sorted({record[0] for record in records(table)}) == [1, 2, 4, 7, 8]
    assert table.change_log.verify().problems == ()
    assert content(table) == {5: "o5", 6: "u6"}


@pytest.mark.deep
def test_a_discontinuity_whose_snapshot_has_expired_is_named_all_the_same(new_table: NewTable) -> None:
    table = new_table()
    table.upsert(rows([1, 2], "a"))
    (position,) = [batch.position for batch in from_the_start(table)][-1:]
    table.upsert(rows([2], "b"))
    table.overwrite(rows([3], "o"))
    table.upsert(rows([4], "c"))
    expire_all_but_the_newest(table)
    with pytest.raises(NotFoundError, match="snapshot 3, which has expired") as caught:
        all_of(table, position=position)
    assert caught.value.kind == "discontinuity"
    skipped = told(all_of(table, position=position, on_discontinuity="skip"))
    assert sorted(skipped) == [(2, "+I", 2, "b2"), (4, "+I", 4, "c4"), (5, "+I", 99, "last99")]
    restarted = told(all_of(table, position=position, on_discontinuity="restart"))
    assert folded([change for change in restarted if change[0] == 5]) == content(table)


@pytest.mark.deep
def test_a_reader_far_behind_goes_on_in_the_log_though_its_snapshots_have_expired(new_table: NewTable) -> None:
    table = new_table()
    table.upsert(rows([1, 2], "a"))
    batches = from_the_start(table)
    for step in range(4):
        table.upsert(rows([step], f"s{step}-"))
    expire_all_but_the_newest(table)
    got = told(batches) + told(all_of(table, position=batches[-1].position))
    assert once(got) and folded(got) == content(table)


@pytest.mark.deep
def test_records_whose_columns_nobody_knows_any_more_are_refused(new_table: NewTable) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    position = from_the_start(table)[-1].position
    table.upsert(rows([2], "b"))
    table = table.alter([RenameColumn("v", to="w")])
    table.close()
    table.upsert(rows([3], "c").rename_columns(["day", "id", "w"]))
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert len(table.snapshots()) == 1
    with pytest.raises(NotFoundError, match="which columns its records") as caught:
        all_of(table, position=position)
    assert caught.value.kind == "snapshot-expired"


@pytest.mark.deep
def test_two_warehouses_cannot_name_the_same_topic(new_table: NewTable) -> None:
    one = new_table("a")
    one.upsert(rows(range(4), "a"))
    topic = one.options()["log.kafka.topic"]
    for ignoring in (False, True):
        with pytest.raises(ts.TablestoreError, match=topic):
            new_table("b", ignore_if_exists=ignoring, **{"log.kafka.topic": topic})
        assert ts.open_catalog(str(Path(one.location.removeprefix("file://")).parents[2] / "b")).list_tables("shop") == ()
    one.upsert(rows([9], "b"))
    assert one.change_log.verify().problems == () and len(records(one)) == 5


@pytest.mark.deep
def test_a_publisher_of_a_dropped_table_does_not_speak_for_the_one_made_again(new_table: NewTable, silent: None) -> None:
    old = new_table()
    topic = old.options()["log.kafka.topic"]
    old.upsert(rows([1], "old"))
    zombie = publisher(old)
    assert zombie.publish().records == 1
    ts.open_catalog(str(Path(old.location.removeprefix("file://")).parents[1])).drop_table("shop.t")
    table = new_table(**{"log.kafka.topic": topic})
    for step in range(3):
        table.upsert(rows([step], f"new{step}-"))
    with pytest.raises(ConflictError, match="dropped and created again") as caught:
        zombie.publish()
    assert caught.value.kind == "table-replaced" and records(table) == []
    assert publish(table) == 3
    assert zombie.publish().records == 0
    zombie.close()
    assert table.change_log.verify().complete and table.change_log.verify().problems == ()


@pytest.mark.deep
def test_a_table_made_again_is_published_by_the_process_that_knew_the_old_one(
    new_table: NewTable, caplog: pytest.LogCaptureFixture
) -> None:
    old = new_table()
    topic = old.options()["log.kafka.topic"]
    old.upsert(rows([1], "old"))
    ts.open_catalog(str(Path(old.location.removeprefix("file://")).parents[1])).drop_table("shop.t")
    table = new_table(**{"log.kafka.topic": topic})
    table.upsert(rows([2], "new"))
    assert [record[3:] for record in records(table)] == [(2, "new2")] and "not in the log yet" not in caplog.text


@pytest.mark.deep
def test_slots_of_another_number_are_fenced_before_anything_is_sent(new_table: NewTable, silent: None) -> None:
    table = new_table(bucket="3", **{"tablestore.log.publisher-slots": "3"})
    table.upsert(rows(range(9), "a"))
    assert publish(table) == 9
    table.close()
    zombie = publisher(table, slot=2)
    zombie.open()
    late = publisher(table, slot=2)
    table.upsert(rows(range(9), "b"))
    one = table.alter([SetOption("tablestore.log.publisher-slots", "1")])
    found, _ = snapshot_records(table.context, table.snapshots()[-1], [2], "upsert", {})
    assert zombie._slot is not None
    pending = list(found)
    assert sum(map(len, pending)) > 0
    assert publish(one) == 9
    with pytest.raises(SlotFenced):
        zombie._slot.publish(pending, table=table.context.table_uuid or "")
    zombie.close()
    with pytest.raises(ConflictError, match="was altered"):
        late._check_still_its_log()
    back = one.alter([SetOption("tablestore.log.publisher-slots", "3")])
    back.upsert(rows(range(9), "c"))
    assert publish(back) == 9
    changes = [(record[0], record[2], record[3], record[4]) for record in records(back)]
    assert once(changes) and len(changes) == 27 and folded(changes) == content(back)


@pytest.mark.deep
def test_a_topic_deleted_underneath_is_named_and_made_anew(new_table: NewTable, caplog: pytest.LogCaptureFixture) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    table.close()
    open_log_store(table.change_log.settings).drop(ignore_if_not_exists=False)
    assert table.upsert(rows([2], "b")) is not None and "does not exist" in caplog.text
    for look in (lambda: publish(table), lambda: all_of(table), lambda: table.change_log.verify()):
        with pytest.raises(NotFoundError, match="log rebuild") as caught:
            look()
        assert caught.value.kind == "no-such-topic"
    assert content(table) == {1: "a1", 2: "b2"}
    table.change_log.rebuild()
    assert table.change_log.verify().complete and len(records(table)) == 2
    assert folded(told(all_of(table))) == content(table)


@pytest.mark.deep
def test_a_topic_deleted_under_an_open_publisher_stops_no_write(
    new_table: NewTable, broker: KafkaBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore.log.publish.publisher.OPEN_TIMEOUT_S", 5.0)
    table = new_table()
    table.upsert(rows([1], "a"))
    topic = table.options()["log.kafka.topic"]
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result()
    assert table.upsert(rows([2], "b")) is not None and "not in the log yet" in caplog.text
    with pytest.raises(NotFoundError, match="log rebuild"):
        publish(table)
    assert topic not in topics(broker.servers)


def test_records_of_strangers_in_the_midst_are_left_out(new_table: NewTable, broker: KafkaBroker) -> None:
    table = new_table(bucket="1")
    stranger = Producer({"bootstrap.servers": broker.servers})
    topic = table.options()["log.kafka.topic"]
    headers: list[tuple[str, Any]] = [("table", b"another"), ("snapshot", b"1"), ("ordinal", b"0")]
    for number, text in enumerate(("a", "b", "c")):
        table.upsert(rows([number], text))
        stranger.produce(topic, b"poison", b"key", 0, headers=headers if number % 2 else None)
        stranger.flush(30)
    stranger.close()
    got = told(from_the_start(table))
    assert once(got) and folded(got) == content(table) == {0: "a0", 1: "b1", 2: "c2"}


@pytest.mark.deep
def test_what_retention_took_away_is_read_from_the_file_store_and_said(
    new_table: NewTable, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table()
    table.upsert(rows(range(4), "a"))
    reading = table.consume(consumer_id="c", follow=False, scan="from-timestamp", timestamp=0)
    got = list(islice(reading, 1))
    got[0].commit()
    for text in "bc":
        table.upsert(rows(range(2, 6), text))
    log = open_log_store(table.change_log.settings)
    ends = {bucket: end for bucket, (_, end) in log.bounds([0, 1]).items()}
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    cut = [TopicPartition(log.name, bucket, end) for bucket, end in ends.items()]
    for future in admin.delete_records(cut).values():
        future.result()
    table.upsert(rows([7], "d"))
    got += all_of(table, consumer_id="c")
    changes = told(got)
    assert once(changes) and folded(changes) == content(table) and len(changes) == 13
    assert "read from the file store" in caplog.text
    assert publish(table) == 0 and table.change_log.verify().problems == ()


@pytest.mark.deep
def test_branches_and_tags_leave_the_topic_alone(new_table: NewTable) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    table.create_tag("before")
    table.create_branch("b")
    branch = table.branch("b")
    branch.upsert(rows([2], "branch"))
    assert told(from_the_start(branch))[-1] == (2, "+I", 2, "branch2")
    table.upsert(rows([3], "b"))
    assert [record[3] for record in records(table)] == [1, 3]
    branch.upsert(rows([4], "branch"))
    table.rollback_to(tag="before")
    table.upsert(rows([5], "c"))
    assert sorted(record[3] for record in records(table)) == [1, 3, 5]
    assert table.change_log.verify().problems == ()
    table.fast_forward("b", discard_newer=True)
    table.upsert(rows([6], "d"))
    assert sorted(record[3] for record in records(table)) == [1, 3, 5, 6]
    assert table.change_log.verify().problems == () and content(table) == {1: "a1", 2: "branch2", 4: "branch4", 6: "d6"}


@pytest.mark.deep
def test_a_topic_that_cannot_be_deleted_keeps_its_table(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table()
    table.upsert(rows([1], "a"))
    catalog = ts.open_catalog(str(Path(table.location.removeprefix("file://")).parents[1]))

    def away(*_: object, **__: object) -> None:
        raise StorageError("the broker is away", kind="kafka")

    with monkeypatch.context() as patched:
        patched.setattr("tablestore_kafka.KafkaLogStore.drop", away)
        with pytest.raises(StorageError, match="away"):
            catalog.drop_table("shop.t")
        assert content(catalog.table("shop.t")) == {1: "a1"}
        ended = table.alter([SetOption("log.system", "filestore")])
        assert "delete it by hand" in caplog.text and folded(told(all_of(ended))) == {1: "a1"}
        catalog.drop_table("shop.t")
    assert catalog.list_tables("shop") == ()
