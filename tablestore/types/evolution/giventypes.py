"""Which type did the caller of an alteration mean: SQL text, a pyarrow type, or a logical type?

Fields of nested rows get ids from a counter that is handed in, in pre-order; ids that a given type carries count for nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from tablestore.errors import FormatError, InvalidInputError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType
from tablestore.types.evolution.schemachanges import ColumnType
from tablestore.types.typestring import parse_type


def type_of(given: ColumnType, next_id: Callable[[], int]) -> DataType:
    """The logical type that a change names, with fresh ids for the fields of nested rows."""
    if isinstance(given, str):
        try:
            return parse_type(given)
        except FormatError as error:
            raise InvalidInputError(f"{error.message}; give a nested type as a pyarrow type", kind="invalid-type") from error
    if isinstance(given, pa.DataType):
        return from_arrow_type(given, True, next_id)
    if isinstance(given, (AtomicType, ArrayType, MapType, MultisetType, RowType)):
        return _with_new_ids(given, next_id)
    raise InvalidInputError(f'expected a type as SQL text ("DECIMAL(10, 2)") or a pyarrow type, found {given!r:.100}')


def _with_new_ids(data_type: DataType, next_id: Callable[[], int]) -> DataType:
    match data_type:
        case ArrayType() | MultisetType():
            return replace(data_type, element=_with_new_ids(data_type.element, next_id))
        case MapType():
            key = _with_new_ids(data_type.key, next_id)
            return replace(data_type, key=key, value=_with_new_ids(data_type.value, next_id))
        case RowType():
            # In pre-order: a field's own id before those inside it.
            fields = tuple(replace(f, id=next_id(), type=_with_new_ids(f.type, next_id)) for f in data_type.fields)
            return replace(data_type, fields=fields)
        case _:
            return data_type
