"""Reads, combines and writes columns of tuple sketches: all hashes of all sketches in one array, and with each its number.

The bytes and the meaning are those of :mod:`thetasketches`, which reads what is not here one at a time: sketches that do not hold
all of their hashes, sums of doubles whose last digits may depend on their order, NaN, and -0.0 where it counts.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.sql.duckdb.functions.sketchcolumns import by_row, octets_of, starts_of, words_at, written
from tablestore.sql.duckdb.functions.thetacolumns import ThetaColumn
from tablestore.sql.duckdb.functions.thetasketches import (
    ALWAYS_ONE,
    COMPACT,
    EMPTY,
    MAX,
    MIN,
    READ_ONLY,
    SEED_HASH,
    SUM,
    TABLE_MASK,
    TUPLE_FAMILY,
    WHOLE,
    first_number,
)

_I64: TypeAlias = "npt.NDArray[np.int64]"
_U8: TypeAlias = "npt.NDArray[np.uint8]"
_Numbers: TypeAlias = "npt.NDArray[Any]"
_EXACT_DOUBLES = 2**53
_HEAD = 16


@dataclass(frozen=True, slots=True)
class TupleColumn:
    """So many sketches that hold all of their hashes: these by sketch and size, each once, with numbers and their modes."""

    count: int
    rows: _I64
    keys: _I64
    numbers: _Numbers
    modes: _U8

    @property
    def counts(self) -> _I64:
        return np.bincount(self.rows, minlength=self.count)

    def of(self, some: "npt.NDArray[Any]") -> "TupleColumn":
        """The sketches of some of the hashes."""
        return TupleColumn(self.count, self.rows[some], self.keys[some], self.numbers[some], self.modes[some])


def _form(is_double: bool) -> np.dtype[Any]:
    return np.dtype([("key", "<u8"), ("number", "<f8" if is_double else "<i4"), ("mode", "u1")])


def read(data: pa.Array, *, is_double: bool) -> TupleColumn | None:
    """The sketches of bytes, none of which are NULL; None if there are some that are to be read one at a time."""
    octets = octets_of(data)
    if octets is None:
        return None
    form, lengths = _form(is_double), octets.lengths
    words, version, family, flags = (octets.whole("u1", place) for place in (0, 1, 2, 5))
    is_empty = flags & EMPTY > 0
    is_sound = (lengths >= 8) & (version == 3) & (family == TUPLE_FAMILY)
    is_sound &= is_empty | ((octets.whole("<u2", 6) == SEED_HASH) & ((words == 1) | (words == 2)))
    counts = np.where(is_empty, 0, np.where(words == 1, 1, octets.whole("<u4", 8)))
    at = np.where(is_empty, 8, 8 * words)
    if not (is_sound & (lengths == at + form.itemsize * counts)).all():
        return None
    rows = np.repeat(np.arange(len(lengths)), counts)
    places = (octets.starts + at)[rows] + (np.arange(len(rows)) - starts_of(counts)[rows]) * form.itemsize
    entries = octets.numbers(form, places)
    keys = entries["key"].astype(np.int64)
    if ((keys < 0) | (keys >= WHOLE)).any():
        return None
    order = by_row(rows, np.argsort(keys))
    column = TupleColumn(len(lengths), rows, keys[order], entries["number"][order], entries["mode"][order])
    return None if (_are_alike(column.rows, column.keys)).any() else column


def _are_alike(rows: _I64, keys: _I64) -> "npt.NDArray[np.bool_]":
    """True for hashes, but the first, that are those before them."""
    alike: npt.NDArray[np.bool_] = (rows[1:] == rows[:-1]) & (keys[1:] == keys[:-1])
    return alike


def write(column: TupleColumn) -> pa.Array:
    """The bytes of sketches: their hashes in the order of the places of a table."""
    counts = column.counts
    order = by_row(column.rows, np.argsort(column.keys & TABLE_MASK, kind="stable"))
    entries = np.empty(len(order), _form(column.numbers.dtype.kind == "f"))
    entries["key"], entries["number"], entries["mode"] = column.keys[order], column.numbers[order], column.modes[order]
    heads = np.zeros((len(counts), _HEAD), np.uint8)
    heads[:, 0], heads[:, 1], heads[:, 2], heads[:, 3] = np.where(counts > 1, 2, 1), 3, TUPLE_FAMILY, 1
    heads[:, 5] = READ_ONLY | COMPACT | np.where(counts == 0, EMPTY, 0)
    words_at(heads, 6, np.full(len(counts), SEED_HASH, "<u2"))
    words_at(heads, 8, counts.astype("<u4"))
    return written(heads, np.where(counts > 1, _HEAD, 8), entries.view(np.uint8), counts * entries.itemsize)


def of_rows(count: int, rows: _I64, keys: _I64, numbers: _Numbers, mode: int) -> TupleColumn | None:
    """Sketches of rows; None where their sums are to be checked, or a number is none."""
    if not _is_plain(numbers, mode):
        return None
    if mode == SUM and numbers.dtype.kind == "f" and not are_exact(rows, numbers):
        return None
    order = by_row(rows, np.argsort(keys, kind="stable"))
    rows, keys, numbers = rows[order], keys[order], numbers[order]
    if not len(rows):
        return TupleColumn(count, rows, keys, numbers, np.zeros(0, np.uint8))
    firsts = np.flatnonzero(np.append(True, ~_are_alike(rows, keys)))
    if mode == SUM:
        numbers = np.add.reduceat(numbers if numbers.dtype.kind == "f" else numbers.astype(np.int64), firsts) + 0
    elif mode == ALWAYS_ONE:
        numbers = np.ones(len(firsts), numbers.dtype)
    else:
        numbers = (np.minimum if mode == MIN else np.maximum).reduceat(numbers, firsts)
    wrapped = numbers if numbers.dtype.kind == "f" else numbers.astype(np.int32)
    return TupleColumn(count, rows[firsts], keys[firsts], wrapped, np.full(len(firsts), mode, np.uint8))


def are_exact(rows: _I64, numbers: _Numbers) -> bool:
    """True if sums of doubles are the same in each order: they are whole, and few."""
    if not len(numbers):
        return True
    return bool(
        np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all() and _greatest_sum(rows, numbers) <= _EXACT_DOUBLES
    )


def _greatest_sum(rows: _I64, numbers: _Numbers) -> float:
    return float(np.bincount(rows, np.abs(numbers)).max())


def _is_plain(numbers: _Numbers, mode: int) -> bool:
    """True where the least and the greatest number are certain."""
    if numbers.dtype.kind != "f":
        return True
    is_unclear = np.isnan(numbers)
    if mode in (MIN, MAX):
        is_unclear |= (numbers == 0) & np.signbit(numbers)
    return not is_unclear.any()


def united(column: TupleColumn, groups: _I64, count: int, mode: int) -> TupleColumn | None:
    """The sketches of all hashes of groups of sketches. ``groups``: the number of each sketch's."""
    combined = _combined(column, groups, count, mode)
    return None if combined is None else combined[0]


def common(column: TupleColumn, groups: _I64, count: int, mode: int) -> TupleColumn | None:
    """The sketches of the hashes that all sketches of a group have."""
    combined = _combined(column, groups, count, mode)
    if combined is None:
        return None
    sketch, times = combined
    return sketch.of(times == np.bincount(groups, minlength=count)[sketch.rows])


def _combined(column: TupleColumn, groups: _I64, count: int, mode: int) -> tuple[TupleColumn, _I64] | None:
    """The hashes of groups of sketches, and in how many each is."""
    if not _is_plain(column.numbers, mode):
        return None
    # Those of one hash stay in the order of their sketches.
    rows = groups[column.rows]
    order = by_row(rows, np.argsort(column.keys, kind="stable"))
    rows, keys, numbers = rows[order], column.keys[order], column.numbers[order]
    if not len(rows):
        return TupleColumn(count, rows, keys, numbers, column.modes), np.zeros(0, np.int64)
    firsts = np.flatnonzero(np.append(True, ~_are_alike(rows, keys)))
    times = np.diff(np.append(firsts, len(rows)))
    totals = numbers[firsts].astype(np.float64 if numbers.dtype.kind == "f" else np.int64)
    for place in range(1, int(times.max())):
        has_more = times > place
        totals[has_more] = _joined(totals[has_more], numbers[firsts[has_more] + place], mode)
    is_joined = times > 1
    modes = np.where(is_joined, mode, column.modes[order][firsts]).astype(np.uint8)
    wrapped = totals if numbers.dtype.kind == "f" else totals.astype(np.int32)
    return TupleColumn(count, rows[firsts], keys[firsts], wrapped, modes), times


def _joined(left: _Numbers, right: _Numbers, mode: int) -> _Numbers:
    if mode == ALWAYS_ONE:
        return np.ones_like(left)
    if mode == SUM:
        # As one is added to 0.0 first, there is no -0.0.
        added: _Numbers = left + right + 0
        return added
    joined: _Numbers = (np.minimum if mode == MIN else np.maximum)(left, right)
    return joined


def without(left: TupleColumn, keys_of: "TupleColumn | ThetaColumn") -> TupleColumn:
    """The sketches of the hashes of sketches that others do not have."""
    rows, keys = np.concatenate((left.rows, keys_of.rows)), np.concatenate((left.keys, keys_of.keys))
    order = by_row(rows, np.argsort(keys, kind="stable"))
    is_pair = _are_alike(rows[order], keys[order])
    is_in = np.zeros(len(keys), np.bool_)
    is_in[order[:-1][is_pair]] = True
    return left.of(~is_in[: len(left.keys)])


def of_thetas(column: ThetaColumn, mode: int, *, is_double: bool) -> TupleColumn | None:
    """Theta sketches as tuple sketches: each hash has the number that its mode begins with. None if one lacks hashes."""
    if (column.thetas != WHOLE).any():
        return None
    number = np.full(len(column.keys), first_number(mode, is_double=is_double), np.float64 if is_double else np.int32)
    return TupleColumn(len(column.thetas), column.rows, column.keys, number, np.full(len(number), mode, np.uint8))


def beside(left: TupleColumn, right: TupleColumn) -> tuple[TupleColumn, _I64]:
    """Two columns as one, and the rows of its sketches: first all of the left ones."""
    both = TupleColumn(
        left.count + right.count,
        np.concatenate((left.rows, right.rows + left.count)),
        *(np.concatenate((getattr(left, name), getattr(right, name))) for name in ("keys", "numbers", "modes")),
    )
    return both, np.concatenate((np.arange(left.count), np.arange(right.count)))


def totals(column: TupleColumn, mode: int) -> "_Numbers | None":
    """The numbers of each sketch as one; None where it is not certain."""
    counts, numbers = column.counts, column.numbers
    wide: type[np.generic] = np.float64 if numbers.dtype.kind == "f" else np.int64
    if mode == ALWAYS_ONE:
        return counts.astype(wide)
    is_sum = mode == SUM
    if not _is_plain(numbers, mode) or (is_sum and numbers.dtype.kind == "f" and not are_exact(column.rows, numbers)):
        return None
    combined = np.zeros(column.count, wide)
    filled = counts > 0
    if filled.any():
        how = np.add if is_sum else np.minimum if mode == MIN else np.maximum
        # Without -0.0.
        combined[filled] = how.reduceat(numbers.astype(wide), starts_of(counts)[filled]) + 0
    return combined
