"""``tablestore import``: files of rows into a table, streamed, in one commit or several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import Refused, Session, TableName, Yes, command, is_path, parse_pairs
from tablestore.cli.commands.tables import Options, PartitionBy, PrimaryKey
from tablestore.cli.rows.filenames import find_files
from tablestore.cli.rows.rowsource import FileFormat, ReadSettings, RowSource, looks_like_rows, open_rows, schema_of_file
from tablestore.cli.text.render import Bar
from tablestore.lsm.write.missingcolumns import MissingColumns
from tablestore.names import did_you_mean, split_names
from tablestore.types.rowkind import ROW_KIND_COLUMN

app = typer.Typer()

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Files, folders, patterns such as 'in/*.csv', or URLs; - is standard input."),
]


@dataclass(kw_only=True)
class Loaded:
    """How far an import has come."""

    rows: int = 0
    committed_rows: int = 0
    snapshot_ids: list[int]

    def committed(self, snapshot: ts.Snapshot | None) -> None:
        """All rows so far are committed."""
        self.committed_rows = self.rows
        if snapshot is not None:
            self.snapshot_ids.append(snapshot.id)


@command(
    app,
    "import",
    "tablestore import shop.orders january.parquet february.parquet",
    "tablestore import shop.orders exports/ --commit-every 1000000",
    "tablestore import shop.orders orders.csv.gz --create --primary-key id -o bucket=4",
    "producer | tablestore import shop.visits - --file-format json --commit-every 1000000",
)
def import_files(
    session: Session,
    name: TableName,
    files: Files,
    upsert: Annotated[bool, typer.Option("--upsert", help="Replace rows of equal key (what keyed tables do).")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add rows (what tables without a key do).")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the partitions that the rows fall into.")] = False,
    missing_columns: Annotated[
        MissingColumns | None,
        typer.Option("--missing-columns", help="Upsert rows that lack columns: write NULL, or keep what is stored."),
    ] = None,
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
    settings = ReadSettings(
        file_format=file_format,
        delimiter=delimiter,
        null=null,
        header=not no_header,
        columns=split_names(columns) if columns is not None else None,
    )
    if Path(name).is_file():
        raise typer.BadParameter(f"expected a table before the files, found the file {name!r}", param_hint="'TABLE'")
    files = find_files(files, looks_like_rows if file_format is None else lambda path: True)
    if create:
        table = _created(session, name, files[0], settings, primary_key, partition_by, option)
    else:
        table = _opened(session, name, files[0])
    _check_mode(table, upsert=upsert, append=append)
    loaded = Loaded(snapshot_ids=[])
    try:
        if overwrite:
            _confirm_overwrite(session, table, files, yes)
            _overwrite(session, table, files, settings, loaded)
        else:
            _write(session, table, files, settings, commit_every, loaded, missing_columns or MissingColumns.REFUSE)
    except BaseException:
        if loaded.snapshot_ids:
            session.out.note(
                f"{loaded.committed_rows:,} rows were committed before that (snapshots {loaded.snapshot_ids[0]} to "
                f"{loaded.snapshot_ids[-1]}); rows after them were not"
            )
        raise
    document = {"table": table.name, "rows": loaded.rows, "files": list(files), "snapshots": loaded.snapshot_ids}
    commits = f"snapshot {loaded.snapshot_ids[-1]}" if loaded.snapshot_ids else "no snapshot: there were no rows"
    session.out.done(document, f"Imported {loaded.rows:,} rows into {table.name} ({commits}).")


def _opened(session: Session, name: str, first: str) -> ts.Table:
    try:
        return session.table(name)
    except ts.NotFoundError as error:
        if is_path(name) or session.catalog().table_exists(name):
            raise
        raise ts.NotFoundError(
            f"{error}; --create makes it with the columns of {first}, and --primary-key names its key", kind=error.kind
        ) from error


def _created(
    session: Session,
    name: str,
    first: str,
    settings: ReadSettings,
    primary_key: str | None,
    partition_by: str | None,
    option: Sequence[str] | None,
) -> ts.Table:
    if first == "-":
        raise typer.BadParameter(
            "standard input cannot be read twice: create the table with 'table create'", param_hint="'--create'"
        )
    schema = schema_of_file(first, settings)
    session.catalog().create_table(
        name,
        schema=schema,
        primary_key=split_names(primary_key or ""),
        partition_by=split_names(partition_by or ""),
        options=parse_pairs(option or (), "--option"),
        ignore_if_exists=True,
    )
    return session.table(name)


def _check_mode(table: ts.Table, *, upsert: bool, append: bool) -> None:
    if append and table.primary_key:
        raise Refused(
            f"table {table.name} has the primary key {', '.join(table.primary_key)}: rows of a known key replace the old ones; "
            "leave out --append"
        )
    if upsert and not table.primary_key:
        raise Refused(f"table {table.name} has no primary key to upsert by: leave out --upsert")


def _confirm_overwrite(session: Session, table: ts.Table, files: Sequence[str], yes: bool) -> None:
    latest = table.context.snapshots.latest()
    rows = latest.total_record_count if latest else 0
    what = f"the partitions ({', '.join(table.partition_by)}) that the rows fall into" if table.partition_by else "all rows"
    sentence = f"Replaces {what} of {table.name}, which stores {rows:,} record(s) now, by the rows of {', '.join(files)}."
    session.confirm(yes, sentence, {"table": table.name, "replaces": what, "records": rows, "files": list(files)})


def _write(
    session: Session,
    table: ts.Table,
    files: Sequence[str],
    settings: ReadSettings,
    commit_every: int | None,
    loaded: Loaded,
    missing_columns: MissingColumns,
) -> None:
    with table.new_writer() as writer:
        for batch in _batches(session, files, settings, table.schema, loaded):
            for piece in _pieces(batch, commit_every, loaded.rows - loaded.committed_rows):
                writer.write(piece, missing_columns=missing_columns)
                loaded.rows += piece.num_rows
                if commit_every is not None and loaded.rows - loaded.committed_rows >= commit_every:
                    loaded.committed(writer.commit())
        if loaded.rows > loaded.committed_rows:
            loaded.committed(writer.commit())


def _pieces(batch: pa.RecordBatch, commit_every: int | None, pending: int) -> Iterator[pa.RecordBatch]:
    """The batch, cut where a commit falls."""
    if commit_every is None:
        yield batch
        return
    start = 0
    while start < batch.num_rows:
        piece = batch.slice(start, commit_every - pending)
        yield piece
        start += piece.num_rows
        pending = (pending + piece.num_rows) % commit_every


def _overwrite(session: Session, table: ts.Table, files: Sequence[str], settings: ReadSettings, loaded: Loaded) -> None:
    stream = _batches(session, files, settings, table.schema, loaded)
    first = next(stream, None)
    if first is None:
        raise ts.InvalidInputError(
            f"there are no rows in {', '.join(files)}; to empty {table.name}, delete its rows", kind="no-rows"
        )

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in _chained(first, stream):
            loaded.rows += batch.num_rows
            yield batch.cast(first.schema) if batch.schema != first.schema else batch

    loaded.committed(table.overwrite(pa.RecordBatchReader.from_batches(first.schema, rows())))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _batches(
    session: Session, files: Sequence[str], settings: ReadSettings, target: pa.Schema, loaded: Loaded
) -> Iterator[pa.RecordBatch]:
    """All rows of all files, with a bar for each file."""
    for path in files:
        with open_rows(path, settings, target=target) as source, session.out.progress(path, source.size) as bar:
            _check_columns(path, source.schema.names, target.names)
            for batch in source:
                yield batch
                _show(bar, source, loaded)


def _check_columns(path: str, found: Sequence[str], known: Sequence[str]) -> None:
    for name in found:
        if name not in known and name != ROW_KIND_COLUMN:
            raise ts.InvalidInputError(
                f"{path} has a column {name!r} that the table does not have (columns: {', '.join(known)})"
                f"{did_you_mean(name, known)}; choose with --columns, or add it: tablestore table alter add-column",
                kind="unknown-column",
            )


def _show(bar: Bar, source: RowSource, loaded: Loaded) -> None:
    bar.reach(source.position(), f"{source.name}  {loaded.rows:,} rows")
