"""What does a look at one row cost through other libraries, next to the same filter in ``scan``?

DuckDB's SQL over a registered scan, polars' lazy frame, polars over the pyarrow dataset, and the dataset itself.
"""

from collections.abc import Callable

import duckdb
import polars as pl
import pyarrow.compute as pc

from benchmarks import ours
from benchmarks.measure import Case, Sample, WrongRows, stopwatch
from benchmarks.report import OURS, Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload

WANTED = 55
BOUND = 2


def run(setting: Setting) -> None:
    """The one question of this module."""
    rows = setting.scaled(10_000_000)
    workload = Workload("bigint", rows, setting.seed)
    with setting.workspace("pushdown") as space:
        table = ours.create(space, "read", workload, buckets=4)
        ours.load(table, workload.base())
        scan, dataset, connection = table.scan(), table.to_dataset(), duckdb.connect()
        scan.to_duckdb(connection, "pushed")
        is_wanted = pl.col("id") == WANTED
        asked: dict[str, Callable[[], int]] = {
            OURS: lambda: table.scan(filter=f"id = {WANTED}").to_arrow().num_rows,
            "DuckDB SQL": lambda: len(connection.sql(f"SELECT * FROM pushed WHERE id = {WANTED}").fetchall()),
            "polars lazy": lambda: table.scan_polars().filter(is_wanted).collect().height,
            "polars, dataset": lambda: pl.scan_pyarrow_dataset(dataset).filter(is_wanted).collect().height,
            "pyarrow dataset": lambda: dataset.to_table(filter=pc.field("id") == WANTED).num_rows,
        }
        result = Result(
            name=f"one row of {rows:,} by its key",
            question="What does `where id = 55` cost when another library asks?",
            rows=rows,
            base=OURS,
            timings=setting.take_turns([_case(name, ask) for name, ask in asked.items()]),
            notes="4 buckets of one sorted run; the handle is open.",
        )
    setting.add(result)
    for name in asked:
        if name != OURS:
            setting.add_bar(result.bar(f"`where id = 55` by {name} / by scan", name, OURS, BOUND))


def _case(name: str, ask: Callable[[], int]) -> Case:
    def attempt() -> Sample:
        sample, rows = stopwatch(ask)
        if rows != 1:
            raise WrongRows(f"{name}: expected 1 row, found {rows}")
        return sample

    return Case(name, attempt)
