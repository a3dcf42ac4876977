"""Offers the comparison as commands: run, compare, results."""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.comparison.compare import compare as compare_runs
from benchmarks.comparison.page import finish, write_document
from benchmarks.comparison.record import PAGE, ResultFolder, Results, read_results
from benchmarks.comparison.running import SUITES, pick_suites, run_suites
from benchmarks.comparison.session import FULL, QUICK
from benchmarks.comparison.systems import spec_list
from benchmarks.measure import machine

app = typer.Typer(no_args_is_help=True, add_completion=False)
NAMES = ("run", "compare", "results")
"""What ``python -m benchmarks`` hands over to this app."""

_SEED = 7


@app.command()
def run(
    suite: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(one.name for one in SUITES)}; all if none.")] = None,
    system: Annotated[list[str] | None, typer.Option(help="A system by its name; all if none.")] = None,
    quick: Annotated[bool, typer.Option(help="Small tables and few rounds: some minutes on two cores.")] = False,
    python_only: Annotated[bool, typer.Option("--python-only", help="Leave Spark out.")] = False,
    spark_only: Annotated[bool, typer.Option("--spark-only", help="Leave out what does not run in Spark.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Add to what the folder has of an earlier run.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The folder of the results.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Where the tables are made; a temporary directory if not given.")] = None,
) -> None:
    """Measure tablestore beside other table stores, and keep the results in a folder."""
    sizes = QUICK if quick else FULL
    specs = [
        spec
        for spec in spec_list()
        if not (python_only and spec.family == "spark") and not (spark_only and spec.family == "python")
    ]
    try:
        suites = pick_suites(suite or [])
        if unknown := sorted(set(system or []) - {spec.name for spec in specs}):
            raise ValueError(f"no system {', '.join(unknown)}; expected {', '.join(spec.name for spec in specs)}")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    specs = [spec for spec in specs if not system or spec.name in system]
    now = datetime.now(UTC)
    folder = ResultFolder(out or Path("benchmarks", "results", now.strftime("%Y-%m-%dT%H%M%S")), keep=keep)
    about = machine()
    about["cpu"] = about["cpu"].replace(", one used", "")
    settings = {
        "day": now.date().isoformat(),
        "size": "quick: fixed costs weigh more than in a full run" if quick else "full",
        "rows": f"{sizes.load_rows:,} loaded, tables of {sizes.table_rows:,}",
        "seed": str(_SEED),
    }
    with tempfile.TemporaryDirectory(prefix="tablestore-comparison-", dir=directory, ignore_cleanup_errors=True) as work:
        try:
            run_suites(suites, specs, sizes, folder=folder, work=Path(work).resolve(), seed=_SEED, surroundings=(about, settings))
        except KeyboardInterrupt:
            folder.cut("what came after it was stopped by hand")
            print("stopped: what was measured so far is kept", file=sys.stderr)
        finally:
            finish(folder.directory)
    print(folder.directory / PAGE)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="A folder of results.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """Show what each system took in two runs, and the ratio."""
    print("\n".join(compare_runs(_read(before), _read(after), SUITES)))


@app.command()
def results(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    page: Annotated[Path, typer.Argument(help="The page to write; its charts go to images/ beside its folder.")],
) -> None:
    """Write the page of the documents from the results of a run."""
    _read(folder)
    write_document(folder, page)


def _read(folder: Path) -> Results:
    try:
        return read_results(folder)
    except FileNotFoundError as error:
        raise typer.BadParameter(f"{folder} has no results.jsonl: expected a folder that `run` wrote") from error
