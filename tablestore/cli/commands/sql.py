"""``tablestore sql``: statements from the command line, a file, standard input, or at a prompt."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command, parse_pairs
from tablestore.cli.interruption import INTERRUPTED
from tablestore.cli.rows.rowformat import RowFormat
from tablestore.cli.shell.interrupt import Interrupted, run_interruptibly
from tablestore.cli.text.pager import pick_pager, show_in_pager
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect

if TYPE_CHECKING:
    import pyarrow as pa

    from tablestore.environment.jobs import Job
    from tablestore.environment.result import Result

app = typer.Typer()

# Short enough that the end of a job is seen at once.
_LOOK_S = 0.1


class Engine(StrEnum):
    """The engine that runs queries."""

    SPARK = "spark"
    DUCKDB = "duckdb"


EngineOption = Annotated[
    Engine | None, typer.Option("--engine", help="What runs queries; left out: DuckDB if it is installed, else Spark.")
]


@command(
    app,
    "sql",
    "tablestore sql",
    'tablestore sql "SELECT count(*) FROM shop.orders"',
    "tablestore sql --engine spark --file nightly.sql",
    "tablestore sql --dialect duckdb -e 'SUMMARIZE shop.orders'",
    "tablestore sql --json -e 'SHOW TABLES IN shop' | jq .",
)
def sql(
    session: CommandRun,
    statements: Annotated[list[str] | None, typer.Argument(metavar="SQL", help="Run these statements, as -e.")] = None,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", "-c", metavar="SQL", help="Run these statements. May be repeated.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Run the statements of a file; - is standard input.")
    ] = None,
    engine: EngineOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the session. May be repeated.")
    ] = None,
    dialect: Annotated[
        SqlDialect | None,
        typer.Option("--dialect", help="The words of queries: Spark's (left out), or on the engine duckdb DuckDB's own."),
    ] = None,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Run queries, EXPLAIN, SHOW, DESCRIBE and USE alone, within limits.")
    ] = False,
    format: Annotated[RowFormat | None, typer.Option("--format", help="How the rows come out.")] = None,
    no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Print long results as they are, also where a terminal has $PAGER or less.")
    ] = False,
) -> None:
    """Run SQL statements. Without statements and --file: ask for them, or read them from standard input.

    On a terminal each statement says how many rows it gave or changed, and how long it took. A script stops at the first statement
    that fails, and says where it is. Ctrl-C cancels the statement that runs. With --set
    execution.runtime-mode=streaming a SELECT shows the rows and then every change, with its kind in front, until Ctrl-C; an INSERT
    runs until Ctrl-C too.
    """
    config = parse_pairs(settings or (), "--set")
    if not no_pager and session.out.is_terminal and sys.stdin.isatty() and sys.stdout.isatty():
        session.out.pager = _pager()
    with open_environment(session, engine, config, dialect=dialect, restricted=restricted) as environment:
        runner = Runner(session, environment, format)
        texts = [*(statements or ()), *(execute or ())]
        if texts:
            for text in texts:
                runner.run_script(text)
        if file is not None:
            runner.run_script(sys.stdin.read() if str(file) == "-" else _text_of(file))
        if not texts and file is None:
            if sys.stdin.isatty():
                _ask(session, environment, runner)
                return
            runner.run_script(sys.stdin.read())
        runner.wait_for_streams()


def open_environment(
    session: CommandRun,
    engine: Engine | None,
    config: Mapping[str, str] | None = None,
    *,
    dialect: SqlDialect | None = None,
    restricted: bool = False,
) -> "ts.TableEnvironment":
    """An environment over the warehouse of a command. ``engine`` None: one that is installed."""
    return ts.TableEnvironment.create(
        session.catalog(),
        engine=(engine or installed_engine()).value,
        config=config,
        sql_dialect=None if dialect is None else dialect.value,
        restricted=restricted,
    )


class Runner:
    """Runs statements and shows what they give."""

    def __init__(self, session: CommandRun, environment: "ts.TableEnvironment", row_format: RowFormat | None) -> None:
        self._session, self._environment, self._format = session, environment, row_format
        self._out = session.out
        # How many ids were drawn before the statement that runs.
        self._before = 0
        self._begun_s = session.clock.steady_s()
        # What is shown without end: Ctrl-C ends it.
        self._endless: Result | None = None
        self._is_ended = False
        self._streams: list[Job[Result]] = []

    def run_script(self, text: str) -> None:
        """Run every statement of a text; the first that fails ends it."""
        results: list[Result] = []

        def show(_: object, result: "Result") -> None:
            self._show(result)
            results.append(result)
            self._begin()

        self._begin()
        try:
            run_interruptibly(lambda: self._environment.execute_script(text, show), self._cancel)
        except Interrupted:
            if not self._is_ended:
                self._out.note(f"{_what_was_done(results)}: {self._what_landed()}.")
            raise typer.Exit(INTERRUPTED) from None

    def wait_for_streams(self) -> None:
        """Wait for the jobs that the statements began and that do not end by themselves. Ctrl-C cancels them."""

        def wait() -> None:
            while any(not job.wait(_LOOK_S) for job in self._streams):
                for job in self._streams:
                    if job.done():
                        job.result()
            for job in self._streams:
                job.result()

        def cancel() -> None:
            for job in self._streams:
                job.cancel()

        try:
            run_interruptibly(wait, cancel)
        except Interrupted:
            raise typer.Exit(INTERRUPTED) from None

    def run(self, text: str) -> None:
        """Run one statement at the prompt. Ctrl-C cancels it, and says what it had committed by then."""
        self._begin()
        try:
            run_interruptibly(lambda: self._show(self._environment.execute_sql(text)), self._cancel)
        except Interrupted:
            if not self._is_ended:
                self._out.note(f"Interrupted: the statement was cancelled: {self._what_landed()}.")

    def first_column(self, text: str) -> list[str]:
        """The first column of what a statement gives."""
        return [str(value) for value in self._environment.execute_sql(text).to_arrow().column(0).to_pylist()]

    def _begin(self) -> None:
        self._before, self._is_ended = len(self._session.ids.given), False
        self._begun_s = self._session.clock.steady_s()

    def _what_landed(self) -> str:
        return self._session.what_landed(self._session.ids.since(self._before))

    def _cancel(self) -> None:
        if self._endless is not None:
            self._is_ended = True
            self._endless.cancel()
        elif self._environment.engine is not None:
            self._environment.engine.cancel()

    def _show(self, result: "Result") -> None:
        self._show_rows(result)
        for notice in result.notices:
            self._out.notice(notice.kind, notice.message)

    def _show_rows(self, result: "Result") -> None:
        if result.job is not None and self._environment.get_config().get("execution.runtime-mode") == "streaming":
            self._streams.append(result.job)
            self._out.note(f"Job {result.job.id} runs until it is canceled.")
        elif result.text is not None and self._format is None and not self._out.as_json:
            self._out.say(result.text)
        elif result.kind == "snapshot" and self._out.as_json and self._format is None:
            from tablestore.cli.rows.landedrows import landed_rows
            from tablestore.cli.rows.rowsink import write_rows

            rows = landed_rows(result, self._seconds)
            write_rows(self._out, rows.schema, rows.to_batches())
        elif result.kind == "rows" or self._out.as_json:
            self._write_rows(result)
        elif result.kind == "snapshot":
            from tablestore.cli.rows.landedrows import landed_lines

            for line in landed_lines(result, self._took()):
                self._out.say(line)
        else:
            self._out.say(f"OK{self._took()}")

    def _write_rows(self, result: "Result") -> None:
        from tablestore.cli.rows.rowsink import write_rows

        self._endless = result if result.is_endless else None
        read = _Counted(_as_they_come(result) if result.is_endless else result.to_batches())
        shown = write_rows(self._out, result.schema, read, row_format=self._format, draw=not result.is_endless)
        self._endless = None
        if self._is_ended:
            raise Interrupted
        if self._out.is_terminal and result.kind == "rows":
            first = "the first " if read.rows > shown else ""
            self._out.note(f"{first}{shown:,} {'row' if shown == 1 else 'rows'}{self._took()}")

    def _seconds(self) -> float:
        return self._session.clock.steady_s() - self._begun_s

    def _took(self) -> str:
        return self._session.took(self._seconds())


class _Counted:
    """Batches, and how many rows of them were read."""

    def __init__(self, batches: "Iterator[pa.RecordBatch]") -> None:
        self._batches, self.rows = batches, 0

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _pager() -> Callable[[str], bool] | None:
    """The user's pager, None if there is none."""
    words = pick_pager(os.environ, which)
    return partial(show_in_pager, words, environ=os.environ) if words else None


def _as_they_come(result: "Result") -> "Iterator[pa.RecordBatch]":
    """The batches of rows without end: each is written before the next one is waited for."""
    # The names of the columns come first.
    sys.stdout.flush()
    for batch in result.to_batches():
        yield batch
        sys.stdout.flush()


def _what_was_done(results: "Sequence[Result]") -> str:
    """The statements that a script had done before the one that was cancelled."""
    if not results:
        return "Interrupted: the first statement of the script was cancelled"
    snapshots = [str(result.snapshot.id) for result in results if result.kind == "snapshot" and result.snapshot is not None]
    landed = f"they committed snapshot(s) {', '.join(snapshots)}" if snapshots else "they committed no rows"
    return f"Interrupted: {len(results)} statement(s) are done, {landed}; the next one was cancelled"


def _ask(session: CommandRun, environment: "ts.TableEnvironment", runner: Runner) -> None:
    if find_spec("prompt_toolkit") is None:
        raise ts.UnsupportedError(
            "the prompt needs the package prompt_toolkit: pip install 'managed-tablestore[shell]'; -e and --file do without it",
            kind="missing-extra",
        )
    # Only the prompt needs what it imports.
    from tablestore.cli.shell.completion import SqlCompleter
    from tablestore.cli.shell.prompt import Prompt, history_file, open_history

    def say_help() -> None:
        session.out.say(HELP)

    def name() -> str:
        return f"{environment.current_catalog}.{environment.current_database}> "

    session.out.say(f"tablestore {ts.__version__}. Statements end with a semicolon; help shows more, quit leaves.")

    def dialect() -> SqlDialect:
        return SqlDialect(str(environment.get_config().get(SQL_DIALECT)))

    prompt = Prompt(SqlCompleter(runner.first_column), open_history(history_file(os.environ, Path.home())), dialect)
    for text in prompt.statements(name, say_help):
        try:
            runner.run(text)
        except ts.TablestoreError as error:
            session.out.fail(error)


HELP = """\
SHOW TABLES; SHOW DATABASES; DESCRIBE t; SHOW CREATE TABLE t;      what is there
SELECT …; INSERT INTO t …; UPDATE t …; DELETE FROM t …; MERGE …    rows
CREATE TABLE t AS SELECT …;                                        a table from a query
SELECT … FROM t FOR VERSION AS OF 3;  SELECT * FROM t$snapshots    time travel, system tables
CALL sys.…; SHOW PROCEDURES;                                       maintenance
SET 'key' = 'value'; SET; RESET 'key';                             the session
Enter after ; runs, Tab completes, Ctrl-C cancels, Ctrl-D leaves."""


def installed_engine() -> Engine:
    """The engine to use if none is asked for."""
    return Engine.DUCKDB if find_spec("duckdb") is not None else Engine.SPARK


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ts.InvalidInputError(f"{file} is not UTF-8 text (byte {error.start})", kind="file") from error
