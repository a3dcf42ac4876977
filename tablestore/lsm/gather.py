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
    if not array.null_count and len(array) and len(order):
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            return pa.array(array.to_numpy()[order], type=array.type)
        if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            taken = _take_uniform(array, order)
            if taken is not None:
                return taken
    return array.take(indices)


def _take_uniform(array: pa.Array, order: Order) -> pa.Array | None:
    """The strings if all have one length, else None."""
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    width = int(offsets[1]) - int(offsets[0])
    if not 0 < width <= _MAX_UNIFORM_BYTES or int(offsets[-1]) - int(offsets[0]) != width * len(array):
        return None
    if not bool((np.diff(offsets) == width).all()):
        return None
    taken = np.empty(len(order) * width, dtype=np.uint8)
    # Eight bytes at a time; the last eight may overlap those before, with the same bytes.
    step = 8 if width >= 8 else 1
    for start in sorted({*range(0, width - step + 1, step), width - step}):
        source = _strided(data_buffer, int(offsets[0]) + start, step, len(array), width)
        _strided(taken, start, step, len(order), width)[:] = source[order]
    new_offsets = np.arange(0, (len(order) + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(array.type, len(order), [None, pa.py_buffer(new_offsets), pa.py_buffer(taken)])


def _strided(
    buffer: pa.Buffer | npt.NDArray[np.uint8], offset: int, size: int, count: int, width: int
) -> npt.NDArray[np.unsignedinteger]:
    """An integer of ``size`` bytes out of every string; sources are copied: numpy gathers aligned words faster."""
    view = np.ndarray(shape=(count,), dtype=f"u{size}", buffer=buffer, offset=offset, strides=(width,))
    return view if isinstance(buffer, np.ndarray) else np.ascontiguousarray(view)
