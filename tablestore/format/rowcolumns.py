"""Reads one field of many serialised rows at once: of the partitions, keys and bounds of manifest entries.

Each field of a :mod:`binaryrow` has a slot at a fixed place, so a field of n rows is one gather of n slots, and for texts a second
one of the bytes that the slots point to. :func:`row_field` gives values in a form that has the order of the column, for comparisons
with a literal in the same form (:func:`literal_field`), not the values themselves:

    whole numbers, DECIMAL up to 18 digits    int64 (unscaled)      DATE              int64 (days)
    TIME, TIMESTAMP                           int64 (milliseconds: the rest is cut, also of a literal)      texts and bytes   binary
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import INLINE_MARK, encode_row, header_bytes, is_wide_decimal, is_wide_timestamp
from tablestore.types.arrays import mask_of
from tablestore.types.datatypes import INTEGER_ROOTS, LENGTH_ROOTS, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot

_INLINE_VIEW_BYTES = 12
_WORD = 8
_ARITY_BYTES = 4
# What a number takes of its slot.
_BYTES = {TypeRoot.TINYINT: 1, TypeRoot.SMALLINT: 2, TypeRoot.INT: 4, TypeRoot.DATE: 4, TypeRoot.TIME: 4}
_PADDING = bytes(64)


def has_order(data_type: DataType) -> bool:
    """True for types whose fields :func:`row_field` reads. Floats are none of them: a NaN has no place in their order."""
    if not isinstance(data_type, AtomicType):
        return False
    root = data_type.root
    if root is TypeRoot.DECIMAL:
        return not is_wide_decimal(data_type)
    return root in INTEGER_ROOTS or root in TIMESTAMP_ROOTS or root in LENGTH_ROOTS or root in (TypeRoot.DATE, TypeRoot.TIME)


# The same for each of many manifests. 1 and True are equal, and no values of one type.
@lru_cache(maxsize=1024, typed=True)
def literal_field(value: object, data_type: DataType) -> pa.Scalar | None:
    """A literal in the form of :func:`row_field`; None if the type has none, or it is no value of the type."""
    if value is None or not has_order(data_type):
        return None
    try:
        row = encode_row((value,), (data_type,))
    except InvalidInputError:
        return None
    offsets = pa.py_buffer(np.array([0, len(row)], np.int32))
    return row_field(pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(row)]), 1, 0, data_type)[0]


def row_field(rows: pa.Array, arity: int, index: int, data_type: DataType) -> pa.Array:
    """Field ``index`` of serialised rows (binary): int64 or binary, see above. Null where the field is null or unknown: the row is
    null, damaged, or has not ``arity`` fields. ``data_type``: one that :func:`has_order`."""
    assert isinstance(data_type, AtomicType)
    count = len(rows)
    data, starts, sizes = _pieces(rows)
    fixed = header_bytes(arity) + _WORD * arity
    valid = sizes >= _ARITY_BYTES + fixed
    # Rows that are too short are read at the padding.
    starts = np.where(valid, starts, len(data) - len(_PADDING))
    words = np.lib.stride_tricks.sliding_window_view(data, _WORD)
    found_arity = words[starts, :_ARITY_BYTES].copy().view(">i4").ravel()
    null_bits = data[np.where(valid, starts + _ARITY_BYTES + (index + 8) // 8, 0)] >> (index % 8)
    valid &= (found_arity == arity) & (null_bits & 1 == 0)
    at = starts + _ARITY_BYTES + header_bytes(arity) + _WORD * index
    slots = words[np.where(valid, at, len(data) - len(_PADDING))]
    if data_type.root in LENGTH_ROOTS:
        return _texts(data, slots, starts, at, sizes, valid)
    if data_type.root in TIMESTAMP_ROOTS and is_wide_timestamp(data_type):
        offsets = slots.copy().view("<i4")[:, 1].astype(np.int64)
        valid &= (offsets >= 0) & (_ARITY_BYTES + offsets + _WORD <= sizes)
        areas = words[np.where(valid, starts + _ARITY_BYTES + offsets, len(data) - len(_PADDING))]
        return _numbers(areas, _WORD, valid, count)
    return _numbers(slots, _BYTES.get(data_type.root, _WORD), valid, count)


def slices_of(
    data: pa.Buffer, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]
) -> pa.Array:
    """The bytes at ``starts`` as an array of binary, null where not ``valid``. ``data`` has 12 spare bytes at its end, and at most
    2 GiB."""
    views = np.zeros((len(starts), 4), np.int32)
    views[:, 0] = np.where(valid, sizes, 0)
    # The four bytes between should repeat the first ones. Comparisons look at them; a cast copies all the bytes.
    views[:, 3] = starts
    short = np.flatnonzero(views[:, 0] <= _INLINE_VIEW_BYTES)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), _INLINE_VIEW_BYTES)
    views.view(np.uint8).reshape(-1, 16)[short, 4:] = windows[starts[short]]
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary_view(), len(starts), [mask, pa.py_buffer(views), data]).cast(pa.binary())


def _pieces(rows: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bytes of an array of binary with padding behind, where its values start, and their sizes (-1 for null)."""
    _, offsets_buffer, data_buffer = rows.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[rows.offset : rows.offset + len(rows) + 1].astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(rows) else (0, 0)
    data = np.frombuffer(bytes(memoryview(data_buffer)[first:last] if data_buffer is not None else b"") + _PADDING, np.uint8)
    sizes = np.diff(offsets)
    if rows.null_count:
        sizes = np.where(mask_of(rows.is_null()), -1, sizes)
    return data, offsets[:-1] - first, sizes


def _numbers(words: npt.NDArray[np.uint8], width: int, valid: npt.NDArray[np.bool_], count: int) -> pa.Array:
    values = np.ascontiguousarray(words[:, :width]).view(f"<i{width}").reshape(count).astype(np.int64)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), count, [mask, pa.py_buffer(np.where(valid, values, 0))])


def _texts(
    data: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    at: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
) -> pa.Array:
    mark = slots[:, _WORD - 1]
    inline = mark >= INLINE_MARK
    pairs = slots.copy().view("<i4").astype(np.int64)
    lengths = np.where(inline, mark & (INLINE_MARK - 1), pairs[:, 0])
    places = np.where(inline, at, starts + _ARITY_BYTES + pairs[:, 1])
    valid = valid & (lengths >= 0) & (places >= starts) & (places + lengths <= starts + sizes)
    return slices_of(pa.py_buffer(data), np.where(valid, places, 0), lengths, valid)
