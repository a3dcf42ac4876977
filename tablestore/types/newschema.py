"""Builds and checks the schema of a new table.

:func:`new_schema` makes the schema of a new table, and :func:`check_schema` refuses what some engine could not read; both name
what is wrong. Schemas of other writers are not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import Names, names_of
from tablestore.options import (
    BUCKET,
    BUCKET_KEY,
    CLUSTERING_COLUMNS,
    CLUSTERING_INCREMENTAL,
    CLUSTERING_RANGES,
    PARTITION_LEGACY_NAME,
    TableOptions,
    validate_options,
)
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import (
    BINARY_ROOTS,
    TIMESTAMP_ROOTS,
    AtomicType,
    Field,
    TypeRoot,
    row_types,
    with_new_ids,
    with_nullable,
)
from tablestore.types.defaults import default_scalar
from tablestore.types.partitionspec import partition_time
from tablestore.types.rowkind import ROW_BEFORE_COLUMN, ROW_KIND_COLUMN
from tablestore.types.rowposition import POSITION_COLUMNS
from tablestore.types.schema import DYNAMIC_BUCKET, KEY_PREFIX, POSTPONE_BUCKET, TableSchema, check_known
from tablestore.types.typestring import type_to_sql

SYSTEM_COLUMNS = frozenset(
    {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID", ROW_KIND_COLUMN, ROW_BEFORE_COLUMN, *POSITION_COLUMNS}
)


def new_schema(
    *,
    schema: pa.Schema | tuple[Field, ...],
    primary_key: Names = (),
    partition_by: Names = (),
    options: Mapping[str, str] | None = None,
    comment: str | None = None,
    time_millis: int = 0,
) -> TableSchema:
    """Schema 0 of a new table, checked; primary key columns become NOT NULL.

    ``schema``: an Arrow schema, or columns with all that they have (comments, defaults), whose ids count for nothing.
    ``bucket`` is always written out (1 with a primary key, -1 without), because an absent one means something
    else to other engines; keyed tables get ``data-file.thin-mode``. Raises InvalidInputError or UnsupportedError.
    """
    keys, partitions = _names(primary_key, "primary key"), _names(partition_by, "partitioning")
    fields, highest_field_id = _numbered(schema)
    _check_nested_names(fields)
    for field in fields:
        default_scalar(field)
    fields = tuple(replace(field, type=with_nullable(field.type, False)) if field.name in keys else field for field in fields)
    settled = _with_defaults(options or {}, keyed=bool(keys))
    validate_options(settled)
    table_schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=highest_field_id,
        partition_keys=partitions,
        primary_keys=keys,
        options=settled,
        comment=comment,
        time_millis=time_millis,
    )
    check_schema(table_schema)
    return table_schema


def _numbered(schema: pa.Schema | tuple[Field, ...]) -> tuple[tuple[Field, ...], int]:
    if isinstance(schema, pa.Schema):
        _check_column_names(schema.names)
        return fields_from_arrow(schema)
    _check_column_names([field.name for field in schema])
    ids = count()
    fields = tuple(replace(field, id=next(ids), type=with_new_ids(field.type, lambda: next(ids))) for field in schema)
    return fields, next(ids) - 1


def check_schema(schema: TableSchema) -> None:
    """Refuse what some engine could not read, or expiry: names, keys, buckets, times of partitions.

    Raises InvalidInputError or UnsupportedError.
    """
    _check_column_names(schema.field_names)
    _check_nested_names(schema.fields)
    _check_keys(schema)
    _check_buckets(schema)
    _check_clustering(schema)
    if schema.partition_keys:
        partition_time(TableOptions(schema.options), schema.partition_keys)


def _with_defaults(options: Mapping[str, str], *, keyed: bool) -> dict[str, str]:
    settled = dict(options)
    settled.setdefault(BUCKET.key, default_bucket(keyed=keyed))
    if keyed:
        settled.setdefault("data-file.thin-mode", "true")
    return settled


def default_bucket(*, keyed: bool) -> str:
    """The option ``bucket`` of a table that is made without it."""
    return "1" if keyed else "-1"


def _names(names: Names, role: str) -> tuple[str, ...]:
    column_names = names_of(names)
    if twice := _duplicates(column_names):
        raise InvalidInputError(f"the {role} names {', '.join(twice)} more than once")
    return column_names


def _duplicates(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))  # type: ignore[func-returns-value]


def _check_column_names(names: Sequence[str]) -> None:
    if not names:
        raise InvalidInputError("a table needs at least one column, found none")
    if twice := _duplicates(names):
        raise InvalidInputError(f"duplicate column names: {', '.join(twice)}; rename them", kind="duplicate-column")
    for name in names:
        check_column_name(name)


def check_column_name(name: str) -> None:
    """Raise InvalidInputError for a name that no column of a table may have."""
    if not name or name.isspace():
        raise InvalidInputError(f"expected a column name, found {name!r}")
    if name.startswith(KEY_PREFIX) or name in SYSTEM_COLUMNS:
        raise InvalidInputError(
            f"the column name {name!r} is reserved (names starting with {KEY_PREFIX}, and "
            f"{', '.join(sorted(SYSTEM_COLUMNS))}); choose another name"
        )


def _check_nested_names(fields: Iterable[Field]) -> None:
    for field in fields:
        text = type_to_sql(field.type)
        for row in row_types(field.type):
            names = [part.name for part in row.fields]
            if not names or _duplicates(names):
                raise InvalidInputError(f"column {field.name!r} holds a ROW without fields or with duplicate field names: {text}")


def _check_keys(schema: TableSchema) -> None:
    keys, partitions = schema.primary_keys, schema.partition_keys
    for names, role in ((keys, "primary key"), (partitions, "partitioning")):
        check_known(schema, names, role)
        _check_atomic(schema, names, role)
    if len(partitions) == len(schema.fields):
        raise InvalidInputError(f"partitioning by all columns ({', '.join(partitions)}) leaves no data; drop one")
    if keys and not set(partitions) <= set(keys):
        raise InvalidInputError(f"Primary key constraint {list(keys)} should include all partition fields {list(partitions)}")
    if keys and not schema.trimmed_primary_keys:
        raise InvalidInputError(
            f"Primary key constraint {list(keys)} should not be same with partition fields {list(partitions)}, "
            "this will result in only one record in a partition"
        )
    _check_wide_nulls(schema, partitions, "partition column")
    _check_partition_names(schema)


def _check_partition_names(schema: TableSchema) -> None:
    if not TableOptions(schema.options).flag(PARTITION_LEGACY_NAME):
        return
    for field in schema.partition_fields:
        if isinstance(field.type, AtomicType) and field.type.root in BINARY_ROOTS:
            raise UnsupportedError(
                f"the partition column {field.name!r} of type {type_to_sql(field.type)} gives its directories no stable name; set "
                f"{PARTITION_LEGACY_NAME.key!r} to 'false', or choose another type",
                kind="unsupported",
            )


def _check_buckets(schema: TableSchema) -> None:
    bucket = int(schema.options["bucket"])
    named = TableOptions(schema.options).names(BUCKET_KEY)
    if bucket == 0 or bucket < POSTPONE_BUCKET:
        raise InvalidInputError(
            f"expected option bucket to be a positive number, {DYNAMIC_BUCKET} or {POSTPONE_BUCKET}, found {bucket}"
        )
    if bucket == POSTPONE_BUCKET and not schema.is_keyed:
        raise InvalidInputError(f"bucket={POSTPONE_BUCKET} needs a primary key; use bucket=-1 for append tables")
    if bucket < 0 and named:
        raise InvalidInputError(f"bucket={bucket} forbids bucket-key (found {', '.join(named)}); give a bucket number")
    if bucket > 0 and not schema.is_keyed and not named:
        raise InvalidInputError(
            f"bucket={bucket} on a table without primary key needs the option bucket-key; "
            "name the columns to hash, or use bucket=-1"
        )
    if twice := _duplicates(named):
        raise InvalidInputError(f"the option bucket-key names {', '.join(twice)} more than once")
    check_known(schema, named, "option bucket-key")
    _check_atomic(schema, named, "option bucket-key")
    if inside := sorted(set(named) & set(schema.partition_keys)):
        raise InvalidInputError(f"bucket-key must not contain partition columns, found {', '.join(inside)}")
    if schema.is_keyed and not set(named) <= set(schema.primary_keys):
        outside = [name for name in named if name not in schema.primary_keys]
        raise InvalidInputError(
            f"bucket-key must be part of the primary key ({', '.join(schema.primary_keys)}), "
            f"found {', '.join(outside)}: else rows of one key could land in two buckets"
        )
    if bucket > 0:
        _check_wide_nulls(schema, schema.bucket_keys, "bucket-key column")
        _check_bucket_function(schema)


def check_cluster_columns(schema: TableSchema, names: Sequence[str], role: str) -> None:
    """Refuses columns that rows of the table cannot be ordered by. ``role``: what names them. Raises InvalidInputError."""
    if schema.is_keyed or int(schema.options.get("bucket", DYNAMIC_BUCKET)) > 0:
        raise InvalidInputError(
            f"the {role} orders rows of append tables without buckets (bucket = -1): "
            f"{'rows of a keyed table lie in the order of its key' if schema.is_keyed else 'rows of a bucket stay in their order'}",
            kind="invalid-option",
        )
    check_known(schema, names, role)
    if twice := _duplicates(names):
        raise InvalidInputError(f"the {role} names {', '.join(twice)} more than once", kind="invalid-option")
    if inside := [name for name in names if name in schema.partition_keys]:
        raise InvalidInputError(
            f"the {role} must not contain partition columns, which are the same in all rows of a partition; found "
            f"{', '.join(inside)}",
            kind="invalid-option",
        )
    for name in names:
        if not isinstance(schema.field(name).type, AtomicType):
            raise InvalidInputError(
                f"the {role} names {name!r} of type {type_to_sql(schema.field(name).type)}; rows cannot be ordered by nested types",
                kind="invalid-option",
            )


def _check_clustering(schema: TableSchema) -> None:
    options = TableOptions(schema.options)
    names = options.names(CLUSTERING_COLUMNS)
    if names:
        check_cluster_columns(schema, names, f"option {CLUSTERING_COLUMNS.key}")
    elif options.flag(CLUSTERING_INCREMENTAL):
        raise InvalidInputError(
            f"{CLUSTERING_INCREMENTAL.key} = true needs the option {CLUSTERING_COLUMNS.key}: the columns that rows are ordered by",
            kind="invalid-option",
        )
    elif CLUSTERING_RANGES.key in schema.options:
        raise InvalidInputError(
            f"{CLUSTERING_RANGES.key} needs the option {CLUSTERING_COLUMNS.key}: the columns whose ranges the files have",
            kind="invalid-option",
        )


def _check_bucket_function(schema: TableSchema) -> None:
    function, keys = schema.options.get("bucket-function.type", "default").lower(), schema.bucket_keys
    if function != "mod":
        return
    roots = [field.type.root for name in keys if isinstance((field := schema.field(name)).type, AtomicType)]
    if len(keys) != 1 or roots[0] not in (TypeRoot.INT, TypeRoot.BIGINT):
        raise InvalidInputError(
            f"bucket-function.type=mod needs exactly one bucket-key column of type INT or BIGINT, "
            f"found {', '.join(f'{name} {type_to_sql(schema.field(name).type)}' for name in keys)}"
        )


def _check_atomic(schema: TableSchema, names: Sequence[str], role: str) -> None:
    for name in names:
        field = schema.field(name)
        if not isinstance(field.type, AtomicType):
            raise UnsupportedError(
                f"the {role} names {name!r} of type {type_to_sql(field.type)}; keys must not be nested types",
                kind="unsupported-key",
            )


def _check_wide_nulls(schema: TableSchema, names: Sequence[str], role: str) -> None:
    """Engines disagree on the bytes of a null in these types, and so on bucket and partition identity."""
    for name in names:
        data_type = schema.field(name).type
        if not isinstance(data_type, AtomicType) or not data_type.nullable:
            continue
        precision = data_type.precision or 0
        wide_decimal = data_type.root is TypeRoot.DECIMAL and precision > 18
        wide_time = data_type.root in TIMESTAMP_ROOTS and precision > 3
        if wide_decimal or wide_time:
            raise InvalidInputError(
                f"the {role} {name!r} of type {type_to_sql(data_type)} must be NOT NULL: engines store a null of "
                "DECIMAL(p > 18) and TIMESTAMP(p > 3) differently; make it NOT NULL or choose a narrower type"
            )
