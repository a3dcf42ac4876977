"""Hashes values as the sketches of Apache DataSketches do: MurmurHash3 of 128 bits with the seed 9001, a column at a time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 9001
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_BLOCK = 16
AT_ONCE = 1 << 13
"""How many values are hashed at once."""
# Masks of the bytes of a last block, by how many it has.
_REST_BYTES = np.frombuffer(b"".join(b"\xff" * count + bytes(_BLOCK - count) for count in range(_BLOCK)), f"V{_BLOCK}")
# With fewer rows than this a block is hashed faster in Python than by numpy.
_FEW = 8
_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]


def hashes_of_words(words: _U64) -> tuple[_U64, _U64]:
    """Both halves of the hashes of values of 8 bytes."""
    low, high = np.empty(len(words), np.uint64), np.empty(len(words), np.uint64)
    other = np.empty(min(len(words), AT_ONCE), np.uint64)
    # So many at once that they stay near the processor.
    for first in range(0, len(words), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        _hash_words(words[some], low[some], high[some], other[: len(words) - first])
    return low, high


def _hash_words(words: _U64, low: _U64, high: _U64, other: _U64) -> None:
    """Writes both halves of hashes to their places, and over some other place of the same size."""
    np.multiply(words, np.uint64(_C1), out=low)
    np.right_shift(low, np.uint64(64 - 31), out=other)
    low <<= np.uint64(31)
    low |= other
    low *= np.uint64(_C2)
    low ^= np.uint64(SEED ^ 8)
    low += np.uint64(SEED ^ 8)
    np.add(low, np.uint64(SEED ^ 8), out=high)
    _mix(low, high, other)


def hashes_of_column(values: pa.Array) -> tuple[_U64, _U64, npt.NDArray[np.bool_]]:
    """Both halves of the hashes of bytes, or of texts in UTF-8, and which rows have any: NULL and what is empty have none.

    Where a row has none, each half has all bits.
    """
    column = values.cast(pa.large_binary())
    ends: _I64 = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    first, last = int(ends[0]), int(ends[-1])
    # With two blocks of zeros behind the last value, a block can be read at each place.
    text = (b"" if data is None else data.slice(first, last - first).to_pybytes()) + bytes(2 * _BLOCK)
    starts, lengths = ends[:-1] - first, np.diff(ends)
    has_bytes = lengths > 0
    if column.null_count:
        has_bytes &= np.asarray(column.is_valid())
    if has_bytes.all():
        return *_hashes_of_slices(text, starts, lengths), has_bytes
    some = np.flatnonzero(has_bytes)
    low, high = np.full(len(starts), _MASK, np.uint64), np.full(len(starts), _MASK, np.uint64)
    low[some], high[some] = _hashes_of_slices(text, starts.take(some), lengths.take(some))
    return low, high, has_bytes


def _hashes_of_slices(text: bytes, starts: _I64, lengths: _I64) -> tuple[_U64, _U64]:
    # numpy takes 16 bytes from any place in the time of 8.
    blocks: npt.NDArray[np.void] = np.ndarray((len(text) - _BLOCK + 1,), f"V{_BLOCK}", text, 0, (1,))
    low, high = np.full(len(starts), SEED, np.uint64), np.full(len(starts), SEED, np.uint64)
    at = starts.copy()
    whole = int(lengths.min()) // _BLOCK if len(lengths) else 0
    for _ in range(whole if len(lengths) >= _FEW else 0):
        _add_block(low, high, *_words_of(blocks[at].view(np.uint64)))
        at += _BLOCK
    rest = starts + lengths
    rest -= at
    rows = np.flatnonzero(rest >= _BLOCK)
    while len(rows) >= _FEW:
        some, others = low[rows], high[rows]
        _add_block(some, others, *_words_of(blocks[at[rows]].view(np.uint64)))
        low[rows], high[rows] = some, others
        at[rows] += _BLOCK
        rest[rows] -= _BLOCK
        rows = rows[rest[rows] >= _BLOCK]
    rest &= _BLOCK - 1
    words = blocks[at].view(np.uint64)
    words &= _REST_BYTES[rest].view(np.uint64)
    first, second = _words_of(words)
    high ^= _second_scrambled(second)
    low ^= _first_scrambled(first)
    low ^= lengths.view(np.uint64)
    high ^= lengths.view(np.uint64)
    low += high
    high += low
    _mix(low, high, first)
    for row in rows.tolist():
        start = int(starts[row])
        low[row], high[row] = hashes_of_bytes(text[start : start + int(lengths[row])])
    return low, high


def _words_of(words: _U64) -> tuple[_U64, _U64]:
    """The first, and the second words of blocks."""
    return words[::2].copy(), words[1::2].copy()


def _add_block(low: _U64, high: _U64, first: _U64, second: _U64) -> None:
    """Adds a block of two words to hashes, in their places."""
    low ^= _first_scrambled(first)
    _turn(low, 27)
    low += high
    low *= np.uint64(5)
    low += np.uint64(0x52DCE729)
    high ^= _second_scrambled(second)
    _turn(high, 31)
    high += low
    high *= np.uint64(5)
    high += np.uint64(0x38495AB5)


def _first_scrambled(words: _U64) -> _U64:
    words *= np.uint64(_C1)
    _turn(words, 31)
    words *= np.uint64(_C2)
    return words


def _second_scrambled(words: _U64) -> _U64:
    words *= np.uint64(_C2)
    _turn(words, 33)
    words *= np.uint64(_C1)
    return words


def _turn(words: _U64, by: int) -> None:
    other = words >> np.uint64(64 - by)
    words <<= np.uint64(by)
    words |= other


def _mix(low: _U64, high: _U64, other: _U64) -> None:
    """Ends hashes, in their places. ``other``: some other place of the same size."""
    for half in (low, high):
        for factor in _FACTORS:
            np.right_shift(half, np.uint64(33), out=other)
            half ^= other
            half *= factor
        np.right_shift(half, np.uint64(33), out=other)
        half ^= other
    low += high
    high += low


def hashes_of_bytes(data: bytes) -> tuple[int, int]:
    """Both halves of the hash of some bytes, in Python's numbers."""
    low = high = SEED
    whole = len(data) // _BLOCK * _BLOCK
    for at in range(0, whole, _BLOCK):
        first, second = (int.from_bytes(data[place : place + 8], "little") for place in (at, at + 8))
        low ^= _one_turned(first * _C1 & _MASK, 31) * _C2 & _MASK
        low = ((_one_turned(low, 27) + high & _MASK) * 5 + 0x52DCE729) & _MASK
        high ^= _one_turned(second * _C2 & _MASK, 33) * _C1 & _MASK
        high = ((_one_turned(high, 31) + low & _MASK) * 5 + 0x38495AB5) & _MASK
    rest = data[whole:]
    if len(rest) > 8:
        high ^= _one_turned(int.from_bytes(rest[8:], "little") * _C2 & _MASK, 33) * _C1 & _MASK
    if rest:
        low ^= _one_turned(int.from_bytes(rest[:8], "little") * _C1 & _MASK, 31) * _C2 & _MASK
    low, high = low ^ len(data), high ^ len(data)
    low = low + high & _MASK
    high = high + low & _MASK
    low, high = _one_mixed(low), _one_mixed(high)
    low = low + high & _MASK
    return low, high + low & _MASK


def _one_turned(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK


def _one_mixed(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
