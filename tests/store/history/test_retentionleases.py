"""What the table itself keeps snapshots for is let go by its owner alone."""

from collections.abc import Callable

import pytest

from tablestore.errors import ConflictError, InvalidInputError
from tablestore.io.memory import MemoryFileStore
from tablestore.store.history.consumers import LOG_CONSUMER, Consumers
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.files import Faults, FaultyFileStore, SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab

ALL = {"retain_min": 1, "retain_max": 1}
IDS = SeededIds(1)


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Lab:
    clock = ManualClock()
    store = MemoryFileStore(f"holds-{abs(hash(request.node.name))}", clock=clock)
    made = Lab(store, options={"write-only": "true", "consumer.expiration-time": "1 h"}, clock=clock)
    for key in range(5):
        made.write_new((key, "a"))
    return made


def test_a_hold_keeps_snapshots_however_long_its_owner_is_silent(lab: Lab) -> None:
    RetentionLeases(lab.files).take(LOG_HOLD, 3, owner="the log t", ids=IDS)
    lab.open().reset_consumer("reader", 2)
    lab.clock.advance(100 * 86_400)
    report = lab.open().expire_snapshots(**ALL)
    assert report.snapshots == (1, 2) and report.kept_by == "the log t"
    RetentionLeases(lab.files).release(LOG_HOLD)
    assert lab.open().expire_snapshots(**ALL).snapshots == (3, 4)


def test_other_engines_see_a_hold_as_a_consumer(lab: Lab) -> None:
    hold = RetentionLeases(lab.files).take(LOG_HOLD, 3, owner="the log t", ids=IDS)
    assert Consumers(lab.files).get(LOG_CONSUMER).next_snapshot == 3
    RetentionLeases(lab.files).move(hold, 4)
    assert Consumers(lab.files).get(LOG_CONSUMER).next_snapshot == 4
    RetentionLeases(lab.files).take("stream-a1", 2, owner="the stream a1", ids=IDS)
    assert Consumers(lab.files).get("tablestore-hold-stream-a1").next_snapshot == 2
    assert lab.open().consumers() == (), "and its own users do not see it as one"


@pytest.mark.parametrize("name", [LOG_CONSUMER, "tablestore-hold-stream-a1"])
def test_names_of_holds_are_refused_to_users(lab: Lab, name: str) -> None:
    RetentionLeases(lab.files).take(LOG_HOLD, 3, owner="the log t", ids=IDS)
    table = lab.open()
    attempts: list[Callable[[], object]] = [
        lambda: table.reset_consumer(name, 5),
        lambda: table.delete_consumer(name),
        lambda: next(table.consume("full", consumer_id=name, follow=False)),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInputError) as refused:
            attempt()
        assert refused.value.kind == "reserved-name"
    assert table.expire_snapshots(**ALL).snapshots == (1, 2)


def test_a_mirror_that_somebody_removes_or_moves_lets_nothing_go(lab: Lab) -> None:
    RetentionLeases(lab.files).take(LOG_HOLD, 3, owner="the log t", ids=IDS)
    Consumers(lab.files).write(LOG_CONSUMER, 5)
    assert lab.open().expire_snapshots(**ALL).snapshots == (1, 2)
    Consumers(lab.files).delete(LOG_CONSUMER)
    assert lab.open().expire_snapshots(**ALL).snapshots == ()


def test_whoever_took_a_hold_before_cannot_move_it(lab: Lab) -> None:
    holds = RetentionLeases(lab.files)
    first = holds.take(LOG_HOLD, 2, owner="the log t", ids=IDS)
    second = holds.take(LOG_HOLD, 3, owner="the log u", ids=IDS)
    with pytest.raises(ConflictError, match="the log u has it, in epoch 2") as refused:
        holds.move(first, 5)
    assert refused.value.kind == "hold-taken"
    assert holds.find(LOG_HOLD) == second and holds.move(second, 4).next_snapshot == 4
    holds.release(LOG_HOLD)
    third = holds.take(LOG_HOLD, 2, owner="the log t", ids=IDS)
    assert third.epoch == first.epoch
    with pytest.raises(ConflictError, match="by now"):
        holds.move(first, 5)


def test_the_consumer_of_an_earlier_release_is_read_as_a_hold_and_taken_over(lab: Lab) -> None:
    holds = RetentionLeases(lab.files)
    Consumers(lab.files).write(LOG_CONSUMER, 3)
    lab.clock.advance(100 * 86_400)
    old = holds.find(LOG_HOLD)
    assert old is not None and (old.next_snapshot, old.epoch) == (3, 0)
    assert lab.open().expire_snapshots(**ALL).snapshots == (1, 2)
    assert holds.take(LOG_HOLD, 3, owner="the log t", ids=IDS).epoch == 1
    assert lab.open().expire_snapshots(**ALL).snapshots == ()


def test_a_clean_leaves_holds_alone_and_a_branch_has_its_own(lab: Lab) -> None:
    RetentionLeases(lab.files).take(LOG_HOLD, 3, owner="the log t", ids=IDS)
    lab.open().create_branch("b")
    lab.clock.advance(100 * 86_400)
    lab.open().remove_orphan_files(0, dry_run=False)
    assert (
        RetentionLeases(lab.files).find(LOG_HOLD) is not None and RetentionLeases(lab.open().branch("b").context.files).all() == ()
    )
    assert Holdings(lab.files).missing() == {}


def test_a_release_that_dies_leaves_a_hold_on_record_and_can_be_repeated(lab: Lab) -> None:
    for nth in (1, 2):
        faults = Faults()
        RetentionLeases(lab.files).take("stream-a1", 3, owner="the stream a1", ids=IDS)
        faults.crash_nth(nth, op="delete", when="after")
        with pytest.raises(SimulatedCrash):
            RetentionLeases(FaultyFileStore(lab.files, faults)).release("stream-a1")
        left = RetentionLeases(lab.files).find("stream-a1") is not None
        assert left == (nth == 1) and Consumers(lab.files).find("tablestore-hold-stream-a1") is None
        RetentionLeases(lab.files).release("stream-a1")
        assert RetentionLeases(lab.files).all() == ()
