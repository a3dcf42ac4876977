"""``tablestore db``: the databases of a warehouse."""

from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, Yes, command
from tablestore.cli.text.render import OutputColumn
from tablestore.types.typestring import quote_identifier

app = typer.Typer(no_args_is_help=True, help="The databases of a warehouse.")

Database = Annotated[str, typer.Argument(metavar="DATABASE", help="Name of the database.", autocompletion=wordcompletion.databases)]


@command(app, "list", "tablestore db list --warehouse /data/warehouse")
def list_databases(session: CommandRun) -> None:
    """List the databases with the number of their tables."""
    catalog = session.catalog()
    records = [{"name": name, "tables": len(catalog.list_tables(name))} for name in catalog.list_databases()]
    columns = (OutputColumn("name", "database"), OutputColumn("tables", "tables", "count"))
    session.out.listing("databases", columns, records, empty=f"No databases in {session.warehouse}.")


@command(app, "create", "tablestore db create shop --warehouse /data/warehouse")
def create_database(
    session: CommandRun,
    name: Database,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing one is fine.")] = False,
) -> None:
    """Create a database, and the warehouse with it if there is none yet."""
    session.catalog().create_database(name, ignore_if_exists=if_not_exists)
    session.out.done({"created": name}, f"Database {name} is there.")


@command(app, "drop", "tablestore db drop shop --cascade --yes")
def drop_database(
    session: CommandRun,
    name: Database,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop its tables too.")] = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing one is fine.")] = False,
    yes: Yes = False,
) -> None:
    """Drop a database; one that holds tables only with --cascade."""
    catalog = session.catalog()
    if name not in catalog.list_databases():
        # Also says which ones there are.
        catalog.drop_database(name, ignore_if_not_exists=if_exists)
        session.out.done({"dropped": None, "tables": []}, f"There is no database {name}.")
        return
    tables = catalog.list_tables(name)
    if tables and not cascade:
        # Says what to do.
        catalog.drop_database(name)
    plan = {"database": name, "tables": list(tables)}
    session.confirm(
        yes, f"Drops the database {name} and {len(tables)} table(s) with all their rows: {', '.join(tables) or '-'}.", plan
    )
    with ts.TableEnvironment.create(catalog) as environment:
        # Its materialized tables go with what refreshes them.
        environment.execute_sql(f"DROP DATABASE {quote_identifier(name)} CASCADE")
    session.out.done({"dropped": name, "tables": list(tables)}, f"Dropped the database {name} and {len(tables)} table(s).")
