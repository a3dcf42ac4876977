"""Helpers for numpy arrays with one entry per row (masks, row kinds, positions, group numbers) and for Arrow columns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import InvalidInputError

Mask = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.int8]
"""A row kind code per row."""
Places = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


def retracts(kinds: Kinds) -> Mask:
    """The mask of the rows that are retractions: ``-U`` and ``-D``."""
    return (kinds & 1).astype(np.bool_)


def begins(group: npt.NDArray[np.integer]) -> Mask:
    """The mask of the rows that begin a group, where the rows of a group follow one another."""
    first = np.ones(len(group), dtype=np.bool_)
    np.not_equal(group[1:], group[:-1], out=first[1:])
    return first


def last_of_group(group: npt.NDArray[np.integer], groups: int, chosen: Mask) -> Places:
    """Per group the last of its rows that is chosen, -1 without one."""
    places = np.flatnonzero(chosen)
    last = np.full(groups, -1, dtype=np.int64)
    # The last assignment stays where places repeat.
    last[group[places]] = places
    return last


def first_of_group(group: npt.NDArray[np.integer], groups: int, chosen: Mask) -> Places:
    """Per group the first of its rows that is chosen, -1 without one."""
    places = np.flatnonzero(chosen)[::-1]
    first = np.full(groups, -1, dtype=np.int64)
    first[group[places]] = places
    return first


def text_scalar(text: str) -> pa.Scalar:
    """A text as Arrow has it, made of its bytes. Where pyarrow converts a value of Python it loads pandas, if that is installed,
    and this takes longer than a small query."""
    data = text.encode()
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int32))
    return pa.StringArray.from_buffers(1, offsets, pa.py_buffer(data))[0]


def text_array(texts: Sequence[str]) -> pa.Array:
    """Texts as Arrow has them. Like :func:`text_scalar` it loads no pandas."""
    return binary_array([text.encode() for text in texts]).cast(pa.string())


def binary_array(values: Sequence[bytes]) -> pa.Array:
    """Bytes as Arrow has them. Like :func:`text_scalar` it loads no pandas."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def places_array(places: Places) -> pa.Array:
    """Places as Arrow has them. Like :func:`text_scalar` it needs no values of Python."""
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(np.ascontiguousarray(places, np.int64))])


def numbers_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The numbers of an array without nulls, of whatever width, not copied. Like :func:`text_scalar` it loads no pandas."""
    return np.from_dlpack(array)  # type: ignore[return-value]


def mask_of(array: pa.Array) -> Mask:
    """The truth values of an array without nulls, copied. Like :func:`text_scalar` it loads no pandas."""
    return np.array(np.from_dlpack(array.cast(pa.int8())), np.bool_)


def mask_array(mask: Mask) -> pa.Array:
    """A mask as Arrow has it. Like :func:`text_scalar` it needs no values of Python."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(np.packbits(mask, bitorder="little"))])


NO = mask_array(np.zeros(1, np.bool_))[0]
"""False, as Arrow has it."""


def is_true(array: pa.Array) -> Mask:
    """The mask of the values that are true, not false or null."""
    return np.array(np.from_dlpack(array.fill_null(NO).cast(pa.int8())), np.bool_)


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, copied only if it has several chunks."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def python_values(column: pa.Array) -> list[object]:
    """Values as Python objects, for partitions; nanosecond timestamps as numpy.datetime64, which alone can hold them."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        values = column.to_numpy(zero_copy_only=False)
        return [None if np.isnat(value) else value for value in values]
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError) as error:
        raise InvalidInputError(
            f"expected dates and timestamps of the years 1 to 9999 in a partition column, found another {column.type} ({error}); "
            "correct the row, or leave it out",
            kind="partition-value",
        ) from error


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows. Like :func:`text_scalar` it needs no values of Python."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
