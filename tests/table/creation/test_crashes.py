"""A creation with its rows dies at every call of the store: readers see no table or the whole, and a sweep leaves nothing."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tablestore.errors import TablestoreError
from tablestore.table.catalog import Catalog
from tablestore.testing.files import Faults, FaultyFileStore, FileCall, SimulatedCrash, When
from tablestore.testing.memorylog import MemoryBroker
from tests.table.creation.places import COLUMNS, KINDS, NAME, ROWS, Place, RenamingFaultyStore, broker_of

Act = Callable[[Catalog], object]
WHENS: tuple[When, ...] = ("before", "after")
# Whatever the clocks of stores say.
LONG_AGO = timedelta(days=-20_000)
READING = ("read", "size", "exists", "list", "open_input", "input.read")
# Which calls of the store fail: all of them, or a few, since each costs a whole creation.
STRIDES = {"memory": 5, "copying": 7, "local": 17, "sqlite": 19, "sqlite-copying": 29}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.slow)])
def stride(request: pytest.FixtureRequest, kind: str) -> int:
    return STRIDES[kind] if request.param == "some" else 1


def faulty(place: Place, faults: Faults) -> FaultyFileStore:
    return (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)


def state(place: Place) -> str:
    """What a reader sees: nothing, the whole table, or (never) something else."""
    catalog = place.open()
    if not catalog.table_exists(NAME):
        return "nothing"
    found = catalog.table(NAME).scan().to_arrow().to_pylist()
    return "whole" if found == ROWS else f"a part: {found}"


def polled(place: Place, faults: Faults) -> list[str]:
    """What a reader sees who looks after each call that may change it."""
    states = [state(place)]

    def poll(call: FileCall) -> None:
        if call.op not in READING and (call.op == "rename_directory" or call.path.startswith("shop.db")):
            states.append(state(place))

    faults.after(poll)
    return states


def create(broker: MemoryBroker | None) -> Act:
    options = {} if broker is None else {"log.kafka.bootstrap.servers": broker.address}

    def act(catalog: Catalog) -> object:
        with catalog.stage_table(NAME, COLUMNS, ["id"], options={"bucket": "1", "write-only": "true", **options}) as staged:
            staged.table.upsert(ROWS)
            return staged.publish()

    return act


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_creation_that_dies_anywhere_is_whole_or_leaves_nothing(kind: str, when: When, stride: int, tmp_path: Path) -> None:
    with broker_of(f"crash-{kind}-{when}") as broker:
        act, seen = create(broker), []
        for nth in count(1 + WHENS.index(when), stride):
            place, faults = Place(kind, tmp_path), Faults()
            states = polled(place, faults)
            faults.crash_nth(nth, when=when)
            try:
                act(place.open(faulty(place, faults)))
            except SimulatedCrash:
                pass
            else:
                break
            place.clock.advance(4000)
            report = place.open().sweep_creations()
            assert all(one.outcome in ("removed", "finished") for one in report.creations), report
            states.append(state(place))
            assert set(states) <= {"nothing", "whole"} and states == sorted(states), (nth, faults.calls[-1], states)
            rest = place.rest()
            if states[-1] == "nothing":
                assert rest == set() and broker.topics == {} and place.open().list_tables("shop") == (), (nth, faults.calls[-1])
            else:
                assert all(path.startswith("shop.db/orders/") for path in rest), (nth, faults.calls[-1])
                # The log has the rows, or catches up by itself.
                place.open().table(NAME).upsert([{"id": 3, "v": "c"}])
                assert broker.rows(NAME) == [*ROWS, {"id": 3, "v": "c"}], (nth, faults.calls[-1])
            place.open().drop_database("shop", cascade=True)
            assert broker.topics == {} and place.rest() == set(), (nth, faults.calls[-1])
            seen.append(states[-1])
        assert set(seen) == {"nothing", "whole"} and seen == sorted(seen)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_visible_creation_that_dies_anywhere_keeps_its_rows_or_leaves_nothing(kind: str, stride: int, tmp_path: Path) -> None:
    with broker_of(f"visible-{kind}") as broker:
        options = {"bucket": "1", "write-only": "true", "log.kafka.bootstrap.servers": broker.address}
        for when in WHENS:
            seen = []
            for nth in count(1 + WHENS.index(when), stride):
                place, faults = Place(kind, tmp_path), Faults()
                faults.crash_nth(nth, when=when)
                try:
                    creation = place.open(faulty(place, faults)).intend_creation("job", NAME, "me")
                    table, created = creation.create_table(COLUMNS, ["id"], options=options)
                    with table.new_writer(commit_user="me") as writer:
                        writer.write(ROWS)
                        writer.commit()
                    creation.finished()
                except SimulatedCrash:
                    pass
                else:
                    assert created
                    break
                place.clock.advance(4000)
                report = place.open().sweep_creations()
                assert all(one.outcome in ("removed", "finished") for one in report.creations), (nth, report)
                seen.append(state(place))
                assert not [path for path in place.rest() if path.startswith("_ctas")], (nth, faults.calls[-1])
                if seen[-1] == "nothing":
                    assert place.rest() == set() and broker.topics == {}, (nth, faults.calls[-1])
                place.open().drop_database("shop", cascade=True)
                assert broker.topics == {}, (nth, faults.calls[-1])
            assert set(seen) == {"nothing", "whole"} and seen == sorted(seen)
            place.open().drop_database("shop", cascade=True)


@pytest.mark.deep_after(1)
def test_a_creation_whose_store_fails_anywhere_ends_whole_or_leaves_nothing(kind: str, stride: int, tmp_path: Path) -> None:
    act = create(None)
    for when in WHENS:
        for nth in count(1 + WHENS.index(when), stride):
            place, faults = Place(kind, tmp_path), Faults()
            faults.fail_nth(nth, when=when)
            try:
                act(place.open(faulty(place, faults)))
                expected = "whole"
                if not faults.injected_total:
                    break
            except TablestoreError as error:
                expected = "nothing" if error.kind != "commit-outcome-unknown" else state(place)
            assert state(place) == expected, (nth, when, faults.calls)
            place.clock.advance(4000)
            place.open().sweep_creations()
            assert state(place) == expected
            assert expected == "whole" or place.rest() == set(), (nth, when)
            assert not [path for path in place.rest() if path.startswith("_ctas/")]


@pytest.mark.deep_after(2)
def test_a_sweep_that_dies_anywhere_is_finished_by_the_next(kind: str, stride: int, tmp_path: Path) -> None:
    with broker_of(f"sweep-{kind}") as broker:
        for nth in range(1, 200, stride):
            place, creation, faults = Place(kind, tmp_path), Faults(), Faults()
            # Dies right before the step that would make the table: log and copies are there.
            op = "rename_directory" if place.renames else "publish_if_absent"
            creation.before(partial(_die_at_the_step, creation), op=op)
            with pytest.raises(SimulatedCrash):
                create(broker)(place.open(faulty(place, creation)))
            assert len(broker.topics) == 1
            place.clock.advance(4000)
            faults.crash_nth(nth)
            try:
                place.open(faulty(place, faults)).sweep_creations()
            except SimulatedCrash:
                place.open().sweep_creations(dry_run=True)
                swept = place.open().sweep_creations(LONG_AGO)
                assert all(one.outcome == "removed" for one in swept.creations)
            assert state(place) == "nothing" and broker.topics == {} and place.open().list_tables("shop") == ()
            assert not {path for path in place.rest() if ".tmp-" not in path or path.startswith("_ctas/")}
            if not faults.crashed:
                return
        raise AssertionError("it never ended")


def _die_at_the_step(faults: Faults, call: FileCall) -> None:
    if call.op == "rename_directory" or call.path == "shop.db/orders/schema/schema-0":
        faults.crashed = True
        raise SimulatedCrash("right before the table is there")
