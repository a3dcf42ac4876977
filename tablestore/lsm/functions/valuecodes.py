"""Numbers the values of a column so that equal values get equal numbers, also where they are rows or lists.

Each value gets a number, equal numbers for equal values. Text and numbers are numbered by Arrow; a row by the numbers of its
fields, a list by the numbers of its elements, both taken as bytes. Nulls are equal to each other, NaN to NaN, -0.0 is not 0.0.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.types.arrays import one_chunk

Codes = npt.NDArray[np.int64]


def value_codes(array: pa.Array) -> Codes:
    """A number from 0 per value, equal for equal values; numbers are below the length of the array."""
    kind = array.type
    if pa.types.is_struct(kind):
        return combined_codes([array.is_valid().to_numpy(zero_copy_only=False), *map(value_codes, array.flatten())], len(array))
    if pa.types.is_map(kind):
        entries = combined_codes([value_codes(array.keys), value_codes(array.items)], len(array.keys))
        return _list_codes(array, entries)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_codes(array, value_codes(array.values))
    if pa.types.is_floating(kind):
        wide = array.cast(pa.float64())
        values = wide.fill_null(0.0).to_numpy(zero_copy_only=False)
        values = np.where(np.isnan(values), np.nan, values)
        array = pa.array(values.view(np.int64), mask=array.is_null().to_numpy(zero_copy_only=False))
    codes: Codes = pc.dictionary_encode(array, null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def row_codes(columns: Sequence[pa.ChunkedArray]) -> Codes:
    """Numbers rows as :func:`value_codes` numbers values; they have one column at least."""
    rows, parts = len(columns[0]), list[npt.NDArray[np.generic]]()
    for column in columns:
        codes = value_codes(one_chunk(column))
        if np.array_equal(codes, np.arange(rows)):
            # No value comes twice, so no row does.
            return codes
        parts.append(codes)
    return combined_codes(parts, rows)


def combined_codes(parts: list[npt.NDArray[np.generic]], rows: int) -> Codes:
    """One number per row for several numbers."""
    if len(parts) == 1:
        return parts[0].astype(np.int64)
    packed = np.stack([part.astype(np.int64) for part in parts], axis=1) if rows else np.zeros((0, len(parts)), dtype=np.int64)
    raw = pa.Array.from_buffers(pa.binary(8 * len(parts)), rows, [None, pa.py_buffer(np.ascontiguousarray(packed).tobytes())])
    codes: Codes = pc.dictionary_encode(raw).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _list_codes(array: pa.Array, elements: Codes) -> Codes:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64) * 8
    # A fresh bitmap: that of a slice does not start at its first bit.
    validity = pa.array(array.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if array.null_count else None
    raw = pa.Array.from_buffers(
        pa.large_binary(), len(array), [validity, pa.py_buffer(offsets.tobytes()), pa.py_buffer(elements.tobytes())]
    )
    codes: Codes = pc.dictionary_encode(raw, null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
