"""Writes results for people: ``results.md`` of a folder, and the page of the documents."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.charts import chart_name, draw, in_words
from benchmarks.comparison.record import CHARTS, PAGE, WHOLE, Results, read_results, to_json
from benchmarks.comparison.running import SUITES
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import Family
from benchmarks.comparison.tables import core_table, losses, size_lines, suite_table, wins

_HEAD = """# tablestore beside other table stores

`python -m benchmarks run` in a checkout measures this on your own machine (`--quick --python-only`: five minutes), and
`python -m benchmarks results FOLDER PAGE` writes the page. All systems have the same rows, machine and run. They take turns,
each in a process of its own and with the settings that its documents call fast; time is taken inside of it. Every answer is
compared with what pyarrow says, and whoever gives a wrong one has no time here. A **bold** factor is a system that is ahead of
tablestore.
"""
_FAMILIES: tuple[Family, ...] = ("python", "spark")
_TITLES: dict[Family, str] = {"python": "In Python", "spark": "In Spark"}


def finish(folder: Path) -> Results:
    """Writes what follows from the measurements of a folder: JSON, Markdown, charts."""
    results = read_results(folder)
    (folder / WHOLE).write_text(to_json(results), encoding="utf-8")
    text = page(results, SUITES, folder / CHARTS, CHARTS)
    (folder / PAGE).write_text(text, encoding="utf-8")
    return results


def write_document(folder: Path, target: Path) -> None:
    """Writes the page of the documents, its charts beside the other images."""
    images = target.parent.parent / "images"
    text = page(read_results(folder), SUITES, images, "../images", prefix="results-")
    target.write_text(text, encoding="utf-8")


def page(results: Results, suites: Sequence[Suite], charts: Path, link: str, *, prefix: str = "") -> str:
    """The page of a run, its charts written to a folder that the page links to."""
    ahead, behind = wins(results, suites)
    lines = [
        _HEAD,
        "The machine: " + "; ".join(f"{name} {value}" for name, value in results.machine.items()) + ".",
        "",
        "The run: " + "; ".join(f"{name} {value}" for name, value in results.settings.items()) + ".",
        "",
    ]
    if results.cut:
        lines += [f"The run had no time for: {results.cut}.", ""]
    lines += [f"In {ahead} comparisons tablestore is ahead of another table store, in {behind} one is ahead of tablestore.", ""]
    lines += ["## Where tablestore loses", ""]
    lines += [f"- {text}" for _, text in losses(results, suites)] or ["Nowhere in this run."]
    lines.append("")
    for family in _FAMILIES:
        if not any(one.family == family for one in results.measurements):
            continue
        lines += [f"## {_TITLES[family]}", ""]
        for suite in suites:
            if any(one.suite == suite.name and one.family == family for one in results.measurements):
                lines += _section(results, suite, family, charts, link, prefix)
        cores = core_table(results, family)
        if cores:
            lines += [
                f"### Cores in use ({family})",
                "",
                "Processor seconds a second, medians: one process on all cores.",
                "",
                *cores,
            ]
    lines += ["## Systems", "", *_systems(results)]
    return "\n".join(lines).rstrip() + "\n"


def _section(results: Results, suite: Suite, family: Family, charts: Path, link: str, prefix: str) -> list[str]:
    title = suite.title if family == "python" else f"{suite.title} ({_TITLES[family][3:]})"
    lines = [f"### {title}", "", suite.question, ""]
    name = prefix + chart_name(suite, family)
    try:
        words = draw(results, suite, family, charts / name)
    except ImportError:
        words = None
        lines += [in_words(results, suite, family) + " (No chart: there is no matplotlib.)", ""]
    if words is not None:
        lines += [f"![{words}]({link}/{name})", ""]
    lines += suite_table(results, suite, family)
    if suite.name == "load":
        lines += size_lines(results, family)
    return lines


def _systems(results: Results) -> list[str]:
    lines = ["| | versions | |", "|---|---|---|"]
    for name, versions in results.versions.items():
        shown = ", ".join(package if version == "jar" else f"{package} {version}" for package, version in versions.items())
        lines.append(f"| {name} | {shown} | {results.notes.get(name, '')} |")
    lines.append("")
    for name, why in results.missing.items():
        lines.append(f"- {name}: not available: {why}")
    return [*lines, ""]
