"""Holds what the suites of one run share: systems as processes, rows, limits of time, and the record."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.comparison.process import Unanswered, WorkerProcess
from benchmarks.comparison.record import Measurement, ResultFolder
from benchmarks.comparison.rows import RowSource
from benchmarks.comparison.systems import Family, Installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a run is. ``call_s``: the longest answer; ``system_s``: how long one system may take for one suite."""

    load_rows: int
    table_rows: int
    commit_rows: int
    commits: int
    rounds: int
    read_after: Sequence[int]
    lookups: int
    processes: Sequence[int]
    commit_s: float
    plan_files: Sequence[int]
    memory_rows: int
    call_s: float
    system_s: float
    run_s: float
    is_full: bool = True


QUICK = Sizes(
    load_rows=200_000,
    table_rows=200_000,
    commit_rows=2_000,
    commits=4,
    rounds=2,
    read_after=(1, 3),
    lookups=3,
    processes=(1, 4),
    commit_s=1.0,
    plan_files=(1_000,),
    memory_rows=20_000,
    call_s=30.0,
    system_s=40.0,
    run_s=290.0,
    is_full=False,
)
FULL = Sizes(
    load_rows=5_000_000,
    table_rows=2_000_000,
    commit_rows=20_000,
    commits=40,
    rounds=3,
    read_after=(1, 2, 5, 10, 20),
    lookups=20,
    processes=(1, 2, 4, 8, 16),
    commit_s=8.0,
    plan_files=(1_000, 10_000, 100_000),
    memory_rows=500_000,
    call_s=180.0,
    system_s=150.0,
    run_s=7_000.0,
)


class Listener(Protocol):
    """Is told what goes on."""

    def step(self, text: str) -> None: ...


class OutOfTime(Exception):
    """The time of the run is over."""


@dataclass(slots=True)
class Session:
    """One run. ``family`` and ``suite`` are what runs now."""

    directory: Path
    systems: Sequence[Installed]
    rows: RowSource
    sizes: Sizes
    folder: ResultFolder
    listener: Listener
    measurements: list[Measurement] = field(default_factory=list)
    suite: str = ""
    family: Family = "python"
    deadline: float = float("inf")
    kept: dict[Any, Any] = field(default_factory=dict)
    """What a suite leaves to a later one, by its key."""
    _workers: dict[str, WorkerProcess] = field(default_factory=dict)
    _out: set[str] = field(default_factory=set)
    _spent: dict[str, float] = field(default_factory=dict)
    _said: set[tuple[str, str, str]] = field(default_factory=set)
    _stack: ExitStack = field(default_factory=ExitStack)

    def begin(self, suite: str, family: Family) -> None:
        """A suite begins: every system takes part again."""
        self.suite, self.family = suite, family
        self._out.clear()
        self._spent.clear()
        self._said.clear()

    def end_suite(self) -> None:
        """Rows in memory are let go."""
        for name, worker in list(self._workers.items()):
            try:
                worker.ask("forget", self.sizes.call_s)
            except Unanswered:
                self._drop(name)

    def close(self) -> None:
        """Ends all processes."""
        for name in list(self._workers):
            self._drop(name)

    def taking_part(self) -> Iterator[Installed]:
        """The systems of the family that are still in this suite. Raises OutOfTime."""
        for installed in self.systems:
            if time.monotonic() > self.deadline:
                raise OutOfTime
            if installed.spec.family == self.family and installed.spec.name not in self._out:
                yield installed

    def is_in(self, installed: Installed) -> bool:
        """Whether a system is still in this suite."""
        return installed.spec.name not in self._out

    def place(self, installed: Installed) -> Path:
        """The directory of a system."""
        return self.directory / installed.spec.name.replace(" ", "-").replace("(", "").replace(")", "").lower()

    def worker(self, installed: Installed) -> WorkerProcess:
        """The process of a system, started if it is not there."""
        name = installed.spec.name
        if name not in self._workers:
            self.place(installed).mkdir(parents=True, exist_ok=True)
            worker = WorkerProcess(installed, self.place(installed))
            self._workers[name] = worker
            # Spark starts a Java machine.
            found = worker.ask("hello", 120.0)
            self.folder.system(name, found["versions"], installed.note)
        return self._workers[name]

    def do(self, installed: Installed, case: str, command: str, **arguments: Any) -> Any:
        """An untimed step; None, on record, if the system does not take it: it is then out of this suite."""
        try:
            return self._ask(installed, command, arguments)
        except Unanswered as error:
            self.refuse(installed, case, error)
            return None

    def take(
        self,
        installed: Installed,
        case: str,
        command: str,
        *,
        at: float | None = None,
        expected: Mapping[str, int] | None = None,
        more: Mapping[str, float] | None = None,
        label: str = "",
        **arguments: Any,
    ) -> Any:
        """A timed step, on record; None if the system does not take it. Its answer has to have the expected sums."""
        name = installed.spec.name
        if name in self._out:
            return None
        self.listener.step(f"{name}: {case}" + ("" if at is None else f" ({at:g})"))
        try:
            answer = self._ask(installed, command, arguments)
            if expected is not None:
                check(answer, expected)
        except Unanswered as error:
            self.refuse(installed, case, error, at=at)
            return None
        values = {"seconds": answer["wall"], "cpu": answer["cpu"], "peak": answer["peak"], **(more or {})}
        self.record(Measurement(suite=self.suite, case=case, system=name + label, family=self.family, at=at, values=values))
        return answer

    def verify(self, installed: Installed, case: str, table: str, expected: Mapping[str, int]) -> bool:
        """Reads all rows, untimed; wrong ones are on record as a failure."""
        if not self.is_in(installed):
            return False
        self.listener.step(f"{installed.spec.name}: {case}: are the rows right?")
        try:
            check(self._ask(installed, "read", {"table": table, "columns": ["id", "quantity", "price", "code"]}), expected)
        except Unanswered as error:
            self.refuse(installed, case, error)
            return False
        return True

    def refuse(self, installed: Installed, case: str, error: Unanswered, at: float | None = None) -> None:
        """Puts on record why a system has no time for a case. What it cannot do takes it out of nothing else."""
        name = installed.spec.name
        if error.status != "cannot":
            self._out.add(name)
            if error.status == "failed" or "longer than" in str(error):
                self._drop(name)
        if (case, name, error.status) in self._said:
            return
        self._said.add((case, name, error.status))
        self.record(
            Measurement(suite=self.suite, case=case, system=name, family=self.family, at=at, status=error.status, why=str(error))
        )

    def leave(self, installed: Installed) -> None:
        """Takes a system out of this suite."""
        self._out.add(installed.spec.name)

    def limit_s(self) -> float:
        """How long an answer may take now. Raises OutOfTime."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return min(self.sizes.call_s, max(left, 1.0))

    def release(self, installed: Installed) -> None:
        """Ends the process of a system; the next step starts another one."""
        self._drop(installed.spec.name)

    def record_size(self, installed: Installed, case: str, size: int) -> None:
        """Puts the bytes of a table on the disk on record."""
        name = installed.spec.name
        self.record(Measurement(suite=self.suite, case=case, system=name, family=self.family, values={"bytes": float(size)}))

    def record(self, measurement: Measurement) -> None:
        """Puts a measurement on record."""
        self.measurements.append(measurement)
        self.folder.add(measurement)

    def _ask(self, installed: Installed, command: str, arguments: Mapping[str, Any]) -> Any:
        name = installed.spec.name
        spent = self._spent.get(name, 0.0)
        if spent > self.sizes.system_s:
            raise Unanswered("stopped", f"more than the {self.sizes.system_s:.0f} s that a system has for a suite")
        self.limit_s()
        begun = time.monotonic()
        try:
            worker = self.worker(installed)
            # What starts does not count.
            begun = time.monotonic()
            return worker.ask(command, self.limit_s(), **arguments)
        finally:
            self._spent[name] = spent + time.monotonic() - begun

    def _drop(self, name: str) -> None:
        worker = self._workers.pop(name, None)
        if worker is not None:
            worker.close()


def check(answer: Mapping[str, Any], expected: Mapping[str, int]) -> None:
    """Compares the sums of an answer. Raises Unanswered."""
    found = answer["sums"]
    wrong = [f"{name}: expected {value}, found {found.get(name)}" for name, value in expected.items() if found.get(name) != value]
    if wrong:
        raise Unanswered("failed", f"wrong rows ({'; '.join(wrong)})")


__all__ = ["FULL", "QUICK", "Listener", "OutOfTime", "Session", "Sizes", "check"]
