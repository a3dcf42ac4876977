"""Sorts rows of any number by a cluster order, in bounded memory.

    columns of the order -> a sample -> codes
    rows that fit into memory       sorted, and returned
    more                            cut into ranges of codes on local disk; each range is sorted by the same rule, first to last

Memory: ``memory_bytes`` of rows and their sorted copy. Disk: the rows once, as Arrow, in the directory of temporary files; what a
range was cut into takes its place. Rows that all have one code are not cut further: they come as they are, in pieces that fit.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from tablestore.bounds import BATCH_ROWS, OPEN_FILES
from tablestore.errors import StorageError
from tablestore.lsm.clusterorder import SAMPLE_ROWS, ClusterOrder, RowCodes
from tablestore.options import MIB
from tablestore.types.arrays import U64
from tablestore.types.rebatch import slices_of

MEMORY_BYTES = 256 * MIB
# Files end between batches, so batches are small beside files.
_OUTPUT_BYTES = 2 * MIB

Rows = Iterator[pa.RecordBatch]


def clustered_rows(
    rows: Callable[[], Rows],
    columns: Callable[[], Rows],
    order: ClusterOrder,
    *,
    row_count: int,
    memory_bytes: int = MEMORY_BYTES,
) -> Rows:
    """Yields the rows in the order's order, in batches of bounded size.

    ``rows`` and ``columns``: each call reads the input anew, whole and only the order's columns. ``row_count``: about how many
    there are. Raises StorageError if the disk for temporary files is full, and what reading raises.
    """
    sample = _sample(columns(), max(row_count // SAMPLE_ROWS, 1))
    if not sample.num_rows:
        yield from rows()
        return
    codes = RowCodes(order, sample)
    sampled = np.sort(codes.of(sample))
    try:
        with tempfile.TemporaryDirectory(prefix="tablestore-cluster-") as scratch:
            yield from _sorted(rows(), codes, sampled, Path(scratch), memory_bytes)
    except OSError as error:
        raise StorageError(
            f"the temporary directory {tempfile.gettempdir()} could not hold the rows that a compaction orders: {error}; free "
            "space there, or set TMPDIR to a larger disk"
        ) from error


@dataclass(slots=True)
class _Range:
    """Rows of a range of codes, in a file. ``low`` and ``high``: the least and the largest of their codes."""

    path: Path
    low: int
    high: int


def _sorted(rows: Rows, codes: RowCodes, sampled: U64, scratch: Path, memory_bytes: int, low: int = 0) -> Rows:
    """Sorts rows: in memory, or range by range once they are more than that. ``sampled``: the codes of a sample of them, sorted;
    ``low``: no row has a smaller code."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            break
    else:
        yield from _in_memory(held, codes)
        return
    for part in _cut(_emptied(held), rows, codes, _cuts(sampled, low), scratch):
        if part.low == part.high:
            yield from _read(part.path)
        else:
            within = sampled[np.searchsorted(sampled, part.low) : np.searchsorted(sampled, part.high, side="right")]
            yield from _sorted(_read(part.path), codes, within, scratch, memory_bytes, part.low)
        part.path.unlink()


def _cuts(sampled: U64, low: int) -> U64:
    """The codes at which ranges begin: quantiles of the sample, and in any case one that parts the smallest code from the rest."""
    cuts = np.unique(sampled[:: max(len(sampled) // OPEN_FILES, 1)])[:OPEN_FILES]
    cuts = cuts[cuts > low]
    return cuts if len(cuts) else np.array([low + 1], dtype=np.uint64)


def _emptied(batches: list[pa.RecordBatch]) -> Rows:
    """The batches, each let go when it is handed out."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _cut(first: Rows, rest: Rows, codes: RowCodes, cuts: U64, scratch: Path) -> list[_Range]:
    """Writes each row into the file of its range of codes; the ranges that have rows, in order."""
    directory = Path(tempfile.mkdtemp(dir=scratch))
    ranges: dict[int, _Range] = {}
    writers: dict[int, pa.RecordBatchWriter] = {}
    with ExitStack() as stack:
        for batch in chain(first, rest):
            code = codes.of(batch)
            places = np.argsort(code, kind="stable")
            batch, code = batch.take(pa.array(places)), code[places]
            ends = [*np.searchsorted(code, cuts), len(code)]
            for number, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
                if start == stop:
                    continue
                least, largest = int(code[start]), int(code[stop - 1])
                if number not in ranges:
                    ranges[number] = _Range(directory / str(number), least, largest)
                    writers[number] = stack.enter_context(pa.ipc.new_stream(str(ranges[number].path), batch.schema))
                part = ranges[number]
                part.low, part.high = min(part.low, least), max(part.high, largest)
                writers[number].write_batch(batch.slice(int(start), int(stop - start)))
    return [ranges[number] for number in sorted(ranges)]


def _in_memory(held: list[pa.RecordBatch], codes: RowCodes) -> Rows:
    if not held:
        return
    table = pa.Table.from_batches(held)
    places = codes.sorted_places(table)
    rows_at_once = max(min(BATCH_ROWS, _OUTPUT_BYTES * table.num_rows // max(table.nbytes, 1)), 1)
    for start in range(0, len(places), rows_at_once):
        ordered = table.take(pa.array(places[start : start + rows_at_once])).combine_chunks()
        for batch in ordered.to_batches():
            yield from slices_of(batch, max_rows=BATCH_ROWS, max_bytes=_OUTPUT_BYTES)


def _read(path: Path) -> Rows:
    with pa.ipc.open_stream(pa.memory_map(str(path))) as stream:
        yield from stream


def _sample(rows: Rows, step: int) -> pa.Table:
    """Takes one row of each ``step``."""
    parts: list[pa.RecordBatch] = []
    skip = 0
    schema = None
    for batch in rows:
        schema = batch.schema
        if batch.num_rows > skip:
            parts.append(batch.take(pa.array(np.arange(skip, batch.num_rows, step))))
        skip = (skip - batch.num_rows) % step if batch.num_rows > skip else skip - batch.num_rows
    if schema is None:
        return pa.table({})
    return pa.Table.from_batches(parts, schema)
