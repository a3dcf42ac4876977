"""Of which kind are the columns that a query reads? Where DuckDB computes with other types than Spark, their text does not say."""

import pyarrow as pa

from tablestore.environment.engine import ConnectorRelation, ManagedRelation, NativeRelation, Relation, RowsRelation
from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.columnnames import Columns
from tablestore.sql.duckdb.kinds import Kind, kind_of_type
from tablestore.types.arrowtypes import from_arrow_type


def column_kinds(relation: Relation) -> Columns | None:
    """The names and kinds of the columns of a relation; None if they are not known before it is read."""
    match relation:
        case ManagedRelation():
            fields = relation.schema.fields
            return tuple((field.name, kind_of_type(field.type)) for field in fields)
        case RowsRelation():
            return tuple((field.name, _kind(field)) for field in relation.rows.schema)
        case ConnectorRelation(schema=pa.Schema() as schema):
            return tuple((field.name, _kind(field)) for field in schema)
        case NativeRelation(value=value) if isinstance(schema := getattr(value, "schema", None), pa.Schema):
            return tuple((field.name, _kind(field)) for field in schema)
        case _:
            return None


def _kind(field: pa.Field) -> Kind | None:
    try:
        return kind_of_type(from_arrow_type(field.type, True, lambda: 0))
    except UnsupportedError:
        return None
