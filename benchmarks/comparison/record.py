"""Keeps measurements: one line of JSON as soon as it is taken, so that a run that is cut short keeps what it has.

results.jsonl   a line a measurement, appended
results.json    machine, versions, settings, notes and all measurements
results.md      the same for people; charts/*.svg
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

LINES, WHOLE, PAGE, CHARTS = "results.jsonl", "results.json", "results.md", "charts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one system took for one case. ``at``: the place on the axis of a suite that has one (files, commits, processes).
    ``status``: ok, cannot, failed or stopped; only ``ok`` has values. ``values``: seconds, cpu, and what else a suite takes."""

    suite: str
    case: str
    system: str
    family: str
    status: str = "ok"
    at: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


@dataclass(slots=True)
class Results:
    """A run: its surroundings and its measurements."""

    machine: Mapping[str, str]
    settings: Mapping[str, str]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    cut: str = ""
    """What the run had no time for."""

    def median(self, suite: str, case: str, system: str, metric: str, at: float | None = None) -> float | None:
        """Of all rounds of a case; None if there is none."""
        values = [
            one.values[metric]
            for one in self.measurements
            if (one.suite, one.case, one.system, one.status) == (suite, case, system, "ok")
            and metric in one.values
            and (at is None or one.at == at)
        ]
        return median(values) if values else None


class ResultFolder:
    """The folder of a run while it goes on."""

    def __init__(self, directory: Path, *, keep: bool = False) -> None:
        """``keep``: what the folder has of an earlier run stays."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lines = directory / LINES
        if not keep:
            self._lines.write_text("", encoding="utf-8")

    def begin(self, results: Results) -> None:
        """Keeps the surroundings of a run."""
        self._append({"machine": dict(results.machine), "settings": dict(results.settings)})

    def add(self, measurement: Measurement) -> None:
        """Appends a measurement."""
        self._append({"measurement": asdict(measurement)})

    def system(self, name: str, versions: Mapping[str, str], note: str) -> None:
        """Appends who was started, and as which version."""
        self._append({"system": name, "versions": dict(versions), "note": note})

    def missing(self, name: str, why: str) -> None:
        """Appends who is not here."""
        self._append({"missing": name, "why": why})

    def cut(self, what: str) -> None:
        """Appends what the run had no time for."""
        self._append({"cut": what})

    def _append(self, record: Mapping[str, Any]) -> None:
        with self._lines.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")


def read_results(directory: Path) -> Results:
    """What a folder has, of a run that ended or of one that was cut short. Raises FileNotFoundError."""
    with (directory / LINES).open(encoding="utf-8") as lines:
        return _collect(json.loads(line) for line in lines if line.endswith("\n"))


def _collect(records: Iterable[Mapping[str, Any]]) -> Results:
    results = Results(machine={}, settings={})
    for record in records:
        if "measurement" in record:
            results.measurements.append(Measurement(**record["measurement"]))
        elif "machine" in record:
            results.machine, results.settings = record["machine"], record["settings"]
        elif "system" in record:
            results.versions[record["system"]] = record["versions"]
            results.notes[record["system"]] = record["note"]
        elif "cut" in record:
            results.cut = "; ".join([text for text in (results.cut, record["cut"]) if text])
        elif "missing" in record:
            results.missing[record["missing"]] = record["why"]
    return results


def to_json(results: Results) -> str:
    """All of it as one value."""
    return json.dumps(asdict(results), indent=1) + "\n"
