"""Taking turns on one core.

Machines have moods: other work, clock rates, caches. So the cases of a workload run in turns (a, b, c, a, b, c, …), each from a
fresh state that it makes untimed, and what is reported is the median of each and the ratio of medians. The first round warms
up and does not count.

Both the time on the wall and the time on the processor are taken. The wall decides: it has the disk in it. The processor's time
tells, on a machine with other work, whether the wall is to be believed.
"""

import gc
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "POLARS_MAX_THREADS",
)


class Sample(NamedTuple):
    """The seconds of one run."""

    wall: float
    cpu: float


class WrongRows(Exception):
    """A measured run gave other rows than it had to."""


@dataclass(frozen=True, slots=True)
class Case:
    """One of the things that take turns: ``attempt`` makes a fresh state, runs and checks, and returns the time of
    the run alone.

    ``runs``: how often, for what is too slow to be run as often as the others (None: as often as they are). Such a case gets
    no warm-up.
    """

    name: str
    attempt: Callable[[], Sample]
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """The samples of one case, in the order of the rounds."""

    name: str
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> tuple[float, ...]:
        """On the wall."""
        return tuple(sample.wall for sample in self.samples)

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def cpu_median(self) -> float:
        return median(sample.cpu for sample in self.samples)

    @property
    def spread(self) -> float:
        """How far the slowest and the fastest lie apart, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def pin_to_one_core() -> int | None:
    """Let this process and those it starts use one core and one thread; returns the core."""
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


@contextmanager
def second_core() -> Iterator[bool]:
    """Let this process and all that it has started use one core more, in their running threads too; False if there is none."""
    import psutil

    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    pinned = os.sched_getaffinity(0)
    others = set(range(os.cpu_count() or 1)) - pinned

    def let(cores: set[int]) -> None:
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            # What ends meanwhile needs no core.
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                for thread in process.threads():
                    os.sched_setaffinity(thread.id, cores)

    if not others:
        yield False
        return
    let(pinned | {max(others)})
    try:
        yield True
    finally:
        let(pinned)


def stopwatch(run: Callable[[], Any]) -> tuple[Sample, Any]:
    """The time that ``run`` takes, and what it returns."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu), result


def tree_stopwatch(run: Callable[[], Any]) -> tuple[Sample, Any]:
    """As :func:`stopwatch`, with the processor time of this process and of all that it has started (Spark's JVM and workers)."""
    gc.collect()
    wall, cpu = time.perf_counter(), _tree_cpu()
    result = run()
    wall = time.perf_counter() - wall
    return Sample(wall, _tree_cpu() - cpu), result


def _tree_cpu() -> float:
    import psutil

    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # Those of children that have ended and were waited for; the living ones are counted themselves.
        total += times.user + times.system + getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def take_turns(
    cases: Sequence[Case], repeats: int, *, warm_up: bool = True, each: Callable[[str], None] = lambda step: None
) -> dict[str, Timing]:
    """Run the cases in turns; medians by name. ``each`` is told what begins."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    if warm_up:
        each("warm-up")
        for case in cases:
            if case.runs is None:
                case.attempt()
    for turn in range(repeats):
        each(f"round {turn + 1} of {repeats}")
        for case in cases:
            if case.runs is None or turn < case.runs:
                samples[case.name].append(case.attempt())
    return {name: Timing(name, tuple(found)) for name, found in samples.items() if found}


def peak_memory(arguments: Sequence[str]) -> tuple[int, str]:
    """Run ``python <arguments>`` and return its peak resident bytes, which it prints as its last word, and all that it printed.

    The process prints :func:`own_peak_memory` itself: what the system reports about children includes the parent's memory.
    """
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise WrongRows(f"{' '.join(arguments)} failed: {result.stderr[-2000:]}")
    return int(result.stdout.split()[-1]), result.stdout


def own_peak_memory() -> int:
    """The most bytes that this process has held in memory so far."""
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            for line in info:
                if line.startswith("model name"):
                    model = line.split(":", 1)[1].strip()
                    break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": f"{model}, {os.cpu_count()} cores, one used",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }
