"""Rebatches rows: cuts large batches into views and puts small ones together."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa


def _nbytes(rows: pa.RecordBatch | pa.Table) -> int:
    size: int = rows.nbytes
    return size


_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


def slices_of(rows: _Rows, *, max_rows: int, max_bytes: int, size_of: Callable[[_Rows], int] = _nbytes) -> Iterator[_Rows]:
    """Splits rows, in order, into slices within both bounds; a row of more than ``max_bytes`` comes alone. No rows give no slices.

    ``size_of``: how many bytes rows count as; by default what they take in memory.
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
    # Pieces of one length: a short rest would cost its reader as much as a full piece.
    step = -(-count // -(-count // step))
    for start in range(0, count, step):
        piece = rows.slice(start, step)
        if piece.num_rows > 1 and size_of(piece) > max_bytes:
            # Rows differ in size: half of this piece may be within the bound.
            half = piece.num_rows // 2
            yield from slices_of(piece.slice(0, half), max_rows=max_rows, max_bytes=max_bytes, size_of=size_of)
            yield from slices_of(piece.slice(half), max_rows=max_rows, max_bytes=max_bytes, size_of=size_of)
        else:
            yield piece


def rebatched(
    batches: Iterable[pa.RecordBatch],
    *,
    max_rows: int,
    max_bytes: int,
    small_rows: int | None = None,
    small_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rebatches rows, in order: large batches are cut as :func:`slices_of` does, small ones in a row put together as far as the
    bounds allow.

    A batch is small if it has at most ``small_rows`` rows (half of ``max_rows`` if not given) and ``small_bytes`` (``max_bytes``).
    Only small batches are copied. In memory are ``max_bytes``, and the batch that is looked at.
    """
    small_rows = max_rows // 2 if small_rows is None else small_rows
    small_bytes = max_bytes if small_bytes is None else small_bytes
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in batches:
        for batch in slices_of(whole, max_rows=max_rows, max_bytes=max_bytes):
            count, nbytes = batch.num_rows, batch.nbytes
            is_small = count <= small_rows and nbytes <= small_bytes
            if small and (not is_small or rows + count > max_rows or size + nbytes > max_bytes):
                yield _together(small)
                small, rows, size = [], 0, 0
            if is_small:
                small.append(batch)
                rows, size = rows + count, size + nbytes
            else:
                yield batch
    if small:
        yield _together(small)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
