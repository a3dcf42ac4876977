"""Runs suites: one after the other, all systems in turns, within the time that a run has."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.comparison.record import ResultFolder, Results
from benchmarks.comparison.rows import RowSource
from benchmarks.comparison.session import OutOfTime, Session, Sizes
from benchmarks.comparison.suites import (
    changes,
    commits,
    compaction,
    load,
    lookups,
    memory,
    planning,
    reads,
    statements,
    upserts,
)
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import Family, Installed, SystemSpec, install
from benchmarks.peers import PeerUnavailable

SUITES: Sequence[Suite] = (
    load.SUITE,
    upserts.SUITE,
    reads.SUITE,
    compaction.SUITE,
    lookups.SUITE,
    changes.SUITE,
    statements.SUITE,
    commits.SUITE,
    planning.SUITE,
    memory.SUITE,
)
_FAMILIES: tuple[Family, ...] = ("python", "spark")
# A suite of Spark takes this many times as long as one of Python.
_SPARK_WEIGHT = 2.0


@dataclass(slots=True)
class Teller(AbstractContextManager["Teller"]):
    """Says what runs and how long the run will take: a bar on a terminal, else lines."""

    total: float
    console: Console = field(default_factory=lambda: Console(stderr=True))
    _progress: Progress | None = None
    _task: TaskID | None = None
    _begun: float = 0.0
    _done: float = 0.0
    _suite: str = ""
    _said: str = ""

    def __enter__(self) -> "Teller":
        self._begun = time.monotonic()
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self._progress = Progress(*columns, console=self.console)
            self._progress.start()
            self._task = self._progress.add_task("", total=self.total)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._progress is not None:
            self._progress.stop()

    def suite(self, text: str, done: float) -> None:
        """A suite begins; so much of the run's weight is done."""
        self._suite, self._done = text, done
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, description=text)
            return
        taken = time.monotonic() - self._begun
        left = f", about {taken / done * (self.total - done) / 60:.0f} min left" if done else ""
        self.line(f"[{done / self.total:.0%}{left}] {text}")

    def step(self, text: str) -> None:
        """A step of a suite begins."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=f"{self._suite}: {text}")
            return
        # Of a step that comes round by round one line will do.
        name = text.partition(" (")[0]
        if name != self._said:
            self._said = name
            self.line(f"  {text}")

    def line(self, text: str) -> None:
        """A line that stays."""
        if self._progress is not None:
            self._progress.console.print(text, highlight=False, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)


def pick_suites(names: Sequence[str]) -> Sequence[Suite]:
    """The suites of these names, in their own order; all of none. Raises ValueError."""
    known = [suite.name for suite in SUITES]
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(f"no suite {', '.join(unknown)}; expected {', '.join(known)}")
    return [suite for suite in SUITES if not names or suite.name in names]


def install_all(specs: Sequence[SystemSpec], folder: ResultFolder, say: Callable[[str], None]) -> list[Installed]:
    """Those of the systems that are here, made ready; the others are on record."""
    found = []
    for spec in specs:
        try:
            found.append(install(spec))
        except PeerUnavailable as error:
            why = str(error).strip().splitlines()[0][:300]
            say(f"{spec.name}: not available: {why}")
            folder.missing(spec.name, why)
    return found


def run_suites(
    suites: Sequence[Suite],
    specs: Sequence[SystemSpec],
    sizes: Sizes,
    *,
    folder: ResultFolder,
    work: Path,
    seed: int,
    surroundings: tuple[dict[str, str], dict[str, str]],
) -> None:
    """Runs suites and keeps every measurement in the folder. A run that is out of time ends early and says so."""
    families = [family for family in _FAMILIES if any(spec.family == family for spec in specs)]
    steps = [(suite, family) for family in families for suite in suites if family in suite.families]
    weights = [suite.weight * (_SPARK_WEIGHT if family == "spark" else 1.0) for suite, family in steps]
    folder.begin(Results(machine=surroundings[0], settings=surroundings[1]))
    with Teller(sum(weights)) as teller:
        systems = install_all(specs, folder, teller.line)
        session = Session(
            directory=work,
            systems=systems,
            rows=RowSource(work / "rows", seed),
            sizes=sizes,
            folder=folder,
            listener=teller,
            deadline=time.monotonic() + sizes.run_s,
        )
        try:
            for number, (suite, family) in enumerate(steps):
                teller.suite(f"{suite.name}, {family}", sum(weights[:number]))
                session.begin(suite.name, family)
                suite.run(session)
                session.end_suite()
        except OutOfTime:
            left = ", ".join(f"{suite.name} ({family})" for suite, family in steps[number:])
            teller.line(f"the time of the run, {sizes.run_s:.0f} s, is over; cut or left out: {left}")
            folder.cut(left)
        finally:
            session.close()
