"""Orders rows of append tables by several columns, so that files and row groups hold small ranges of each.

    sample of the rows -> per column its quantiles -> per row and column a rank -> one 64-bit code per row

    order      ranks side by side: the first column decides, the next where it ties (one column, or a clear first one)
    zorder     bits of the ranks interleaved: all columns alike (Morton, "A Computer Oriented Geodetic Data Base", 1966)
    hilbert    the ranks' place on Hilbert's curve: as zorder, with neighbours that touch (Skilling, "Programming the Hilbert
               curve", 2004)

Ranks are those of quantiles and not of values, so skewed columns divide rows as evenly as others do. Nulls come first. Codes place
rows, they decide nothing else: a coarse sample costs locality and never a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.lsm.keys import plain_columns
from tablestore.types.arrays import U64, Places

STRATEGIES = ("auto", "order", "zorder", "hilbert")
# Bits of a column's rank, at most: a cell of 1/4096 of the rows is finer than a row group.
_RANK_BITS = 12
# Rows that a sample needs, so that each of the quantiles has some.
SAMPLE_ROWS = 16 << _RANK_BITS


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    """The columns that rows are ordered by, and how: ``order``, ``zorder`` or ``hilbert``."""

    columns: tuple[str, ...]
    strategy: str

    @classmethod
    def of(cls, columns: Sequence[str], strategy: str = "auto") -> "ClusterOrder":
        """Resolves ``auto`` as Paimon does: one column orders, up to four by zorder, more by hilbert. Raises InvalidInputError."""
        names = tuple(columns)
        if not names or len(set(names)) < len(names):
            raise InvalidInputError(
                f"expected one or more different columns to order rows by, found {', '.join(names) or 'none'}",
                kind="invalid-option",
            )
        chosen = strategy.strip().lower()
        if chosen not in STRATEGIES:
            raise InvalidInputError(
                f"expected a strategy to order rows of {', '.join(STRATEGIES)}, found {strategy!r:.100}", kind="invalid-option"
            )
        if chosen == "auto":
            chosen = "order" if len(names) == 1 else "zorder" if len(names) <= 4 else "hilbert"
        return cls(names, chosen)


class RowCodes:
    """Gives rows the codes of one order. Built from a sample of the rows, with the order's columns in its own order."""

    def __init__(self, order: ClusterOrder, sample: pa.Table) -> None:
        count = len(order.columns)
        self._order = order
        self._bits = max(min(_RANK_BITS, 64 // count), 1)
        # More than 64 columns do not fit into a code: those behind only break ties.
        self._ranks = [_ColumnRanks(sample.column(name), 1 << self._bits) for name in order.columns[: 64 // self._bits]]

    def of(self, rows: pa.RecordBatch | pa.Table) -> U64:
        """One code per row; rows with smaller codes come first."""
        ranks = [column.of(rows.column(name)) for column, name in zip(self._ranks, self._order.columns, strict=False)]
        match self._order.strategy:
            case "zorder":
                return _interleaved(ranks, self._bits)
            case "hilbert":
                return _interleaved(_hilbert(ranks, self._bits), self._bits)
        code = np.zeros(rows.num_rows, dtype=np.uint64)
        for rank in ranks:
            code = (code << np.uint64(self._bits)) | rank
        return code

    def sorted_places(self, rows: pa.Table) -> Places:
        """The places of the rows, first to last. By ``order`` the values themselves decide, else the codes."""
        if self._order.strategy == "order":
            keys = [(name, "ascending") for name in self._order.columns]
            return np.asarray(pc.sort_indices(rows.select(self._order.columns), sort_keys=keys), dtype=np.int64)
        return np.argsort(self.of(rows), kind="stable")


class _ColumnRanks:
    """Ranks the values of one column among ``count`` quantiles of a sample; 0 for null."""

    def __init__(self, sample: pa.ChunkedArray, count: int) -> None:
        values = sample.combine_chunks().drop_null()
        places = pc.sort_indices(values)
        # Each bound once: a value that many rows have is one cell, and leaves the others to the rest.
        step = -(-len(values) // max(count - 2, 1)) or 1
        self._bounds = values.take(places[step // 2 :: step]).unique()[: count - 2]
        self._plain = _one_plain(self._bounds)

    def of(self, column: pa.ChunkedArray | pa.Array) -> U64:
        """The ranks of values: 1 for those below all bounds."""
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        plain = _one_plain(values) if self._plain is not None else None
        if plain is not None and self._plain is not None:
            ranks = np.searchsorted(self._plain, plain, side="right")
        else:
            both = pa.concat_arrays([self._bounds, values])
            dense = np.asarray(pc.rank(both, sort_keys="ascending", tiebreaker="dense"), dtype=np.int64)
            ranks = np.searchsorted(dense[: len(self._bounds)], dense[len(self._bounds) :], side="right")
        codes = ranks.astype(np.uint64) + np.uint64(1)
        if values.null_count:
            codes[np.asarray(values.is_null())] = 0
        return codes


def _one_plain(values: pa.Array) -> npt.NDArray[np.integer] | None:
    """The values as one column of integers that compare as they do; None for texts, bytes and wide decimals."""
    plain = plain_columns([values], [True])[1:]
    return plain[0] if len(plain) == 1 and isinstance(plain[0], np.ndarray) else None


def _interleaved(ranks: Sequence[U64], bits: int) -> U64:
    code = np.zeros(len(ranks[0]), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            code = (code << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return code


def _hilbert(ranks: Sequence[U64], bits: int) -> list[U64]:
    """Turns coordinates into the transposed Hilbert index (Skilling's AxesToTranspose)."""
    axes = [rank.copy() for rank in ranks]
    for bit in range(bits - 1, 0, -1):
        low = np.uint64((1 << bit) - 1)
        for axis in axes:
            is_set = (axis >> np.uint64(bit)) & np.uint64(1) == 1
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & low)
            axes[0] ^= np.where(is_set, low, np.uint64(0))
            axes[0] ^= swapped
            if axis is not axes[0]:
                axis ^= swapped
    for before, axis in pairwise(axes):
        axis ^= before
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where((axes[-1] >> np.uint64(bit)) & np.uint64(1) == 1, np.uint64((1 << bit) - 1), np.uint64(0))
    return [axis ^ flips for axis in axes]
