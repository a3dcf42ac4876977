"""Compares rows to be written with the constraints of their table.

Rows that add are compared (``+I``, ``+U``), as they are written: cast to the columns' types, with defaults, and with the stored
values of columns that they lack.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.store.context import TableContext
from tablestore.store.scan.violations import constraints_of
from tablestore.store.tableconstraints import telling_columns
from tablestore.types.arrays import Kinds, Places, retracts
from tablestore.types.filter.constraints import CONSTRAINT, Constraint, shown_values, violations, violations_of_each
from tablestore.types.typestring import sql_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RowConstraints:
    """The constraints of one table. ``telling``: the columns by which a message names a row."""

    table: str
    telling: tuple[str, ...]
    constraints: tuple[Constraint, ...]

    @classmethod
    def of(cls, context: TableContext) -> "RowConstraints":
        """Those of an open table. Raises InvalidInputError, UnsupportedError."""
        return context.once(_of_table)

    def check(self, rows: pa.Table, kinds: Kinds | None = None, *, lacking: Collection[str] = (), first: int | None = None) -> None:
        """Raise InvalidInputError of kind ``constraint`` if a row violates one. ``kinds`` None: all rows add. ``lacking``: columns
        that are filled in later; constraints that look at them wait for that. ``first``: the number of the first row among those of
        the caller."""
        places, added = _added(rows, kinds)
        if not added.num_rows:
            return
        for constraint in self.constraints:
            if not set(lacking).isdisjoint(constraint.columns):
                continue
            try:
                violating = np.flatnonzero(violations(constraint, added))
            except InvalidInputError as error:
                raise InvalidInputError(f"table {self.table}: {error.message}", kind=CONSTRAINT) from error
            if len(violating):
                raise self._violated(constraint, added, int(violating[0]), len(violating), places, first)

    def reasons(self, rows: pa.Table, kinds: Kinds | None = None) -> dict[int, str]:
        """The reasons by the place of each row that must not be written."""
        places, added = _added(rows, kinds)
        reasons: dict[int, str] = {}
        for constraint in self.constraints:
            for place, reason in violations_of_each(constraint, added).items():
                reasons.setdefault(place if places is None else int(places[place]), reason)
        return reasons

    def _violated(
        self,
        constraint: Constraint,
        rows: pa.Table,
        place: int,
        count: int,
        places: Places | None,
        first: int | None,
    ) -> InvalidInputError:
        number = place if places is None else int(places[place])
        counted = "the row" if first is None else f"row {first + number} (the first is 0)"
        telling = f" with {shown_values(rows, place, self.telling)}" if self.telling else ""
        others = "" if count == 1 else f"; so do {count - 1} more of the {rows.num_rows} rows that came with it"
        return InvalidInputError(
            f"table {self.table}: {counted}{telling} violates the {constraint}: "
            f"{shown_values(rows, place, constraint.columns)}{others}. Correct such rows or leave them out, or drop the constraint "
            f"(ALTER TABLE … DROP CONSTRAINT {sql_name(constraint.name)})",
            kind=CONSTRAINT,
        )


def _added(rows: pa.Table, kinds: Kinds | None) -> tuple[Places | None, pa.Table]:
    """The rows that add, and their places; None: all in their places."""
    if kinds is None or not (gone := retracts(np.asarray(kinds))).any():
        return None, rows
    places = np.flatnonzero(~gone)
    return places, rows.take(pa.array(places))


def _of_table(context: TableContext) -> RowConstraints:
    return RowConstraints(
        table=context.files.root_uri, telling=telling_columns(context.schema), constraints=constraints_of(context)
    )
