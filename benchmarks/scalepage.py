"""Writes the page of the documents about large tables from a report of ``python -m benchmarks scale --json REPORT``.

python -m benchmarks.scalepage REPORT docs/explanation/scale-costs.md
"""

import json
import sys
from pathlib import Path

from benchmarks.projection import table

_HEAD = """# What large tables cost

`python -m benchmarks scale --json REPORT` in a checkout builds tables without rows, whose metadata names up to 100,000 files (a
million with `--million`), and times what is done with them; `python -m benchmarks.scalepage REPORT FILE` writes this page of it.
Times are of one core. How it is built is in [0013](../decisions/0013-manifests-as-columns.md) and
[0014](../decisions/0014-sidecars.md).
"""
_BESIDE = " beside others"


def page(report: Path) -> str:
    """The page of a report."""
    content = json.loads(report.read_text(encoding="utf-8"))
    rounds = content["settings"]["repeats"]
    lines = [
        _HEAD,
        f"This run had {rounds} round(s); with few, other work on the machine shows in single figures.",
        "",
        "## Beside others",
        "",
    ]
    for workload in content["workloads"]:
        if not workload["name"].endswith(_BESIDE):
            continue
        base = workload["timings"][0]["median_s"]
        rows = [
            [timing["case"], f"{timing['median_s'] * 1000:,.0f} ms", f"{timing['median_s'] / base:.1f}"]
            for timing in workload["timings"]
        ]
        title = workload["name"].removesuffix(_BESIDE).capitalize()
        lines += [f"{title}. {workload['question']}", "", *table(["system", "median", "x tablestore"], rows), ""]
    lines += content["sections"]
    if content["skipped"]:
        lines += ["## Not measured", "", *(f"- {reason}" for reason in content["skipped"]), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(page(Path(sys.argv[1])), encoding="utf-8")
