"""Plants a bug, lives until something fails, and says after how many seconds that was.

Each bug is looked for with the scenarios that could meet it. One that is not met within the time is a hole in the night.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from tablestore.testing.night.planted import commitbugs, logbugs, retentionbugs
from tablestore.testing.night.scenarios import Scenario

Plant = Callable[[pytest.MonkeyPatch], None]
_TABLES = ("lives", "power", "keepers", "schedules")
_LOGS = ("log",)
OUT_OF_REACH: Mapping[str, str] = {
    "skip_check_table": "no table of a life is dropped and created again",
    "skip_check_buckets": "no table of a life is rescaled",
    "let_rows_of_any_schema_land": "no column of a life changes its type",
    "let_late_rows_replace_values_of_new_columns": "the model of a life takes that for an upsert of whole rows",
    "let_a_user_mix": "it is a refusal of what jobs of a life do not do",
    "forget_foreign_numbers": "no other engine writes in a life",
}
"""Bugs that a night cannot meet, and why; the rules of commits in our own tests find them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """The result of looking for a bug. ``scenario``: the one that failed; None if nothing did."""

    bug: str
    scenario: str | None
    seed: int
    lives: int
    seconds: float
    error: str

    def content(self) -> dict[str, object]:
        """As JSON holds it."""
        return {
            "bug": self.bug,
            "scenario": self.scenario,
            "seed": self.seed,
            "lives": self.lives,
            "seconds": round(self.seconds, 1),
            "error": self.error,
        }


def bugs() -> dict[str, tuple[Plant, Sequence[str]]]:
    """By name how to plant a bug, and the scenarios that look for it."""
    found: dict[str, tuple[Plant, Sequence[str]]] = {name: (plant, _TABLES) for name, (plant, _) in commitbugs.BUGS.items()}
    found |= {name: (plant, _TABLES) for name, plant in retentionbugs.BUGS.items()}
    found |= {name: (plant, _LOGS) for name, plant in logbugs.BUGS.items()}
    return {name: bug for name, bug in found.items() if name not in OUT_OF_REACH}


def hunt(
    names: Iterable[str], scenarios: Mapping[str, Scenario], *, processor_s: Callable[[], float], first_seed: int, most_s: float
) -> Iterator[Hunt]:
    """Look for bugs, one after the other, each for at most ``most_s`` seconds of the processor (``processor_s`` tells them)."""
    known = bugs()
    for name in names:
        plant, among = known[name]
        yield _hunted(name, plant, {one: scenarios[one] for one in among}, processor_s, first_seed, most_s)


def _hunted(
    name: str, plant: Plant, scenarios: Mapping[str, Scenario], processor_s: Callable[[], float], first_seed: int, most_s: float
) -> Hunt:
    begun, lives = processor_s(), 0
    spent = dict.fromkeys(scenarios, 0.0)
    seeds = dict.fromkeys(scenarios, first_seed)
    while processor_s() - begun < most_s:
        one = min(spent, key=spent.__getitem__)
        seed, before = seeds[one], processor_s()
        error = _failed(plant, scenarios[one], seed)
        lives += 1
        seeds[one] += 1
        spent[one] += max(processor_s() - before, 0.001)
        if error is not None:
            return Hunt(bug=name, scenario=one, seed=seed, lives=lives, seconds=processor_s() - begun, error=error)
    return Hunt(bug=name, scenario=None, seed=first_seed, lives=lives, seconds=processor_s() - begun, error="")


def _failed(plant: Plant, scenario: Scenario, seed: int) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        try:
            scenario.live(seed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
    return None
