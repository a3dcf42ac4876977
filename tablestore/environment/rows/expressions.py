"""Which type has an expression over the columns of a table?

The engine knows: it is asked about a table of these columns without rows.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, QueryEngine, RowsRelation
from tablestore.sql.source import Edit, Span
from tablestore.table.read.scan import ArrowSource
from tablestore.types.arrowtypes import fields_from_arrow, to_arrow_schema
from tablestore.types.datatypes import DataType, Field


class NoRows(ArrowSource):
    """A table of some columns without rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(())


def expression_type(engine: QueryEngine, expression: str, fields: Sequence[Field]) -> DataType:
    """The type of an expression. Raises what the engine says of a wrong one: InvalidInputError, UnsupportedError."""
    text = f"SELECT {expression} AS `value` FROM "
    place = Span(len(text), len(text))
    relation = RowsRelation(name="columns", rows=NoRows(to_arrow_schema(fields)))
    schema = engine.query(BoundQuery(text=text, relations=(relation,), edits=(Edit(span=place, relation=0),))).schema
    (field,), _ = fields_from_arrow(schema)
    return field.type
