"""How do plans, commits and walks cost by the number of files, partitions, buckets, snapshots, tags and columns?

Of a million files see :mod:`benchmarks.millionfiles`.

Each plan and each walk is made by a fresh catalog, which has read no manifest. The small commit adds one file, and the oldest
snapshot expires behind such a commit; the rollback takes such a file back. Of verify the files are there, of holes alone.

    by files                all operations, at three sizes
    by partitions, …        plans, a commit, listings, at three sizes; tags and columns at one
    memory                  of verify, rollback and the expiry of partitions, each in a process of its own
    peers                   plans of the same files
    projection              lines through the costs, and what they say of ten million files, here and on S3
"""

import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median

import tablestore as ts
from benchmarks.measure import Case, Sample, WrongRows, peak_memory, stopwatch
from benchmarks.peers import PeerFailed
from benchmarks.projection import Line, fit, plot, table
from benchmarks.report import OURS, Result
from benchmarks.scaletables import (
    FILES_OF_A_COMMIT,
    FIRST_DAY,
    NAME,
    Shape,
    build,
    one_more_entry,
    open_files,
    publish,
    put_files,
)
from benchmarks.setting import SLOW_RUNS, Setting
from tablestore.format.binaryrow import decode_row
from tablestore.io.local import LocalFileStore
from tablestore.store.context import open_context
from tablestore.store.manifests import metadata_names
from tablestore.store.scan.scanplan import ScanPlan, plan_scan
from tablestore.store.scan.splits import ColumnSplits, Split
from tablestore.table.inspect.check import check_table
from tablestore.testing.files import Faults, FaultyFileStore
from tablestore.types.filter.filters import parse_filter

DAY = FIRST_DAY + timedelta(days=59)
FILTERS = {"one partition": f"day = DATE '{DAY}'", "one id": "id = 1500", "all files": None}
QUESTIONS = {"one partition": f"day={DAY}", "one id": "id=1500", "all files": "all"}
WALKS: dict[str, Callable[[ts.Table], object]] = {
    "count": lambda table: table.scan().count(),
    "partitions": lambda table: table.partitions(),
    "files": lambda table: table.files(),
    "system table of files": lambda table: sum(batch.num_rows for batch in table.system("files").to_batches()),
    "system table of snapshots": lambda table: sum(batch.num_rows for batch in table.system("snapshots").to_batches()),
    "expiry of partitions, dry": lambda table: table.expire_partitions(dry_run=True),
}
IN_MEMORY = ("verify", "rollback", "expiry of partitions")
"""The operations whose memory is measured: they look at all files."""

# Verify looks whether so many files are there.
MOST_ON_DISK = 100_000
# A request to S3, and the sizes that nobody builds here.
REQUEST_S = 0.030
PROJECTED = (1_000_000, 10_000_000)
_REQUESTS = frozenset({"read", "exists", "size", "list", "names", "write", "write_all", "publish_if_absent", "overwrite", "delete"})
# Of one projection: what it is called, by the name of the result.
_LINES = {
    "plan of one partition": "cold plan of one partition",
    "plan of one id": "cold plan of one id",
    "plan of all files": "cold plan of all files",
    "commit of one file": "commit of one file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compacted:
    """A plan of one partition after the manifests of so many files were compacted: its seconds and requests, the manifests that it
    reads and its files, and the files of a manifest."""

    size: int
    seconds: float
    requests: int
    manifests: int
    files: int
    files_of_a_manifest: int


def run(setting: Setting) -> None:
    """All questions of this module."""
    if setting.quick:
        setting = replace(setting, warm_up=False)
    with setting.workspace("scale") as space:
        sizes = [setting.scaled(size) for size in (1_000, 10_000, 100_000)]
        tables = _built(setting, space, "files", {size: Shape(files=size) for size in sizes})
        # Of the tables as they were built: the commits that are timed add small manifests.
        requests = {size: _requests(path) for size, path in tables.items()}
        metadata = {size: _metadata_bytes(path) for size, path in tables.items()}
        _by_files(setting, tables)
        _by_dimensions(setting, space)
        whole = {size: path for size, path in tables.items() if size <= MOST_ON_DISK}
        _memory(setting, whole)
        _peers(setting, space, whole[max(whole)])
        (compacted,) = _built(setting, space, "files to compact", {sizes[-1]: Shape(files=sizes[-1])}).values()
        setting.report.sections.append(_projection(setting, requests, metadata, _compacted(sizes[-1], compacted)))


def _built(setting: Setting, space: Path, what: str, shapes: Mapping[int, Shape]) -> dict[int, Path]:
    tables: dict[int, Path] = {}
    for size, shape in shapes.items():
        setting.say(f"a table of {size:,} {what}")
        tables[size] = space / f"{what}{size}"
        build(tables[size], shape, setting.seed)
    return tables


def _by_files(setting: Setting, tables: Mapping[int, Path]) -> None:
    for name, text in FILTERS.items():
        _measure(
            setting,
            f"cold plan of {name}",
            "What does a plan cost by the number of files?",
            tables,
            "files",
            partial(plan_anew, text=text),
        )
    for name, walk in WALKS.items():
        _measure(setting, name, "What does a walk over all files cost by their number?", tables, "files", partial(_walk, walk=walk))
    question = "Does expiry cost what the snapshot deleted, however many files there are?"
    _measure(setting, "expiry of one snapshot", question, tables, "files", _expire)
    question = "Does a rollback cost what it takes back, beside one look at all files?"
    _measure(setting, "rollback of one file", question, tables, "files", _rollback)
    result = _measure(
        setting, "commit of one file", "Does a small commit cost the same however many files there are?", tables, "files", _commit
    )
    few, many = min(tables), max(tables)
    bar = result.bar(f"commit beside {many:,} files / {few:,}", f"{many:,} files", f"{few:,} files", 1.5)
    setting.add_bar(bar)
    whole = {size: path for size, path in tables.items() if size <= MOST_ON_DISK}
    for path in whole.values():
        put_files(path)
    _measure(setting, "verify", "What does verify cost, where nothing is wrong?", whole, "files", _verify)


def _by_dimensions(setting: Setting, space: Path) -> None:
    """One builder for each."""
    few = setting.scaled(1_000)
    shapes: dict[str, dict[int, Shape]] = {
        "partitions": {size: Shape(files=size, partitions=size) for size in map(setting.scaled, (1_000, 10_000, 100_000))},
        "buckets": {size: Shape(files=4 * size, partitions=4, buckets=size) for size in map(setting.scaled, (256, 1_024, 4_096))},
        "snapshots": {size: Shape(files=few, snapshots=size) for size in map(setting.scaled, (100, 1_000, 10_000))},
        "tags": {size: Shape(files=few, tags=size) for size in [setting.scaled(1_000)]},
        "columns": {size: Shape(files=few, columns=size) for size in [setting.scaled(2_000)]},
    }
    # What else is timed of a dimension.
    more: dict[str, dict[str, Callable[[ts.Table], object]]] = {
        "partitions": {"expiry of partitions by partitions": WALKS["expiry of partitions, dry"]},
        "snapshots": {"system table of snapshots by snapshots": WALKS["system table of snapshots"]},
        "tags": {"list of tags": lambda table: table.tags()},
    }
    for what, every_size in shapes.items():
        by_size = {size: every_size[size] for size in ((min(every_size), max(every_size)) if setting.quick else every_size)}
        tables = _built(setting, space, what, by_size)
        question = f"What does it cost by the number of {what}?"
        planned = partial(plan_anew, text=FILTERS["one partition" if what != "buckets" else "one id"])
        _measure(setting, f"plan by {what}", question, tables, what, planned)
        _measure(
            setting,
            f"commit by {what}",
            question,
            tables,
            what,
            partial(_commit, shapes={tables[size]: s for size, s in by_size.items()}),
        )
        for name, walk in more.get(what, {}).items():
            _measure(setting, name, question, tables, what, partial(_walk, walk=walk))


def _measure(
    setting: Setting, name: str, question: str, tables: Mapping[int, Path], what: str, attempt: Callable[[Path], Sample]
) -> Result:
    cases = [Case(f"{size:,} {what}", partial(attempt, path)) for size, path in tables.items()]
    result = Result(name=name, question=question, rows=max(tables), base=cases[0].name, timings=setting.take_turns(cases))
    setting.add(result)
    return result


def _memory(setting: Setting, tables: Mapping[int, Path]) -> None:
    """How the peak of a process grows from the least table to the largest one: what is loaded for an operation does not count."""
    setting.say("memory")
    few, many = min(tables), max(tables)
    rows = []
    for operation in IN_MEMORY:
        peaks = {size: peak_memory(["-m", "benchmarks.bench_scale", operation, str(tables[size])])[0] for size in (few, many)}
        growth = peaks[many] - peaks[few]
        rows.append(
            [operation, f"{peaks[many] / 2**20:.0f} MiB", f"{growth / 2**20:.0f} MiB", f"{growth / max(many - few, 1):,.0f}"]
        )
    header = ["operation", "peak of the process", f"more than for {few:,} files", "bytes a file"]
    setting.report.sections.append("\n".join([f"## Memory of what looks at {many:,} files", "", *table(header, rows), ""]))


def operate(operation: str, path: Path) -> None:
    """One of :data:`IN_MEMORY`, or the opening of the table."""
    opened = ts.open_catalog(str(path)).table(NAME)
    if operation == "verify":
        _verify(path)
    elif operation == "rollback":
        _rollback(path)
    elif operation == "expiry of partitions":
        opened.expire_partitions(dry_run=True)


def _peers(setting: Setting, space: Path, path: Path) -> None:
    """The same files, planned by others."""
    workers = {name: python for name, python in (("deltalake", setting.deltalake), ("pyiceberg", setting.pyiceberg)) if python}
    if not (workers or setting.peers):
        return
    opened = ts.open_catalog(str(path)).table(NAME)
    files = write_files(opened, space / "files.json")
    for system, python in workers.items():
        setting.say(f"{system}: a table of {files:,} files")
        ask_worker(python, system, "build", space / system, space / "files.json")
    runs = 1 if setting.quick else SLOW_RUNS
    for name, question in QUESTIONS.items():
        count = len(plan_with(opened, FILTERS[name]).files)
        cases = [Case(OURS, partial(plan_anew, path, text=FILTERS[name]))]
        cases += [Case(peer.name, partial(peer.plan, Path(opened.location), question, count), runs) for peer in setting.peers]
        cases += [
            Case(system, partial(plan_of_other, python, system, space / system, question, count), runs)
            for system, python in workers.items()
        ]
        result = Result(
            name=f"plan of {name} beside others",
            question=f"What does a plan of {count:,} of the same {files:,} files cost, each system opening its table anew?",
            rows=count,
            base=OURS,
            timings=setting.take_turns([case for case in cases if _answers(setting, name, case)]),
        )
        setting.add(result)


def write_files(opened: ts.Table, path: Path) -> int:
    """What others need to know of the live files, as JSON, one a line; how many there are."""
    context = opened.context
    partition_types = [field.type for field in context.schema.partition_fields]
    key_types = [field.type for field in context.schema.key_fields]
    live = context.manifests.live(context.snapshots.latest())
    with path.open("w", encoding="utf-8") as lines:
        for entry in live:
            (day,), (low,), (high,) = (
                decode_row(row, types)
                for row, types in (
                    (entry.partition, partition_types),
                    (entry.file.min_key, key_types),
                    (entry.file.max_key, key_types),
                )
            )
            lines.write(json.dumps({"name": entry.file.file_name, "day": str(day), "low": low, "high": high}) + "\n")
    return len(live)


def _answers(setting: Setting, name: str, case: Case) -> bool:
    """Whether a system plans the files that it has to; what it says otherwise is in the report."""
    try:
        case.attempt()
    except (PeerFailed, WrongRows) as error:
        setting.report.skipped.append(f"plan of {name}: {case.name}: {str(error)[:300]}")
        return False
    return True


def ask_worker(python: Path, *arguments: object) -> str:
    worker = Path(__file__).with_name("plan_worker.py")
    done = subprocess.run([python, worker, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongRows(f"{arguments[0]} {arguments[1]} failed: {done.stderr[-1000:]}")
    return done.stdout


def plan_of_other(python: Path, system: str, directory: Path, question: str, count: int) -> Sample:
    answer = json.loads(ask_worker(python, system, "plan", directory, question))
    if answer["files"] != count:
        raise WrongRows(f"expected a plan of {count} files, found {answer['files']}")
    return Sample(answer["wall"], answer["cpu"])


def _projection(
    setting: Setting,
    requests: Mapping[int, Mapping[str, int]],
    metadata: Mapping[int, float],
    compacted: _Compacted,
) -> str:
    """What lines through the costs of this run say of more files."""
    results = {result.name: result for result in setting.report.results}
    lines = ["## Ten million files", ""]
    lines += [
        "Lines through the medians of this run (`cost = fixed + each · files`), and what they say of more files than were built. A",
        f"bar is a logarithm. Each commit of the tables had {FILES_OF_A_COMMIT:,} files, of all partitions, and some merged",
        "their manifests with earlier ones: a plan of one partition reads a manifest of each run that is left. On S3 each request",
        f"is taken as {REQUEST_S * 1000:.0f} ms, one after the other.",
        "",
    ]
    rows = []
    for label, name in _LINES.items():
        points = {size: timing.median for size, timing in zip(requests, results[name].timings.values(), strict=True)}
        line = fit(points)
        lines += [f"{label}:", "", "```text", *plot(points, line, unit="s"), "```", ""]
        counts = fit({size: count[label] for size, count in requests.items()})
        rows.append([label, *(_projected(line, counts, size) for size in PROJECTED)])
    rows.append(["plan of one partition, after `compact_manifests`", *(_of_run(compacted, size) for size in PROJECTED)])
    stored = fit(metadata)
    rows.append(["metadata of one snapshot", *(f"{stored.at(size) / 2**20:,.0f} MiB" for size in PROJECTED)])
    lines += table(["", *(f"{size:,} files" for size in PROJECTED)], rows)
    by = {"partitions": "plan by partitions", "buckets": "plan by buckets", "snapshots": "plan by snapshots"}
    lines += ["", "What each of these adds to a plan and to a commit of one file:", ""]
    costs = []
    for what, name in by.items():
        costs.append([what, *(_each(results[one]) for one in (name, name.replace("plan", "commit")))])
    lines += [*table(["", "plan", "commit"], costs), ""]
    return "\n".join(lines)


def _each(result: Result) -> str:
    points = {int(name.split()[0].replace(",", "")): timing.median for name, timing in result.timings.items()}
    line = fit(points)
    return f"{line.fixed * 1000:.0f} ms, and {line.each * 1e6:.2f} µs each"


def _projected(line: Line, requests: Line, size: int) -> str:
    count = round(requests.at(size))
    return f"{line.at(size):.2f} s; S3 {line.at(size) + count * REQUEST_S:.1f} s, {count:,} requests"


def _of_run(measured: _Compacted, size: int) -> str:
    """Manifests are one run, of which a partition fills some."""
    manifests = max(math.ceil(measured.files * size / measured.size / measured.files_of_a_manifest), measured.manifests)
    seconds, count = measured.seconds * manifests / measured.manifests, measured.requests + manifests - measured.manifests
    return f"{seconds:.2f} s; S3 {seconds + count * REQUEST_S:.1f} s, {count:,} requests"


def _compacted(size: int, path: Path) -> _Compacted:
    ts.open_catalog(str(path)).table(NAME).compact_manifests()
    plan = partial(plan_with, text=FILTERS["one partition"])
    planned = plan(ts.open_catalog(str(path)).table(NAME))
    return _Compacted(
        size=size,
        seconds=median(plan_anew(path, text=FILTERS["one partition"]).wall for _ in range(3)),
        requests=_counted(path, plan),
        manifests=planned.manifests_read,
        files=planned.file_count,
        files_of_a_manifest=size // planned.manifests_total,
    )


def _requests(path: Path) -> dict[str, int]:
    plans = {f"plan of {name}": _counted(path, partial(plan_with, text=text)) for name, text in FILTERS.items()}
    return {
        **plans,
        "commit of one file": _counted(path, lambda table: publish(table.context, [one_more_entry(table.context, Shape(files=1))])),
    }


class _FarStore(FaultyFileStore):
    """A store that is read as one of objects is: with few requests, where a local one is read in few bytes."""

    @property
    def root_uri(self) -> str:
        return f"far://{super().root_uri}"


def _counted(path: Path, operation: Callable[[ts.Table], object]) -> int:
    """The requests of an operation by a handle that has read nothing."""
    faults = Faults()
    store = _FarStore(LocalFileStore(ts.open_catalog(str(path)).table(NAME).location), faults)
    operation(ts.Table(open_context(store), NAME))
    return sum(call.op in _REQUESTS for call in faults.calls)


def plan_with(opened: ts.Table, text: str | None) -> ScanPlan:
    context = opened.context
    predicate = None if text is None else parse_filter(text, context.schema.fields)
    return plan_scan(context, context.snapshots.latest(), predicate)


def _metadata_bytes(path: Path) -> float:
    """The bytes of the manifests, sidecars and lists of the newest snapshot."""
    opened = ts.open_catalog(str(path)).table(NAME)
    snapshot = opened.context.snapshots.latest()
    if snapshot is None:
        return 0.0
    manifests = opened.context.manifests.all_manifests(snapshot)
    names = [snapshot.base_manifest_list, snapshot.delta_manifest_list, *metadata_names(manifests)]
    places = [Path(opened.location) / "manifest" / name for name in names]
    return float(sum(place.stat().st_size for place in places if place.exists()))


def plan_anew(path: Path, text: str | None) -> Sample:
    opened = ts.open_catalog(str(path)).table(NAME)
    # With the names of the files, as others give them.
    return stopwatch(lambda: _names(plan_with(opened, text).splits))[0]


def _names(splits: Sequence[Split]) -> int:
    if isinstance(splits, ColumnSplits):
        return len(splits.files.column("file_name"))
    return sum(len(split.files) for split in splits)


def _walk(path: Path, walk: Callable[[ts.Table], object]) -> Sample:
    opened = ts.open_catalog(str(path)).table(NAME)
    return stopwatch(lambda: walk(opened))[0]


def _verify(path: Path) -> Sample:
    context = open_files(path)
    sample, findings = stopwatch(lambda: check_table(context))
    # The few files of commits that were timed before are not there.
    if faults := [finding for finding in findings if finding.kind != "file-missing"]:
        raise WrongRows(f"{path}: expected a table that is whole, found {faults[0]}")
    return sample


def _expire(path: Path) -> Sample:
    # Each time with a new snapshot, so that those with the files of the table stay.
    _commit(path)
    opened = ts.open_catalog(str(path)).table(NAME)
    retained = len(opened.snapshots()) - 1
    return stopwatch(lambda: opened.expire_snapshots(retain_min=1, retain_max=retained))[0]


def _rollback(path: Path) -> Sample:
    context = open_files(path)
    latest = context.snapshots.latest()
    before = latest.id if latest else 0
    _commit(path)
    opened = ts.open_catalog(str(path)).table(NAME)
    return stopwatch(lambda: opened.rollback_to(before))[0]


def _commit(path: Path, shapes: Mapping[Path, Shape] | None = None) -> Sample:
    context = open_files(path)
    entry = one_more_entry(context, replace((shapes or {}).get(path, Shape(files=1)), files=1))
    return stopwatch(lambda: publish(context, [entry]))[0]


if __name__ == "__main__":
    import sys

    from benchmarks.measure import own_peak_memory

    operate(sys.argv[1], Path(sys.argv[2]))
    print(own_peak_memory())
