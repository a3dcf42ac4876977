"""Computes the bucket of each row. This is part of the format, since readers prune by it and writers must agree.

    default   abs(hash % N), hash = Murmur3 (x86, 32 bits, seed 42) over the BinaryRow of the bucket key
    mod       floorMod of a single INT or BIGINT column
    hive      31 * h + hash per column, made non-negative, mod N

Murmur3 by Austin Appleby (public domain), as Paimon and Flink seed it; all rows at once, word by word, in blocks of
rows that fit the processor's cache.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.rowwords import U32, TextArea, Word, array_values, encode_rows, float_bits, storage_array, text_values
from tablestore.inorder import in_order, threads_for
from tablestore.types.datatypes import LENGTH_ROOTS, AtomicType, DataType, TypeRoot

# Stored in effect: changing any of these moves every row.
SEED = 42
_C1, _C2, _M, _N = 0xCC9E2D51, 0x1B873593, 5, 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35

_MASK = 0xFFFFFFFF
_BLOCK_ROWS = 1 << 15
_FEW_ROWS = 24

Hashes = npt.NDArray[np.int32]


def hash_columns(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> Hashes:
    """The signed 32-bit hash of each row of the bucket key columns, in key order. Raises InvalidInputError if a column is not of
    its type, UnsupportedError for nested types."""
    if not columns:
        raise InvalidInputError("expected at least one bucket key column, found none")
    arrays = [storage_array(column, data_type) for column, data_type in zip(columns, types, strict=True)]
    rows = len(arrays[0])
    result = np.empty(rows, np.uint32)

    def hash_block(start: int) -> None:
        block = [array.slice(start, _BLOCK_ROWS) for array in arrays]
        result[start : start + _BLOCK_ROWS] = _hash_block(block, types)

    starts = range(0, rows, _BLOCK_ROWS)
    # A row has eight bytes before its values.
    threads = threads_for(8 * rows + sum(array.nbytes for array in arrays))
    for _ in map(hash_block, starts) if threads == 1 else in_order(hash_block, starts, threads=threads):
        pass
    return result.view(np.int32)


def bucket_of(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    types: Sequence[DataType],
    num_buckets: int,
    function: str = "default",
) -> npt.NDArray[np.int32]:
    """The bucket (0 to ``num_buckets`` - 1) of each row; ``function`` as in ``bucket-function.type``."""
    if num_buckets < 1:
        raise InvalidInputError(f"expected at least one bucket, found {num_buckets}")
    if function not in _FUNCTIONS:
        raise UnsupportedError(
            f"expected the bucket function {', '.join(_FUNCTIONS)}, found {function!r}; set 'bucket-function.type'",
            kind="unknown-bucket-function",
        )
    return _FUNCTIONS[function](columns, types, num_buckets).astype(np.int32)


def _default(columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> npt.NDArray[np.int64]:
    # Java's remainder has the sign of the dividend, and so has fmod.
    return np.abs(np.fmod(hash_columns(columns, types).astype(np.int64), buckets))


def _mod(columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> npt.NDArray[np.int64]:
    roots = [data_type.root if isinstance(data_type, AtomicType) else None for data_type in types]
    if len(roots) != 1 or roots[0] not in (TypeRoot.INT, TypeRoot.BIGINT):
        raise InvalidInputError(
            f"expected one bucket key column of type INT or BIGINT for the bucket function mod, found {roots}; choose "
            "another 'bucket-key' or 'bucket-function.type'"
        )
    array = storage_array(columns[0], types[0]).cast(pa.int64()).fill_null(0)
    values: npt.NDArray[np.int64] = np.mod(array_values(array, np.int64), np.int64(buckets))
    return values


def _hive(columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> npt.NDArray[np.int64]:
    state: U32 | int = 0
    for column, data_type in zip(columns, types, strict=True):
        hashes = _hive_hash(storage_array(column, data_type), data_type)
        state = hashes if isinstance(state, int) else state * np.uint32(31) + hashes
    return (np.asarray(state, np.int64) & 0x7FFFFFFF) % buckets


_FUNCTIONS: dict[str, Callable[[Sequence[pa.Array], Sequence[DataType], int], npt.NDArray[np.int64]]] = {
    "default": _default,
    "mod": _mod,
    "hive": _hive,
}


def _hash_block(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> U32:
    words = encode_rows(arrays, types)
    # One number for all rows until the first word in which they differ.
    state: U32 = np.array([SEED], np.uint32)
    for word in words.fixed:
        state = _mix(state, _scrambled(word))
    for area in words.areas:
        if isinstance(area, TextArea):
            state = _mix_text(np.array(np.broadcast_to(state, words.rows)), area)
        else:
            for word in area:
                state = _mix(state, _scrambled(word))
    return _finish(state ^ np.asarray(words.byte_length, np.uint32))


def _mix(state: U32, scrambled: U32) -> U32:
    mixed = state ^ scrambled
    _rotate(mixed, 13)
    mixed *= np.uint32(_M)
    mixed += np.uint32(_N)
    return mixed


def _scrambled(word: Word) -> U32:
    """The word as Murmur mixes it before it meets the state."""
    scrambled: U32 = np.atleast_1d(np.asarray(word, np.uint32)) * np.uint32(_C1)
    _rotate(scrambled, 15)
    scrambled *= np.uint32(_C2)
    return scrambled


def _rotate(values: U32, by: int) -> None:
    high = values >> np.uint32(32 - by)
    values <<= np.uint32(by)
    values |= high


def _mix_text(state: U32, area: TextArea) -> U32:
    """Mix in each row's words: word 0 of all rows that have one, then word 1, … until few rows are left."""
    rows = np.flatnonzero(area.words)
    rows = rows[np.argsort(-area.words[rows], kind="stable")]
    counts = -area.words[rows]
    index = 0
    while len(rows):
        active = int(np.searchsorted(counts, -index, side="left"))
        rows = rows[:active]
        if active <= _FEW_ROWS:
            break
        pairs = area.word(index, rows).view("<u4").reshape(-1, 2)
        state[rows] = _mix(_mix(state[rows], _scrambled(pairs[:, 0])), _scrambled(pairs[:, 1]))
        index += 1
    for row in rows.tolist():
        state[row] = _mix_rest(int(state[row]), area, row, index)
    return state


def _mix_rest(state: int, area: TextArea, row: int, index: int) -> int:
    """The words from ``index`` on of one row.

    A loop per word: each step needs the one before, and with few long rows left an array step costs more than this.
    """
    start, size = int(area.starts[row]) + 8 * index, int(area.sizes[row]) - 8 * index
    tail = np.zeros((size + 7) // 8 * 8, np.uint8)
    tail[:size] = area.buffer[start : start + size]
    for scrambled in _scrambled(tail.view("<u4")).tolist():
        state ^= scrambled
        state = ((state << 13 | state >> 19) * _M + _N) & _MASK
    return state


def _finish(state: U32) -> U32:
    for shift, factor in ((16, _F1), (13, _F2)):
        state ^= state >> np.uint32(shift)
        state *= np.uint32(factor)
    state ^= state >> np.uint32(16)
    return state


def _hive_hash(array: pa.Array, data_type: DataType) -> U32:
    assert isinstance(data_type, AtomicType)
    root = data_type.root
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if root in LENGTH_ROOTS:
        hashes = _hive_text(array)
    elif root is TypeRoot.BOOLEAN:
        hashes = array_values(array.cast(pa.uint8()), np.uint8).astype(np.uint32)
    elif root in (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT):
        hashes = array_values(array.cast(pa.int32()), np.uint32)
    elif root in (TypeRoot.DATE, TypeRoot.TIME):
        hashes = array_values(array, np.uint32)
    elif root is TypeRoot.BIGINT:
        hashes = _fold(array_values(array, np.uint64))
    elif root is TypeRoot.FLOAT:
        hashes = _one_zero(float_bits(array))
    elif root is TypeRoot.DOUBLE:
        hashes = _fold(_one_zero(float_bits(array)))
    elif root is TypeRoot.DECIMAL and (data_type.precision or 0) <= 18:
        hashes = _hive_decimal(array_values(array, np.int64, width=2)[:, 0], data_type.scale or 0)
    else:
        raise UnsupportedError(
            f"the bucket function hive has no hash for a column of type {root}; choose another 'bucket-key' or "
            "'bucket-function.type'"
        )
    return np.where(nulls, np.uint32(0), hashes)


def _fold(values: npt.NDArray[np.uint64]) -> U32:
    """Java's Long.hashCode."""
    return (values ^ (values >> np.uint64(32))).astype(np.uint32)


def _one_zero(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The bits of floats, -0.0 as 0.0: Hive knows one zero."""
    return np.where(bits << bits.dtype.type(1) == 0, bits.dtype.type(0), bits)


def _hive_text(array: pa.Array) -> U32:
    """The sum of (signed) byte i times 31 ** (size - 1 - i)."""
    buffer, starts, sizes = text_values(array)
    powers = np.cumprod(np.full(max(int(sizes.max(initial=0)), 1), 31, np.uint32), dtype=np.uint32)
    powers = np.concatenate([np.ones(1, np.uint32), powers])
    end = int((starts + sizes)[-1]) if len(starts) else 0
    ends = np.repeat(starts + sizes, sizes)
    terms = buffer[:end].view(np.int8).astype(np.int32).view(np.uint32) * powers[ends - 1 - np.arange(end)]
    sums = np.concatenate([np.zeros(1, np.uint32), np.cumsum(terms, dtype=np.uint32)])
    hashes: U32 = sums[starts + sizes] - sums[starts]
    return hashes


def _hive_decimal(unscaled: npt.NDArray[np.int64], scale: int) -> U32:
    """Java's BigDecimal.hashCode of the value without trailing zeros after the point."""
    scales = np.where(unscaled == 0, 0, scale)
    for _ in range(scale):
        shorter = (scales > 0) & (unscaled % 10 == 0)
        unscaled = np.where(shorter, unscaled // 10, unscaled)
        scales = scales - shorter
    magnitude = np.abs(unscaled)
    mixed = (magnitude >> 32) * 31 + (magnitude & _MASK)
    signed = np.where(unscaled < 0, -mixed, mixed)
    return (31 * signed + scales).astype(np.uint32)
