"""Writes the page of the documents about large tables from reports of ``python -m benchmarks scale --json REPORT`` and
``python -m benchmarks scale --million --json MILLION``.

    python -m benchmarks.scalepage REPORT [MILLION] docs/explanation/scale-costs.md
    python -m benchmarks.scalepage - MILLION docs/explanation/scale-costs.md      keeps what the page has of a REPORT
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.projection import table

_HEAD = """# What large tables cost

`python -m benchmarks scale --json REPORT` in a checkout builds tables without rows, whose metadata names up to 100,000 files, and
times what is done with them; `python -m benchmarks scale --million --json MILLION` does so with a million, beside bars;
`python -m benchmarks.scalepage REPORT MILLION FILE` writes this page of both, which may be of two days. Times are of one core, but
for the first plan of a table without sidecars, which uses two. How it is built is in
[0013](../decisions/0013-manifests-as-columns.md) and [0014](../decisions/0014-sidecars.md).
"""
_TABLES = (
    "*As committed*: by commits of 20,000 files, each of all partitions, which merge manifests with earlier ones now and then:",
    "50 of them leave two runs, and up to five on the way. *Unmerged*: the manifests of the same commits, none of them merged,",
    "as other engines leave them; those without sidecars are of these. *Compacted*: after `compact_manifests`.",
    "",
)
_BESIDE = " beside others"
_MILLION = "## A table of 1,000,000 files"


def page(report: Path, million: Path | None = None) -> str:
    """The page of a report, and of one of a million files."""
    content = json.loads(report.read_text(encoding="utf-8"))
    rounds = content["settings"]["repeats"]
    lines = [
        _HEAD,
        f"This run had {rounds} round(s); with few, other work on the machine shows in single figures.",
        "",
    ]
    beside = [workload for workload in content["workloads"] if workload["name"].endswith(_BESIDE)]
    lines += ["## Beside others", ""] if beside else []
    for workload in beside:
        base = workload["timings"][0]["median_s"]
        rows = [
            [timing["case"], f"{timing['median_s'] * 1000:,.0f} ms", f"{timing['median_s'] / base:.1f}"]
            for timing in workload["timings"]
        ]
        title = workload["name"].removesuffix(_BESIDE).capitalize()
        lines += [f"{title}. {workload['question']}", "", *table(["system", "median", "x tablestore"], rows), ""]
    lines += content["sections"]
    if million is not None:
        lines += _of_million(json.loads(million.read_text(encoding="utf-8")))
    if content["skipped"]:
        lines += ["## Not measured", "", *(f"- {reason}" for reason in content["skipped"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def with_million(text: str, million: Path) -> str:
    """A page that is there, with another report of a million files."""
    kept, _, _ = text.partition(_MILLION)
    return "\n".join([kept.rstrip(), "", *_of_million(json.loads(million.read_text(encoding="utf-8")))]).rstrip() + "\n"


def _of_million(content: dict[str, Any]) -> list[str]:
    """The measurements, and the bars beside them."""
    rows = [
        [bar["name"], f"{bar['measured']:.2f} {bar['unit']}", f"{bar['bound']:g} {bar['unit']}", "" if bar["passed"] else "missed"]
        for bar in content["bars"]
    ]
    bars = table(["", "measured", "bar", ""], rows)
    return [*content["sections"], *_TABLES, "Medians beside the bars that they are to stay below:", "", *bars, ""]


if __name__ == "__main__":
    *reports, target = map(Path, sys.argv[1:])
    is_kept = reports[0] == Path("-")
    target.write_text(
        with_million(target.read_text(encoding="utf-8"), reports[1]) if is_kept else page(*reports), encoding="utf-8"
    )
