"""Index manifests: the complete list of a snapshot's index files (deletion vectors, hash indexes, others).

An Avro container with one record per index file. A snapshot that changes none inherits the name of the last one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import CODEC, read_container, write_container
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.manifest.records import RECORD_NAME, RecordFormat, StoredColumn, as_list, as_tuple
from tablestore.format.paths import check_file_name, verify_content_name

# Stored, never renumbered or renamed.
INDEX_MANIFEST_VERSION = 1
DELETION_VECTORS = "DELETION_VECTORS"
HASH = "HASH"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorRange:
    """The place of one data file's vector in the index file: ``offset`` is that of its size field, ``length`` the
    bytes of its payload; see :mod:`tablestore.format.index.deletionvector`."""

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalIndexMeta:
    """Metadata of an index over row ids: kept when a list is written again, otherwise unused."""

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


_RANGE = RecordFormat(
    f"{RECORD_NAME}__DELETIONS_VECTORS_RANGES",
    (
        StoredColumn("f0", "data_file", "string"),
        StoredColumn("f1", "offset", "int"),
        StoredColumn("f2", "length", "int"),
        StoredColumn("_CARDINALITY", "cardinality", "long", optional=True),
    ),
)
_GLOBAL = RecordFormat(
    f"{RECORD_NAME}__GLOBAL_INDEX",
    (
        StoredColumn("_ROW_RANGE_START", "row_range_start", "long"),
        StoredColumn("_ROW_RANGE_END", "row_range_end", "long"),
        StoredColumn("_INDEX_FIELD_ID", "index_field_id", "int"),
        StoredColumn(
            "_EXTRA_FIELD_IDS", "extra_field_ids", {"type": "array", "items": "int"}, optional=True, write=as_list, read=as_tuple
        ),
        StoredColumn("_INDEX_META", "index_meta", "bytes", optional=True),
        StoredColumn("_SOURCE_META", "source_meta", "bytes", optional=True),
    ),
)


def _write_ranges(ranges: tuple[DeletionVectorRange, ...] | None) -> list[dict[str, Any]] | None:
    return None if ranges is None else [_RANGE.encode(deletion_range) for deletion_range in ranges]


def _read_ranges(records: list[dict[str, Any] | None] | None, name: str) -> tuple[DeletionVectorRange, ...] | None:
    return None if records is None else tuple(DeletionVectorRange(**_RANGE.decode(record or {}, name)) for record in records)


def _write_global(index: GlobalIndexMeta | None) -> dict[str, Any] | None:
    return None if index is None else _GLOBAL.encode(index)


def _read_global(record: dict[str, Any] | None, name: str) -> GlobalIndexMeta | None:
    if record is None:
        return None
    index = GlobalIndexMeta(**_GLOBAL.decode(record, name))
    numbers = [index.row_range_start, index.row_range_end, index.index_field_id]
    if None in numbers:
        raise FormatError(f"{name}: expected a row range and a field id of an index, found {numbers}. Restore it.")
    return index


_RANGES: dict[str, object] = {"type": "array", "items": ["null", _RANGE.schema]}
_RECORD = RecordFormat(
    RECORD_NAME,
    (
        StoredColumn("_KIND", "kind", "int", write=int),
        StoredColumn("_PARTITION", "partition", "bytes"),
        StoredColumn("_BUCKET", "bucket", "int"),
        StoredColumn("_INDEX_TYPE", "index_type", "string"),
        StoredColumn("_FILE_NAME", "file_name", "string"),
        StoredColumn("_FILE_SIZE", "file_size", "long"),
        StoredColumn("_ROW_COUNT", "row_count", "long"),
        StoredColumn(
            "_DELETIONS_VECTORS_RANGES", "deletion_vectors", _RANGES, optional=True, write=_write_ranges, read=_read_ranges
        ),
        StoredColumn("_EXTERNAL_PATH", "external_path", "string", optional=True),
        StoredColumn("_GLOBAL_INDEX", "global_index", _GLOBAL.schema, optional=True, write=_write_global, read=_read_global),
    ),
    version=INDEX_MANIFEST_VERSION,
    what="index manifest",
)


def encode_index_manifest(entries: Iterable[IndexEntry], nonce: bytes, *, codec: str = CODEC) -> bytes:
    """The file's bytes; the same entries and nonce give the same bytes."""
    records = [_RECORD.encode(entry) for entry in entries]
    return write_container(records, _RECORD.schema, nonce=nonce, codec=codec, what="the index manifest")


def decode_index_manifest(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[IndexEntry, ...]:
    """The index files in stored order. Raises FormatError (kind ``too-new`` for another version); our files are checked by
    their names.
    """
    verify_content_name(name, data)
    records = read_container(data, name=name, limits=limits, expected=_RECORD.schema)
    return tuple(_from_record(record, name) for record in records)


def _from_record(record: dict[str, Any], name: str) -> IndexEntry:
    values = _RECORD.decode(record, name)
    required = [values[key] for key in ("partition", "bucket", "index_type", "file_name", "file_size", "row_count")]
    if (
        values["kind"] not in (0, 1)
        or any(value is None for value in required)
        or len(values["partition"]) < 12
        or not -2 <= values["bucket"] < 2**31
        or values["file_size"] < 0
    ):
        raise FormatError(
            f"{name}: expected the metadata of an index file, found kind {values['kind']} and {required}. The index "
            "manifest is corrupt; restore it from a copy."
        )
    entry = IndexEntry(**{**values, "kind": EntryKind(values["kind"])})
    check_file_name(entry.file_name, name)
    for vector in entry.deletion_vectors or ():
        _check_range(vector, entry.file_size, name)
    return entry


def _check_range(vector: DeletionVectorRange, file_size: int, name: str) -> None:
    values = [vector.data_file, vector.offset, vector.length]
    if None in values or vector.offset < 0 or vector.length < 0 or vector.offset + vector.length > file_size:
        raise FormatError(
            f"{name}: expected a deletion vector within an index file of {file_size} bytes, found {values}. The index "
            "manifest is corrupt; restore it from a copy."
        )
    check_file_name(vector.data_file, name)
