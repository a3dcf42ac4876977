"""Reads and writes columns of HLL sketches that hold the hashes ("coupons") of all values: a list of few, or a table of more."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions.sketchcolumns import by_row, octets_of, starts_of, words_at

_I64: TypeAlias = "npt.NDArray[np.int64]"
_I32: TypeAlias = "npt.NDArray[np.int32]"
_U8: TypeAlias = "npt.NDArray[np.uint8]"
FAMILY, HLL_8, LIST, SET, EMPTY = 7, 8, 0, 1, 4
LISTED, LG_LIST, LG_TABLE = 8, 3, 5
LG_SIZES = range(4, 22)
CERTAIN = 1000
"""Up to here the estimate of so many hashes, rounded, is their count."""
PLACE = (1 << 26) - 1
_LIST_HEAD, _SET_HEAD = 8, 12
# A coupon has 32 bits, and a number with a sign 63.
_COUPON_BITS, _BITS = 32, 63


@dataclass(frozen=True, slots=True)
class CountColumn:
    """Sketches: their sizes, and their coupons, each of the sketch ``rows``, in the order in which they came."""

    lg_sizes: _I64
    rows: _I64
    coupons: _I64

    @property
    def counts(self) -> _I64:
        return np.bincount(self.rows, minlength=len(self.lg_sizes))

    @property
    def are_certain(self) -> bool:
        """True if no sketch has so many coupons that it estimates."""
        return _are_certain(self.lg_sizes, self.counts)


def _are_certain(lg_sizes: _I64, counts: _I64) -> bool:
    most = np.where(lg_sizes < 8, LISTED - 1, 3 << np.maximum(lg_sizes - 5, 0))
    return bool((counts <= np.minimum(most, CERTAIN)).all())


def of_coupons(lg_sizes: _I64, rows: _I64, coupons: _I64) -> CountColumn:
    """Sketches of coupons that may come several times; the rows are in order."""
    count = len(lg_sizes)
    keys = rows << _COUPON_BITS
    keys |= coupons
    keys.sort()
    if not (keys[1:] == keys[:-1]).any():
        return CountColumn(lg_sizes, rows, coupons)
    counts = np.bincount(rows, minlength=count)
    place_bits = int(counts.max(initial=0)).bit_length()
    if not len(rows) or count.bit_length() + _COUPON_BITS + place_bits > _BITS:
        return _of_many_coupons(lg_sizes, rows, coupons)
    # The row, the coupon and its place in the row are one number: they are sorted without an order of their own.
    starts = starts_of(counts)
    keys = rows << _COUPON_BITS
    keys |= coupons
    keys <<= place_bits
    keys |= np.arange(len(rows)) - np.repeat(starts, counts)
    keys.sort()
    coupon_keys = keys >> place_bits
    is_again = coupon_keys[1:] == coupon_keys[:-1]
    if not is_again.any():
        return CountColumn(lg_sizes, rows, coupons)
    again = keys[1:][is_again]
    is_first = np.ones(len(rows), np.bool_)
    is_first[starts[again >> place_bits + _COUPON_BITS] + (again & ((1 << place_bits) - 1))] = False
    return CountColumn(lg_sizes, rows[is_first], coupons[is_first])


def _of_many_coupons(lg_sizes: _I64, rows: _I64, coupons: _I64) -> CountColumn:
    order = by_row(rows, np.argsort(coupons, kind="stable"))
    is_first = np.ones(len(rows), np.bool_)
    is_first[order[1:]] = (rows[order][1:] != rows[order][:-1]) | (coupons[order][1:] != coupons[order][:-1])
    return CountColumn(lg_sizes, rows[is_first], coupons[is_first])


def read(data: pa.Array) -> CountColumn | None:
    """The sketches of bytes, none of which are NULL; None if there are some that are to be read one at a time."""
    octets = octets_of(data)
    if octets is None:
        return None
    version, family, lg_sizes, mode = (octets.whole("u1", place) for place in (1, 2, 3, 7))
    mode &= 3
    heads = np.where(mode == LIST, _LIST_HEAD, _SET_HEAD)
    rest = octets.lengths - heads
    is_sound = (octets.lengths >= 8) & (version == 1) & (family == FAMILY) & (mode <= SET) & (rest >= 0) & (rest % 4 == 0)
    if not (is_sound & (lg_sizes >= LG_SIZES[0]) & (lg_sizes <= LG_SIZES[-1])).all():
        return None
    many = rest // 4
    rows = np.repeat(np.arange(len(many)), many)
    places = (octets.starts + heads)[rows] + 4 * (np.arange(len(rows)) - starts_of(many)[rows])
    coupons = octets.numbers("<u4", places).astype(np.int64)
    return of_coupons(lg_sizes, rows[coupons > 0], coupons[coupons > 0])


def write(column: CountColumn) -> pa.Array | None:
    """The bytes of sketches; None if one has so many coupons that it estimates."""
    counts = column.counts
    if not _are_certain(column.lg_sizes, counts):
        return None
    starts = starts_of(counts)
    listed = np.flatnonzero(counts < LISTED)
    chunks = [(listed, _written_lists(column, counts, listed))] if len(listed) else []
    tabled = np.flatnonzero(counts >= LISTED)
    for rows, table in _tables(column.coupons, counts, starts, tabled):
        chunks.append((rows, _written_tables(column.lg_sizes[rows], counts[rows], table)))
    places = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in chunks)])
    written = pa.concat_arrays([pa.array([], pa.binary()), *(part for _, part in chunks)])
    return written if (places[1:] > places[:-1]).all() else written.take(pa.array(np.argsort(places)))


def _written_lists(column: CountColumn, counts: _I64, rows: _I64) -> pa.Array:
    octets = np.zeros((len(rows), _LIST_HEAD + 4 * LISTED), np.uint8)
    octets[:, 0], octets[:, 1], octets[:, 2], octets[:, 3], octets[:, 4] = 2, 1, FAMILY, column.lg_sizes[rows], LG_LIST
    octets[:, 5], octets[:, 6], octets[:, 7] = np.where(counts[rows] == 0, EMPTY, 0), counts[rows], HLL_8 | LIST
    items = np.zeros((len(rows), LISTED + 1), "<u4")
    # Behind the last coupon of a sketch are those of others, which are not written.
    places = np.minimum(np.arange(LISTED), counts[rows][:, None])
    coupons = np.append(column.coupons, np.zeros(LISTED, np.int64))[starts_of(counts)[rows][:, None] + np.arange(LISTED)]
    np.put_along_axis(items, places, coupons.astype("<u4"), axis=1)
    items[np.arange(len(rows)), counts[rows]] = 0
    octets[:, _LIST_HEAD:] = np.ascontiguousarray(items[:, :LISTED]).view(np.uint8)
    return _of_one_length(octets)


def _written_tables(lg_sizes: _I64, counts: _I64, table: _I32) -> pa.Array:
    octets = np.empty((len(table), _SET_HEAD + 4 * table.shape[1]), np.uint8)
    lg_table = table.shape[1].bit_length() - 1
    octets[:, 0], octets[:, 1], octets[:, 2], octets[:, 3], octets[:, 4] = 3, 1, FAMILY, lg_sizes, lg_table
    octets[:, 5], octets[:, 6], octets[:, 7] = 0, 0, HLL_8 | SET
    words_at(octets, 8, counts.astype("<u4"))
    octets[:, _SET_HEAD:] = table.view(np.uint8)
    return _of_one_length(octets)


def _of_one_length(octets: _U8) -> pa.Array:
    offsets = np.arange(len(octets) + 1, dtype=np.int32) * np.int32(octets.shape[1])
    return pa.Array.from_buffers(pa.binary(), len(octets), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])


def _tables(coupons: _I64, counts: _I64, starts: _I64, chosen: _I64) -> Iterator[tuple[_I64, _I32]]:
    """The tables of some sketches: their rows, and a row of places each, for tables of one length.

    A table that is more than three quarters full grows: what it has comes into a new one by its places, and then what comes later.
    """
    # Those with the most coupons come first, so that those which still grow are the first ones.
    chosen = chosen[np.argsort(-counts[chosen], kind="stable")]
    coupons = coupons.astype(np.int32)
    length, before = 1 << LG_TABLE, np.zeros((len(chosen), 0), np.int32)
    while len(chosen):
        most, first = 3 * length // 4 + 1, before.shape[1]
        last = np.minimum(counts[chosen], most)
        arrive = np.arange(first, int(last[0]))
        at = starts[chosen][:, None] + arrive
        items: _I32 = np.concatenate((before, coupons.take(at, mode="clip")), axis=1).reshape(-1).astype(np.int32, copy=False)
        if int(last[-1]) < int(last[0]):
            items = items.take(np.flatnonzero(np.arange(int(last[0])) < last[:, None]))
        table = _filled(np.repeat(np.arange(len(chosen), dtype=np.int32), last), items, length, len(chosen))
        many = int(np.searchsorted(-last, -most, "right"))
        if many < len(chosen):
            yield chosen[many:], table[many:]
        chosen, table = chosen[:many], table[:many]
        before = table.reshape(-1).take(np.flatnonzero(table)).reshape(many, most)
        length *= 2


def _filled(rows: _I32, coupons: _I32, length: int, count: int) -> _I32:
    """Tables of coupons, each of which takes the first free place of those that it may have, in the order in which they come.

    All of them try theirs at once; of those that want one place the first has it, and the others, also one that was there, go on.
    The order makes that the same as one by one.
    """
    mask, nobody = np.int32(length - 1), len(coupons)
    lg_length = np.int32(length.bit_length() - 1)
    at = coupons & mask
    at += rows * np.int32(length)
    wanted = at.astype(np.intp)
    owners = np.full(count * length, nobody, np.int32)
    numbers = np.arange(nobody, dtype=np.int32)
    np.minimum.at(owners, wanted, numbers)
    # By their numbers, as numpy takes what a mask marks several times as slowly.
    left = np.flatnonzero(owners.take(wanted) != numbers)
    tried, at = left.astype(np.int32), at.take(left)
    while len(tried):
        # Of a step only as many bits count as a place has: the zeros in a coupon stand above them.
        step = coupons.take(tried)
        step >>= lg_length
        step |= 1
        step += at
        step &= mask
        at &= ~mask
        at |= step
        wanted = at.astype(np.intp)
        holders = owners.take(wanted)
        np.minimum.at(owners, wanted, tried)
        going = np.where(owners.take(wanted) == tried, holders, tried)
        left = np.flatnonzero(going != nobody)
        tried, at = going.take(left), at.take(left)
    table: _I32 = np.append(coupons, np.int32(0)).take(owners).reshape(count, length)
    return table


def table_of(coupons: Iterable[int]) -> list[int]:
    """The places of coupons in a table, which grows when it is three quarters full."""
    table = [0] * (1 << LG_TABLE)
    most = 3 * len(table) // 4
    for count, coupon in enumerate(coupons, 1):
        _put(table, coupon)
        if count > most:
            grown = [0] * (2 * len(table))
            for one in filter(None, table):
                _put(grown, one)
            table, most = grown, 2 * most
    return table


def _put(table: list[int], coupon: int) -> None:
    mask = len(table) - 1
    at = coupon & mask
    if table[at]:
        step = (coupon & PLACE) >> mask.bit_length() | 1
        while table[at]:
            at = at + step & mask
    table[at] = coupon
