"""A table as a plain dict or list: what the engine has to agree with after every operation.

keyed    {primary key: row}                 of one key the last row counts, also within one call
append   [row, ...]                         a row is a dict of column name to value
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Condition = Callable[[Row], bool | None]


class ModelTable:
    """Rows and their history. Conditions follow SQL: None is unknown, and unknown rows are neither found nor deleted."""

    def __init__(self, *, key: Sequence[str], partition_by: Sequence[str]) -> None:
        self.key, self.partition_by = tuple(key), tuple(partition_by)
        self.rows: list[Row] = []
        self.history: dict[int, list[Row]] = {}

    def landed(self, snapshot_id: int) -> None:
        """Remember the rows as of a snapshot."""
        self.history[snapshot_id] = [dict(row) for row in self.rows]

    def write(self, rows: Iterable[Row]) -> None:
        """Append, or upsert if there is a key."""
        self.change(("+I", row) for row in rows)

    def change(self, changes: Iterable[tuple[str, Row]]) -> None:
        """Apply rows with their kinds, one after the other."""
        if not self.key:
            self.rows += [dict(row) for _, row in changes]
            return
        table = {self.key_of(row): row for row in self.rows}
        for kind, row in changes:
            table.pop(self.key_of(row), None)
            if kind in ("+I", "+U"):
                table[self.key_of(row)] = dict(row)
        self.rows = list(table.values())

    def delete_keys(self, keys: Iterable[Row]) -> None:
        """Delete the rows of these keys."""
        gone = {self.key_of(key) for key in keys}
        self.rows = [row for row in self.rows if self.key_of(row) not in gone]

    def delete_where(self, condition: Condition) -> None:
        """Delete the rows for which the condition is true."""
        self.rows = [row for row in self.rows if condition(row) is not True]

    def overwrite(self, rows: Sequence[Row], partition: Mapping[str, Any] | None) -> None:
        """Replace the given partitions; without them those that the rows fall into, or all of an unpartitioned table."""
        if partition is None and self.partition_by:
            touched = {self._partition_of(row) for row in rows}
            self.rows = [row for row in self.rows if self._partition_of(row) not in touched]
        else:
            wanted = partition or {}
            self.rows = [row for row in self.rows if any(row[name] != value for name, value in wanted.items())]
        self.write(rows)

    def find(self, condition: Condition | None, at: int | None = None) -> list[Row]:
        """The rows for which the condition is true, now or as of a snapshot."""
        rows = self.rows if at is None else self.history[at]
        return [row for row in rows if condition is None or condition(row) is True]

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """The primary key of a row."""
        return tuple(row[name] for name in self.key)

    def _partition_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.partition_by)
