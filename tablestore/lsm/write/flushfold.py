"""Folds the rows of a flush, where the engine computes rows (partial-update and aggregation).

    rows by (partition, bucket, key, version)  ->  layers: tables with one row per key, the older layer first

One layer, but for functions that keep retractions apart: there a retraction is a row of its own, and so are the additions
between two of them.

    versions of a key    +I  +I  -D  +I             layer 0: the two +I folded    layer 1: -D    layer 2: +I
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.merge.fold import fold_versions
from tablestore.lsm.sorting import SortedOrder
from tablestore.types.arrays import Kinds, Mask, Places, begins, retracts
from tablestore.types.rowkind import RowKind

# A layer is a run of level 0 in each bucket that has such keys: many would be as many small files.
MAX_LAYERS = 64


@dataclass(frozen=True, slots=True)
class FlushLayer:
    """Rows of one run per bucket: ``counts[g]`` rows of group g, one after the other, in key order."""

    rows: pa.Table
    kinds: Kinds | None
    counts: list[int]


def fold_layers(
    function: MergeFunction, rows: pa.Table, kinds: Kinds | None, sorted_order: SortedOrder, counts: list[int]
) -> Iterator[FlushLayer]:
    """Fold the rows of a buffer; ``sorted_order`` has them by group, key and version, ``counts`` are the rows per group.

    Raises InvalidInputError if a key is added and retracted more often than there may be layers.
    """
    order = sorted_order.order
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = ~sorted_order.repeats
    group = np.repeat(np.arange(len(counts)), counts)
    layer = np.zeros(len(order), dtype=np.int64)
    if kinds is not None and function.keeps_retractions_apart:
        layer = _layers(retracts(kinds[order]), first)
    for number in range(int(layer.max(initial=0)) + 1):
        chosen = layer == number
        places, key_starts = order[chosen], begins(np.cumsum(first)[chosen])
        layer_counts = np.bincount(group[chosen][key_starts], minlength=len(counts)).tolist()
        yield _folded(function, rows, kinds, places, key_starts, layer_counts)


def _folded(
    function: MergeFunction,
    rows: pa.Table,
    kinds: Kinds | None,
    places: Places,
    key_starts: Mask,
    counts: list[int],
) -> FlushLayer:
    starts = np.flatnonzero(key_starts)
    several = np.diff(np.append(starts, len(places))) > 1
    row_of_key = places[starts]
    kinds_of_key = None if kinds is None else kinds[row_of_key]
    if not several.any():
        return FlushLayer(_rows_at(rows, None, row_of_key), kinds_of_key, counts)
    key = np.cumsum(key_starts) - 1
    chosen = several[key]
    versions = places[chosen]
    number = np.cumsum(several)[key[chosen]] - 1
    folded = fold_versions(
        function,
        {name: pa.concat_arrays(rows.column(name).chunks) for name in rows.schema.names},
        rows.schema.names,
        rows=versions,
        key=number,
        kinds=np.zeros(len(versions), dtype=np.int8) if kinds is None else kinds[versions],
        last_fold=False,
    )
    row_of_key[several] = rows.num_rows + np.arange(len(folded.kinds))
    if kinds_of_key is None:
        kinds_of_key = np.zeros(len(starts), dtype=np.int8)
    kinds_of_key[several] = folded.kinds
    return FlushLayer(_rows_at(rows, folded.columns, row_of_key), kinds_of_key if kinds_of_key.any() else None, counts)


def _rows_at(rows: pa.Table, folded: dict[str, pa.Array] | None, places: Places) -> pa.Table:
    """The rows at ``places``; beyond the last row the folded ones go on. Column by column: only one is copied twice at a time."""
    indices = pa.array(places)
    columns = []
    for field in rows.schema:
        column = rows.column(field.name)
        if folded is not None:
            column = pa.concat_arrays([*column.chunks, folded[field.name]])
        columns.append(column.take(indices))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _layers(retract: Mask, first: Mask) -> Places:
    """The layer of each version: a retraction begins one, and what follows it another."""
    begins = first | retract
    begins[1:] |= retract[:-1]
    number = np.cumsum(begins)
    layer: Places = number - np.maximum.accumulate(np.where(first, number, 0))
    highest = int(layer.max(initial=0))
    if highest >= MAX_LAYERS:
        raise InvalidInputError(
            f"a key is added and retracted {highest + 1} times in one flush, at most {MAX_LAYERS} can be told apart: commit "
            "more often, or set fields.<column>.ignore-retract where a column cannot take values back exactly",
            kind="retraction",
        )
    return layer


def prepared(function: MergeFunction, rows: pa.Table, kinds: Kinds) -> tuple[pa.Table, Kinds]:
    """Rows as they go into our files: with ``+U`` as ``+I`` where ``+U`` has a meaning of its own, and with nulls in the columns of
    a ``-D`` that do not count (other engines begin a later row with its values)."""
    if not function.marks_replacements:
        return rows, kinds
    kinds = np.where(kinds == RowKind.UPDATE_AFTER, np.int8(RowKind.INSERT), kinds)
    deletes = kinds == RowKind.DELETE
    if deletes.any():
        places = pa.array(np.where(deletes, -1, np.arange(len(kinds))), mask=deletes)
        for place, field in enumerate(rows.schema):
            if field.nullable and field.name not in function.columns_of_deletes:
                rows = rows.set_column(place, field, rows.column(field.name).take(places))
    return rows, kinds
