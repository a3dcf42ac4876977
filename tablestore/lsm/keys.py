"""Encodes row keys as machine words that compare as the keys do.

Two steps. ``plain_columns`` turns the key columns of one batch into *plain* columns whose natural order is
Paimon's key order; plain columns of different batches of a merge compare with each other as they are, which is all that
cutting a window needs:

    integers, dates, times, timestamps, booleans, DECIMAL(<=18)    signed integers (numpy, mostly without a copy)
    FLOAT, DOUBLE                                                  int64: -0.0 < 0.0, NaN last, as in Java
    DECIMAL(>18)                                                   two columns: high int64, low uint64
    strings, bytes                                                 Arrow binary: unsigned bytes, shorter first
    anything nullable                                              one more column before it: 0 null, 1 value

``to_words`` then turns the plain columns of all rows of one window into *words*: numbers below 2**bits, the most
significant first. The encoding is chosen from all rows together, so words compare within their window only:

    integers              the distance from the smallest
    strings, bytes        eight bytes per word, without the bits that are the same in all rows
    beyond 128 bytes      the string's dense rank among the window's strings

Constant bits never decide a comparison, so dropping them keeps the order: keys such as ``item-00012345`` share a
prefix, use four bits per digit, and fit into one word. Where the first words order most rows, later words of
strings are computed only for the rows that are still tied. Invariant: all words are equal exactly if the keys are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, UnsupportedError
from tablestore.types.arrays import U64, Places

Integers = npt.NDArray[np.integer]
PlainColumn: TypeAlias = Integers | pa.Array

MAX_WORDS_PER_STRING = 16
# So many varying bits order most rows: the rest of a string is left for later.
_ENOUGH_BITS = 44
_ALL_BITS = 2**64 - 1
# The upper n bytes of a big-endian word, n = 0…8: what a string of n remaining bytes leaves of a word.
_UPPER_BYTES = np.array([_ALL_BITS ^ ((1 << (64 - 8 * n)) - 1) for n in range(9)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class KeyWord:
    """One word per row, below ``2**bits``: in memory, or worked out for the rows that are asked for."""

    bits: int
    values: U64 | None
    strings: "_Strings | None" = None
    position: int = 0

    def at(self, rows: Places | None = None) -> U64:
        """The word of all rows, or of some."""
        if self.values is not None:
            return self.values if rows is None else self.values[rows]
        assert self.strings is not None
        return self.strings.word(self.position, rows)


@dataclass(frozen=True, slots=True)
class KeyWords:
    """The words of the rows of one window, most significant first."""

    row_count: int
    columns: tuple[KeyWord, ...]

    @property
    def total_bits(self) -> int:
        """The number of bits that decide a comparison."""
        return sum(column.bits for column in self.columns)

    def joined(self) -> U64 | None:
        """One number per row that compares as the keys do; None if it would need more than 64 bits."""
        if self.total_bits > 64:
            return None
        out: U64 | None = None
        for column in self.columns:
            values = column.at()
            out = values if out is None else (out << np.uint64(column.bits)) | values
        return np.zeros(self.row_count, dtype=np.uint64) if out is None else out


def plain_columns(arrays: Sequence[pa.Array], nullable: Sequence[bool]) -> list[PlainColumn]:
    """The plain columns of one batch's key columns; ``nullable[i]`` must be the same for all batches of a merge."""
    plain: list[PlainColumn] = []
    for array, may_be_null in zip(arrays, nullable, strict=True):
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if may_be_null:
            valid = np.ones(len(array), dtype=np.int8)
            if array.null_count:
                valid = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int8)
            plain.append(valid)
        elif array.null_count:
            raise FormatError(f"a key column of type {array.type} declared NOT NULL holds {array.null_count} nulls")
        plain.extend(_plain(array))
    return plain


def concat_plain(chunks: Sequence[Sequence[PlainColumn]]) -> list[PlainColumn]:
    """The chunks' plain columns one below the other."""
    if len(chunks) == 1:
        return list(chunks[0])
    out: list[PlainColumn] = []
    for parts in zip(*chunks, strict=True):
        if all(isinstance(part, np.ndarray) for part in parts):
            out.append(np.concatenate(parts))
        else:
            out.append(pa.concat_arrays(list(parts)))
    return out


def to_words(plain: Sequence[PlainColumn]) -> KeyWords:
    """Order-preserving words of a window's plain columns; words that are the same in all rows are left out."""
    columns: list[KeyWord] = []
    bits = 0
    for column in plain:
        words = _string_words(column, bits) if isinstance(column, pa.Array) else [_integer_word(column)]
        columns.extend(word for word in words if word.bits)
        bits = sum(word.bits for word in columns)
    return KeyWords(len(plain[0]), tuple(columns))


def slice_plain(plain: Sequence[PlainColumn], start: int, stop: int) -> list[PlainColumn]:
    """Rows ``start`` to ``stop`` of plain columns, without a copy."""
    return [column.slice(start, stop - start) if isinstance(column, pa.Array) else column[start:stop] for column in plain]


def key_at(plain: Sequence[PlainColumn], row: int) -> tuple[int | bytes, ...]:
    """One row's key as a tuple that compares with other rows' in key order."""
    return tuple(column[row].as_py() if isinstance(column, pa.Array) else int(column[row]) for column in plain)


def rows_up_to(
    plain: Sequence[PlainColumn], bound: tuple[int | bytes, ...], start: int, stop: int, *, include_equal: bool = True
) -> int:
    """The position after the last row with key <= ``bound`` among the sorted rows ``start`` to ``stop``.

    Without ``include_equal`` the rows with key < ``bound``.
    """
    low, high = start, stop
    for column, value in zip(plain, bound, strict=True):
        if isinstance(column, np.ndarray):
            number = _number_of(column, value)
            left = low + int(np.searchsorted(column[low:high], number, side="left"))
            right = low + int(np.searchsorted(column[low:high], number, side="right"))
        else:
            left = _bisect(column, value, low, high, include_equal=False)
            right = _bisect(column, value, low, high, include_equal=True)
        low, high = left, right
        if low == high:
            return low
    return high if include_equal else low


def _number_of(column: Integers, value: int | bytes) -> np.generic:
    """The value in the column's own type: of a uint64 column and a plain int numpy makes floats, which round."""
    number: np.generic = column.dtype.type(value)
    return number


def _bisect(column: pa.Array, value: int | bytes, low: int, high: int, *, include_equal: bool) -> int:
    while low < high:
        middle = (low + high) // 2
        current = column[middle].as_py()
        if current < value or (include_equal and current == value):
            low = middle + 1
        else:
            high = middle
    return low


def _plain(array: pa.Array) -> list[PlainColumn]:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        return [array.fill_null(b"") if array.null_count else array]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [array.fill_null(b"") if array.null_count else array]
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        array = array.cast(pa.binary())
        return [array.fill_null(b"") if array.null_count else array]
    if pa.types.is_boolean(kind):
        return [array.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False)]
    if pa.types.is_floating(kind):
        return [_ordered_floats(array)]
    if pa.types.is_decimal(kind):
        return _decimal_columns(array)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_date64(kind):
        array = array.view(pa.int64())
    elif not pa.types.is_integer(kind):
        raise UnsupportedError(f"rows cannot be ordered by a column of type {kind}: use an atomic type as key")
    if array.null_count:
        array = array.fill_null(0)
    return [array.to_numpy(zero_copy_only=False)]


def _ordered_floats(array: pa.Array) -> npt.NDArray[np.int64]:
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    if np.isnan(values).any():
        values = np.where(np.isnan(values), np.nan, values)  # one NaN: all NaNs are the same key
    bits = values.view(np.int64)
    # Negative numbers order backwards by their bits: flip all but the sign.
    ordered: npt.NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return ordered


def _decimal_columns(array: pa.Array) -> list[PlainColumn]:
    if not pa.types.is_decimal128(array.type):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    raw = np.frombuffer(array.buffers()[1], dtype="<u8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    if array.null_count:
        raw = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], raw, np.uint64(0))
    low = np.ascontiguousarray(raw[:, 0])
    if array.type.precision <= 18:
        return [low.view(np.int64)]
    return [np.ascontiguousarray(raw[:, 1]).view(np.int64), low]


def _integer_word(column: Integers) -> KeyWord:
    if not len(column):
        return KeyWord(0, np.zeros(0, dtype=np.uint64))
    smallest, largest = int(column.min()), int(column.max())
    width = (largest - smallest).bit_length()
    # Wraps around on purpose: the difference is right modulo 2**64 and below 2**width.
    values = column.astype(np.uint64) if column.dtype != np.int64 else column.view(np.uint64)
    return KeyWord(width, values - np.uint64(smallest % 2**64) if smallest else values)


def _string_words(array: pa.Array, bits_before: int) -> list[KeyWord]:
    if not len(array):
        return []
    strings = _Strings(array)
    if strings.longest > 8 * MAX_WORDS_PER_STRING:
        return [_integer_word(pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_numpy())]
    words: list[KeyWord] = []
    bits = bits_before
    for position in range(0, strings.longest, 8):
        if bits >= _ENOUGH_BITS:
            words.append(KeyWord(64, None, strings, position))
        else:
            words.append(_varying_bits(strings.word(position)))
            bits += words[-1].bits
    if strings.ambiguous:
        # Padding and a real NUL look alike: of two strings that differ in trailing NULs only, the shorter is smaller.
        words.append(_integer_word(strings.lengths))
    return words


class _Strings:
    """The strings of a window as big-endian words of eight bytes, padded with zeros."""

    def __init__(self, array: pa.Array) -> None:
        offsets, data = _string_buffers(array)
        first, last = int(offsets[0]), int(offsets[-1])
        self._count = len(array)
        self._starts = offsets[:-1]
        self.lengths = np.diff(offsets)
        self.longest = int(self.lengths.max())
        self._uniform = int(self.lengths.min()) == self.longest
        self._first = first
        # A word may start within the last string and reach beyond the buffer: leave zeros behind it.
        self._padded = np.concatenate([data[first:last], np.zeros(8, dtype=np.uint8)])
        self.ambiguous = not self._uniform and int(data[first:last].min()) == 0

    def word(self, position: int, rows: Places | None = None) -> U64:
        """The eight bytes from ``position`` on of all strings, or of some."""
        remaining = min(8, self.longest - position)
        if self._uniform and rows is None:
            # Strings of one length lie at a fixed stride: no gather.
            word: U64 = np.ndarray(
                shape=(self._count,), dtype="<u8", buffer=self._padded, offset=position, strides=(self.longest,)
            ).byteswap()
        else:
            starts = self._starts if rows is None else self._starts[rows]
            # Raw bytes and not integers: numpy gathers integers that are not aligned slowly.
            at_byte: npt.NDArray[np.void] = np.ndarray(
                shape=(len(self._padded) - 7,), dtype="V8", buffer=self._padded, strides=(1,)
            )
            places = np.minimum(starts.astype(np.int64) + (position - self._first), len(at_byte) - 1)
            word = at_byte[places].view("<u8").byteswap()
        if self._uniform:
            if remaining < 8:
                word &= _UPPER_BYTES[remaining]
        else:
            lengths = self.lengths if rows is None else self.lengths[rows]
            word &= _UPPER_BYTES[np.clip(lengths - position, 0, 8)]
        return word


def _string_buffers(array: pa.Array) -> tuple[Integers, npt.NDArray[np.uint8]]:
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    dtype = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(offset_buffer, dtype=dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.zeros(0, dtype=np.uint8)
    return offsets, data


def _varying_bits(word: U64) -> KeyWord:
    """The bits of the words that are not the same in all rows, moved together."""
    differing = int(np.bitwise_or.reduce(word ^ word[0]))
    if not differing:
        return KeyWord(0, word)
    low = (differing & -differing).bit_length() - 1
    high = differing.bit_length()
    count = differing.bit_count()
    if high - low <= count + 8:
        # Nearly dense: cutting off both ends is enough.
        return KeyWord(high - low, (word >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1))
    return KeyWord(count, _compress(word, differing))


def _compress(word: U64, mask: int) -> U64:
    """The bits of ``word`` under ``mask``, moved to the low end in order (Warren, Hacker's Delight, "Compress")."""
    out = word & np.uint64(mask)
    kept_mask = mask
    zeros_to_right = ~mask << 1 & _ALL_BITS
    for step in range(6):
        parity = zeros_to_right
        for shift in (1, 2, 4, 8, 16, 32):
            parity ^= parity << shift & _ALL_BITS
        moving = parity & kept_mask
        if moving:
            kept_mask = (kept_mask ^ moving) | (moving >> (1 << step))
            moved = out & np.uint64(moving)
            out ^= moved
            moved >>= np.uint64(1 << step)
            out |= moved
        zeros_to_right &= ~parity & _ALL_BITS
    return out
