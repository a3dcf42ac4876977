"""Hashes values as the sketches of Apache DataSketches do: MurmurHash3 of 128 bits with the seed 9001, a column at a time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 9001
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK = 16
# With fewer rows than this a block is hashed faster in Python than by numpy.
_FEW = 8
_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]


def hashes_of_words(words: _U64) -> tuple[_U64, _U64]:
    """Both halves of the hashes of values of 8 bytes."""
    return _ended(np.uint64(SEED) ^ _first_scrambled(words), np.full(len(words), SEED, np.uint64), np.uint64(8))


def hashes_of_column(values: pa.Array) -> tuple[_U64, _U64, npt.NDArray[np.bool_]]:
    """Both halves of the hashes of bytes, or of texts in UTF-8, and which rows have any: NULL and what is empty have none."""
    column = values.cast(pa.large_binary())
    ends: _I64 = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    first, last = int(ends[0]), int(ends[-1])
    # With two blocks of zeros behind the last value, words can be read at each place.
    text = (b"" if data is None else data.slice(first, last - first).to_pybytes()) + bytes(2 * _BLOCK)
    starts, lengths = ends[:-1] - first, np.diff(ends)
    words: _U64 = np.ndarray((len(text) - 7,), np.dtype("<u8"), text, 0, (1,))
    low, high = np.full(len(starts), SEED, np.uint64), np.full(len(starts), SEED, np.uint64)
    at = starts.copy()
    rows = np.flatnonzero(lengths >= _BLOCK)
    while len(rows) >= _FEW:
        places = at[rows]
        low[rows], high[rows] = _with_block(low[rows], high[rows], words[places], words[places + 8])
        at[rows] += _BLOCK
        rows = rows[starts[rows] + lengths[rows] - at[rows] >= _BLOCK]
    rest = starts + lengths - at
    bits = np.clip(np.stack((rest, rest - 8)), 0, 8).astype(np.uint64) * np.uint64(8)
    # A shift by 64 bits says nothing, so 0 bits are a case of their own.
    masks = np.where(bits > 0, np.uint64(_MASK) >> (np.uint64(64) - np.maximum(bits, np.uint64(8))), np.uint64(0))
    high ^= _second_scrambled(words[at + 8 * (rest > 8)] & masks[1])
    low ^= _first_scrambled(words[at] & masks[0])
    low, high = _ended(low, high, lengths.astype(np.uint64))
    for row in rows.tolist():
        start = int(starts[row])
        low[row], high[row] = hashes_of_bytes(text[start : start + int(lengths[row])])
    return low, high, (lengths > 0) & np.asarray(column.is_valid())


def _with_block(low: _U64, high: _U64, first: _U64, second: _U64) -> tuple[_U64, _U64]:
    low = _turned(low ^ _first_scrambled(first), 27) + high
    low = low * np.uint64(5) + np.uint64(0x52DCE729)
    high = _turned(high ^ _second_scrambled(second), 31) + low
    return low, high * np.uint64(5) + np.uint64(0x38495AB5)


def _first_scrambled(words: _U64) -> _U64:
    return _turned(words * np.uint64(_C1), 31) * np.uint64(_C2)


def _second_scrambled(words: _U64) -> _U64:
    return _turned(words * np.uint64(_C2), 33) * np.uint64(_C1)


def _turned(words: _U64, by: int) -> _U64:
    return words << np.uint64(by) | words >> np.uint64(64 - by)


def _ended(low: _U64, high: _U64, lengths: "_U64 | np.uint64") -> tuple[_U64, _U64]:
    low, high = low ^ lengths, high ^ lengths
    low = low + high
    high = high + low
    low, high = _mixed(low), _mixed(high)
    low = low + high
    return low, high + low


def _mixed(words: _U64) -> _U64:
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ words >> np.uint64(33)


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
