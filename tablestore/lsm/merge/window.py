"""Merges one window of sorted runs: picks, or folds, the rows that come out of it.

In a window each run is one *chunk*. Which version of a key survives is decided without moving any row: if the chunks'
sequence ranges do not interleave, chunk order is version order, and the survivors are those keys that no later chunk
holds; otherwise (and with ``sequence.field``) the versions of each key that has several are compared row by row. Then each
chunk is filtered, unless all its rows survive.

Engines that compute rows: keys with one version leave their chunk in the same way, the others are folded (``fold``).

Equal sequence numbers of one key: the later run in the given order wins. (Writers of this project never produce them;
among other engines readers disagree.) Retractions take part in the fold like any row and are dropped after it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.bounds import TOGETHER_BYTES
from tablestore.errors import FormatError, UnsupportedError
from tablestore.lsm.functions.survivors import (
    WindowKeys,
    last_of_each_key,
    rank_versions,
    versions_of_repeated_keys,
    winners_by_sequence,
)
from tablestore.lsm.gather import take_rows
from tablestore.lsm.keys import plain_columns, to_words
from tablestore.lsm.merge.fold import fold_versions
from tablestore.lsm.merge.mergespec import SYSTEM_FIELDS, Chunk, MergeSpec
from tablestore.lsm.sorting import sort_by_group_and_key
from tablestore.types.arrays import Mask, Places, begins, retracts


def fold_window(chunks: list[Chunk], spec: MergeSpec) -> Iterator[pa.RecordBatch]:
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
        raise not_sorted()
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


def _fold_computing(chunks: Sequence[Chunk], keys: WindowKeys, spec: MergeSpec, *, in_order: bool) -> Iterator[pa.RecordBatch]:
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
    chunks: Sequence[Chunk], places: Places, key: Places, sequences: npt.NDArray[np.int64], spec: MergeSpec
) -> pa.RecordBatch:
    """One row per key of several versions, in key order, retractions left out if the spec says so."""
    names = spec.function.required_columns(spec.output_columns)
    schema = chunks[0].batch.schema
    columns = {name: _column(chunks, name) for name in schema.names if name in names}
    number = np.cumsum(begins(key)) - 1
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
        starts = np.flatnonzero(begins(number))
        arrays = [pa.array(np.maximum.reduceat(sequences[places], starts)), pa.array(folded.kinds), *arrays]
        fields = [*SYSTEM_FIELDS, *fields]
    out = batch_of(arrays, pa.schema(fields), len(folded.kinds))
    retract = retracts(folded.kinds)
    return out.filter(pa.array(~retract)) if spec.drop_retractions and retract.any() else out


def _interleave(
    chunks: Sequence[Chunk], keys: WindowKeys, masks: Sequence[Mask | None], folded: pa.RecordBatch | None, spec: MergeSpec
) -> Iterator[pa.RecordBatch]:
    """Rows of the chunks and folded rows, in key order."""
    singles = list(_emit_ordered(chunks, keys, masks, spec))
    if folded is None:
        yield from singles
        return
    window = pa.Table.from_batches([*singles, folded]).combine_chunks()
    # The key columns are there: ordered rows are written, and so they are whole.
    plain = plain_columns(
        [window.column(field.name) for field in spec.key_fields], [field.type.nullable for field in spec.key_fields]
    )
    if window.num_rows:
        order = sort_by_group_and_key(None, 1, to_words(plain)).order
        yield from _in_pieces(window, order, spec)


def _column(chunks: Sequence[Chunk], name: str) -> pa.Array:
    try:
        return pa.concat_arrays([chunk.batch.column(name) for chunk in chunks])
    except pa.ArrowInvalid as error:
        size = sum(chunk.batch.column(name).nbytes for chunk in chunks)
        raise UnsupportedError(
            f"column {name!r}: the versions of one row take {size:,} bytes, and less than 2 GiB of them can be computed with at "
            "once; compact more often, so that there are fewer versions, or keep smaller values in the column",
            kind="row-too-large",
        ) from error


def _in_sequence_order(chunks: Sequence[Chunk]) -> list[Chunk] | None:
    """The chunks with older rows first, or None if the sequence ranges of two of them interleave."""
    ordered = sorted(chunks, key=lambda chunk: (chunk.min_sequence, chunk.max_sequence, chunk.run))
    for older, newer in pairwise(ordered):
        # Ranges that touch in one number are in order as long as the tie goes to the later run.
        if newer.min_sequence < older.max_sequence or (newer.min_sequence == older.max_sequence and newer.run < older.run):
            return None
    return ordered


def _by_row(chunks: Sequence[Chunk], keys: WindowKeys, spec: MergeSpec) -> list[Mask | None]:
    """The surviving rows where versions have to be compared row by row."""
    mask = winners_by_sequence(
        keys.in_order,
        [_column(chunks, field.name) for field in spec.function.sequence_fields],
        descending=[field.descending for field in spec.function.sequence_fields],
        sequences=np.concatenate([chunk.sequences() for chunk in chunks]),
        keep=spec.function.keep,
    )
    return [*keys.split(mask)]


def _without_retractions(chunk: Chunk, survivors: Mask | None, spec: MergeSpec) -> Mask | None:
    """The rows to emit; None if they are all."""
    if spec.drop_retractions:
        retractions = chunk.retractions()
        if retractions is not None:
            survivors = ~retractions if survivors is None else survivors & ~retractions
    return None if survivors is None or survivors.all() else survivors


def _emit(chunk: Chunk, survivors: Mask | None, spec: MergeSpec) -> pa.RecordBatch:
    """The chunk's surviving rows: the chunk itself where all survive."""
    survivors = _without_retractions(chunk, survivors, spec)
    out = chunk.output(spec)
    return out if survivors is None else out.filter(pa.array(survivors))


def _emit_ordered(
    chunks: Sequence[Chunk], keys: WindowKeys, masks: Sequence[Mask | None], spec: MergeSpec
) -> Iterator[pa.RecordBatch]:
    """The surviving rows of all chunks, interleaved in key order."""
    surviving = np.ones(keys.row_count, dtype=np.bool_)
    for chunk, mask, part in zip(chunks, masks, keys.split(surviving), strict=True):
        survivors = _without_retractions(chunk, mask, spec)
        if survivors is not None:
            part[:] = survivors
    order = keys.in_order.order
    order = order[surviving[order]]
    parts = [chunk.output(spec) for chunk in chunks]
    if sum(part.nbytes for part in parts) > TOGETHER_BYTES:
        yield from _row_by_row(parts, keys.bounds, order)
    else:
        yield from _in_pieces(pa.Table.from_batches(parts).combine_chunks(), order, spec)


def _in_pieces(window: pa.Table, order: Places, spec: MergeSpec) -> Iterator[pa.RecordBatch]:
    """The rows of a window in another order, so many at a time that what is on its way out is bounded."""
    count = -(-window.nbytes // spec.batch_bytes)
    for part in np.array_split(order, min(max(count, 1), max(len(order), 1))):
        yield from take_rows(window, part).to_batches()


def _row_by_row(parts: Sequence[pa.RecordBatch], bounds: Sequence[int], order: Places) -> Iterator[pa.RecordBatch]:
    """The same where one row of each run is so large that Arrow cannot hold the rows as one: few rows, so a loop costs nothing."""
    of_part = np.searchsorted(bounds, order, side="right") - 1
    for row, part in zip(order.tolist(), of_part.tolist(), strict=True):
        yield parts[part].slice(row - bounds[part], 1)


def batch_of(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A batch, also of no columns but a number of rows."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def not_sorted() -> FormatError:
    """The error of a run whose keys do not ascend."""
    return FormatError(
        "a sorted run holds rows that are not in strictly ascending key order: merging it would give wrong rows; "
        "find the file with `tablestore verify` and rewrite it",
        kind="unsorted",
    )
