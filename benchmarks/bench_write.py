"""What does writing cost, next to pyarrow writing the same rows already sorted?

bulk load   into an empty append table
upsert      into an empty keyed table, 4 buckets: hash, sort, fold, statistics, 4 files, commit
into 20 M   100,000 rows into a table of 20 M rows and into one of 1 M: the size of the table must not matter

Upserts are measured a second time on a tenth of the rows: that is where pypaimon's pure Python is among the cases.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.measure import Case, Sample, stopwatch
from benchmarks.peers import Peer
from benchmarks.report import OURS, Result
from benchmarks.setting import SLOW_RUNS, Setting
from benchmarks.workloads import KeyKind, Workload

BUCKETS = 4
PLAIN, ALIKE = "pyarrow, its defaults", "pyarrow, our settings"


def run(setting: Setting) -> None:
    """All questions of this module."""
    _bulk_load(setting)
    for kind in setting.kinds:
        _upsert(setting, kind)
        if slow := setting.peers_of("pure"):
            setting.add(_upserted(setting, kind, setting.fewer_rows, [*setting.peers_of("native"), *slow]))
    _upsert_by_table_size(setting)


def _bulk_load(setting: Setting) -> None:
    workload = Workload("bigint", setting.rows, setting.seed)
    rows = workload.table(workload.shuffled())
    with setting.workspace("bulk") as space:
        cases = [
            *_floor_cases(setting, space, [rows]),
            _our_write(setting, space, workload, rows, keyed=False),
            *_peer_writes(setting, space, workload, rows, setting.peers, keyed=False),
        ]
        setting.add(
            Result(
                name="bulk load, append table",
                question="How fast do rows get into a table without a key?",
                rows=setting.rows,
                base=ALIKE,
                timings=setting.take_turns(cases),
            )
        )


def _upsert(setting: Setting, kind: KeyKind) -> None:
    result = _upserted(setting, kind, setting.rows, setting.peers_of("native"))
    setting.add(result)
    if kind in ("bigint", "scattered"):
        floor = min((ALIKE, PLAIN), key=lambda name: result.timings[name].median)
        for bar in (
            result.bar(f"upsert, {kind} key / pyarrow writing the same rows sorted", OURS, floor, 2.0, note=f"{floor}: the faster"),
            result.bar(f"pypaimon native / upsert, {kind} key", "pypaimon native", OURS, 1.0, at_least=True),
        ):
            setting.add_bar(bar)


def _upserted(setting: Setting, kind: KeyKind, count: int, peers: Sequence[Peer]) -> Result:
    workload = Workload(kind, count, setting.seed)
    rows = workload.table(workload.shuffled())
    with setting.workspace(f"upsert-{kind}") as space:
        parts = floors.sorted_buckets(rows, ours.create(space, "layout", workload, buckets=BUCKETS), BUCKETS)
        cases = [
            *_floor_cases(setting, space, parts),
            _our_write(setting, space, workload, rows, keyed=True),
            *_peer_writes(setting, space, workload, rows, peers, keyed=True),
        ]
        return Result(
            name=f"upsert, {kind} key" + ("" if count == setting.rows else f", {count:,} rows"),
            question=f"How fast are rows in random order upserted into an empty table with a {kind} key and {BUCKETS} buckets?",
            rows=count,
            base=ALIKE,
            timings=setting.take_turns(cases),
            notes="" if count == setting.rows else setting.why_fewer,
        )


def _upsert_by_table_size(setting: Setting) -> None:
    small, large = setting.scaled(1_000_000), setting.scaled(20_000_000)
    count = setting.scaled(100_000)
    with setting.workspace("into") as space:
        tables: list[tuple[str, ts.Table, Workload]] = []
        for rows in (small, large):
            workload = Workload("bigint", rows, setting.seed)
            name = f"into {rows:,} rows"
            table = ours.create(space, f"into{rows}", workload, buckets=BUCKETS)
            ours.load(table, workload.base())
            tables.append((name, table, workload))
        cases = [Case(name, _small_upsert(table, workload, count)) for name, table, workload in tables]
        timings = setting.take_turns(cases)
    first, second = (name for name, _, _ in tables)
    result = Result(
        name=f"upsert of {count:,} rows by size of the table",
        question="Does the size of the table matter to a small upsert?",
        rows=count,
        base=first,
        timings=timings,
        notes="Both tables take one upsert after the other; no state is reset.",
    )
    setting.add(result)
    setting.add_bar(result.bar(f"upsert of {count:,} rows into {large:,} / into {small:,}", second, first, 1.3))


def _small_upsert(table: ts.Table, workload: Workload, count: int) -> Callable[[], Sample]:
    numbers = workload.shuffled()[:count]
    version = 0

    def attempt() -> Sample:
        nonlocal version
        version += 1
        rows = workload.table(numbers, version)
        # A new handle each time, as a job that runs every few minutes has one.
        sample, _ = stopwatch(lambda: ts.open_table(table.location).upsert(rows))
        return sample

    return attempt


def _floor_cases(setting: Setting, space: Path, parts: Sequence[pa.Table]) -> list[Case]:
    def attempt(write: Callable[[Sequence[pa.Table], Path], None]) -> Sample:
        with setting.workspace(space.name) as directory:
            return stopwatch(lambda: write(parts, directory))[0]

    return [Case(ALIKE, lambda: attempt(floors.write_alike)), Case(PLAIN, lambda: attempt(floors.write_plain))]


def _our_write(setting: Setting, space: Path, workload: Workload, rows: pa.Table, *, keyed: bool) -> Case:
    expected = workload.digest(rows)
    compared = False

    def attempt() -> Sample:
        nonlocal compared
        with setting.workspace(space.name) as warehouse:
            table = ours.create(warehouse, "written", workload, buckets=BUCKETS if keyed else -1, keyed=keyed)
            sample, _ = stopwatch(lambda: table.upsert(rows) if keyed else table.append(rows))
            found = table.scan().to_arrow()
            ours.check(workload, found, expected)
            if not compared:
                ours.check_exactly(workload, found, rows)
                compared = True
        return sample

    return Case(OURS, attempt)


def _peer_writes(
    setting: Setting, space: Path, workload: Workload, rows: pa.Table, peers: Sequence[Peer], *, keyed: bool
) -> list[Case]:
    expected = workload.digest(rows)
    cases = []
    for peer in peers:
        peer.forget()
        peer.load("rows", rows, space)

        def attempt(peer: Peer = peer) -> Sample:
            with setting.workspace(space.name) as warehouse:
                path = ours.table_path(warehouse, "written")
                peer.create(
                    path,
                    "rows",
                    primary_key=workload.primary_key if keyed else [],
                    options=ours.options(BUCKETS if keyed else -1),
                )
                sample = peer.write(path, "rows")
                ours.check(workload, ts.open_table(str(path)).scan().to_arrow(), expected)
            return sample

        cases.append(Case(peer.name, attempt, runs=SLOW_RUNS if peer.mode == "pure" and keyed else None))
    return cases
