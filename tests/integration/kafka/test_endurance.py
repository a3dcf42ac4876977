"""The topic and its readers under fire: kills, broker faults, zombies, many writers, handovers in the midst of writes.

Each prints its seed. The larger counts are behind the marker ``slow``.
"""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.log.connector import open_log_store
from tablestore.log.logstore import SlotFenced
from tablestore.log.publish.publisher import LogPublisher
from tablestore.log.publish.slotlocks import SlotLocks, user_lock_folder
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import PROCESSES, SCHEMA, check_topic, content, rows, write_for_ever, write_some

CLOCK = SystemClock()
QUICK = {"write-only": "true", "snapshot.num-retained.min": "100000"}
LOCKS = SlotLocks(user_lock_folder())


def make(path: Path, broker: KafkaBroker, topic: str, **options: str) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    options = {"bucket": "2", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic, **QUICK, **options}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


@pytest.mark.deep
@pytest.mark.parametrize("kills", [6, pytest.param(500, marks=pytest.mark.slow)])
def test_writers_that_are_killed_anywhere_leave_a_topic_that_says_what_the_table_says(
    kills: int, tmp_path: Path, broker: KafkaBroker
) -> None:
    table = make(tmp_path, broker, f"killed-{kills}")
    chance = random.Random(17)
    for kill in range(kills):
        writer = PROCESSES.Process(target=write_for_ever, args=(table.location, kill), daemon=True)
        writer.start()
        _wait_for_a_commit(table)
        CLOCK.sleep(0.4 * chance.random())
        writer.kill()
        writer.join()
    table.change_log.publish()
    check_topic(table, broker.servers)


def _wait_for_a_commit(table: ts.Table) -> None:
    snapshots = table.context.snapshots
    before, deadline_s = snapshots.listed_ids()[-1:], CLOCK.steady_s() + 120
    while snapshots.listed_ids()[-1:] == before:
        assert CLOCK.steady_s() < deadline_s, "the writer does not get to work"
        CLOCK.sleep(0.01)


@pytest.mark.deep
@pytest.mark.parametrize("faults", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_broker_that_dies_or_stands_still_loses_nothing_and_doubles_nothing(
    faults: int, tmp_path: Path, own_broker: KafkaBroker
) -> None:
    table = make(tmp_path, own_broker, "faults")
    chance = random.Random(23)
    stop = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        step = 0
        try:
            while not stop.is_set():
                step += 1
                table.upsert(rows([chance.randrange(30), 100 + step], f"s{step}-"))
        except BaseException as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for fault in range(faults):
        CLOCK.sleep(0.2 + 0.3 * chance.random())
        if fault % 4 == 0:
            own_broker.kill()
            own_broker.start()
        else:
            own_broker.pause()
            CLOCK.sleep(0.3 * chance.random())
            own_broker.resume()
    stop.set()
    writer.join(180)
    assert not writer.is_alive() and not errors
    # A killed broker may lose a transaction that it acknowledged: a publisher that stays open does not notice, looking does.
    table.change_log.publish(look=True)
    check_topic(table, own_broker.servers)


@pytest.mark.deep
@pytest.mark.parametrize("zombies", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_publisher_that_was_overtaken_is_fenced(zombies: int, tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, f"zombies-{zombies}", **{"log.system": "kafka"})
    settings = table.change_log.settings
    fenced = 0
    for number in range(zombies):
        # The table publishes what it writes itself: that is the one who overtakes.
        zombie = LogPublisher(table.context, open_log_store(settings), settings, LOCKS)
        zombie.open()
        table.close()
        table.upsert(rows([number, 500], f"z{number}-"))
        try:
            assert zombie._slot is not None
            pending = list(_everything(zombie))
            zombie._slot.publish(pending, table=table.context.table_uuid or "")
        except SlotFenced:
            fenced += 1
        zombie.close()
    assert fenced == zombies
    table.change_log.publish()
    check_topic(table, broker.servers)


def _everything(publisher: LogPublisher) -> "Iterator[object]":
    publisher._marks = dict.fromkeys(publisher._marks)
    publisher._done = 0
    latest = publisher._context.snapshots.latest()
    assert latest is not None
    return publisher._pending(latest.id)


@pytest.mark.deep
def test_eight_writers_publish_every_change_once_and_do_not_fence_each_other_for_good(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "eight", bucket="3")
    writers = [PROCESSES.Process(target=write_some, args=(table.location, number, 3)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
        assert writer.exitcode == 0
    assert len(content(table)) == 8 * 3 + 1
    table.change_log.publish()
    check_topic(table, broker.servers)


@pytest.mark.deep
def test_the_number_of_slots_changes_while_writers_are_at_work(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "slots", bucket="3")
    for slots in (3, 1):
        writers = [PROCESSES.Process(target=write_some, args=(table.location, number + 10 * slots, 3)) for number in range(2)]
        for writer in writers:
            writer.start()
        table = table.refresh().alter(ts.SetOption("tablestore.log.publisher-slots", str(slots)))
        for writer in writers:
            writer.join(300)
        # A writer that had opened the table before the change is told so; its rows are not there, nor half of them.
        table.upsert(rows([slots], "after"))
    table.change_log.publish()
    check_topic(table, broker.servers)


@pytest.mark.deep
@pytest.mark.parametrize("handovers", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_readers_that_begin_in_the_midst_of_writes_see_every_change_once(
    handovers: int, tmp_path: Path, broker: KafkaBroker
) -> None:
    table = make(tmp_path, broker, f"handovers-{handovers}")
    marks = _a_key_in_each_bucket(table)
    chance = random.Random(5)
    table.upsert(rows(list(range(20)), "begin-"))
    at_once = 10
    for first in range(0, handovers, at_once):
        if first % 50 == 0:
            table.compact(full=True)
        readers = [_Reader(ts.open_table(table.location), marks, f"end-{first}-") for _ in range(at_once)]
        for reader in readers:
            reader.start()
            table.upsert(rows(chance.sample(range(20), 3), f"{first}-{chance.random()}-"))
        table.upsert(rows(marks, f"end-{first}-"))
        for reader in readers:
            reader.join(120)
            assert not reader.is_alive() and reader.error is None, reader.error
            assert reader.repeated == 0
            assert reader.state == content(table)


class _Reader(threading.Thread):
    """Reads the whole table and then follows it, until the last commit's row of every bucket has come."""

    def __init__(self, table: ts.Table, marks: list[int], end: str) -> None:
        super().__init__(daemon=True)
        self._table, self._marks, self._end = table, marks, end
        self.state: dict[int, str] = {}
        self.seen: set[tuple[int, int]] = set()
        self.repeated = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for batch in self._table.consume("full", stop=self._is_done):
                for row in batch.rows.to_pylist():
                    if not batch.in_frame:
                        self.repeated += (batch.snapshot_id, row["id"]) in self.seen
                        self.seen.add((batch.snapshot_id, row["id"]))
                    self.state[row["id"]] = row["v"]
                if self._is_done():
                    return
        except BaseException as error:
            self.error = error

    def _is_done(self) -> bool:
        return all(self.state.get(mark, "").startswith(self._end) for mark in self._marks)


def _a_key_in_each_bucket(table: ts.Table) -> list[int]:
    """For each bucket a key that lies in it, found by writing keys one by one."""
    found: dict[int, int] = {}
    key = 10_000
    while len(found) < 2:
        snapshot = table.upsert(rows([key], "mark-"))
        assert snapshot is not None
        found.setdefault(table.context.manifests.delta(snapshot)[0].bucket, key)
        key += 1
    return list(found.values())
