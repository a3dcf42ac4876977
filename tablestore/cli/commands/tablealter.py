"""``tablestore table alter``: columns, options and comments of a table that holds data."""

from typing import TYPE_CHECKING, Annotated

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command, parse_pairs, parse_partition
from tablestore.types.userschema.schematext import parse_column

if TYPE_CHECKING:
    from tablestore.types.evolution.schemachanges import SchemaChange

app = typer.Typer(no_args_is_help=True, help="Alter columns, options and comments. Rows are not rewritten.")
table_app = typer.Typer()

ColumnArgument = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN",
        help="Name of the column; a dot leads inside: address.city, items.element.",
        autocompletion=wordcompletion.column,
    ),
]
First = Annotated[bool, typer.Option("--first", help="Before all others.")]
Last = Annotated[bool, typer.Option("--last", help="Behind all others.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="COLUMN", help="Behind this column.", autocompletion=wordcompletion.column)
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="COLUMN", help="In front of this column.", autocompletion=wordcompletion.column)
]


@command(app, "add-column", 'tablestore table alter add-column shop.orders "note STRING" --after price')
def add_column(
    session: CommandRun,
    name: TableName,
    column: Annotated[
        list[str], typer.Argument(metavar="COLUMN", help='Name and type, such as "note STRING". In a row: "address.zip INT".')
    ],
    comment: Annotated[str | None, typer.Option("--comment", help="What the column is for.")] = None,
    default: Annotated[str | None, typer.Option("--default", help="What writers put in place of NULL from now on.")] = None,
    first: First = False,
    after: After = None,
    before: Before = None,
) -> None:
    """Add a column. Rows that are there have NULL in it."""
    # With or without quotes around it.
    text = " ".join(column).strip()
    path, _, kind = text.partition(" ")
    field = None if "." in path and "`" not in path else parse_column(text)
    added = ts.AddColumn(
        # As a path of one name: a dot between backticks belongs to the name.
        path if field is None else (field.name,),
        kind if field is None else field.type,
        comment=comment if comment is not None or field is None else field.description,
        default=default,
        first=first,
        after=after,
        before=before,
    )
    _alter(session, name, [added], f"Added {path}")


@command(app, "drop-column", "tablestore table alter drop-column shop.orders note --yes")
def drop_column(session: CommandRun, name: TableName, column: ColumnArgument, yes: Yes = False) -> None:
    """Drop a column. Time travel still shows it."""
    if not yes:
        from tablestore.types.evolution.evolve import evolve

        # A plan for a column that is not there, or that is a key, would be none.
        table = session.table(name)
        evolve(table.table_schema, ts.DropColumn(column), has_data=True, time_millis=table.table_schema.time_millis)
    session.confirm(yes, f"Drops the column {column} of {name}; its values are gone with the next rewrite.", {"column": column})
    _alter(session, name, [ts.DropColumn(column)], f"Dropped {column}")


@command(app, "rename-column", "tablestore table alter rename-column shop.orders price net_price")
def rename_column(
    session: CommandRun,
    name: TableName,
    column: ColumnArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its new name.")],
) -> None:
    """Rename a column. Keys and options that name it follow."""
    _alter(session, name, [ts.RenameColumn(column, to=new_name)], f"Renamed {column} to {new_name}")


@command(app, "move-column", "tablestore table alter move-column shop.orders note --after id")
def move_column(
    session: CommandRun,
    name: TableName,
    column: ColumnArgument,
    first: First = False,
    last: Last = False,
    after: After = None,
    before: Before = None,
) -> None:
    """Move a column to another place."""
    _alter(session, name, [ts.MoveColumn(column, first=first, last=last, after=after, before=before)], f"Moved {column}")


@command(app, "change-type", "tablestore table alter change-type shop.orders quantity BIGINT")
def change_type(
    session: CommandRun,
    name: TableName,
    column: ColumnArgument,
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="A wider type, such as BIGINT or DECIMAL(12, 2).")],
) -> None:
    """Widen the type of a column."""
    _alter(session, name, [ts.ChangeType(column, kind)], f"{column} is {kind} now")


@command(
    app, "set-null", "tablestore table alter set-null shop.orders price", "tablestore table alter set-null shop.orders price --not"
)
def set_null(
    session: CommandRun,
    name: TableName,
    column: ColumnArgument,
    no: Annotated[bool, typer.Option("--not", help="Make it NOT NULL: only while the table is empty.")] = False,
) -> None:
    """Let a column take NULL."""
    sentence = f"{column} is NOT NULL now" if no else f"{column} takes NULL now"
    _alter(session, name, [ts.ChangeNullability(column, nullable=not no)], sentence)


@command(app, "set-default", "tablestore table alter set-default shop.orders price 0.0")
def set_default(
    session: CommandRun,
    name: TableName,
    column: ColumnArgument,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="What they put there; left out: nothing.")] = None,
) -> None:
    """Say what writers put in place of NULL from now on."""
    _alter(session, name, [ts.ChangeDefault(column, value)], f"The default of {column} is {'none' if value is None else value} now")


@command(app, "add-check", 'tablestore table alter add-check shop.orders positive "price > 0"')
def add_check(
    session: CommandRun,
    name: TableName,
    constraint: Annotated[str, typer.Argument(metavar="CONSTRAINT", help="The name of the constraint.")],
    condition: Annotated[
        str, typer.Argument(metavar="CONDITION", help="What holds for every row.", autocompletion=wordcompletion.condition)
    ],
) -> None:
    """Add a condition that every row holds. The rows that are there are looked at first."""
    _alter(session, name, [ts.AddCheck(constraint, condition)], f"Every row holds {constraint} now: {condition}")


@command(app, "drop-check", "tablestore table alter drop-check shop.orders positive")
def drop_check(
    session: CommandRun,
    name: TableName,
    constraint: Annotated[str, typer.Argument(metavar="CONSTRAINT", help="The name of the constraint.")],
) -> None:
    """Drop a condition that every row holds."""
    _alter(session, name, [ts.DropCheck(constraint)], f"Dropped {constraint}")


@command(
    app,
    "comment",
    'tablestore table alter comment shop.orders "orders since 2020"',
    'tablestore table alter comment shop.orders "without tax" --column price',
)
def comment(
    session: CommandRun,
    name: TableName,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The comment; left out: none.")] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="The comment of this column.", autocompletion=wordcompletion.column)
    ] = None,
) -> None:
    """Say what a table or a column is for."""
    change = ts.SetTableComment(text) if column is None else ts.ChangeComment(column, text)
    _alter(session, name, [change], "Changed the comment")


@command(
    app,
    "set",
    "tablestore table alter set shop.orders snapshot.num-retained.max=100 write-only=true",
    "tablestore table alter set shop.visits change-tracking=false --partition day=2026-01-31",
)
def set_options(
    session: CommandRun,
    name: TableName,
    options: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="Options of the table.", autocompletion=wordcompletion.option)
    ],
    partition: Annotated[
        str | None,
        typer.Option("--partition", "-p", metavar="COLUMN=VALUE,…", help="Of this partition only: goes for change-tracking."),
    ] = None,
) -> None:
    """Set options."""
    pairs = parse_pairs(options, "KEY=VALUE")
    changed = ", ".join(f"{key}={value}" for key, value in pairs.items())
    where = None if partition is None else parse_partition(session.table(name).table_schema, partition)
    _alter(session, name, [ts.SetOption(key, value, partition=where) for key, value in pairs.items()], f"Set {changed}")


@command(app, "unset", "tablestore table alter unset shop.orders write-only")
def unset_options(
    session: CommandRun,
    name: TableName,
    keys: Annotated[
        list[str], typer.Argument(metavar="KEY...", help="Options of the table.", autocompletion=wordcompletion.set_option)
    ],
) -> None:
    """Set options back to their defaults."""
    _alter(session, name, [ts.RemoveOption(key) for key in keys], f"Unset {', '.join(keys)}")


@command(table_app, "rescale", "tablestore table rescale shop.orders 8 --yes")
def rescale(
    session: CommandRun,
    name: TableName,
    buckets: Annotated[int, typer.Argument(metavar="BUCKETS", min=1, help="How many buckets a partition has from now on.")],
    yes: Yes = False,
) -> None:
    """Change the number of buckets: every partition is written again. Writers that are at work are refused meanwhile."""
    table = session.table(name)
    before = table.options().get("bucket")
    plan = {"table": table.name, "buckets": buckets, "buckets_before": before}
    session.confirm(yes, f"Writes all rows of {table.name} again, into {buckets} bucket(s) instead of {before}.", plan)
    with session.out.progress(f"rescaling {table.name}", 1) as bar:
        table.rescale(buckets, progress=bar.show)
    session.out.done({"table": table.name, "buckets": buckets}, f"{table.name} has {buckets} bucket(s) now.")


def _alter(session: CommandRun, name: str, changes: "list[SchemaChange]", sentence: str) -> None:
    table = session.table(name).alter(changes)
    session.out.done({"table": table.name, "schema_id": table.table_schema.id}, f"{sentence} (schema {table.table_schema.id}).")
