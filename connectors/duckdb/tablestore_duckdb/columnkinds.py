"""Of which kind are the columns that a query reads? Where DuckDB computes with other types than Spark, their text does not say."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tablestore.environment.engine import ConnectorRelation, ManagedRelation, NativeRelation, Relation, RowsRelation
from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.kinds import Kind, kind_of_type
from tablestore.types.arrowtypes import from_arrow_type


def column_kinds(relations: Sequence[Relation]) -> Mapping[str, Kind]:
    """The kinds of columns by name, of those names that all relations have with one kind."""
    found: dict[str, set[Kind | None]] = {}
    for relation in relations:
        for name, kind in _kinds(relation):
            found.setdefault(name.casefold(), set()).add(kind)
    return {name: kind for name, kinds in found.items() for kind in kinds if len(kinds) == 1 and kind is not None}


def _kinds(relation: Relation) -> list[tuple[str, Kind | None]]:
    match relation:
        case ManagedRelation():
            fields = relation.schema.fields
            return [(field.name, kind_of_type(field.type)) for field in fields]
        case RowsRelation():
            return [(field.name, _kind(field)) for field in relation.rows.schema]
        case ConnectorRelation(schema=pa.Schema() as schema):
            return [(field.name, _kind(field)) for field in schema]
        case NativeRelation(value=value) if isinstance(schema := getattr(value, "schema", None), pa.Schema):
            return [(field.name, _kind(field)) for field in schema]
        case _:
            return []


def _kind(field: pa.Field) -> Kind | None:
    try:
        return kind_of_type(from_arrow_type(field.type, True, lambda: 0))
    except UnsupportedError:
        return None
