"""What does a merge cost, from Python and as MERGE INTO through Spark, next to an upsert of the same rows? And to deltalake's?

10 M rows in 4 buckets, compacted; 100,000 rows into them, nine of ten with a key that is there, scattered over all keys. Spark's
source is a cached DataFrame, as for the upsert. Each way has a table of its own, round by round; those of a merge of every
column and of an upsert hold the same rows in the end.

    every column      WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    with the old row  quantity = t.quantity + s.quantity where the price differs; new rows are inserted
    the first one     the same, into a copy of the table that no process has looked into
    pyarrow, decoding what the first one cannot do without: the scattered keys lie in every page of every column

Spark's workers take turns, and each keeps the row groups that it decodes from its second look-up on (``lookupcache``): the rounds
that count begin when all of them have. The first one has the bar of the merges that follow one another; its note says how much of
it is an upsert and the decoding.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.measure import Case, Sample, WrongRows, stopwatch, tree_stopwatch
from benchmarks.peers import PeerFailed
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.workloads import Workload
from tablestore.table.read.keylookup import KeyLookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA_WORKER = Path(__file__).with_name("delta_worker.py")
BUCKETS = 4
THERE = 0.9
UPSERT, EVERY_COLUMN, WITH_OLD = "pyspark_tablestore.write", "MERGE of every column", "MERGE with the old row"
FIRST = "the first MERGE with the old row"
FLOOR = "pyarrow, decoding"
# A hop into Python is a worker of its own, a merge has two, and each has to look up twice.
WARM_UP = 5
LOOK_AND_UPSERT, EVERY, OLD = "look-up and upsert", "table.merge of every column", "table.merge with the old row"
DELTA = "deltalake's merge of every column"
_INTO = "MERGE INTO {table} AS t USING changes AS s ON t.id = s.id"
_MERGES = {
    EVERY_COLUMN: f"{_INTO} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    WITH_OLD: f"{_INTO} WHEN MATCHED AND t.price <> s.price THEN UPDATE SET quantity = t.quantity + s.quantity, price = s.price "
    "WHEN NOT MATCHED THEN INSERT *",
}


def run(setting: Setting) -> None:
    """All questions of this module; those about Spark, if there is one."""
    with setting.workspace("pythonmerge") as space:
        _python_merge(setting, space)
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"MERGE through Spark: {why}")
        return
    with setting.workspace("merge") as space, spark_session(space) as spark:
        _merge(setting, spark, space)


def _python_merge(setting: Setting, space: Path) -> None:
    workload = Workload("bigint", setting.scaled(10_000_000), setting.seed)
    count = setting.scaled(100_000)
    tables = {name: _table(space, f"python{number}", workload) for number, name in enumerate((LOOK_AND_UPSERT, EVERY, OLD))}
    changes = _Changes(workload, count)

    def look_and_upsert(rows: pa.Table) -> Any:
        table = tables[LOOK_AND_UPSERT]
        columns = table.table_schema.field_names
        for _ in KeyLookup(table.context, table.context.snapshots.latest(), columns).find(rows.select(["id"])):
            pass
        return table.upsert(rows)

    def every(rows: pa.Table) -> Any:
        return tables[EVERY].merge(rows, "id").when_matched_update_all().when_not_matched_insert_all().execute()

    def with_old(rows: pa.Table) -> Any:
        sets = {"quantity": "target.quantity + source.quantity", "price": "source.price"}
        merge = tables[OLD].merge(rows, "id").when_matched_update(sets, predicate="target.price <> source.price")
        return merge.when_not_matched_insert_all().execute()

    def case(name: str, way: Callable[[pa.Table], Any]) -> Case:
        def attempt() -> Sample:
            rows = changes.next(name)
            return tree_stopwatch(lambda: way(rows))[0]

        return Case(name, attempt)

    cases = [case(LOOK_AND_UPSERT, look_and_upsert), case(EVERY, every), case(OLD, with_old)]
    if setting.deltalake is not None:
        cases.append(Case(DELTA, _DeltaMerge(setting.deltalake, space, workload, changes).attempt))
    timings = setting.take_turns(cases)
    result = Result(
        name=f"table.merge of {count:,} rows into {workload.rows:,}",
        question="What does a merge cost next to an upsert of the same rows and a look-up of their keys?",
        rows=count,
        base=LOOK_AND_UPSERT,
        timings=timings,
        notes="No state is reset: each table takes one change after the other.",
    )
    setting.add(result)
    for name in (EVERY, OLD):
        setting.add_bar(result.bar(f"{name} / {LOOK_AND_UPSERT}", name, LOOK_AND_UPSERT, 1.5))
        if setting.deltalake is not None:
            setting.add_bar(result.bar(f"{name} / {DELTA}", name, DELTA, 0.5))


def _merge(setting: Setting, spark: "SparkSession", space: Path) -> None:
    import pyspark_tablestore

    workload = Workload("bigint", setting.scaled(10_000_000), setting.seed)
    count = setting.scaled(100_000)
    tables = {name: _table(space, f"merged{number}", workload) for number, name in enumerate((UPSERT, *_MERGES))}
    cold_table = _table(space, "untouched", workload)
    untouched = Path(cold_table.location)
    changes = _Changes(workload, count)

    def upsert(rows: "DataFrame") -> Any:
        return pyspark_tablestore.write(rows, tables[UPSERT].location)

    def merge(name: str, table: str) -> Callable[["DataFrame"], Any]:
        def attempt(rows: "DataFrame") -> Any:
            rows.createOrReplaceTempView("changes")
            return env.execute_sql(_MERGES[name].format(table=f"{ours.DATABASE}.{table}"))

        return attempt

    def first() -> Sample:
        copy = untouched.with_name(f"copied{changes.rounds.get(FIRST, 0)}")
        shutil.copytree(untouched, copy, copy_function=os.link)
        try:
            return _attempt(spark, changes, FIRST, merge(WITH_OLD, copy.name))()
        finally:
            shutil.rmtree(copy)

    with ts.TableEnvironment.create(str(space), spark=spark) as env:
        ways = {UPSERT: upsert, **{name: merge(name, tables[name].name.rpartition(".")[2]) for name in _MERGES}}
        cases = [Case(name, _attempt(spark, changes, name, way)) for name, way in ways.items()]
        for _ in range(WARM_UP if setting.warm_up else 0):
            for case in cases:
                case.attempt()
        decoding = Case(FLOOR, lambda: _decode(cold_table, workload))
        timings = setting.take_turns([*cases, Case(FIRST, first), decoding])
    _check(workload, tables, changes)
    result = Result(
        name=f"Spark: MERGE INTO of {count:,} rows into {workload.rows:,}",
        question="What does a merge cost next to an upsert of the same rows?",
        rows=count,
        base=UPSERT,
        timings=timings,
        notes="No state is reset: each table takes one change after the other.",
    )
    setting.add(result)
    upsert_cpu, decoding_cpu = timings[UPSERT].cpu_median, timings[FLOOR].cpu_median
    floor = f"an upsert and pyarrow's decoding alone {(upsert_cpu + decoding_cpu) / upsert_cpu:.2f} x" if upsert_cpu else ""
    for name in (*_MERGES, FIRST):
        setting.add_bar(result.bar(f"Spark's {name} / upsert", name, UPSERT, 4.0, note=floor if name == FIRST else ""))


class _Changes:
    """The rows of each round: each case gets those of its first round first."""

    def __init__(self, workload: Workload, count: int) -> None:
        self._workload, self._count = workload, count
        self.rounds: dict[str, int] = {}

    def next(self, name: str) -> pa.Table:
        self.rounds[name] = version = self.rounds.get(name, 0) + 1
        return self.of(version)

    def of(self, version: int) -> pa.Table:
        draw = np.random.default_rng([self._workload.seed, version])
        there = draw.choice(self._workload.rows, int(self._count * THERE), replace=False)
        first = self._workload.rows + version * self._count
        numbers = np.concatenate([there, np.arange(first, first + self._count - len(there))])
        return self._workload.table(numbers.astype(np.uint64), version)


class _DeltaMerge:
    """The table of deltalake, and its merges: each in a process of its own, which takes the time."""

    def __init__(self, python: Path, space: Path, workload: Workload, changes: _Changes) -> None:
        self._python, self._space, self._changes = python, space, changes
        self._run("create", workload.schema, workload.base())

    def attempt(self) -> Sample:
        rows = self._changes.next(DELTA)
        done = json.loads(self._run("merge", rows.schema, [rows]))
        there = int(len(rows) * THERE)
        expected, found = (there, len(rows) - there), (done["updated"], done["inserted"])
        if found != expected:
            raise WrongRows(f"{DELTA}: expected {expected} rows updated and inserted, found {found}")
        return Sample(done["wall"], done["cpu"])

    def _run(self, command: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> str:
        path = self._space / "delta-rows.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for part in parts:
                writer.write_table(part)
        arguments = [str(self._python), str(_DELTA_WORKER), command, str(self._space / "delta"), str(path)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PeerFailed(f"deltalake refused {command!r}: {done.stderr[-2000:]}")
        return done.stdout


def _table(space: Path, name: str, workload: Workload) -> ts.Table:
    table = ours.create(space, name, workload, buckets=BUCKETS)
    ours.load(table, workload.base())
    table.compact(full=True)
    return table


def _attempt(spark: "SparkSession", changes: _Changes, name: str, way: "Callable[[DataFrame], Any]") -> Callable[[], Sample]:
    def attempt() -> Sample:
        rows = spark.createDataFrame(changes.next(name)).coalesce(1).cache()
        rows.count()
        sample, _ = tree_stopwatch(lambda: way(rows))
        rows.unpersist(True)
        return sample

    return attempt


def _decode(table: ts.Table, workload: Workload) -> Sample:
    """What a look-up of scattered keys cannot do without, decoded batch by batch as look-ups do."""
    paths = ours.oldest_files(table)
    return stopwatch(lambda: floors.decode_files(paths, workload.schema.names))[0]


def _check(workload: Workload, tables: dict[str, ts.Table], changes: _Changes) -> None:
    """Raise WrongRows if the tables do not hold what they have to."""
    rounds = changes.rounds[UPSERT]
    versions = [changes.of(version) for version in range(1, rounds + 1)]
    written = sum(len(rows) for rows in versions) - rounds * int(len(versions[0]) * THERE)
    for name, table in tables.items():
        if (found := table.refresh().scan().count()) != workload.rows + written:
            raise WrongRows(f"{name}: expected {workload.rows + written} rows, found {found}")
    asked = f"id IN ({', '.join(map(str, versions[-1].column('id').to_pylist()[-200:]))})"
    expected = tables[UPSERT].scan(filter=asked).to_arrow().sort_by("id")
    found_rows = tables[EVERY_COLUMN].scan(filter=asked).to_arrow().sort_by("id")
    if len(expected) != 200 or not found_rows.equals(expected):
        raise WrongRows("the rows that were merged are not those that were upserted")
