"""Folds the versions of each key into one row, for the engines that compute rows (partial-update and aggregation).

    versions of all keys, by key and version order
      -> a -D that removes the row: it and what follows it count (its own values are the start of the row)
      -> per column: the place of the row whose value is taken, or a computed value
      -> kind: -D if nothing was added after it; +U if something was and older rows no longer count; else +I
     (retractions only, none of which removes the row: -U where a -D would remove it, else -D)

Columns without a function are taken by place, so nothing of them is moved but the result. Only columns that are asked for
are looked at. A fold of retractions only is a retraction (aggregation: a row of what is taken back, as in Paimon).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.lsm.functions.aggregate import aggregate_column
from tablestore.lsm.functions.mergefunction import MergeFunction, SequenceGroup
from tablestore.lsm.functions.survivors import dense_ranks
from tablestore.lsm.functions.versions import Events, take_or_null
from tablestore.types.arrays import Kinds, Mask, Places, begins, retracts
from tablestore.types.rowkind import RowKind


@dataclass(frozen=True, slots=True)
class Folded:
    """One row per key: the columns that were asked for, and the row's kind."""

    columns: dict[str, pa.Array]
    kinds: Kinds


@dataclass(frozen=True, slots=True)
class _Turns:
    """The events of one sequence group that take part, and those of them that are not older than one before."""

    takes_part: Mask
    newer: Mask


def fold_versions(
    function: MergeFunction,
    columns: Mapping[str, pa.Array],
    output: Sequence[str],
    *,
    rows: Places,
    key: Places,
    kinds: Kinds,
    last_fold: bool,
) -> Folded:
    """Fold the versions of keys: ``rows`` are their places in ``columns``, by ``key`` (0, 1, … without gaps) and version order;
    ``kinds`` their kinds, where ``+U`` means "replaces what is older".

    ``last_fold``: there are no older versions, so no kind has to refer to them. Raises InvalidInputError for
    retractions that the function does not take, and for sums that leave their type.
    """
    keys = int(key[-1]) + 1 if len(key) else 0
    adds = ~retracts(kinds)
    if not adds.all():
        function.check_retractions(kinds, output)
    events = Events(rows, key, keys, adds, np.ones(len(rows), dtype=np.bool_))
    starts_anew, turns = _resets(function, columns, events, kinds)
    replaced = np.zeros(keys, dtype=np.bool_)
    started = np.zeros(len(rows), dtype=np.bool_)
    if starts_anew.any():
        last = events.last(starts_anew)
        replaced = last >= 0
        mask = np.arange(len(rows)) >= last[key]
        started = starts_anew & ~adds
        events, started = events.where(mask), started[mask]
        turns = {group: _Turns(turn.takes_part[mask], turn.newer[mask]) for group, turn in turns.items()}
    added = events.last(events.adds) >= 0
    # In an aggregation several retractions make a row of what they take back; only a -D that removes the row ends it.
    removed = ~added & (replaced | (function.engine != "aggregation"))
    out_kinds = np.full(keys, RowKind.INSERT, dtype=np.int8)
    if not last_fold and function.marks_replacements:
        out_kinds[replaced] = RowKind.UPDATE_AFTER
    out_kinds[removed] = RowKind.DELETE
    if function.marks_replacements:
        # Retractions none of which removes the row: together they must not either.
        out_kinds[removed & ~replaced] = RowKind.UPDATE_BEFORE
    # The -D that a row starts with counts as its first value.
    events = Events(events.rows, events.key, keys, events.adds | started, events.newer)
    fold = _ColumnFold(function, columns, events, turns, started=started, only_retractions=removed & ~replaced)
    return Folded({name: fold.column(name) for name in output}, out_kinds)


@dataclass(frozen=True, slots=True)
class _ColumnFold:
    function: MergeFunction
    columns: Mapping[str, pa.Array]
    events: Events
    turns: Mapping[SequenceGroup, _Turns]
    started: Mask
    only_retractions: Mask

    def column(self, name: str) -> pa.Array:
        column = self.columns[name]
        if name in self.function.key_columns:
            return column.take(pa.array(self._last_rows()))
        group = self.function.group_of(name)
        function = self.function.function_of(name)
        if group is not None and (function is None or name in group.fields):
            out = self._from_newest(column, self.turns[group], nulls=name not in group.fields)
        elif function is None:
            events = self.events
            places = events.last(events.adds & events.valid(column))
            out = take_or_null(column, events.row_of(places))
        else:
            events = self.events
            if function.name == "first_value" and self.started.any():
                # An empty start is no value.
                events = events.where(~self.started | events.valid(column))
            elif group is not None:
                turn = self.turns[group]
                taken_back = self.only_retractions[events.key]
                events = Events(events.rows, events.key, events.keys, events.adds | taken_back, turn.newer)
                events = events.where(turn.takes_part)
            if function.ignore_retract:
                events = events.where(events.adds)
            out = aggregate_column(function, column, events, name)
        if name in self.function.not_null and out.null_count:
            out = _fill(out, column.take(pa.array(self._last_rows())))
        return out

    def _last_rows(self) -> Places:
        return self.events.row_of(self.events.last(np.ones(len(self.events.rows), dtype=np.bool_)))

    def _from_newest(self, column: pa.Array, turn: _Turns, *, nulls: bool) -> pa.Array:
        """The value in the newest event of the group; with ``nulls`` null if that is a retraction."""
        newest = self.events.last(turn.takes_part & turn.newer)
        if nulls:
            newest = np.where((newest >= 0) & ~self.events.adds[newest], -1, newest)
        return take_or_null(column, self.events.row_of(newest))


def _resets(
    function: MergeFunction, columns: Mapping[str, pa.Array], events: Events, kinds: Kinds
) -> tuple[Mask, dict[SequenceGroup, _Turns]]:
    """The mask of the events that start the row anew, and the turns of the sequence groups whose columns are there."""
    may_start: Mask = np.zeros(len(kinds), dtype=np.bool_)
    if function.marks_replacements:
        may_start = np.isin(kinds, (RowKind.DELETE, RowKind.UPDATE_AFTER))
    starts_anew = may_start.copy() if function.remove_on_delete else np.zeros(len(kinds), dtype=np.bool_)
    groups = [group for group in function.groups if all(field in columns for field in group.fields)]
    ranks = {group: _group_ranks(columns, group, events) for group in groups}
    while True:
        epoch: Places = np.cumsum(begins(events.key) | starts_anew, dtype=np.int64)
        turns = {group: _turns(ranks[group], epoch) for group in groups}
        removing = np.zeros(len(kinds), dtype=np.bool_)
        for group in groups:
            if group.removes:
                removing |= turns[group].takes_part & turns[group].newer & may_start
        # An event that starts the row anew lets later ones pass that were below what was before it: look again until none is found.
        if not (removing & ~starts_anew).any():
            return starts_anew, turns
        starts_anew |= removing


def _group_ranks(columns: Mapping[str, pa.Array], group: SequenceGroup, events: Events) -> Places:
    """The events by the group's fields: greater is newer, 0 if all fields are null (the event takes no part)."""
    combined: Places | None = None
    empty = np.ones(len(events.rows), dtype=np.bool_)
    for field in group.fields:
        ranks = dense_ranks(columns[field].take(pa.array(events.rows)), descending=False)
        empty &= ranks == 0
        if combined is None:
            combined = ranks
        else:
            _, combined = np.unique(combined * (int(ranks.max(initial=0)) + 1) + ranks, return_inverse=True)
    assert combined is not None, "a sequence group has a field"
    return np.where(empty, 0, combined + 1)


def _turns(ranks: Places, epoch: Places) -> _Turns:
    # Epochs ascend, so the running maximum over all events is one within each epoch.
    height = epoch * (int(ranks.max(initial=0)) + 1) + ranks
    return _Turns(ranks > 0, height >= np.maximum.accumulate(height))


def _fill(column: pa.Array, other: pa.Array) -> pa.Array:
    """The column with its nulls taken from another."""
    missing = column.is_null().to_numpy(zero_copy_only=False)
    places = np.where(missing, np.arange(len(column)) + len(column), np.arange(len(column)))
    return pa.concat_arrays([column, other]).take(pa.array(places))
