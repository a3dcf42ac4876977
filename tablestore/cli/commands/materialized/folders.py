"""``tablestore mt plan`` and ``apply``: materialized tables as a folder of SQL files declares them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, FoundProblems, command
from tablestore.cli.commands.sql import EngineOption, open_environment

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the .sql files.")]
Database = Annotated[str | None, typer.Option("--database", metavar="NAME", help="The database of names without one.")]
BlueGreen = Annotated[
    bool, typer.Option("--blue-green", help="Stage another query, key or partitioning beside the table, to compare and promote.")
]


@command(app, "plan", "tablestore mt plan tables/", "tablestore mt plan tables/ --json")
def plan(
    session: CommandRun, folder: Folder, database: Database = None, blue_green: BlueGreen = False, engine: EngineOption = None
) -> None:
    """Show what a folder of CREATE OR ALTER MATERIALIZED TABLE statements would change. Nothing is changed.

    The exit code is 0 if all is as declared, 3 if there are changes, 1 if a statement cannot run. Materialized tables that no file
    declares are listed; they stay as they are.
    """
    with open_environment(session, engine) as environment:
        _use(environment, database)
        folder_plan = environment.plan_folder(folder, blue_green=blue_green)
    undeclared = [str(path) for path in folder_plan.undeclared]
    if session.out.as_json:
        session.out.document({"statements": [asdict(statement) for statement in folder_plan.statements], "undeclared": undeclared})
    else:
        for statement in folder_plan.statements:
            session.out.say(str(statement))
        for name in undeclared:
            session.out.say(f"not declared: {name}")
    if folder_plan.changes:
        raise FoundProblems


@command(app, "apply", "tablestore mt apply tables/", "tablestore mt apply tables/ --blue-green")
def apply(
    session: CommandRun,
    folder: Folder,
    database: Database = None,
    blue_green: BlueGreen = False,
    engine: EngineOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", hidden=True, help="Nothing is asked: mt plan shows what would be done.")
    ] = False,
) -> None:
    """Make materialized tables what a folder of CREATE OR ALTER MATERIALIZED TABLE statements declares.

    What is as declared is not touched. The first statement that fails ends it; what ran before stays, and applying again goes on.
    """
    with open_environment(session, engine) as environment:
        _use(environment, database)
        for statement in environment.apply_folder(folder, blue_green=blue_green):
            if session.out.as_json:
                session.out.line(asdict(statement))
            else:
                session.out.say(str(statement))
            session.out.flush()


def _use(environment: "ts.TableEnvironment", database: str | None) -> None:
    if database is not None:
        environment.use_database(database)
