"""Takes away from a life whatever is not needed for it to fail, and writes the rest as a named test.

    drawn faults -> those that struck, by name -> without actors -> without steps -> without strikes -> again, until nothing goes

Whose turn it is is drawn anew where somebody is missing, so of each attempt some orders are tried.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tablestore.io.filestore import FileStore
from tablestore.testing.night.life import LifeFailed, live
from tablestore.testing.night.lifeplan import LifePlan, without

T = TypeVar("T")
MOST_ATTEMPTS = 400
_ORDERS = 3
_WORDS = 3

Fails = Callable[[LifePlan], str | None]
"""The error that a plan ends with, None if it ends well."""


def error_of(plan: LifePlan, *, own: FileStore | None = None) -> str | None:
    """Live a plan; the error that it ended with, or None."""
    try:
        live(plan, own=own)
    except LifeFailed as failure:
        return f"{type(failure.error).__name__}: {failure.error}"
    return None


def shrunk(plan: LifePlan, error: str, fails: Fails = error_of, *, most_attempts: int = MOST_ATTEMPTS) -> LifePlan:
    """The least plan that was found to fail with such an error. ``plan`` names its strikes."""
    attempts = 0
    smaller: LifePlan | None = plan
    while smaller is not None:
        plan, smaller = smaller, None
        for candidate in _candidates(plan):
            for order in range(_ORDERS):
                attempts += 1
                if attempts > most_attempts:
                    return plan
                tried = replace(candidate, turns=plan.turns + order)
                seen = fails(tried)
                if seen is not None and _is_like(seen, error):
                    smaller = tried
                    break
            if smaller is not None:
                break
    return plan


def _candidates(plan: LifePlan) -> Iterator[LifePlan]:
    for actor in plan.actors:
        yield without(plan, actors=[actor.name])
    steps = [(actor.name, step.number) for actor in plan.actors for step in actor.steps]
    for some in _parts(steps):
        yield without(plan, steps=some)
    for strikes in _parts(plan.strikes or ()):
        yield without(plan, strikes=strikes)


def _parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """All, halves, quarters, …, each alone."""
    size = len(things)
    while size:
        for start in range(0, len(things), size):
            yield things[start : start + size]
        size //= 2


def _is_like(error: str, other: str) -> bool:
    return error.split()[:_WORDS] == other.split()[:_WORDS]


def write_test(folder: Path, plan: LifePlan, error: str) -> Path:
    """Write a test that fails as long as the plan does; returns its file."""
    words = re.sub(r"[^a-z]+", "_", error.partition(":")[2].lower()).strip("_").split("_")[:8]
    name = f"a_life_ends_well_in_which_{'_'.join(words)}" if words else "a_life_ends_well"
    is_own = plan.store == "own"
    own = ', own=open_store(os.environ["NIGHT_STORE"])' if is_own else ""
    lines = [
        f'"""Found by the night, seed {plan.seed}: {_short(error)}"""',
        "",
        *(["import os", "", "from tablestore.io.opening import open_store"] if is_own else []),
        "from tablestore.testing.night.life import live",
        "from tablestore.testing.night.lifeplan import LifePlan",
        "",
        f"# {plan.steps} steps of {len(plan.actors)} actors, {len(plan.strikes or ())} faults",
        f"PLAN = '''{plan.to_json()}'''  # noqa: E501",
        "",
        "",
        f"def test_{name}() -> None:",
        f"    live(LifePlan.of_json(PLAN){own})",
        "",
    ]
    return _written(folder, f"test_life_{plan.seed}.py", lines)


def write_seed_test(folder: Path, scenario: str, seed: int, error: str) -> Path:
    """Write a test that lives one seed of another scenario; returns its file."""
    lines = [
        f'"""Found by the night, scenario {scenario}, seed {seed}: {_short(error)}"""',
        "",
        "from tablestore.testing.night.scenarios import SCENARIOS",
        "",
        "",
        f"def test_{scenario.replace('-', '_')}_of_seed_{seed}_end_well() -> None:",
        f'    SCENARIOS["{scenario}"].live({seed})',
        "",
    ]
    return _written(folder, f"test_{scenario.replace('-', '_')}_{seed}.py", lines)


def _short(error: str) -> str:
    return " ".join(error.split())[:80].replace('"', "'").replace("\\", "/")


def _written(folder: Path, name: str, lines: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(lines))
    return path
