"""Says how the tables of the connector ``filesystem`` lie in files, which every engine keeps to.

    <path>/part-….parquet                  the rows of an unpartitioned table
    <path>/day=2026-01-31/part-….parquet   those of a partition, whose columns the files lack
    _… or .… (no = in the name)            what nobody reads: rows of a statement that has not ended, marks of Spark's

Folders are spelled as Spark spells them. What a format does not hold is refused before a row is written.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.paths import escape_path_name
from tablestore.types.datatypes import (
    BINARY_ROOTS,
    TEXT_ROOTS,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    VariantType,
    as_map,
    is_finer_than_micros,
    types_in,
)
from tablestore.types.typestring import type_to_sql

FILESYSTEM = "filesystem"
# The folder of NULL, and of the empty text.
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# What a statement writes lies in a folder of such a name until it ends.
STAGING_PREFIX = "_tablestore-"


def partition_folder(name: str, text: str | None) -> str:
    """The folder of a value of a partition column; ``text``: the value as Spark casts it to a text.

    Raises InvalidInputError for a folder that nobody reads.
    """
    folder = f"{_escaped(name)}={_escaped(text or NULL_FOLDER)}"
    if is_hidden(folder):
        raise InvalidInputError(
            f"partition column {name!r:.100}: expected values whose folders are read, found {text!r:.100}, whose folder "
            f"{folder:.200} is hidden from every reader; change the value, or partition by another column",
            kind="invalid-partitioning",
        )
    return folder


def folder_key(name: str) -> str:
    """The name of a partition column in its folders."""
    return _escaped(name)


def _escaped(text: str) -> str:
    # Spark leaves this one as it is.
    return escape_path_name(text).replace("%7D", "}")


def is_hidden(name: str) -> bool:
    """True for a file or folder that is no part of its table."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


@dataclass(frozen=True, slots=True)
class _Lack:
    """Types that a format does not hold: those ``is_lacking`` is true for; ``reason`` says it of a column."""

    is_lacking: Callable[[DataType], bool]
    reason: str


def _is_binary(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root in BINARY_ROOTS


def _has_keys_of_others(data_type: DataType) -> bool:
    if not isinstance(data_type, MapType | MultisetType):
        return False
    key = as_map(data_type).key
    return not (isinstance(key, AtomicType) and key.root in TEXT_ROOTS)


# What other readers of a format take for names.
_NAMES = {
    "avro": (re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII), "letters, digits and _"),
    "orc": (re.compile(r"[^`]+"), "other characters than `"),
}
_OTHER_KEYS = _Lack(_has_keys_of_others, "maps with keys that are texts")
_LACKS = {
    "csv": (
        _Lack(lambda data_type: not isinstance(data_type, AtomicType), "no arrays, maps and rows"),
        _Lack(_is_binary, "no binary values: CSV holds texts, and readers do not turn these back (base64(x) is one)"),
    ),
    "json": (_OTHER_KEYS,),
    "avro": (_OTHER_KEYS,),
}


def check_file_columns(table: str, file_format: str, fields: Sequence[Field], partition_by: Sequence[str]) -> None:
    """Raises UnsupportedError for a column that files of a format do not hold, or that names no folder."""
    for field in fields:
        column = f"column {field.name!r:.100} of type {type_to_sql(field.type)}"
        if field.name in partition_by:
            if is_hidden(f"{folder_key(field.name)}="):
                raise InvalidInputError(
                    f"table {table}: expected partition columns whose folders are read, found {column}, and folders that begin "
                    "with a point are hidden from every reader; rename the column",
                    kind="invalid-partitioning",
                )
            if not isinstance(field.type, AtomicType) or _is_binary(field.type):
                raise UnsupportedError(
                    f"table {table}: expected partition columns whose values name folders, found {column}; partition by another "
                    "one",
                    kind="file-format",
                )
            continue
        _check_names(table, file_format, [field])
        if any(isinstance(one, VariantType) for one in types_in(field.type)):
            raise UnsupportedError(
                f"table {table}: a table of files has no VARIANT, found {column}; store it as STRING and read it with parse_json",
                kind="file-format",
            )
        for lack in _LACKS.get(file_format, ()):
            if any(map(lack.is_lacking, types_in(field.type))):
                raise UnsupportedError(
                    f"table {table}: files of the format {file_format} hold {lack.reason}, found {column}; cast it, or write "
                    "another format: parquet holds all types",
                    kind="file-format",
                )
    if fields and all(field.name in partition_by for field in fields):
        raise InvalidInputError(
            f"table {table}: PARTITIONED BY all columns leaves no data; leave one out", kind="invalid-partitioning"
        )


def _check_names(table: str, file_format: str, fields: Sequence[Field]) -> None:
    pattern, words = _NAMES.get(file_format, (None, ""))
    for field in fields:
        if pattern is not None and not pattern.fullmatch(field.name):
            raise UnsupportedError(
                f"table {table}: expected names of {words} in files of the format {file_format}, found {field.name!r:.100}; "
                "rename the column, or write another format: parquet has all names",
                kind="file-format",
            )
        for one in types_in(field.type):
            if isinstance(one, RowType):
                _check_names(table, file_format, one.fields)


def check_micros(table: str, fields: Sequence[Field]) -> None:
    """Raises UnsupportedError for a column of times that other readers of files do not hold."""
    for field in fields:
        if any(map(is_finer_than_micros, types_in(field.type))):
            raise UnsupportedError(
                f"table {table}: expected at most 6 digits of seconds in files, found column {field.name!r:.100} of type "
                f"{type_to_sql(field.type)}; declare it TIMESTAMP(6)",
                kind="file-format",
            )
