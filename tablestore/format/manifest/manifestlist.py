"""Manifest lists: the manifests of a snapshot, each with enough numbers to skip it unread.

An Avro container with one record per manifest. The base list is everything live before a commit, the delta list what
it changed; an empty list is a file without records. Partition statistics have one entry per partition column, exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.binaryrow import decode_row
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import CODEC, RecordSchema, read_container, write_container
from tablestore.format.manifest.datafile import RECORD_NAME
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, check_version
from tablestore.format.paths import check_file_name, verify_content_name
from tablestore.format.stats import (
    ColumnStats,
    SimpleStats,
    encode_stats,
    stats_from_record,
    stats_schema,
    stats_to_record,
)
from tablestore.types.datatypes import DataType

# Stored, never renumbered.
MANIFEST_LIST_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One manifest of a list. Bucket and level ranges are exact, or None (unknown)."""

    file_name: str
    file_size: int
    num_added: int
    num_deleted: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


def _optional(name: str, data_type: str) -> dict[str, object]:
    return {"name": name, "type": ["null", data_type], "default": None}


MANIFEST_LIST_SCHEMA = RecordSchema(
    {
        "type": "record",
        "name": RECORD_NAME,
        "fields": [
            {"name": "_VERSION", "type": "int"},
            {"name": "_FILE_NAME", "type": "string"},
            {"name": "_FILE_SIZE", "type": "long"},
            {"name": "_NUM_ADDED_FILES", "type": "long"},
            {"name": "_NUM_DELETED_FILES", "type": "long"},
            {"name": "_PARTITION_STATS", "type": stats_schema(f"{RECORD_NAME}__PARTITION_STATS")},
            {"name": "_SCHEMA_ID", "type": "long"},
            _optional("_MIN_BUCKET", "int"),
            _optional("_MAX_BUCKET", "int"),
            _optional("_MIN_LEVEL", "int"),
            _optional("_MAX_LEVEL", "int"),
            _optional("_MIN_ROW_ID", "long"),
            _optional("_MAX_ROW_ID", "long"),
        ],
    }
)


def summarise(entries: Sequence[ManifestEntry], name: str, size: int, partition_types: Sequence[DataType]) -> ManifestFile:
    """The list's record of a manifest with these entries; at least one, stored as ``name`` in ``size`` bytes."""
    if not entries:
        raise ValueError(f"{name}: a manifest without entries has no place in a manifest list")
    added = sum(entry.kind is EntryKind.ADD for entry in entries)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    return ManifestFile(
        file_name=name,
        file_size=size,
        num_added=added,
        num_deleted=len(entries) - added,
        partition_stats=_partition_stats(entries, partition_types),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
    )


def encode_manifest_list(manifests: Iterable[ManifestFile], nonce: bytes, *, codec: str = CODEC) -> bytes:
    """The list's bytes; the same manifests and nonce give the same bytes."""
    records = [
        {
            "_VERSION": MANIFEST_LIST_VERSION,
            "_FILE_NAME": manifest.file_name,
            "_FILE_SIZE": manifest.file_size,
            "_NUM_ADDED_FILES": manifest.num_added,
            "_NUM_DELETED_FILES": manifest.num_deleted,
            "_PARTITION_STATS": stats_to_record(manifest.partition_stats),
            "_SCHEMA_ID": manifest.schema_id,
            "_MIN_BUCKET": manifest.min_bucket,
            "_MAX_BUCKET": manifest.max_bucket,
            "_MIN_LEVEL": manifest.min_level,
            "_MAX_LEVEL": manifest.max_level,
            "_MIN_ROW_ID": manifest.min_row_id,
            "_MAX_ROW_ID": manifest.max_row_id,
        }
        for manifest in manifests
    ]
    return write_container(records, MANIFEST_LIST_SCHEMA, nonce=nonce, codec=codec, what="the manifest list")


def decode_manifest_list(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[ManifestFile, ...]:
    """The manifests in list order. The content is checked against ``name`` where the name promises it.

    :raises FormatError: if the bytes are no such list (kind ``too-new`` for another version).
    """
    verify_content_name(name, data)
    records = read_container(data, name=name, limits=limits, expected=MANIFEST_LIST_SCHEMA)
    return tuple(_from_record(record, name) for record in records)


def _from_record(record: dict[str, Any], name: str) -> ManifestFile:
    check_version(record["_VERSION"], MANIFEST_LIST_VERSION, "manifest list", name)
    numbers = [record[key] for key in ("_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES", "_SCHEMA_ID")]
    if record["_FILE_NAME"] is None or any(number is None or number < 0 for number in numbers):
        raise FormatError(
            f"{name}: expected a manifest's name and counts, found {record['_FILE_NAME']!r} and {numbers}. The list is "
            "corrupt; restore it from a copy."
        )
    return ManifestFile(
        file_name=check_file_name(record["_FILE_NAME"], name),
        file_size=record["_FILE_SIZE"],
        num_added=record["_NUM_ADDED_FILES"],
        num_deleted=record["_NUM_DELETED_FILES"],
        partition_stats=stats_from_record(record["_PARTITION_STATS"], name),
        schema_id=record["_SCHEMA_ID"],
        min_bucket=record.get("_MIN_BUCKET"),
        max_bucket=record.get("_MAX_BUCKET"),
        min_level=record.get("_MIN_LEVEL"),
        max_level=record.get("_MAX_LEVEL"),
        min_row_id=record.get("_MIN_ROW_ID"),
        max_row_id=record.get("_MAX_ROW_ID"),
    )


def _partition_stats(entries: Sequence[ManifestEntry], types: Sequence[DataType]) -> SimpleStats:
    counts: dict[bytes, int] = {}
    for entry in entries:
        counts[entry.partition] = counts.get(entry.partition, 0) + 1
    rows = [(decode_row(partition, types), count) for partition, count in counts.items()]
    columns = []
    for index in range(len(types)):
        values: list[Any] = [row[index] for row, _ in rows if row[index] is not None]
        # A NaN has no place in an order: such bounds stay unknown.
        ordered = bool(values) and all(value == value for value in values)
        columns.append(
            ColumnStats(
                min=min(values) if ordered else None,
                max=max(values) if ordered else None,
                null_count=sum(count for row, count in rows if row[index] is None),
            )
        )
    return encode_stats(columns, types)
