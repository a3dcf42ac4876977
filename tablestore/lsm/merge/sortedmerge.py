"""Merges sorted runs into batches with one row per key, a window at a time.

The runs are read batch by batch, and cut into windows: a window ends at the smallest of the last keys that the runs
have in memory, so every key lies in exactly one window, with all its versions.

    run 1   |a  c  f |  ...          window 1: all keys up to f (run 1 ends first)
    run 2   |b  c  d  h  k |
    run 3   |f  m |

A run that ends with the batch in memory does not end a window: its keys are all there. To know that, the batch behind a small one
is read ahead, so that many small runs make one window and not one each. ``window`` says what comes out of a window. Memory is one
batch per run, one more behind a small one, and what ``window`` makes of them; the opener of the sources bounds the batches.
A file that is not sorted by key, or holds a key twice, is refused: merging it would give wrong rows.
"""

from collections.abc import Generator, Iterator, Sequence

import pyarrow as pa

from tablestore.lsm.keys import PlainColumn, key_at, plain_columns, rows_up_to, slice_plain
from tablestore.lsm.merge.mergespec import Chunk, MergeSpec, SortedSource
from tablestore.lsm.merge.window import fold_window, not_sorted
from tablestore.types.rebatch import rebatched

# Smaller batches are joined, because a batch has a fixed cost for its consumer. A window has one too.
_SMALL_BATCH_ROWS = 4096
_SMALL_BATCH_BYTES = 1 << 20


def merge_section(runs: Sequence[Sequence[SortedSource]], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    """The rows of a section, one per key, as batches of at most ``spec.batch_rows`` rows and ``spec.batch_bytes`` (but of one row).

    ``runs`` is a list of runs, each a list of sources with disjoint keys in key order. Raises FormatError for a
    source that is not sorted, and whatever the sources raise.
    """
    return rebatched(
        _merge(runs, spec),
        max_rows=spec.batch_rows,
        max_bytes=spec.batch_bytes,
        small_rows=_SMALL_BATCH_ROWS,
        small_bytes=_SMALL_BATCH_BYTES,
    )


def _merge(runs: Sequence[Sequence[SortedSource]], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    cursors = [_Cursor(run, sources, spec) for run, sources in enumerate(runs)]
    alone = len(cursors) == 1
    try:
        active = [cursor for cursor in cursors if cursor.advance(alone=alone)]
        while active:
            if alone:
                chunks = [active[0].rest()]
            elif going_on := [cursor.last_key for cursor in active if not cursor.ends]:
                bound = min(going_on)
                chunks = [chunk for cursor in active if (chunk := cursor.up_to(bound)) is not None]
            else:
                chunks = [cursor.rest() for cursor in active]
            yield from fold_window(chunks, spec)
            active = [cursor for cursor in active if cursor.has_rows or cursor.advance(alone=alone)]
    finally:
        # Where one run fails, the others still have files open, and the error holds on to them.
        for cursor in cursors:
            cursor.close()


class _Cursor:
    """The position in one run: the batch in memory and the first row not taken. ``ends``: nothing comes after the batch."""

    def __init__(self, run: int, sources: Sequence[SortedSource], spec: MergeSpec) -> None:
        self._run = run
        self._sources = iter(sources)
        self._opened: SortedSource | None = None
        self._source: SortedSource | None = None
        self._ahead: tuple[SortedSource, pa.RecordBatch] | None = None
        self.ends = False
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._spec = spec
        self._nullable = [field.type.nullable for field in spec.key_fields]
        self._batch: pa.RecordBatch | None = None
        self._plain: list[PlainColumn] = []
        self._start = 0
        self.last_key: tuple[int | bytes, ...] = ()

    @property
    def has_rows(self) -> bool:
        return self._batch is not None and self._start < self._batch.num_rows

    def advance(self, *, alone: bool) -> bool:
        """Load the next batch; False at the end of the run. A run that is alone needs no keys."""
        self._batch, self._start = None, 0
        previous, self._plain = self.last_key, []
        ahead, self._ahead = self._ahead or self._next(), None
        if ahead is None:
            return False
        self._source, self._batch = ahead
        if not alone:
            if self._batch.num_rows < _SMALL_BATCH_ROWS and self._batch.nbytes < _SMALL_BATCH_BYTES:
                self._ahead = self._next()
                self.ends = self._ahead is None
            columns = [self._batch.column(field.name) for field in self._spec.key_fields]
            self._plain = plain_columns(columns, self._nullable)
            self.last_key = key_at(self._plain, self._batch.num_rows - 1)
            if previous and not previous < key_at(self._plain, 0):
                raise not_sorted()
        return True

    def _next(self) -> tuple[SortedSource, pa.RecordBatch] | None:
        """The next rows of the run, and where they are from."""
        while True:
            batch = next(self._batches, None)
            if batch is None:
                self._opened = next(self._sources, None)
                if self._opened is None:
                    return None
                self._batches = self._opened.read()
            elif batch.num_rows:
                assert self._opened is not None
                return self._opened, batch

    def close(self) -> None:
        """Close the source that is being read."""
        if isinstance(self._batches, Generator):
            self._batches.close()

    def rest(self) -> Chunk:
        return self._chunk(self._batch.num_rows)  # type: ignore[union-attr]

    def up_to(self, bound: tuple[int | bytes, ...]) -> Chunk | None:
        """The rows not taken yet whose key is at most ``bound``."""
        assert self._batch is not None
        rows = self._batch.num_rows
        stop = rows if self.last_key <= bound else rows_up_to(self._plain, bound, self._start, rows)
        return self._chunk(stop) if stop > self._start else None

    def _chunk(self, stop: int) -> Chunk:
        assert self._batch is not None and self._source is not None
        start, self._start = self._start, stop
        whole = start == 0 and stop == self._batch.num_rows
        chunk = Chunk(
            self._run,
            self._batch if whole else self._batch.slice(start, stop - start),
            self._plain if whole else slice_plain(self._plain, start, stop),
            self._source.min_sequence,
            self._source.max_sequence,
        )
        return chunk.prepared(self._spec.function, ours=self._source.ours)
