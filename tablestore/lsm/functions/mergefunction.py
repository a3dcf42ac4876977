"""Merge functions: the rules by which the rows of one key combine.

A merge function is named by the table's option ``merge-engine``; ``mergeoptions`` reads it from a table's schema.

    deduplicate      the last row wins, whatever its kind           the row is kept as it is
    first-row        the first row wins
    partial-update   the last value of each column, nulls aside     the row is computed, see ``fold``
    aggregation      a function per column

``ignore-delete`` takes retractions (``-U``, ``-D``) out before anything is combined. ``sequence.field`` puts the values of
columns before the order of arrival: nulls are the smallest, also when the order is descending. A key with one row is never
computed: the row stays what it is, a retraction included.

Folding in steps (at a flush, in a compaction, when reading) gives what folding at once gives. Three things need care:

* A ``-D`` that removes the row and is followed by additions: the fold has to remember that it starts anew. It is a row of kind
  ``+U``, in our own files only: there ``+U`` says "replaces what is older", elsewhere it says the same as ``+I``.
* Retractions that take back what lies in older runs, under a function whose column cannot hold "take x back"
  (``keeps_retractions_apart``): a flush writes them into runs of their own, and only a fold that reaches the oldest run may
  combine them.
* Versions that arrive in another order than they count in (``sequence.field``, sequence groups). A fold of x = 1 at sequence 1 and
  x = null at sequence 3 is a row x = 1 of sequence 3, which then hides x = 2 of sequence 2. Such versions are folded all at once
  (``folds_at_once``): only what lies together in the order, or all that there is of their keys. A flush folds what it is given:
  rows that were never apart for any reader.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tablestore.errors import InvalidInputError
from tablestore.types.rowkind import RowKind

Keep = Literal["last", "first"]

# The effect of a retraction under a function: the column can hold it (a sum of -5), it cannot, or it is an error.
_EXACT_RETRACTIONS = frozenset({"sum", "last_value"})
# The order of the values does not matter to the result.
_ORDER_FREE = frozenset({"sum", "product", "min", "max", "bool_and", "bool_or", "rbm32", "rbm64", "theta_sketch", "hll_sketch"})
_RETRACTIONS = frozenset({"product", "collect", "merge_map", "nested_update", "last_non_null_value"}) | _EXACT_RETRACTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceField:
    """A column of ``sequence.field``. With ``descending`` the smaller value wins; nulls lose either way."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFunction:
    """The aggregate function of one column. ``delimiter`` is for listagg, ``distinct`` for listagg and collect,
    ``nested_key`` and ``count_limit`` for nested_update."""

    name: str
    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    count_limit: int | None = None

    @property
    def takes_retractions(self) -> bool:
        """False if a retraction is an error."""
        return self.ignore_retract or self.name in _RETRACTIONS

    @property
    def holds_retractions(self) -> bool:
        """True if a value of the column can stand for retracted values that are not there yet."""
        return self.ignore_retract or self.name in _EXACT_RETRACTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Columns of a partial-update table that are taken together, nulls included, from the row whose ``fields`` are the
    greatest. ``removes``: a ``-D`` that is the greatest removes the row."""

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    removes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeFunction:
    """The merge function of a table, as its options say. ``keep`` is for the engines that keep a row; the rest is for those that
    compute one.

    ``functions``: by column, those that have one. ``not_null``: columns that must not become null.
    """

    engine: str = "deduplicate"
    keep: Keep = "last"
    ignore_delete: bool = False
    sequence_fields: tuple[SequenceField, ...] = ()
    key_columns: frozenset[str] = frozenset()
    not_null: frozenset[str] = frozenset()
    functions: tuple[tuple[str, ColumnFunction], ...] = ()
    groups: tuple[SequenceGroup, ...] = ()
    remove_on_delete: bool = False

    @property
    def computes(self) -> bool:
        """True if rows are computed from several versions; else one of them is kept."""
        return self.engine in ("partial-update", "aggregation")

    @property
    def marks_replacements(self) -> bool:
        """True if ``+U`` in our own files says that older rows do not count."""
        return self.remove_on_delete or any(group.removes for group in self.groups)

    @property
    def keeps_retractions_apart(self) -> bool:
        """True if a retraction may only be folded together with all older rows of its key."""
        if not self.computes or self.ignore_delete:
            return False
        if self.engine == "partial-update" and not self.groups:
            return False
        return not all(function.holds_retractions for _, function in self.functions)

    @property
    def folds_at_once(self) -> bool:
        """True if all versions of a key must be folded together: some of them first, and the others later, may give another row."""
        if any(group.removes for group in self.groups):
            return True
        if any(function.name not in _ORDER_FREE and self._order_may_turn(column, function) for column, function in self.functions):
            return True
        if any(self._place_may_change(field.name) for field in self.sequence_fields):
            return True
        return bool(self.sequence_fields) and (self.engine == "partial-update" or self.marks_replacements)

    def _place_may_change(self, sequence_field: str) -> bool:
        """True if rows folded into one may get another sequence than that of the winner: later folds go by it."""
        function = self.function_of(sequence_field)
        if function is None or function.name == "last_non_null_value":
            return False  # `_order_may_turn` has seen to it.
        # A retraction leaves null where the last value was.
        return function.name != "last_value" or not (self.ignore_delete or function.ignore_retract)

    def _order_may_turn(self, column: str, function: ColumnFunction) -> bool:
        """True if a value that counts between two others may meet them when they are one already."""
        if self.group_of(column) is not None:
            return True
        # The row that wins brings its own value along, unless that may be null and another's is taken.
        follows_the_row = function.name == "last_value" or (function.name == "last_non_null_value" and column in self.not_null)
        return bool(self.sequence_fields) and not follows_the_row

    @property
    def skipped_kinds(self) -> tuple[int, ...]:
        """Kinds of rows that are left out before anything is combined."""
        if self.ignore_delete:
            return (RowKind.UPDATE_BEFORE, RowKind.DELETE)
        # A -U says nothing there: the +U that follows sets what it has, and only -D removes.
        return (RowKind.UPDATE_BEFORE,) if self.engine == "partial-update" and self.remove_on_delete else ()

    @property
    def columns_of_deletes(self) -> frozenset[str]:
        """Columns whose value in a ``-D`` that may remove its row counts."""
        columns = self.key_columns | {field.name for field in self.sequence_fields}
        if not self.remove_on_delete:
            # Within groups a -D that is too old to remove the row still takes back what functions have combined.
            columns |= {name for name, _ in self.functions} | {name for group in self.groups for name in group.fields}
        return columns

    @property
    def orders_removals(self) -> bool:
        """True if a ``-D`` removes its row only where ``sequence.field`` does not place it before that row."""
        return bool(self.sequence_fields) and not self.ignore_delete and (self.engine == "deduplicate" or self.remove_on_delete)

    def retracted_columns(self, kind: RowKind) -> frozenset[str]:
        """Columns beside the key that a retraction of this kind has to hold, since their values are taken back. None where rows
        replace each other: which row goes the key says, and ``sequence.field`` in which order, which can be looked up."""
        if not self.computes or kind in self.skipped_kinds or (kind is RowKind.DELETE and self.remove_on_delete):
            return frozenset()
        columns = {field.name for field in self.sequence_fields} | {name for group in self.groups for name in group.fields}
        return frozenset(columns | {name for name, function in self.functions if not function.ignore_retract}) - self.key_columns

    def function_of(self, column: str) -> ColumnFunction | None:
        """The function of a column, None if it has none."""
        return dict(self.functions).get(column)

    def group_of(self, column: str) -> SequenceGroup | None:
        """The sequence group that a column belongs to, as member or as sequence field."""
        return next((group for group in self.groups if column in group.fields or column in group.columns), None)

    def required_columns(self, columns: Iterable[str]) -> frozenset[str]:
        """The columns that must be read besides the key to give ``columns``, these included."""
        names = frozenset(columns)
        needed = set(names) | {field.name for field in self.sequence_fields}
        for group in self.groups:
            if group.removes or not names.isdisjoint((*group.fields, *group.columns)):
                needed.update(group.fields)
        return frozenset(needed)

    def check_retractions(self, kinds: npt.NDArray[np.int8], columns: Iterable[str] | None = None) -> None:
        """Raise InvalidInputError if there are retractions among ``kinds`` that have no meaning for ``columns`` (default: all)."""
        retract = np.isin(kinds, (RowKind.UPDATE_BEFORE,) if self.remove_on_delete else (RowKind.UPDATE_BEFORE, RowKind.DELETE))
        if self.ignore_delete or not retract.any():
            return
        if self.engine == "first-row":
            raise InvalidInputError(
                "merge-engine first-row takes no retractions (-U, -D); set ignore-delete to skip them", kind="retraction"
            )
        if self.engine == "partial-update" and self.remove_on_delete:
            return
        if self.engine == "partial-update" and not self.groups:
            raise InvalidInputError(
                "merge-engine partial-update takes no retractions (-U, -D) here: set ignore-delete to skip them, "
                "partial-update.remove-record-on-delete to let -D remove the row, or put columns into sequence groups "
                "(fields.<sequence column>.sequence-group) to take them back one by one",
                kind="retraction",
            )
        names = None if columns is None else frozenset(columns)
        for column, function in self.functions:
            if (names is None or column in names) and not function.takes_retractions:
                raise InvalidInputError(
                    f"the aggregate function {function.name} of column {column!r} cannot take a value back, and there is a "
                    f"retraction (-U or -D): set fields.{column}.ignore-retract to leave the column as it is, "
                    "ignore-delete to skip retractions"
                    + (", or aggregation.remove-record-on-delete to let -D remove the row" if self.engine == "aggregation" else ""),
                    kind="retraction",
                )

    def check_removal(self, where: str, *, by_key: bool) -> None:
        """Raise InvalidInputError unless a ``-D`` removes its row: one with the row's values, or with the key only."""
        if self.ignore_delete:
            why = "it skips them (ignore-delete)"
        elif self.engine == "first-row":
            why = "merge-engine first-row keeps the first row of a key for ever"
        elif self.engine == "aggregation" and not self.remove_on_delete:
            why = (
                "a -D takes its values back and leaves the row (merge-engine aggregation): set "
                "aggregation.remove-record-on-delete, or write what is to be taken back with table.write_changes(rows)"
            )
        elif self.engine == "partial-update" and not self.marks_replacements:
            why = (
                "merge-engine partial-update lets a -D remove its row only with partial-update.remove-record-on-delete or "
                "partial-update.remove-record-on-sequence-group; set one of them"
            )
        elif by_key and self.groups and not self.remove_on_delete:
            ordering = ", ".join(name for group in self.groups if group.removes for name in group.fields)
            why = (
                f"a key alone does not say how new the delete is, rows are ordered by {ordering}: delete by a condition "
                'such as table.delete("id = 7"), or write rows of kind -D that hold these columns with table.write_changes(rows)'
            )
        else:
            return
        raise InvalidInputError(f"{where} does not delete rows this way: {why}", kind="delete")
