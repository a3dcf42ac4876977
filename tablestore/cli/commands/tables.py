"""``tablestore table``: make and drop tables, and what they are made of."""

from pathlib import Path
from typing import Annotated, Any

import typer

import tablestore as ts
from tablestore.catalog.identifier import parse_identifier
from tablestore.catalog.refusals import materialized_stays
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command, complete_table, parse_pairs
from tablestore.cli.text.render import OutputColumn
from tablestore.cli.text.safetext import safe
from tablestore.names import split_names
from tablestore.options import is_materialized

app = typer.Typer()

NewTable = Annotated[str, typer.Argument(metavar="TABLE", help="database.table in the warehouse.", autocompletion=complete_table)]
PrimaryKey = Annotated[str | None, typer.Option("--primary-key", metavar="COLUMNS", help="Key columns, separated by commas.")]
PartitionBy = Annotated[
    str | None, typer.Option("--partition-by", metavar="COLUMNS", help="Partition columns, separated by commas.")
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="KEY=VALUE", help="Option of the table. May be repeated.", autocompletion=wordcompletion.option
    ),
]

_TABLES = (
    OutputColumn("name", "table"),
    OutputColumn("kind", "kind"),
    OutputColumn("primary_key", "key", "names"),
    OutputColumn("partition_by", "partitioned by", "names"),
    OutputColumn("records", "records", "count"),
    OutputColumn("snapshot_id", "snapshot", "count"),
    OutputColumn("time", "changed", "time"),
    OutputColumn("error", "problem"),
)
_FILES = (
    OutputColumn("partition", "partition"),
    OutputColumn("bucket", "bucket", "count"),
    OutputColumn("level", "level", "count"),
    OutputColumn("row_count", "rows", "count"),
    OutputColumn("file_size_bytes", "size", "bytes"),
    OutputColumn("min_sequence_number", "first number", "count"),
    OutputColumn("max_sequence_number", "last number", "count"),
    OutputColumn("delete_row_count", "deletes", "count"),
    OutputColumn("file_path", "file"),
)
_PARTITIONS = (
    OutputColumn("partition", "partition"),
    OutputColumn("record_count", "rows (unmerged)", "count"),
    OutputColumn("file_count", "files", "count"),
    OutputColumn("file_size_bytes", "size", "bytes"),
)
_HISTORY = (
    OutputColumn("time", "when", "time"),
    OutputColumn("event", "what"),
    OutputColumn("id", "id", "count"),
    OutputColumn("by", "by"),
    OutputColumn("detail", "detail"),
)


@command(app, "list", "tablestore table list shop", "tablestore table list --long --json")
def list_tables(
    session: CommandRun,
    database: Annotated[
        str | None,
        typer.Argument(metavar="[DATABASE]", help="Only the tables of this database.", autocompletion=wordcompletion.databases),
    ] = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Open each table and say more about it.")] = False,
) -> None:
    """List tables."""
    catalog = session.catalog()
    databases = (database,) if database else catalog.list_databases()
    names = [f"{database_name}.{name}" for database_name in databases for name in catalog.list_tables(database_name)]
    records = [_summary(catalog, name) if long else {"name": name} for name in names]
    columns = [column for column in _TABLES if long and any(column.key in record for record in records)]
    session.out.listing("tables", columns or _TABLES[:1], records, empty="No tables.")


@command(
    app,
    "create",
    'tablestore table create shop.orders --schema "id BIGINT, item STRING, price DECIMAL(10, 2)" --primary-key id -o bucket=4',
    "tablestore table create shop.visits --schema-from visits.parquet --partition-by day",
)
def create_table(
    session: CommandRun,
    name: NewTable,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="COLUMNS", help="Columns as SQL: name TYPE [NOT NULL], …")
    ] = None,
    schema_from: Annotated[
        Path | None,
        typer.Option("--schema-from", metavar="FILE", help="Take the columns of an Arrow, Parquet, CSV or JSON lines file."),
    ] = None,
    primary_key: PrimaryKey = None,
    partition_by: PartitionBy = None,
    option: Options = None,
    comment: Annotated[str | None, typer.Option("--comment", help="What the table is for.")] = None,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="NAME=CONDITION", help="A condition that every row holds. May be repeated."),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing one is left as it is.")] = False,
) -> None:
    """Create a table: keyed with --primary-key, else append-only."""
    if (schema is None) == (schema_from is None):
        raise typer.BadParameter("give the columns by one of --schema and --schema-from", param_hint="'--schema'")
    table = session.catalog().create_table(
        name,
        schema=schema if schema is not None else _columns_of(str(schema_from)),
        primary_key=split_names(primary_key or ""),
        partition_by=split_names(partition_by or ""),
        options=parse_pairs(option or (), "--option"),
        comment=comment,
        checks=parse_pairs(check or (), "--check"),
        ignore_if_exists=if_not_exists,
    )
    session.out.done({"created": table.name, "location": table.location}, f"Table {table.name} is there, in {table.location}.")


@command(app, "drop", "tablestore table drop shop.orders --yes")
def drop_table(
    session: CommandRun,
    name: NewTable,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing one is fine.")] = False,
    yes: Yes = False,
) -> None:
    """Drop a table with all of its rows and snapshots."""
    catalog = session.catalog()
    try:
        table = catalog.table(name)
    except ts.NotFoundError:
        catalog.drop_table(name, ignore_if_not_exists=if_exists)
        session.out.done({"dropped": None}, f"There is no table {name}.")
        return
    if is_materialized(table.options()):
        raise materialized_stays(parse_identifier(name), f"DROP MATERIALIZED TABLE {name}")
    latest = table.context.shown_latest()
    rows = latest.total_record_count if latest else 0
    plan = {"table": table.name, "location": table.location, "records": rows, "snapshots": len(table.snapshots())}
    stored = "an unknown number of" if rows is None else f"{rows:,}"
    sentence = f"Drops {table.name} in {table.location} with {len(table.snapshots())} snapshot(s) and {stored} stored record(s)."
    session.confirm(yes, sentence, plan)
    catalog.drop_table(name)
    session.out.done({"dropped": table.name}, f"Dropped {table.name}.")


@command(app, "rename", "tablestore table rename shop.orders shop.orders_2025")
def rename_table(
    session: CommandRun, name: NewTable, new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="database.table")]
) -> None:
    """Give a table another name."""
    session.catalog().rename_table(name, new_name)
    session.out.done({"renamed": name, "to": new_name}, f"{name} is now {new_name}.")


@command(app, "files", "tablestore table files shop.orders", "tablestore table files shop.orders --json | jq '.files[].file_path'")
def files(session: CommandRun, name: TableName) -> None:
    """List the live data files of the newest snapshot."""
    records = session.table(name).files().to_pylist()
    session.out.listing("files", _FILES, records, empty="No files.")


@command(app, "partitions", "tablestore table partitions shop.visits")
def partitions(session: CommandRun, name: TableName) -> None:
    """List the partitions of the newest snapshot."""
    records = session.table(name).partitions().to_pylist()
    session.out.listing("partitions", _PARTITIONS, records, empty="No partitions.")


@command(app, "history", "tablestore table history shop.orders")
def history(
    session: CommandRun,
    name: TableName,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the newest so many events.")] = None,
) -> None:
    """Show what happened to a table, newest first: commits that are still retained, and changes of its schema."""
    table = session.table(name)
    context = table.context
    events: list[dict[str, Any]] = [
        {
            "time": schema.time_millis,
            "event": "schema",
            "id": schema.id,
            "by": None,
            "detail": f"columns {', '.join(schema.field_names)}",
        }
        for schema in map(context.schemas.read, context.schemas.ids())
    ]
    events += [
        {
            "time": snapshot.time_millis,
            "event": f"commit {snapshot.operation or snapshot.commit_kind}",
            "id": snapshot.id,
            "by": snapshot.commit_user,
            "detail": snapshot.size_text,
        }
        for snapshot in table.snapshots()
    ]
    # Of one moment the schema is older: a commit needs it.
    events.sort(key=lambda event: (event["time"], event["event"] != "schema", event["id"]), reverse=True)
    session.out.listing("history", _HISTORY, events[:limit], empty="Nothing happened yet.")


def _columns_of(path: str) -> Any:
    from tablestore.cli.rows.rowsource import schema_of_file

    return schema_of_file(path)


def _summary(catalog: "ts.Catalog", name: str) -> dict[str, Any]:
    """One line of ``table list --long``; a table that cannot be opened is listed with the reason."""
    try:
        table = catalog.table(name)
        latest = table.context.shown_latest()
    except ts.TablestoreError as error:
        return {"name": name, "error": safe(error)}
    return {
        "name": name,
        "kind": "keyed" if table.primary_key else "append",
        "primary_key": list(table.primary_key),
        "partition_by": list(table.partition_by),
        "records": latest.total_record_count if latest else 0,
        "snapshot_id": latest.id if latest else None,
        "time": latest.time_millis if latest else None,
    }
