"""Lives of a night: the same plan gives the same trace, a bug is found, and what is found is made small and written down."""

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore.errors import StorageError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.night.counts import NightCounts, Tally
from tablestore.testing.night.document import rendered, written_into
from tablestore.testing.night.fulldisk import FullFileStore
from tablestore.testing.night.life import LifeFailed, live
from tablestore.testing.night.lifeplan import LifePlan, draw_plan, without
from tablestore.testing.night.onenight import Night
from tablestore.testing.night.planted.commitbugs import BUGS
from tablestore.testing.night.planted.hunting import bugs, hunt
from tablestore.testing.night.powercut import VolatileFileStore
from tablestore.testing.night.scenarios import SCENARIOS, Scenario
from tablestore.testing.night.shrinking import error_of, shrunk, write_test

STRUCK = 5


@pytest.mark.parametrize("seed", [STRUCK, 3])
def test_the_same_plan_gives_the_same_trace_and_faults(seed: int) -> None:
    one, other = live(draw_plan(seed)), live(draw_plan(seed))
    assert one.trace == other.trace
    assert one.struck == other.struck
    assert len(one.trace) > 50


def test_a_life_whose_faults_are_named_goes_as_the_one_where_they_were_drawn() -> None:
    drawn = live(draw_plan(STRUCK))
    assert drawn.struck
    named = live(replace(drawn.plan, strikes=drawn.struck))
    assert named.trace == drawn.trace
    assert named.faults == drawn.faults
    assert named.kills == drawn.kills


def test_a_plan_is_the_same_from_its_text() -> None:
    plan = draw_plan(STRUCK)
    plan = replace(plan, strikes=live(plan).struck)
    assert LifePlan.of_json(plan.to_json()) == plan


@pytest.mark.deep
@pytest.mark.parametrize("name", ["lives", "power", "full"])
def test_a_few_lives_end_well(name: str) -> None:
    total = Tally()
    for seed in range(12):
        total.add(SCENARIOS[name].live(seed))
    assert total.lives == 12
    assert total.kills.total() > 10
    assert total.faults.total() > 10
    assert total.states > 20


@pytest.mark.deep
@pytest.mark.parametrize(
    "bug",
    [
        "take_every_occupant_for_another",
        "the_same_nonce_for_every_attempt",
        "drop_the_sync_of_manifests",
    ],
)
def test_a_planted_bug_is_found(bug: str) -> None:
    scenarios = {name: SCENARIOS[name] for name in ("lives", "power", "keepers", "schedules")}
    seconds = iter(range(1_000))
    # Here a second is a look at the clock: three for each life, so that most lives are counted and not timed.
    (result,) = hunt([bug], scenarios, processor_s=lambda: float(next(seconds)), first_seed=1, most_s=600)
    assert result.scenario is not None, f"{result.lives} lives did not meet it"


def test_every_planted_bug_can_be_looked_for() -> None:
    assert len(bugs()) >= 40
    assert {scenario for _, among in bugs().values() for scenario in among} <= set(SCENARIOS)


@pytest.mark.deep
def test_a_finding_is_made_small_and_written_as_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS["the_same_nonce_for_every_attempt"][0](monkeypatch)
    for seed in range(20):
        try:
            live(draw_plan(seed))
        except LifeFailed as failure:
            error, plan = f"{type(failure.error).__name__}: {failure.error}", failure.report.plan
            plan = replace(plan, strikes=failure.report.struck)
            break
    small = shrunk(plan, error, most_attempts=60)
    assert small.steps < plan.steps
    assert len(small.actors) <= 2
    path = write_test(tmp_path, small, error)
    text = path.read_text()
    compile(text, str(path), "exec")
    assert "def test_a_life_ends_well_in_which_" in text
    assert small.to_json() in text
    assert error_of(small) is not None
    monkeypatch.undo()
    assert error_of(small) is None, "without the bug it ends well"


def test_what_is_left_of_a_plan_does_the_same() -> None:
    plan = draw_plan(STRUCK)
    first = plan.actors[0]
    less = without(plan, actors=[plan.actors[-1].name], steps=[(first.name, 0)])
    assert less.actors[0].steps == first.steps[1:]
    assert len(less.actors) == len(plan.actors) - 1


def test_a_night_keeps_what_it_has_and_writes_what_it_finds(tmp_path: Path) -> None:
    lived: list[int] = []

    def live_one(seed: int) -> Tally:
        lived.append(seed)
        if len(lived) == 2:
            raise AssertionError("rows were lost")
        if len(lived) == 4:
            raise KeyboardInterrupt
        return Tally(lives=1, states=2)

    counts = NightCounts(version="1", seed=7, began="2026-01-01T00:00:00", store="built in")
    scenarios = {"mine": Scenario(says="", share=1, live=live_one)}
    night = Night(counts, clock=ManualClock(), scenarios=scenarios, findings=tmp_path / "findings")
    night.run(seconds=100, save=tmp_path / "night.json", show=lambda _: None)
    content = counts.content()
    assert (content["lives"], content["states"], content["finished"]) == (3, 4, False)
    assert [(finding.scenario, finding.seed) for finding in counts.findings] == [("mine", lived[1])]
    assert "rows were lost" in Path(counts.findings[0].test).read_text()
    assert (tmp_path / "night.json").exists()
    page = written_into("before\n<!-- night: begin -->\nold\n<!-- night: end -->\nafter", rendered(content))
    assert "| mine | 3 | 0 | 0 | 4 |" in page
    assert "old" not in page
    assert page.startswith("before")
    assert page.endswith("after")


def test_a_power_cut_takes_what_was_not_synced() -> None:
    store = VolatileFileStore(MemoryFileStore.private("power"), lambda _: True)
    store.write("data/kept", b"1")
    store.sync("data")
    store.write("data/lost", b"2")
    store.delete("data/kept")
    store.overwrite("hint", b"old")
    store.overwrite("hint", b"new", lasting=False)
    assert store.publish_if_absent("snapshot/snapshot-1", b"3")
    assert store.cut() == 3
    assert (store.read("data/kept"), store.exists("data/lost")) == (b"1", False)
    assert (store.read("hint"), store.read("snapshot/snapshot-1")) == (b"old", b"3")


def test_a_full_disk_takes_what_fits_and_room_comes_back() -> None:
    store = FullFileStore(MemoryFileStore.private("full"), [10])
    store.write("a", b"12345678")
    with pytest.raises(StorageError, match="no space left"):
        store.write("b", b"123")
    with pytest.raises(StorageError, match="no space left"), store.open_output("c") as file:
        file.write(b"123")
    assert not store.exists("b")
    assert not store.exists("c")
    store.delete("a")
    store.write("b", b"123")
    assert store.refused == {"write full": 1, "open_output full": 1}
