"""Rows cut into pieces that no bound of bytes or rows is too small for; a piece is a view, nothing is copied."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa


def _nbytes(rows: pa.RecordBatch | pa.Table) -> int:
    size: int = rows.nbytes
    return size


_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


def pieces(rows: _Rows, *, max_rows: int, max_bytes: int, size_of: Callable[[_Rows], int] = _nbytes) -> Iterator[_Rows]:
    """The same rows in order, at most so many at a time; a row of more than ``max_bytes`` comes alone. Nothing of no rows.

    ``size_of``: how many bytes rows count as, what they take in memory if not given.
    """
    count = rows.num_rows
    if not count:
        return
    size = size_of(rows)
    step = count if size <= max_bytes else max(count * max_bytes // size, 1)
    step = min(step, max_rows)
    if step == count:
        yield rows
        return
    # Pieces of one length, not full ones and a rest: the rest costs whoever takes it as much.
    step = -(-count // -(-count // step))
    for start in range(0, count, step):
        piece = rows.slice(start, step)
        if piece.num_rows > 1 and size_of(piece) > max_bytes:
            # Rows are not of one size: the half of a piece is nearer to the bound than all of it.
            half = piece.num_rows // 2
            yield from pieces(piece.slice(0, half), max_rows=max_rows, max_bytes=max_bytes, size_of=size_of)
            yield from pieces(piece.slice(half), max_rows=max_rows, max_bytes=max_bytes, size_of=size_of)
        else:
            yield piece
