"""The kinds of system tables and their columns.

Names and types of columns are Paimon's. Nothing here needs Arrow or an open table: a command line completes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, TypeRoot
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import parse_type

SEPARATOR = "$"
# Behind the separator: a branch, and not a system table.
BRANCH_PREFIX = "branch_"
KIND_COLUMN = "rowkind"

_TIME = "TIMESTAMP(3)"
_STRINGS = {"type": "ARRAY", "element": "STRING"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemKind:
    """A system table of metadata; ``systemrows`` makes its rows. ``travels``: it can be asked about an older snapshot."""

    columns: Mapping[str, object]
    travels: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns, with ids in their order."""
        return tuple(Field(id=i, name=name, type=parse_type(text)) for i, (name, text) in enumerate(self.columns.items()))


_SUMS = {
    "record_count": "BIGINT NOT NULL",
    "file_size_in_bytes": "BIGINT NOT NULL",
    "file_count": "BIGINT NOT NULL",
    "last_update_time": _TIME,
}
METADATA: dict[str, SystemKind] = {
    "snapshots": SystemKind(
        columns={
            "snapshot_id": "BIGINT NOT NULL",
            "schema_id": "BIGINT NOT NULL",
            "commit_user": "STRING NOT NULL",
            "commit_identifier": "BIGINT NOT NULL",
            "commit_kind": "STRING NOT NULL",
            "commit_time": f"{_TIME} NOT NULL",
            "base_manifest_list": "STRING NOT NULL",
            "delta_manifest_list": "STRING NOT NULL",
            "changelog_manifest_list": "STRING",
            "total_record_count": "BIGINT",
            "delta_record_count": "BIGINT",
            "changelog_record_count": "BIGINT",
            "watermark": "BIGINT",
            "next_row_id": "BIGINT",
        },
    ),
    "schemas": SystemKind(
        columns={
            "schema_id": "BIGINT NOT NULL",
            "fields": "STRING NOT NULL",
            "partition_keys": "STRING NOT NULL",
            "primary_keys": "STRING NOT NULL",
            "options": "STRING NOT NULL",
            "comment": "STRING",
            "update_time": f"{_TIME} NOT NULL",
        },
    ),
    "options": SystemKind(columns={"key": "STRING NOT NULL", "value": "STRING NOT NULL"}),
    "manifests": SystemKind(
        travels=True,
        columns={
            "file_name": "STRING NOT NULL",
            "file_size": "BIGINT NOT NULL",
            "num_added_files": "BIGINT NOT NULL",
            "num_deleted_files": "BIGINT NOT NULL",
            "schema_id": "BIGINT NOT NULL",
            "min_partition_stats": "STRING",
            "max_partition_stats": "STRING",
            "min_row_id": "BIGINT",
            "max_row_id": "BIGINT",
        },
    ),
    "files": SystemKind(
        travels=True,
        columns={
            "partition": "STRING",
            "bucket": "INT NOT NULL",
            "file_path": "STRING NOT NULL",
            "file_format": "STRING NOT NULL",
            "schema_id": "BIGINT NOT NULL",
            "level": "INT NOT NULL",
            "record_count": "BIGINT NOT NULL",
            "file_size_in_bytes": "BIGINT NOT NULL",
            "min_key": "STRING",
            "max_key": "STRING",
            "null_value_counts": "STRING NOT NULL",
            "min_value_stats": "STRING NOT NULL",
            "max_value_stats": "STRING NOT NULL",
            "min_sequence_number": "BIGINT",
            "max_sequence_number": "BIGINT",
            "creation_time": _TIME,
            "deleteRowCount": "BIGINT",
            "file_source": "STRING",
            "first_row_id": "BIGINT",
            "write_cols": _STRINGS,
        },
    ),
    "partitions": SystemKind(
        travels=True,
        columns={
            "partition": "STRING",
            **_SUMS,
            "created_at": _TIME,
            "created_by": "STRING",
            "updated_by": "STRING",
            "options": "STRING",
        },
    ),
    "buckets": SystemKind(travels=True, columns={"partition": "STRING", "bucket": "INT NOT NULL", **_SUMS}),
    "tags": SystemKind(
        columns={
            "tag_name": "STRING NOT NULL",
            "snapshot_id": "BIGINT NOT NULL",
            "schema_id": "BIGINT NOT NULL",
            "commit_time": f"{_TIME} NOT NULL",
            "record_count": "BIGINT",
            "create_time": _TIME,
            "time_retained": "STRING",
        },
    ),
    "branches": SystemKind(columns={"branch_name": "STRING NOT NULL", "create_time": f"{_TIME} NOT NULL"}),
    "consumers": SystemKind(columns={"consumer_id": "STRING NOT NULL", "next_snapshot_id": "BIGINT NOT NULL"}),
}
AUDIT_LOG, READ_OPTIMIZED = "audit_log", "ro"
SYSTEM_TABLES = (*METADATA, AUDIT_LOG, READ_OPTIMIZED)


def fields_of(kind: str, schema: TableSchema) -> tuple[Field, ...]:
    """The columns of a system table of a table with this schema. ``kind`` is one of :data:`SYSTEM_TABLES`."""
    if (metadata := METADATA.get(kind)) is not None:
        return metadata.fields
    if kind == READ_OPTIMIZED:
        return schema.fields
    kind_field = Field(id=schema.highest_field_id + 1, name=KIND_COLUMN, type=AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH))
    return (kind_field, *schema.fields)
