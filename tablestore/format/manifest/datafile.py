"""Data file metadata, as a manifest entry holds it: key range, sequence range, level, row count, statistics.

A frozen value and its Avro record. Fields after ``_LEVEL`` were added over time: an absent one reads as null. The last
one is ours: a digest of the Parquet footer, which other readers skip.

For a table with a primary key, ``min_key`` and ``max_key`` are the exact first and last key (rows of the trimmed
primary key), ``key_stats`` has one entry per key column, and ``delete_row_count`` is the exact number of retractions.
``creation_time_millis`` is local wall-clock time written as if it were UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.manifest.records import RECORD_NAME, RecordFormat, StoredColumn, as_list, as_tuple
from tablestore.format.manifest.statsrecord import stats_column
from tablestore.format.paths import check_file_name
from tablestore.format.stats import SimpleStats

# Stored, never renamed.
FILE_RECORD_NAME = f"{RECORD_NAME}__FILE"
FOOTER_DIGEST_FIELD = "_TABLESTORE_FOOTER_DIGEST"

_TEXTS, _LONGS = {"type": "array", "items": "string"}, {"type": "array", "items": "long"}


class FileSource(IntEnum):
    """The kind of commit that wrote a data file. Stored, never renumbered."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileMeta:
    """The metadata of one data file in a manifest."""

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

    @property
    def may_retract(self) -> bool:
        """True if rows of the file may be ``-U`` or ``-D``. Only our own count is believed: a file of ours has a digest."""
        return self.delete_row_count != 0 or self.footer_digest is None


FILE_RECORD = RecordFormat(
    FILE_RECORD_NAME,
    (
        StoredColumn("_FILE_NAME", "file_name", "string"),
        StoredColumn("_FILE_SIZE", "file_size", "long"),
        StoredColumn("_ROW_COUNT", "row_count", "long"),
        StoredColumn("_MIN_KEY", "min_key", "bytes"),
        StoredColumn("_MAX_KEY", "max_key", "bytes"),
        stats_column("_KEY_STATS", "key_stats", FILE_RECORD_NAME),
        stats_column("_VALUE_STATS", "value_stats", FILE_RECORD_NAME),
        StoredColumn("_MIN_SEQUENCE_NUMBER", "min_sequence_number", "long"),
        StoredColumn("_MAX_SEQUENCE_NUMBER", "max_sequence_number", "long"),
        StoredColumn("_SCHEMA_ID", "schema_id", "long"),
        StoredColumn("_LEVEL", "level", "int"),
        StoredColumn("_EXTRA_FILES", "extra_files", _TEXTS, write=list, read=lambda names, _: tuple(names or ())),
        StoredColumn("_CREATION_TIME", "creation_time_millis", {"type": "long", "logicalType": "timestamp-millis"}, optional=True),
        StoredColumn("_DELETE_ROW_COUNT", "delete_row_count", "long", optional=True),
        StoredColumn("_EMBEDDED_FILE_INDEX", "embedded_index", "bytes", optional=True),
        StoredColumn("_FILE_SOURCE", "file_source", "int", optional=True),
        StoredColumn("_VALUE_STATS_COLS", "value_stats_cols", _TEXTS, optional=True, write=as_list, read=as_tuple),
        StoredColumn("_EXTERNAL_PATH", "external_path", "string", optional=True),
        StoredColumn("_FIRST_ROW_ID", "first_row_id", "long", optional=True),
        StoredColumn("_WRITE_COLS", "write_cols", _TEXTS, optional=True, write=as_list, read=as_tuple),
        StoredColumn("_WRITE_COLS_SEQUENCES", "write_cols_sequences", _LONGS, optional=True, write=as_list, read=as_tuple),
        StoredColumn(FOOTER_DIGEST_FIELD, "footer_digest", "bytes", optional=True),
    ),
)


def file_from_record(record: Mapping[str, Any], where: str) -> DataFileMeta:
    """The value of a record of :data:`FILE_RECORD` in the manifest ``where``. Raises FormatError for impossible values."""
    file = DataFileMeta(**FILE_RECORD.decode(record, where))
    _check(file, where)
    return file


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
            and (file.file_source is None or -(2**31) <= file.file_source < 2**31)
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
