"""Hashes values as the sketches of Apache DataSketches do: MurmurHash3 of 128 bits with the seed 9001, a column at a time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 9001
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]
_U8 = npt.NDArray[np.uint8]
# Arrays of one number, which numpy takes faster than a number.
_FACTORS = (np.array([0xFF51AFD7ED558CCD], np.uint64), np.array([0xC4CEB9FE1A85EC53], np.uint64))
_HALF, _FIVE = np.array([33], np.uint64), np.array([5], np.uint64)
_ADDED = (np.array([0x52DCE729], np.uint64), np.array([0x38495AB5], np.uint64))
_TURNS = {by: (np.array([by], np.uint64), np.array([64 - by], np.uint64)) for by in (27, 31, 33)}
_FIRST = (np.array([_C1], np.uint64), _TURNS[31], np.array([_C2], np.uint64))
_SECOND = (_FIRST[2], _TURNS[33], _FIRST[0])
_SHORT_TYPES = (pa.string(), pa.binary())
_BLOCK, _BLOCK_BITS = 16, 4
AT_ONCE = 1 << 13
"""How many values are hashed at once."""
# Masks of the bytes of a last block, by how many it has.
_REST_BYTES = np.frombuffer(b"".join(b"\xff" * count + bytes(_BLOCK - count) for count in range(_BLOCK)), f"V{_BLOCK}")
# With fewer rows than this a block is hashed faster in Python than by numpy.
_FEW = 8


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

    Where a row has none, the halves are any numbers.
    """
    is_short = values.type in _SHORT_TYPES
    column, kind = (values, np.dtype(np.int32)) if is_short else (values.cast(pa.large_binary()), np.dtype(np.int64))
    _, offsets, data = column.buffers()
    ends: _I64 = np.frombuffer(offsets, kind, len(column) + 1, column.offset * kind.itemsize).astype(np.int64)
    first, size = int(ends[0]), int(ends[-1] - ends[0])
    lengths = ends[1:] - ends[:-1]
    if column.null_count:
        lengths *= np.asarray(column.is_valid())
    has_bytes = lengths > 0
    shortest = int(lengths.min(initial=size))
    if not shortest:
        # A row without bytes is hashed as one that has the fewest: then all have the same first blocks.
        shortest = int(lengths.min(initial=size, where=has_bytes))
        lengths[~has_bytes] = shortest
    # Blocks are read behind the last value too.
    text = np.zeros(size + shortest + 2 * _BLOCK, np.uint8)
    if size:
        text[:size] = np.frombuffer(data, np.uint8)[first : first + size]
    starts = ends[:-1] - first if first else ends[:-1]
    low, high = np.empty(len(starts), np.uint64), np.empty(len(starts), np.uint64)
    # So many at once that they stay near the processor.
    for begin in range(0, len(starts), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        _hash_slices(text, starts[part], lengths[part], low[part], high[part])
    return low, high, has_bytes


def _hash_slices(text: _U8, starts: _I64, lengths: _I64, low: _U64, high: _U64) -> None:
    """Writes both halves of the hashes of slices of a text to their places."""
    counts = lengths >> _BLOCK_BITS
    fewest, most = int(counts.min()), int(counts.max())
    if fewest == most:
        _hash_ordered(text, starts, lengths, np.full(most, len(starts)), low, high)
        return
    # Those of the most blocks come first: what has one block more than others is at the front.
    lacks = most - counts
    order = np.argsort(lacks.astype(np.uint16) if most <= 0xFFFF else lacks, kind="stable")
    lacking = lacks.take(order)
    actives = np.searchsorted(lacking, np.arange(most, 0, -1))
    ordered_low, ordered_high = np.empty_like(low), np.empty_like(high)
    _hash_ordered(text, starts.take(order), lengths.take(order), actives, ordered_low, ordered_high)
    low[order], high[order] = ordered_low, ordered_high


def _hash_ordered(text: _U8, starts: _I64, lengths: _I64, actives: _I64, low: _U64, high: _U64) -> None:
    """Writes hashes of slices, of which the first ``actives`` have another block each."""
    # numpy takes 16 bytes from any place in the time of 8.
    blocks: npt.NDArray[np.void] = np.ndarray((len(text) - _BLOCK + 1,), f"V{_BLOCK}", text, 0, (1,))
    low.fill(SEED)
    high.fill(SEED)
    words, other = np.empty_like(low), np.empty_like(low)
    at = starts.copy()
    many = int(np.searchsorted(-actives, -_FEW, "right"))
    for active in actives[:many].tolist():
        some = slice(active)
        _add_block(blocks[at[some]].view(np.uint64), low[some], high[some], words[some], other[some])
        at[some] += _BLOCK
    last = blocks[at].view(np.uint64)
    last &= _REST_BYTES[lengths & (_BLOCK - 1)].view(np.uint64)
    high ^= _scrambled(last[1::2], _SECOND, words, other)
    low ^= _scrambled(last[::2], _FIRST, words, other)
    sizes = lengths.view(np.uint64)
    low ^= sizes
    high ^= sizes
    low += high
    high += low
    _mix(low, high, other)
    for row in range(int(actives[many]) if many < len(actives) else 0):
        start = int(starts[row])
        low[row], high[row] = hashes_of_bytes(text[start : start + int(lengths[row])].tobytes())


def _add_block(pairs: _U64, low: _U64, high: _U64, words: _U64, other: _U64) -> None:
    """Adds a block of two words to hashes, in their places. ``words``, ``other``: other places of the same size."""
    low ^= _scrambled(pairs[::2], _FIRST, words, other)
    _turn(low, _TURNS[27], other)
    low += high
    low *= _FIVE
    low += _ADDED[0]
    high ^= _scrambled(pairs[1::2], _SECOND, words, other)
    _turn(high, _TURNS[31], other)
    high += low
    high *= _FIVE
    high += _ADDED[1]


def _scrambled(words: _U64, by: "tuple[_U64, tuple[_U64, _U64], _U64]", out: _U64, other: _U64) -> _U64:
    np.multiply(words, by[0], out=out)
    _turn(out, by[1], other)
    out *= by[2]
    return out


def _turn(words: _U64, by: "tuple[_U64, _U64]", other: _U64) -> None:
    np.right_shift(words, by[1], out=other)
    words <<= by[0]
    words |= other


def _mix(low: _U64, high: _U64, other: _U64) -> None:
    """Ends hashes, in their places. ``other``: some other place of the same size."""
    for half in (low, high):
        for factor in _FACTORS:
            np.right_shift(half, _HALF, out=other)
            half ^= other
            half *= factor
        np.right_shift(half, _HALF, out=other)
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
