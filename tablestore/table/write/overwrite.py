"""Overwrites rows: whole tables, given partitions, or the partitions that the new rows fall into.

Every round of the commit deletes the files that the newest snapshot has, so rows that others added to an overwritten partition
meanwhile are replaced too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.table.write.committing import Origin, commit_message, overwriting
from tablestore.table.write.inputrows import schema_and_tables
from tablestore.table.write.writer import TableWriter
from tablestore.types.arrowtypes import scalar_of, to_arrow_type
from tablestore.types.partitionspec import partition_values
from tablestore.types.schema import TableSchema

Matches = Callable[[bytes], bool]


def overwrite(
    context: TableContext,
    log: ChangeLog,
    rows: Any,
    partition: Mapping[str, Any] | None,
    *,
    dynamic: bool | None = None,
    origin: Origin | None = None,
) -> Snapshot | None:
    """Write ``rows`` in place of the rows of the chosen partitions. Raises InvalidInputError for rows outside of them.

    ``dynamic``: of these, only the partitions that the rows fall into; None: what the table's option says, without ``partition``.
    """
    context.check_sees_all("an overwrite")
    static_values = partition_spec(context.schema, partition)
    with TableWriter(context, log, replaces=True) as writer:
        schema, tables = schema_and_tables(rows, lambda: context.schema.arrow_schema)
        if static_values:
            schema, tables = _with_partition_columns(schema, tables, static_values, context.schema)
        writer.write(pa.RecordBatchReader.from_batches(schema, (b for table in tables for b in table.to_batches())))
        message = writer.prepare()
        return commit_overwrite(context, log, message, static_values, origin or Origin(user=context.ids.uuid()), dynamic=dynamic)


def commit_overwrite(
    context: TableContext,
    log: ChangeLog,
    message: CommitMessage,
    static_values: Mapping[str, object] | None,
    origin: Origin,
    *,
    dynamic: bool | None = None,
) -> Snapshot | None:
    """Commit written files as an overwrite; ``static_values``: the partition values given, None for the partitions of the new rows.

    ``dynamic`` as in :func:`overwrite`.
    """
    schema = context.schema
    matches = _matcher(schema, static_values or {})
    try:
        context.check_sees_all("an overwrite")
        _check_inside(schema, message, static_values or {}, matches)
    except (InvalidInputError, UnsupportedError):
        for entry in message.entries:
            context.remove_file(entry)
        raise
    if dynamic is None:
        dynamic = static_values is None and context.settings.dynamic_overwrite
    if dynamic and schema.partition_keys:
        matches = {entry.partition for entry in message.entries}.__contains__

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        live = context.manifests.live_in(latest, lambda place: matches(place[0]))
        return [replace(entry, kind=EntryKind.DELETE) for entry in live]

    return commit_message(context, log, message, overwriting(plan_deletes=plan_deletes, replaces=matches), origin)


def partition_spec(schema: TableSchema, partition: Mapping[str, Any] | None) -> dict[str, object] | None:
    """The wanted partition values as the engine holds them. Raises InvalidInputError."""
    if partition is None:
        return None
    return partition_values(schema, partition)


def _matcher(schema: TableSchema, static_values: Mapping[str, object]) -> Matches:
    types = [field.type for field in schema.partition_fields]
    positions = {name: position for position, name in enumerate(schema.partition_keys)}

    def matches(partition: bytes) -> bool:
        if not static_values:
            return True
        values = decode_row(partition, types)
        return all(values[positions[name]] == value for name, value in static_values.items())

    return matches


def _check_inside(schema: TableSchema, message: CommitMessage, static_values: Mapping[str, object], matches: Matches) -> None:
    types = [field.type for field in schema.partition_fields]
    for entry in message.entries:
        if not matches(entry.partition):
            values = dict(zip(schema.partition_keys, decode_row(entry.partition, types), strict=True))
            raise InvalidInputError(
                f"Trying to overwrite partition {dict(static_values)}, but the changes in {values} does not belong to this "
                "partition; leave these rows out or overwrite their partition too",
                kind="outside-partition",
            )


def _with_partition_columns(
    schema: pa.Schema, tables: Any, static_values: Mapping[str, object], table_schema: TableSchema
) -> tuple[pa.Schema, Any]:
    """Rows of a static partition need not repeat its values: missing columns are filled in."""
    missing = [name for name in static_values if name not in schema.names]
    fields = [pa.field(name, to_arrow_type(table_schema.field(name).type)) for name in missing]

    def filled(table: pa.Table) -> pa.Table:
        for field in fields:
            value = scalar_of(static_values[field.name], field.type)
            table = table.append_column(field, pa.chunked_array([pa.repeat(value, table.num_rows)]))
        return table

    full = schema
    for field in fields:
        full = full.append(field)
    return full, (filled(table) for table in tables)
