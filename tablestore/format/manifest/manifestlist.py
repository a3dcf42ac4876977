"""Manifest lists: the manifests of a snapshot, each with enough numbers to skip it unread.

An Avro container with one record per manifest. The base list is everything live before a commit, the delta list what
it changed; an empty list is a file without records. Partition statistics have one entry per partition column, exact.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tablestore.errors import FormatError
from tablestore.format.binaryrow import decode_row
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import CODEC, read_container, write_container
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.records import RECORD_NAME, RecordFormat, StoredColumn
from tablestore.format.manifest.statsrecord import stats_column
from tablestore.format.paths import check_file_name, verify_content_name
from tablestore.format.stats import ColumnStats, SimpleStats, encode_stats
from tablestore.types.arrays import numbers_of
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


MANIFEST_LIST_RECORD = RecordFormat(
    RECORD_NAME,
    (
        StoredColumn("_FILE_NAME", "file_name", "string"),
        StoredColumn("_FILE_SIZE", "file_size", "long"),
        StoredColumn("_NUM_ADDED_FILES", "num_added", "long"),
        StoredColumn("_NUM_DELETED_FILES", "num_deleted", "long"),
        stats_column("_PARTITION_STATS", "partition_stats", RECORD_NAME),
        StoredColumn("_SCHEMA_ID", "schema_id", "long"),
        StoredColumn("_MIN_BUCKET", "min_bucket", "int", optional=True),
        StoredColumn("_MAX_BUCKET", "max_bucket", "int", optional=True),
        StoredColumn("_MIN_LEVEL", "min_level", "int", optional=True),
        StoredColumn("_MAX_LEVEL", "max_level", "int", optional=True),
        StoredColumn("_MIN_ROW_ID", "min_row_id", "long", optional=True),
        StoredColumn("_MAX_ROW_ID", "max_row_id", "long", optional=True),
    ),
    version=MANIFEST_LIST_VERSION,
    what="manifest list",
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
        partition_stats=_partition_stats(Counter(entry.partition for entry in entries), partition_types),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
    )


def summarise_columns(entries: EntryColumns, name: str, size: int, partition_types: Sequence[DataType]) -> ManifestFile:
    """The list's record of a manifest with these entries, as :func:`summarise` makes it."""
    kinds, partitions = numbers_of(entries.column("kind")), entries.column("partition")
    counts = np.bincount(numbers_of(partitions.indices), minlength=len(partitions.dictionary)).tolist()
    buckets, levels = numbers_of(entries.column("bucket")), numbers_of(entries.column("level"))
    deleted = int((kinds == EntryKind.DELETE).sum())
    by_partition = {row: count for row, count in zip(partitions.dictionary.to_pylist(), counts, strict=True) if count}
    return ManifestFile(
        file_name=name,
        file_size=size,
        num_added=len(entries) - deleted,
        num_deleted=deleted,
        partition_stats=_partition_stats(by_partition, partition_types),
        schema_id=int(numbers_of(entries.column("schema_id")).max()),
        min_bucket=int(buckets.min()),
        max_bucket=int(buckets.max()),
        min_level=int(levels.min()),
        max_level=int(levels.max()),
    )


def encode_manifest_list(manifests: Iterable[ManifestFile], nonce: bytes, *, codec: str = CODEC) -> bytes:
    """The list's bytes; the same manifests and nonce give the same bytes."""
    records = [MANIFEST_LIST_RECORD.encode(manifest) for manifest in manifests]
    return write_container(records, MANIFEST_LIST_RECORD.schema, nonce=nonce, codec=codec, what="the manifest list")


def decode_manifest_list(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[ManifestFile, ...]:
    """The manifests in list order. Raises FormatError (kind ``too-new`` for another version); our files are checked by
    their names.
    """
    verify_content_name(name, data)
    records = read_container(data, name=name, limits=limits, expected=MANIFEST_LIST_RECORD.schema)
    return tuple(_from_record(record, name) for record in records)


def _from_record(record: dict[str, Any], name: str) -> ManifestFile:
    manifest = ManifestFile(**MANIFEST_LIST_RECORD.decode(record, name))
    numbers = [manifest.file_size, manifest.num_added, manifest.num_deleted, manifest.schema_id]
    if manifest.file_name is None or any(number is None or number < 0 for number in numbers):
        raise FormatError(
            f"{name}: expected a manifest's name and counts, found {manifest.file_name!r} and {numbers}. The list is "
            "corrupt; restore it from a copy."
        )
    check_file_name(manifest.file_name, name)
    return manifest


def _partition_stats(counts: Mapping[bytes, int], types: Sequence[DataType]) -> SimpleStats:
    """The bounds of partitions, each with its number of entries."""
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
