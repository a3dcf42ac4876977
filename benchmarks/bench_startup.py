"""How long does the smallest query take from the shell, and how much of that are the libraries that it cannot do without?

    tablestore sql -e "SELECT count(*) FROM t"     a process of its own: all that it imports counts

The bar is the time of ``import duckdb, tablestore`` and a scan by DuckDB alone. Beside it stand floors, each the one before and
what our query also needs: Arrow and the parser of SQL; parts for Parquet, manifests and dialects; what reads the command line.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

from benchmarks import ours
from benchmarks.measure import Case, Sample
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload

ROWS = 1000
IMPORT = "import duckdb, tablestore"
LIBRARIES = f"{IMPORT}, numpy, pyarrow, sqlglot"
PARTS = f"{LIBRARIES}, pyarrow.compute, pyarrow.parquet, fastavro, sqlglot.dialects.duckdb, sqlglot.dialects.spark"
# typer checks arguments with pydantic.
COMMAND_LINE = f"{PARTS}, typer; from pydantic import BeforeValidator, Field, TypeAdapter"


def run(setting: Setting) -> None:
    """All questions of this module."""
    workload = Workload("bigint", ROWS, setting.seed)
    with setting.workspace("startup") as space:
        table = ours.create(space, "startup", workload, buckets=1)
        table.upsert(workload.table(workload.shuffled()))
        (file,) = Path(table.location).rglob("*.parquet")
        scan = f"{IMPORT}; print(duckdb.sql('SELECT count(*) FROM \"{file}\"').fetchall())"
        query = ("-m", "tablestore", "sql", "--engine", "duckdb", "-w", str(space), "-e", f"SELECT count(*) FROM {table.name}")
        python = partial(_python, space / "bytecode")
        cases = [
            Case("an empty program", python("-c", "pass")),
            Case("import duckdb, tablestore", python("-c", IMPORT)),
            Case("that, and a scan", python("-c", scan)),
            Case("numpy, pyarrow, sqlglot too", python("-c", LIBRARIES)),
            Case("their parts, fastavro too", python("-c", PARTS)),
            Case("typer too", python("-c", COMMAND_LINE)),
            Case("tablestore sql", python(*query)),
        ]
        timings = setting.take_turns(cases)
    least = ", ".join(f"{name} {min(timing.seconds):.3f} s" for name, timing in timings.items())
    result = Result(
        name=f"count(*) of {ROWS} rows, each time in a process of its own",
        question="How much longer than the libraries that it needs does a query from the shell take?",
        rows=1,
        base="that, and a scan",
        timings=timings,
        notes=f"Least of all rounds: {least}.",
    )
    setting.add(result)
    for base, bound in (("that, and a scan", 1.5), ("typer too", 1.5)):
        setting.add_bar(result.bar(f"a query from the shell / {base}", "tablestore sql", base, bound, note=result.notes))


def _python(bytecode: Path, *args: str) -> Callable[[], Sample]:
    """A run of this Python, from its start to its end. As where it is installed nothing is compiled but in the first round."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def attempt() -> Sample:
        before, wall = getrusage(RUSAGE_CHILDREN), perf_counter()
        subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL, env=environment)
        wall, after = perf_counter() - wall, getrusage(RUSAGE_CHILDREN)
        return Sample(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return attempt
