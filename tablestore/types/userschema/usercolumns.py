"""Converts the columns of a new table, as users give them, to a schema. All entry points come through here.

"id BIGINT NOT NULL, name STRING COMMENT 'of whom', tags ARRAY<STRING>"     SQL text
{"id": "BIGINT", "name": str, "price": pa.float64(), "n": pl.Int32}        a dict of types
pa.schema([...]), pl.Schema(...), tuples of fields                         schemas
a pandas or polars frame, an Arrow table, a scan                           what has one
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, TypeAlias

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.userschema.schematext import parse_columns, parse_named

GivenSchema: TypeAlias = pa.Schema | str | Mapping[str, Any] | tuple[Field, ...] | Any
"""A schema as :meth:`Catalog.create_table` takes it."""

_FORMS = (
    "an Arrow schema, SQL text such as 'id BIGINT, name STRING', a dict such as {'id': 'BIGINT', 'name': str}, or a frame or "
    "schema of pandas or polars"
)
_PYTHON = {int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BYTES", date: "DATE", datetime: "TIMESTAMP(6)"}


def columns_of(schema: Any) -> pa.Schema | tuple[Field, ...]:
    """The columns that were given; ids in them count for nothing. Raises InvalidInputError, UnsupportedError."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        return parse_columns(schema)
    if isinstance(schema, tuple | list) and schema and all(isinstance(field, Field) for field in schema):
        return tuple(schema)
    try:
        if hasattr(schema, "__arrow_c_schema__"):
            return pa.schema(schema)
        if hasattr(schema, "collect_schema"):  # of polars, also for lazy frames
            return pa.schema(schema.collect_schema())
        if type(schema).__module__.startswith("pandas") and hasattr(schema, "columns"):
            return pa.Schema.from_pandas(schema, preserve_index=False)
        if isinstance(arrow_schema := getattr(schema, "schema", None), pa.Schema):
            return arrow_schema
        if isinstance(schema, tuple | list) and schema and all(isinstance(field, pa.Field) for field in schema):
            return pa.schema(schema)
        if hasattr(schema, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(schema).schema
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"expected {_FORMS} as schema, found {type(schema).__qualname__}: {error}", kind="schema"
        ) from error
    if isinstance(schema, Mapping):
        return tuple(_named(name, data_type) for name, data_type in schema.items())
    raise InvalidInputError(f"expected {_FORMS} as schema, found {schema!r:.80} ({type(schema).__qualname__})", kind="schema")


def _named(name: Any, data_type: Any) -> Field:
    """A column of a dict of types."""
    if not isinstance(name, str):
        raise InvalidInputError(f"expected names of columns as texts in a schema, found {name!r:.80}", kind="schema")
    text = _PYTHON.get(data_type, data_type) if isinstance(data_type, type) else data_type
    if isinstance(text, str):
        return parse_named(name, text)
    try:
        arrow = _arrow_type(name, data_type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_type(name, data_type) from error
    return Field(id=0, name=name, type=from_arrow_type(arrow, True, lambda: 0))


def _arrow_type(name: str, data_type: Any) -> pa.DataType:
    if isinstance(data_type, pa.DataType):
        return data_type
    module = (data_type if isinstance(data_type, type) else type(data_type)).__module__
    if module.startswith("polars"):
        import polars

        return pa.schema(polars.Schema({name: data_type})).field(name).type
    if module.startswith(("numpy", "pandas")):
        return pa.from_numpy_dtype(data_type)
    raise _no_type(name, data_type)


def _no_type(name: str, data_type: Any) -> InvalidInputError:
    return InvalidInputError(
        f"column {name!r}: expected a type as SQL text ('DECIMAL(10, 2)'), of Arrow, polars or numpy, or one of "
        f"{', '.join(kind.__name__ for kind in _PYTHON)}, found {data_type!r:.80}",
        kind="invalid-type",
    )
