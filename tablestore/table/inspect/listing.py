"""Lists the files, partitions and schemas of a table as Arrow tables."""

from collections import defaultdict

import pyarrow as pa

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.partitiontext import partition_label
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.types.typestring import type_to_sql

FILES_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("file_path", pa.string()),
        ("level", pa.int32()),
        ("row_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("schema_id", pa.int64()),
        ("min_sequence_number", pa.int64()),
        ("max_sequence_number", pa.int64()),
        ("delete_row_count", pa.int64()),
        ("creation_time", pa.timestamp("ms")),
    ]
)
PARTITIONS_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("record_count", pa.int64()),
        ("file_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("last_update_time", pa.timestamp("ms")),
    ]
)
SCHEMAS_SCHEMA = pa.schema(
    [
        ("schema_id", pa.int64()),
        ("fields", pa.list_(pa.struct([("id", pa.int32()), ("name", pa.string()), ("type", pa.string())]))),
        ("partition_keys", pa.list_(pa.string())),
        ("primary_keys", pa.list_(pa.string())),
        ("options", pa.map_(pa.string(), pa.string())),
        ("comment", pa.string()),
        ("update_time", pa.timestamp("ms", "UTC")),
    ]
)


def files_table(context: TableContext) -> pa.Table:
    """One row per live data file of the newest snapshot."""
    rows = [
        {
            "partition": _partition_text(context, entry),
            "bucket": entry.bucket,
            "file_path": entry_path(context.paths, entry, context.schema),
            "level": entry.file.level,
            "row_count": entry.file.row_count,
            "file_size_bytes": entry.file.file_size,
            "schema_id": entry.file.schema_id,
            "min_sequence_number": entry.file.min_sequence_number,
            "max_sequence_number": entry.file.max_sequence_number,
            "delete_row_count": entry.file.delete_row_count,
            "creation_time": entry.file.creation_time_millis,
        }
        for entry in context.manifests.live(context.snapshots.latest())
    ]
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def partitions_table(context: TableContext) -> pa.Table:
    """One row per partition of the newest snapshot."""
    groups: dict[bytes, list[ManifestEntry]] = defaultdict(list)
    for entry in context.manifests.live(context.snapshots.latest()):
        groups[entry.partition].append(entry)
    named = sorted(((_partition_text(context, entries[0]), entries) for entries in groups.values()), key=lambda pair: pair[0])
    rows = [
        {
            "partition": name,
            "record_count": sum(entry.file.row_count for entry in entries),
            "file_count": len(entries),
            "file_size_bytes": sum(entry.file.file_size for entry in entries),
            "last_update_time": max((entry.file.creation_time_millis or 0 for entry in entries), default=None),
        }
        for name, entries in named
    ]
    return pa.Table.from_pylist(rows, schema=PARTITIONS_SCHEMA)


def schema_history_table(context: TableContext) -> pa.Table:
    """One row per schema, oldest first."""
    rows = [
        {
            "schema_id": schema.id,
            "fields": [{"id": f.id, "name": f.name, "type": type_to_sql(f.type)} for f in schema.fields],
            "partition_keys": list(schema.partition_keys),
            "primary_keys": list(schema.primary_keys),
            "options": list(schema.options.items()),
            "comment": schema.comment,
            "update_time": schema.time_millis,
        }
        for schema in map(context.schemas.read, context.schemas.ids())
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS_SCHEMA)


def _partition_text(context: TableContext, entry: ManifestEntry) -> str:
    fields = context.schema.partition_fields
    types = [field.type for field in fields]
    values = decode_row(entry.partition, types)
    # For people: a date is a date, whichever way the directories are spelt.
    return partition_label(context.schema.partition_keys, types, values, context.settings.default_partition)


def partition_values(context: TableContext) -> tuple[tuple[str, dict[str, object]], ...]:
    """The partitions of the newest snapshot: as SQL spells them, and their values by column."""
    schema, settings = context.schema, context.settings
    types = [field.type for field in schema.partition_fields]
    named_values: list[tuple[str, dict[str, object]]] = []
    for partition in {entry.partition for entry in context.manifests.live(context.snapshots.latest())}:
        values = decode_row(partition, types)
        name = partition_label(schema.partition_keys, types, values, settings.default_partition)
        named_values.append((name, dict(zip(schema.partition_keys, values, strict=True))))
    return tuple(sorted(named_values, key=lambda pair: pair[0]))
