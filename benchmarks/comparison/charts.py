"""Draws a suite as a picture that is readable in grey, and says the same in words.

Hatches and markers tell systems apart, colours do not.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.comparison.record import Measurement, Results
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import FLOOR, OURS, Family
from benchmarks.comparison.tables import Rank, amount, cases_of, place_on_axis, rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HATCHES = ("", "//", "--", "xx", "||", "\\\\", "++", "/")
_MARKERS = ("o", "s", "^", "v", "D", "P", "X", "*")
_STYLES = ("-", "--", "-.", ":")


def chart_name(suite: Suite, family: Family) -> str:
    """The file of a chart."""
    return f"{suite.name}-{family}.svg"


def draw(results: Results, suite: Suite, family: Family, path: Path) -> str | None:
    """Writes the chart of a suite; its text in words. None if there is nothing to draw. Raises ImportError without matplotlib."""
    cases = [case for case in cases_of(results, suite, family) if rank(results, suite, family, case)]
    if not cases:
        return None
    import matplotlib

    matplotlib.use("svg")
    # The same numbers give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "tablestore"
    # Text stays text: found by a search, and short.
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt

    lines = suite.axis is not None and len(_places(results, suite, family)) > 1
    height = 3.2 if lines else 0.6 + 0.3 * max(len(rank(results, suite, family, case)) for case in cases)
    figure, axes = plt.subplots(len(cases), 1, figsize=(7.5, height * len(cases) + 0.4), squeeze=False, layout="constrained")
    names = sorted(
        {one.system for one in results.measurements if one.suite == suite.name and one.family == family}, key=_order(family)
    )
    for case, axis in zip(cases, axes[:, 0], strict=True):
        (_lines if lines else _bars)(axis, results, suite, family, case, names)
        axis.set_title(case, fontsize=10, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
    # Lines of its own end in blanks.
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text(encoding="utf-8").splitlines()), encoding="utf-8")
    return in_words(results, suite, family)


def in_words(results: Results, suite: Suite, family: Family) -> str:
    """What the chart shows, as text."""
    parts = []
    for case in cases_of(results, suite, family):
        ranks = rank(results, suite, family, case)
        if ranks:
            shown = ", ".join(f"{one.system} {amount(one.value, suite)}" for one in ranks)
            parts.append(f"{case}{place_on_axis(results, suite, family, case)}: {shown}")
    return f"{suite.title}, best first. " + "; ".join(parts) + "."


def _order(family: Family) -> Any:
    def key(name: str) -> tuple[bool, bool, str]:
        return name != OURS[family], not name.startswith(FLOOR[family]), name

    return key


def _places(results: Results, suite: Suite, family: Family) -> list[float]:
    return sorted({one.at for one in _ok(results, suite, family) if one.at is not None})


def _ok(results: Results, suite: Suite, family: Family) -> list[Measurement]:
    return [
        one
        for one in results.measurements
        if one.suite == suite.name and one.family == family and one.status == "ok" and suite.metric in one.values
    ]


def _bars(axis: "Axes", results: Results, suite: Suite, family: Family, case: str, names: Sequence[str]) -> None:
    ranks: Sequence[Rank] = rank(results, suite, family, case)
    for number, one in enumerate(reversed(ranks)):
        ours = one.system == OURS[family]
        hatch = _HATCHES[names.index(one.system) % len(_HATCHES)]
        axis.barh(number, one.value, color="0.35" if ours else "0.85", edgecolor="black", hatch="" if ours else hatch)
        axis.text(one.value, number, f" {amount(one.value, suite)}", va="center", fontsize=8)
    axis.set_yticks(range(len(ranks)), [one.system for one in reversed(ranks)], fontsize=8)
    axis.set_xlabel(f"{suite.unit}, {'more' if suite.is_rate else 'less'} is better", fontsize=8)
    axis.margins(x=0.15)
    axis.spines[["top", "right"]].set_visible(False)


def _lines(axis: "Axes", results: Results, suite: Suite, family: Family, case: str, names: Sequence[str]) -> None:
    measured = [one for one in _ok(results, suite, family) if one.case == case]
    for number, name in enumerate(names):
        places = sorted({one.at for one in measured if one.system == name and one.at is not None})
        if not places:
            continue
        values = [median(one.values[suite.metric] for one in measured if one.system == name and one.at == at) for at in places]
        ours = name == OURS[family]
        axis.plot(
            places,
            values,
            label=name,
            color="black" if ours else "0.45",
            linewidth=2.2 if ours else 1.1,
            linestyle="-" if ours else _STYLES[number % len(_STYLES)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            markevery=max(len(places) // 10, 1),
        )
    axis.set_yscale("log")
    if suite.name == "planning":
        axis.set_xscale("log")
    axis.set_xlabel(suite.axis or "", fontsize=8)
    axis.set_ylabel(f"{suite.unit}, {'more' if suite.is_rate else 'less'} is better", fontsize=8)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axis.grid(visible=True, which="major", color="0.9")
    axis.spines[["top", "right"]].set_visible(False)
