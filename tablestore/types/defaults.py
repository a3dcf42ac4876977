"""Casts the default values of columns from their stored text to Arrow values.

A default is text in the schema. Writers put its value in place of a null, or of a missing column, where they write a whole row.
It does not apply to retractions, nor to tables with merge-engine partial-update or aggregation, where null means "unchanged".
Stored nulls stay, and readers ignore defaults.
"""

from datetime import time
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import BINARY_ROOTS, TEXT_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.numbercast import to_decimal
from tablestore.types.typestring import type_to_sql

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})


@lru_cache(maxsize=1024)
def default_scalar(field: Field) -> pa.Scalar | None:
    """The Arrow value of a column's default, None if it has none. Raises InvalidInputError for a text that does not cast."""
    text = field.default_value
    if text is None:
        return None
    if not isinstance(field.type, AtomicType):
        raise InvalidInputError(
            f"column {field.name!r} of type {type_to_sql(field.type)} has the default {text!r:.100}; nested types take none",
            kind="invalid-default",
        )
    if len(text) >= 2 and text.startswith("'") and text.endswith("'"):
        text = text[1:-1]
    try:
        return _cast(text, field.type)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"the default {field.default_value!r:.100} of column {field.name!r} is not a value of type {type_to_sql(field.type)} "
            f"({error}); give the value as text, such as '0' or '2024-01-31'",
            kind="invalid-default",
        ) from error


def _cast(text: str, data_type: AtomicType) -> pa.Scalar:
    target = to_arrow_type(data_type)
    if data_type.root is TypeRoot.BOOLEAN:
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            raise ValueError("expected true or false")
        return pa.scalar(word in _TRUE)
    if data_type.root in BINARY_ROOTS:
        value = pa.scalar(text.encode(), target)
    elif data_type.root in TEXT_ROOTS:
        value = pa.scalar(text, target)
    elif data_type.root is TypeRoot.TIME:
        value = pc.cast(pa.scalar(time.fromisoformat(text.strip()), pa.time64("us")), target)
    elif data_type.root is TypeRoot.TIMESTAMP_LTZ:
        value = pc.cast(pc.cast(pa.scalar(text.strip()), pa.timestamp(target.unit)), target)
    elif data_type.root is TypeRoot.DECIMAL:
        value = to_decimal(pa.scalar(text.strip()), target)
    else:
        value = pc.cast(pa.scalar(text.strip()), target)
    length = data_type.length
    if length is not None and len(value.as_py()) > length:
        raise ValueError(f"longer than {length}")
    return value
