"""``python -m benchmarks SUITE`` asks questions of tablestore itself (see ``--help``).

``run``, ``compare`` and ``results`` in place of a suite measure it beside other table stores (see ``run --help``).
"""

import sys
import tempfile
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from benchmarks import (
    bench_changelog,
    bench_commit,
    bench_compact,
    bench_ctas,
    bench_engines,
    bench_functions,
    bench_ingest,
    bench_log,
    bench_lookup,
    bench_merge,
    bench_pushdown,
    bench_refresh,
    bench_scale,
    bench_scan,
    bench_service,
    bench_small,
    bench_spark,
    bench_sql,
    bench_startup,
    bench_streams,
    bench_streamsink,
    bench_streamsource,
    bench_tpc,
    bench_write,
    functionsbeside,
    millionfiles,
)
from benchmarks.comparison import commands
from benchmarks.measure import machine, pin_to_one_core
from benchmarks.peers import Peer, PeerFailed, PeerUnavailable, find_interpreter
from benchmarks.report import Report
from benchmarks.setting import Setting


class Suite(StrEnum):
    """What can be run alone."""

    ALL = "all"
    WRITE = "write"
    SCAN = "scan"
    ENGINES = "engines"
    COMMIT = "commit"
    CHANGELOG = "changelog"
    LOG = "log"
    INGEST = "ingest"
    SPARK = "spark"
    STREAM_SINK = "stream-sink"
    CTAS = "ctas"
    STREAM_SOURCE = "stream-source"
    STREAMS = "streams"
    LOOKUP = "lookup"
    COMPACT = "compact"
    STARTUP = "startup"
    MERGE = "merge"
    PUSHDOWN = "pushdown"
    SQL = "sql"
    FUNCTIONS = "functions"
    REFRESH = "refresh"
    SCALE = "scale"
    SERVICE = "service"
    TPCH = "tpch"
    TPCDS = "tpcds"


def main(
    suite: Annotated[Suite, typer.Argument(help="Which questions to ask.")] = Suite.ALL,
    rows: Annotated[int, typer.Option(help="Rows of a full-size table; the big ones scale along.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="Timed rounds per workload, after one warm-up.")] = 5,
    seed: Annotated[int, typer.Option(help="What the rows are made from.")] = 7,
    quick: Annotated[
        bool, typer.Option(help="A tenth of the rows (of Spark a fiftieth), two rounds: is everything in order?")
    ] = False,
    engine: Annotated[str, typer.Option(help="Which engine runs the queries of tpch and tpcds.")] = "duckdb",
    only: Annotated[
        str | None, typer.Option(help="A part of the names of the functions or kinds that `functions` measures.")
    ] = None,
    beside_spark: Annotated[
        bool, typer.Option(help="Let `functions` measure what DuckDB has no built-in of beside Spark, and nothing else.")
    ] = False,
    peers: Annotated[bool, typer.Option(help="Measure pypaimon, deltalake and pyiceberg too.")] = True,
    million: Annotated[
        bool, typer.Option(help="Let `scale` measure tables of a million files beside bars, and nothing else.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the report as Markdown.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Where the tables are made; a temporary directory if not given.")] = None,
) -> None:
    """Measure tablestore next to pyarrow and peers, all on one core, and print medians, ratios and bars.

    `run`, `compare` and `results` instead of a suite measure it beside other table stores: see `run --help`.
    """
    if quick:
        rows, repeats = min(rows, 100_000), min(repeats, 2)
    core = pin_to_one_core()
    with ExitStack() as stack:
        work = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tablestore-bench-")))
        work.mkdir(parents=True, exist_ok=True)
        settings = {"suite": suite.value, "rows": f"{rows:,}", "repeats": str(repeats), "seed": str(seed), "core": str(core)}
        if rows < 1_000_000:
            settings["size"] = "smaller than the bars are meant for: fixed costs weigh more, so their verdicts do not count"
        report = Report(settings=settings, machine=machine())
        found = _start_peers(stack, report) if peers and suite in (Suite.ALL, Suite.WRITE, Suite.SCAN, Suite.SCALE) else []
        delta = _find("deltalake", report) if peers and suite in (Suite.ALL, Suite.MERGE, Suite.SCALE) else None
        iceberg = _find("pyiceberg", report) if peers and suite in (Suite.ALL, Suite.SCALE) else None
        setting = Setting(
            directory=work,
            rows=rows,
            repeats=repeats,
            seed=seed,
            report=report,
            peers=found,
            deltalake=delta,
            pyiceberg=iceberg,
            quick=quick,
        )
        if suite in (Suite.ALL, Suite.WRITE):
            bench_write.run(setting)
        if suite in (Suite.ALL, Suite.SCAN):
            bench_scan.run(setting)
        if suite in (Suite.ALL, Suite.ENGINES):
            bench_engines.run(setting)
        if suite in (Suite.ALL, Suite.COMMIT):
            bench_commit.run(setting)
            bench_small.run(setting)
        if suite in (Suite.ALL, Suite.CHANGELOG):
            bench_changelog.run(setting)
        if suite in (Suite.ALL, Suite.LOG):
            bench_log.run(setting)
        if suite in (Suite.ALL, Suite.INGEST):
            bench_ingest.run(setting)
        if suite in (Suite.ALL, Suite.COMPACT):
            bench_compact.run(setting)
        if suite in (Suite.ALL, Suite.STARTUP):
            bench_startup.run(setting)
        if suite in (Suite.ALL, Suite.SPARK):
            bench_spark.run(setting)
        if suite in (Suite.ALL, Suite.STREAM_SINK):
            bench_streamsink.run(setting)
        if suite in (Suite.ALL, Suite.CTAS):
            bench_ctas.run(setting)
        if suite in (Suite.ALL, Suite.STREAM_SOURCE):
            bench_streamsource.run(setting)
        if suite in (Suite.ALL, Suite.STREAMS):
            bench_streams.run(setting)
        if suite in (Suite.ALL, Suite.LOOKUP):
            bench_lookup.run(setting)
        if suite in (Suite.ALL, Suite.MERGE):
            bench_merge.run(setting)
        if suite in (Suite.ALL, Suite.PUSHDOWN):
            bench_pushdown.run(setting)
        if suite in (Suite.ALL, Suite.REFRESH):
            bench_refresh.run(setting)
        if suite in (Suite.ALL, Suite.SCALE):
            (millionfiles if million else bench_scale).run(setting)
        if suite in (Suite.ALL, Suite.SERVICE):
            bench_service.run(setting)
        if suite in (Suite.ALL, Suite.SQL):
            bench_sql.run(setting)
        # Not one of all: it has some 380 calls, of which many take microseconds a row.
        if suite is Suite.FUNCTIONS:
            (functionsbeside if beside_spark else bench_functions).run(setting, only)
        if suite in (Suite.ALL, Suite.TPCH):
            bench_tpc.run(setting, "tpch", engine)
        if suite in (Suite.ALL, Suite.TPCDS):
            bench_tpc.run(setting, "tpcds", engine)
    print(report.to_markdown())
    if json is not None:
        json.write_text(report.to_json() + "\n")
    if markdown is not None:
        markdown.write_text(report.to_markdown())


def _start_peers(stack: ExitStack, report: Report) -> list[Peer]:
    try:
        python = find_interpreter("pypaimon")
        started = [stack.enter_context(Peer(python, mode)) for mode in ("native", "pure")]
    except (PeerUnavailable, PeerFailed) as error:
        report.skipped.append(f"pypaimon: {error}")
        return []
    report.machine = {**report.machine, **{f"peer {name}": version for name, version in started[0].versions.items()}}
    return started


def _find(name: Literal["deltalake", "pyiceberg"], report: Report) -> Path | None:
    try:
        return find_interpreter(name)
    except PeerUnavailable as error:
        report.skipped.append(f"{name}: {error}")
        return None


if __name__ == "__main__":
    # A suite is an argument and not a command, as it was before there were commands.
    if len(sys.argv) > 1 and sys.argv[1] in commands.NAMES:
        commands.app()
    else:
        typer.run(main)
