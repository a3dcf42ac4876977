"""Loading files of rows into a table: what ``tablestore import`` does.

Either each batch is written as it is read, with a commit at the end or after so many rows, or the rows replace the partitions that
they fall into, in one commit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, Refused, is_path
from tablestore.cli.rows.filenames import find_files
from tablestore.cli.rows.jsonlines import MissingValues
from tablestore.cli.rows.rowformat import ReadSettings, looks_like_rows
from tablestore.cli.rows.rowsource import RowSource, open_rows, schema_of_file
from tablestore.cli.text.render import Bar
from tablestore.format.writecounts import NOTHING_DONE, WriteCounts, together
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.names import did_you_mean
from tablestore.table.write.writer import lost_columns
from tablestore.types.rowkind import ROW_KIND_COLUMN

Way: TypeAlias = Literal["upsert", "append", "overwrite"]


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """The parts of a table to be made besides the columns of the first file."""

    primary_key: Sequence[str]
    partition_by: Sequence[str]
    options: Mapping[str, str]


@dataclass(frozen=True)
class Load:
    """The files that go into a table, and the way in which they do. ``way`` None: what the table does by itself."""

    table: str
    files: Sequence[str]
    settings: ReadSettings
    create: NewTable | None
    way: Way | None
    missing_columns: MissingColumns
    commit_every: int | None


@dataclass(kw_only=True)
class Loaded:
    """The progress of a load."""

    rows: int = 0
    committed_rows: int = 0
    snapshot_ids: list[int]
    counts: WriteCounts = NOTHING_DONE

    def committed(self, snapshot: ts.Snapshot | None) -> None:
        """All rows so far are committed."""
        self.committed_rows = self.rows
        if snapshot is not None:
            self.snapshot_ids.append(snapshot.id)
            self.counts = together((self.counts, snapshot.counts))


def load(session: CommandRun, request: Load, bar: Bar, *, yes: bool) -> tuple[Mapping[str, Any], str]:
    """Load, and return what landed, as a document and a sentence; of a load that fails it is said. ``yes``: an overwrite is not
    asked about."""
    named = request.settings.file_format is None
    files = find_files(request.files, looks_like_rows if named else lambda path: True)
    table = _opened(session, request.table, files[0]) if request.create is None else _created(session, request, files[0])
    _check_way(table, request.way)
    loaded = Loaded(snapshot_ids=[])
    try:
        if request.way == "overwrite":
            _confirm_overwrite(session, table, files, yes)
            _overwrite(bar, table, files, request.settings, loaded)
        else:
            _write(bar, table, files, request, loaded)
    except BaseException:
        if loaded.snapshot_ids:
            session.out.note(
                f"{loaded.committed_rows:,} rows were committed before that (snapshots {loaded.snapshot_ids[0]} to "
                f"{loaded.snapshot_ids[-1]}); rows after them were not"
            )
        raise
    document = {
        "table": table.name,
        "rows": loaded.rows,
        "files": list(files),
        "snapshots": loaded.snapshot_ids,
        **asdict(loaded.counts),
        "seconds": session.seconds,
    }
    commits = f"snapshot {loaded.snapshot_ids[-1]}" if loaded.snapshot_ids else "no snapshot: there were no rows"
    return document, f"Imported {loaded.rows:,} rows into {table.name} ({commits}{session.took()})."


def _opened(session: CommandRun, name: str, first: str) -> ts.Table:
    try:
        return session.table(name)
    except ts.NotFoundError as error:
        if is_path(name) or session.catalog().table_exists(name):
            raise
        raise ts.NotFoundError(
            f"{error}; --create makes it with the columns of {first}, and --primary-key names its key", kind=error.kind
        ) from error


def _created(session: CommandRun, request: Load, first: str) -> ts.Table:
    assert request.create is not None, "it is only created where that was asked for"
    if first == "-":
        raise typer.BadParameter(
            "standard input cannot be read twice: create the table with 'table create'", param_hint="'--create'"
        )
    session.catalog().create_table(
        request.table,
        schema=schema_of_file(first, request.settings),
        primary_key=request.create.primary_key,
        partition_by=request.create.partition_by,
        options=request.create.options,
        ignore_if_exists=True,
    )
    return session.table(request.table)


def _check_way(table: ts.Table, way: Way | None) -> None:
    if way == "append" and table.primary_key:
        raise Refused(
            f"table {table.name} has the primary key {', '.join(table.primary_key)}: rows of a known key replace the old ones; "
            "leave out --append"
        )
    if way == "upsert" and not table.primary_key:
        raise Refused(f"table {table.name} has no primary key to upsert by: leave out --upsert")


def _confirm_overwrite(session: CommandRun, table: ts.Table, files: Sequence[str], yes: bool) -> None:
    latest = table.context.shown_latest()
    rows = latest.total_record_count if latest else 0
    replaced_text = (
        f"the partitions ({', '.join(table.partition_by)}) that the rows fall into" if table.partition_by else "all rows"
    )
    stored = "an unknown number of" if rows is None else f"{rows:,}"
    sentence = f"Replaces {replaced_text} of {table.name}, which stores {stored} record(s) now, by the rows of {', '.join(files)}."
    session.confirm(yes, sentence, {"table": table.name, "replaces": replaced_text, "records": rows, "files": list(files)})


def _write(bar: Bar, table: ts.Table, files: Sequence[str], request: Load, loaded: Loaded) -> None:
    every = request.commit_every
    with table.new_writer() as writer:
        lost_of = None if request.missing_columns is MissingColumns.NULL else partial(lost_columns, table.context)
        for batch in _batches(bar, files, request.settings, table.schema, loaded, lost_of):
            for piece in _pieces(batch, every, loaded.rows - loaded.committed_rows):
                writer.write(piece, missing_columns=request.missing_columns)
                loaded.rows += piece.num_rows
                if every is not None and loaded.rows - loaded.committed_rows >= every:
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


def _overwrite(bar: Bar, table: ts.Table, files: Sequence[str], settings: ReadSettings, loaded: Loaded) -> None:
    stream = _batches(bar, files, settings, table.schema, loaded)
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


def _chained(first: pa.RecordBatch, following: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from following


def _batches(
    bar: Bar,
    files: Sequence[str],
    settings: ReadSettings,
    target: pa.Schema,
    loaded: Loaded,
    lost_of: MissingValues | None = None,
) -> Iterator[pa.RecordBatch]:
    """All rows of all files, with a bar for each file, and one for what is to be done behind the last row."""
    for path in files:
        with open_rows(path, settings, target=target, lost=lost_of) as source:
            bar.begin(path, source.size)
            _check_columns(path, source.schema.names, target.names)
            for batch in source:
                yield batch
                _show(bar, source, loaded)
    bar.begin(f"committing {loaded.rows:,} rows", None)


def _check_columns(path: str, names: Sequence[str], table_names: Sequence[str]) -> None:
    for name in names:
        if name not in table_names and name != ROW_KIND_COLUMN:
            raise ts.InvalidInputError(
                f"{path} has a column {name!r} that the table does not have (columns: {', '.join(table_names)})"
                f"{did_you_mean(name, table_names)}; choose with --columns, or add it: tablestore table alter add-column",
                kind="unknown-column",
            )


def _show(bar: Bar, source: RowSource, loaded: Loaded) -> None:
    bar.reach(source.position(), f"{source.name}  {loaded.rows:,} rows")
