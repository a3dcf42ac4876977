"""What does it cost to say what every row was before an update?

One bucket of many rows gets commit after commit that updates one percent of them, scattered over all keys, or one behind the other.
Measured is an upsert with everything that follows it: its share of compaction, and with ``changelog-producer = lookup`` finding
the old rows and writing the changelog. A commit now and then has more to compact than others, so the bars compare means. They hold
for the time on the wall and for the time on the processor, which alone is to be believed on a machine with other work.

    none               no changelog
    lookup             warm: a handle and a process that have written to the table before, as a writer that goes on has. What was
                       decoded to look up old rows is kept (store.lookupcache)
    lookup, first      cold: what a process pays for its first commit, with nothing kept
    lookup, second     cold again: what is decoded is kept from here on
    pyarrow, decoding  what the cold ones cannot do without: scattered keys lie in every page of every column
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.measure import Case, Sample, Timing, WrongRows, stopwatch, take_turns
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from benchmarks.workloads import Numbers, Workload

ROWS = 10_000_000
SHARE = 100
# Merges among small files come in a rhythm of some commits: all of it has to be seen.
COMMITS_PER_REPEAT = 4
BOUND = 3.0
FLOOR = "pyarrow, decoding"


def run(setting: Setting) -> None:
    """All questions of this module."""
    workload = Workload("bigint", setting.scaled(ROWS), setting.seed)
    updated = max(workload.rows // SHARE, 1)
    with setting.workspace("changelog") as space:
        none, lookup, in_a_row, first = (_table(space, workload, name) for name in ("none", "lookup", "in_a_row", "first"))
        updates = _Updates(workload, updated)
        commits = COMMITS_PER_REPEAT * setting.repeats
        for _ in range(2):
            lookup.upsert(updates.scattered())
        sustained = [
            Case("none", lambda: _timed(none, updates.scattered)),
            Case("lookup", lambda: _timed(lookup, updates.scattered, told=True)),
            Case("lookup, keys in a row", lambda: _timed(in_a_row, updates.in_a_row, told=True)),
            Case("scan of the key column", lambda: _scan(first, workload), runs=setting.repeats),
        ]
        timings = take_turns(sustained, commits, warm_up=False)
        cold_handle = _ColdHandle(first)
        cold = [
            Case("lookup, first", lambda: _timed(cold_handle.opened(), updates.scattered, told=True)),
            Case("lookup, second", lambda: _timed(cold_handle.table, updates.scattered, told=True)),
            Case(FLOOR, lambda: _decode(first, workload)),
        ]
        timings |= take_turns(cold, setting.repeats, warm_up=False)
        _check(lookup, workload)
    result = Result(
        name=f"updates of {updated:,} of {workload.rows:,} rows in one bucket",
        question="What does the lookup producer add to an upsert?",
        rows=updated,
        base="none",
        timings=timings,
        notes=f"Means of {commits} commits, of which the bars are made: "
        + ", ".join(f"{name} {_mean(timing) * 1000:.0f} ms" for name, timing in timings.items())
        + ".",
    )
    setting.add(result)
    for name, case in (("warm", "lookup"), ("cold, first commit", "lookup, first"), ("cold, second commit", "lookup, second")):
        for bar in _bars(f"lookup, {name}", timings[case], timings):
            setting.add_bar(bar)


class _Updates:
    """New versions of some rows, other ones each time."""

    def __init__(self, workload: Workload, count: int) -> None:
        self._workload, self._count = workload, count
        self._random = np.random.default_rng(workload.seed)
        self._versions: Iterator[int] = iter(range(1, 1 << 30))

    def scattered(self) -> pa.Table:
        """Rows anywhere among all keys."""
        numbers = self._random.choice(self._workload.rows, self._count, replace=False)
        return self._rows(numbers.astype(np.uint64))

    def in_a_row(self) -> pa.Table:
        """Rows whose keys follow one another, in random order."""
        start = int(self._random.integers(self._workload.rows - self._count + 1))
        return self._rows(self._random.permutation(np.arange(start, start + self._count, dtype=np.uint64)))

    def _rows(self, numbers: Numbers) -> pa.Table:
        return self._workload.table(numbers, next(self._versions))


def _table(warehouse: Path, workload: Workload, name: str) -> ts.Table:
    producer = "none" if name == "none" else "lookup"
    catalog = ts.open_catalog(str(warehouse))
    catalog.create_database(ours.DATABASE, ignore_if_exists=True)
    options = {**ours.options(1), "write-only": "false", "changelog-producer": producer}
    table = catalog.create_table(
        f"{ours.DATABASE}.{name}", schema=workload.schema, primary_key=workload.primary_key, options=options
    )
    ours.load(table, workload.base())
    table.compact(full=True)
    return table


class _ColdHandle:
    """A handle of a table that shares no cache with others."""

    def __init__(self, table: ts.Table) -> None:
        self.table = table

    def opened(self) -> ts.Table:
        """The handle, opened anew."""
        table = ts.open_table(self.table.location)
        assert isinstance(table, ts.Table)
        self.table = table
        return table


def _timed(table: ts.Table, make: Callable[[], pa.Table], *, told: bool = False) -> Sample:
    rows = make()
    sample, snapshot = stopwatch(lambda: table.upsert(rows))
    if told:
        changes = table.changes(snapshot.id).count()
        if changes != 2 * rows.num_rows:
            raise WrongRows(f"snapshot {snapshot.id} updated {rows.num_rows} rows and told {changes} changes")
    return sample


def _decode(table: ts.Table, workload: Workload) -> Sample:
    """What a lookup of scattered keys cannot do without, decoded batch by batch as lookups do."""
    paths = ours.oldest_files(table)
    return stopwatch(lambda: floors.decode_files(paths, workload.schema.names))[0]


def _scan(table: ts.Table, workload: Workload) -> Sample:
    sample, count = stopwatch(lambda: sum(batch.num_rows for batch in table.scan(columns=workload.primary_key).to_batches()))
    if count != workload.rows:
        raise WrongRows(f"expected {workload.rows} keys, found {count}")
    return sample


def _check(table: ts.Table, workload: Workload) -> None:
    last = table.snapshots()[-1].id
    told = table.changes(last - 1, last).to_arrow()
    after = told.filter(pc.equal(told.column("_row_kind"), "+U")).select(workload.schema.names)
    ids = pc.min_max(after.column("id")).as_py()
    found = table.scan(filter=f"id >= {ids['min']} and id <= {ids['max']}").to_arrow()
    ours.check_exactly(workload, found.filter(pc.is_in(found.column("id"), after.column("id"))), after)


def _mean(timing: Timing, *, cpu: bool = False) -> float:
    return sum(sample.cpu if cpu else sample.wall for sample in timing.samples) / len(timing.samples)


def _bars(name: str, of: Timing, timings: Mapping[str, Timing]) -> Iterator[Bar]:
    """On the wall and on the processor: a case against three times ``none`` and a scan of the key."""
    for clock, cpu in (("", False), (", in processor time", True)):
        bound = BOUND * _mean(timings["none"], cpu=cpu) + _mean(timings["scan of the key column"], cpu=cpu)
        floor = _mean(timings[FLOOR], cpu=cpu) / bound
        yield Bar(
            name=f"{name} / (3 x none + a scan of the key){clock}",
            measured=_mean(of, cpu=cpu) / bound,
            bound=1.0,
            note=f"{_mean(of, cpu=cpu) * 1000:.0f} of {bound * 1000:.0f} ms; pyarrow's decoding alone {floor:.2f} x",
        )
