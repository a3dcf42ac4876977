"""Decides what a retraction (``-U``, ``-D``) has to hold for a table to take the row back. Pure.

    deduplicate                   the key; with sequence.field an order too: its own, or that of the stored row
                                  (:mod:`~tablestore.lsm.write.removalorder`)
    …remove-record-on-delete      the same for -D, all that is taken back for -U
    other engines that compute    all that is taken back: a key alone takes back nothing, and is refused
    changelog-producer = input    the whole row, where there is one: it is the changelog
    ignore-delete                 nothing, it is skipped

What cannot be taken back is an error of the writer, and a fault of the record that says so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.lsm.write.removalorder import lacks_order, updates_in_place
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.types.arrays import Kinds, Mask, retracts
from tablestore.types.arrowtypes import zero_of
from tablestore.types.rowkind import RowKind

RETRACTIONS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractionNeeds:
    """The values that a table asks of the rows that it takes back.

    ``whole``: updates come with the whole row before. ``values``: the kinds of which values are taken back, so that a key alone
    does nothing. ``ordering``: the columns that order deletes. ``refused``: by kind why it is not taken at all.
    """

    whole: bool = False
    values: frozenset[RowKind] = frozenset()
    ordering: tuple[str, ...] = ()
    refused: Mapping[RowKind, str] = field(default_factory=dict)


def retraction_needs(context: TableContext) -> RetractionNeeds:
    """The needs of an open table."""
    merge = context.settings.merge
    is_changelog = context.changelog_settings.producer == INPUT
    if merge is None:
        return RetractionNeeds(whole=is_changelog)
    values = frozenset(kind for kind in RETRACTIONS if merge.retracted_columns(kind))
    refused = {
        kind: why for kind in RETRACTIONS if (why := _refusal(partial(merge.check_retractions, np.array([kind], dtype=np.int8))))
    }
    return RetractionNeeds(
        # Where a -U is refused, the update is: its row alone would not replace what is stored.
        whole=is_changelog or RowKind.UPDATE_BEFORE in values or RowKind.UPDATE_BEFORE in refused,
        values=values,
        ordering=tuple(order_field.name for order_field in merge.sequence_fields) if merge.orders_removals else (),
        refused=refused,
    )


def without_order(context: TableContext, rows: pa.Table, kinds: Kinds) -> tuple[pa.Table, Mask | None]:
    """The rows, with something in place of orders that are NOT NULL, and the mask of the retractions that take the order of
    the row that they remove, None if none does."""
    merge = context.settings.merge
    if merge is None or not merge.orders_removals:
        return rows, None
    takes_back = retracts(kinds)
    if not takes_back.any() or not (orderless := takes_back & lacks_order(rows, merge.sequence_fields)).any():
        return rows, None
    for order_field in merge.sequence_fields:
        place, stored = rows.schema.get_field_index(order_field.name), context.schema.arrow_schema.field(order_field.name)
        if place >= 0 and not stored.nullable:
            column = rows.column(place)
            rows = rows.set_column(
                place, order_field.name, pc.if_else(pa.array(orderless), zero_of(stored.type).cast(column.type), column)
            )
    if merge.computes:
        orderless &= kinds == RowKind.DELETE
    elif set(context.schema.primary_keys) <= set(rows.schema.names):
        orderless &= ~updates_in_place(rows.select(context.schema.primary_keys), kinds)
    return rows, orderless if orderless.any() else None


def _refusal(check: Callable[[], None]) -> str | None:
    try:
        check()
    except InvalidInputError as error:
        return str(error)
    return None
