"""Counts of a night, by scenario, and their JSON.

faults     by verb and kind, those that really happened         kills    processes that died, by where
states     comparisons of rows with what they should be         lives    tables that were lived from beginning to end
seconds    of the clock and of the processor
"""

import json
import os
import platform
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Tally:
    """Counts some lives of one scenario. ``measured``: what a life has measured, each time."""

    lives: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    states: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    measured: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Count what another one has counted."""
        self.lives += other.lives
        self.faults.update(other.faults)
        self.kills.update(other.kills)
        self.outcomes.update(other.outcomes)
        self.states += other.states
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds
        self.measured += other.measured

    def content(self) -> dict[str, Any]:
        """As JSON holds it, the most frequent first."""
        counters = {"faults": self.faults, "kills": self.kills, "outcomes": self.outcomes}
        return {
            "lives": self.lives,
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "faults_total": self.faults.total(),
            "kills_total": self.kills.total(),
            "states": self.states,
            **{name: dict(counter.most_common()) for name, counter in counters.items()},
            **({"measured": self.measured} if self.measured else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that did not hold. ``test``: the file with the named test that fails."""

    scenario: str
    seed: int
    error: str
    test: str

    def content(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"scenario": self.scenario, "seed": self.seed, "error": self.error, "test": self.test}


@dataclass
class NightCounts:
    """One night."""

    version: str
    seed: int
    began: str
    store: str
    scenarios: dict[str, Tally] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    finished: bool = False

    @property
    def total(self) -> Tally:
        """All scenarios together."""
        total = Tally()
        for tally in self.scenarios.values():
            total.add(tally)
        return total

    def content(self) -> dict[str, Any]:
        """As JSON holds it."""
        total = self.total
        per_second = {
            "faults_per_cpu_second": round(total.faults.total() / max(total.cpu_seconds, 0.001), 1),
            "kills_per_cpu_second": round(total.kills.total() / max(total.cpu_seconds, 0.001), 2),
        }
        return {
            "version": self.version,
            "python": platform.python_version(),
            "system": platform.system(),
            "cores": os.cpu_count(),
            "store": self.store,
            "seed": self.seed,
            "began": self.began,
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(total.cpu_seconds, 1),
            "finished": self.finished,
            "lives": total.lives,
            "faults": total.faults.total(),
            "kills": total.kills.total(),
            "states": total.states,
            **per_second,
            "findings": [finding.content() for finding in self.findings],
            "scenarios": {name: tally.content() for name, tally in self.scenarios.items()},
        }

    def save(self, path: Path) -> None:
        """Write it, whole or not at all: a night that is cut short keeps what it has."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(json.dumps(self.content(), indent=1) + "\n")
        temporary.replace(path)
