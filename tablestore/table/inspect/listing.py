"""Lists the files, partitions and schemas of a table as Arrow tables."""

import numpy as np
import pyarrow as pa

from tablestore.format.binaryrow import decode_row
from tablestore.format.partitiontext import partition_label
from tablestore.store.context import TableContext
from tablestore.store.datapaths import file_paths
from tablestore.store.filesums import summed_files
from tablestore.types.arrays import places_array, text_array
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
    """One row per live data file of the newest snapshot, by partition, bucket, level and name. Memory: its rows, about 300 bytes
    each, twice; no object for a file."""
    context.check_sees_all("a list of its files")
    stored = {"file_size_bytes": "file_size", "creation_time": "creation_time_millis"}
    numbers = {name: stored.get(name, name) for name in FILES_SCHEMA.names if name not in ("partition", "file_path")}
    live = context.manifests.live_columns(context.snapshots.latest(), ("partition", "file_name", *numbers.values()))
    live = live.take(live.by_place())
    partitions, which = live.groups("partition")
    names = text_array([_partition_text(context, partition) for (partition,) in partitions])
    columns = {
        "partition": names.take(places_array(which)),
        "file_path": file_paths(context.paths, live, context.schema),
        **{name: live.column(column).cast(FILES_SCHEMA.field(name).type) for name, column in numbers.items()},
    }
    return pa.Table.from_arrays([columns[name] for name in FILES_SCHEMA.names], schema=FILES_SCHEMA)


def partitions_table(context: TableContext) -> pa.Table:
    """One row per partition of the newest snapshot. Memory: three numbers for each live file, and its name."""
    context.check_sees_all("a list of its partitions")
    sums_of = summed_files(context.manifests, context.snapshots.latest(), "partition")
    rows = [
        (_partition_text(context, sums.group[0]), sums.rows, sums.files, sums.size_bytes, sums.newest_millis or 0)
        for sums in sums_of
    ]
    rows.sort()
    texts, *numbers = zip(*rows, strict=True) if rows else ((),) * len(PARTITIONS_SCHEMA)
    columns = [text_array(texts), *(places_array(np.array(values, np.int64)) for values in numbers)]
    typed = [column.cast(field.type) for column, field in zip(columns, PARTITIONS_SCHEMA, strict=True)]
    return pa.Table.from_arrays(typed, schema=PARTITIONS_SCHEMA)


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


def _partition_text(context: TableContext, partition: bytes) -> str:
    fields = context.schema.partition_fields
    types = [field.type for field in fields]
    # For people: a date is a date, whichever way the directories are spelt.
    return partition_label(context.schema.partition_keys, types, decode_row(partition, types), context.settings.default_partition)


def partition_values(context: TableContext) -> tuple[tuple[str, dict[str, object]], ...]:
    """The partitions of the newest snapshot: as SQL spells them, and their values by column."""
    context.check_sees_all("a list of its partitions")
    schema, settings = context.schema, context.settings
    types = [field.type for field in schema.partition_fields]
    named_values: list[tuple[str, dict[str, object]]] = []
    live = context.manifests.live_columns(context.snapshots.latest(), ("partition",))
    for (partition,) in live.groups("partition")[0]:
        values = decode_row(partition, types)
        name = partition_label(schema.partition_keys, types, values, settings.default_partition)
        named_values.append((name, dict(zip(schema.partition_keys, values, strict=True))))
    return tuple(sorted(named_values, key=lambda pair: pair[0]))
