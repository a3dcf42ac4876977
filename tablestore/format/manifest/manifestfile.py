"""Manifests: the data files that a commit added to or deleted from each bucket, one entry a file.

An Avro container with one record per entry. A changelog manifest has the same shape and only ADDs. Moving a file to
another level is a DELETE followed by an ADD; a DELETE repeats the identity of the ADD exactly.

Writers cut bounds and split manifests, so ours hold a few MiB. Earlier writers did neither: where a manifest expands too far, wide
bounds are dropped while reading. Unknown bounds are always correct.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.binaryrow import without_values
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import CODEC, RecordSchema, container_blocks, read_container, write_container
from tablestore.format.manifest.datafile import FILE_RECORD, DataFileMeta, file_from_record
from tablestore.format.manifest.records import RECORD_NAME, check_version
from tablestore.format.manifest.statsrecord import encode_stats_record
from tablestore.format.paths import verify_content_name
from tablestore.format.stats import EMPTY_STATS

# Stored, never renumbered.
MANIFEST_VERSION = 2

_WIDE_BOUNDS_BYTES = 1024


class EntryKind(IntEnum):
    """The kind of a manifest entry: its file is added or deleted. Stored, never renumbered."""

    ADD = 0
    DELETE = 1


FileIdentity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One data file added or deleted. ``partition`` is a serialised row of the partition columns."""

    kind: EntryKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> FileIdentity:
        """The identity of the file: entries of the same one speak of the same file."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )


MANIFEST_SCHEMA = RecordSchema(
    {
        "type": "record",
        "name": RECORD_NAME,
        "fields": [
            {"name": "_VERSION", "type": "int"},
            {"name": "_KIND", "type": "int"},
            {"name": "_PARTITION", "type": "bytes"},
            {"name": "_BUCKET", "type": "int"},
            {"name": "_TOTAL_BUCKETS", "type": "int"},
            {"name": "_FILE", "type": FILE_RECORD.schema},
        ],
    }
)


def encode_manifest(entries: Iterable[ManifestEntry], nonce: bytes, *, codec: str = CODEC) -> bytes:
    """The manifest's bytes; the same entries and nonce give the same bytes. Memory: the records of a block, beside the bytes."""
    return write_container(map(_record, entries), MANIFEST_SCHEMA, nonce=nonce, codec=codec, what="the manifest")


def _record(entry: ManifestEntry) -> dict[str, object]:
    return {
        "_VERSION": MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": FILE_RECORD.encode(entry.file),
    }


LEAST_ENTRY_BYTES = 150
"""The least that :func:`entry_bytes` gives."""


def entry_bytes(entry: ManifestEntry) -> int:
    """The estimated bytes of an entry, in a manifest before compression and in memory beside the objects themselves."""
    file = entry.file
    rows = (entry.partition, file.min_key, file.max_key, file.embedded_index or b"")
    bounds = (part for stats in (file.key_stats, file.value_stats) for part in (stats.min_values, stats.max_values))
    counts = len(file.key_stats.null_counts) + len(file.value_stats.null_counts)
    names = sum(len(name) for name in (file.file_name, *file.extra_files, *(file.value_stats_cols or ()), *(file.write_cols or ())))
    return LEAST_ENTRY_BYTES + sum(map(len, rows)) + sum(map(len, bounds)) + 4 * counts + names


def record_bytes(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> int:
    """The bytes of the records of a manifest before compression, none of which is decoded. Raises FormatError."""
    blocks = container_blocks(data, name=name, limits=limits, expected=MANIFEST_SCHEMA).blocks
    return sum(len(body) for _, body in blocks)


def decode_manifest(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[ManifestEntry, ...]:
    """The entries in stored order. Raises FormatError (kind ``too-new`` for another version); our files are checked by
    their names.
    """
    verify_content_name(name, data)
    records = read_container(data, name=name, limits=limits, expected=MANIFEST_SCHEMA, lighten=_without_wide_bounds)
    return entries_of_records(records, name)


def entries_of_records(records: Iterable[Mapping[str, Any]], name: str) -> tuple[ManifestEntry, ...]:
    """The entries of records of the manifest ``name``. Raises as :func:`decode_manifest`."""
    partitions: dict[bytes, bytes] = {}
    entries = []
    for record in records:
        check_version(record["_VERSION"], MANIFEST_VERSION, "manifest", name)
        partition, bucket, total_buckets = record["_PARTITION"], record["_BUCKET"], record["_TOTAL_BUCKETS"]
        kind = _KINDS.get(record["_KIND"])
        if kind is None or partition is None or len(partition) < 12 or bucket is None or not -2 <= bucket < 2**31:
            raise FormatError(
                f"{name}: expected an entry of kind 0 (ADD) or 1 (DELETE) with a partition and a bucket, found kind "
                f"{record['_KIND']}, partition {partition!r}, bucket {bucket}. The manifest is corrupt; restore it."
            )
        if record["_FILE"] is None or total_buckets is None or not -(2**31) <= total_buckets < 2**31:
            raise FormatError(f"{name}: expected an entry with a file and a bucket count, found none. Restore it.")
        entries.append(
            ManifestEntry(
                kind=kind,
                partition=partitions.setdefault(partition, partition),
                bucket=bucket,
                total_buckets=total_buckets,
                file=file_from_record(record["_FILE"], name),
            )
        )
    return tuple(entries)


def _without_wide_bounds(record: dict[str, Any]) -> int:
    """Drop the wide bounds of an entry's record; returns how many bytes that were."""
    file = record.get("_FILE") or {}
    dropped = 0
    key_stats, value_stats = file.get("_KEY_STATS"), file.get("_VALUE_STATS")
    if key_stats and (size := _bounds_bytes(key_stats)) > _WIDE_BOUNDS_BYTES:
        # Readers of others want an entry for each key column.
        low, high = (without_values(key_stats[key]) for key in ("_MIN_VALUES", "_MAX_VALUES"))
        if low is not None and high is not None:
            key_stats["_MIN_VALUES"], key_stats["_MAX_VALUES"] = low, high
            dropped += size - len(low) - len(high)
    if value_stats and (size := _bounds_bytes(value_stats)) > _WIDE_BOUNDS_BYTES:
        file["_VALUE_STATS"], file["_VALUE_STATS_COLS"] = encode_stats_record(EMPTY_STATS), []
        dropped += size
    return dropped


def _bounds_bytes(stats: dict[str, Any]) -> int:
    return len(stats["_MIN_VALUES"] or b"") + len(stats["_MAX_VALUES"] or b"")


_KINDS = {0: EntryKind.ADD, 1: EntryKind.DELETE}
