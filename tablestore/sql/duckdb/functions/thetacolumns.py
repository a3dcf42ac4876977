"""Reads, combines and writes columns of theta sketches: all hashes of all sketches in one array, by sketch and size.

The bytes and the meaning are those of :mod:`thetasketches`, which reads what is not as the aggregates write it, one at a time.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions import thetasketches
from tablestore.sql.duckdb.functions.thetasketches import COMPACT, EMPTY, ORDERED, READ_ONLY, SEED_HASH, THETA_FAMILY, WHOLE, Sketch

_I64: TypeAlias = "npt.NDArray[np.int64]"
_U64: TypeAlias = "npt.NDArray[np.uint64]"
_Bools: TypeAlias = "npt.NDArray[np.bool_]"
_PADDING = 24
# How many times as large as its keys a matrix of them may be.
_MOST_PADDING = 3
_WORD = 64


@dataclass(frozen=True, slots=True)
class ThetaColumn:
    """Sketches: the limits of theirs, and their hashes ``keys``, each of the sketch ``rows``, in order and once."""

    thetas: _I64
    rows: _I64
    keys: _I64

    @property
    def counts(self) -> _I64:
        return np.bincount(self.rows, minlength=len(self.thetas))

    @property
    def are_empty(self) -> _Bools:
        """True for sketches of no values."""
        are_empty: _Bools = (self.thetas == WHOLE) & (self.counts == 0)
        return are_empty

    def below(self, thetas: _I64) -> "ThetaColumn":
        """The sketches with other limits, and their hashes below these."""
        some = self.keys < thetas[self.rows]
        return ThetaColumn(thetas, self.rows[some], self.keys[some])


def of_keys(count: int, rows: _I64, keys: _I64, thetas: "_I64 | None" = None) -> ThetaColumn:
    """Sketches of hashes that come in any order."""
    limits = np.full(count, WHOLE, np.int64) if thetas is None else thetas
    if ((rows[1:] > rows[:-1]) | ((rows[1:] == rows[:-1]) & (keys[1:] > keys[:-1]))).all():
        return ThetaColumn(limits, rows, keys).below(limits)
    rows, keys = _sorted_by_row_and_key(count, rows, keys)
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1])
    return ThetaColumn(limits, rows[is_first], keys[is_first]).below(limits)


def _sorted_by_row_and_key(count: int, rows: _I64, keys: _I64) -> tuple[_I64, _I64]:
    counts = np.bincount(rows, minlength=count)
    width = int(counts.max(initial=0))
    if width * count > _MOST_PADDING * len(rows) or (rows[1:] < rows[:-1]).any():
        order = _by_row_and_key(rows, keys)
        return rows[order], keys[order]
    # Rows of a matrix are sorted without an order of their own; what is put behind their keys is the greatest and stays there.
    is_key = np.arange(width) < counts[:, None]
    matrix = np.full((count, width), WHOLE, np.int64)
    matrix[is_key] = keys
    matrix.sort(axis=1)
    return rows, matrix[is_key]


def _by_row_and_key(rows: _I64, keys: _I64) -> _I64:
    """The order by rows, and by keys in them."""
    order = np.argsort(keys)
    # Numbers of 16 bits are sorted by their digits, in steady time.
    few = rows.astype(np.uint16) if len(rows) and rows.max() <= 0xFFFF else rows
    return order[np.argsort(few[order], kind="stable")]


def cut(column: ThetaColumn, lg_size: int) -> ThetaColumn:
    """Sketches with no more than a size of hashes each."""
    size, counts = 1 << lg_size, column.counts
    is_large = counts > size
    if not is_large.any():
        return column
    starts = np.cumsum(counts) - counts
    thetas = column.thetas.copy()
    thetas[is_large] = column.keys[starts[is_large] + size]
    return column.below(thetas)


def united(column: ThetaColumn, groups: _I64, count: int, lg_size: int) -> ThetaColumn:
    """The sketches of all values of groups of sketches. ``groups``: the number of each sketch's."""
    thetas = np.full(count, WHOLE, np.int64)
    np.minimum.at(thetas, groups, column.thetas)
    return cut(of_keys(count, groups[column.rows], column.keys, thetas), lg_size)


def without(left: ThetaColumn, right: ThetaColumn) -> ThetaColumn:
    """The sketches of the values of sketches that others do not have."""
    keeps_all = left.are_empty | right.are_empty
    is_alone = ~_are_in(left, right) | keeps_all[left.rows]
    alone = ThetaColumn(left.thetas, left.rows[is_alone], left.keys[is_alone])
    return alone.below(np.where(keeps_all, left.thetas, np.minimum(left.thetas, right.thetas)))


def common(left: ThetaColumn, right: ThetaColumn) -> ThetaColumn:
    """The sketches of the values that two sketches each have in common."""
    has_none = left.are_empty | right.are_empty
    is_common = _are_in(left, right) & ~has_none[left.rows]
    both = ThetaColumn(left.thetas, left.rows[is_common], left.keys[is_common])
    return both.below(np.where(has_none, WHOLE, np.minimum(left.thetas, right.thetas)))


def common_of_groups(column: ThetaColumn, groups: _I64, count: int) -> "ThetaColumn | None":
    """The sketches of the values that all sketches of a group have in common; None if one does not hold all of its hashes."""
    if (column.thetas != WHOLE).any():
        return None
    rows = groups[column.rows]
    order = _by_row_and_key(rows, column.keys)
    rows, keys = rows[order], column.keys[order]
    firsts = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1]))[: len(rows)])
    times = np.diff(np.append(firsts, len(rows)))
    are_common = times == np.bincount(groups, minlength=count)[rows[firsts]]
    return ThetaColumn(np.full(count, WHOLE, np.int64), rows[firsts][are_common], keys[firsts][are_common])


def _are_in(left: ThetaColumn, right: ThetaColumn) -> _Bools:
    """True for hashes that the sketch of the same row has too."""
    rows, keys = np.concatenate((left.rows, right.rows)), np.concatenate((left.keys, right.keys))
    order = _by_row_and_key(rows, keys)
    is_pair = (rows[order][1:] == rows[order][:-1]) & (keys[order][1:] == keys[order][:-1])
    is_in = np.zeros(len(keys), np.bool_)
    is_in[order[:-1][is_pair]] = is_in[order[1:][is_pair]] = True
    return is_in[: len(left.keys)]


def estimates(column: ThetaColumn) -> "npt.NDArray[np.float64]":
    """The estimates of the counts of values."""
    counts = column.counts.astype(np.float64)
    return np.where(column.thetas == WHOLE, counts, counts / (column.thetas / float(WHOLE)))


def read(data: pa.Array) -> "ThetaColumn | None":
    """The sketches of bytes, none of which are NULL; None if there are some that are to be read one at a time."""
    column = data.cast(pa.large_binary())
    ends: _I64 = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    if not len(data) or column.buffers()[2] is None or data.null_count or (np.diff(ends) < 8).any():
        return None
    first = int(ends[0])
    text = column.buffers()[2].slice(first, int(ends[-1]) - first).to_pybytes() + bytes(_PADDING)
    octets = np.frombuffer(text, np.uint8)
    words: _U64 = np.ndarray((len(text) - 7,), np.dtype("<u8"), text, 0, (1,))
    starts, stops = ends[:-1] - first, ends[1:] - first
    preamble, version, family, bits, count_bytes, flags = (octets[starts + place].astype(np.int64) for place in range(6))
    is_empty = (flags & EMPTY > 0) & (version == 3)
    is_packed = (
        (version == 4) & ((preamble == 1) | (preamble == 2)) & (bits > 0) & (bits < 64) & (count_bytes > 0) & (count_bytes < 5)
    )
    is_single = (version == 3) & (preamble == 1) & ~is_empty
    has_seed = (octets[starts + 6] == SEED_HASH & 0xFF) & (octets[starts + 7] == SEED_HASH >> 8)
    is_read = (family == THETA_FAMILY) & (is_empty | ((is_packed | is_single) & has_seed & (flags & EMPTY == 0)))
    is_read &= (stops - starts >= 8 * preamble) | is_empty
    if not is_read.all():
        return None
    thetas = np.full(len(starts), WHOLE, np.int64)
    has_limit = is_packed & (preamble == 2)
    thetas[has_limit] = words[starts[has_limit] + 8].astype(np.int64)
    at = starts + np.where(is_packed, 8 * preamble, 8)
    masks = (np.uint64(1) << (np.clip(count_bytes, 1, 4).astype(np.uint64) * np.uint64(8))) - np.uint64(1)
    counts = np.where(is_packed, (words[np.minimum(at, len(words) - 1)] & masks).astype(np.int64), is_single.astype(np.int64))
    at = at + np.where(is_packed, count_bytes, 0)
    sizes = np.where(is_packed, -(-counts * bits // 8), 8 * counts)
    # A count that no bytes stand behind would take all of the memory.
    if (counts > 8 * (stops - starts)).any() or not np.where(is_packed, stops - at == sizes, stops - at >= sizes).all():
        return None
    rows = np.repeat(np.arange(len(starts)), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    bit = np.where(is_packed, bits, 64)[rows]
    keys = _bits_at(text, at[rows], place * bit, bit.astype(np.uint64))
    keys = np.where(is_packed[rows], keys, words[np.minimum(at[rows], len(words) - 1)])
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(keys)))
    keys = sums[1:] - np.repeat(sums[np.cumsum(counts) - counts], counts)
    sketches = of_keys(len(starts), rows, keys.astype(np.int64), thetas)
    is_sound = len(sketches.keys) == len(keys) and (keys < np.uint64(1 << 63)).all()
    return sketches if is_sound else None


def _bits_at(text: bytes, starts: _I64, places: _I64, widths: _U64) -> _U64:
    """Numbers of so many bits each, the first bits first."""
    words: _U64 = np.ndarray((len(text) - 7,), np.dtype(">u8"), text, 0, (1,))
    at = np.minimum(starts + (places >> 3), len(text) - 9)
    shift = (places & 7).astype(np.uint64)
    following = np.frombuffer(text, np.uint8)[at + 8].astype(np.uint64)
    bits: _U64 = words[at].astype(np.uint64) << shift | following >> (np.uint64(8) - shift)
    numbers: _U64 = bits >> (np.uint64(64) - widths)
    return numbers


def write(column: ThetaColumn) -> pa.Array:
    """The bytes of sketches."""
    counts = column.counts
    is_packed = counts > (column.thetas == WHOLE)
    packed = _packed(column, np.flatnonzero(is_packed))
    if is_packed.all():
        return packed
    # An empty sketch, or one of a hash, is a few bytes that one writes by themselves.
    others = np.flatnonzero(~is_packed)
    starts = np.cumsum(counts) - counts
    written = [
        thetasketches.write_theta(Sketch(int(column.thetas[row]), dict.fromkeys(column.keys[start : start + count].tolist())))
        for row, start, count in zip(others, starts[others], counts[others], strict=True)
    ]
    order = np.argsort(np.concatenate((np.flatnonzero(is_packed), others)), kind="stable")
    return pa.concat_arrays([packed, pa.array(written, pa.binary())]).take(pa.array(order))


def _packed(column: ThetaColumn, chosen: _I64) -> pa.Array:
    """The bytes of sketches whose hashes are packed: their differences, in as many bits as the greatest one has."""
    if not len(chosen):
        return pa.array([], pa.binary())
    counts = column.counts[chosen]
    if counts.sum() >= max(_WORD * len(chosen), int(counts.max()) * len(chosen) // _MOST_PADDING):
        return _packed_as_matrix(column, chosen, counts)
    numbers = np.full(len(column.thetas), -1, np.int64)
    numbers[chosen] = np.arange(len(chosen))
    some = numbers[column.rows] >= 0
    rows, keys = numbers[column.rows[some]], column.keys[some]
    counts, thetas = np.bincount(rows, minlength=len(chosen)), column.thetas[chosen]
    starts = np.cumsum(counts) - counts
    steps = np.diff(keys, prepend=0)
    steps[starts] = keys[starts]
    bits = _bit_lengths(np.maximum.reduceat(steps, starts))
    place = np.arange(len(rows)) - np.repeat(starts, counts)
    # Each sketch begins with a word of its own.
    many = -(-counts * bits // 64)
    begins = np.cumsum(many) - many
    at = begins[rows] * 64 + place * bits[rows]
    word, free = at >> 6, 64 - (at & 63) - bits[rows]
    values = steps.astype(np.uint64)
    left, right = np.clip(free, 0, 63).astype(np.uint64), np.clip(-free, 0, 63).astype(np.uint64)
    words = np.zeros(int(many.sum()) + 1, np.uint64)
    is_first = np.concatenate((np.ones(1, np.bool_), word[1:] != word[:-1]))
    words[word[is_first]] = np.bitwise_or.reduceat(values << left >> right, np.flatnonzero(is_first))
    spills = np.flatnonzero(free < 0)
    words[word[spills] + 1] |= values[spills] << (64 + free[spills]).astype(np.uint64)
    sizes = -(-counts * bits // 8)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    octets = words.astype(np.dtype(">u8")).view(np.uint8)
    body = octets[np.arange(ends[-1]) + np.repeat(begins * 8 - ends[:-1], sizes)]
    has_limit = thetas != WHOLE
    count_bytes = -(-_bit_lengths(counts) // 8)
    head = np.zeros((len(chosen), 24), np.uint8)
    head[:, 0], head[:, 1], head[:, 2], head[:, 3], head[:, 4] = 1 + has_limit, 4, THETA_FAMILY, bits, count_bytes
    head[:, 5], head[:, 6], head[:, 7] = READ_ONLY | COMPACT | ORDERED, SEED_HASH & 0xFF, SEED_HASH >> 8
    head[:, 8:16] = thetas.astype(np.dtype("<i8")).view(np.uint8).reshape(-1, 8)
    head[:, 16:] = counts.astype(np.dtype("<i8")).view(np.uint8).reshape(-1, 8)
    column_of = np.arange(24)
    keeps = (
        (column_of < 8) | (has_limit[:, None] & (column_of < 16)) | ((column_of >= 16) & (column_of < 16 + count_bytes[:, None]))
    )
    # The heads and the bodies take turns.
    lengths = np.stack((keeps.sum(axis=1), sizes), axis=1)
    written = np.empty(int(lengths.sum()), np.uint8)
    is_head = np.repeat(np.tile([True, False], len(chosen)), lengths.reshape(-1))
    written[is_head], written[~is_head] = head[keeps], body
    offsets = np.concatenate(([0], np.cumsum(lengths.sum(axis=1)))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(chosen), [None, pa.py_buffer(offsets), pa.py_buffer(written)])


def _packed_as_matrix(column: ThetaColumn, chosen: _I64, counts: _I64) -> pa.Array:
    """The bytes of sketches of many hashes, of which none has much less than another: those of as many bits at once."""
    width = -(-int(counts.max()) // _WORD) * _WORD
    is_chosen = np.zeros(len(column.thetas), np.bool_)
    is_chosen[chosen] = True
    is_key = np.arange(width) < counts[:, None]
    keys = np.zeros((len(chosen), width), np.int64)
    keys[is_key] = column.keys if len(chosen) == len(column.thetas) else column.keys[is_chosen[column.rows]]
    steps = np.diff(keys, axis=1, prepend=0)
    steps *= is_key
    bits, thetas = _bit_lengths(steps.max(axis=1)), column.thetas[chosen]
    has_limit, count_bytes = thetas != WHOLE, -(-_bit_lengths(counts) // 8)
    forms = bits * 16 + has_limit * 8 + count_bytes
    chunks, orders = [], []
    for form in np.unique(forms).tolist():
        some = np.flatnonzero(forms == form)
        size, words, counted = form // 16, 1 + form // 8 % 2, form % 8
        body = _words_of_bits(steps[some].view(np.uint64), size)
        head = np.zeros((len(some), 8 * words + 8), np.uint8)
        head[:, :8] = words, 4, THETA_FAMILY, size, counted, READ_ONLY | COMPACT | ORDERED, SEED_HASH & 0xFF, SEED_HASH >> 8
        head[:, 8:16] = thetas[some].astype("<i8").view(np.uint8).reshape(-1, 8)
        head[:, 8 * words :] = counts[some].astype("<i8").view(np.uint8).reshape(-1, 8)
        octets = np.concatenate((head[:, : 8 * words + counted], body), axis=1)
        lengths = 8 * words + counted + -(-counts[some] * size // 8)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        kept = octets[:, : int(lengths.max())]
        written = kept[np.arange(kept.shape[1]) < lengths[:, None]]
        chunks.append(pa.Array.from_buffers(pa.binary(), len(some), [None, pa.py_buffer(offsets), pa.py_buffer(written)]))
        orders.append(some)
    return pa.concat_arrays(chunks).take(pa.array(np.argsort(np.concatenate(orders))))


def _words_of_bits(numbers: _U64, size: int) -> "npt.NDArray[np.uint8]":
    """The bytes of rows of numbers of so many bits each, the first bits first: 64 numbers are as many words as they have bits."""
    count = len(numbers)
    columns = np.ascontiguousarray(numbers.reshape(-1, _WORD).T)
    words = np.zeros((size, columns.shape[1]), np.uint64)
    for place, column in enumerate(columns):
        word, bit = divmod(place * size, _WORD)
        free = _WORD - bit - size
        if free >= 0:
            words[word] |= column << np.uint64(free)
        else:
            words[word] |= column >> np.uint64(-free)
            words[word + 1] |= column << np.uint64(_WORD + free)
    return np.ascontiguousarray(words.T).astype(">u8").view(np.uint8).reshape(count, -1)


def _bit_lengths(numbers: _I64) -> _I64:
    """The bits that numbers from 0 take."""
    upper, lower = numbers >> 32, numbers & 0xFFFFFFFF
    # A number of 32 bits is a double without loss, whose exponent is how many bits it has.
    return np.where(upper > 0, np.frexp(upper.astype(np.float64))[1] + 32, np.frexp(lower.astype(np.float64))[1]).astype(np.int64)
