"""What all benchmarks of one run share: sizes, seed, peers, a directory to work in."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Case, Timing, stopwatch, take_turns
from benchmarks.peers import Mode, Peer
from benchmarks.report import Bar, Report, Result
from benchmarks.workloads import KEY_KINDS, KeyKind

# pypaimon's pure Python takes a minute where the others take a second, wherever it goes row by row: it does so on this share of
# the rows, and whatever it is compared with runs on as few again.
FEWER = 10
# ... and so often, without a warm-up.
SLOW_RUNS = 3


@dataclass(slots=True)
class Setting:
    """One run of the benchmarks. ``scale`` shrinks the big tables along with ``rows``: 1.0 is full size.

    ``quick``: it only says whether everything is in order, so few rounds do where many make a figure.
    """

    directory: Path
    rows: int
    repeats: int
    seed: int
    report: Report
    peers: Sequence[Peer] = ()
    # The interpreters that have them.
    deltalake: Path | None = None
    pyiceberg: Path | None = None
    warm_up: bool = True
    kinds: Sequence[KeyKind] = KEY_KINDS
    quick: bool = False
    _count: int = field(default=0)

    @property
    def scale(self) -> float:
        """How large this run is, next to a full one."""
        return self.rows / 1_000_000

    def scaled(self, rows: int) -> int:
        """A size of a full run, shrunk with the others."""
        return max(int(rows * self.scale), 100)

    @property
    def fewer_rows(self) -> int:
        """How many rows there are where pypaimon's pure Python goes row by row."""
        return max(self.rows // FEWER, 10)

    @property
    def why_fewer(self) -> str:
        """What the report says beside a workload of :attr:`fewer_rows`."""
        return (
            f"{self.fewer_rows:,} rows where the other workloads have {self.rows:,}: pypaimon's pure Python goes row by row here. "
            "Compare within this table only; fixed costs weigh more."
        )

    def peers_of(self, *modes: Mode) -> list[Peer]:
        """The peers of these modes that there are."""
        return [peer for peer in self.peers if peer.mode in modes]

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """A directory that goes away afterwards."""
        self._count += 1
        path = self.directory / f"{name}-{self._count}"
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def add(self, result: Result) -> None:
        """Put a result on record and tell who waits."""
        self.report.results.append(result)
        shown = ", ".join(f"{name} {timing.median:.3f} s" for name, timing in result.timings.items())
        print(f"{result.name}: {shown}", file=sys.stderr, flush=True)

    def add_bar(self, bar: Bar) -> None:
        """Put a bar on record and tell who waits."""
        self.report.bars.append(bar)
        measured = "not measured" if bar.measured is None else f"{bar.measured:.2f} {bar.unit}"
        verdict = {True: "pass", False: "FAIL", None: ""}[bar.passed]
        print(f"  {bar.name}: {measured}, bound {bar.bound:g} {verdict} ({bar.note})", file=sys.stderr, flush=True)

    def say(self, step: str) -> None:
        """Tell who waits what begins, on standard error: the report goes to standard output."""
        print(f"  … {step}", file=sys.stderr, flush=True)

    def take_turns(self, cases: Sequence[Case]) -> dict[str, Timing]:
        """As :func:`benchmarks.measure.take_turns`, as often as this run asks for."""
        return take_turns(cases, self.repeats, warm_up=self.warm_up, each=self.say)


__all__ = ["Setting", "stopwatch"]
