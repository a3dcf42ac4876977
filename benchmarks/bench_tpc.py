"""What do the queries of TPC-H and TPC-DS cost over managed tables, next to the same engine over plain Parquet of the same rows?

All queries one after the other, in one process, in turns; the managed tables have primary keys and are compacted. Every answer is
compared with that of DuckDB 1.4.4.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import tablestore as ts
from benchmarks.measure import Case, Sample, stopwatch
from benchmarks.peers import PeerUnavailable
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.tpc import Kind, TpcData, load, prepare

Run = Callable[[str], pa.Table]
SCALES: dict[Kind, float] = {"tpch": 1.0, "tpcds": 0.1}
# At the scale of TPC-DS here, what is measured is mostly how long a query takes to be planned.
BOUNDS: dict[tuple[Kind, str], float] = {("tpch", "duckdb"): 1.5, ("tpch", "spark"): 1.15}


def run(setting: Setting, kind: Kind, engine: str) -> None:
    """All queries of a kind through an engine, if there is what makes their data."""
    scale = SCALES[kind] * min(setting.scale, 1.0)
    with setting.workspace(kind) as space:
        try:
            data = prepare(kind, scale, space / "data")
        except PeerUnavailable as error:
            setting.report.skipped.append(f"{kind}: {error}")
            return
        load(data, space / "warehouse")
        _measure(setting, data, space / "warehouse", engine, scale)


def _measure(setting: Setting, data: TpcData, warehouse: Path, engine: str, scale: float) -> None:
    plain, managed = f"{engine}, plain Parquet", f"{engine}, managed tables"
    rounds: dict[str, dict[int, float]] = {plain: {}, managed: {}}
    with ts.TableEnvironment.create(str(warehouse), engine=engine) as env:
        env.execute_sql(f"USE {data.kind}")

        def through_us(text: str) -> pa.Table:
            return env.execute_sql(text).to_arrow()

        runs = {plain: PLAIN[engine](data), managed: through_us}
        timings = setting.take_turns([Case(name, _attempt(data, one, rounds[name])) for name, one in runs.items()])
    result = Result(
        name=f"{data.kind} at scale {scale:g} through {engine}",
        question=f"What do the {len(data.queries)} queries cost over compacted managed tables?",
        rows=len(data.queries),
        base=plain,
        timings=timings,
        notes="Milliseconds of each query in the last round, plain and managed: "
        + ", ".join(f"{n}: {rounds[plain][n] * 1000:.0f} {rounds[managed][n] * 1000:.0f}" for n in sorted(rounds[plain])),
    )
    setting.add(result)
    if (bound := BOUNDS.get((data.kind, engine))) is not None:
        setting.add_bar(result.bar(f"{result.name} / plain Parquet", managed, plain, bound))


def _attempt(data: TpcData, run_query: Run, seconds: dict[int, float]) -> Callable[[], Sample]:
    def attempt() -> Sample:
        wall = cpu = 0.0
        for number, text in data.queries.items():
            sample, rows = stopwatch(lambda text=text: run_query(text))
            data.check(number, rows)
            seconds[number] = sample.wall
            wall, cpu = wall + sample.wall, cpu + sample.cpu
        return Sample(wall, cpu)

    return attempt


def _plain_duckdb(data: TpcData) -> Run:
    import duckdb

    con = duckdb.connect()
    for name, path in data.tables.items():
        con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')").complete()
    return lambda text: con.sql(text).to_arrow_table()


PLAIN: dict[str, Callable[[TpcData], Run]] = {"duckdb": _plain_duckdb}
