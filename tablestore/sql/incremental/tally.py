"""Adds up new values of groups without a query, where the changes and the groups of the target are few.

For some thousand rows an engine's time goes into the query, not into its rows. Here are counts, and sums of whole numbers, of plain
columns of one source, as :mod:`tablestore.sql.incremental.groupstate` has them in SQL. Whatever is not sure is left to that: a
number that may grow past 64 bits, a value that does not follow from the old one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.lsm.functions.valuecodes import row_codes
from tablestore.sql.incremental.shapes import WEIGHT
from tablestore.types.arrays import Places, first_of_group, last_of_group
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, DataType, TypeRoot

MOST_ROWS = 100_000
"""The most changes, and groups in the target: with more of them an engine is faster."""
THERE = "tablestore_there"
"""The column that says whether the target has a group. No column of a query has this name."""

_KEY_ROOTS = INTEGER_ROOTS | {TypeRoot.BOOLEAN, TypeRoot.DATE, TypeRoot.DECIMAL, TypeRoot.VARCHAR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The columns that are added up, by the names of the query's columns.

    ``keys``: the source's column of each. ``counts``: that whose values are counted; None: all rows, which one of them counts.
    ``sums``: that whose values are added up, and whether none of them is NULL.
    """

    keys: Mapping[str, str]
    counts: Mapping[str, str | None]
    sums: Mapping[str, tuple[str, bool]]

    def of(self, changes: pa.Table, target: pa.Table) -> pa.Table | None:
        """The groups that changed: their keys (``key_0`` …), old and new values (``old_n``, ``new_n`` …), whether the target has
        them (:data:`THERE`), how many rows are left of them (``left_over``), and whether nothing changed (``same``).

        ``changes``: rows with weights. ``target``: the groups before, all of them. None: not known here.
        """
        changes = changes.rename_columns([name.lower() for name in changes.column_names])
        if len(set(changes.column_names)) < changes.num_columns:
            return None
        keys = [(changes.column(column), target.column(name)) for name, column in self.keys.items()]
        if any(one.type != other.type for one, other in keys) or not self._is_small(changes):
            return None
        codes = row_codes([pa.chunked_array([*one.chunks, *other.chunks], one.type) for one, other in keys])
        group, before = codes[: changes.num_rows], codes[changes.num_rows :]
        count = int(codes.max(initial=-1)) + 1
        first = first_of_group(group, count, np.ones(len(group), dtype=np.bool_))
        chosen = np.flatnonzero(first >= 0)
        places = last_of_group(before, count, np.ones(len(before), dtype=np.bool_))[chosen]
        old = target.take(pa.array(places, mask=places < 0)).rename_columns([f"old_{name}" for name in target.column_names])

        def total(numbers: Places) -> pa.Array:
            sums = np.zeros(count, dtype=np.int64)
            np.add.at(sums, group, numbers)
            return pa.array(sums[chosen])

        added = {name: total(numbers) for name, numbers in self._numbers(changes).items()}
        for n, (key, _) in enumerate(keys):
            old = old.append_column(f"key_{n}", key.take(pa.array(first[chosen])))
        try:
            return self._judged(old, added)
        except pa.ArrowInvalid:  # Past the end of a type. The engine says so.
            return None

    def _is_small(self, changes: pa.Table) -> bool:
        """True if no sum of these rows can pass 62 bits."""
        ends = [pc.min_max(changes.column(column)).as_py() for column, _ in self.sums.values()]
        most = max((abs(end or 0) for both in ends for end in both.values()), default=0)
        return bool(most * changes.num_rows < 2**62)

    def _numbers(self, changes: pa.Table) -> dict[str, Places]:
        """The amounts that each change adds to its group: ``rows``, values that are there (``more_x``), and their sum
        (``delta_x``)."""
        weight = changes.column(WEIGHT).to_numpy().astype(np.int64)
        numbers = {"rows": weight}
        for column in (*self.counts.values(), *(column for column, required in self.sums.values() if not required)):
            if column is not None:
                numbers[f"more_{column}"] = np.where(pc.is_valid(changes.column(column)).to_numpy(), weight, 0)
        for column, _ in self.sums.values():
            numbers[f"delta_{column}"] = pc.fill_null(changes.column(column).cast(pa.int64()), 0).to_numpy() * weight
        return numbers

    def _judged(self, groups: pa.Table, added: Mapping[str, pa.Array]) -> pa.Table | None:
        old = {name: groups.column(f"old_{name}") for name in (*self.counts, *self.sums)}
        new: dict[str, pa.ChunkedArray] = {}
        for name, column in self.counts.items():
            new[name] = _sum(old[name], added["rows" if column is None else f"more_{column}"])
        by_column = {column: new[name] for name, column in self.counts.items()}
        left, in_target = by_column[None], pc.is_valid(old[next(name for name, column in self.counts.items() if column is None)])
        if pc.any(pc.less(left, 0)).as_py():
            return None
        for name, (column, required) in self.sums.items():
            new[name] = _sum(old[name], added[f"delta_{column}"])
            if required:
                continue
            more, counted = added[f"more_{column}"], by_column.get(column)
            if counted is None and pc.any(pc.less(more, 0)).as_py():
                return None
            nothing = pc.and_(pc.is_null(old[name]), pc.equal(more, 0)) if counted is None else pc.equal(counted, 0)
            new[name] = pc.if_else(nothing, pa.scalar(None, new[name].type), new[name])
        same = pc.and_(in_target, pc.greater(left, 0))
        for name, value in new.items():
            same = pc.and_(same, _is_same(old[name], value))
            groups = groups.append_column(f"new_{name}", value)
        return groups.append_column(THERE, in_target).append_column("left_over", left).append_column("same", same)


def is_plain_key(data_type: DataType | None) -> bool:
    """True if values of a type are one group in SQL exactly if they are the same bytes."""
    return isinstance(data_type, AtomicType) and data_type.root in _KEY_ROOTS


def _sum(old: pa.ChunkedArray, added: pa.Array) -> pa.ChunkedArray:
    """The old values (0 for none) plus what came, in the type of the old ones. Raises ArrowInvalid past the end of that type."""
    return pc.add_checked(pc.fill_null(old, 0), added).cast(old.type)


def _is_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(pc.is_null(one), pc.is_null(other)))
