"""Shows a night's counts while it runs: a table on a terminal, a line now and then elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tablestore.testing.night.counts import NightCounts

LINE_EVERY_S = 60


@contextmanager
def progress_to(stream: TextIO, *, hours: float) -> Iterator[Callable[[NightCounts], None]]:
    """A function that shows counts on ``stream``."""
    console = Console(file=stream)
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:

            def redraw(counts: NightCounts) -> None:
                live.update(_table(counts, hours), refresh=True)

            yield redraw
        return
    shown_s = [-LINE_EVERY_S, 0]

    def line(counts: NightCounts) -> None:
        is_new = len(counts.findings) > shown_s[1]
        if counts.seconds - shown_s[0] < LINE_EVERY_S and not counts.finished and not is_new:
            return
        shown_s[:] = [int(counts.seconds), len(counts.findings)]
        print(_line(counts), file=stream, flush=True)
        if is_new:
            finding = counts.findings[-1]
            print(f"  found by {finding.scenario}, seed {finding.seed}: {finding.error[:300]}", file=stream)
            print(f"  {finding.test}", file=stream, flush=True)

    yield line


def _line(counts: NightCounts) -> str:
    total = counts.total
    return (
        f"{counts.seconds / 60:.0f} min, {total.lives:,} lives, {total.faults.total():,} faults, {total.kills.total():,} kills, "
        f"{total.states:,} states checked, {len(counts.findings)} findings"
    )


def _table(counts: NightCounts, hours: float) -> Table:
    table = Table(title=f"{_line(counts)}; of {hours:g} h", title_justify="left")
    for column in ("scenario", "lives", "faults", "kills", "states", "findings"):
        table.add_column(column, justify="left" if column == "scenario" else "right")
    for name, tally in counts.scenarios.items():
        findings = sum(finding.scenario == name for finding in counts.findings)
        numbers = (tally.lives, tally.faults.total(), tally.kills.total(), tally.states, findings)
        table.add_row(name, *(f"{number:,}" for number in numbers))
    for finding in counts.findings:
        table.add_row(f"[bold]{finding.scenario}[/], seed {finding.seed}", finding.test, end_section=True)
    return table
