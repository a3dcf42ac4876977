"""Finds the files that a table with a connector stands for, and writes the SQL by which DuckDB reads them.

The connector ``filesystem`` of the formats parquet, csv and json, by path; all others are Spark's.
"""

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tablestore.environment.engine import WAY_OF_TOPICS, ConnectorRelation
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field
from tablestore_duckdb.native import CAN_HAVE_NAN, has_screened_field, is_screened, read_column, screened
from tablestore_duckdb.quoting import identifier, literal
from tablestore_duckdb.rowtypes import duckdb_type

_GLOB = re.compile(r"[*?\[{]")
_READERS = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}
# Options of Spark's reader of CSV files that DuckDB's has under this name.
_CSV = {"header": "header", "sep": "delim", "delimiter": "delim", "quote": "quote", "escape": "escape", "nullvalue": "nullstr"}


def connector_sql(relation: ConnectorRelation) -> str:
    """SQL that reads the table. Raises InvalidInputError, and UnsupportedError for what only Spark reads."""
    if relation.connector != "filesystem":
        raise UnsupportedError(
            f"the engine duckdb does not read table {relation.name} with the connector {relation.connector!r}, only filesystem; "
            f"{WAY_OF_TOPICS if relation.connector == 'kafka' else 'run the statement on the engine spark'}",
            kind="engine",
        )
    if relation.metadata:
        raise UnsupportedError(
            f"the engine duckdb does not read the metadata column {relation.metadata[0].name!r} of table {relation.name}; run the "
            "statement on the engine spark",
            kind="engine",
        )
    options = {key.lower(): value for key, value in relation.options.items()}
    path, file_format = options.pop("path", None), options.pop("format", "parquet").lower()
    if not path:
        raise InvalidInputError(f"table {relation.name} has the connector filesystem and no option 'path'", kind="missing-option")
    if file_format not in _READERS:
        raise UnsupportedError(
            f"the engine duckdb reads files of the formats {', '.join(_READERS)}, table {relation.name} has format = "
            f"{file_format!r}; run the statement on the engine spark",
            kind="engine",
        )
    arguments = [_files(path, file_format)]
    if file_format == "csv":
        arguments += [f"{_CSV[key]}={literal(value)}" for key, value in options.items() if key in _CSV]
        if "header" not in options:
            arguments.append("header=false")
    elif file_format == "parquet":
        arguments.append(CAN_HAVE_NAN)
    if relation.schema is None:
        # DuckDB alone knows its columns.
        columns = screened("COLUMNS(*)") if file_format == "parquet" else "*"
        return f"SELECT {columns} FROM {_READERS[file_format]}({', '.join(arguments)})"
    fields, _ = fields_from_arrow(relation.schema, where=f"table {relation.name}")
    if relation.partition_by:
        # The values of folders are texts: what they are is not to be guessed.
        named = [field for field in fields if field.name in relation.partition_by]
        kinds = ", ".join(f"{identifier(field.name)}: {duckdb_type(field.type)}" for field in named)
        arguments += ["hive_partitioning=true", f"hive_types={{{kinds}}}"]
    if file_format != "parquet":
        in_files = [field for field in fields if field.name not in relation.partition_by]
        columns = ", ".join(f"{literal(field.name)}: {literal(duckdb_type(field.type))}" for field in in_files)
        arguments.append(f"columns={{{columns}}}")
    chosen = ", ".join(f"{_cast(field, file_format)} AS {identifier(field.name)}" for field in fields)
    return f"SELECT {chosen} FROM {_READERS[file_format]}({', '.join(arguments)})"


def _cast(field: Field, file_format: str) -> str:
    column = f"CAST({identifier(field.name)} AS {duckdb_type(field.type)})"
    if file_format != "parquet":
        return column
    # Nobody knows how many files there are, and whether they hold NULLs.
    is_screenable = is_screened(field.type) or has_screened_field(field.type)
    return read_column(column, field.type, is_screened=is_screenable, is_alone=True)


def connector_folder(relation: ConnectorRelation) -> Iterator[str]:
    """The folder that the files of a table lie in, if it has one: of a pattern all before its first special letter.

    One with special letters in its name comes twice: as it is, and as the patterns of DuckDB name it.
    """
    path = next((value for key, value in relation.options.items() if key.lower() == "path"), "")
    if relation.connector == "filesystem" and path:
        path = path.removeprefix("file://")
        plain = path if Path(path).exists() else _GLOB.split(path, maxsplit=1)[0]
        folder = plain if Path(plain).is_dir() else os.path.dirname(plain) or "."
        yield from {folder, glob.escape(folder)}


def _files(path: str, file_format: str) -> str:
    """SQL for the files of a path: a folder stands for all of the format below it, and a path that exists is no pattern."""
    path = path.removeprefix("file://")
    if not Path(path).exists():
        return literal(path)
    return literal(f"{glob.escape(path.rstrip('/'))}/**/*.{file_format}" if Path(path).is_dir() else glob.escape(path))
