"""The program ``tablestore``: its nouns, and nothing else. ``tablestore NOUN VERB --help`` explains each with an example."""

import sys
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.apps import root as app
from tablestore.cli.commands import (
    altering,
    consume,
    database,
    doctor,
    housekeeping,
    loading,
    log,
    snapshothistory,
    sql,
    tabledescribe,
    tableread,
    tables,
    tagsandbranches,
    verify,
)

# Each registers its verbs where it is imported; these nouns are programs of their own.
VERBS = (tables, tabledescribe, tableread, altering, loading, consume, housekeeping, verify, doctor, sql)
app.add_typer(database.app, name="db")
app.add_typer(snapshothistory.app, name="snapshot")
app.add_typer(tagsandbranches.tag_app, name="tag")
app.add_typer(tagsandbranches.branch_app, name="branch")
app.add_typer(tagsandbranches.consumer_app, name="consumer")
app.add_typer(housekeeping.expire_app, name="expire")
app.add_typer(log.app, name="log")


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
    """The whole program, every verb registered."""
    return app


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        # Names that are no valid text, or that a terminal cannot show, must not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    program_app()()
