"""Rows of a table in another order, faster than Arrow's ``take`` where that is slow.

Arrow copies variable-length strings one by one with a builder. Where all strings of a column have one length (codes,
uuids, dates as text) the bytes form a matrix, and numpy gathers its rows several times faster.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Order = npt.NDArray[np.int64]

_MAX_UNIFORM_BYTES = 64


def take_rows(rows: pa.Table, order: Order) -> pa.Table:
    """The rows at the places ``order`` of a table whose columns have one chunk each (or more, then slower)."""
    indices = pa.array(order)
    columns = [_take(column, order, indices) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _take(column: pa.ChunkedArray, order: Order, indices: pa.Array) -> pa.Array | pa.ChunkedArray:
    if column.num_chunks != 1:
        return column.take(indices)
    array = column.chunk(0)
    if (pa.types.is_string(array.type) or pa.types.is_binary(array.type)) and not array.null_count and len(array):
        taken = _take_uniform(array, order)
        if taken is not None:
            return taken
    return array.take(indices)


def _take_uniform(array: pa.Array, order: Order) -> pa.Array | None:
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    width = int(offsets[1]) - int(offsets[0])
    if not 0 < width <= _MAX_UNIFORM_BYTES or int(offsets[-1]) - int(offsets[0]) != width * len(array):
        return None
    if not bool((np.diff(offsets) == width).all()):
        return None
    matrix = np.frombuffer(data_buffer, dtype=f"S{width}", count=len(array), offset=int(offsets[0]))
    taken = np.take(matrix, order)
    new_offsets = np.arange(0, (len(order) + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(array.type, len(order), [None, pa.py_buffer(new_offsets), pa.py_buffer(taken)])
