"""How do several sorted runs read as one, with one row per key?

The runs are read batch by batch, and cut into windows: a window ends at the smallest of the last keys that the runs
have in memory, so every key lies in exactly one window, with all its versions.

    run 1   |a  c  f |  ...          window 1: all keys up to f (run 1 ends first)
    run 2   |b  c  d  h  k |
    run 3   |f  m |

In a window each run is one *chunk*. Which version of a key survives is decided without moving any row: if the chunks'
sequence ranges do not interleave, chunk order is version order, and the survivors are those keys that no later chunk
holds; otherwise (and with ``sequence.field``) the versions of each key that has several are compared row by row. Then each
chunk is filtered, unless all its rows survive. Rows travel as Arrow; memory is one batch per run.

Engines that compute rows: keys with one version leave their chunk in the same way, the others are folded (``fold``).

Equal sequence numbers of one key: the later run in the given order wins. (Writers of this project never produce them;
among other engines readers disagree.) Retractions take part in the fold like any row and are dropped after it.
A file that is not sorted by key, or holds a key twice, is refused: merged, it would yield wrong rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.lsm.fold import fold_versions
from tablestore.lsm.gather import take_rows
from tablestore.lsm.keys import PlainColumn, Rows, key_at, plain_columns, rows_up_to, slice_plain, to_words
from tablestore.lsm.mergefn import MergeFunction
from tablestore.lsm.sorting import sort_by_group_and_key
from tablestore.lsm.survivors import WindowKeys, last_of_each_key, rank_versions, versions_of_repeated_keys, winners_by_sequence
from tablestore.types.datatypes import Field
from tablestore.types.rowkind import RowKind

SEQUENCE_COLUMN = "_SEQUENCE_NUMBER"
KIND_COLUMN = "_VALUE_KIND"

Mask = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.int8]

_SYSTEM_FIELDS = (pa.field(SEQUENCE_COLUMN, pa.int64(), nullable=False), pa.field(KIND_COLUMN, pa.int8(), nullable=False))

# Smaller pieces are put together before they are handed on: a batch has a fixed cost for whoever takes it.
_SMALL_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedSource:
    """One data file's rows in key order, opened when ``read`` is called. Batches hold the key columns,
    ``_VALUE_KIND`` and the needed value columns; ``_SEQUENCE_NUMBER`` only if the two bounds differ.

    ``ours``: this project wrote the file, so ``+U`` may say that older rows do not count (see ``mergefn``)."""

    min_sequence: int
    max_sequence: int
    read: Callable[[], Iterator[pa.RecordBatch]]
    ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec:
    """What to merge by and what to give back.

    ``ordered`` gives rows in key order (for writing); without it rows of a window come run by run, which is cheaper.
    ``emit_system_columns`` puts ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` before the output columns.
    """

    key_fields: tuple[Field, ...]
    output_columns: tuple[str, ...]
    function: MergeFunction
    drop_retractions: bool = True
    ordered: bool = False
    emit_system_columns: bool = False
    batch_rows: int = 131072


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The rows of one run in one window."""

    run: int
    batch: pa.RecordBatch
    plain: list[PlainColumn]
    min_sequence: int
    max_sequence: int

    def sequences(self) -> npt.NDArray[np.int64]:
        if self.min_sequence == self.max_sequence:
            return np.full(self.batch.num_rows, self.min_sequence, dtype=np.int64)
        return np.asarray(self.batch.column(SEQUENCE_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int64)

    def kinds(self) -> Kinds:
        return np.asarray(self.batch.column(KIND_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int8)

    def retractions(self) -> Mask | None:
        """Which rows retract; None if none does."""
        retract: Mask = (self.kinds() & 1).astype(np.bool_)
        return retract if retract.any() else None


def merge_section(runs: Sequence[Sequence[SortedSource]], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    """The rows of a section, one per key, as batches of at most ``spec.batch_rows`` rows.

    ``runs`` is a list of runs, each a list of sources with disjoint keys in key order. Raises FormatError for a
    source that is not sorted, and whatever the sources raise.
    """
    return _coalesce(_merge(runs, spec), spec.batch_rows)


def _merge(runs: Sequence[Sequence[SortedSource]], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    cursors = [_Cursor(run, sources, spec) for run, sources in enumerate(runs)]
    alone = len(cursors) == 1
    active = [cursor for cursor in cursors if cursor.advance(alone=alone)]
    while active:
        if alone:
            chunks = [active[0].rest()]
        else:
            bound = min(cursor.last_key for cursor in active)
            chunks = [chunk for cursor in active if (chunk := cursor.up_to(bound)) is not None]
        yield from _fold(chunks, spec)
        active = [cursor for cursor in active if cursor.has_rows or cursor.advance(alone=alone)]


class _Cursor:
    """Where one run stands: the batch in memory and the first row that was not taken."""

    def __init__(self, run: int, sources: Sequence[SortedSource], spec: MergeSpec) -> None:
        self._run = run
        self._sources = iter(sources)
        self._source: SortedSource | None = None
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
        while self._batch is None:
            batch = next(self._batches, None)
            if batch is None:
                self._source = next(self._sources, None)
                if self._source is None:
                    return False
                self._batches = self._source.read()
            elif batch.num_rows:
                self._batch = batch
        if not alone:
            columns = [self._batch.column(field.name) for field in self._spec.key_fields]
            self._plain = plain_columns(columns, self._nullable)
            self.last_key = key_at(self._plain, self._batch.num_rows - 1)
            if previous and not previous < key_at(self._plain, 0):
                raise _not_sorted()
        return True

    def rest(self) -> _Chunk:
        return self._chunk(self._batch.num_rows)  # type: ignore[union-attr]

    def up_to(self, bound: tuple[int | bytes, ...]) -> _Chunk | None:
        """The rows not taken yet whose key is at most ``bound``."""
        assert self._batch is not None
        rows = self._batch.num_rows
        stop = rows if self.last_key <= bound else rows_up_to(self._plain, bound, self._start, rows)
        return self._chunk(stop) if stop > self._start else None

    def _chunk(self, stop: int) -> _Chunk:
        assert self._batch is not None and self._source is not None
        start, self._start = self._start, stop
        whole = start == 0 and stop == self._batch.num_rows
        chunk = _Chunk(
            self._run,
            self._batch if whole else self._batch.slice(start, stop - start),
            self._plain if whole else slice_plain(self._plain, start, stop),
            self._source.min_sequence,
            self._source.max_sequence,
        )
        function = self._spec.function
        if function.marks_replacements and not self._source.ours:
            chunk = _without_marks(chunk)
        skipped = function.skipped_kinds
        if not skipped:
            return chunk
        gone = np.isin(chunk.kinds(), skipped)
        return _without(chunk, gone if gone.any() else None)


def _without(chunk: _Chunk, rows: Mask | None) -> _Chunk:
    if rows is None:
        return chunk
    kept = ~rows
    mask = pa.array(kept)
    plain = [column.filter(mask) if isinstance(column, pa.Array) else column[kept] for column in chunk.plain]
    return _Chunk(chunk.run, chunk.batch.filter(mask), plain, chunk.min_sequence, chunk.max_sequence)


def _without_marks(chunk: _Chunk) -> _Chunk:
    """``+U`` of other writers says no more than ``+I``."""
    kinds = chunk.kinds()
    if not (kinds == RowKind.UPDATE_AFTER).any():
        return chunk
    plain_kinds = pa.array(np.where(kinds == RowKind.UPDATE_AFTER, np.int8(RowKind.INSERT), kinds))
    place = chunk.batch.schema.get_field_index(KIND_COLUMN)
    return replace(chunk, batch=chunk.batch.set_column(place, chunk.batch.schema.field(place), plain_kinds))


def _fold(chunks: list[_Chunk], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    """One window: the surviving rows of its chunks."""
    chunks = [chunk for chunk in chunks if chunk.batch.num_rows]
    if len(chunks) < 2:
        yield from (_emit(chunk, None, spec) for chunk in chunks)
        return
    ordered_chunks = None if spec.function.sequence_fields else _in_sequence_order(chunks)
    if ordered_chunks is not None:
        chunks = ordered_chunks if spec.function.keep == "last" else ordered_chunks[::-1]
    keys = WindowKeys([chunk.plain for chunk in chunks])
    if not keys.ascending():
        raise _not_sorted()
    in_order = ordered_chunks is not None
    if spec.function.computes:
        yield from _fold_computing(chunks, keys, spec, in_order=in_order)
        return
    masks = last_of_each_key(keys, sorted_anyway=spec.ordered) if in_order else _by_row(chunks, keys, spec)
    if spec.ordered:
        yield from _emit_ordered(chunks, keys, masks, spec)
    else:
        for chunk, mask in zip(chunks, masks, strict=True):
            yield _emit(chunk, mask, spec)


def _fold_computing(chunks: Sequence[_Chunk], keys: WindowKeys, spec: MergeSpec, *, in_order: bool) -> Iterator[pa.RecordBatch]:
    """One window: keys with one version as they are, the others folded."""
    function = spec.function
    several, key = versions_of_repeated_keys(keys.in_order)
    places = keys.in_order.order[several]
    single = np.ones(keys.row_count, dtype=np.bool_)
    single[places] = False
    masks: list[Mask | None] = [*keys.split(single)]
    folded: pa.RecordBatch | None = None
    if len(places):
        sequences = np.concatenate([chunk.sequences() for chunk in chunks])
        if not in_order:
            versions = [_column(chunks, field.name).take(pa.array(places)) for field in function.sequence_fields]
            ranked = rank_versions(
                key,
                versions,
                descending=[field.descending for field in function.sequence_fields],
                tie_breakers=[sequences[places], places],
            )
            places = places[ranked]
        folded = _folded_rows(chunks, places, key, sequences, spec)
    if spec.ordered:
        yield from _interleave(chunks, keys, masks, folded, spec)
        return
    for chunk, mask in zip(chunks, masks, strict=True):
        if mask is None or mask.any():
            yield _emit(chunk, mask, spec)
    if folded is not None:
        yield folded


def _folded_rows(
    chunks: Sequence[_Chunk], places: Rows, key: Rows, sequences: npt.NDArray[np.int64], spec: MergeSpec
) -> pa.RecordBatch:
    """One row per key of several versions, in key order, retractions left out if the spec says so."""
    names = spec.function.required_columns(spec.output_columns)
    schema = chunks[0].batch.schema
    columns = {name: _column(chunks, name) for name in schema.names if name in names}
    number = np.cumsum(np.concatenate([[False], key[1:] != key[:-1]]))
    folded = fold_versions(
        spec.function,
        columns,
        spec.output_columns,
        rows=places,
        key=number,
        kinds=np.concatenate([chunk.kinds() for chunk in chunks])[places],
        last_fold=spec.drop_retractions,
    )
    arrays = [folded.columns[name] for name in spec.output_columns]
    fields = [schema.field(name) for name in spec.output_columns]
    if spec.emit_system_columns:
        starts = np.concatenate([[0], np.flatnonzero(number[1:] != number[:-1]) + 1])
        arrays = [pa.array(np.maximum.reduceat(sequences[places], starts)), pa.array(folded.kinds), *arrays]
        fields = [*_SYSTEM_FIELDS, *fields]
    out = batch_of(arrays, pa.schema(fields), len(folded.kinds))
    retract = (folded.kinds & 1).astype(np.bool_)
    return out.filter(pa.array(~retract)) if spec.drop_retractions and retract.any() else out


def _interleave(
    chunks: Sequence[_Chunk], keys: WindowKeys, masks: Sequence[Mask | None], folded: pa.RecordBatch | None, spec: MergeSpec
) -> Iterator[pa.RecordBatch]:
    """Rows of the chunks and folded rows, in key order."""
    singles = list(_emit_ordered(chunks, keys, masks, spec))
    if folded is None:
        yield from singles
        return
    window = pa.Table.from_batches([*singles, folded]).combine_chunks()
    # The key columns are there: who writes rows in order writes whole rows.
    plain = plain_columns(
        [window.column(field.name) for field in spec.key_fields], [field.type.nullable for field in spec.key_fields]
    )
    if window.num_rows:
        order = sort_by_group_and_key(None, 1, to_words(plain)).order
        yield from take_rows(window, order).to_batches()


def _column(chunks: Sequence[_Chunk], name: str) -> pa.Array:
    return pa.concat_arrays([chunk.batch.column(name) for chunk in chunks])


def _in_sequence_order(chunks: Sequence[_Chunk]) -> list[_Chunk] | None:
    """The chunks with older rows first, or None if the sequence ranges of two of them interleave."""
    ordered = sorted(chunks, key=lambda chunk: (chunk.min_sequence, chunk.max_sequence, chunk.run))
    for older, newer in pairwise(ordered):
        # Ranges that touch in one number are in order as long as the tie goes to the later run.
        if newer.min_sequence < older.max_sequence or (newer.min_sequence == older.max_sequence and newer.run < older.run):
            return None
    return ordered


def _by_row(chunks: Sequence[_Chunk], keys: WindowKeys, spec: MergeSpec) -> list[Mask | None]:
    """The surviving rows where only a comparison row by row tells which version is newest."""
    mask = winners_by_sequence(
        keys.in_order,
        [_column(chunks, field.name) for field in spec.function.sequence_fields],
        descending=[field.descending for field in spec.function.sequence_fields],
        sequences=np.concatenate([chunk.sequences() for chunk in chunks]),
        keep=spec.function.keep,
    )
    return [*keys.split(mask)]


def _without_retractions(chunk: _Chunk, survivors: Mask | None, spec: MergeSpec) -> Mask | None:
    """The rows to emit; None if they are all."""
    if spec.drop_retractions:
        retractions = chunk.retractions()
        if retractions is not None:
            survivors = ~retractions if survivors is None else survivors & ~retractions
    return None if survivors is None or survivors.all() else survivors


def _emit(chunk: _Chunk, survivors: Mask | None, spec: MergeSpec) -> pa.RecordBatch:
    """The chunk's surviving rows: the chunk itself where all survive."""
    survivors = _without_retractions(chunk, survivors, spec)
    out = _output(chunk, spec)
    return out if survivors is None else out.filter(pa.array(survivors))


def _emit_ordered(
    chunks: Sequence[_Chunk], keys: WindowKeys, masks: Sequence[Mask | None], spec: MergeSpec
) -> Iterator[pa.RecordBatch]:
    """The surviving rows of all chunks, interleaved in key order."""
    kept = np.ones(keys.row_count, dtype=np.bool_)
    for chunk, mask, part in zip(chunks, masks, keys.split(kept), strict=True):
        survivors = _without_retractions(chunk, mask, spec)
        if survivors is not None:
            part[:] = survivors
    order = keys.in_order.order
    window = pa.Table.from_batches([_output(chunk, spec) for chunk in chunks]).combine_chunks()
    yield from take_rows(window, order[kept[order]]).to_batches()


def batch_of(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A batch, also of no columns but a number of rows."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def _output(chunk: _Chunk, spec: MergeSpec) -> pa.RecordBatch:
    if not spec.emit_system_columns:
        return chunk.batch.select(list(spec.output_columns))
    values = chunk.batch.select(list(spec.output_columns))
    return pa.RecordBatch.from_arrays(
        [pa.array(chunk.sequences()), chunk.batch.column(KIND_COLUMN), *values.columns],
        schema=pa.schema([*_SYSTEM_FIELDS, *values.schema]),
    )


def _coalesce(batches: Iterator[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows without tiny batches, and none over ``batch_rows``."""
    small: list[pa.RecordBatch] = []
    small_rows = 0
    for batch in batches:
        if small and (batch.num_rows > _SMALL_BATCH_ROWS or small_rows + batch.num_rows > batch_rows):
            yield from _split(pa.concat_batches(small), batch_rows)
            small, small_rows = [], 0
        if batch.num_rows > _SMALL_BATCH_ROWS:
            yield from _split(batch, batch_rows)
        elif batch.num_rows:
            small.append(batch)
            small_rows += batch.num_rows
    if small:
        yield from _split(pa.concat_batches(small), batch_rows)


def _split(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= batch_rows:
        yield batch
        return
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)


def _not_sorted() -> FormatError:
    return FormatError(
        "a sorted run holds rows that are not in strictly ascending key order: merging it would give wrong rows; "
        "find the file with `tablestore verify` and rewrite it",
        kind="unsorted",
    )
