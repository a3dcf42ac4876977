"""Index manifests: the complete list of a snapshot's index files (deletion vectors, hash indexes, others).

An Avro container with one record per index file. A snapshot that changes none inherits the name of the last one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import CODEC, RecordSchema, read_container, write_container
from tablestore.format.manifest.datafile import RECORD_NAME
from tablestore.format.manifest.manifestfile import EntryKind, check_version
from tablestore.format.paths import check_file_name, verify_content_name

# Stored, never renumbered or renamed.
INDEX_MANIFEST_VERSION = 1
DELETION_VECTORS = "DELETION_VECTORS"
HASH = "HASH"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorRange:
    """Where in the index file the vector of one data file lies: ``offset`` is that of its size field, ``length`` the
    bytes of its payload; see :mod:`tablestore.format.index.deletionvector`."""

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalIndexMeta:
    """Of an index over row ids: kept when a list is written again, otherwise unused."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One live index file of one bucket. ``row_count`` counts hashes, or data files with a vector."""

    kind: EntryKind
    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    deletion_vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndexMeta | None = None


def _optional(name: str, data_type: object) -> dict[str, object]:
    return {"name": name, "type": ["null", data_type], "default": None}


_RANGE_SCHEMA = {
    "type": "record",
    "name": f"{RECORD_NAME}__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        _optional("_CARDINALITY", "long"),
    ],
}
_GLOBAL_SCHEMA = {
    "type": "record",
    "name": f"{RECORD_NAME}__GLOBAL_INDEX",
    "fields": [
        {"name": "_ROW_RANGE_START", "type": "long"},
        {"name": "_ROW_RANGE_END", "type": "long"},
        {"name": "_INDEX_FIELD_ID", "type": "int"},
        _optional("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        _optional("_INDEX_META", "bytes"),
        _optional("_SOURCE_META", "bytes"),
    ],
}
INDEX_MANIFEST_SCHEMA = RecordSchema(
    {
        "type": "record",
        "name": RECORD_NAME,
        "fields": [
            {"name": "_VERSION", "type": "int"},
            {"name": "_KIND", "type": "int"},
            {"name": "_PARTITION", "type": "bytes"},
            {"name": "_BUCKET", "type": "int"},
            {"name": "_INDEX_TYPE", "type": "string"},
            {"name": "_FILE_NAME", "type": "string"},
            {"name": "_FILE_SIZE", "type": "long"},
            {"name": "_ROW_COUNT", "type": "long"},
            _optional("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE_SCHEMA]}),
            _optional("_EXTERNAL_PATH", "string"),
            _optional("_GLOBAL_INDEX", _GLOBAL_SCHEMA),
        ],
    }
)


_REQUIRED = ("_PARTITION", "_BUCKET", "_INDEX_TYPE", "_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT")


def encode_index_manifest(entries: Iterable[IndexEntry], nonce: bytes, *, codec: str = CODEC) -> bytes:
    """The file's bytes; the same entries and nonce give the same bytes."""
    records = [_to_record(entry) for entry in entries]
    return write_container(records, INDEX_MANIFEST_SCHEMA, nonce=nonce, codec=codec, what="the index manifest")


def decode_index_manifest(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[IndexEntry, ...]:
    """The index files in stored order. The content is checked against ``name`` where the name promises it.

    :raises FormatError: if the bytes are no such file (kind ``too-new`` for another version).
    """
    verify_content_name(name, data)
    records = read_container(data, name=name, limits=limits, expected=INDEX_MANIFEST_SCHEMA)
    return tuple(_from_record(record, name) for record in records)


def _to_record(entry: IndexEntry) -> dict[str, object]:
    ranges = entry.deletion_vectors
    index = entry.global_index
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None
        if ranges is None
        else [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges],
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": None
        if index is None
        else {
            "_ROW_RANGE_START": index.row_range_start,
            "_ROW_RANGE_END": index.row_range_end,
            "_INDEX_FIELD_ID": index.index_field_id,
            "_EXTRA_FIELD_IDS": None if index.extra_field_ids is None else list(index.extra_field_ids),
            "_INDEX_META": index.index_meta,
            "_SOURCE_META": index.source_meta,
        },
    }


def _from_record(record: Mapping[str, Any], name: str) -> IndexEntry:
    check_version(record["_VERSION"], INDEX_MANIFEST_VERSION, "index manifest", name)
    required = [record[key] for key in _REQUIRED]
    if (
        record["_KIND"] not in (0, 1)
        or any(value is None for value in required)
        or len(record["_PARTITION"]) < 12
        or not -2 <= record["_BUCKET"] < 2**31
        or record["_FILE_SIZE"] < 0
    ):
        raise FormatError(
            f"{name}: expected the metadata of an index file, found kind {record['_KIND']} and {required}. The index "
            "manifest is corrupt; restore it from a copy."
        )
    ranges = record.get("_DELETIONS_VECTORS_RANGES")
    return IndexEntry(
        kind=EntryKind(record["_KIND"]),
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        index_type=record["_INDEX_TYPE"],
        file_name=check_file_name(record["_FILE_NAME"], name),
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        deletion_vectors=None if ranges is None else tuple(_range(item, record["_FILE_SIZE"], name) for item in ranges),
        external_path=record.get("_EXTERNAL_PATH"),
        global_index=_global(record.get("_GLOBAL_INDEX"), name),
    )


def _range(record: Mapping[str, Any] | None, file_size: int, name: str) -> DeletionVectorRange:
    found: list[Any] = [None] * 3 if record is None else [record["f0"], record["f1"], record["f2"]]
    if record is None or None in found or found[1] < 0 or found[2] < 0 or found[1] + found[2] > file_size:
        raise FormatError(
            f"{name}: expected a deletion vector within an index file of {file_size} bytes, found {found}. The index "
            "manifest is corrupt; restore it from a copy."
        )
    return DeletionVectorRange(
        data_file=check_file_name(found[0], name),
        offset=found[1],
        length=found[2],
        cardinality=record.get("_CARDINALITY"),
    )


def _global(record: Mapping[str, Any] | None, name: str) -> GlobalIndexMeta | None:
    if record is None:
        return None
    numbers = [record["_ROW_RANGE_START"], record["_ROW_RANGE_END"], record["_INDEX_FIELD_ID"]]
    if None in numbers:
        raise FormatError(f"{name}: expected a row range and a field id of an index, found {numbers}. Restore it.")
    extra = record.get("_EXTRA_FIELD_IDS")
    return GlobalIndexMeta(
        row_range_start=numbers[0],
        row_range_end=numbers[1],
        index_field_id=numbers[2],
        extra_field_ids=None if extra is None else tuple(extra),
        index_meta=record.get("_INDEX_META"),
        source_meta=record.get("_SOURCE_META"),
    )
