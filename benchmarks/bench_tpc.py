"""What do the queries of TPC-H and TPC-DS cost over managed tables, next to the same engine over plain Parquet of the same rows?

All queries one after the other, in one process, in turns; the managed tables have primary keys and are compacted. Every answer is
compared with that of DuckDB 1.4.4.

Spark's plain files are those of the managed tables without what tablestore adds to them: the same rows in the same order, files,
row groups and codec.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import tablestore as ts
from benchmarks.measure import Case, Sample, tree_stopwatch
from benchmarks.peers import PeerUnavailable
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.tpc import Kind, TpcData, load, prepare

Run = Callable[[str], pa.Table]
SCALES: dict[Kind, float] = {"tpch": 1.0, "tpcds": 0.1}
# At the scale of TPC-DS here, what is measured is mostly how long a query takes to be planned.
BOUNDS: dict[tuple[Kind, str], float] = {("tpch", "duckdb"): 1.5, ("tpch", "spark"): 1.15}


def run(setting: Setting, kind: Kind, engine: str) -> None:
    """All queries of a kind through an engine, if there is what makes their data."""
    if engine == "spark" and (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"{kind}: {why}")
        return
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
    with ENGINES[engine](data, warehouse) as (env, run_plain):
        env.execute_sql(f"USE {data.kind}")
        runs: dict[str, Run] = {plain: run_plain, managed: lambda text: env.execute_sql(text).to_arrow()}
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
            sample, rows = tree_stopwatch(lambda text=text: run_query(text))
            data.check(number, rows)
            seconds[number] = sample.wall
            wall, cpu = wall + sample.wall, cpu + sample.cpu
        return Sample(wall, cpu)

    return attempt


@contextmanager
def _duckdb(data: TpcData, warehouse: Path) -> Iterator[tuple[ts.TableEnvironment, Run]]:
    import duckdb

    con = duckdb.connect()
    for name, path in data.tables.items():
        con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')").complete()
    with ts.TableEnvironment.create(str(warehouse), engine="duckdb") as env:
        yield env, lambda text: con.sql(text).to_arrow_table()


@contextmanager
def _spark(data: TpcData, warehouse: Path) -> Iterator[tuple[ts.TableEnvironment, Run]]:
    with spark_session(warehouse) as spark:
        catalog = ts.open_catalog(str(warehouse))
        for name in data.tables:
            plain = warehouse / "plain" / name
            _copy_plain(catalog.table(f"{data.kind}.{name}"), plain)
            spark.read.parquet(str(plain)).createOrReplaceTempView(name)
        with ts.TableEnvironment.create(str(warehouse), spark=spark) as env:
            yield env, lambda text: spark.sql(text).toArrow()


def _copy_plain(table: ts.Table, directory: Path) -> None:
    """Write the columns of each data file to a file of its own, row group by row group."""
    directory.mkdir(parents=True)
    names = table.schema.names
    paths = [f"{table.location}/{path}" for path in table.files().column("file_path").to_pylist()]
    for number, path in enumerate(paths):
        # Decimals as Spark writes them.
        out = pq.ParquetWriter(directory / f"{number}.parquet", table.schema, compression="zstd", store_decimal_as_integer=True)
        with pq.ParquetFile(path) as file, out:
            for group in range(file.num_row_groups):
                out.write_table(file.read_row_group(group, columns=names).cast(table.schema))


ENGINES = {"duckdb": _duckdb, "spark": _spark}
