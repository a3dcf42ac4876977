"""Derives a filter on a join column from the values of the other side (a runtime join filter).

A join by equality looks at no other rows, so this leaves files out of its scan, and says which writes of others it does not mind.

    few values     column IN (them)
    many           column >= the least AND column <= the greatest
    none but NULL  FALSE: NULL equals nothing

It is said where an engine's ``=`` is that of the numbers, days, moments or bytes of text that both columns hold. For floats (NaN
and NaN, 0.0 and -0.0 are equal) and for what an engine casts before it compares, nothing is said.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.types.arrays import one_chunk
from tablestore.types.datatypes import (
    INTEGER_ROOTS,
    MAX_PRECISION,
    TIMESTAMP_ROOTS,
    AtomicType,
    DataType,
    Field,
    TypeRoot,
    is_finer_than_micros,
)
from tablestore.types.filter.binding import bind_comparison, bind_in
from tablestore.types.filter.predicate import FALSE, MAX_EQUALITIES, Predicate, all_of

# So many are held against files one by one.
MOST_VALUES = MAX_EQUALITIES
# Longer texts say little about files.
_LONGEST_TEXT = 1000


def where_equal(field: Field, values: pa.Array | pa.ChunkedArray) -> Predicate | None:
    """A filter that is true in the rows where the column equals one of these values; None if nothing can be said."""
    if not compares_plainly(field.type, values.type):
        return None
    valid = _plain(values).drop_null()
    if len(valid) > MOST_VALUES:
        ends = pc.min_max(valid)
        return where_between(field, pa.concat_arrays([pa.repeat(ends[end], 1) for end in ("min", "max")]))
    python_values = _in_python(valid)
    if python_values is None or any(map(_is_long, python_values)):
        return None
    return bind_in(field, python_values) if python_values else FALSE


def where_between(field: Field, ends: pa.Array) -> Predicate | None:
    """The same where only the least and the greatest of the values are known; NULL for both: there are none but NULL."""
    if not compares_plainly(field.type, ends.type):
        return None
    if ends.null_count:
        return FALSE
    python_ends = _in_python(_plain(ends))
    if python_ends is None or any(map(_is_long, python_ends)):
        return None
    return all_of((bind_comparison(">=", field, python_ends[0]), bind_comparison("<=", field, python_ends[1])))


def compares_plainly(column: DataType, other: pa.DataType) -> bool:
    """True if SQL's ``=`` on values of these types is plain equality, and their order is that of filters."""
    if not isinstance(column, AtomicType):
        return False
    if column.root in INTEGER_ROOTS:
        return bool(pa.types.is_integer(other))
    if column.root is TypeRoot.VARCHAR:
        return bool(pa.types.is_string(other) or pa.types.is_large_string(other) or pa.types.is_string_view(other))
    if column.root is TypeRoot.DECIMAL:
        # Engines widen those of other scales, and may round them for that.
        return bool(pa.types.is_decimal(other)) and other.scale == column.scale and other.precision <= MAX_PRECISION
    if column.root in TIMESTAMP_ROOTS:
        is_fine = is_finer_than_micros(column) or not pa.types.is_timestamp(other) or other.unit == "ns"
        return not is_fine and (other.tz is not None) == (column.root is TypeRoot.TIMESTAMP_LTZ)
    return column.root is TypeRoot.DATE and bool(pa.types.is_date32(other))


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values in a type of which Arrow finds the least."""
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    elif pa.types.is_decimal(values.type):
        values = values.cast(pa.decimal128(MAX_PRECISION, values.type.scale))
    return one_chunk(values) if isinstance(values, pa.ChunkedArray) else values


def _in_python(values: pa.Array) -> list[object] | None:
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        # A day that Python does not know, such as DuckDB's infinity.
        return None


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST_TEXT
