"""Aggregates the values of a column, per key: picks one of them, or calls the function that computes one.

    one of the values      last_value  last_non_null_value  first_value  first_non_null_value  min  max
    numbers, truth         sum  product  bool_and  bool_or                         see aggregatenumbers
    texts, lists, maps     listagg  collect  merge_map  nested_update              see aggregatelists
    sketches as bytes      rbm32  rbm64  theta_sketch  hll_sketch                  see aggregatesketches

Nulls are left out by all but first_value and last_value. Events that are older than one before them (in a sequence group) are
taken as if they had come first.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from tablestore.lsm.functions.aggregatelists import collect, join_texts, merge_map, nested_update
from tablestore.lsm.functions.aggregatenumbers import multiply, sum_up, truth
from tablestore.lsm.functions.aggregatesketches import unite
from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.lsm.functions.survivors import dense_ranks
from tablestore.lsm.functions.versions import Events, spread, take_or_null
from tablestore.types.arrays import Places

Pick = Callable[[pa.Array, Events], Places]
Compute = Callable[[ColumnFunction, pa.Array, Events, str], pa.Array]


def aggregate_column(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The combined value per key, null for keys without events. ``name`` is the column's, for messages."""
    if function.name in _PICKS:
        return take_or_null(column, events.row_of(_PICKS[function.name](column, events)))
    if function.name in _LISTS:
        return _LISTS[function.name](function, column, events, name)
    events = events.where(events.valid(column))
    if function.name == "product":
        # A retraction before any value has nothing to divide.
        first = events.first(events.adds)
        events = events.where((first[events.key] >= 0) & (np.arange(len(events.rows)) >= first[events.key]))
    if not len(events.rows):
        return pa.nulls(events.keys, column.type)
    return spread(_COMBINED[function.name](function, column.take(pa.array(events.rows)), events, name), events)


def _last_value(column: pa.Array, events: Events) -> Places:
    last = events.last(events.newer | ~events.adds)
    return _unless_retracted(last, events)


def _last_non_null_value(column: pa.Array, events: Events) -> Places:
    valid = events.valid(column)
    last = events.last(valid & (events.newer | ~events.adds))
    picked = _unless_retracted(last, events)
    if events.newer.all():
        return picked
    # An older value fills in where there is none.
    late = np.arange(len(events.rows)) > last[events.key]
    filling = events.first(valid & events.adds & ~events.newer & late)
    return np.where(picked >= 0, picked, filling)


def _first_value(column: pa.Array, events: Events) -> Places:
    older = events.last(~events.newer)
    return np.where(older >= 0, older, events.first(events.newer))


def _first_non_null_value(column: pa.Array, events: Events) -> Places:
    valid = events.valid(column)
    older = events.last(~events.newer & valid)
    return np.where(older >= 0, older, events.first(valid))


def _greatest(column: pa.Array, events: Events) -> Places:
    return _extreme(column, events, sign=1)


def _smallest(column: pa.Array, events: Events) -> Places:
    return _extreme(column, events, sign=-1)


def _extreme(column: pa.Array, events: Events, *, sign: int) -> Places:
    valid = events.valid(column)
    places = np.flatnonzero(valid)
    if not len(places):
        return np.full(events.keys, -1, dtype=np.int64)
    valid_events = events.where(valid)
    ranks = dense_ranks(column.take(pa.array(valid_events.rows)), descending=False) * sign
    starts = valid_events.starts()
    best = np.maximum.reduceat(ranks, starts)
    is_best = ranks == np.repeat(best, np.diff(np.append(starts, len(ranks))))
    first_places = valid_events.first(is_best)
    return np.where(first_places >= 0, places[first_places], -1)


def _unless_retracted(event: Places, events: Events) -> Places:
    if not len(events.rows):
        return event
    return np.where((event >= 0) & ~events.adds[event], -1, event)


_PICKS: Mapping[str, Pick] = {
    "last_value": _last_value,
    "last_non_null_value": _last_non_null_value,
    "first_value": _first_value,
    "first_non_null_value": _first_non_null_value,
    "max": _greatest,
    "min": _smallest,
}
# From a column and the events in it, a value per key.
_LISTS: Mapping[str, Compute] = {
    "listagg": join_texts,
    "collect": collect,
    "merge_map": merge_map,
    "nested_update": nested_update,
}
# From the values of some events, none of them null, a value per key that has such events.
_COMBINED: Mapping[str, Compute] = {
    "sum": sum_up,
    "product": multiply,
    "bool_and": truth,
    "bool_or": truth,
    "rbm32": unite,
    "rbm64": unite,
    "theta_sketch": unite,
    "hll_sketch": unite,
}
FUNCTIONS = (*_PICKS, *_COMBINED, *_LISTS)
