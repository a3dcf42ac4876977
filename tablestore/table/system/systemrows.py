"""Computes the rows of system tables: snapshots, schemas, options, manifests, files, references.

One function a table: the open table and the snapshot that is asked about in, rows out. Columns and types are Paimon's.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tablestore.errors import UnsupportedError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.parquet.casts import convert
from tablestore.format.paths import SCHEMA_DIR, file_format_of
from tablestore.format.snapshot import Snapshot
from tablestore.format.stats import ColumnStats, decode_stats
from tablestore.options import is_table_option
from tablestore.redaction import shown_options
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.filesums import FileSums, summed_files
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.references import branch_directories
from tablestore.store.history.tags import Tags
from tablestore.table.system.systemtext import (
    duration_text,
    key_text,
    local_time,
    named_text,
    partition_text,
    row_text,
    stored_time,
    value_text,
)
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import AtomicType, Field
from tablestore.types.evolution.widening import is_same
from tablestore.types.typestring import field_to_json

Rows = Iterator[dict[str, Any]]
BATCH_ENTRIES = 10_000
FILE_SOURCES = {0: "APPEND", 1: "COMPACT"}


def snapshots(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per retained snapshot, oldest first."""
    for snapshot in context.snapshots.stream():
        yield {
            "snapshot_id": snapshot.id,
            "schema_id": snapshot.schema_id,
            "commit_user": snapshot.commit_user,
            "commit_identifier": snapshot.commit_identifier,
            "commit_kind": str(snapshot.commit_kind),
            "commit_time": local_time(snapshot.time_millis),
            "base_manifest_list": snapshot.base_manifest_list,
            "delta_manifest_list": snapshot.delta_manifest_list,
            "changelog_manifest_list": snapshot.changelog_manifest_list,
            "total_record_count": snapshot.total_record_count,
            "delta_record_count": snapshot.delta_record_count,
            "changelog_record_count": snapshot.changelog_record_count,
            "watermark": snapshot.watermark,
            "next_row_id": snapshot.next_row_id,
        }


def schemas(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per schema, oldest first; lists and maps as JSON."""
    for schema in map(context.schemas.read, context.schemas.ids()):
        yield {
            "schema_id": schema.id,
            "fields": _json([field_to_json(field) for field in schema.fields]),
            "partition_keys": _json(schema.partition_keys),
            "primary_keys": _json(schema.primary_keys),
            "options": _json(shown_options(schema.options, is_table_option)),
            "comment": schema.comment,
            "update_time": local_time(schema.time_millis),
        }


def options(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per option that is set; the value of one that nobody knows, which another engine stored, may be a secret."""
    for key, value in sorted(shown_options(context.schema.options, is_table_option).items()):
        yield {"key": key, "value": value}


def manifests(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per manifest of the snapshot, those of its changelog behind the others."""
    fields, store = context.schema.partition_fields, context.manifests
    listed = list(store.all_manifests(at)) if at is not None else []
    if at is not None and at.changelog_manifest_list is not None:
        listed += store.read_list(at.changelog_manifest_list)
    for manifest in listed:
        stats = manifest.partition_stats
        yield {
            "file_name": manifest.file_name,
            "file_size": manifest.file_size,
            "num_added_files": manifest.num_added,
            "num_deleted_files": manifest.num_deleted,
            "schema_id": manifest.schema_id,
            "min_partition_stats": row_text(stats.min_values, fields),
            "max_partition_stats": row_text(stats.max_values, fields),
            "min_row_id": manifest.min_row_id,
            "max_row_id": manifest.max_row_id,
        }


def files(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per live data file of the snapshot, with its statistics as the newest columns see them. Memory: the columns of the
    entries, about 350 bytes each, and the objects of some of them."""
    fields, keys = context.schema.partition_fields, context.schema.key_fields
    for entry in _ordered(context.manifests.live_columns(at, ENTRY_SCHEMA.names)):
        file = entry.file
        statistics = column_statistics(context, file)
        yield {
            "partition": row_text(entry.partition, fields),
            "bucket": entry.bucket,
            "file_path": f"{context.files.root_uri}/{entry_path(context.paths, entry, context.schema)}",
            "file_format": file_format_of(file.file_name),
            "schema_id": file.schema_id,
            "level": file.level,
            "record_count": file.row_count,
            "file_size_in_bytes": file.file_size,
            "min_key": key_text(file.min_key, keys),
            "max_key": key_text(file.max_key, keys),
            "null_value_counts": named_text({name: _or_null(stats.null_count) for name, (_, stats) in statistics.items()}),
            "min_value_stats": named_text({n: value_text(s.min, f.type, cast=False) for n, (f, s) in statistics.items()}),
            "max_value_stats": named_text({n: value_text(s.max, f.type, cast=False) for n, (f, s) in statistics.items()}),
            "min_sequence_number": file.min_sequence_number,
            "max_sequence_number": file.max_sequence_number,
            "creation_time": stored_time(file.creation_time_millis),
            "deleteRowCount": file.delete_row_count,
            "file_source": None if file.file_source is None else FILE_SOURCES.get(int(file.file_source)),
            "first_row_id": file.first_row_id,
            "write_cols": None if file.write_cols is None else list(file.write_cols),
        }


def partitions(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per partition with data; rows are counted before merging."""
    fields, default_name = context.schema.partition_fields, context.settings.default_partition
    for sums in summed_files(context.manifests, at, "partition"):
        empty = dict.fromkeys(("created_at", "created_by", "updated_by", "options"))
        yield {"partition": partition_text(sums.group[0], fields, default_name), **_sums(sums), **empty}


def buckets(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per bucket with data."""
    for sums in summed_files(context.manifests, at, "partition", "bucket"):
        partition, bucket = sums.group
        yield {"partition": row_text(partition, context.schema.partition_fields), "bucket": bucket, **_sums(sums)}


def tags(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per tag."""
    for tag in Tags(context.files).all():
        created, retained = tag.create_time_millis, tag.retained_millis
        yield {
            "tag_name": tag.name,
            "snapshot_id": tag.snapshot.id,
            "schema_id": tag.snapshot.schema_id,
            "commit_time": local_time(tag.snapshot.time_millis),
            "record_count": tag.snapshot.total_record_count,
            "create_time": None if created is None else local_time(created),
            "time_retained": None if retained is None else duration_text(retained),
        }


def branches(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per branch besides main; created when its first schema was."""
    for name in sorted(branch_directories(context.main_files)):
        # A branch is there once its first schema is.
        for info in branch_files(context.main_files, name).list(SCHEMA_DIR, prefix="schema-0"):
            if info.name == "schema-0":
                yield {"branch_name": name, "create_time": local_time(info.modified_ms)}


def consumers(context: TableContext, at: Snapshot | None) -> Rows:
    """One row per consumer, with the snapshot that it reads next."""
    for consumer in Consumers(context.files).all():
        yield {"consumer_id": consumer.id, "next_snapshot_id": consumer.next_snapshot}


ROWS: Mapping[str, Callable[[TableContext, Snapshot | None], Rows]] = {
    "snapshots": snapshots,
    "schemas": schemas,
    "options": options,
    "manifests": manifests,
    "files": files,
    "partitions": partitions,
    "buckets": buckets,
    "tags": tags,
    "branches": branches,
    "consumers": consumers,
}
"""The functions that make the rows of system tables, by name."""


# -- helpers


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _or_null(count: int | None) -> str:
    return "null" if count is None else str(count)


def _ordered(live: EntryColumns) -> Iterator[ManifestEntry]:
    """The entries by partition, bucket, level and name; some at a time are made objects."""
    order = live.by_place()
    for start in range(0, len(order), BATCH_ENTRIES):
        yield from live.take(order[start : start + BATCH_ENTRIES]).entries()


def _sums(sums: FileSums) -> dict[str, Any]:
    return {
        "record_count": sums.rows,
        "file_size_in_bytes": sums.size_bytes,
        "file_count": sums.files,
        "last_update_time": stored_time(sums.newest_millis),
    }


def column_statistics(context: TableContext, file: DataFileMeta) -> dict[str, tuple[Field, ColumnStats]]:
    """The statistics of each newest column in a file, found by field id and read as the newest type."""
    written = context.schemas.read(file.schema_id).fields
    by_name = {field.name: field for field in written}
    names = file.value_stats_cols if file.value_stats_cols is not None else tuple(by_name)
    columns = [by_name[name] for name in names if name in by_name]
    stats = decode_stats(file.value_stats, [field.type for field in columns])
    stats_by_id = {field.id: (field, column_stats) for field, column_stats in zip(columns, stats, strict=False)}
    ids = {field.id for field in written}
    result = {}
    for field in context.schema.fields:
        if field.id not in ids:
            column_stats = ColumnStats(null_count=file.row_count)
        elif field.id in stats_by_id:
            column_stats = _as_type(*stats_by_id[field.id], field)
        else:
            column_stats = ColumnStats()
        result[field.name] = (field, column_stats)
    return result


def _as_type(old: Field, stats: ColumnStats, new: Field) -> ColumnStats:
    if is_same(old.type, new.type) or not isinstance(old.type, AtomicType) or not isinstance(new.type, AtomicType):
        return stats
    try:
        bounds = pa.array([stats.min, stats.max], to_arrow_type(old.type))
        low, high = convert(bounds, old.type, new.type).to_pylist()
    except (UnsupportedError, pa.ArrowException):
        # Another engine changed the type in a way that we do not follow: what is known of the file stays readable.
        return ColumnStats(null_count=stats.null_count)
    return ColumnStats(min=low, max=high, null_count=stats.null_count)
