"""The program ``tablestore``: its nouns and verbs, and where they are.

``tablestore NOUN VERB --help`` explains each with an example.
"""

import sys
from typing import Annotated, ClassVar

import typer

import tablestore as ts
from tablestore.cli.lategroup import LateGroup, noun, verb


class TableGroup(LateGroup):
    """``tablestore table``: several modules give it verbs."""

    places: ClassVar = {
        "list": verb("tables"),
        "create": verb("tables"),
        "drop": verb("tables"),
        "rename": verb("tables"),
        "files": verb("tables"),
        "partitions": verb("tables"),
        "history": verb("tables"),
        "describe": verb("tabledescribe"),
        "read": verb("tableread"),
        "show": verb("tableread"),
        "count": verb("tableread"),
        "explain": verb("tableread"),
        "rescale": verb("altering", "table_app"),
        "drop-partition": verb("housekeeping", "table_app"),
        "alter": noun("altering"),
    }


class MaterializedGroup(LateGroup):
    """``tablestore mt``."""

    places: ClassVar = {
        "list": verb("materialized.refreshes"),
        "history": verb("materialized.refreshes"),
        "refresh": verb("materialized.refreshes"),
        "suspend": verb("materialized.refreshes"),
        "resume": verb("materialized.refreshes"),
        "serve": verb("materialized.serve"),
        "plan": verb("materialized.folders"),
        "apply": verb("materialized.folders"),
    }


class Program(LateGroup):
    """``tablestore``."""

    places: ClassVar = {
        "import": verb("loading"),
        "ingest": verb("ingest"),
        "consume": verb("consume"),
        "compact": verb("housekeeping"),
        "clean": verb("housekeeping"),
        "verify": verb("verify"),
        "repair": verb("verify"),
        "doctor": verb("doctor"),
        "sql": verb("sql"),
        "table": lambda name: TableGroup(
            name=name, no_args_is_help=True, help="Tables: make them, look at them, read them, change them."
        ),
        "mt": lambda name: MaterializedGroup(
            name=name, no_args_is_help=True, help="Materialized tables: how fresh they are, and refreshing them."
        ),
        "db": noun("database"),
        "snapshot": noun("snapshothistory"),
        "tag": noun("tagsandbranches", "tag_app"),
        "branch": noun("tagsandbranches", "branch_app"),
        "consumer": noun("tagsandbranches", "consumer_app"),
        "expire": noun("housekeeping", "expire_app"),
        "log": noun("log"),
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


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tablestore {ts.__version__}")
        raise typer.Exit()


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Managed tables in the open Apache Paimon format: look at them, change them, keep them in shape."""


def program_app() -> typer.Typer:
    """The whole program."""
    return app


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        # Names that are no valid text, or that a terminal cannot show, must not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    program_app()()
