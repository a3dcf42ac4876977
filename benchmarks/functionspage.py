"""Writes the page of the documents about the costs of functions from reports of ``python -m benchmarks functions --json REPORT``.

    python -m benchmarks.functionspage REPORT [LATER ...] docs/explanation/function-costs.md

What LATER reports measured anew, such as those of ``--only``, takes the place of what the first one has. The reasons at the end of
the page are written by hand, and stay.
"""

import datetime as dt
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.projection import table

_NEAR = 4.5
_REASONS = "## Why"
_OF_FEW = " of 1,000 values"
_BASE = ", base "

_HEAD = """# What functions cost on DuckDB

The engine `duckdb` runs [Spark's functions](../reference/functions.md) in DuckDB's own words where these mean the same. For the
others it combines several of DuckDB's functions, or DuckDB calls an Arrow function of tablestore's with a batch of rows.
`python -m benchmarks functions` in a checkout measures a call of each function, next to what DuckDB has built in of the same kind;
`--only parse_url` measures one, `--quick` a million rows, and `--json REPORT` writes what
`python -m benchmarks.functionspage REPORT FILE` makes this page of. Full size is 10 million rows.
"""
_WITHOUT = """## Of what DuckDB has nothing

XML, sketches with numbers, intersections and differences of sketches, and ciphers: no bar is claimed for them. `--beside-spark`
measures them beside Spark over the same rows instead.
"""


@dataclass(slots=True)
class _Costs:
    """The costs of a call, of all different values and of 1,000: times its base, or µs a row.

    ``beside``: its base, or why it has none.
    """

    beside: str
    values: float | None = None
    few: float | None = None

    @property
    def most(self) -> float:
        return max(self.values or 0.0, self.few or 0.0)


@dataclass(slots=True)
class _Report:
    """A report: the calls with a built-in of the same kind, and those without one."""

    day: dt.date
    rows: int
    rounds: str
    bound: float
    ratios: dict[str, _Costs] = field(default_factory=dict)
    micros: dict[str, _Costs] = field(default_factory=dict)


def _read(path: Path) -> _Report:
    """The report of a file, of the day on which that was written."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    bars = content["bars"]
    report = _Report(
        day=dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC).date(),
        rows=max(workload["rows"] for workload in content["workloads"]),
        rounds=content["settings"]["repeats"],
        bound=max((bar["bound"] for bar in bars), default=0.0),
    )
    for bar in bars:
        name = bar["name"].strip("`")
        costs = report.ratios.setdefault(name.removesuffix(_OF_FEW), _Costs(bar["note"].partition(_BASE)[2]))
        if name.endswith(_OF_FEW):
            costs.few = bar["measured"]
        else:
            costs.values = bar["measured"]
    for line in content["sections"]:
        if line.startswith("| `"):
            call, why, _, micros, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            costs = report.micros.setdefault(call.strip("`"), _Costs(why))
            # Those of 1,000 values stand behind those of all different ones.
            if costs.values is None:
                costs.values = float(micros)
            else:
                costs.few = float(micros)
    return report


def page(paths: Sequence[Path], reasons: str) -> str:
    """The page of some reports, the latest last. ``reasons``: its end, from the heading of the reasons."""
    first, *later = (_read(path) for path in paths)
    ratios, micros = dict(first.ratios), dict(first.micros)
    for report in later:
        ratios |= report.ratios
        micros |= report.micros
    above = [(call, costs) for call, costs in ratios.items() if costs.most > first.bound]
    near = [(call, costs) for call, costs in ratios.items() if _NEAR <= costs.most <= first.bound]
    cells = [[f"`{call}`", f"`{costs.beside}`", _shown(costs.values, 1), _shown(costs.few, 1)] for call, costs in _dearest(above)]
    without = [
        [f"`{call}`", costs.beside, _shown(costs.values, 2), _shown(costs.few, 2)] for call, costs in _dearest(micros.items())
    ]
    anew = sorted({call for report in later for call in (*report.ratios, *report.micros)})
    shown_near = ", ".join(f"`{call}` ({costs.most:.1f})" for call, costs in _dearest(near))
    lines = [
        _HEAD,
        f"The bar is {first.bound:g} times the built-in. {len(above)} of the {len(ratios)} calls of which DuckDB has something",
        "of the kind are above it:",
        "",
        *table(["call", "next to", "x in processor time", "of 1,000 different values"], cells),
        "",
        f"Near it, from {_NEAR:g} on: {shown_near}.",
        "Another run may have calls of both lists on the other side.",
        "",
        f"These are figures of {first.rounds} rounds over {first.rows:,} rows of all different values (columns of sketches have",
        f"one for 20 of them), measured on {first.day}; and where an Arrow function is called also over as many rows with 1,000",
        "different values. The machine, a virtual one with two cores, ran tests meanwhile; base and call took turns, each on one",
        "core, and processor time counts.",
        "",
    ]
    if anew:
        days = " and ".join(sorted({str(report.day) for report in later}))
        calls = ", ".join(f"`{call}`" for call in anew)
        lines += [f"Measured anew on {days}, by `--only`, after functions of their kind had changed: {calls}.", ""]
    lines += [_WITHOUT, *table(["call", "why", "µs a row", "of 1,000 different values"], without), "", reasons]
    return "\n".join(lines).rstrip() + "\n"


def _dearest(costs: Any) -> list[tuple[str, _Costs]]:
    return sorted(costs, key=lambda one: -one[1].most)


def _shown(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}f}"


if __name__ == "__main__":
    *reports, target = map(Path, sys.argv[1:])
    _, heading, rest = target.read_text(encoding="utf-8").partition(_REASONS)
    target.write_text(page(reports, heading + rest), encoding="utf-8")
