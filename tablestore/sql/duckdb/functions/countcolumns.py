"""Reads and writes columns of HLL sketches that hold the hashes ("coupons") of all values: a list of few, or a table of more."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions.sketchcolumns import by_row, octets_of, starts_of, words_at, written

_I64: TypeAlias = "npt.NDArray[np.int64]"
FAMILY, HLL_8, LIST, SET, EMPTY = 7, 8, 0, 1, 4
LISTED, LG_LIST, LG_TABLE = 8, 3, 5
LG_SIZES = range(4, 22)
CERTAIN = 1000
"""Up to here the estimate of so many hashes, rounded, is their count."""
PLACE = (1 << 26) - 1
_LIST_HEAD, _SET_HEAD = 8, 12
# Fewer tables than these are filled one by one.
_FEW = 8


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
        most = np.where(self.lg_sizes < 8, LISTED - 1, 3 << np.maximum(self.lg_sizes - 5, 0))
        return bool((self.counts <= np.minimum(most, CERTAIN)).all())


def of_coupons(lg_sizes: _I64, rows: _I64, coupons: _I64) -> CountColumn:
    """Sketches of coupons that may come several times; the rows are in order."""
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
    if not column.are_certain:
        return None
    counts = column.counts
    is_listed = counts < LISTED
    lg_tables = np.full(len(counts), LG_LIST)
    tables: list[tuple[_I64, _I64]] = []
    if not is_listed.all():
        tables += _tables(column, np.flatnonzero(~is_listed))
        for some, table in tables:
            lg_tables[some] = table.shape[1].bit_length() - 1
    heads = np.zeros((len(counts), _SET_HEAD), np.uint8)
    heads[:, 0], heads[:, 1], heads[:, 2], heads[:, 3] = np.where(is_listed, 2, 3), 1, FAMILY, column.lg_sizes
    heads[:, 4], heads[:, 5], heads[:, 6] = lg_tables, np.where(counts == 0, EMPTY, 0), np.where(is_listed, counts, 0)
    heads[:, 7] = HLL_8 | np.where(is_listed, LIST, SET)
    words_at(heads, 8, counts.astype("<u4"))
    lengths = 1 << lg_tables
    starts = starts_of(lengths)
    items = np.zeros(int(lengths.sum()), "<u4")
    place = np.arange(len(column.rows)) - starts_of(counts)[column.rows]
    in_list = is_listed[column.rows]
    items[(starts[column.rows] + place)[in_list]] = column.coupons[in_list]
    for some, table in tables:
        items[starts[some][:, None] + np.arange(table.shape[1])] = table
    return written(heads, np.where(is_listed, _LIST_HEAD, _SET_HEAD), items.view(np.uint8), 4 * lengths)


def _tables(column: CountColumn, chosen: _I64) -> Iterator[tuple[_I64, _I64]]:
    """The tables of some sketches: their rows, and a row of places each, for tables of one length."""
    counts = column.counts
    starts = starts_of(counts)
    if len(chosen) < _FEW:
        for row in chosen.tolist():
            coupons = column.coupons[starts[row] : starts[row] + counts[row]].tolist()
            yield np.array([row]), np.array([table_of(coupons)])
        return
    # Those with the most coupons come first, so that those which still grow are the first ones.
    chosen = chosen[np.argsort(-counts[chosen], kind="stable")]
    counts, starts = counts[chosen], starts[chosen]
    tables = np.zeros((len(chosen), 1 << LG_TABLE), np.int64)
    for place in range(int(counts[0])):
        many = int(np.searchsorted(-counts, -place, side="left"))
        _put_all(tables, np.arange(many), column.coupons[starts[:many] + place])
        if place + 1 > 3 * tables.shape[1] // 4:
            if many < len(chosen):
                yield chosen[many:], tables[many:]
            chosen, counts, starts = chosen[:many], counts[:many], starts[:many]
            tables = _grown(tables[:many])
    yield chosen, tables


def _grown(tables: _I64) -> _I64:
    grown = np.zeros((len(tables), 2 * tables.shape[1]), np.int64)
    for place in range(tables.shape[1]):
        rows = np.flatnonzero(tables[:, place])
        _put_all(grown, rows, tables[rows, place])
    return grown


def _put_all(tables: _I64, rows: _I64, coupons: _I64) -> None:
    """Puts a coupon into each table of some rows."""
    mask = tables.shape[1] - 1
    at = coupons & mask
    is_taken = tables[rows, at] != 0
    tables[rows[~is_taken], at[~is_taken]] = coupons[~is_taken]
    if not is_taken.any():
        return
    rows, coupons, at = rows[is_taken], coupons[is_taken], at[is_taken]
    steps = (coupons & PLACE) >> mask.bit_length() | 1
    while len(rows):
        at = at + steps & mask
        is_taken = tables[rows, at] != 0
        tables[rows[~is_taken], at[~is_taken]] = coupons[~is_taken]
        rows, coupons, at, steps = rows[is_taken], coupons[is_taken], at[is_taken], steps[is_taken]


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
