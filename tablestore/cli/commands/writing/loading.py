"""``tablestore import``: files of rows into a table, streamed, in one commit or several."""

from pathlib import Path
from typing import Annotated

import typer

from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command, parse_pairs
from tablestore.cli.commands.tables import Options, PartitionBy, PrimaryKey
from tablestore.cli.rows.rowformat import FileFormat, ReadSettings
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.names import split_names

app = typer.Typer()

MissingOption = Annotated[
    MissingColumns | None,
    typer.Option(
        "--missing-columns", help="What rows do that lack columns: be refused (the default), write NULL, or keep what is stored."
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Files, folders, patterns such as 'in/*.csv', or URLs; - is standard input."),
]


@command(
    app,
    "import",
    "tablestore import shop.orders january.parquet february.parquet",
    "tablestore import shop.orders exports/ --commit-every 1000000",
    "tablestore import shop.orders orders.csv.gz --create --primary-key id -o bucket=4",
    "producer | tablestore import shop.visits - --file-format json --commit-every 1000000",
)
def import_files(
    session: CommandRun,
    name: TableName,
    files: Files,
    upsert: Annotated[bool, typer.Option("--upsert", help="Replace rows of equal key (what keyed tables do).")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add rows (what tables without a key do).")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the partitions that the rows fall into.")] = False,
    missing_columns: MissingOption = None,
    commit_every: Annotated[
        int | None, typer.Option("--commit-every", metavar="ROWS", min=1, help="Commit after so many rows; else once, at the end.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the table with the columns of the first file.")] = False,
    primary_key: PrimaryKey = None,
    partition_by: PartitionBy = None,
    option: Options = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", "-c", metavar="COLUMNS", help="Take only these columns.", autocompletion=wordcompletion.columns),
    ] = None,
    file_format: Annotated[
        FileFormat | None, typer.Option("--file-format", help="What the files are, if their names do not say.")
    ] = None,
    delimiter: Annotated[str | None, typer.Option("--delimiter", metavar="CHAR", help="Between the values of a CSV line.")] = None,
    null: Annotated[str, typer.Option("--null", metavar="TEXT", help="How a CSV file writes NULL.")] = "",
    no_header: Annotated[bool, typer.Option("--no-header", help="The CSV has no header; columns as in the table.")] = False,
    yes: Yes = False,
) -> None:
    """Load Parquet, Arrow, CSV or JSON lines files into a table, in bounded memory.

    Of a folder all files below it are taken whose names say that they hold rows.
    """
    if upsert + append + overwrite > 1:
        raise typer.BadParameter("choose one of --upsert, --append and --overwrite", param_hint="'--upsert'")
    if overwrite and commit_every is not None:
        raise typer.BadParameter("an overwrite is one commit: leave out --commit-every", param_hint="'--commit-every'")
    if overwrite and missing_columns is not None:
        raise typer.BadParameter("an overwrite keeps nothing: leave it out", param_hint="'--missing-columns'")
    if not create and (primary_key or partition_by or option):
        raise typer.BadParameter("keys, partitions and options are for a table to --create", param_hint="'--create'")
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter(f"expected one character, found {delimiter!r}", param_hint="'--delimiter'")
    if Path(name).is_file():
        raise typer.BadParameter(f"expected a table before the files, found the file {name!r}", param_hint="'TABLE'")
    # Shown before what reads rows is loaded: the first thing that one waits for.
    with session.out.progress(f"opening {name}", None) as bar:
        from tablestore.cli.commands.writing.fileload import Load, NewTable, Way, load

        new_table = NewTable(
            primary_key=split_names(primary_key or ""),
            partition_by=split_names(partition_by or ""),
            options=parse_pairs(option or (), "--option"),
        )
        settings = ReadSettings(
            file_format=file_format,
            delimiter=delimiter,
            null=null,
            header=not no_header,
            columns=split_names(columns) if columns is not None else None,
        )
        way: Way | None = "upsert" if upsert else "append" if append else "overwrite" if overwrite else None
        request = Load(
            name,
            files,
            settings,
            create=new_table if create else None,
            way=way,
            missing_columns=missing_columns or MissingColumns.REFUSE,
            commit_every=commit_every,
        )
        document, sentence = load(session, request, bar, yes=yes)
    session.out.done(document, sentence)
