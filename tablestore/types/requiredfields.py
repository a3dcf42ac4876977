"""Puts values into NOT NULL fields of rows that are NULL. Arrow has null there, and refuses that when it casts or writes a file.

A field that is null in a row which is there stays as it is, to be refused.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

# Of offsets and of the widest value.
_ZEROS = pa.py_buffer(bytes(16))


def has_required_fields(kind: pa.DataType) -> bool:
    """True of rows with NOT NULL fields, and of what holds such rows."""
    if pa.types.is_struct(kind) and any(not field.nullable for field in kind):
        return True
    return any(has_required_fields(kind.field(place).type) for place in range(kind.num_fields))


def filled_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with some value in each NOT NULL field of a NULL row."""
    if not has_required_fields(column.type):
        return column
    return pa.chunked_array([filled_below_nulls(chunk) for chunk in column.chunks], column.type)


def filled_below_nulls(array: pa.Array) -> pa.Array:
    """The array with some value in each NOT NULL field of a NULL row, at every depth."""
    kind = array.type
    if not has_required_fields(kind):
        return array
    return _rebuilt(array, kind, lambda part, _: filled_below_nulls(part))


def cast_required(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array of a type whose fields may be NULL as one of ``kind``, where they may not, filled so.

    Raises ValueError for a field that is null in a row which is there.
    """
    if not (has_required_fields(kind) and _is_alike(array.type, kind)):
        return array.cast(kind)
    result = _rebuilt(array, kind, cast_required)
    if pa.types.is_struct(kind):
        for place, field in enumerate(kind):
            if not field.nullable and result.field(place).null_count:
                raise ValueError(f"{field.name!r} is NOT NULL, found null")
    return result


def _is_alike(kind: pa.DataType, other: pa.DataType) -> bool:
    """True for types whose parts have the same places."""
    if not pa.types.is_struct(kind):
        return bool(kind.id == other.id)
    return pa.types.is_struct(other) and [field.name for field in kind] == [field.name for field in other]


def _rebuilt(array: pa.Array, kind: pa.DataType, convert: Callable[[pa.Array, pa.DataType], pa.Array]) -> pa.Array:
    """A nested array as one of ``kind``, of converted parts."""
    if pa.types.is_struct(kind):
        parts = [convert(array.field(place), field.type) for place, field in enumerate(kind)]
        return _rows_of(parts, list(kind), array)
    if pa.types.is_map(kind):
        entries = [convert(array.keys, kind.key_type), convert(array.items, kind.item_type)]
        content = pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field])
    else:
        content = convert(array.values, kind.value_type)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[content])


def _rows_of(children: list[pa.Array], fields: list[pa.Field], like: pa.Array) -> pa.StructArray:
    """Rows of ``fields`` that are NULL where ``like`` is, with values there in the NOT NULL ones."""
    nulls = like.is_null() if like.null_count else None
    filled = []
    for child, field in zip(children, fields, strict=True):
        if nulls is not None and not field.nullable and child.null_count:
            places = np.where(nulls.to_numpy(zero_copy_only=False), len(child), np.arange(len(child)))
            child = pa.concat_arrays([child, _any_value(child.type)]).take(pa.array(places))
        filled.append(child)
    return pa.StructArray.from_arrays(filled, fields=fields, mask=nulls)


def _any_value(kind: pa.DataType) -> pa.Array:
    """One value of a type that is not null: zero, or one without content."""
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_any_value(field.type) for field in kind], fields=list(kind))
    if pa.types.is_map(kind):
        entries = pa.array([], pa.struct([kind.key_field, kind.item_field]))
        return pa.Array.from_buffers(kind, 1, [None, _ZEROS], children=[entries])
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, 1, [None, _ZEROS], children=[pa.array([], kind.value_type)])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.Array.from_buffers(kind, 1, [None, _ZEROS, pa.py_buffer(b"")])
    return pa.Array.from_buffers(kind, 1, [None, _ZEROS])
