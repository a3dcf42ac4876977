"""What does compaction cost, and what does it spare?

sustained   20 M rows over 2 M keys in 100 commits: bytes written again, bytes and time of a read afterwards, peak memory
steady      40 upserts of 100,000 rows into 10 M rows: is one of them much slower than the others, and how many runs pile up?
full        a full compaction next to pyarrow reading the same files and writing the same rows
clustered   10 M rows of an append table put in the order of a column: how long, and how much does a query of 1 % of its range read?
"""

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.measure import Case, Sample, Timing, WrongRows, peak_memory, stopwatch
from benchmarks.report import OURS, Bar, Result
from benchmarks.setting import Setting
from benchmarks.sustained_upsert import numbers_of
from benchmarks.workloads import Workload
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.io.local import LocalFileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.store.context import open_context
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets

BUCKETS = 4
GIB = 1 << 30
AFTER, COMPACTED = "after the upserts", "fully compacted"
FLOOR = "pyarrow, reading and writing"


def run(setting: Setting) -> None:
    """All questions of this module."""
    _sustained(setting)
    _steady(setting)
    _full(setting)
    _clustered(setting)


def _create(space: Path, name: str, workload: Workload) -> ts.Table:
    catalog = ts.open_catalog(str(space))
    catalog.create_database(ours.DATABASE, ignore_if_exists=True)
    # Compacting, unlike the tables of the other benchmarks; snapshots stay, they tell what was written.
    options = {"bucket": str(BUCKETS), "snapshot.num-retained.min": "100000"}
    return catalog.create_table(
        f"{ours.DATABASE}.{name}", schema=workload.schema, primary_key=workload.primary_key, options=options
    )


def _sustained(setting: Setting) -> None:
    keys, rows, commits = setting.scaled(2_000_000), setting.scaled(200_000), 100
    workload = Workload("bigint", keys, setting.seed)
    with setting.workspace("sustained") as space:
        table = _create(space, "upserted", workload)
        arguments = map(str, (keys, rows, commits, setting.seed))
        peak, printed = peak_memory(["-m", "benchmarks.sustained_upsert", table.location, *arguments])
        seconds = [float(word) for word in printed.split()[:-1]]
        table = ts.open_table(table.location)
        wrote, rewrote = _bytes_written(table)
        compacted = ts.open_table(str(shutil.copytree(table.location, Path(table.location).parent / "compacted")))
        compacted.compact(full=True)
        last = {int(n) for number in range(commits) for n in numbers_of(keys, rows, setting.seed, number)}
        cases = [
            Case(AFTER, _read(table, len(last))),
            Case(COMPACTED, _read(compacted, len(last))),
        ]
        result = Result(
            name=f"reading after {commits} upserts of {rows:,} rows over {keys:,} keys",
            question="What is left for readers to merge after sustained upserts with automatic compaction?",
            rows=keys,
            base=COMPACTED,
            timings=setting.take_turns(cases),
            notes=(
                f"The upserts took {sum(seconds):.1f} s, median {median(seconds):.3f} s, worst {max(seconds):.3f} s. Write "
                f"amplification {1 + rewrote / wrote:.2f} ({wrote / 2**20:.0f} MiB written, {rewrote / 2**20:.0f} MiB rewritten); "
                f"read amplification {_live_rows(table) / _live_rows(compacted):.2f} in rows, "
                f"{_live_bytes(table) / _live_bytes(compacted):.2f} in bytes."
            ),
        )
    setting.add(result)
    setting.add_bar(result.bar("read after sustained upserts / fully compacted", AFTER, COMPACTED, 1.5))
    setting.add_bar(Bar(name="peak memory of sustained upserts", measured=peak / GIB, bound=1.0, unit="GiB"))


def _read(table: ts.Table, expected: int) -> Callable[[], Sample]:
    def attempt() -> Sample:
        sample, found = stopwatch(lambda: sum(batch.num_rows for batch in table.scan().to_batches()))
        if found != expected:
            raise WrongRows(f"expected {expected} rows, found {found}")
        return sample

    return attempt


def _steady(setting: Setting) -> None:
    rows, count, upserts = setting.scaled(10_000_000), setting.scaled(100_000), 40
    workload = Workload("bigint", rows, setting.seed)
    with setting.workspace("steady") as space:
        table = _create(space, "steady", workload)
        ours.load(table, workload.base())
        samples = []
        for number in range(upserts):
            batch = workload.table(numbers_of(rows, count, setting.seed, number), number + 1)
            sample, _ = stopwatch(partial(table.upsert, batch))
            samples.append(sample)
        most = max(_most_runs(table, snapshot) for snapshot in table.snapshots()[1:])
        found = sum(batch.num_rows for batch in table.scan(columns=["id"]).to_batches())
        if found != rows:
            raise WrongRows(f"expected {rows} rows, found {found}")
        wrote, rewrote = _bytes_written(table)
    timing = Timing(OURS, tuple(samples))
    worst, cpu = max(timing.seconds) / timing.median, max(s.cpu for s in samples) / timing.cpu_median
    setting.add(
        Result(
            name=f"{upserts} upserts of {count:,} rows into {rows:,}",
            question="Does one commit pay for what the others left undone?",
            rows=count,
            base=OURS,
            timings={OURS: timing},
            notes=f"{wrote / 2**20:.0f} MiB written, {rewrote / 2**20:.0f} MiB rewritten; at most {most} sorted runs in a bucket.",
        )
    )
    setting.add_bar(Bar(name="worst upsert / median", measured=worst, bound=5.0, note=f"{cpu:.2f} x in processor time"))
    setting.add_bar(Bar(name="most sorted runs in a bucket", measured=float(most), bound=10.0, unit="runs"))


def _full(setting: Setting) -> None:
    rows, runs, share = setting.scaled(2_000_000), 5, 0.5
    workload = Workload("bigint", rows, setting.seed)
    with setting.workspace("full") as space:
        table = ours.create(space, "layers", workload, buckets=BUCKETS)
        ours.load(table, workload.base())
        for part in workload.rewrites(runs, share):
            table.upsert(part)
        parts = floors.sorted_buckets(workload.merged(runs, share), table, BUCKETS)
        inputs = floors.data_files(table)
        read = sum(pq.ParquetFile(path).metadata.num_rows for path in inputs)
        turns = iter(range(1_000_000))

        def compacting() -> Sample:
            copy = ts.open_table(str(shutil.copytree(table.location, space / f"copy-{next(turns)}.db" / "layers")))
            sample, _ = stopwatch(lambda: copy.compact(full=True))
            ours.check(workload, copy.scan().to_arrow(), workload.digest_of_merged(runs, share))
            shutil.rmtree(copy.location)
            return sample

        def arrow() -> Sample:
            target = space / f"floor-{next(turns)}"
            target.mkdir()
            sample, _ = stopwatch(lambda: _read_and_write(inputs, workload.schema.names, parts, target))
            shutil.rmtree(target)
            return sample

        result = Result(
            name=f"full compaction of {read:,} rows in {runs} runs to {rows:,}",
            question="What does a full compaction take, next to pyarrow reading these files and writing the rows that are left?",
            rows=read,
            base=FLOOR,
            timings=setting.take_turns([Case(FLOOR, arrow), Case(OURS, compacting)]),
        )
    setting.add(result)
    setting.add_bar(result.bar("full compaction / pyarrow reading and writing the same rows", OURS, FLOOR, 1.8))


@dataclass(frozen=True)
class _MeteredStore(WrappedFileStore):
    """A store that keeps the sizes of what is read."""

    sizes: list[int]

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_MeteredFile(self.inner.open_input(path), self.sizes), mode="r")


class _MeteredFile(io.RawIOBase):
    """A file that is read through :meth:`read` alone, whose sizes are kept."""

    def __init__(self, file: Any, sizes: list[int]) -> None:
        super().__init__()
        self._file, self._sizes = file, sizes

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(None if size < 0 else size)
        self._sizes.append(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position: int = self._file.seek(offset, whence)
        return position

    def tell(self) -> int:
        position: int = self._file.tell()
        return position

    def close(self) -> None:
        self._file.close()
        super().close()


def _clustered(setting: Setting) -> None:
    rows, commits = setting.scaled(10_000_000), 10
    rng = np.random.default_rng(setting.seed)
    schema = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("place", pa.int32()), ("amount", pa.float64())])
    with setting.workspace("clustered") as space:
        catalog = ts.open_catalog(str(space))
        catalog.create_database(ours.DATABASE, ignore_if_exists=True)
        table = catalog.create_table(f"{ours.DATABASE}.visits", schema, options={"write-only": "true"})
        for number in range(commits):
            count = rows // commits
            columns = [
                np.arange(number * count, (number + 1) * count),
                rng.integers(0, 1_000_000, count),
                rng.integers(0, 100_000, count, dtype=np.int32),
                rng.random(count),
            ]
            table.append(pa.table(columns, schema=schema))
        inputs = floors.data_files(table)
        for order in ("customer", "customer, place"):
            sample, _ = stopwatch(partial(table.compact, order_by=order))
            floor, _ = stopwatch(lambda: [pq.write_table(pq.read_table(path), space / "floor.parquet") for path in inputs])
            shares = {column: _read_share(table, column, width) for column, width in {"customer": 10_000, "place": 1_000}.items()}
            setting.add_bar(
                Bar(
                    name=f"bytes that 1 % of customer reads, ordered by {order}",
                    measured=100 * shares["customer"],
                    # Two columns share what one has alone: of n row groups about the square root are read.
                    bound=5.0 if order == "customer" else 25.0,
                    unit="% of the table",
                    note=f"1 % of place reads {100 * shares['place']:.0f} %; ordered in {sample.cpu:.1f} s of processor time, "
                    f"{sample.cpu / floor.cpu:.1f} x of pyarrow reading and writing the files as they are",
                )
            )


def _read_share(table: ts.Table, column: str, width: int) -> float:
    """The share of the table's bytes that a scan of a range of a column reads. Raises WrongRows."""
    sizes: list[int] = []
    metered = ts.Table(open_context(_MeteredStore(LocalFileStore(table.location), sizes)), "visits")
    rows = metered.scan(filter=f"{column} >= 40000 AND {column} < {40000 + width}").to_arrow()
    values = np.asarray(table.scan(columns=[column]).to_arrow()[column])
    expected = int(np.count_nonzero((values >= 40000) & (values < 40000 + width)))
    if rows.num_rows != expected:
        raise WrongRows(f"expected {expected} rows, found {rows.num_rows}")
    return sum(sizes) / _live_bytes(table)


def _read_and_write(inputs: list[Path], columns: list[str], parts: list[pa.Table], target: Path) -> None:
    floors.read_files(inputs, columns, verify=True)
    floors.write_alike(parts, target)


def _bytes_written(table: ts.Table) -> tuple[int, int]:
    """Bytes of data files that commits wrote, and bytes that compactions wrote."""
    manifests = table.context.manifests
    wrote = rewrote = 0
    for snapshot in table.snapshots():
        delta = manifests.delta(snapshot)
        gone = {entry.file.file_name for entry in delta if entry.kind is EntryKind.DELETE}
        size = sum(e.file.file_size for e in delta if e.kind is EntryKind.ADD and e.file.file_name not in gone)
        if snapshot.commit_kind is CommitKind.COMPACT:
            rewrote += size
        else:
            wrote += size
    return wrote, rewrote


def _most_runs(table: ts.Table, snapshot: Snapshot) -> int:
    picker = TaskPicker(table.context)
    return max(picker.run_count(bucket) for bucket in live_buckets(table.context, snapshot).values())


def _live_rows(table: ts.Table) -> int:
    return int(sum(table.files()["row_count"].to_pylist()))


def _live_bytes(table: ts.Table) -> int:
    return int(sum(table.files()["file_size_bytes"].to_pylist()))
