"""Rows on their way in: a Parquet, Arrow, CSV or JSON lines file as a stream of batches, in bounded memory.

    with open_rows("orders.csv.gz", target=table.schema) as source:
        for batch in source: ...            source.done, source.size: bytes read so far and in all, for a progress bar

What text cannot say is taken from the target: CSV and JSON values are read as the types of the table's columns, so ``007`` stays
text in a STRING column, and decimals keep their digits. Without a target, the first block decides. Bytes are base64 in both.
The name decides about the format (``.parquet .arrow .csv .tsv .json .jsonl .ndjson``, with ``.gz`` and the like behind it).
"""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tablestore.cli.rows.csvfaults import Fault, fault_in_row, find_fault
from tablestore.cli.rows.jsonlines import BLOCK_BYTES, MissingValues, json_batches
from tablestore.cli.rows.rowformat import COMPRESSIONS, FileFormat, ReadSettings, format_of
from tablestore.errors import FormatError, InvalidInputError, StorageError, TablestoreError
from tablestore.io.opening import open_store
from tablestore.json.jsonrows import from_carrier
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.typestring import type_to_sql

_BATCH_ROWS = 65_536
_FIRST_LINE_BYTES = 65_536


@dataclass(kw_only=True)
class RowSource:
    """An open file: the schema of its rows, the rows, and how far reading has come."""

    name: str
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    size: int | None
    position: Callable[[], int] = field(default=lambda: 0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with _as_ours(self.name):
            yield from self.batches


def schema_of_file(path: str, settings: ReadSettings | None = None) -> pa.Schema:
    """The columns of a file: its own schema, or what its first block of text looks like."""
    with open_rows(path, settings) as source:
        return source.schema


@contextmanager
def open_rows(
    path: str, settings: ReadSettings | None = None, *, target: pa.Schema | None = None, lost: MissingValues | None = None
) -> Iterator[RowSource]:
    """Open a file, URL, or ``-`` for standard input. Raises InvalidInputError for other files.

    ``lost``: as :func:`~tablestore.cli.rows.jsonlines.json_batches` takes it, for lines that lack columns.
    """
    settings = settings or ReadSettings()
    chosen = settings.file_format or format_of(path)
    with ExitStack() as opened:
        with _as_ours(path):
            raw = _open(path, opened)
            counted = _Counted(raw)
            compression = COMPRESSIONS.get(PurePosixPath(path).suffix.lower())
            size = _size(raw)
            if chosen is FileFormat.PARQUET:
                schema, batches = _parquet(raw, path, settings)
                counted.follow = raw.tell
            elif chosen is FileFormat.ARROW:
                schema, batches = _arrow(raw, settings)
                counted.follow = raw.tell
            else:
                stream = pa.CompressedInputStream(pa.PythonFile(counted), compression) if compression else counted
                if chosen is FileFormat.JSON:
                    schema, batches = _json(stream, path, settings, target, lost)
                else:
                    pipe = counted if size is None or path == "-" else None
                    placed = _CsvPlaces(path, compression, settings, chosen, target, pipe)
                    with placed.with_places():
                        schema, batches = _csv(stream, settings, chosen, target, is_pipe=pipe is not None)
                    batches = placed.rows(batches)
        yield RowSource(name=path, schema=schema, batches=batches, size=size, position=counted.position)


def _open(path: str, opened: ExitStack) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    if path.startswith(("s3://", "s3a://")):
        directory, _, name = path.rpartition("/")
        return opened.enter_context(open_store(directory).open_input(name))  # type: ignore[no-any-return]
    if "://" in path:
        # Loaded for URLs only.
        import fsspec

        try:
            return opened.enter_context(fsspec.open(path, "rb"))  # type: ignore[no-any-return]
        except (OSError, ValueError, ImportError) as error:
            # Some errors name the address alone; the reason is in their cause.
            raise StorageError(f"cannot open {path}: {error.__cause__ or error}; check the address", kind="unreachable") from error
    return opened.enter_context(open(path, "rb"))


def _size(raw: BinaryIO) -> int | None:
    try:
        if not raw.seekable():
            return None
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        return size
    except (OSError, ValueError):
        return None


def _parquet(raw: BinaryIO, path: str, settings: ReadSettings) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if not raw.seekable():
        raise InvalidInputError("Parquet is read from its end, which a pipe does not have: name a file")
    file = pq.ParquetFile(raw, pre_buffer=False)
    schema = file.schema_arrow
    names = _chosen(schema.names, settings)
    return pa.schema([schema.field(name) for name in names]), (
        batch.select(names) for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names)
    )


def _arrow(raw: BinaryIO, settings: ReadSettings) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if not raw.seekable():
        stream = pa.ipc.open_stream(raw)
        return stream.schema, (batch.select(_chosen(stream.schema.names, settings)) for batch in stream)
    try:
        file = pa.ipc.open_file(raw)
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        schema = file.schema
    except pa.ArrowInvalid:
        raw.seek(0)
        reader = pa.ipc.open_stream(raw)
        schema, batches = reader.schema, (batch for batch in reader)
    names = _chosen(schema.names, settings)
    return pa.schema([schema.field(name) for name in names]), (batch.select(names) for batch in batches)


def _csv(
    stream: Any, settings: ReadSettings, chosen: FileFormat, target: pa.Schema | None, *, is_pipe: bool
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    read = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, column_names=None if settings.header or target is None else target.names)
    # With one thread Arrow says the row of what it refuses, which is not found again in a pipe.
    read.use_threads = not is_pipe
    read.autogenerate_column_names = not settings.header and target is None
    types = {column.name: _text_type(column.type, column.name) for column in target or ()}
    convert = pyarrow.csv.ConvertOptions(
        column_types={name: kind for name, kind in types.items() if settings.columns is None or name in settings.columns},
        null_values=[settings.null],
        strings_can_be_null=True,
        # An empty text between quotes is a text; so is the mark of NULL.
        quoted_strings_can_be_null=False,
        include_columns=list(settings.columns) if settings.columns else None,
    )
    parse = pyarrow.csv.ParseOptions(delimiter=_delimiter(settings, chosen), newlines_in_values=True)
    reader = pyarrow.csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
    if target is not None and settings.header:
        _check_header(reader.schema.names, target.names)
    return _typed(reader.schema, reader, target, first_row=2 if settings.header else 1)


def _check_header(header: Sequence[str], table_names: Sequence[str]) -> None:
    """True if the first line has names: one that has none of the table's is cut at the wrong places, or is a row."""
    if any(name in table_names for name in header):
        return
    first = header[0] if header else ""
    if len(header) == 1 and (signs := [sign for sign in ";\t|," if sign in first]):
        raise InvalidInputError(f"the header is one name, {first!r}; pass --delimiter {signs[0]!r}", kind="file-format")
    raise InvalidInputError(
        f"the first line names none of the table's columns ({', '.join(table_names)}): it is {', '.join(header)!r}; pass "
        "--no-header if it is a row",
        kind="unknown-column",
    )


def _delimiter(settings: ReadSettings, chosen: FileFormat) -> str:
    return settings.delimiter or ("\t" if chosen is FileFormat.TSV else ",")


@dataclass(frozen=True, slots=True)
class _CsvPlaces:
    """Says line and column of what is wrong in a CSV file; in a ``pipe`` row and column."""

    path: str
    compression: str | None
    settings: ReadSettings
    chosen: FileFormat
    target: pa.Schema | None
    pipe: "_Counted | None"

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches; an error on the way says its place."""
        with self.with_places():
            yield from batches

    @contextmanager
    def with_places(self) -> Iterator[None]:
        """Arrow's errors with their place, if that is found."""
        try:
            yield
        except pa.ArrowInvalid as error:
            if "straddling object" in str(error):
                raise FormatError(
                    f"{self.path} has a row of more than {BLOCK_BYTES >> 20} MB, or a quote that is never closed; such rows are "
                    "loaded from JSON lines or Parquet",
                    kind="file-format",
                ) from error
            if (fault := self._find(str(error))) is None:
                raise
            raise FormatError(fault.sentence(self.path, self._expected(fault.column, str(error))), kind="file-format") from error

    def _find(self, message: str) -> Fault | None:
        delimiter = _delimiter(self.settings, self.chosen)
        header = None if self.settings.header or self.target is None else self.target.names
        if self.pipe is not None:
            names = header or next(csv.reader([self.pipe.first_line], delimiter=delimiter), [])
            return fault_in_row(message, names, header=self.settings.header)
        with ExitStack() as opened:
            raw = _open(self.path, opened)
            stream = pa.CompressedInputStream(pa.PythonFile(raw), self.compression) if self.compression else raw
            text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
            return find_fault(message, text, delimiter=delimiter, header=header)

    def _expected(self, column: str | None, message: str) -> str:
        if column is None:
            return f"{message.partition('Expected ')[2].partition(' ')[0]} values, as in the header"
        if self.target is not None and column in self.target.names:
            return type_to_sql(from_arrow_type(self.target.field(column).type, True, lambda: 0))
        return message.partition("error to ")[2].partition(":")[0]


def _json(
    stream: Any, path: str, settings: ReadSettings, target: pa.Schema | None, lost: MissingValues | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if settings.columns is None:
        return json_batches(stream, path, target, lost=lost)
    if target is not None:
        chosen = pa.schema([target.field(name) for name in _chosen(target.names, settings)])
        return json_batches(stream, path, chosen, others=True, lost=lost)
    schema, batches = json_batches(stream, path, None)
    names = _chosen(schema.names, settings)
    return pa.schema([schema.field(name) for name in names]), (batch.select(names) for batch in batches)


def _typed(
    schema: pa.Schema, batches: Any, target: pa.Schema | None, *, first_row: int
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Columns that were read as text become what the table takes. ``first_row``: the number of the first row."""
    if target is None:
        return schema, iter(batches)
    target_types = {column.name: column.type for column in target}
    fields = [
        pa.field(target_field.name, _final_type(target_field.type, target_types.get(target_field.name))) for target_field in schema
    ]
    final = pa.schema(fields)

    def converted() -> Iterator[pa.RecordBatch]:
        row = first_row
        for batch in batches:
            columns = [convert(array, target_field, row) for array, target_field in zip(batch.columns, final, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=final)
            row += batch.num_rows

    def convert(array: pa.Array, target_field: pa.Field, row: int) -> pa.Array:
        try:
            return from_carrier(array, target_field.type)
        except ValueError as error:
            wrong = _first_wrong(array, target_field.type)
            # As Arrow says it of the types that it converts itself, but for the number of the column.
            place = f"In CSV column named {target_field.name}: Row #{row + wrong}"
            raise pa.ArrowInvalid(
                f"{place}: CSV conversion error to {target_field.type}: invalid value '{array[wrong]}'"
            ) from error

    return final, converted()


def _first_wrong(array: pa.Array, kind: pa.DataType) -> int:
    """The place of the first value that does not become one of the type; found by halves."""
    start, length = 0, len(array)
    while length > 1:
        half = length // 2
        try:
            from_carrier(array.slice(start, half), kind)
            start, length = start + half, length - half
        except ValueError:
            length = half
    return start


def _final_type(read: pa.DataType, target: pa.DataType | None) -> pa.DataType:
    return target if target is not None and pa.types.is_string(read) else read


def _text_type(kind: pa.DataType, name: str) -> pa.DataType:
    if pa.types.is_nested(kind):
        raise InvalidInputError(
            f"column {name!r} has the type {kind}, which CSV cannot hold; import it from Parquet or JSON lines, or leave it out "
            "with --columns",
            kind="file-format",
        )
    # Bytes are base64; Arrow's reader makes infinity of a number that is too large, and other decimals of some.
    is_text_first = pa.types.is_binary(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    return pa.string() if is_text_first else kind


def _chosen(names: Sequence[str], settings: ReadSettings) -> list[str]:
    if settings.columns is None:
        return list(names)
    if missing := [name for name in settings.columns if name not in names]:
        raise InvalidInputError(f"the file has no column {missing[0]!r} (it has {', '.join(names)})", kind="unknown-column")
    return list(settings.columns)


@contextmanager
def _as_ours(path: str) -> Iterator[None]:
    """Arrow's errors as ours, naming the file."""
    try:
        yield
    except TablestoreError:
        raise
    except pa.ArrowException as error:
        raise FormatError(f"{path}: {error}", kind="file-format") from error
    except OSError as error:
        if error.filename is None and isinstance(error, OSError) and not error.errno:
            raise FormatError(f"{path}: {error}", kind="file-format") from error
        raise


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes went through it, and its first line."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._count, self._begin = raw, 0, b""
        self.follow: Callable[[], int] | None = None

    def position(self) -> int:
        """Bytes read so far."""
        if self.follow is not None:
            try:
                return self.follow()
            except ValueError:
                return self._count
        return self._count

    @property
    def first_line(self) -> str:
        """The first line of those that were read."""
        return self._begin.decode("utf-8-sig", "replace").partition("\n")[0].removesuffix("\r")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        if self._count < _FIRST_LINE_BYTES:
            self._begin += data[:_FIRST_LINE_BYTES]
        self._count += len(data)
        return data
