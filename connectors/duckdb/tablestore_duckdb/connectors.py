"""Writes the SQL by which DuckDB reads the files of a table with the connector ``filesystem``; all other connectors are Spark's.

    parquet csv json    DuckDB's own readers, told what Spark's would take the files for
    orc avro            a stream of ours, with the values of folders as texts

* Spark's Parquet files hold moments as INT96, of which DuckDB makes a clock's time: it is that of a clock in UTC.
* A CSV file is of the form that the options say, or Spark's reader's; nothing is guessed from what it holds.
* Binary values in JSON are base64.
"""

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tablestore.environment.engine import ConnectorRelation
from tablestore.environment.filelayout import NULL_FOLDER, folder_key
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.datatypes import (
    BINARY_ROOTS,
    TIMESTAMP_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
    types_in,
)
from tablestore_duckdb.csvlines import line_end
from tablestore_duckdb.filetables import FileTable
from tablestore_duckdb.native import CAN_HAVE_NAN, has_screened_field, is_screened, read_column, screened
from tablestore_duckdb.quoting import Sql, ViewPlace, identifier, joined, literal
from tablestore_duckdb.rowtypes import duckdb_type

if TYPE_CHECKING:
    from tablestore_duckdb.scans import RowStream

# The column of the name of the file that a row is of.
_FILE = "_tablestore_file"
_READERS = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}
# Options of Spark's reader of CSV files that DuckDB's has under this name.
_CSV = {"header": "header", "sep": "delim", "delimiter": "delim", "quote": "quote", "escape": "escape", "nullvalue": "nullstr"}
# What Spark's reader takes where nothing is said.
_CSV_OF_SPARK = {"header": "false", "delim": "','", "quote": "'\"'", "escape": "'\\'", "nullstr": "''"}
# Options that give values another meaning.
_NOT_READ = {
    "csv": ("charset", "comment", "dateformat", "emptyvalue", "encoding", "ignoreleadingwhitespace", "ignoretrailingwhitespace",
            "linesep", "nanvalue", "negativeinf", "positiveinf", "timestampformat", "timestampntzformat"),
    "json": ("charset", "dateformat", "encoding", "linesep", "timestampformat", "timestampntzformat"),
}  # fmt: skip
# What DuckDB reads of compressed texts, by the end of a name.
_TEXTS, _COMPRESSED = ("csv", "json"), (".bz2", ".deflate", ".lz4", ".snappy", ".xz")

View = Callable[["RowStream"], ViewPlace]
Leaf = Callable[[str, AtomicType, tuple[str, ...]], str]
"""(SQL of a value, its type, its place in the columns) -> SQL of what the table has for it."""


def connector_sql(relation: ConnectorRelation, view: View) -> Sql:
    """SQL that reads the table; ``view`` makes a view of a stream. Raises InvalidInputError, and UnsupportedError for what only
    Spark reads."""
    table = FileTable.of(relation)
    if relation.metadata:
        raise UnsupportedError(
            f"the engine duckdb does not read the metadata column {relation.metadata[0].name!r} of table {relation.name}; run the "
            "statement on the engine spark",
            kind="engine",
        )
    _check_options(table)
    if table.file_format not in _READERS:
        return _streamed(table, view)
    if table.is_pattern:
        return (_native(table, [table.path]),)
    files = table.files()
    if not files:
        return (_nothing(table),)
    _check_compression(table, files)
    places = [glob.escape(file) for file in files]
    if table.file_format == "csv" and table.fields is not None:
        by_end: dict[str | None, list[str]] = {}
        for file, place in zip(files, places, strict=True):
            by_end.setdefault(line_end(file, table.options), []).append(place)
        return (" UNION ALL ".join(_native(table, group, new_line=end) for end, group in by_end.items()),)
    if table.file_format != "parquet" or not (table.fields is None or any(map(_has_times, table.stored_fields))):
        return (_native(table, places),)
    from tablestore_duckdb.filerows import int96_columns

    groups: dict[frozenset[tuple[str, ...]], list[str]] = {}
    for file, place in zip(files, places, strict=True):
        groups.setdefault(int96_columns(file), []).append(place)
    return (" UNION ALL ".join(_native(table, group, of_int96=paths) for paths, group in groups.items()),)


def _native(
    table: FileTable, places: Sequence[str], *, of_int96: frozenset[tuple[str, ...]] = frozenset(), new_line: str | None = None
) -> str:
    """The rows by DuckDB's own reader. ``of_int96``: the columns and fields of the files that hold times so; ``new_line``: the end
    of the lines of texts, where DuckDB has to be told."""
    file_format, options = table.file_format, table.options
    arguments = [f"[{', '.join(map(literal, places))}]"]
    if file_format == "csv":
        of_table = {_CSV[key]: literal(value) for key, value in options.items() if key in _CSV}
        # Without columns DuckDB alone finds out what the file is.
        stated = of_table if table.fields is None else {**_CSV_OF_SPARK, **of_table}
        arguments += [f"{key}={value}" for key, value in {"header": "false", **stated}.items()]
        if table.fields is None and _reads_texts(table):
            arguments.append("all_varchar=true")
    elif file_format == "parquet":
        arguments.append(CAN_HAVE_NAN)
    by_name, far = _columns_by_name(table, places), _far_moments(table, places)
    if by_name is not None:
        arguments.append("hive_partitioning=false")
        if by_name:
            arguments.append(f"filename={literal(_FILE)}")
    if table.fields is None:
        # DuckDB alone knows its columns.
        columns = screened("COLUMNS(*)") if file_format == "parquet" else "*"
        if file_format == "csv" and _reads_texts(table) and options.get("header", "false").lower() == "false":
            # As Spark calls them.
            columns = r"COLUMNS('^column0*([0-9]+)$') AS '_c\1'"
        rows = f"SELECT {columns} FROM {_READERS[file_format]}({', '.join(arguments)})"
        moments = sorted(identifier(path[0]) for path in of_int96 if len(path) == 1)
        return (
            f"SELECT * REPLACE ({', '.join(f'{_in_utc(name)} AS {name}' for name in moments)}) FROM ({rows})" if moments else rows
        )
    if table.partition_by and by_name is None:
        # The values of folders are texts: what they are is not to be guessed.
        types = {field.name: "VARCHAR" if field.name in far else duckdb_type(field.type) for field in _partitions(table)}
        kinds = ", ".join(f"{literal(folder_key(name))}: {literal(kind)}" for name, kind in types.items())
        arguments += ["hive_partitioning=true", f"hive_types={{{kinds}}}"]
    if file_format != "parquet":
        stored = [field for field in table.stored_fields if field.name not in (by_name or ())]
        columns = ", ".join(f"{literal(field.name)}: {literal(_type_in(field.type, file_format))}" for field in stored)
        arguments.append(f"columns={{{columns}}}")
        if file_format == "csv":
            arguments.append("auto_detect=false")
            if new_line is not None:
                arguments.append(f"new_line={literal(new_line)}")
    chosen = ", ".join(f"{_column(table, field, of_int96, by_name, far)} AS {identifier(field.name)}" for field in table.fields)
    return f"SELECT {chosen} FROM {_READERS[file_format]}({', '.join(arguments)})"


def _reads_texts(table: FileTable) -> bool:
    """True if all columns of a CSV file without declared ones are texts, as they are to Spark; else DuckDB finds types."""
    return table.options.get("inferschema", "true").lower() == "false"


def _far_moments(table: FileTable, places: Sequence[str]) -> frozenset[str]:
    """The columns of dates and times of which folders name years before 0 or behind 9999, that Spark writes with a sign."""
    moments = (field for field in _partitions(table) if _has_times(field) or _is_date(field))
    keys = {field.name: f"/{folder_key(field.name)}=" for field in moments}
    return frozenset(name for name, key in keys.items() if any(f"{key}+" in place or f"{key}-" in place for place in places))


def _is_date(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.DATE


def _of_folder(text: str, field: Field, far: frozenset[str]) -> str:
    """The value of a partition column by the text in the name of its folder; DuckDB has no signs of years, but an era."""
    kind = duckdb_type(field.type)
    if field.name not in far:
        return f"CAST({text} AS {kind})"
    year = f"LPAD(CAST(CAST(REGEXP_EXTRACT({text}, '^-([0-9]+)', 1) AS BIGINT) + 1 AS VARCHAR), 4, '0')"
    rest = rf"REGEXP_REPLACE({text}, '^-[0-9]+(-[0-9]+-[0-9]+)', '\1 (BC)')"
    return (
        f"CASE {text}[1] WHEN '+' THEN CAST({text}[2:] AS {kind}) WHEN '-' THEN CAST({year} || {rest} AS {kind}) "
        f"ELSE CAST({text} AS {kind}) END"
    )


def _columns_by_name(table: FileTable, places: Sequence[str]) -> frozenset[str] | None:
    """The columns whose values are taken from the names of files, where DuckDB would take the folders of the path itself for
    those of partitions; None: DuckDB finds folders."""
    if table.is_pattern or not table.is_below_pairs:
        return None
    keys = table.keys_below(places)
    if table.fields is None:
        return None if keys else frozenset()
    if table.partition_by:
        return frozenset(table.partition_by)
    return frozenset(field.name for field in table.fields if folder_key(field.name) in keys)


def _streamed(table: FileTable, view: View) -> Sql:
    """The rows by a reader of ours."""
    if table.is_address:
        raise UnsupportedError(
            f"the engine duckdb reads files of the format {table.file_format} on this machine, table {table.name} has path = "
            f"{table.path!r:.200}; run the statement on the engine spark",
            kind="engine",
        )
    from tablestore_duckdb.filerows import file_rows

    files = table.matches()
    if not files:
        return (_nothing(table),)
    names, far = {field.name: field for field in _partitions(table)}, _far_moments(table, files)
    stream = file_rows(table, files)
    chosen = ", ".join(
        f"{_of_folder(identifier(name), names[name], far)} AS {identifier(name)}" if name in names else identifier(name)
        for name in (stream.schema.names if table.fields is None else [field.name for field in table.fields])
    )
    return joined(f"SELECT {chosen} FROM ", view(stream))


def _nothing(table: FileTable) -> str:
    """No rows of a folder without files."""
    if table.fields is None:
        raise InvalidInputError(
            f"table {table.name}: there are no files in {table.path!r:.200}, which would say what its columns are; declare them: "
            "CREATE TABLE … (name type, …)",
            kind="no-columns",
        )
    return f"SELECT {', '.join(f'CAST(NULL AS {duckdb_type(f.type)}) AS {identifier(f.name)}' for f in table.fields)} WHERE false"


def _partitions(table: FileTable) -> Iterator[Field]:
    for field in table.fields or ():
        if field.name in table.partition_by:
            if not isinstance(field.type, AtomicType) or field.type.root in BINARY_ROOTS:
                raise UnsupportedError(
                    f"the engine duckdb reads no values of type {duckdb_type(field.type)} from the names of folders, as the "
                    f"partition column {field.name!r:.100} of table {table.name} has them; run the statement on the engine spark",
                    kind="engine",
                )
            yield field


def _check_options(table: FileTable) -> None:
    for name in _NOT_READ.get(table.file_format, ()):
        if name in table.options:
            raise UnsupportedError(
                f"the engine duckdb does not read files of the format {table.file_format} by the option {name!r}, which table "
                f"{table.name} has; leave it out, or run the statement on the engine spark",
                kind="engine",
            )


def _check_compression(table: FileTable, files: Sequence[str]) -> None:
    if table.file_format in _TEXTS and (packed := next((file for file in files if file.endswith(_COMPRESSED)), None)) is not None:
        raise UnsupportedError(
            f"the engine duckdb reads texts that are plain or packed with gzip or zstd, found {packed!r:.200} of table "
            f"{table.name}; run the statement on the engine spark",
            kind="engine",
        )


def _has_times(field: Field) -> bool:
    return any(isinstance(one, AtomicType) and one.root in TIMESTAMP_ROOTS for one in types_in(field.type))


def _type_in(data_type: DataType, file_format: str) -> str:
    """The type in which DuckDB's reader of texts takes a column."""
    if file_format != "json":
        return duckdb_type(data_type)
    match data_type:
        case AtomicType() if data_type.root in BINARY_ROOTS:
            return "VARCHAR"
        case ArrayType():
            return f"{_type_in(data_type.element, file_format)}[]"
        case MapType() | MultisetType():
            entries = as_map(data_type)
            return f"MAP({_type_in(entries.key, file_format)}, {_type_in(entries.value, file_format)})"
        case RowType():
            parts = (f"{identifier(field.name)} {_type_in(field.type, file_format)}" for field in data_type.fields)
            return f"STRUCT({', '.join(parts)})"
    return duckdb_type(data_type)


def _column(
    table: FileTable, field: Field, of_int96: frozenset[tuple[str, ...]], by_name: frozenset[str] | None, far: frozenset[str]
) -> str:
    """``by_name``: the columns whose values are taken from the name of the file, None: DuckDB does that; ``far``: those with years
    that it does not read."""
    if by_name is not None and field.name in by_name:
        # The last such folder: those above the table come before it.
        pattern = literal(f"^.*/{re.escape(folder_key(field.name))}=([^/]*)/")
        text = f"url_decode(nullif(regexp_extract({identifier(_FILE)}, {pattern}, 1), {literal(NULL_FOLDER)}))"
        return _of_folder(text, field, far)
    if field.name in table.partition_by:
        return _of_folder(identifier(folder_key(field.name)), field, far)
    column = identifier(field.name)
    if table.file_format == "json" and any(_is_binary(one) for one in types_in(field.type)):
        column = _mapped(
            column, field.type, (field.name,), lambda value, one, _: f"from_base64({value})" if _is_binary(one) else value
        )
    elif any(path[0].casefold() == field.name.casefold() for path in of_int96):
        paths = {tuple(part.casefold() for part in path) for path in of_int96}
        column = _mapped(
            column, field.type, (field.name.casefold(),), lambda value, _, path: _in_utc(value) if path in paths else value
        )
    column = f"CAST({column} AS {duckdb_type(field.type)})"
    if table.file_format != "parquet":
        return column
    # Nobody knows how many files there are, and whether they hold NULLs.
    is_screenable = is_screened(field.type) or has_screened_field(field.type)
    return read_column(column, field.type, is_screened=is_screenable, is_alone=True)


def _is_binary(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root in BINARY_ROOTS


def _in_utc(value: str) -> str:
    return f"timezone('UTC', {value})"


def _mapped(value: str, data_type: DataType, path: tuple[str, ...], leaf: Leaf) -> str:
    """A value with each value of an atomic type inside it put through ``leaf``."""
    name = f"_value{len(path)}"
    match data_type:
        case VariantType():
            return value
        case AtomicType():
            return leaf(value, data_type, path)
        case ArrayType():
            return f"list_transform({value}, lambda {name}: {_mapped(name, data_type.element, (*path, 'element'), leaf)})"
        case MapType() | MultisetType():
            entries = as_map(data_type)
            key = _mapped(f"{name}.key", entries.key, (*path, "key"), leaf)
            item = _mapped(f"{name}.value", entries.value, (*path, "value"), leaf)
            changed = f"list_transform(map_entries({value}), lambda {name}: {{'key': {key}, 'value': {item}}})"
            return f"CASE WHEN {value} IS NOT NULL THEN map_from_entries({changed}) END"
        case RowType():
            parts = (
                f"{literal(field.name)}: "
                + _mapped(f"struct_extract({value}, {literal(field.name)})", field.type, (*path, field.name.casefold()), leaf)
                for field in data_type.fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN {{{', '.join(parts)}}} END"
