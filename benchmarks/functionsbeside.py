"""What do the functions cost that DuckDB has no built-in of, beside the same calls in Spark?

The rows are those of :mod:`bench_functions`, fewer of them; Spark reads them from its memory. Of a call the second run counts: in
the first one Java compiles, and Spark reads.
"""

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.bench_functions import INPUT, SKETCHES_TABLE, chosen, opened, query_of
from benchmarks.functioncalls import KINDS, STATES
from benchmarks.measure import Sample, stopwatch, tree_stopwatch
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark

ROWS = 1_000_000
_RUNS = 2
_HEADS = ("| call | rows | µs a row here | µs a row in Spark |", "|---|---:|---:|---:|")


def run(setting: Setting, only: str | None = None) -> None:
    """The question; its answer is a section of the report."""
    if (reason := why_no_spark()) is not None:
        setting.report.skipped.append(f"functions beside Spark: {reason}")
        return
    lines: list[str] = []
    rows = setting.scaled(ROWS)
    with setting.workspace("functions-beside-spark") as space, spark_session(space) as spark:
        for kind in KINDS:
            some = chosen(kind, only)
            if kind.has_builtin or not some.calls:
                continue
            table = SKETCHES_TABLE if kind.is_of_sketches else INPUT
            with opened(setting, some, rows, None) as (connection, env):
                path = Path(space, f"{len(lines)}.parquet")
                columns = f"* EXCLUDE ({', '.join(STATES)})" if kind.is_of_sketches else "*"
                pq.write_table(connection.sql(f"SELECT {columns} FROM {table}").to_arrow_table(), path)
                spark.read.parquet(str(path)).cache().createOrReplaceTempView(table)
                many = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
                for call in some.calls:
                    query = query_of(some, call, table)
                    # A query of any value computes one in Spark.
                    spark_query = query.replace("any_value(value)", "max(hash(value))")
                    ours = [stopwatch(lambda query=query: env.execute_sql(query).to_arrow())[0] for _ in range(_RUNS)]
                    theirs = [tree_stopwatch(lambda query=spark_query: spark.sql(query).collect())[0] for _ in range(_RUNS)]
                    lines.append(f"| `{call}` | {many:,} | {_shown(ours[-1], many)} | {_shown(theirs[-1], many)} |")
                    setting.say(lines[-1])
                spark.catalog.clearCache()
    setting.report.sections += ["## Calls that DuckDB has no built-in of, beside Spark", "", *_HEADS, *lines, ""]


def _shown(sample: Sample, rows: int) -> str:
    return f"{sample.cpu / rows * 1e6:.2f}"
