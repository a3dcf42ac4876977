"""Finds the types of what a query names: of the columns that it reads, and of the values of its parameters.

Those of relations stand in their schemas; a view has those of its query (``prepared``), and what only DuckDB knows it is asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from tablestore.environment.engine import ConnectorRelation, ManagedRelation, NativeRelation, Relation, RowsRelation
from tablestore.errors import UnsupportedError
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
    array,
    decimal,
    engine_type,
    struct_of,
    type_of,
)
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.rowposition import POSITION_FIELDS

Parameters = Mapping[str, Any] | Sequence[Any]


def relation_columns(relation: Relation) -> Columns | None:
    """The names and types of the columns of a relation; None if they are not known before it is read."""
    match relation:
        case ManagedRelation():
            fields = (*relation.schema.fields, *(POSITION_FIELDS if relation.positions else ()))
            return tuple((field.name, type_of(field.type)) for field in fields)
        case RowsRelation():
            return _of_schema(relation.rows.schema)
        case ConnectorRelation(schema=pa.Schema() as schema):
            return (*_of_schema(schema), *((field.name, type_of(field.type)) for field in relation.metadata))
        case NativeRelation(value=duckdb.DuckDBPyRelation() as value):
            return columns_of(value)
        case NativeRelation(value=value) if isinstance(schema := getattr(value, "schema", None), pa.Schema):
            return _of_schema(schema)
        case _:
            return None


def columns_of(relation: duckdb.DuckDBPyRelation) -> Columns:
    """The names and types of the columns of what DuckDB has bound."""
    return tuple((name, engine_type(str(kind))) for name, kind in zip(relation.columns, relation.types, strict=True))


def parameter_types(parameters: Parameters) -> tuple[tuple[str, Type], ...]:
    """The types of the values of parameters, by their names, or by their places as ``_1``, ``_2``."""
    if isinstance(parameters, Mapping):
        return tuple((name, _of_value(value)) for name, value in parameters.items())
    return tuple((f"_{place}", _of_value(value)) for place, value in enumerate(parameters, 1))


def arrow_type(data_type: pa.DataType) -> Type:
    """The type of a column of Arrow's."""
    if pa.types.is_null(data_type):
        return VOID
    try:
        return type_of(from_arrow_type(data_type, True, lambda: 0))
    except UnsupportedError:
        return None


def _of_schema(schema: pa.Schema) -> tuple[tuple[str, Type], ...]:
    return tuple((field.name, arrow_type(field.type)) for field in schema)


def _of_value(value: Any) -> Type:
    match value:
        case int() if not isinstance(value, bool):
            return INT if -(2**31) <= value < 2**31 else BIGINT if -(2**63) <= value < 2**63 else None
        case Decimal() if value.is_finite():
            digits = value.as_tuple()
            exponent = int(digits.exponent)
            scale = max(-exponent, 0)
            return decimal(max(len(digits.digits) + max(exponent, 0), scale), scale)
        case datetime():
            return TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP
        case list():
            types = {_of_value(one) for one in value} - {VOID}
            return array(types.pop() if len(types) == 1 else None if types else VOID)
        case Mapping():
            return struct_of(tuple(map(str, value)), tuple(map(_of_value, value.values())))
    return next((kind for value_class, kind in _BY_CLASS.items() if isinstance(value, value_class)), None)


_BY_CLASS: dict[type | tuple[type, ...], Type] = {
    bool: BOOLEAN, float: DOUBLE, str: STRING, (bytes, bytearray, memoryview): BINARY, date: DATE, time: TIME, timedelta: INTERVAL,
    type(None): VOID,
}  # fmt: skip
