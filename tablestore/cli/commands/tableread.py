"""``tablestore table read``, ``count``, ``explain``: the rows of a table, now or as of then."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, command
from tablestore.cli.rows.rowformat import RowFormat
from tablestore.cli.text.render import OutputColumn
from tablestore.names import split_names
from tablestore.units import parse_time

app = typer.Typer()

# The columns of a system table for which a terminal of 100 columns has room.
_NARROW = {
    "snapshots": ("snapshot_id", "schema_id", "commit_user", "commit_kind", "commit_time", "total_record_count"),
}

SourceName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="database.table of the warehouse, or the path of a table.", autocompletion=wordcompletion.source
    ),
]

FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter", "--where", "-f", metavar="SQL", help="Only rows for which this holds.", autocompletion=wordcompletion.condition
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", "-c", metavar="COLUMNS", help="Only these columns, separated by commas.", autocompletion=wordcompletion.columns
    ),
]
SnapshotOption = Annotated[
    int | None, typer.Option("--snapshot", "-s", help="As of this snapshot.", autocompletion=wordcompletion.snapshot)
]
TagOption = Annotated[str | None, typer.Option("--tag", "-t", help="As of this tag.", autocompletion=wordcompletion.tag)]
Timestamp = Annotated[str | None, typer.Option("--timestamp", metavar="TIME", help="As of this time (ISO 8601, or milliseconds).")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most so many rows.")]
Format = Annotated[RowFormat | None, typer.Option("--format", help="How the rows come out.")]
OutputFile = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write them into this file.")]


@command(
    app,
    "read",
    'tablestore table read shop.orders --columns id,price --filter "price > 10" --limit 20',
    "tablestore table read shop.orders --snapshot 3 --format csv --output orders.csv",
    "tablestore table read shop.orders --json | jq .price",
)
def read(
    session: CommandRun,
    name: SourceName,
    columns: Columns = None,
    filter: FilterOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    timestamp: Timestamp = None,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
) -> None:
    """Print the rows of a table, or write them to a file. Rows are streamed: the table may be larger than memory."""
    scan = _scan(session.source(name), columns, filter, snapshot, tag, timestamp)
    _write(session, scan, format, output, limit)


@command(
    app,
    "show",
    "tablestore table show shop.orders",
    "tablestore table show shop.orders snapshots --columns snapshot_id,commit_kind",
    "tablestore table show 'shop.orders$files' --json",
)
def show(
    session: CommandRun,
    name: SourceName,
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYSTEM]", help="Name of the system table; left out: list them.", autocompletion=wordcompletion.system_table
        ),
    ] = None,
    columns: Columns = None,
    filter: FilterOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
    wide: Annotated[bool, typer.Option("--wide", help="All columns and whole ids on a terminal too.")] = False,
) -> None:
    """Print a system table: what a table is made of, as rows."""
    # Not for help and completion: these would load the tables too.
    from tablestore.table.system.systemkinds import SEPARATOR, SYSTEM_TABLES

    if system is None and SEPARATOR not in name.rpartition("/")[2]:
        records = [{"name": system_name} for system_name in SYSTEM_TABLES]
        session.table(name)
        session.out.listing("system_tables", [OutputColumn("name", "system table")], records, empty="")
        return
    source = session.source(name if system is None else f"{name}{SEPARATOR}{system}")
    drawn = session.out.is_terminal and output is None and format in (None, RowFormat.TABLE)
    whole = wide or columns is not None or not drawn
    chosen = None if whole else _NARROW.get(name.rpartition(SEPARATOR)[2] if system is None else system)
    scan = _scan(source, ",".join(chosen) if chosen else columns, filter, snapshot, tag)
    _write(session, scan, format, output, limit, short=not whole)
    if chosen:
        session.out.note("some columns, and the first letters of ids; --wide shows all")


@command(app, "count", "tablestore table count shop.orders --filter \"day = '2026-01-31'\"")
def count(
    session: CommandRun,
    name: TableName,
    filter: FilterOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    timestamp: Timestamp = None,
) -> None:
    """Count rows, after merging."""
    scan = _scan(session.table(name), None, filter, snapshot, tag, timestamp)
    rows = scan.count()
    session.out.done({"rows": rows, "snapshot_id": scan.snapshot_id}, f"{rows:,}" if session.out.is_terminal else str(rows))


@command(app, "explain", 'tablestore table explain shop.orders --filter "id = 7"')
def explain(
    session: CommandRun,
    name: TableName,
    columns: Columns = None,
    filter: FilterOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    timestamp: Timestamp = None,
) -> None:
    """Say what a read would do: manifests, files and splits, read and left out."""
    scan = _scan(session.table(name), columns, filter, snapshot, tag, timestamp)
    read = {"snapshot_id": scan.snapshot_id, "columns": list(scan.columns), "filter": filter}
    if (view := scan.context.view) is not None:
        # Which files a filter leaves tells of rows in them that are hidden.
        session.out.done({**read, "rules": {"masked": sorted(view.masks)}}, scan.explain())
        return
    plan = scan.plan
    document = {
        **read,
        "manifests": {"read": plan.manifests_read, "total": plan.manifests_total},
        "files": {"read": plan.file_count, "total": plan.files_total},
        "merged_files": plan.merged_files,
        "bytes": plan.size_bytes,
        "splits": len(plan.splits),
    }
    session.out.done(document, scan.explain())


def _write(
    session: CommandRun, scan: Any, row_format: RowFormat | None, output: Path | None, limit: int | None, *, short: bool = False
) -> None:
    # Not for help and completion: it loads Arrow.
    from tablestore.cli.rows.rowsink import write_rows

    rows = write_rows(session.out, scan.schema, scan.to_batches(), row_format=row_format, output=output, limit=limit, short=short)
    say_written(session, rows, "rows", output)


def say_written(session: CommandRun, rows: int, what: str, output: Path | None) -> None:
    """Say how many rows a file has got; nothing where they were printed."""
    if output is not None and str(output) != "-":
        session.out.done({"rows": rows, "output": str(output)}, f"Wrote {rows:,} {what} to {output}.")


def _scan(
    source: Any, columns: str | None, filter: str | None, snapshot: int | None, tag: str | None, timestamp: str | None = None
) -> Any:
    moment = {"snapshot_id": snapshot, "tag": tag, "timestamp": parse_time(timestamp) if timestamp is not None else None}
    names = split_names(columns) if columns is not None else None
    return source.scan(names, filter, **{key: value for key, value in moment.items() if value is not None})
