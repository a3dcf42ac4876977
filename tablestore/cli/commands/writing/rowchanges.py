"""``tablestore insert``, ``update`` and ``delete``: a few rows of a table, from the command line."""

from dataclasses import asdict
from functools import partial
from io import BytesIO
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command, parse_pairs
from tablestore.cli.commands.writing.loading import MissingOption
from tablestore.format.writecounts import NOTHING_DONE
from tablestore.lsm.missingchoice import MissingColumns

app = typer.Typer()

Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="SQL",
        help='The rows for which this holds, such as "price > 10".',
        autocompletion=wordcompletion.condition,
    ),
]
All = Annotated[bool, typer.Option("--all", help="All rows of the table.")]


@command(
    app,
    "insert",
    """tablestore insert shop.orders '{"id": 7, "item": "ink", "price": 9.00}'""",
    """tablestore insert shop.visits '{"page": "a"}' '{"page": "b", "day": "2026-01-31"}' --json""",
)
def insert(
    session: CommandRun,
    name: TableName,
    rows: Annotated[list[str], typer.Argument(metavar="JSON...", help="Rows as JSON objects, each a value by column.")],
    missing_columns: MissingOption = None,
) -> None:
    """Insert rows given as JSON objects; in a table with a primary key they replace those of their key.

    Files, also of JSON lines from standard input, are loaded by `tablestore import`.
    """
    import pyarrow as pa

    from tablestore.cli.rows.jsonlines import json_batches
    from tablestore.table.write.writer import lost_columns

    table = session.table(name)
    text = "".join(row.replace("\n", " ") + "\n" for row in rows)
    choice = missing_columns or MissingColumns.REFUSE
    lost_of = None if choice is MissingColumns.NULL else partial(lost_columns, table.context)
    schema, batches = json_batches(BytesIO(text.encode()), "the rows", table.schema, lost=lost_of)
    row_table = pa.Table.from_batches(batches, schema=schema)
    snapshot = table.upsert(row_table, missing_columns=choice) if table.primary_key else table.append(row_table)
    _say(session, table, snapshot, f"Inserted {row_table.num_rows:,} row(s) into {table.name}", row_table.num_rows)


@command(
    app,
    "update",
    """tablestore update shop.orders --set "price=price * 2" --where "upper(item) = 'INK'" --yes""",
    """tablestore update shop.orders --set "item='pen'" --set "seen=DATE '2026-01-31'" --where "id = 7" --yes""",
)
def update(
    session: CommandRun,
    name: TableName,
    set: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="COLUMN=SQL",
            help="What a column becomes; a text between quotes. May be repeated.",
            autocompletion=wordcompletion.setting,
        ),
    ],
    where: Where = None,
    every: All = False,
    yes: Yes = False,
) -> None:
    """Set columns of the rows that fulfil a condition."""
    table = session.table(name)
    condition = _condition(where, every)
    assignments = parse_pairs(set, "--set")
    count = table.scan(filter=condition).count()
    sets = ", ".join(f"{column} = {value}" for column, value in assignments.items())
    plan = {"table": table.name, "rows": count, "set": assignments, "where": condition}
    session.confirm(yes, f"Sets {sets} in {_rows(count, table, condition)}.", plan)
    snapshot = table.update(assignments, condition)
    changed = _affected(snapshot, count)
    _say(session, table, snapshot, f"Updated {changed:,} row(s) of {table.name}", changed)


@command(
    app,
    "delete",
    'tablestore delete shop.orders --where "price < 2"',
    "tablestore delete shop.orders --where \"length(item) = 0 OR day < '2026-01-01'\" --yes --json",
)
def delete(session: CommandRun, name: TableName, where: Where = None, every: All = False, yes: Yes = False) -> None:
    """Delete the rows that fulfil a condition."""
    table = session.table(name)
    condition = _condition(where, every)
    count = table.scan(filter=condition).count()
    session.confirm(yes, f"Deletes {_rows(count, table, condition)}.", {"table": table.name, "rows": count, "where": condition})
    snapshot = table.delete("TRUE" if condition is None else condition)
    changed = _affected(snapshot, count)
    _say(session, table, snapshot, f"Deleted {changed:,} row(s) of {table.name}", changed)


def _condition(where: str | None, every: bool) -> str | None:
    if (where is None) is not every:
        raise typer.BadParameter("say which rows are meant: --where SQL, or --all of them", param_hint="'--where'")
    return where


def _rows(count: int, table: "ts.Table", condition: str | None) -> str:
    return f"{count:,} row(s) of {table.name}" + ("" if condition is None else f", those where {condition}")


def _affected(snapshot: "ts.Snapshot | None", counted: int) -> int:
    """The rows that a commit changed: those that were ``counted`` before it, where it does not know."""
    if snapshot is None:
        return 0
    affected = snapshot.counts.rows_affected
    return counted if affected is None else affected


def _say(session: CommandRun, table: "ts.Table", snapshot: "ts.Snapshot | None", sentence: str, rows: int) -> None:
    counts = NOTHING_DONE if snapshot is None else snapshot.counts
    landed = None if snapshot is None else snapshot.id
    document = {"table": table.name, "rows": rows, "snapshot": landed, **asdict(counts), "seconds": session.seconds}
    outcome = "no snapshot: nothing changed" if snapshot is None else f"snapshot {snapshot.id}"
    session.out.done(document, f"{sentence} ({outcome}{session.took()}).")
