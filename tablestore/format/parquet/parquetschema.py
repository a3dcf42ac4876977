"""Builds the Parquet schema of a table's data files (table-format specification, "Data files").

    keyed table    [_KEY_<k> …]  _SEQUENCE_NUMBER  _VALUE_KIND  <all table columns>      (thin: without _KEY_)
    append table   <all table columns>

Field ids are stored and never renumbered: a column's own id; ``_KEY_x`` 1073741823 + id; array elements and map values
536870911 + 1024 * id + depth, map keys 536870911 - 1024 * id - depth, counted from the column (or row field) above them. The
value and the metadata of a VARIANT have the ids 0 and 1, beside columns of these ids.
"""

import pyarrow as pa

from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import (
    ArrayType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VariantType,
    as_map,
    as_row,
    with_nullable,
)
from tablestore.types.schema import KEY_PREFIX, TableSchema

SEQUENCE_COLUMN = "_SEQUENCE_NUMBER"
KIND_COLUMN = "_VALUE_KIND"

_KEY_ID_BASE = 1073741823
_NESTED_ID_BASE = 536870911
_SEQUENCE_ID = 2147483646
_KIND_ID = 2147483645
_ID_KEY = b"PARQUET:field_id"


def file_schema(schema: TableSchema, *, thin: bool) -> pa.Schema:
    """The Arrow schema of a table's data files, with field ids; ``thin`` leaves the ``_KEY_`` columns out."""
    columns = [_column(field.name, field.type, field.id, field.type.nullable) for field in schema.fields]
    if not schema.is_keyed:
        return pa.schema(columns)
    keys = [
        _column(KEY_PREFIX + field.name, field.type, _KEY_ID_BASE + field.id, field.type.nullable)
        for field in ([] if thin else schema.key_fields)
    ]
    return pa.schema(
        [
            *keys,
            pa.field(SEQUENCE_COLUMN, pa.int64(), nullable=False, metadata=_id(_SEQUENCE_ID)),
            pa.field(KIND_COLUMN, pa.int8(), nullable=False, metadata=_id(_KIND_ID)),
            *columns,
        ]
    )


def field_id_of(field: pa.Field) -> int | None:
    """The Parquet field id in an Arrow field's metadata."""
    text = (field.metadata or {}).get(_ID_KEY)
    return None if text is None else int(text)


def _column(name: str, data_type: DataType, field_id: int, nullable: bool) -> pa.Field:
    return pa.field(name, _with_ids(data_type, field_id, 0), nullable=nullable, metadata=_id(field_id))


def _with_ids(data_type: DataType, field_id: int, depth: int) -> pa.DataType:
    """The canonical Arrow type, with a field id on every part."""
    inside = depth + 1
    below, above = _NESTED_ID_BASE - 1024 * field_id - inside, _NESTED_ID_BASE + 1024 * field_id + inside
    match data_type:
        case ArrayType():
            return pa.list_(_part("element", data_type.element, field_id, inside, above))
        case MapType() | MultisetType():
            entries = as_map(data_type)
            key = _part("key", with_nullable(entries.key, False), field_id, inside, below)
            return pa.map_(key, _part("value", entries.value, field_id, inside, above))
        case RowType() | VariantType():
            parts = as_row(data_type).fields
            return pa.struct([_column(field.name, field.type, field.id, field.type.nullable) for field in parts])
        case _:
            return to_arrow_type(data_type)


def _part(name: str, data_type: DataType, field_id: int, depth: int, part_id: int) -> pa.Field:
    return pa.field(name, _with_ids(data_type, field_id, depth), nullable=data_type.nullable, metadata=_id(part_id))


def _id(field_id: int) -> dict[bytes, bytes]:
    return {_ID_KEY: str(field_id).encode()}
