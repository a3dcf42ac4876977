"""Encodes many BinaryRows at once, as 32-bit words per column, for the bucket hash.

For n rows, the fixed part (header and slots) is a sequence of words, each an array of n uint32 or one int where all
rows agree. Each variable area is either such words too, or text: 64-bit words at byte positions of one buffer, as many
per row as the row needs. Same layout as :mod:`tablestore.format.binaryrow`, nulls in the form of Java's projection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.binaryrow import (
    INLINE_BYTES,
    INLINE_MARK,
    WIDE_DECIMAL_AREA,
    header_bytes,
    is_wide_decimal,
    is_wide_timestamp,
)
from tablestore.types.arrays import U64
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import FLOAT_ROOTS, LENGTH_ROOTS, TIMESTAMP_ROOTS, AtomicType, DataType, TypeRoot

U32 = npt.NDArray[np.uint32]
Word = U32 | int
_NAN_32, _NAN_64 = 0x7FC00000, 0x7FF8000000000000


@dataclass(frozen=True, slots=True, kw_only=True)
class TextArea:
    """Bytes of variable length: row i has ``words[i]`` 8-byte words of ``buffer`` from ``starts[i]``, of which
    ``sizes[i]`` bytes count and the rest is zero. ``buffer`` has 8 spare bytes at its end."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]

    def word(self, index: int, rows: npt.NDArray[np.intp] | slice) -> U64:
        """The ``index``-th word of ``rows``, each of which must have it."""
        return load_words(self.buffer, self.starts[rows] + 8 * index, self.sizes[rows] - 8 * index)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWords:
    """n rows: the words of the fixed part, then the variable areas in field order, and each row's length in bytes."""

    rows: int
    fixed: tuple[Word, ...]
    areas: tuple[tuple[Word, ...] | TextArea, ...]
    byte_length: Word


def encode_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> RowWords:
    """The rows of equally long Arrow columns in any layout. Raises InvalidInputError if a column is not of its type,
    UnsupportedError for nested types."""
    arrays = [storage_array(column, data_type) for column, data_type in zip(columns, types, strict=True)]
    rows = len(arrays[0]) if arrays else 0
    if any(len(array) != rows for array in arrays):
        raise InvalidInputError(f"expected columns of one length, found {[len(array) for array in arrays]}")
    head = header_bytes(len(arrays))
    header: list[Any] = [0] * (head // 4)
    slots: list[Word] = []
    areas: list[tuple[Word, ...] | TextArea] = []
    offset: Any = head + 8 * len(arrays)
    for index, (array, data_type) in enumerate(zip(arrays, types, strict=True)):
        assert isinstance(data_type, AtomicType)
        nulls = _null_mask(array)
        if nulls is not None:
            word, bit = divmod(index + 8, 32)
            header[word] = header[word] | (nulls.astype(np.uint32) << np.uint32(bit))
        low, high, area, size = _encode_column(array, data_type, nulls, offset)
        slots += [low, high]
        if area is not None:
            areas.append(area)
            offset = offset + size
    return RowWords(rows=rows, fixed=(*header, *slots), areas=tuple(areas), byte_length=offset)


def storage_array(column: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    """``column`` as one array of the Arrow type that values of ``data_type`` are encoded from."""
    if not isinstance(data_type, AtomicType):
        raise UnsupportedError("keys and partitions hold no nested values")
    try:
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # more text than one array can hold
            column = column.cast(pa.large_binary()).combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        target = _storage_type(data_type, column.type)
        return column if column.type == target else column.cast(target)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"expected a column of type {data_type.root}, found {column.type} with values that do not fit ({error})"
        ) from error


def _storage_type(data_type: AtomicType, arrow_type: pa.DataType) -> pa.DataType:
    if data_type.root in TIMESTAMP_ROOTS:
        # Any unit will do: each is split into milliseconds and nanoseconds.
        return arrow_type if pa.types.is_timestamp(arrow_type) else pa.timestamp("us")
    if data_type.root in LENGTH_ROOTS:
        return arrow_type if pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type) else pa.binary()
    return to_arrow_type(data_type)


def _null_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    if array.null_count == 0:
        return None
    mask: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


Encoded = tuple[Word, Word, tuple[Word, ...] | TextArea | None, Word]


def _encode_column(array: pa.Array, data_type: AtomicType, nulls: npt.NDArray[np.bool_] | None, offset: Word) -> Encoded:
    """(low and high word of the slot, variable area, its size in bytes)."""
    root = data_type.root
    if root in LENGTH_ROOTS:
        return _encode_text(array, nulls, offset)
    if root is TypeRoot.DECIMAL:
        limbs = array_values(array, np.uint64, width=2)
        if is_wide_decimal(data_type):
            return _encode_wide_decimal(limbs, nulls, offset)
        return (*_halves(_zero_nulls(limbs[:, 0], nulls)), None, 0)
    if root in TIMESTAMP_ROOTS:
        millis, nanos = timestamp_arrays(array)
        low, high = _halves(_zero_nulls(millis.view(np.uint64), nulls))
        if not is_wide_timestamp(data_type):
            return low, high, None, 0
        return _zero_nulls(nanos.astype(np.uint32), nulls), _word(offset), (low, high), 8
    if root in FLOAT_ROOTS:
        numbers = _zero_nulls(float_bits(array), nulls)
        return (*_halves(numbers), None, 0) if root is TypeRoot.DOUBLE else (numbers, 0, None, 0)
    if root is TypeRoot.BOOLEAN:
        bits = pc.cast(array, pa.uint8())
        return _zero_nulls(array_values(bits, np.uint8).astype(np.uint32), nulls), 0, None, 0
    width = array.type.bit_width // 8
    values = _zero_nulls(array_values(array, np.dtype(f"u{width}")), nulls)
    if width == 8:
        return (*_halves(values), None, 0)
    return values.astype(np.uint32, copy=False), 0, None, 0


def _encode_text(array: pa.Array, nulls: npt.NDArray[np.bool_] | None, offset: Word) -> Encoded:
    buffer, starts, sizes = text_values(array)
    sizes = _zero_nulls(sizes, nulls)
    inline = sizes <= INLINE_BYTES
    mark = ((sizes | INLINE_MARK) << 56).view(np.uint64)
    short = load_words(buffer, starts, np.minimum(sizes, INLINE_BYTES)) | mark
    if bool(inline.all()):
        return (*_halves(_zero_nulls(short, nulls)), None, 0)
    words = np.where(inline, 0, (sizes + 7) >> 3)
    offsets = np.asarray(offset, dtype=np.int64)
    slots = np.where(inline, short, (sizes | (offsets << 32)).view(np.uint64))
    area = TextArea(buffer=buffer, starts=starts, sizes=sizes, words=words)
    return (*_halves(_zero_nulls(slots, nulls)), area, (words << 3).astype(np.uint32))


def _encode_wide_decimal(limbs: U64, nulls: npt.NDArray[np.bool_] | None, offset: Word) -> Encoded:
    """Big-endian two's complement of minimal length, at the front of a 16-byte area."""
    limbs = np.ascontiguousarray(limbs)
    if nulls is not None:
        limbs = np.where(nulls[:, None], np.uint64(0), limbs)
    big_endian = limbs.view(np.uint8).reshape(-1, WIDE_DECIMAL_AREA)[:, ::-1]
    sign = np.where(big_endian[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    # A leading byte is redundant if it only repeats the sign that the next byte shows too.
    redundant = (big_endian[:, :-1] == sign) & ((big_endian[:, 1:] ^ sign) < 0x80)
    skipped = np.argmin(np.c_[redundant, np.zeros(len(limbs), bool)], axis=1)
    sizes = WIDE_DECIMAL_AREA - skipped
    index = np.arange(WIDE_DECIMAL_AREA)[None, :] + skipped[:, None]
    padded = np.c_[big_endian, np.zeros_like(big_endian)]
    area = np.take_along_axis(padded, index, axis=1).view("<u4")
    low = _zero_nulls(sizes.astype(np.uint32), nulls)
    return low, _word(offset), tuple(np.ascontiguousarray(area[:, i]) for i in range(4)), WIDE_DECIMAL_AREA


def array_values(array: pa.Array, dtype: npt.DTypeLike, width: int = 1) -> npt.NDArray[Any]:
    """The values buffer of a fixed-width array, offset applied; nulls hold anything. (n, width) if width > 1."""
    data = array.buffers()[1]
    count = len(array)
    if data is None or count == 0:
        values: npt.NDArray[Any] = np.zeros(count * width, dtype)
    else:
        itemsize = np.dtype(dtype).itemsize
        values = np.frombuffer(data, dtype, count * width, array.offset * width * itemsize)
    return values.reshape(count, width) if width > 1 else values


def float_bits(array: pa.Array) -> npt.NDArray[Any]:
    """The bits of float32 or float64 values, every NaN as the one of Java's floatToIntBits: all NaNs are one key."""
    single = array.type.bit_width == 32
    values = array_values(array, np.float32 if single else np.float64)
    bits = values.view(np.uint32 if single else np.uint64)
    is_nan = np.isnan(values)
    return np.where(is_nan, bits.dtype.type(_NAN_32 if single else _NAN_64), bits) if is_nan.any() else bits


def text_values(array: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(bytes with 8 spare ones, start and size of each row) of a binary or string array."""
    count = len(array)
    _, offsets_buffer, data = array.buffers()
    if count == 0 or offsets_buffer is None:
        return np.zeros(8, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64)
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype: npt.DTypeLike = np.int64 if large else np.int32
    offsets = np.frombuffer(offsets_buffer, dtype, count + 1, array.offset * np.dtype(dtype).itemsize).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    # A copy of the bytes in use: a word is loaded from any byte, so the last one needs room behind it.
    buffer = np.zeros(last - first + 8, np.uint8)
    if data is not None and last > first:
        buffer[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    return buffer, offsets[:-1] - first, np.diff(offsets)


def timestamp_arrays(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(epoch milliseconds, nanoseconds within the millisecond), rounded down; nulls hold anything."""
    values = array_values(array, np.int64)
    unit = array.type.unit
    if unit == "s":
        return values * 1000, np.zeros(len(values), np.int64)
    if unit == "ms":
        return values, np.zeros(len(values), np.int64)
    per_milli, nanos = (1000, 1000) if unit == "us" else (1_000_000, 1)
    millis = values // per_milli
    return millis, (values - millis * per_milli) * nanos


def load_words(buffer: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> U64:
    """The 8 bytes at each start as a little-endian number, the ones beyond the size zeroed."""
    # One unaligned number per byte position: a view, not a copy.
    view: U64 = np.ndarray(shape=(len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,))
    return view[starts] & _KEEP[np.minimum(sizes, 8)]


_KEEP: U64 = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)


def _zero_nulls(values: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
    return values if nulls is None else np.where(nulls, values.dtype.type(0), values)


def _halves(values: U64) -> tuple[U32, U32]:
    pairs = np.ascontiguousarray(values).view("<u4").reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _word(offset: Word) -> Word:
    return offset if isinstance(offset, int) else offset.astype(np.uint32)
