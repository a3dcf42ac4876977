"""Rows on their way out: a stream of batches becomes a table, JSON lines, CSV or Parquet, in bounded memory.

    table     terminal: a drawn table; piped: tab-separated lines
    json      one object a line
    csv       with a header; NULL is empty, an empty text is ""
    parquet   to a file, or to a pipe

With ``--output`` the file appears under its name when it is whole; what breaks off leaves nothing behind.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from tablestore.cli.rows.rowformat import RowFormat
from tablestore.cli.rows.rowtext import (
    csv_schema,
    escape_controls,
    plain_text,
    slices,
    to_csv_columns,
    to_json_lines,
    to_plain_lines,
)
from tablestore.cli.text.render import Output, short_ids
from tablestore.cli.text.safetext import safe
from tablestore.errors import InvalidInputError

TERMINAL_ROWS = 100


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """At most ``limit`` rows; what is behind is not read."""
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        if left > 0:
            yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def write_rows(
    out: Output,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    row_format: RowFormat | None = None,
    output: Path | None = None,
    limit: int | None = None,
    draw: bool = True,
    short: bool = False,
) -> int:
    """Write the rows and return their number. Without a format: JSON under ``--json``, else a table.

    ``draw``: a table may be drawn on a terminal, which takes its first rows together; False writes row by row as they come.
    ``short``: it has the first letters of ids.
    """
    chosen = row_format or (RowFormat.JSON if out.as_json else _by_name(output) or RowFormat.TABLE)
    if draw and chosen is RowFormat.TABLE and output is None and out.is_terminal:
        return _draw(out, schema, batches, limit, short=short)
    if chosen is RowFormat.PARQUET and output is None and sys.stdout.isatty():
        raise InvalidInputError("Parquet cannot be shown on a terminal: name a file with --output, or pipe it on")
    with _target(output) as stream:
        return _write(chosen, schema, limited(batches, limit), stream)


def _by_name(output: Path | None) -> RowFormat | None:
    suffixes = {".json": RowFormat.JSON, ".jsonl": RowFormat.JSON, ".ndjson": RowFormat.JSON, ".csv": RowFormat.CSV}
    return None if output is None else {**suffixes, ".parquet": RowFormat.PARQUET}.get(output.suffix.lower())


def _write(chosen: RowFormat, schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO) -> int:
    rows = 0
    with _writer(chosen, schema, stream) as write:
        for batch in batches:
            # A batch of Parquet is a row group.
            for piece in (batch,) if chosen is RowFormat.PARQUET else slices(batch):
                write(piece)
            rows += batch.num_rows
    return rows


@contextmanager
def _writer(chosen: RowFormat, schema: pa.Schema, stream: BinaryIO) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """The writer of rows in this format; what it needs is loaded only then."""
    match chosen:
        case RowFormat.TABLE:
            stream.write("\t".join(safe(name) for name in schema.names).encode() + b"\n")
            yield lambda rows: stream.write(to_plain_lines(rows))
        case RowFormat.JSON:
            yield lambda rows: stream.write(to_json_lines(rows))
        case RowFormat.CSV:
            import pyarrow.csv

            options = pyarrow.csv.WriteOptions(quoting_style="needed")
            with pyarrow.csv.CSVWriter(stream, csv_schema(schema), write_options=options) as writer:
                yield lambda rows: writer.write_batch(to_csv_columns(rows))
        case RowFormat.PARQUET:
            from pyarrow.parquet import ParquetWriter

            with ParquetWriter(stream, schema, compression="zstd") as writer:
                yield writer.write_batch


def _draw(out: Output, schema: pa.Schema, batches: Iterable[pa.RecordBatch], limit: int | None, *, short: bool) -> int:
    """The first rows as a table on a terminal; how many is said when there are more."""
    from rich.table import Table as RichTable
    from rich.text import Text

    row_limit = TERMINAL_ROWS if limit is None else limit
    first_batches = list(limited(batches, row_limit + 1 if limit is None else row_limit))
    rows = pa.Table.from_batches(first_batches, schema=schema)
    shown = rows.slice(0, row_limit).combine_chunks()
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    for field in schema:
        right = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(safe(field.name)), justify="right" if right else "left", overflow="fold")
    # At most a screen or two: these become Python objects, one by one.
    columns = [_cells(shown.column(position)) for position in range(shown.num_columns)]
    for cells in zip(*columns, strict=True):
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(short_ids(cell) if short else cell) for cell in cells))
    out.show_long(table)
    if rows.num_rows > row_limit:
        out.note(f"the first {row_limit} rows; --limit N shows more, --format json or a pipe shows all")
    return int(shown.num_rows)


def _cells(column: pa.ChunkedArray) -> list[str | None]:
    return [cell for chunk in column.chunks for cell in escape_controls(plain_text(chunk)).to_pylist()]


@contextmanager
def _target(output: Path | None) -> Iterator[BinaryIO]:
    if output is None or str(output) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if output.exists() and not output.is_file():
        # A pipe or a device is written to, not replaced.
        with output.open("wb") as stream:
            yield stream
        return
    # What a link leads to is replaced, not the link.
    real = output.resolve()
    partial = real.with_name(f".{real.name}.partial-{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(real)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == str(partial):
            # Of the file that was named.
            error.filename = str(output)
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
