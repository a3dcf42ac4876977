"""Finds the types of the columns of a query, and of an expression over the columns of a table.

The engine knows: it is asked about tables of these columns without rows.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryEngine, QueryRelation, Relation, RowsRelation
from tablestore.environment.memoryrows import MemoryRows
from tablestore.sql.source import Edit, Span
from tablestore.types.arrowtypes import fields_from_arrow, to_arrow_schema
from tablestore.types.datatypes import DataType, Field


def expression_type(engine: QueryEngine, expression: str, fields: Sequence[Field]) -> DataType:
    """The type of an expression. Raises what the engine says of a wrong one: InvalidInputError, UnsupportedError."""
    text = f"SELECT {expression} AS `value` FROM "
    place = Span(len(text), len(text))
    relation = RowsRelation(name="columns", rows=MemoryRows(to_arrow_schema(fields).empty_table()))
    schema = engine.query(BoundQuery(text=text, relations=(relation,), edits=(Edit(span=place, relation=0),))).schema
    (field,), _ = fields_from_arrow(schema)
    return field.type


def schema_of(engine: QueryEngine, query: BoundQuery) -> pa.Schema:
    """Names and types of a query's columns. Raises what the engine says of a wrong one: InvalidInputError, UnsupportedError."""
    return engine.query(_without_rows(query)).schema


def _without_rows(query: BoundQuery) -> BoundQuery:
    """The query over managed tables as they are before their first snapshot: no files are looked for."""
    return replace(query, relations=tuple(map(_emptied, query.relations)))


def _emptied(relation: Relation) -> Relation:
    match relation:
        case ManagedRelation(pin=pin):
            return replace(relation, pin=replace(pin, snapshot_id=None), follows=None)
        case QueryRelation(query=query):
            return replace(relation, query=_without_rows(query))
        case _:
            return relation


def types_of(schema: pa.Schema) -> list[DataType | None]:
    """The types of a query's columns; None: that of NULL."""
    return [None if pa.types.is_null(column.type) else _type(column) for column in schema]


def _type(column: pa.Field) -> DataType:
    (field,), _ = fields_from_arrow(pa.schema([column]), where="the query")
    return field.type
