"""What does a merge cost that computes rows, next to one that keeps the last, and to pyarrow merely reading the same files?

deduplicate      the last row of a key
partial-update   the last value of each column that is not null; the rewrites hold one column each
aggregation      a sum, a greatest value, and the last text

5 overlapping runs a bucket that rewrote half of the rows, and the same again written at once: 5 writes into one buffer, folded
at the flush.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import tablestore as ts
from benchmarks import floors, ours
from benchmarks.bench_scan import PLAIN, UNCOMPACTED, plain_floor
from benchmarks.measure import Case, Sample, WrongRows, stopwatch
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload

RUNS, SHARE, BUCKETS = 5, 0.5, 4
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.quantity.aggregate-function": "sum",
        "fields.price.aggregate-function": "max",
        "fields.code.aggregate-function": "last_value",
    },
}
Totals = tuple[int, int, float, int]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is written, in order, and what a table of each engine says of it."""

    workload: Workload
    parts: list[pa.Table]

    def of(self, engine: str) -> list[pa.Table]:
        """The parts for one engine."""
        if engine != "partial-update":
            return self.parts
        return [self.parts[0], *(_only(part, ("quantity", "price", "code")[i % 3]) for i, part in enumerate(self.parts[1:]))]

    def expected(self, engine: str) -> Totals:
        """The totals of what a read has to give, by pyarrow's grouping."""
        rows = pa.concat_tables(self.of(engine))
        how = {"aggregation": ("sum", "max", "last")}.get(engine, ("last", "last", "last"))
        names = ("quantity", "price", "code")
        skip = pc.ScalarAggregateOptions(skip_nulls=True)
        grouped = rows.group_by("id", use_threads=False).aggregate([(name, f, skip) for name, f in zip(names, how, strict=True)])
        return totals(grouped.rename_columns(["id", *names]))


def run(setting: Setting) -> None:
    """All questions of this module."""
    workload = Workload("scattered", setting.rows, setting.seed)
    parts = _Parts(workload, [pa.concat_tables(workload.base()), *workload.rewrites(RUNS, SHARE)])
    with setting.workspace("engines") as space:
        reads, writes = [], []
        stored, files = 0, list[Path]()
        for engine, options in ENGINES.items():
            table = ours.create(space, engine, workload, buckets=BUCKETS, extra={**UNCOMPACTED, **options})
            for part in parts.of(engine):
                table.upsert(part)
            stored = int(sum(table.files().column("row_count").to_pylist()))
            files = floors.data_files(table)
            reads.append(_read(engine, table.location, parts.expected(engine)))
            writes.append(_write(setting, workload, engine, options, parts))
        floor = plain_floor(files, workload.schema.names, stored)
        setting.add(
            Result(
                name=f"merge read of {RUNS} runs by engine, scattered key",
                question="How fast is a table read as one Arrow table by combining the rows of each key?",
                rows=setting.rows,
                base=PLAIN,
                timings=setting.take_turns([floor, *reads]),
                notes=f"{len(files)} files, {stored:,} rows stored, {setting.rows:,} rows out; pyarrow reads those of aggregation.",
            )
        )
        setting.add(
            Result(
                name="upsert with repeated keys by engine, scattered key",
                question="How fast are rows written of which a third is combined at the flush?",
                rows=stored,
                base="deduplicate",
                timings=setting.take_turns(writes),
                notes=f"{stored:,} rows of {setting.rows:,} keys in one commit.",
            )
        )


def totals(rows: pa.Table) -> Totals:
    """What rows are recognised by: how many, and the sums of what they hold."""
    codes = pc.sum(pc.cast(rows.column("code"), pa.int64())).as_py() or 0
    return rows.num_rows, pc.sum(rows.column("quantity")).as_py(), round(pc.sum(rows.column("price")).as_py()), codes


def _read(engine: str, location: str, expected: Totals) -> Case:
    def attempt() -> Sample:
        sample, rows = stopwatch(lambda: ts.open_table(location).scan().to_arrow())
        if (found := totals(rows)) != expected:
            raise WrongRows(f"{engine}: expected rows, quantities, prices and codes of {expected}, found {found}")
        return sample

    return Case(engine, attempt)


def _write(setting: Setting, workload: Workload, engine: str, options: Mapping[str, str], parts: _Parts) -> Case:
    given, expected = parts.of(engine), parts.expected(engine)

    def attempt() -> Sample:
        with setting.workspace("engines-write") as space:
            table = ours.create(space, "written", workload, buckets=BUCKETS, extra={**UNCOMPACTED, **options})
            sample, _ = stopwatch(lambda: ours.load(table, given))
            if (found := totals(table.scan().to_arrow())) != expected:
                raise WrongRows(f"{engine}: expected rows, quantities, prices and codes of {expected}, found {found}")
            return sample

    return Case(engine, attempt)


def _only(part: pa.Table, column: str) -> pa.Table:
    """The rows with one value column; the others are null."""
    for place, field in enumerate(part.schema):
        if field.name not in ("id", column):
            part = part.set_column(place, field, pa.nulls(part.num_rows, field.type))
    return part
