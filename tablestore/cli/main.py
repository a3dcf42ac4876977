"""The program ``tablestore``: its nouns and verbs, and where they are.

``tablestore NOUN VERB --help`` explains each with an example.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, ClassVar

import typer

import tablestore as ts
from tablestore.cli.command import WAREHOUSE_VARIABLE
from tablestore.cli.lategroup import LateGroup, inner, noun, verb
from tablestore.cli.text.safetext import safe_lines


class TableGroup(LateGroup):
    """``tablestore table``: several modules give it verbs."""

    places: ClassVar = {
        "list": verb("tables", "List tables."),
        "create": verb("tables", "Create a table: keyed with --primary-key, else append-only."),
        "drop": verb("tables", "Drop a table with all of its rows and snapshots."),
        "rename": verb("tables", "Give a table another name."),
        "files": verb("tables", "List the live data files of the newest snapshot."),
        "partitions": verb("tables", "List the partitions of the newest snapshot."),
        "history": verb(
            "tables", "Show what happened to a table, newest first: commits that are still retained, and changes of its schema."
        ),
        "describe": verb(
            "tabledescribe",
            "Columns, keys, options, and the LSM tree of every bucket: levels, runs, sizes, overlap, "
            "and what compaction has to do.",
        ),
        "read": verb("tableread", "Print the rows of a table, or write them to a file."),
        "show": verb("tableread", "Print a system table: what a table is made of, as rows."),
        "count": verb("tableread", "Count rows, after merging."),
        "explain": verb("tableread", "Say what a read would do: manifests, files and splits, read and left out."),
        "rescale": verb("tablealter", "Change the number of buckets: every partition is written again.", "table_app"),
        "drop-partition": verb("housekeeping", "Drop partitions with all of their rows, in one commit.", "table_app"),
        "alter": noun("tablealter", "Alter columns, options and comments."),
    }


class MaterializedGroup(LateGroup):
    """``tablestore mt``."""

    places: ClassVar = {
        "list": verb(
            "materialized.listing",
            "List materialized tables: how fresh each is to be, how far it is behind, its last refresh, and what failed.",
        ),
        "history": verb("materialized.listing", "List the refreshes of a table whose snapshots are still there, newest first."),
        "refresh": verb(
            "materialized.refreshes", "Refresh a table, or with --due all that are due now, sources before what is made from them."
        ),
        "suspend": verb("materialized.refreshes", "Stop refreshing a table until it is resumed."),
        "resume": verb(
            "materialized.refreshes",
            "Refresh a suspended table again: whoever runs mt serve or mt refresh --due does so from now on.",
        ),
        "stage": verb("materialized.evolution", "Build another version of a table beside it, to compare and promote."),
        "compare": verb("materialized.evolution", "Compare a table with its staged version, or else with the previous one."),
        "promote": verb("materialized.evolution", "Put the staged version in the place of a table, in one step."),
        "rollback": verb("materialized.evolution", "Put the version before the last promotion back in its place, in one step."),
        "discard": verb("materialized.evolution", "Drop the staged version of a table, or else the previous one."),
        "serve": verb("materialized.serve", "Keep the materialized tables of a warehouse fresh, until Ctrl-C or SIGTERM."),
        "plan": verb("materialized.folders", "Show what a folder of CREATE OR ALTER MATERIALIZED TABLE statements would change."),
        "apply": verb(
            "materialized.folders",
            "Make materialized tables what a folder of CREATE OR ALTER MATERIALIZED TABLE statements declares.",
        ),
    }


class Program(LateGroup):
    """``tablestore``."""

    places: ClassVar = {
        "import": verb("writing.loading", "Load Parquet, Arrow, CSV or JSON lines files into a table, in bounded memory."),
        "insert": verb(
            "writing.rowchanges",
            "Insert rows given as JSON objects; in a table with a primary key they replace those of their key.",
        ),
        "update": verb("writing.rowchanges", "Set columns of the rows that fulfil a condition."),
        "delete": verb("writing.rowchanges", "Delete the rows that fulfil a condition."),
        "ingest": verb("changes.ingest", "Read a topic into a table: rows, and the changes of rows, each exactly once."),
        "consume": verb("changes.consume", "Print changes, oldest first: +I, -U, +U, -D in the column _row_kind."),
        "compact": verb("housekeeping", "Merge sorted runs and small files as far as it is due."),
        "clean": verb("housekeeping", "Remove files that no snapshot, tag or branch needs, such as those of crashed writers."),
        "verify": verb("verify", "Check that all that snapshots, tags and branches lead to is there and unchanged."),
        "check": verb("expectations", "Compare the rows of a table with its constraints and with the rules of a file."),
        "repair": verb(
            "verify", "Put right what a crash has left, as far as nothing can be lost by it; the rest is named with what to do."
        ),
        "doctor": verb("doctor", "Check Python, Java, libraries and the warehouse; `tablestore verify` checks a table."),
        "sql": verb("sql", "Run SQL statements."),
        "serve": verb("serve", "Serve the catalog of a warehouse over Paimon's REST protocol, until Ctrl-C or SIGTERM."),
        "mcp": verb("mcp", "Offer a warehouse to an agent as tools of the Model Context Protocol, on standard input and output."),
        "page": verb(
            "page",
            "Write the pages of a warehouse as files: tables, history, storage, the graph of materialized tables; open index.html.",
        ),
        "table": inner(TableGroup, "Tables: make them, look at them, read them, change them."),
        "mt": inner(MaterializedGroup, "Materialized tables: how fresh they are, and refreshing them."),
        "db": noun("database", "The databases of a warehouse."),
        "snapshot": noun("snapshothistory", "Snapshots: the states of a table, one for each commit."),
        "tag": noun("tagsandbranches", "Tags: snapshots that are kept under a name.", "tag_app"),
        "branch": noun("tagsandbranches", "Branches: further histories of a table.", "branch_app"),
        "consumer": noun("tagsandbranches", "Consumers: how far the readers of changes are.", "consumer_app"),
        "expire": noun("housekeeping", "Let go of what is old: snapshots, partitions.", "expire_app"),
        "token": noun("token", "Tokens: who may do what at the service of a warehouse."),
        "log": noun("log", "The topic of a table: how far it is, publish, verify, rebuild, adopt."),
    }


app = typer.Typer(
    name="tablestore",
    cls=Program,
    help="Managed tables in the open Apache Paimon format: look at them, change them, keep them in shape.",
    epilog="Tables are named database.table together with --warehouse (or TABLESTORE_WAREHOUSE), or by their path.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"tablestore {ts.__version__}")
        raise typer.Exit()


@app.callback()
def program(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", is_eager=True, callback=_show_version)
    ] = False,
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", help="As of the command itself: a warehouse by path, URL or name.")
    ] = None,
) -> None:
    """Managed tables in the open Apache Paimon format: look at them, change them, keep them in shape."""
    if warehouse is not None:
        # Commands take theirs from the environment.
        ctx.with_resource(_variable(WAREHOUSE_VARIABLE, warehouse))


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Sets a variable of the environment until the program ends."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def program_app() -> typer.Typer:
    """The whole program."""
    return app


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        # Names that are no valid text, or that a terminal cannot show, must not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_SafeLines())
    program_app()()


class _SafeLines(logging.Formatter):
    """Shows what is logged without control characters: the names in it are other people's."""

    def format(self, record: logging.LogRecord) -> str:
        return safe_lines(super().format(record))
