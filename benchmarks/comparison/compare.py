"""Compares two runs: the ratio of their medians, case by case."""

from collections.abc import Sequence

from benchmarks.comparison.record import Results
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.tables import amount, cases_of, rank


def compare(before: Results, after: Results, suites: Sequence[Suite]) -> list[str]:
    """A Markdown table: what each system took in both runs, and how many times as long in the second one."""
    lines = ["| suite | case | system | first | second | second / first |", "|---|---|---|---:|---:|---:|"]
    for suite in suites:
        for family in suite.families:
            for case in cases_of(before, suite, family):
                old = {one.system: one.value for one in rank(before, suite, family, case)}
                new = {one.system: one.value for one in rank(after, suite, family, case)}
                for system in old:
                    if system in new and old[system]:
                        ratio = new[system] / old[system]
                        cells = (amount(old[system], suite), amount(new[system], suite), f"{ratio:.2f}")
                        lines.append(f"| {suite.name} | {case} | {system} | {' | '.join(cells)} |")
    return lines
