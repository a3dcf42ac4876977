"""What does reading cost, next to pyarrow merely reading the same files?

no overlap     one sorted run a bucket: nothing to merge
merge          2, 5 and 10 overlapping runs a bucket that rewrote half of the rows
orc            one sorted run a bucket, in ORC, next to pyarrow.orc reading the same files
memory         20 M rows merged in one bucket, as a stream of batches

Merge reads are measured a second time on a tenth of the rows: that is where pypaimon's pure Python is among the cases.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.measure import Case, Sample, WrongRows, peak_memory, stopwatch
from benchmarks.peers import Peer
from benchmarks.report import OURS, Bar, Result
from benchmarks.setting import SLOW_RUNS, Setting
from benchmarks.workloads import KeyKind, Workload

BUCKETS = 4
SHARE = 0.5
# The runs that are to be merged stay as they were written.
UNCOMPACTED = {"write-only": "true"}
PLAIN, VERIFIED = "pyarrow", "pyarrow, verifying pages"
PLAIN_ORC = "pyarrow.orc"
MEMORY_BOUND_MIB = 700


def run(setting: Setting) -> None:
    """All questions of this module."""
    for kind in setting.kinds:
        _scan(setting, kind, 1, setting.rows, setting.peers)
        for runs in (2, 5, 10):
            _scan(setting, kind, runs, setting.rows, setting.peers_of("native"))
            if slow := setting.peers_of("pure"):
                _scan(setting, kind, runs, setting.fewer_rows, [*setting.peers_of("native"), *slow])
    _scan_orc(setting)
    _memory(setting)


def _scan(setting: Setting, kind: KeyKind, runs: int, count: int, peers: Sequence[Peer]) -> None:
    workload = Workload(kind, count, setting.seed)
    expected_rows = workload.merged(runs, SHARE)
    expected = workload.digest(expected_rows)
    with setting.workspace(f"scan-{kind}-{runs}") as space:
        table = ours.create(space, "read", workload, buckets=BUCKETS, extra=UNCOMPACTED)
        ours.load(table, workload.base())
        for part in workload.rewrites(runs, SHARE) if runs > 1 else ():
            table.upsert(part)
        ours.check_exactly(workload, table.scan().to_arrow(), expected_rows)
        del expected_rows
        files = floors.data_files(table)
        stored = int(sum(row for row in table.files().column("row_count").to_pylist()))
        cases = [
            plain_floor(files, workload.schema.names, stored),
            _floor(VERIFIED, files, workload.schema.names, stored, verify=True),
            _ours(workload, table.location, expected),
            *_peers(peers, ours.table_path(space, "read"), expected, merges=runs > 1),
        ]
        timings = setting.take_turns(cases)
    fewer = count < setting.rows
    notes = f"{len(files)} files, {stored:,} rows stored, {count:,} rows out."
    name = f"read without overlap, {kind} key" if runs == 1 else f"merge read of {runs} runs, {kind} key"
    result = Result(
        name=f"{name}, {count:,} rows" if fewer else name,
        question="How fast is a table read as one Arrow table" + (" that needs no merge?" if runs == 1 else " by merging?"),
        rows=count,
        base=PLAIN,
        timings=timings,
        notes=f"{notes} {setting.why_fewer}" if fewer else notes,
    )
    setting.add(result)
    if runs == 5 and not fewer:
        integer = kind in ("bigint", "scattered")
        setting.add_bar(
            result.bar(
                f"merge read of 5 runs, {kind} key / pyarrow reading the same files",
                OURS,
                PLAIN,
                1.7 if integer else 2.5,
                note="pyarrow does not verify the pages, we do",
            )
        )
        if integer:
            setting.add_bar(
                result.bar(f"pypaimon native / merge read of 5 runs, {kind} key", "pypaimon native", OURS, 1.5, at_least=True)
            )


def plain_floor(files: Sequence[Path], columns: Sequence[str], stored: int) -> Case:
    """pyarrow merely reading these files."""
    return _floor(PLAIN, files, columns, stored, verify=False)


def _floor(name: str, files: Sequence[Path], columns: Sequence[str], stored: int, *, verify: bool) -> Case:
    def attempt() -> Sample:
        sample, rows = stopwatch(lambda: floors.read_files(files, columns, verify=verify))
        if rows != stored:
            raise WrongRows(f"{name}: expected {stored} rows, found {rows}")
        return sample

    return Case(name, attempt)


def _scan_orc(setting: Setting) -> None:
    workload = Workload("scattered", setting.rows, setting.seed)
    expected = workload.digest(workload.merged(1, SHARE))
    with setting.workspace("scan-orc") as space:
        table = ours.create(space, "orc", workload, buckets=BUCKETS, extra={**UNCOMPACTED, "file.format": "orc"})
        ours.load(table, workload.base())
        files = floors.data_files(table, "orc")

        def floor() -> Sample:
            sample, rows = stopwatch(lambda: floors.read_orc_files(files, workload.schema.names))
            if rows != setting.rows:
                raise WrongRows(f"{PLAIN_ORC}: expected {setting.rows} rows, found {rows}")
            return sample

        timings = setting.take_turns([Case(PLAIN_ORC, floor), _ours(workload, table.location, expected)])
    result = Result(
        name="read of ORC files without overlap",
        question="How fast is a table of ORC files read as one Arrow table?",
        rows=setting.rows,
        base=PLAIN_ORC,
        timings=timings,
        notes=f"{len(files)} files.",
    )
    setting.add(result)
    setting.add_bar(result.bar("read of ORC files / pyarrow.orc reading the same files", OURS, PLAIN_ORC, 1.5))


def _ours(workload: Workload, location: str, expected: tuple[int, int]) -> Case:
    def read() -> pa.Table:
        return ts.open_table(location).scan().to_arrow()

    def attempt() -> Sample:
        sample, rows = stopwatch(read)
        ours.check(workload, rows, expected)
        return sample

    return Case(OURS, attempt)


def _peers(peers: Sequence[Peer], path: Path, expected: tuple[int, int], *, merges: bool) -> list[Case]:
    return [
        Case(peer.name, partial(peer.read, path, expected), runs=SLOW_RUNS if peer.mode == "pure" and merges else None)
        for peer in peers
    ]


def _memory(setting: Setting) -> None:
    """The table is written by this process and read by one of its own, so that only the read is seen."""
    rows, runs = setting.scaled(20_000_000), 5
    workload = Workload("scattered", rows, setting.seed)
    with setting.workspace("memory") as space:
        table = ours.create(space, "large", workload, buckets=1, extra=UNCOMPACTED)
        ours.load(table, workload.base())
        for part in workload.rewrites(runs, SHARE):
            table.upsert(part)
        files = table.files().num_rows
        peak, printed = peak_memory(["-m", "benchmarks.stream_read", table.location])
    count, total, seconds = printed.split()[:3]
    expected = workload.digest_of_merged(runs, SHARE)
    if (int(count), int(total)) != expected:
        raise WrongRows(f"expected {expected} as rows and digest of the stream, found {(int(count), int(total))}")
    setting.add_bar(
        Bar(
            name=f"peak memory of merge-reading {rows:,} rows of one bucket as a stream",
            measured=peak / 2**20,
            bound=MEMORY_BOUND_MIB,
            unit="MiB",
            note=f"{files} files, {rows / float(seconds) / 1e6:.1f} M rows/s",
        )
    )
