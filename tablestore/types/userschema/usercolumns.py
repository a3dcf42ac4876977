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


def columns_of(given: Any) -> pa.Schema | tuple[Field, ...]:
    """The columns that were given; ids in them count for nothing. Raises InvalidInputError, UnsupportedError."""
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, str):
        return parse_columns(given)
    if isinstance(given, tuple | list) and given and all(isinstance(one, Field) for one in given):
        return tuple(given)
    try:
        if hasattr(given, "__arrow_c_schema__"):
            return pa.schema(given)
        if hasattr(given, "collect_schema"):  # of polars, also for lazy frames
            return pa.schema(given.collect_schema())
        if type(given).__module__.startswith("pandas") and hasattr(given, "columns"):
            return pa.Schema.from_pandas(given, preserve_index=False)
        if isinstance(found := getattr(given, "schema", None), pa.Schema):
            return found
        if isinstance(given, tuple | list) and given and all(isinstance(one, pa.Field) for one in given):
            return pa.schema(given)
        if hasattr(given, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(given).schema
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(f"expected {_FORMS} as schema, found {type(given).__qualname__}: {error}", kind="schema") from error
    if isinstance(given, Mapping):
        return tuple(_named(name, data_type) for name, data_type in given.items())
    raise InvalidInputError(f"expected {_FORMS} as schema, found {given!r:.80} ({type(given).__qualname__})", kind="schema")


def _named(name: Any, given: Any) -> Field:
    """A column of a dict of types."""
    if not isinstance(name, str):
        raise InvalidInputError(f"expected names of columns as texts in a schema, found {name!r:.80}", kind="schema")
    text = _PYTHON.get(given, given) if isinstance(given, type) else given
    if isinstance(text, str):
        return parse_named(name, text)
    try:
        arrow = _arrow_type(name, given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_type(name, given) from error
    return Field(id=0, name=name, type=from_arrow_type(arrow, True, lambda: 0))


def _arrow_type(name: str, given: Any) -> pa.DataType:
    if isinstance(given, pa.DataType):
        return given
    module = (given if isinstance(given, type) else type(given)).__module__
    if module.startswith("polars"):
        import polars

        return pa.schema(polars.Schema({name: given})).field(name).type
    if module.startswith(("numpy", "pandas")):
        return pa.from_numpy_dtype(given)
    raise _no_type(name, given)


def _no_type(name: str, given: Any) -> InvalidInputError:
    return InvalidInputError(
        f"column {name!r}: expected a type as SQL text ('DECIMAL(10, 2)'), of Arrow, polars or numpy, or one of "
        f"{', '.join(one.__name__ for one in _PYTHON)}, found {given!r:.80}",
        kind="invalid-type",
    )
