"""The tests are tested: an engine with a planted bug must fail the scene that guards against it."""

from typing import Any

import pytest

from tablestore.errors import TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.night.keepers import Keepers
from tablestore.testing.night.planted.commitbugs import BUGS
from tablestore.testing.night.schedules import Play
from tests.support.commitrules import RULES
from tests.support.faultsweep import Scene, Sweep


@pytest.mark.deep
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, tmp_path: Any) -> None:
    plant, rules = BUGS[bug]
    for name in rules:
        with pytest.MonkeyPatch.context() as m:
            plant(m)
            # A broken promise or an error of ours, not a mistake of the patch; without the bug the scene passes.
            with pytest.raises((AssertionError, TablestoreError)):
                RULES[name](MemoryFileStore(f"planted-{bug}-{name}{tmp_path}"))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "bug", ["skip_the_look_at_the_base", "skip_the_renumbering", "skip_the_replay_filter", "commit_messages_whatever_has_landed"]
)
def test_random_schedules_catch_planted_bugs_too(bug: str, tmp_path: Any) -> None:
    caught = []
    for seed in range(60):
        with pytest.MonkeyPatch.context() as m:
            BUGS[bug][0](m)
            try:
                Play(seed, MemoryFileStore(f"planted-{bug}-{seed}{tmp_path}")).run()
            except (AssertionError, TablestoreError) as error:
                caught.append((seed, error))
                break
    assert caught, f"60 schedules did not notice {bug}"


@pytest.mark.deep
@pytest.mark.parametrize("bug", ["expire_what_tags_need", "expire_what_branches_need", "skip_check_deletes"])
def test_random_schedules_of_keepers_catch_planted_bugs_too(bug: str) -> None:
    caught = []
    for seed in range(60):
        with pytest.MonkeyPatch.context() as m:
            BUGS[bug][0](m)
            try:
                Keepers(seed).run()
            except (AssertionError, TablestoreError) as error:
                caught.append((seed, error))
                break
    assert caught, f"60 schedules did not notice {bug}"


@pytest.mark.parametrize("bug", ["take_every_occupant_for_another"])
def test_sweeps_over_failing_operations_catch_planted_bugs_too(bug: str) -> None:
    rows = [(0, "a")]
    scene = Scene(
        keyed=False,
        build=lambda lab: lab.write_new(*rows),
        act=lambda lab, table: table.append(lab.rows((1, "b"))),
        before=rows,
        after=[*rows, (1, "b")],
    )
    sweep = Sweep(scene)
    with pytest.MonkeyPatch.context() as m:
        BUGS[bug][0](m)
        with pytest.raises((AssertionError, TablestoreError)):
            sweep.run(lambda faults, n: faults.fail_nth(n, when="after"))


def test_no_scene_is_there_for_nothing() -> None:
    assert len(BUGS) >= 35
    assert {name for _, rules in BUGS.values() for name in rules} <= set(RULES)
