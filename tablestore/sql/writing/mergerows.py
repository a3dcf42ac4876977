"""Writes a MERGE as one query for its changed rows, in which conditions and values are the user's text.

It looks at rows of target and source together, and numbers the clause that is for each. A target row that two source rows match
gives two rows of one key or place; whoever writes them refuses that.

The source is a query of its own. Where the condition says that columns of both are equal, and rows without a source do not count,
the other rows of the target need not be looked at. Where these columns are the whole primary key, each row of the source has one
row of the target at most: for an engine that looks it up there is the same query over pairs, instead of a join.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import BEFORE, POSITIONS, ROW_KIND, RowQuery, TargetTable
from tablestore.sql.query.sparktypes import cast_text
from tablestore.sql.source import Fragment
from tablestore.sql.statements.rows import Match, Merge, MergeAction, MergeClause
from tablestore.sql.writing.columntext import old_row, qualified
from tablestore.sql.writing.columnvalues import (
    Assigned,
    AssignedValues,
    GivenTypes,
    Value,
    cast_value,
    column_values,
    leaves,
    values_query,
)
from tablestore.sql.writing.mergesides import MergeSides, merge_sides
from tablestore.sql.writing.mergetext import looks_around
from tablestore.sql.writing.mergeupsert import is_by_key, upsert_query
from tablestore.types.datatypes import Field, RowType

# Calls, casts, places and arithmetic; a subquery stands in parentheses.
_COMPUTES = re.compile(r"[(\[/%+*-]|::|\bDIV\b", re.IGNORECASE)
_KINDS = {MergeAction.INSERT: "+I", MergeAction.UPDATE: "+U", MergeAction.DELETE: "-D"}


def merge_query(statement: str, merge: Merge, target: TargetTable, types: GivenTypes | None = None) -> RowQuery:
    """The changed rows of a MERGE. ``types``: those of its values, where they are known."""
    rows = _MergeText(statement, merge, target, types or {})
    return rows.upsert() or replace(rows.joined(), paired=rows.paired())


def merged_values(statement: str, merge: Merge, target: TargetTable) -> AssignedValues | None:
    """The values that a MERGE assigns, as each clause sees them; None if there are none but defaults."""
    return _MergeText(statement, merge, target, {}).assigned()


class _MergeText:
    def __init__(self, statement: str, merge: Merge, target: TargetTable, types: GivenTypes) -> None:
        self._statement, self._types = statement, types
        self._merge, self._target = merge, target
        self._sides = merge_sides(statement, merge, target)
        self._values = [_clause_values(statement, clause, self._sides) for clause in merge.clauses]
        # DuckDB takes no alias of an expression with a subquery, or with one that may raise an error: such a choice is written out
        # wherever it is looked at.
        nested = any(_COMPUTES.search(clause.condition.text) for clause in merge.clauses if clause.condition is not None)
        self._clause = quote_name(target.fresh("_tablestore_clause", statement))
        self._number: list[str | Fragment] = ["(", *self._choice(), ")"] if nested else [self._clause]

    def upsert(self) -> RowQuery | None:
        """The rows of the source alone; None where the target has a say in them."""
        return upsert_query(self._statement, self._sides, self._values, self._types)

    def joined(self) -> RowQuery:
        """The rows of a join of both."""
        return self._rows(self._sides.joined())

    def paired(self) -> RowQuery | None:
        """The rows of pairs; None where a source row may have several rows of the target, or a target row none of the source."""
        keys = {key.casefold() for key in self._target.keys}
        equal = {mine for mine, _ in self._sides.equal.pairs}
        by_key = bool(keys) and keys <= equal and Match.NOT_MATCHED_BY_SOURCE not in self._sides.matches
        return self._rows(self._sides.paired()) if by_key and not any(map(looks_around, self._fragments())) else None

    def assigned(self) -> AssignedValues | None:
        """The values of all clauses, as each clause sees them."""
        assigned_values: list[tuple[Assigned, Sequence[str | Fragment]]] = []
        for number, (clause, values) in enumerate(zip(self._merge.clauses, self._values, strict=True)):
            for leaf, value in leaves(values, self._target.fields, (number, ())):
                # The columns of a star have no place of their own.
                placed = leaf if isinstance(value, Fragment) else replace(leaf, span=self._merge.target.span)
                assigned_values.append((placed, self._sides.seen_from(clause.match, [value])))
        tables = [self._sides.source_table()] if self._sides.only_source else self._sides.joined()
        return values_query(RowText(self._statement, self._sides.paths), assigned_values, tables)

    def _fragments(self) -> Iterator[Fragment]:
        """The user's fragments: conditions and values."""
        yield self._merge.on
        yield from (clause.condition for clause in self._merge.clauses if clause.condition is not None)
        for values in self._values:
            yield from (value for _, value in leaves(values, self._target.fields, (0, ())) if isinstance(value, Fragment))

    def _rows(self, tables: Sequence[str | Fragment]) -> RowQuery:
        """The rows of these tables, which show target and source under their names."""
        target, clauses, sides = self._target, self._merge.clauses, self._sides
        actions = {clause.action for clause in clauses}
        names = [] if target.positions and actions == {MergeAction.DELETE} else [field.name for field in target.fields]
        names = [ROW_KIND, *names, *(POSITIONS if target.positions else ()), *([BEFORE] if target.before else [])]
        text = RowText(self._statement, sides.paths)
        text.add(f"SELECT {', '.join(map(quote_name, names))} FROM (SELECT ")
        text.add(*self._choice(), f" AS {self._clause}, CASE ", *self._number)
        for number, clause in enumerate(clauses):
            text.add(f" WHEN {number} THEN '{_KINDS[clause.action]}'")
        text.add(f" END AS {quote_name(ROW_KIND)}")
        for field in target.fields:
            if field.name in names:
                text.add(", ", *self._column(field))
        if target.positions:
            for name, kind in POSITIONS.items():
                text.add(f", {self._old(name, kind)} AS {quote_name(name)}")
        if target.before:
            text.add(", ", *self._before())
        text.add(" FROM ", *tables)
        text.add(f") AS {quote_name('_tablestore_rows')} WHERE {quote_name(ROW_KIND)} IS NOT NULL")
        updates = [values for clause, values in zip(clauses, self._values, strict=True) if clause.action is MergeAction.UPDATE]
        sets = {name for values in updates for name in values}
        return RowQuery(
            text=text.text,
            pieces=text.pieces,
            sets=tuple(field.name for field in target.fields if field.name in sets),
            inserts=MergeAction.INSERT in actions,
            deletes=MergeAction.DELETE in actions,
            source=sides.source_query(self._statement),
            equal=() if Match.NOT_MATCHED_BY_SOURCE in sides.matches else tuple(sorted(sides.equal.pairs)),
            new_keys=bool(target.keys) and all(self._finds_key(n) for n, c in enumerate(clauses) if c.action is MergeAction.INSERT),
        )

    def _finds_key(self, clause: int) -> bool:
        return is_by_key(self._sides, self._values[clause], self._types, clause)

    def _choice(self) -> list[str | Fragment]:
        """The number of the clause that is for a row."""
        parts: list[str | Fragment] = ["CASE"]
        for number, clause in enumerate(self._merge.clauses):
            parts.append(f" WHEN {self._sides.test(clause.match)}")
            if clause.condition is not None:
                parts += [" AND (", *self._sides.seen_from(clause.match, [clause.condition]), ")"]
            parts.append(f" THEN {number}")
        return [*parts, " END"]

    def _column(self, field: Field) -> list[str | Fragment]:
        """The value of a column after the MERGE."""
        old = cast_text("NULL", field.type) if self._sides.only_source else qualified(self._sides.alias, field.name)
        name = f" AS {quote_name(field.name)}"
        numbers = [number for number, values in enumerate(self._values) if field.name in values]
        if not numbers:
            return [old, name]
        parts: list[str | Fragment] = ["CASE ", *self._number]
        for number in numbers:
            value = cast_value(self._values[number][field.name], old, field, self._types, (number, (field.name,)))
            parts += [f" WHEN {number} THEN ", *self._sides.seen_from(self._merge.clauses[number].match, value)]
        # Where every clause sets it, the old value is of no use, and need not be read.
        otherwise = "" if len(numbers) == len(self._values) else f" ELSE {old}"
        return [*parts, f"{otherwise} END", name]

    def _before(self) -> list[str | Fragment]:
        """The old row of an update."""
        name = f" AS {quote_name(BEFORE)}"
        updates = [str(n) for n, clause in enumerate(self._merge.clauses) if clause.action is MergeAction.UPDATE]
        if not updates:
            before = tuple(field for field in self._target.fields if field.name in self._target.before)
            return [cast_text("NULL", RowType(fields=before)), name]
        old = old_row(self._sides.alias, self._target)
        return ["CASE WHEN ", *self._number, f" IN ({', '.join(updates)}) THEN {old} END", name]

    def _old(self, name: str, kind: str) -> str:
        """A value of the target's row; there is none where only rows of the source are looked at."""
        return f"CAST(NULL AS {kind})" if self._sides.only_source else qualified(self._sides.alias, name)


def _clause_values(statement: str, clause: MergeClause, sides: MergeSides) -> Mapping[str, Value]:
    """The values that a clause gives to the columns. Raises InvalidInputError for an unknown column."""
    target = sides.target
    if clause.action is MergeAction.DELETE:
        return {}
    if clause.assignments is None:
        values: dict[str, Value] = {field.name: qualified(sides.source, field.name) for field in target.fields}
    else:
        values = column_values(statement, clause.assignments, target, (sides.alias, sides.merge.target))
    if clause.action is MergeAction.INSERT:
        return {name: value for name, value in values.items() if value is not None}
    # A key that is set to what the condition says it equals stays as it is.
    return {name: value for name, value in values.items() if not (name in target.keys and sides.is_equal(name, value))}
