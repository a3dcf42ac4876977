"""Metadata of one data file, as a manifest entry holds it.

A frozen value and its Avro record. Fields after ``_LEVEL`` were added over time: an absent one reads as null. The last
one is ours: a digest of the Parquet footer, which other readers skip.

For a table with a primary key, ``min_key`` and ``max_key`` are the exact first and last key (rows of the trimmed
primary key), ``key_stats`` has one entry per key column, and ``delete_row_count`` is the exact number of retractions:
readers trust all three. ``creation_time_millis`` is local wall-clock time written as if it were UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.paths import check_file_name
from tablestore.format.stats import SimpleStats, stats_from_record, stats_schema, stats_to_record

# Stored, never renamed.
RECORD_NAME = "org.apache.paimon.avro.generated.record"
FILE_RECORD_NAME = f"{RECORD_NAME}__FILE"
FOOTER_DIGEST_FIELD = "_TABLESTORE_FOOTER_DIGEST"


class FileSource(IntEnum):
    """Who wrote a data file. Stored, never renumbered."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileMeta:
    """What a manifest knows of one data file."""

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time_millis: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None
    footer_digest: bytes | None = None


def _nullable(data_type: object) -> list[object]:
    return ["null", data_type]


def _optional(name: str, data_type: object) -> dict[str, object]:
    # The order of the union matters: Java and Rust fail on [T, null].
    return {"name": name, "type": _nullable(data_type), "default": None}


FILE_SCHEMA: dict[str, object] = {
    "type": "record",
    "name": FILE_RECORD_NAME,
    "fields": [
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_MIN_KEY", "type": "bytes"},
        {"name": "_MAX_KEY", "type": "bytes"},
        {"name": "_KEY_STATS", "type": stats_schema(f"{FILE_RECORD_NAME}__KEY_STATS")},
        {"name": "_VALUE_STATS", "type": stats_schema(f"{FILE_RECORD_NAME}__VALUE_STATS")},
        {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_SCHEMA_ID", "type": "long"},
        {"name": "_LEVEL", "type": "int"},
        {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
        _optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
        _optional("_DELETE_ROW_COUNT", "long"),
        _optional("_EMBEDDED_FILE_INDEX", "bytes"),
        _optional("_FILE_SOURCE", "int"),
        _optional("_VALUE_STATS_COLS", {"type": "array", "items": "string"}),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_FIRST_ROW_ID", "long"),
        _optional("_WRITE_COLS", {"type": "array", "items": "string"}),
        _optional("_WRITE_COLS_SEQUENCES", {"type": "array", "items": "long"}),
        _optional(FOOTER_DIGEST_FIELD, "bytes"),
    ],
}


def file_to_record(file: DataFileMeta) -> dict[str, object]:
    """The Avro record of ``file``, for :data:`FILE_SCHEMA`."""
    return {
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.file_size,
        "_ROW_COUNT": file.row_count,
        "_MIN_KEY": file.min_key,
        "_MAX_KEY": file.max_key,
        "_KEY_STATS": stats_to_record(file.key_stats),
        "_VALUE_STATS": stats_to_record(file.value_stats),
        "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
        "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
        "_SCHEMA_ID": file.schema_id,
        "_LEVEL": file.level,
        "_EXTRA_FILES": list(file.extra_files),
        "_CREATION_TIME": file.creation_time_millis,
        "_DELETE_ROW_COUNT": file.delete_row_count,
        "_EMBEDDED_FILE_INDEX": file.embedded_index,
        "_FILE_SOURCE": file.file_source,
        "_VALUE_STATS_COLS": _list(file.value_stats_cols),
        "_EXTERNAL_PATH": file.external_path,
        "_FIRST_ROW_ID": file.first_row_id,
        "_WRITE_COLS": _list(file.write_cols),
        "_WRITE_COLS_SEQUENCES": _list(file.write_cols_sequences),
        FOOTER_DIGEST_FIELD: file.footer_digest,
    }


def file_from_record(record: Mapping[str, Any], where: str) -> DataFileMeta:
    """The inverse of :func:`file_to_record`.

    :param where: the manifest's name, for messages.
    :raises FormatError: if a required value is missing, or no file can have it.
    """
    get = record.get
    file = DataFileMeta(
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        min_key=record["_MIN_KEY"],
        max_key=record["_MAX_KEY"],
        key_stats=stats_from_record(record["_KEY_STATS"], where),
        value_stats=stats_from_record(record["_VALUE_STATS"], where),
        min_sequence_number=record["_MIN_SEQUENCE_NUMBER"],
        max_sequence_number=record["_MAX_SEQUENCE_NUMBER"],
        schema_id=record["_SCHEMA_ID"],
        level=record["_LEVEL"],
        extra_files=tuple(get("_EXTRA_FILES") or ()),
        creation_time_millis=get("_CREATION_TIME"),
        delete_row_count=get("_DELETE_ROW_COUNT"),
        embedded_index=get("_EMBEDDED_FILE_INDEX"),
        file_source=get("_FILE_SOURCE"),
        value_stats_cols=_tuple(get("_VALUE_STATS_COLS")),
        external_path=get("_EXTERNAL_PATH"),
        first_row_id=get("_FIRST_ROW_ID"),
        write_cols=_tuple(get("_WRITE_COLS")),
        write_cols_sequences=_tuple(get("_WRITE_COLS_SEQUENCES")),
        footer_digest=get(FOOTER_DIGEST_FIELD),
    )
    _check(file, where)
    return file


def _list(values: tuple[object, ...] | None) -> list[object] | None:
    # fastavro takes a tuple inside of a union for a pair of type name and value.
    return None if values is None else list(values)


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _check(file: DataFileMeta, where: str) -> None:
    try:
        possible = (
            file.file_size >= 0
            and file.row_count >= 0
            and 0 <= file.level < 2**31
            and file.schema_id >= 0
            and file.min_sequence_number <= file.max_sequence_number
            and len(file.min_key) >= 12
            and len(file.max_key) >= 12
        )
    except TypeError:  # a null where there must be a value
        possible = False
    if not possible or file.file_name is None:
        raise FormatError(
            f"{where}: expected the metadata of a data file, found {_short(file)}. The manifest is corrupt; restore it from a copy."
        )
    check_file_name(file.file_name, where)
    for extra in file.extra_files:
        check_file_name(extra, where)


def _short(file: DataFileMeta) -> str:
    return (
        f"name {str(file.file_name)[:80]!r}, size {file.file_size}, rows {file.row_count}, level {file.level}, schema "
        f"{file.schema_id}, sequence numbers {file.min_sequence_number} to {file.max_sequence_number}"
    )
