"""What was measured, as values, JSON and Markdown.

A *workload* is one question with the timings of its cases. A *bar* is a promise about a ratio or a size: measured value, bound,
and whether it holds (None: not measured in this run, with the reason).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.measure import Timing

OURS = "tablestore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One workload. ``rows``: how many rows each case handles, for the rate; ``base``: the case that ratios refer to."""

    name: str
    question: str
    rows: int
    base: str
    timings: Mapping[str, Timing]
    notes: str = ""

    def ratio(self, name: str, to: str) -> float | None:
        """How many times longer ``name`` takes than ``to``; None if one of them was not measured."""
        if name not in self.timings or to not in self.timings:
            return None
        return self.timings[name].median / self.timings[to].median

    def cpu_ratio(self, name: str, to: str) -> float | None:
        """The same in processor time; None also where that was not taken."""
        if name not in self.timings or to not in self.timings or not self.timings[to].cpu_median:
            return None
        return self.timings[name].cpu_median / self.timings[to].cpu_median

    def bar(self, name: str, of: str, to: str, bound: float, *, at_least: bool = False, note: str = "") -> "Bar":
        """The bar that the ratio of two of its cases has to take."""
        cpu = self.cpu_ratio(of, to)
        notes = [*([f"{cpu:.2f} x in processor time"] if cpu is not None else []), *([note] if note else [])]
        return Bar(name=name, measured=self.ratio(of, to), bound=bound, at_least=at_least, note="; ".join(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """``measured`` has to be at most (or, with ``at_least``, no less than) ``bound``."""

    name: str
    measured: float | None
    bound: float
    unit: str = "x"
    at_least: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """None if it was not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


@dataclass(slots=True)
class Report:
    """Everything of one run."""

    settings: Mapping[str, Any]
    machine: Mapping[str, str]
    results: list[Result] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    """What is not a table of timings, as Markdown."""

    def to_json(self) -> str:
        """The whole report, with every single measurement."""
        return json.dumps(
            {
                "settings": dict(self.settings),
                "machine": dict(self.machine),
                "workloads": [_result_record(result) for result in self.results],
                "bars": [{**asdict(bar), "passed": bar.passed} for bar in self.bars],
                "skipped": self.skipped,
                "sections": self.sections,
            },
            indent=2,
        )

    def to_markdown(self) -> str:
        """The report for people."""
        lines = ["# Benchmarks", "", *(f"- {key}: {value}" for key, value in {**self.machine, **self.settings}.items()), ""]
        if self.bars:
            lines += ["## Bars", "", "| bar | measured | bound | |", "|---|---:|---:|---|", *map(_bar_line, self.bars), ""]
        for result in self.results:
            lines += [f"## {result.name}", "", result.question, ""]
            lines += [f"| case | median | rows/s | x {result.base} | x in cpu time | spread | runs |", "|---|" + "---:|" * 6]
            lines += [_timing_line(result, timing) for timing in result.timings.values()]
            lines += ["", *([result.notes, ""] if result.notes else [])]
        lines += self.sections
        if self.skipped:
            lines += ["## Not measured", "", *(f"- {reason}" for reason in self.skipped), ""]
        return "\n".join(lines)


def _result_record(result: Result) -> dict[str, Any]:
    base = result.timings.get(result.base)
    return {
        "name": result.name,
        "question": result.question,
        "rows": result.rows,
        "base": result.base,
        "notes": result.notes,
        "timings": [
            {
                "case": timing.name,
                "median_s": timing.median,
                "rows_per_s": result.rows / timing.median,
                "ratio": timing.median / base.median if base else None,
                "spread": timing.spread,
                "cpu_median_s": timing.cpu_median,
                "seconds": list(timing.seconds),
                "cpu_seconds": [sample.cpu for sample in timing.samples],
            }
            for timing in result.timings.values()
        ],
    }


def _timing_line(result: Result, timing: Timing) -> str:
    wall, cpu = (
        "" if ratio is None else f"{ratio:.2f}"
        for ratio in (result.ratio(timing.name, result.base), result.cpu_ratio(timing.name, result.base))
    )
    return (
        f"| {timing.name} | {_seconds(timing.median)} | {_rate(result.rows / timing.median)} | {wall} | {cpu} | "
        f"{timing.spread:.0%} | {len(timing.seconds)} |"
    )


def _bar_line(bar: Bar) -> str:
    sign = ">=" if bar.at_least else "<="
    if bar.measured is None:
        return f"| {bar.name} | not measured | {sign} {bar.bound:g} {bar.unit} | {bar.note} |"
    verdict = "**pass**" if bar.passed else "**FAIL**"
    text = f"{bar.measured:.2f}" if bar.unit in ("x", "s") else f"{bar.measured:.0f}"
    return f"| {bar.name} | {text} {bar.unit} | {sign} {bar.bound:g} {bar.unit} | {verdict}{' ' if bar.note else ''}{bar.note} |"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e5 else f"{rate / 1e3:.1f} k"
