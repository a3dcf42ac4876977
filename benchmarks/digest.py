"""One number for a set of rows, whatever their order: what every timed read and write is checked by.

Imports nothing of this project: pypaimon's interpreter, which has neither it nor its version of pyarrow, loads it as well.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words = npt.NDArray[np.uint64]

VALUE_COLUMNS = ("quantity", "price", "code")


def mix(words: Words) -> Words:
    """Spread uint64 words over all 64 bits, one to one (the finaliser of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def digest(rows: pa.Table, key_column: str) -> tuple[int, int]:
    """The number of rows, and a sum over them that changes with any cell: of the last key column and of the values."""
    total = 0
    for batch in rows.to_batches():
        if not batch.num_rows:
            continue
        word = _words(batch.column(key_column))
        for name in VALUE_COLUMNS:
            word = mix(word) + _words(batch.column(name))
        total += int(mix(word).sum(dtype=np.uint64))
    return rows.num_rows, total % 2**64


def _words(column: pa.Array) -> Words:
    if column.null_count:
        raise ValueError(f"{column.null_count} nulls where there are none")
    if pa.types.is_string(column.type):
        offsets = np.frombuffer(column.buffers()[1], dtype=np.int32, count=len(column) + 1, offset=4 * column.offset)
        data = np.frombuffer(column.buffers()[2], dtype=np.uint8)
        # Positions in the data keep rows of different texts apart: the sum of mixed bytes of each.
        lengths = np.diff(offsets)
        place = np.arange(offsets[0], offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1].astype(np.int64), lengths)
        weighted = _WEIGHTS[place] * (data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(weighted, dtype=np.uint64)])
        ends = offsets - offsets[0]
        words: Words = sums[ends[1:]] - sums[ends[:-1]]
    else:
        words = column.to_numpy(zero_copy_only=False).view(np.uint64)
    return words


_WEIGHTS = mix(np.arange(256, dtype=np.uint64)) | np.uint64(1)
