"""Ranks the systems of a suite, and writes the ranks as Markdown: who is faster than us stands above us, with the factor."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.comparison.record import Results
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import FLOOR, OURS, Family

_CORES_OF = ("load", "upserts", "reads", "compaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A system's median in a case, and how many times as fast tablestore is: above 1 a win, below 1 a loss."""

    system: str
    value: float
    times: float | None
    spread: str
    cpu: float | None = None
    """Median processor seconds, where they were taken."""


def cases_of(results: Results, suite: Suite, family: Family) -> Sequence[str]:
    """The cases of a suite that somebody has an answer for, in the order of the run."""
    found = {one.case: None for one in results.measurements if one.suite == suite.name and one.family == family}
    return list(found)


def newest_place(results: Results, suite: Suite, family: Family, case: str) -> float | None:
    """The last place on the axis: what is ranked. Of commits all are."""
    if suite.axis is None or suite.name == "upserts":
        return None
    places = [
        one.at
        for one in results.measurements
        if one.suite == suite.name and one.family == family and one.case == case and one.at is not None and one.status == "ok"
    ]
    return max(places) if places else None


def place_on_axis(results: Results, suite: Suite, family: Family, case: str) -> str:
    """Which place is ranked, as text."""
    at = newest_place(results, suite, family, case)
    return "" if at is None else f" (at {int(at):,} {suite.axis})"


def rank(results: Results, suite: Suite, family: Family, case: str, at: float | None = None) -> Sequence[Rank]:
    """Who has how long, best first. Whoever gave a wrong answer is not among them."""
    at = newest_place(results, suite, family, case) if at is None else at
    chosen = [one for one in results.measurements if one.suite == suite.name and one.family == family and one.case == case]
    wrong = {one.system for one in chosen if one.status == "failed"}
    values: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for one in chosen:
        if one.status == "ok" and suite.metric in one.values and one.system not in wrong and at in (None, one.at):
            values.setdefault(one.system, []).append(one.values[suite.metric])
            if "cpu" in one.values:
                seconds.setdefault(one.system, []).append(one.values["cpu"])
    ours = median(values[OURS[family]]) if OURS[family] in values else None
    ranks = []
    for system, taken in values.items():
        value = median(taken)
        times = None
        if ours and value and system != OURS[family]:
            times = ours / value if suite.is_rate else value / ours
        spread = f"{amount(min(taken), suite)} … {amount(max(taken), suite)}" if len(taken) > 1 else ""
        ranks.append(
            Rank(system=system, value=value, times=times, spread=spread, cpu=median(seconds[system]) if system in seconds else None)
        )
    return sorted(ranks, key=lambda one: one.value, reverse=suite.is_rate)


def suite_table(results: Results, suite: Suite, family: Family) -> list[str]:
    """Tables of a suite, one a case, and what the others said."""
    lines: list[str] = []
    for case in cases_of(results, suite, family):
        ranks = rank(results, suite, family, case)
        lines += [f"**{case}**{place_on_axis(results, suite, family, case)}", ""]
        if ranks:
            lines += ["| | median | beside tablestore | least … most | processor |", "|---|---:|---|---:|---:|"]
            for one in ranks:
                name = f"**{one.system}**" if one.system == OURS[family] else one.system
                lines.append(
                    f"| {name} | {amount(one.value, suite)} | {_beside(one, suite, family)} | {one.spread} | {_processor(one)} |"
                )
            lines.append("")
        reasons = _reasons(results, suite, family, case)
        lines += [*reasons, ""] if reasons else []
    return lines


def losses(results: Results, suites: Sequence[Suite]) -> list[tuple[float, str]]:
    """Where another table store is ahead of us: by how much, and a sentence. Floors are no table stores."""
    found = []
    for suite in suites:
        for family in suite.families:
            for case in cases_of(results, suite, family):
                for one in rank(results, suite, family, case):
                    if one.times is not None and one.times < 1 and not one.system.startswith(FLOOR[family]):
                        place = place_on_axis(results, suite, family, case)
                        text = f"{suite.title}, {case}{place}: {one.system} is {1 / one.times:.1f} x ahead of {OURS[family]}"
                        found.append((1 / one.times, text))
    return sorted(found, reverse=True)


def wins(results: Results, suites: Sequence[Suite]) -> tuple[int, int]:
    """In how many cases we are ahead of another table store, and in how many one is ahead of us."""
    factors = [
        one.times
        for suite in suites
        for family in suite.families
        for case in cases_of(results, suite, family)
        for one in rank(results, suite, family, case)
        if one.times is not None and not one.system.startswith(FLOOR[family])
    ]
    return sum(times >= 1 for times in factors), sum(times < 1 for times in factors)


def core_table(results: Results, family: Family) -> list[str]:
    """Processor seconds a second: how many cores each system keeps busy."""
    shares: dict[str, dict[str, list[float]]] = {}
    for one in results.measurements:
        if one.suite in _CORES_OF and one.family == family and one.status == "ok" and {"seconds", "cpu"} <= one.values.keys():
            shares.setdefault(one.system, {}).setdefault(one.suite, []).append(one.values["cpu"] / one.values["seconds"])
    if not shares:
        return []
    lines = ["| | " + " | ".join(_CORES_OF) + " |", "|---|" + "---:|" * len(_CORES_OF)]
    for system, by_suite in shares.items():
        cells = [f"{median(by_suite[suite]):.2f}" if suite in by_suite else "" for suite in _CORES_OF]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def size_lines(results: Results, family: Family) -> list[str]:
    """Bytes on the disk after the load."""
    found = {
        one.system: one.values["bytes"]
        for one in results.measurements
        if one.suite == "load" and one.family == family and "bytes" in one.values
    }
    if not found:
        return []
    shown = ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in sorted(found.items(), key=lambda item: item[1]))
    return [f"On the disk, each in the codec of its defaults: {shown}.", ""]


def amount(value: float, suite: Suite) -> str:
    """A value with its unit."""
    if suite.unit == "s":
        return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
    return f"{value:,.0f} {suite.unit}" if value >= 100 else f"{value:.1f} {suite.unit}"


def _beside(one: Rank, suite: Suite, family: Family) -> str:
    if one.system == OURS[family]:
        return ""
    if one.times is None:
        return "?"
    words = ("less", "more") if suite.unit == "MiB" else ("faster", "slower")
    return f"**{1 / one.times:.2f} x {words[0]}**" if one.times < 1 else f"{one.times:.2f} x {words[1]}"


def _processor(one: Rank) -> str:
    return "" if one.cpu is None else f"{one.cpu * 1000:.0f} ms" if one.cpu < 1 else f"{one.cpu:.2f} s"


def _reasons(results: Results, suite: Suite, family: Family, case: str) -> list[str]:
    said: dict[str, str] = {}
    for one in results.measurements:
        if (one.suite, one.family, one.case) == (suite.name, family, case) and one.status != "ok":
            last = one.why.strip().splitlines()[-1][:240] if one.why.strip() else ""
            where = "" if one.at is None or suite.axis is None or one.status == "cannot" else f" at {one.at:g} {suite.axis}"
            said.setdefault(one.system, f"- {one.system}: {one.status}{where}: {last}")
    return list(said.values())
