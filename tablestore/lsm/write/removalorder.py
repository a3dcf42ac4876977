"""Gives retractions that hold no order the order of the row that they remove (``sequence.field``).

    stored   +I 5 | written   -D ?   +I 7   -D ?        becomes        -D 5   +I 7   -D 7

A key alone does not say how new a delete is, and with NULL, the smallest order, it would lose against every row. It removes the row
that is there when it is written: that of the greatest order among the stored row and what was written before it. Of equal orders
the later row wins, so the delete does. Pure, whole columns at a time.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.lsm.functions.mergefunction import SequenceField
from tablestore.lsm.functions.survivors import dense_ranks
from tablestore.types.arrays import Kinds, Mask, Places, one_chunk
from tablestore.types.rowkind import RowKind


def lacks_order(rows: pa.Table, fields: Sequence[SequenceField]) -> Mask:
    """The mask of the rows that hold NULL in all columns that order them, or lack these columns."""
    lacks: Mask = np.ones(rows.num_rows, dtype=np.bool_)
    for field in fields:
        if field.name in rows.schema.names:
            lacks &= pc.is_null(rows.column(field.name)).to_numpy()
    return lacks


def updates_in_place(keys: pa.Table, kinds: Kinds) -> Mask:
    """The mask of the ``-U`` whose ``+U`` of the same key is the next row: that takes its place, and no row goes."""
    before: Mask = np.zeros(len(kinds), dtype=np.bool_)
    places = np.flatnonzero((kinds[:-1] == RowKind.UPDATE_BEFORE) & (kinds[1:] == RowKind.UPDATE_AFTER))
    if len(places):
        same: Mask = np.ones(len(places), dtype=np.bool_)
        for column in keys.columns:
            one, other = (one_chunk(column).take(pa.array(places + step)) for step in (0, 1))
            same &= pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)
        before[places[same]] = True
    return before


def with_orders(
    rows: pa.Table,
    fields: Sequence[SequenceField],
    *,
    versions: Places,
    key: Places,
    lacks: Mask,
    stored: pa.Table,
    stored_of_key: Places,
) -> pa.Table:
    """``rows`` with the columns ``fields`` filled in retractions that lack them.

    ``versions`` are places in ``rows`` by ``key`` (0, 1, … without gaps) and arrival, ``lacks`` says which of them lack an order.
    ``stored`` has the columns of stored rows, ``stored_of_key`` the place of each key's row there, -1 without one.
    """
    stored_keys = np.flatnonzero(stored_of_key >= 0)
    keys = np.concatenate([stored_keys, key])
    # The stored row is the first version of its key.
    turn = np.argsort(keys, kind="stable")
    keys = keys[turn]
    places = np.concatenate([rows.num_rows + stored_of_key[stored_keys], versions])[turn]
    empty = np.concatenate([np.zeros(len(stored_keys), dtype=np.bool_), lacks])[turn]
    columns = {
        field.name: pa.concat_arrays([one_chunk(rows.column(field.name)), one_chunk(stored.column(field.name))]) for field in fields
    }
    rank: Places = np.zeros(len(places), dtype=np.int64)
    for field in fields:
        ranks = dense_ranks(columns[field.name].take(pa.array(places)), field.descending)
        # A column that is NOT NULL holds something there, which means nothing.
        ranks[empty] = 0
        _, rank = np.unique(rank * (int(ranks.max()) + 1) + ranks, return_inverse=True)
    # Keys ascend, so the running maximum over all versions is one within each key.
    height = keys * (int(rank.max()) + 1) + rank
    greatest = np.maximum.accumulate(np.where(height == np.maximum.accumulate(height), np.arange(len(height)), 0))
    source = np.arange(rows.num_rows)
    source[places[empty]] = places[greatest[empty]]
    for field in fields:
        position = rows.schema.get_field_index(field.name)
        rows = rows.set_column(position, rows.schema.field(position), columns[field.name].take(pa.array(source)))
    return rows
