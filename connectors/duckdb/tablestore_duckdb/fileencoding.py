"""Encodes rows as files that Spark and other engines read: Parquet, CSV, JSON lines, ORC, Avro.

    CSV     texts in quotation marks, NULL as nullValue says; \\ before a quotation mark and before itself, unless escape is another
    JSON    one object a line, with NaN and Infinity as texts, binary values as base64
    Parquet TIME in microseconds: Spark reads no other
    ORC     TIMESTAMP and TIME as numbers that say what they are, as Spark has them; moments as moments
    Avro    the types of the specification

All from Arrow arrays at once, but for Avro, a format of rows. Memory: a row group of Parquet, a stripe of ORC, else a batch.
"""

from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.countedsink import CountedSink
from tablestore.format.datafiles.avrowriter import AvroFileWriter
from tablestore.format.datafiles.orccalendar import days_of_file
from tablestore.format.datafiles.orcwriter import SPARK_TYPE, OrcFileWriter
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.json.jsontext import concat, content, plain_texts, rows_to_json
from tablestore.options import parse_bool
from tablestore.types.arrays import text_scalar
from tablestore_duckdb.filetables import FileTable

_ROW_GROUP_ROWS = 122_880
# What DuckDB reads of a line of CSV, and of an object of JSON, with the line break.
_LONGEST_LINE, _LONGEST_OBJECT = 2_000_000, 1 << 24
# Names of compressions, as options of Spark's writers have them, in the words of who writes: Arrow, and our writers.
_COMPRESSIONS: dict[str, dict[str, str]] = {
    "parquet": {name: name for name in ("snappy", "zstd", "gzip", "brotli")} | {"none": "none", "uncompressed": "none"},
    "orc": {"snappy": "snappy", "zstd": "zstd", "zlib": "gzip", "none": "none", "uncompressed": "none"},
    "avro": {"snappy": "snappy", "zstandard": "zstd", "deflate": "gzip", "uncompressed": "none"},
    "csv": {"none": "none", "uncompressed": "none", "gzip": "gzip"},
    "json": {"none": "none", "uncompressed": "none", "gzip": "gzip"},
}
_DEFAULT = {"parquet": "snappy", "orc": "zstd", "avro": "snappy", "csv": "none", "json": "none"}
_CSV_OPTIONS = ("header", "sep", "delimiter", "quote", "escape", "nullvalue")
# Options that only say how files are read, which are those of Spark's readers.
_OF_READERS = ("inferschema", "mergeschema", "mode", "multiline", "enforceschema", "pathglobfilter", "recursivefilelookup")
# Between values that have one of these, all are put in quotation marks.
_IN_VALUES = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:+- ")


class FileEncoder(Protocol):
    """A file that is being written into a sink, which the caller opens and closes."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows."""

    def reached(self, size: int) -> bool:
        """True if the file has that many bytes, or as much as readers of its format take: then another follows it."""

    def close(self) -> None:
        """Writes what is held, and the end of the file."""

    def give_up(self) -> None:
        """Lets go of the sink, which is removed."""


def check_write_options(table: FileTable) -> None:
    """Raises UnsupportedError for an option by which only Spark writes, InvalidInputError for a value that is wrong."""
    known = {"compression", "codec", *_OF_READERS, *(_CSV_OPTIONS if table.file_format == "csv" else ())}
    if others := sorted(table.options.keys() - known):
        raise UnsupportedError(
            f"the engine duckdb does not write files of the format {table.file_format} by the option {others[0]!r:.80}, which "
            f"table {table.name} has; leave it out, or run the statement on the engine spark",
            kind="engine",
        )
    _compression(table)
    if table.file_format == "csv":
        _CsvForm.of(table)


def suffix(table: FileTable) -> str:
    """The end of the names of the files of a table."""
    packed = table.file_format in ("csv", "json") and _compression(table) == "gzip"
    return f".{table.file_format}{'.gz' if packed else ''}"


def encoder(sink: BinaryIO, schema: pa.Schema, table: FileTable, *, name: str, buffer_bytes: int) -> FileEncoder:
    """Begins a file of a table."""
    compression = _compression(table)
    options = DataFileOptions(compression=compression, compression_level=None)
    match table.file_format:
        case "csv":
            return _Texts(sink, _CsvForm.of(table), schema, packed=compression == "gzip")
        case "json":
            return _Texts(sink, None, schema, packed=compression == "gzip")
        case "orc":
            return _Orc(sink, schema, name, options)
        case "avro":
            return _Avro(AvroFileWriter(sink, schema, file_name=name, options=options, is_standard=True))
    return _Parquet(sink, schema, compression, buffer_bytes)


def _compression(table: FileTable) -> str:
    name = table.options.get("compression", table.options.get("codec", _DEFAULT[table.file_format])).lower()
    if name == _DEFAULT[table.file_format]:
        return name
    known = _COMPRESSIONS[table.file_format]
    if name not in known:
        raise UnsupportedError(
            f"the engine duckdb writes files of the format {table.file_format} with compression = {', '.join(known)}, table "
            f"{table.name} has {name!r:.80}; run the statement on the engine spark",
            kind="engine",
        )
    return known[name]


class _Parquet:
    def __init__(self, sink: BinaryIO, schema: pa.Schema, compression: str, buffer_bytes: int) -> None:
        self._sink = sink
        self._schema, self._stored = schema, pa.schema([column.with_type(_in_units(column.type, "us")) for column in schema])
        self._writer = pq.ParquetWriter(sink, self._stored, compression=compression, write_page_checksum=True)
        self._buffer_bytes = buffer_bytes
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROW_GROUP_ROWS or self._bytes >= self._buffer_bytes:
            self._flush()

    def reached(self, size: int) -> bool:
        return self._sink.tell() >= size

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def give_up(self) -> None:
        # Arrow's writer would end its file when it is forgotten.
        self._held = []
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held, schema=self._schema).cast(self._stored)
            self._writer.write_table(table, row_group_size=max(self._rows, 1))
        self._held, self._rows, self._bytes = [], 0, 0


class _Texts:
    def __init__(self, sink: BinaryIO, form: "_CsvForm | None", schema: pa.Schema, *, packed: bool) -> None:
        self._counted = CountedSink(sink)
        self._sink: Any = pa.CompressedOutputStream(pa.PythonFile(self._counted, mode="w"), "gzip") if packed else self._counted
        self._packed, self._form = packed, form
        if form is not None and form.has_header:
            self._put(form.lines([pa.array([name]) for name in schema.names]))

    def write(self, rows: pa.RecordBatch) -> None:
        columns = rows.columns
        self._put(concat(rows_to_json(columns, rows.schema.names), "\n") if self._form is None else self._form.lines(columns))

    def reached(self, size: int) -> bool:
        return self._counted.count >= size

    def close(self) -> None:
        if self._packed:
            self._sink.close()

    def give_up(self) -> None:
        self.close()

    def _put(self, lines: pa.Array) -> None:
        longest = pc.max(pc.binary_length(lines)).as_py() or 0
        most = _LONGEST_OBJECT if self._form is None else _LONGEST_LINE
        if longest > most:
            raise InvalidInputError(
                f"expected rows whose text has at most {most:,} bytes, which DuckDB reads of a line, found one of {longest:,}; "
                "write them into a table of Parquet files",
                kind="limit",
            )
        self._sink.write(content(lines).tobytes())


class _CsvForm:
    """The form of a CSV file: as Spark's reader takes it by the options of the table."""

    def __init__(self, *, has_header: bool, separator: str, quote: str, escape: str, null: str) -> None:
        self.has_header, self._separator, self._quote, self._escape = has_header, separator, quote, escape
        self._null = null
        self._quotes_all = any(char in _IN_VALUES for char in separator)

    @staticmethod
    def of(table: FileTable) -> "_CsvForm":
        """That of a table. Raises InvalidInputError."""
        options = table.options
        separator, quote, escape = (
            options.get("sep", options.get("delimiter", ",")),
            options.get("quote", '"'),
            options.get("escape", "\\"),
        )
        for name, value in (("sep", separator), ("quote", quote), ("escape", escape)):
            if len(value) != 1 or value in "\r\n":
                raise InvalidInputError(
                    f"table {table.name}: {name}: expected one character, found {value!r:.80}", kind="invalid-option"
                )
        if separator in (quote, escape):
            raise InvalidInputError(
                f"table {table.name}: expected another character for sep than for quote and escape, found {separator!r}",
                kind="invalid-option",
            )
        null = options.get("nullvalue", "")
        if any(char in null for char in (separator, quote, escape, "\n", "\r")):
            raise InvalidInputError(
                f"table {table.name}: nullValue: expected a text without sep, quote, escape and line breaks, found {null!r:.80}",
                kind="invalid-option",
            )
        return _CsvForm(
            has_header=parse_bool(options.get("header", "false")),
            separator=separator,
            quote=quote,
            escape=escape,
            null=null,
        )

    def lines(self, columns: list[pa.Array]) -> pa.Array:
        """One line for each row."""
        parts: list[pa.Array | str] = []
        for place, column in enumerate(columns):
            parts += [*([self._separator] if place else []), self._texts(column, is_alone=len(columns) == 1)]
        return concat(*parts, "\n")

    def _texts(self, column: pa.Array, *, is_alone: bool) -> pa.Array:
        texts = plain_texts(column)
        if pa.types.is_string(column.type):
            if self._escape != self._quote:
                texts = pc.replace_substring(texts, self._escape, self._escape * 2)
            texts = pc.replace_substring(texts, self._quote, self._escape + self._quote)
        if pa.types.is_string(column.type) or self._quotes_all:
            quote = text_scalar(self._quote)
            texts = pc.binary_join_element_wise(quote, texts, quote, text_scalar(""))
        # Readers pass over empty lines.
        null = self._null or self._quote * 2 if is_alone else self._null
        return pc.fill_null(texts, null) if column.null_count else texts


class _Orc:
    def __init__(self, sink: BinaryIO, schema: pa.Schema, name: str, options: DataFileOptions) -> None:
        self._nanos = pa.schema([field.with_type(_in_units(field.type, "ns")) for field in schema])
        self._stored = pa.schema([_marked(field) for field in schema])
        self._writer = OrcFileWriter(sink, self._stored, file_name=name, options=options)

    def write(self, rows: pa.RecordBatch) -> None:
        columns = [days_of_file(column) for column in rows.columns]
        self._writer.write(pa.Table.from_arrays(columns, schema=rows.schema).cast(self._nanos).cast(self._stored))

    def reached(self, size: int) -> bool:
        return self._writer.reached(size)

    def close(self) -> None:
        self._writer.close()

    def give_up(self) -> None:
        """Nothing is held."""


class _Avro:
    def __init__(self, writer: AvroFileWriter) -> None:
        self._writer = writer

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write(rows)

    def reached(self, size: int) -> bool:
        return self._writer.reached(size)

    def close(self) -> None:
        self._writer.close()

    def give_up(self) -> None:
        """Nothing is held."""


def _in_units(kind: pa.DataType, unit: str) -> pa.DataType:
    """The type with times of day that count these, as Spark has them in files."""
    if pa.types.is_time(kind):
        return pa.time64(unit)
    return _with_parts(kind, lambda part: part.with_type(_in_units(part.type, unit)))


def _marked(field: pa.Field) -> pa.Field:
    """The field as Spark stores it, with what it says of it."""
    kind = field.type
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.field(field.name, pa.int64(), field.nullable, {SPARK_TYPE: b"timestamp_ntz"})
    if pa.types.is_time(kind):
        return pa.field(field.name, pa.int64(), field.nullable, {SPARK_TYPE: b"time(6)"})
    return pa.field(field.name, _with_parts(kind, _marked), field.nullable)


def _with_parts(kind: pa.DataType, change: Any) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([change(part) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field))
    return pa.list_(change(kind.value_field)) if pa.types.is_list(kind) else kind
