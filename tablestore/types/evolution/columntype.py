"""Converts the column type that an alteration names (SQL text, a pyarrow type, a logical type) to a logical type.

Fields of nested rows get ids from a counter that is handed in, in pre-order; ids that a given type carries count for nothing.
"""

from collections.abc import Callable

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType, with_new_ids
from tablestore.types.evolution.schemachanges import ColumnType
from tablestore.types.userschema.schematext import parse_type_text


def type_of(column_type: ColumnType, next_id: Callable[[], int]) -> DataType:
    """The logical type that a change names, with fresh ids for the fields of nested rows."""
    if isinstance(column_type, str):
        return with_new_ids(parse_type_text(column_type), next_id)
    if isinstance(column_type, pa.DataType):
        return from_arrow_type(column_type, True, next_id)
    if isinstance(column_type, (AtomicType, ArrayType, MapType, MultisetType, RowType)):
        return with_new_ids(column_type, next_id)
    raise InvalidInputError(f'expected a type as SQL text ("DECIMAL(10, 2)") or a pyarrow type, found {column_type!r:.100}')
