"""Measures tables of a million files beside fixed bars: plans, counts, tasks, commits, expiry and the merging of manifests.

Each measurement is a process of its own, ``python -m benchmarks.millionfiles OPERATION TABLE``, which loads all modules, opens the
table, and does the operation: *cold* is the first time in the process, *warm* the second. What a cold run loads beside is counted.

    as committed    by commits of :data:`benchmarks.scaletables.FILES_OF_A_COMMIT` files, each of all partitions, which merge
                    large manifests with those before now and then
    unmerged        the same without that: each commit has a manifest of its own
    compacted       unmerged, after ``compact_manifests``
    bare            unmerged, without sidecars, as another engine would have it; the folder of the cache is empty before the
                    first process, and the next one finds what that left there

What writes does so in a copy of the table. The requests of a plan on S3 are counted by :mod:`benchmarks.s3requests`.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa

import tablestore as ts
from benchmarks.measure import Sample, WrongRows, own_peak_memory, second_core, stopwatch
from benchmarks.projection import table as table_of
from benchmarks.report import Bar
from benchmarks.scaletables import FIRST_DAY, NAME, SCHEMA, Shape, build, entries_of, merging_seconds, put_file, unmerge
from benchmarks.setting import Setting
from tablestore.distributed.read import pin_read, plan_read
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import commit_messages
from tablestore.format.manifest.sidecar import SIDECAR_PREFIX
from tablestore.io.diskcache import CACHE_DIR_VARIABLE
from tablestore.store.manifests import WrittenMetadata
from tablestore.store.message import CommitMessage
from tablestore.store.scan import columnsections  # noqa: F401 - loaded beside what is timed
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splits import ColumnSplits
from tablestore.types.filter.filters import parse_filter

DAY = FIRST_DAY + timedelta(days=59)
FILTERS = {"one partition": f"day = DATE '{DAY}'", "one id": "id = 1500", "all files": None}
AS_COMMITTED, UNMERGED, COMPACTED, FEW = "as committed", "unmerged", "compacted", "1,000 files"
BARE, BARE_AGAIN = "without sidecars and cache", "without sidecars, the next process"
FILES_OF_A_LARGE_COMMIT, _FILES_OF_A_TASK = 100_000, 1_000
RUNS = 3
MEGABYTE = 2**20
_FEW_FILES = 1_000
# Processes that are measured use one core, and come before other work where they may.
_FIRST = ("nice", "-n", "-20")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one process measured: the first run and the second one (None: it is done once), the most memory that the process held,
    and what it held before. ``answer``: what came out; ``loaded``: modules that the first run loaded."""

    cold: Sample
    warm: Sample | None
    peak_bytes: int
    before_bytes: int
    answer: int
    loaded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The most that an operation may take: seconds of the first and the second run, bytes of the process."""

    cold_s: float | None = None
    warm_s: float | None = None
    peak_mib: int | None = None


READS: dict[str, Bars] = {
    "count": Bars(cold_s=0.4),
    "one partition": Bars(cold_s=0.4, warm_s=0.1),
    "one id": Bars(cold_s=0.6, warm_s=0.1, peak_mib=200),
    "all files": Bars(cold_s=3.0),
    "tasks of all files": Bars(cold_s=5.0),
}
_ONE_PARTITION = "one partition"
# Two cores may be at work.
_FIRST_OF_BARE, _NEXT_OF_BARE = Bars(cold_s=12.0), Bars(cold_s=0.4, warm_s=0.1)
_MOST_REQUESTS, _MOST_MIB = 8, 4
_ONE_ROW, _EXPIRY = "commit of one row", "expiry of one snapshot"
_LARGE_COMMIT = f"commit of {FILES_OF_A_LARGE_COMMIT:,} files"
WRITES: dict[str, Bars] = {
    _ONE_ROW: Bars(),
    _EXPIRY: Bars(cold_s=2.0, peak_mib=300),
    _LARGE_COMMIT: Bars(cold_s=5.0),
}
_MOST_OF_FEW, _MOST_OF_WRITING = 1.5, 2.0


def run(setting: Setting) -> None:
    """Measure all bars; the tables stay in a directory that was given, and are used again."""
    size = setting.scaled(1_000_000)
    paths = {AS_COMMITTED: Shape(files=size), FEW: Shape(files=min(_FEW_FILES, size))}
    tables = {name: setting.directory / f"{name.replace(' ', '-')}-{shape.files}" for name, shape in paths.items()}
    for name, shape in paths.items():
        if not tables[name].exists():
            _build(setting, tables[name], shape)
    for name, source, change in ((UNMERGED, AS_COMMITTED, unmerge), (COMPACTED, UNMERGED, _compact)):
        tables[name] = setting.directory / f"{name}-{size}"
        if not tables[name].exists():
            setting.say(f"a copy of {source}, {name}")
            _made_whole(tables[name], partial(_changed_copy, tables[source], change))
    probes: dict[tuple[str, str], list[Probe]] = {}
    for operation in READS:
        for name in (COMPACTED, AS_COMMITTED):
            setting.say(f"{operation}, {name}")
            probes[operation, name] = [probe(operation, tables[name]) for _ in range(RUNS)]
            if len({one.answer for one in probes[operation, name]}) > 1:
                raise WrongRows(f"{operation}, {name}: the answers differ")
        if operation == _ONE_PARTITION:
            probes[operation, UNMERGED] = [probe(operation, tables[UNMERGED]) for _ in range(RUNS)]
        _add_bars(setting, operation, READS[operation], probes)
    setting.say(f"{_ONE_PARTITION}, {BARE}")
    probes |= _bare(tables[UNMERGED])
    for name, bars in ((BARE, _FIRST_OF_BARE), (BARE_AGAIN, _NEXT_OF_BARE)):
        _add_bars(setting, _ONE_PARTITION, bars, {key: one for key, one in probes.items() if key[1] == name})
    for operation in WRITES:
        for name in (AS_COMMITTED, *([FEW] if operation == _ONE_ROW else [])):
            setting.say(f"{operation}, {name}")
            probes[operation, name] = list(_in_copies(operation, tables[name]))
        _add_bars(setting, operation, WRITES[operation], probes)
    many, few = (probes[_ONE_ROW, name] for name in (AS_COMMITTED, FEW))
    setting.add_bar(
        Bar(
            name=f"commit of one row beside {size:,} files / {_FEW_FILES:,}",
            measured=_median(many, "cold", "wall") / _median(few, "cold", "wall"),
            bound=_MOST_OF_FEW,
            note=f"{_median(many, 'cold', 'cpu') / _median(few, 'cold', 'cpu'):.2f} x in processor time",
        )
    )
    setting.say("merging of manifests")
    merging = list(_in_copies("merging of manifests", tables[UNMERGED], runs=1))
    writing = list(_in_copies("writing of manifests", tables[COMPACTED], runs=1))
    probes |= {("merging of manifests", UNMERGED): merging, ("writing of manifests", COMPACTED): writing}
    for name, seconds in (
        ("merging of manifests", _median(merging, "cold", "cpu")),
        ("merging of manifests by all commits", merging_seconds(tables[AS_COMMITTED])),
    ):
        measured = seconds / _median(writing, "cold", "cpu")
        bar = Bar(name=f"{name} / writing the same", measured=measured, bound=_MOST_OF_WRITING, note="in processor time")
        setting.add_bar(bar)
    setting.say("requests on S3")
    traffic = {name: _traffic(tables[name]) for name in (COMPACTED, AS_COMMITTED, UNMERGED)}
    for name in (COMPACTED, AS_COMMITTED):
        requests, mebibytes, _ = traffic[name]
        of_plan = f"one partition on S3, {name}"
        setting.add_bar(Bar(name=f"{of_plan}, requests", measured=requests, bound=_MOST_REQUESTS, unit="requests"))
        setting.add_bar(Bar(name=f"{of_plan}, answers", measured=mebibytes, bound=_MOST_MIB, unit="MiB"))
    setting.report.sections += [section(size, probes), _section_of_requests(traffic)]


def _build(setting: Setting, path: Path, shape: Shape) -> None:
    def build_it(place: Path) -> None:
        build(place, shape, setting.seed, each=lambda files: setting.say(f"{files:,} of {shape.files:,} files"))

    _made_whole(path, build_it)


def _made_whole(path: Path, make: Callable[[Path], None]) -> None:
    """Make a directory under another name, so that there is never half of it."""
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    make(part)
    part.rename(path)


def _changed_copy(source: Path, change: Callable[[Path], None], path: Path) -> None:
    shutil.copytree(source, path)
    change(path)


def _compact(path: Path) -> None:
    ts.open_catalog(str(path)).table(NAME).compact_manifests()


def _bare(path: Path) -> dict[tuple[str, str], list[Probe]]:
    """Plans of one partition of a copy without sidecars, by a process that finds nothing, and by the next one."""
    probes: dict[tuple[str, str], list[Probe]] = {(_ONE_PARTITION, BARE): [], (_ONE_PARTITION, BARE_AGAIN): []}
    with _copy(path) as bare:
        for sidecar in bare.rglob(f"{SIDECAR_PREFIX}*"):
            sidecar.unlink()
        for _ in range(RUNS):
            with TemporaryDirectory() as cache:
                for measured in probes.values():
                    measured.append(probe(_ONE_PARTITION, bare, {CACHE_DIR_VARIABLE: cache}))
    return probes


def _traffic(path: Path) -> tuple[int, float, int]:
    """The requests, the MiB of the answers, and the files of a plan of one partition on S3."""
    counted = json.loads(_output([sys.executable, "-m", "benchmarks.s3requests", str(path)], {CACHE_DIR_VARIABLE: "off"}))
    return counted["requests"], counted["bytes"] / MEGABYTE, counted["files"]


def _section_of_requests(traffic: Mapping[str, tuple[int, float, int]]) -> str:
    rows = [[name, str(requests), f"{mebibytes:.1f}", f"{files:,}"] for name, (requests, mebibytes, files) in traffic.items()]
    return "\n".join(
        [
            "On S3 (moto, over HTTP), the requests of opening the table by its location and planning one partition:",
            "",
            *table_of(["", "requests", "MiB", "files of the plan"], rows),
            "",
        ]
    )


def _in_copies(operation: str, path: Path, runs: int = RUNS) -> Iterator[Probe]:
    for _ in range(runs):
        with _copy(path) as copy:
            if operation == _EXPIRY:
                # By another process, so that this one has read nothing.
                probe(_ONE_ROW, copy)
            yield probe(operation, copy)


@contextmanager
def _copy(path: Path) -> Iterator[Path]:
    copy = path.with_name(path.name + ".copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def probe(operation: str, path: Path, environ: Mapping[str, str] | None = None) -> Probe:
    """One operation in a process of its own. ``environ``: its variables, beside those of this process."""
    command = [sys.executable, "-m", "benchmarks.millionfiles", operation, str(path)]
    parsed = json.loads(_output([*_first(), *command], environ or {}))
    parsed |= {name: parsed[name] and Sample(*parsed[name]) for name in ("cold", "warm")}
    return Probe(**parsed)


def _output(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The last line that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environ})
    if done.returncode != 0:
        raise WrongRows(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


@cache
def _first() -> tuple[str, ...]:
    """The words before a command that let it come first, if this process may."""
    if shutil.which(_FIRST[0]) is None:
        return ()
    allowed = subprocess.run([*_FIRST, sys.executable, "-c", ""], capture_output=True, check=False)
    return () if allowed.returncode or allowed.stderr else _FIRST


def _median(probes: Sequence[Probe], which: str, time_of: str) -> float:
    return float(median(getattr(getattr(one, which), time_of) for one in probes))


def _add_bars(setting: Setting, operation: str, bars: Bars, probes: dict[tuple[str, str], list[Probe]]) -> None:
    for (name_of, table), found in probes.items():
        if name_of != operation:
            continue
        for which, bound in (("cold", bars.cold_s), ("warm", bars.warm_s)):
            if bound is not None:
                best = min(getattr(one, which).wall for one in found)
                note = f"best {best:.2f} s, {_median(found, which, 'cpu'):.2f} s of processor time"
                name = f"{operation}, {table}, {which}"
                setting.add_bar(Bar(name=name, measured=_median(found, which, "wall"), bound=bound, unit="s", note=note))
        if bars.peak_mib is not None:
            peak = max(one.peak_bytes for one in found) / MEGABYTE
            note = f"{max(one.before_bytes for one in found) / MEGABYTE:.0f} MiB of it before"
            setting.add_bar(Bar(name=f"{operation}, {table}, memory", measured=peak, bound=bars.peak_mib, unit="MiB", note=note))


def section(size: int, probes: dict[tuple[str, str], list[Probe]]) -> str:
    """The table of all measurements, as Markdown."""
    rows = []
    for (operation, name), found in probes.items():
        cells = [f"{operation}, {name}"]
        for which in ("cold", "warm"):
            if getattr(found[0], which) is None:
                cells += ["", ""]
                continue
            walls = [getattr(one, which).wall for one in found]
            cells += [f"{min(walls):.2f} / {median(walls):.2f}", f"{_median(found, which, 'cpu'):.2f}"]
        peak = max(one.peak_bytes for one in found)
        grown = max(one.peak_bytes - one.before_bytes for one in found)
        rows.append([*cells, f"{peak / MEGABYTE:.0f}", f"{grown / MEGABYTE:.0f}"])
    header = ["seconds", "first: best / median", "processor", "second: best / median", "processor", "peak MiB", "more than before"]
    return "\n".join(
        [
            f"## A table of {size:,} files in 365 partitions",
            "",
            f"Each in {RUNS} processes of its own (merging and writing: in one), which have loaded all modules and opened the",
            "table, and read nothing of it before the first run; on one core. *Tasks of all files* are those that Spark gets,",
            "encoded; on two cores.",
            "",
            *table_of(header, rows),
            "",
        ]
    )


# -- in the process that is measured


def _names(path: Path, text: str | None) -> Callable[[], int]:
    context = ts.open_catalog(str(path)).table(NAME).context

    def plan() -> int:
        snapshot = context.snapshots.latest()
        planned = plan_scan(context, snapshot, None if text is None else parse_filter(text, context.schema.fields))
        if text is None:
            return planned.file_count
        # With the names of the files.
        splits = planned.splits
        return len(splits.files.column("file_name")) if isinstance(splits, ColumnSplits) else sum(len(s.files) for s in splits)

    return plan


def _count(path: Path) -> Callable[[], int]:
    table = ts.open_catalog(str(path)).table(NAME)
    return lambda: table.scan().count()


def _tasks(path: Path) -> Callable[[], int]:
    table = ts.open_catalog(str(path)).table(NAME)
    assert isinstance(table, ts.Table), "no system table"
    spec = TableSpec(location=table.location, storage_options={})

    def tasks() -> int:
        with second_core():
            plan = plan_read(pin_read(table, spec))
            return sum(len(task.to_bytes()) for task in plan.tasks) and len(plan.tasks)

    return tasks


def _one_row(path: Path) -> Callable[[], int]:
    table = ts.open_catalog(str(path)).table(NAME)
    row = pa.table([[DAY], [10**12], [1.5], ["one"]], schema=SCHEMA)

    def commit() -> int:
        snapshot = table.upsert(row)
        return 0 if snapshot is None else snapshot.id

    return commit


def _expiry(path: Path) -> Callable[[], int]:
    table = ts.open_catalog(str(path)).table(NAME)
    retained = len(table.snapshots()) - 1
    return lambda: len(table.expire_snapshots(retain_min=1, retain_max=retained).snapshots)


def _large_commit(path: Path) -> Callable[[], int]:
    """The messages of tasks, as they come from other processes, become one commit."""
    table = ts.open_catalog(str(path)).table(NAME)
    assert isinstance(table, ts.Table), "no system table"
    context = table.context
    base = context.snapshots.latest()
    entries = entries_of(context, Shape(files=1), Random("a large commit"))
    tasks = [
        CommitMessage(
            table_uuid=context.table_uuid,
            schema_id=context.schema.id,
            base_snapshot_id=base.id if base else 0,
            base_snapshot_uuid=base.uuid if base else None,
            created_millis=int(time.time() * 1000),
            entries=tuple(next(entries) for _ in range(_FILES_OF_A_TASK)),
        )
        for _ in range(FILES_OF_A_LARGE_COMMIT // _FILES_OF_A_TASK)
    ]
    # A commit looks whether one of them is there.
    put_file(path, context, tasks[0].entries[0])
    messages = [task.to_bytes() for task in tasks]
    del tasks

    def commit() -> int:
        snapshot = commit_messages(table, CommitMessage.all_from_bytes(messages))
        return 0 if snapshot is None else len(messages)

    return commit


def _merging(path: Path) -> Callable[[], int]:
    table = ts.open_catalog(str(path)).table(NAME)

    def merge() -> int:
        table.compact_manifests()
        return 0

    return merge


OPERATIONS: dict[str, tuple[Callable[[Path], Callable[[], int]], bool]] = {
    "count": (_count, True),
    **{name: (partial(_names, text=text), True) for name, text in FILTERS.items()},
    "tasks of all files": (_tasks, False),
    _ONE_ROW: (_one_row, True),
    _EXPIRY: (_expiry, False),
    _LARGE_COMMIT: (_large_commit, False),
    "merging of manifests": (_merging, False),
}
"""What makes each operation for a table, and whether it is done twice."""


def measure(operation: str, path: Path) -> Probe:
    """One operation in this process."""
    if operation == "writing of manifests":
        return _writing(path)
    make, twice = OPERATIONS[operation]
    act = make(path)
    # Filters are parsed by modules that are loaded by the first one.
    parse_filter(FILTERS["one id"], ts.open_catalog(str(path)).table(NAME).context.schema.fields)
    gc.collect()
    before, modules = own_peak_memory(), len(sys.modules)
    cold, answer = stopwatch(act)
    loaded = len(sys.modules) - modules
    warm = stopwatch(act)[0] if twice else None
    return Probe(cold=cold, warm=warm, peak_bytes=own_peak_memory(), before_bytes=before, answer=answer, loaded=loaded)


def _writing(path: Path) -> Probe:
    """The manifests of the newest snapshot written once more from objects, as commits write them."""
    context = ts.open_catalog(str(path)).table(NAME).context
    snapshot = context.snapshots.latest()
    assert snapshot is not None, "the files were committed"
    wall = cpu = 0.0
    files = 0
    for manifest in context.manifests.all_manifests(snapshot):
        (entries,) = context.manifests.matching([manifest], lambda columns: columns.numbers("kind") >= 0)
        written = WrittenMetadata()
        began, used = time.perf_counter(), time.process_time()
        context.manifests.write_manifests(entries, written)
        context.manifests.flush(written)
        wall, cpu, files = wall + time.perf_counter() - began, cpu + time.process_time() - used, files + len(entries)
    return Probe(cold=Sample(wall, cpu), warm=None, peak_bytes=own_peak_memory(), before_bytes=0, answer=files, loaded=0)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1], Path(sys.argv[2])))))
