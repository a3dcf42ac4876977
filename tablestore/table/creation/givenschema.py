"""Columns of a new table as users give them: the one place where they become a schema.

"id BIGINT NOT NULL, name STRING COMMENT 'of whom', tags ARRAY<STRING>"     SQL text
{"id": "BIGINT", "name": str, "price": pa.float64(), "n": pl.Int32}        a dict of types
pa.schema([...]), pl.Schema(...), tuples of fields                         schemas
a pandas or polars frame, an Arrow table, a scan                           what has one
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any, TypeAlias

import pyarrow as pa

from tablestore.errors import FormatError, InvalidInputError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, RowType, with_nullable
from tablestore.types.typestring import parse_type

GivenSchema: TypeAlias = pa.Schema | str | Mapping[str, Any] | tuple[Field, ...] | Any
"""A schema as :meth:`Catalog.create_table` takes it."""

_FORMS = (
    "an Arrow schema, SQL text such as 'id BIGINT, name STRING', a dict such as {'id': 'BIGINT', 'name': str}, or a frame or "
    "schema of pandas or polars"
)
_PYTHON = {int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BYTES", date: "DATE", datetime: "TIMESTAMP(6)"}
# A name, bare or in quotes, and the rest.
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*))\s*:?\s*(.*)", re.DOTALL)
_COMMENT = re.compile(r"(.*?)\s+COMMENT\s+'((?:[^']|'')*)'\s*", re.DOTALL | re.IGNORECASE)
_NOT_NULL = re.compile(r"(.*?)\s+NOT\s+NULL\s*", re.DOTALL | re.IGNORECASE)
_NESTED = re.compile(r"\s*(ARRAY|MAP|ROW|STRUCT)\s*([<(])(.*)[>)]\s*", re.DOTALL | re.IGNORECASE)
_CONSTRAINT = re.compile(r"\s*(?:CONSTRAINT\s+\S+\s+)?PRIMARY\s+KEY\b", re.IGNORECASE)


def columns_of(given: Any) -> pa.Schema | tuple[Field, ...]:
    """The columns that were given; ids in them count for nothing. Raises InvalidInputError, UnsupportedError."""
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, str):
        return tuple(_sql_column(text) for text in _parts(given))
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
        return _typed(name, text)
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


# -- SQL text


def _sql_column(text: str) -> Field:
    if _CONSTRAINT.match(text):
        raise InvalidInputError(
            f"the schema holds {text.strip()!r:.80}: name the key beside it, primary_key=['id'], or run CREATE TABLE with a "
            "TableEnvironment",
            kind="schema",
        )
    match = _COLUMN.fullmatch(text)
    if match is None or not match[4].strip():
        raise InvalidInputError(
            f"expected a column as 'name TYPE' in a schema of SQL text, found {text.strip()!r:.80}", kind="schema"
        )
    name = (match[1] or "").replace("``", "`") or (match[2] or "").replace('""', '"') or match[3]
    return _typed(name, match[4])


def _typed(name: str, text: str) -> Field:
    comment = _COMMENT.fullmatch(text)
    words, description = (comment[1], comment[2].replace("''", "'")) if comment else (text, None)
    try:
        return Field(id=0, name=name, type=_sql_type(words), description=description)
    except FormatError as error:
        raise InvalidInputError(f"column {name!r}: {error}", kind="invalid-type") from error


def _sql_type(text: str) -> DataType:
    not_null = _NOT_NULL.fullmatch(text)
    nested = _NESTED.fullmatch(not_null[1] if not_null else text)
    if nested is None:
        return parse_type(text)
    return with_nullable(_nested_type(nested[1].upper(), nested[3], text), not_null is None)


def _nested_type(kind: str, inner: str, text: str) -> DataType:
    parts = list(_parts(inner))
    if kind == "ARRAY" and len(parts) == 1:
        return ArrayType(element=_sql_type(parts[0]))
    if kind == "MAP" and len(parts) == 2:
        return MapType(key=with_nullable(_sql_type(parts[0]), False), value=_sql_type(parts[1]))
    if kind in ("ROW", "STRUCT"):
        return RowType(fields=tuple(replace(_sql_column(part), id=0) for part in parts))
    raise FormatError(f"expected ARRAY<type>, MAP<key, value> or ROW<name type, …>, found {text.strip()!r:.80}")


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas outside of brackets and quotes."""
    depth, quote, start = 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
