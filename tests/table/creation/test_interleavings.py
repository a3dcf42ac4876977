"""Several at one name, call by call of the store in an order drawn from a seed: stagers, a creator, a dropper, a sweeper."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tablestore.errors import AlreadyExistsError, ConflictError, NotFoundError, TablestoreError
from tablestore.testing.files import Faults, FaultyFileStore, FileCall
from tablestore.testing.scheduler import Scheduler
from tests.table.creation.places import COLUMNS, NAME, Place, RenamingFaultyStore

SEEDS = 7
# One call of SQLite is one step for the others: who waits for its lock would wait for ever.
KINDS = ("memory", "copying")


class Actors:
    """Who does what in one place; what became of each."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.place = Place(kind, folder)
        self.scheduler = Scheduler(random.Random(seed))
        self.outcomes: dict[str, TablestoreError | None] = {}
        self._acts: dict[str, Callable[[], None]] = {}

    def add(self, name: str, act: Callable[[FaultyFileStore], object]) -> None:
        faults = Faults()
        faults.before(partial(self._step))
        store = (RenamingFaultyStore if self.place.renames else FaultyFileStore)(self.place.files, faults)

        def run() -> None:
            try:
                act(store)
                self.outcomes[name] = None
            except TablestoreError as error:
                self.outcomes[name] = error

        self._acts[name] = run

    def stager(self, name: str, number: int) -> None:
        def act(store: FaultyFileStore) -> None:
            staged = self.place.open(store).stage_table(NAME, COLUMNS, options={"write-only": "true"}, job_id=name)
            staged.table.append([{"id": number, "v": name}] * 2)
            staged.publish()

        self.add(name, act)

    def run(self) -> None:
        self.scheduler.run(self._acts)

    def _step(self, call: FileCall) -> None:
        self.scheduler.step(f"{call.op} {call.path}")

    def rows(self) -> list[int] | None:
        """The ids of the table, None if there is none."""
        catalog = self.place.open()
        return catalog.table(NAME).scan().to_arrow()["id"].to_pylist() if catalog.table_exists(NAME) else None

    def winners(self) -> set[str]:
        return {name for name, error in self.outcomes.items() if error is None}

    def losers_are(self, *kinds: type[TablestoreError]) -> bool:
        return all(error is None or isinstance(error, kinds) for error in self.outcomes.values())

    def check_rest(self) -> None:
        """Of those that lost nothing is left, at the latest after a sweep."""
        self.place.clock.advance(4000)
        self.place.open().sweep_creations()
        assert not [path for path in self.place.rest() if path.startswith("_ctas")]
        if self.rows() is None:
            assert self.place.rest() == set()
        else:
            assert not [path for path in self.place.rest() if "creation-" in path]
            self.place.open().table(NAME).append([{"id": 100, "v": None}])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", KINDS)
def test_of_several_that_stage_one_name_at_most_one_gets_it_and_whole(kind: str, tmp_path: Path) -> None:
    won = 0
    for seed in range(SEEDS):
        actors = Actors(kind, tmp_path, seed)
        for number in range(3):
            actors.stager(f"stager{number}", number)
        actors.run()
        winners = actors.winners()
        assert len(winners) <= 1, seed
        assert actors.losers_are(AlreadyExistsError), (seed, actors.outcomes)
        assert actors.rows() == ([int(next(iter(winners))[-1])] * 2 if winners else None), seed
        actors.check_rest()
        won += len(winners)
    # By copies all may give way to each other.
    assert won == SEEDS if kind == "memory" else won > 0


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_stager_and_a_creator_at_most_one_gets_the_name(kind: str, tmp_path: Path) -> None:
    seen = set()
    for seed in range(SEEDS * 2):
        actors = Actors(kind, tmp_path, seed)
        actors.stager("stager0", 0)

        def create(store: FaultyFileStore, place: Place = actors.place, rests: int = seed % 6 * 20) -> None:
            for _ in range(rests):  # so it comes at another time each time
                store.exists("shop.db/nothing")
            place.open(store).create_table(NAME, COLUMNS).append([{"id": 50, "v": None}])

        actors.add("creator", create)
        actors.run()
        winners = actors.winners()
        expected = {frozenset(): None, frozenset({"stager0"}): [0, 0], frozenset({"creator"}): [50]}
        assert actors.rows() == expected[frozenset(winners)], (seed, actors.outcomes)
        assert actors.losers_are(AlreadyExistsError), (seed, actors.outcomes)
        actors.check_rest()
        seen |= winners
    assert seen == {"stager0", "creator"}


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_staged_and_dropped_at_once_is_whole_or_gone(kind: str, tmp_path: Path) -> None:
    seen = set()
    for seed in range(SEEDS * 2):
        actors = Actors(kind, tmp_path, seed)
        actors.stager("stager0", 0)

        def drop(store: FaultyFileStore, place: Place = actors.place) -> None:
            for _ in range(8):
                place.open(store).drop_table(NAME, ignore_if_not_exists=True)

        actors.add("dropper", drop)
        actors.run()
        assert actors.rows() in (None, [0, 0]), (seed, actors.outcomes)
        stager = actors.outcomes["stager0"]
        assert stager is None or isinstance(stager, (ConflictError, NotFoundError, AlreadyExistsError)), (seed, stager)
        assert actors.outcomes["dropper"] is None, (seed, actors.outcomes)
        actors.check_rest()
        seen.add(actors.rows() is None)
    assert True in seen


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sweeper_and_a_driver_that_is_only_slow_leave_the_whole_table_or_nothing(kind: str, tmp_path: Path) -> None:
    seen = set()
    for seed in range(SEEDS * 2):
        actors = Actors(kind, tmp_path, seed)
        place = actors.place

        def sweep(store: FaultyFileStore, place: Place = place) -> None:
            for _ in range(6):
                place.clock.advance(4000)  # long for everybody
                place.open(store).sweep_creations()

        actors.stager("stager0", 0)
        actors.add("sweeper", sweep)
        actors.run()
        error = actors.outcomes["stager0"]
        assert actors.outcomes["sweeper"] is None, actors.outcomes
        assert actors.rows() == ([0, 0] if error is None else None), (seed, actors.outcomes)
        assert error is None or isinstance(error, (ConflictError, NotFoundError)), (seed, error)
        actors.check_rest()
        seen.add(error is None)
    assert False in seen
