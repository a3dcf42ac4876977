"""Aggregate functions listagg, collect, merge_map and nested_update: many values per key become one text, list or map.

Lists are taken apart into *items*, each with its key and place; what stays is decided for all items at once (same value of the
same key: a number, see valuecodes), and what is left is put together again.

    ["a"] ["b","a"] -["a"]     items a b a -a      collect, each retraction takes the oldest equal item: b a
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.lsm.functions.valuecodes import Codes, combined_codes, value_codes
from tablestore.lsm.functions.versions import Events
from tablestore.types.arrays import Mask, Places, begins, first_of_group, last_of_group


def join_texts(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """listagg: the texts that are not empty, with the delimiter between them; ``distinct`` leaves out parts that were there."""
    texts = column.fill_null("") if column.null_count else column
    filled = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    has_text = events.first(events.valid(column)) >= 0
    events = _in_order(events.where(filled[events.rows]))
    parts, key = texts.take(pa.array(events.rows)), events.key
    if function.distinct:
        parts, key = _distinct_parts(parts, events, function.delimiter)
    counts = np.bincount(key, minlength=events.keys)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), parts), function.delimiter)
    # Empty texts alone make an empty text.
    return joined if has_text.all() else pc.if_else(pa.array(has_text), joined, pa.scalar(None, column.type))


def collect(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The elements of all lists, in order; ``distinct`` keeps one of each."""
    items = _items(column, events)
    same = _same_value(items, value_codes(column.values)[items.place])
    if function.distinct:
        mask = _first_alive(items, same)
    elif items.adds.all():
        mask = np.ones(len(items.place), dtype=np.bool_)
    else:
        mask = _not_taken_back(items, same)
    return _lists(column, items, np.flatnonzero(mask), _has_list(column, events), events.keys)


def merge_map(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The entries of all maps; of equal keys the last."""
    items = _items(column, events)
    same = _same_value(items, value_codes(column.keys)[items.place])
    return _lists(column, items, _last_entries(items, same), _has_list(column, events), events.keys)


def nested_update(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The rows of all lists: with a nested key the last of each, without it all, a retraction takes away all equal rows."""
    if not function.nested_key:
        events = _in_order(events)
    items = _items(column, events)
    values = column.values
    present = values.is_valid().to_numpy(zero_copy_only=False)[items.place]
    items = items.where(present)
    if function.nested_key:
        fields = [pc.struct_field(values, field) for field in function.nested_key]
        codes = combined_codes([value_codes(field) for field in fields], len(values))
        same = _same_value(items, codes[items.place])
        places = _last_entries(items, same)
    else:
        same = _same_value(items, value_codes(values)[items.place])
        places = np.flatnonzero(_alive(items, same))
    if function.count_limit is not None:
        key = items.key[places]
        first = np.searchsorted(key, key)
        places = places[np.arange(len(key)) - first < function.count_limit]
    return _lists(column, items, places, _has_list(column, events), events.keys)


@dataclass(frozen=True, slots=True)
class _Items:
    """Items of lists: ``place`` is where an item lies in the column's child, ``key`` its key's number (ascending)."""

    place: Places
    key: Places
    adds: Mask
    newer: Mask

    def where(self, mask: Mask) -> "_Items":
        return self if mask.all() else _Items(self.place[mask], self.key[mask], self.adds[mask], self.newer[mask])


def _items(column: pa.Array, events: Events) -> _Items:
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.where(events.valid(column), offsets[1:][events.rows] - offsets[:-1][events.rows], 0)
    event = np.repeat(np.arange(len(events.rows)), lengths)
    before = np.cumsum(lengths) - lengths
    place = np.arange(len(event)) + (offsets[:-1][events.rows] - before)[event]
    return _Items(place, events.key[event], events.adds[event], events.newer[event])


def _same_value(items: _Items, codes: Codes) -> Codes:
    """A number per item, equal for equal values of one key."""
    return combined_codes([items.key, codes], len(codes))


def _alive(items: _Items, same: Codes) -> Mask:
    """The mask of the items that were added since their value was last taken back."""
    last_removal = last_of_group(same, _count(same), ~items.adds)
    alive: Mask = items.adds & (np.arange(len(same)) > last_removal[same])
    return alive


def _first_alive(items: _Items, same: Codes) -> Mask:
    """The first item of each value since it was last taken back; none if nothing was added since."""
    first = first_of_group(same, _count(same), _alive(items, same))
    mask: Mask = items.adds & (first[same] == np.arange(len(same)))
    return mask


def _not_taken_back(items: _Items, same: Codes) -> Mask:
    """The items that are left if each retraction takes the oldest equal item there is, or nothing."""
    if not len(same):
        return np.zeros(0, dtype=np.bool_)
    order = np.argsort(same, kind="stable")
    sorted_same = same[order]
    step = np.where(items.adds[order], 1, -1)
    starts = np.flatnonzero(begins(sorted_same))
    counts = np.diff(np.append(starts, len(order)))
    total = np.cumsum(step)
    level = total - np.repeat(total[starts] - step[starts], counts)
    lowest = np.minimum.reduceat(level, starts)
    left = level[starts + counts - 1] - np.minimum(lowest, 0)
    # The last ``left`` additions of each value stay: count additions from the end.
    added = (step > 0).astype(np.int64)
    running = np.cumsum(added)
    before_next = np.repeat(running[starts + counts - 1], counts)
    from_end = before_next - running
    mask = np.zeros(len(order), dtype=np.bool_)
    mask[order] = (step > 0) & (from_end < np.repeat(left, counts))
    return mask


def _last_entries(items: _Items, same: Codes) -> Places:
    """Per value the entry that counts: the last, or where all are older than others the first; none if it was taken back.
    In the order in which the values first came."""
    alive, count = _alive(items, same), _count(same)
    newest = last_of_group(same, count, alive & items.newer)
    oldest = first_of_group(same, count, alive & ~items.newer)
    chosen = np.where(newest >= 0, newest, oldest)
    first = first_of_group(same, count, alive)
    present = first >= 0
    return chosen[present][np.argsort(first[present], kind="stable")]


def _count(codes: Codes) -> int:
    return int(codes.max(initial=-1)) + 1


def _has_list(column: pa.Array, events: Events) -> Mask:
    """Keys whose result is a list, maybe an empty one: a list was added at some time."""
    out: Mask = events.first(events.adds & events.valid(column)) >= 0
    return out


def _lists(column: pa.Array, items: _Items, chosen: Places, valid: Mask, keys: int) -> pa.Array:
    """Lists or maps of the kept items (their keys ascending)."""
    # Items that were taken back before anything was added do not make a list.
    counts = np.bincount(items.key[chosen], minlength=keys)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    places = pa.array(items.place[chosen])
    mask = None if valid.all() else pa.array(~valid)
    if pa.types.is_map(column.type):
        keys_array, values = column.keys.take(places), column.items.take(places)
        return pa.MapArray.from_arrays(pa.array(offsets), keys_array, values, type=column.type, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets), column.values.take(places), type=column.type, mask=mask)


def _in_order(events: Events) -> Events:
    """Events that are older than others before them go in front, the latest first: the order in which they are put together."""
    if events.newer.all():
        return events
    place = np.arange(len(events.rows))
    order = np.lexsort([np.where(events.newer, place, -place - 1), events.key])
    return Events(events.rows[order], events.key[order], events.keys, events.adds[order], np.ones(len(order), dtype=np.bool_))


def _distinct_parts(texts: pa.Array, events: Events, delimiter: str) -> tuple[pa.Array, Places]:
    """The first text of each key as it is; of the others the parts that were not there before. With their keys."""
    lists = pc.split_pattern(texts, delimiter) if delimiter else pa.ListArray.from_arrays(np.arange(len(texts) + 1), texts)
    event = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    parts = pc.list_flatten(lists)
    key = events.key[event]
    opening = np.zeros(len(texts), dtype=np.bool_)
    opening[events.starts()] = True
    same = combined_codes([key, value_codes(parts)], len(parts))
    first = first_of_group(same, _count(same), np.ones(len(same), dtype=np.bool_))
    filled = pc.not_equal(parts, "").to_numpy(zero_copy_only=False)
    mask = opening[event] | (filled & (first[same] == np.arange(len(same))))
    return parts.filter(pa.array(mask)), key[mask]
