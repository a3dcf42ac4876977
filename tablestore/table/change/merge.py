"""Builds a MERGE from Python: clauses for rows of a table that rows of a source match, and for those that match nothing.

    table.merge(rows, on="id")
        .when_matched_delete(predicate="source.gone")
        .when_matched_update({"price": "source.price + target.price"})
        .when_not_matched_insert_all()
        .execute()

Of the clauses for a row the first one counts whose condition is true, in the order in which they were given. A statement is a
value: each clause makes another one, and nothing is read before ``execute``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext
from tablestore.table.change.mergestatement import Action, Match, MergeClause, MergeStatement, On
from tablestore.table.write.inputrows import Rows, schema_and_tables
from tablestore.telemetry.tracing import traced
from tablestore.types.arrowtypes import fields_from_arrow, says_no_type
from tablestore.types.conform import conform


class Merge(MergeStatement):
    """A merge of rows into a table. Made by ``table.merge(rows, on=…)``.

    Conditions and values are SQL text as those of ``table.update``; in them the columns of the table are ``target.price`` (or
    ``t.price``), those of the rows ``source.price`` (or ``s.price``), and a name that only one of them has needs neither.
    """

    __slots__ = ()

    def when_matched_update(self, set: Mapping[str, Any], *, predicate: str | None = None) -> "Merge":
        """Set columns of a row of the table that a row of the source matches."""
        return self._with("MATCHED", "UPDATE", set, predicate)

    def when_matched_update_all(self, *, predicate: str | None = None) -> "Merge":
        """Give a row of the table all columns of the row of the source that matches it."""
        return self._with("MATCHED", "UPDATE", None, predicate)

    def when_matched_delete(self, *, predicate: str | None = None) -> "Merge":
        """Delete a row of the table that a row of the source matches."""
        return self._with("MATCHED", "DELETE", None, predicate)

    def when_not_matched_insert(self, values: Mapping[str, Any], *, predicate: str | None = None) -> "Merge":
        """Insert a row for a row of the source that matches none; columns that are not named get their default, or NULL."""
        return self._with("NOT MATCHED", "INSERT", values, predicate)

    def when_not_matched_insert_all(self, *, predicate: str | None = None) -> "Merge":
        """Insert a row of the source that matches none, with all its columns."""
        return self._with("NOT MATCHED", "INSERT", None, predicate)

    def when_not_matched_by_source_update(self, set: Mapping[str, Any], *, predicate: str | None = None) -> "Merge":
        """Set columns of a row of the table that no row of the source matches."""
        return self._with("NOT MATCHED BY SOURCE", "UPDATE", set, predicate)

    def when_not_matched_by_source_delete(self, *, predicate: str | None = None) -> "Merge":
        """Delete a row of the table that no row of the source matches."""
        return self._with("NOT MATCHED BY SOURCE", "DELETE", None, predicate)

    def execute(self) -> Snapshot | None:
        """Merge, as one snapshot; None if no row changed.

        Memory: the rows of the source, and a batch of the table. Raises InvalidInputError (of kind ``second-match`` where two rows
        of the source change one row of the table), UnsupportedError, ConflictError when others change rows faster than it can
        plan; nothing has changed then.
        """
        from tablestore.table.change.merging import run_merge

        if not self.clauses:
            raise InvalidInputError(
                "expected a clause of the merge, found none; for example merge(rows, on=…).when_matched_update_all().execute()",
                kind="merge-clause",
            )
        with traced(self.context.shared.observers.tracer, "merge", self.context.files.root_uri):
            return run_merge(self)

    def _with(self, match: Match, action: Action, values: Mapping[str, Any] | None, predicate: str | None) -> "Merge":
        if any(clause.match == match and clause.predicate is None for clause in self.clauses):
            raise InvalidInputError(
                f"a clause WHEN {match} without a predicate stands before this one, which no row reaches; give that one a "
                "predicate, or put it last",
                kind="merge-clause",
            )
        clause = MergeClause(match=match, action=action, values=values, predicate=predicate)
        return replace(self, clauses=(*self.clauses, clause))

    def __repr__(self) -> str:
        clauses = "".join(f", WHEN {clause.match} THEN {clause.action}" for clause in self.clauses)
        return f"Merge({self.context.files.root_uri}, {self.source.num_rows} rows, on={self.on!r}{clauses})"


def merge_into(context: TableContext, log: ChangeLog, source: Rows, on: On) -> Merge:
    """A merge without clauses. The rows of the source are held in memory, in the types that a table would have for them."""
    schema, tables = schema_and_tables(source, lambda: context.schema.arrow_schema)
    rows = pa.concat_tables([schema.empty_table(), *tables])
    # NULLs and empty lists have no type that a table would know.
    typed = [field.name for field in rows.schema if not says_no_type(field.type)]
    if len(set(rows.column_names)) == rows.num_columns and typed:
        typed_rows = rows.select(typed)
        fields, _ = fields_from_arrow(typed_rows.schema, where="the rows of a merge")
        for name, column in zip(typed, conform(typed_rows, fields, where="a merge").columns, strict=True):
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return Merge(context=context, log=log, source=rows, on=on)
