"""The hybrid read over a real topic: the table, then the log, each change once, across every seam."""

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import tablestore as ts
from tablestore.table.consume import ChangeBatch
from tablestore.table.logs import PUBLISHERS, publish_log, rebuild_log
from tablestore.testing.kafka import KafkaBroker

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture(autouse=True)
def _closed_publishers() -> Iterator[None]:
    yield
    PUBLISHERS.close()


@pytest.fixture
def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def make(catalog: ts.Catalog, broker: KafkaBroker, topic: str, *, keyed: bool = True, **options: str) -> ts.Table:
    options = {"bucket": "2", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic, **options}
    if not keyed:
        options.pop("bucket")
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"] if keyed else (), options=options)


@pytest.fixture
def table(catalog: ts.Catalog, broker: KafkaBroker, request: pytest.FixtureRequest) -> ts.Table:
    return make(catalog, broker, "".join(c if c.isalnum() else "-" for c in request.node.name))


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def listed(batches: Any) -> list[tuple[int, str, int, str | None]]:
    return [(batch.snapshot_id, row["_row_kind"], row["id"], row["v"]) for batch in batches for row in batch.rows.to_pylist()]


def folded(changes: list[tuple[int, str, int, str | None]]) -> dict[int, str | None]:
    state: dict[int, str | None] = {}
    for _, kind, key, value in changes:
        if kind in ("+I", "+U"):
            state[key] = value
        elif kind == "-D":
            state.pop(key, None)
    return state


def content(table: ts.Table) -> dict[int, str | None]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def once(changes: list[tuple[int, str, int, str | None]]) -> bool:
    places = [(snapshot, key) for snapshot, _, key, _ in changes]
    return len(places) == len(set(places))


def test_the_rows_then_the_log_each_change_once(table: ts.Table) -> None:
    table.upsert(rows([1, 2, 3], "a"))
    reading = table.consume(follow=False)
    first = next(reading)
    table.upsert(rows([2, 4], "b"))
    table.delete(pa.table({"id": [3]}))
    got = listed([first, *reading])
    assert folded(got) == content(table) == {1: "a1", 2: "b2", 4: "b4"}
    assert once(got) and {change[0] for change in got} == {1, 2, 3}


def test_a_follower_sees_a_change_while_it_waits(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    seen: list[ChangeBatch] = []
    arrived = threading.Event()

    def follow() -> None:
        for batch in table.consume("latest", stop=lambda: len(seen) >= 1):
            seen.append(batch)
            arrived.set()

    follower = threading.Thread(target=follow)
    follower.start()
    writer = ts.open_table(table.location)
    while not arrived.is_set():
        writer.upsert(rows([7], "x"))
        arrived.wait(0.5)
    follower.join(30)
    assert not follower.is_alive()
    assert listed(seen)[0][1:] == ("+I", 7, "x7")


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_reading_in_pieces_from_position_to_position(table: ts.Table, cut: int) -> None:
    for step in range(5):
        table.upsert(rows([step, step + 1, step + 2], f"s{step}-"))
    position: Any = None
    got: list[tuple[int, str, int, str | None]] = []
    while True:
        how: dict[str, Any] = {"position": position} if position else {"scan": "from-timestamp", "timestamp": 0}
        part = list(islice(table.consume(follow=False, **how), cut))
        if not part:
            break
        got += listed(part)
        position = str(part[-1].position)
    assert once(got) and len(got) == 15 and folded(got) == content(table)


def test_a_named_consumer_goes_on_in_the_log(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="billing", follow=False):
        batch.commit()
    for step in range(3):
        table.upsert(rows([step], f"s{step}-"))
        got = listed(table.consume(consumer_id="billing", follow=False))
        assert (step + 2, "+I", step, f"s{step}-{step}") in got and once(got)
        for batch in table.consume(consumer_id="billing", follow=False):
            batch.commit()
        assert listed(table.consume(consumer_id="billing", follow=False)) == []


def test_snapshots_that_nobody_published_are_read_from_the_file_store_and_left_out_of_the_log_later(
    table: ts.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(rows([1], "a"))
    reading = table.consume("from-timestamp", timestamp=0, follow=False, consumer_id="c")
    monkeypatch.setattr("tablestore.table.writer.publish_after_commit", lambda *_: None)
    table.upsert(rows([2], "b"))
    got = []
    for batch in reading:
        got += listed([batch])
        batch.commit()
    assert folded(got) == {1: "a1", 2: "b2"}
    monkeypatch.undo()
    table.upsert(rows([3], "c"))
    assert listed(table.consume(consumer_id="c", follow=False)) == [(3, "+I", 3, "c3")]


def test_a_log_that_was_made_anew_is_noticed_and_the_hole_filled(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    table.upsert(rows([2], "b"))
    rebuild_log(table.context)
    table.upsert(rows([3], "c"))
    got = listed(table.consume(consumer_id="c", follow=False))
    assert once(got) and folded(got) == {2: "b2", 3: "c3"}


def test_a_discontinuity_is_named_before_anything_behind_it(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    table.overwrite(rows([2], "o"))
    table.upsert(rows([3], "b"))

    def from_the_start(**how: Any) -> list[tuple[int, str, int, str | None]]:
        return listed(table.consume("from-timestamp", timestamp=0, follow=False, **how))

    with pytest.raises(ts.errors.NotFoundError, match="snapshot 2") as caught:
        from_the_start()
    assert caught.value.kind == "discontinuity"
    assert folded(from_the_start(on_discontinuity="skip")) == {1: "a1", 3: "b3"}
    restarted = from_the_start(on_discontinuity="restart")
    assert restarted[-2:] == [(2, "+I", 2, "o2"), (3, "+I", 3, "b3")]


def test_filters_and_columns(table: ts.Table) -> None:
    table.upsert(rows([1, 2], "in"))
    reading = table.consume(filter="v like 'in%'", columns=["id"], follow=False)
    got = [next(reading)]
    table.upsert(rows([1], "out"))
    table.upsert(rows([3], "in"))
    changes = [(row["_row_kind"], row["id"]) for batch in [*got, *reading] for row in batch.rows.to_pylist()]
    assert sorted(changes[:2]) == [("+I", 1), ("+I", 2)] and changes[2:] == [("-D", 1), ("+I", 3)]


def test_pairs_of_an_upsert_log_are_found_in_the_file_store(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    table.upsert(rows([1], "b"))
    got = listed(table.consume("from-timestamp", timestamp=0, pairs=True, follow=False))
    assert got == [(1, "+I", 1, "a1"), (2, "-U", 1, "a1"), (2, "+U", 1, "b1")]


def test_append_tables_have_a_log_too(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table = make(catalog, broker, "append-log", keyed=False)
    table.append(rows([1, 1], "a"))
    reading = table.consume(follow=False)
    first = next(reading)
    table.append(rows([1], "b"))
    assert listed([first, *reading]) == [(1, "+I", 1, "a1"), (1, "+I", 1, "a1"), (2, "+I", 1, "b1")]


def test_columns_that_were_added_and_renamed_are_read_by_id(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    catalog = ts.open_catalog(str(Path(table.location.removeprefix("file://")).parents[1]))
    altered = catalog.alter_table("shop.t", [ts.RenameColumn("v", to="w"), ts.AddColumn("n", pa.int64())])
    assert altered is not None
    altered.upsert(pa.table({"id": [2], "w": ["b"], "n": [5]}))
    got = [row for batch in altered.consume("from-timestamp", timestamp=0, follow=False) for row in batch.rows.to_pylist()]
    assert got == [
        {"_row_kind": "+I", "id": 1, "w": "a1", "n": None},
        {"_row_kind": "+I", "id": 2, "w": "b", "n": 5},
    ]


def test_a_poison_message_of_ours_is_named_and_one_of_strangers_left_out(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1], "a"))
    topic, uuid = table.options()["log.kafka.topic"], table.context.table_uuid or ""
    stranger = Producer({"bootstrap.servers": broker.servers})
    stranger.produce(topic, b"poison", None, 0)
    stranger.flush(10)
    assert folded(listed(table.consume("from-timestamp", timestamp=0, follow=False))) == {1: "a1"}
    headers: Any = [("table", uuid.encode()), ("snapshot", b"2"), ("ordinal", b"0"), ("row-kind", b"+I")]
    stranger.produce(topic, b"poison", None, 0, headers=headers)
    stranger.flush(10)
    stranger.close()
    with pytest.raises(ts.errors.FormatError, match="cannot be understood"):
        list(table.consume("from-timestamp", timestamp=0, follow=False))


def test_dropping_a_table_drops_its_topic_and_creating_fails_whole(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table = make(catalog, broker, "life-cycle")
    table.upsert(rows([1], "a"))
    other = ts.open_catalog(str(Path(table.location.removeprefix("file://")).parents[1] / "other"))
    other.create_database("shop")
    with pytest.raises(ts.errors.AlreadyExistsError, match="Failed to create kafka topic"):
        make(other, broker, "life-cycle")
    assert other.list_tables("shop") == ()
    catalog.drop_table("shop.t")
    again = make(catalog, broker, "life-cycle")
    again.upsert(rows([5], "z"))
    assert folded(listed(again.consume(follow=False))) == {5: "z5"}


def _published_in_the_end(table: ts.Table) -> int:
    """The records that were sent; a broker that comes back may need a second call."""
    for _ in range(3):
        try:
            return sum(report.records for report in publish_log(table.context))
        except ts.StorageError:
            continue
    raise AssertionError("the broker is back and nothing can be published")


def test_a_broker_that_is_down_stops_no_write_and_the_next_publisher_catches_up(
    own_broker: KafkaBroker, catalog: ts.Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore.table.publish.OPEN_TIMEOUT_S", 2.0)
    table = make(catalog, own_broker, "down", **{"log.kafka.socket.timeout.ms": "2000"})
    table.upsert(rows([1], "a"))
    own_broker.kill()
    PUBLISHERS.close()
    snapshot = table.upsert(rows([2], "b"))
    assert snapshot is not None and "has landed" in caplog.text
    with pytest.raises(ts.errors.StorageError, match="Snapshots stay readable"):
        table.consume(follow=False)
    assert content(table) == {1: "a1", 2: "b2"}
    own_broker.start()
    assert _published_in_the_end(table) == 1
    assert folded(listed(table.consume("from-timestamp", timestamp=0, follow=False))) == {1: "a1", 2: "b2"}
