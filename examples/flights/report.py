"""What the demo shows: numbered steps, progress on a terminal, the result of each check, a summary at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from tablestore.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One line of the summary."""

    name: str
    rows: int
    snapshots: int
    files: int
    seconds: float
    passed: int
    failed: int


@dataclass(slots=True)
class Report:
    """Prints as it goes and counts the checks. Plain lines when the output is not a terminal."""

    console: Console
    clock: Clock
    passed: int = 0
    failed: int = 0
    parts: list[Part] = field(default_factory=list)
    _steps: int = 0

    def step(self, title: str) -> None:
        self._steps += 1
        self.console.print(f"\n[bold]{self._steps}. {title}[/bold]")

    def say(self, line: str) -> None:
        self.console.print(f"   {line}", markup=False, highlight=False)

    def check(self, promise: str, problem: str | None) -> None:
        """Count and show one check; ``problem`` is None when the promise holds."""
        if problem is None:
            self.passed += 1
            self.console.print(f"   [green]ok[/green]     {promise}", highlight=False)
        else:
            self.failed += 1
            self.console.print(f"   [red]FAILED[/red] {promise}: {problem}", highlight=False)

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Progress]:
        """A bar that the caller advances (task 0). It is gone when done; without a terminal there is none."""
        columns = (TextColumn("   {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        shown = self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=not shown) as bar:
            bar.add_task(title, total=total)
            yield bar

    @contextmanager
    def busy(self, doing: str) -> Iterator[None]:
        """A spinner while something takes its time; nothing without a terminal."""
        if self.console.is_terminal:
            with self.console.status(doing):
                yield
        else:
            yield

    def rows(self, names: Sequence[str], values: Sequence[Sequence[object]]) -> None:
        """A small result, as a grid."""
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        for name in names:
            grid.add_column(name, justify="right")
        for row in values:
            grid.add_row(*(f"{value:,.1f}" if isinstance(value, float) else str(value) for value in row))
        self.console.print(Padding(grid, (0, 0, 0, 3), expand=False), highlight=False)

    @contextmanager
    def part(self, name: str) -> Iterator["Counts"]:
        """Time one half of the demo and count its checks; the caller fills in the counts."""
        counts = Counts()
        start, passed, failed = self.clock.steady_s(), self.passed, self.failed
        yield counts
        self.parts.append(
            Part(
                name=name,
                rows=counts.rows,
                snapshots=counts.snapshots,
                files=counts.files,
                seconds=self.clock.steady_s() - start,
                passed=self.passed - passed,
                failed=self.failed - failed,
            )
        )

    def summary(self) -> None:
        grid = Grid(title="\nflights", title_justify="left", title_style="bold")
        for name in ("", "rows", "snapshots", "files", "seconds", "checks passed"):
            grid.add_column(name, justify="right" if name else "left")
        for part in self.parts:
            checks = f"{part.passed} of {part.passed + part.failed}"
            grid.add_row(part.name, f"{part.rows:,}", str(part.snapshots), str(part.files), f"{part.seconds:.1f}", checks)
        self.console.print(grid)


@dataclass(slots=True)
class Counts:
    """What the table holds when a half is done."""

    rows: int = 0
    snapshots: int = 0
    files: int = 0
