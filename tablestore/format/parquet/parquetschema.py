"""What are the columns of a data file (table-format specification, "Data files")?

    keyed table    [_KEY_<k> …]  _SEQUENCE_NUMBER  _VALUE_KIND  <all table columns>      (thin: without _KEY_)
    append table   <all table columns>

Field ids are stored and never renumbered: a column's own id; ``_KEY_x`` 1073741823 + id; array elements and map values
536870911 + 1024 * id + depth, map keys 536870911 - 1024 * id - depth, counted from the column (or row field) above them.
"""

import pyarrow as pa

from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, MultisetType, RowType
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
    match data_type:
        case ArrayType():
            element = _part("element", data_type.element, field_id, depth + 1, _NESTED_ID_BASE + 1024 * field_id)
            return pa.list_(element)
        case MapType():
            return _map(data_type.key, data_type.value, field_id, depth)
        case MultisetType():
            count = pa.field("value", pa.int32(), nullable=False, metadata=_id(_value_id(field_id, depth + 1)))
            return pa.map_(_key(data_type.element, field_id, depth), count)
        case RowType():
            return pa.struct([_row_field(field) for field in data_type.fields])
        case _:
            return to_arrow_type(data_type)


def _map(key: DataType, value: DataType, field_id: int, depth: int) -> pa.DataType:
    return pa.map_(
        _key(key, field_id, depth),
        _part("value", value, field_id, depth + 1, _NESTED_ID_BASE + 1024 * field_id),
    )


def _key(key: DataType, field_id: int, depth: int) -> pa.Field:
    return pa.field(
        "key",
        _with_ids(key, field_id, depth + 1),
        nullable=False,
        metadata=_id(_NESTED_ID_BASE - 1024 * field_id - (depth + 1)),
    )


def _part(name: str, data_type: DataType, field_id: int, depth: int, base: int) -> pa.Field:
    return pa.field(name, _with_ids(data_type, field_id, depth), nullable=data_type.nullable, metadata=_id(base + depth))


def _value_id(field_id: int, depth: int) -> int:
    return _NESTED_ID_BASE + 1024 * field_id + depth


def _row_field(field: Field) -> pa.Field:
    return _column(field.name, field.type, field.id, field.type.nullable)


def _id(field_id: int) -> dict[bytes, bytes]:
    return {_ID_KEY: str(field_id).encode()}
