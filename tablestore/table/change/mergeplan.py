"""Plans a merge: which columns have to be equal, what else has to hold, and what each clause does.

Everything is checked against the types of table and source before a row is read. Where all rows of the source are written whatever
the table holds (all columns to rows that match by the whole key, and to rows that do not), the plan says so: ``is_upsert``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.table.change.assigning import Assignments, no_rows
from tablestore.table.change.mergestatement import Action, Match, MergeClause, MergeStatement
from tablestore.table.write.rowchange import ChangeColumns, RowChange
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.expression.coercion import together
from tablestore.types.expression.evaluate import holds
from tablestore.types.expression.expression import Call, Column, Expression, columns_of
from tablestore.types.expression.sqlexpression import ColumnOf, column_finder, parse_expression_text
from tablestore.types.filter.predicate import Predicate

TARGET, SOURCE = "target", "source"
_SHORT = {"t": TARGET, "s": SOURCE}
# Types of which equal values are equal bytes, in SQL and in keys of the table.
KEY_TYPES = frozenset({pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.string()})
_PLAIN_ROOTS = INTEGER_ROOTS | {TypeRoot.DATE, TypeRoot.VARCHAR}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClause:
    """A clause: ``sets`` are the columns that it gives values, none of a DELETE."""

    match: Match
    action: Action
    condition: Expression | None
    sets: Assignments

    def columns(self) -> frozenset[Column]:
        """The columns that it looks at."""
        return self.sets.columns() | (frozenset() if self.condition is None else columns_of(self.condition))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """The plan of a merge. ``equal``: columns of the table with the columns of the source that have to equal them, in this
    type. ``rest``: what else has to hold."""

    equal: tuple[tuple[str, str, pa.DataType], ...]
    rest: tuple[Expression, ...]
    clauses: tuple[PlannedClause, ...]
    fields: Mapping[str, Field]
    keys: tuple[str, ...]

    def of(self, match: Match) -> list[PlannedClause]:
        """The clauses for some rows, in order."""
        return [clause for clause in self.clauses if clause.match == match]

    def change(self, reads: Predicate | None) -> RowChange:
        """The change of the table's rows that the merge makes."""
        sets = {name for clause in self.clauses if clause.action == "UPDATE" for name in clause.sets.expressions}
        actions = {clause.action for clause in self.clauses}
        return RowChange(
            operation="MERGE",
            inserts="INSERT" in actions,
            deletes="DELETE" in actions,
            sets=tuple(name for name in self.fields if name in sets),
            reads=reads,
            new_keys=self._finds_keys(),
        )

    def needed(self, context: TableContext) -> tuple[str, ...]:
        """The columns of the table that have to be read."""
        whole = any(clause.action == "DELETE" for clause in self.clauses)
        names = set(ChangeColumns.of(context).before)
        names |= {column.name for column in self._looked_at() if column.table == TARGET} | {name for name, _, _ in self.equal}
        for clause in self.clauses:
            if clause.action == "UPDATE":
                names |= set(self.fields) - set(clause.sets.expressions)
        return tuple(name for name in self.fields if whole or name in names or name in self.keys)

    def _looked_at(self) -> Iterator[Column]:
        for clause in self.clauses:
            yield from clause.columns()
        for condition in self.rest:
            yield from columns_of(condition)

    def equalities(self) -> Iterator[Expression]:
        """The equalities as conditions."""
        return (Call("=", (Column(name, TARGET), Column(source, SOURCE))) for name, source, _ in self.equal)

    def key_of_source(self) -> dict[str, str] | None:
        """The column of the source, by column of the primary key, that equals it, as bytes too; None if not all have one."""
        source_columns: dict[str, str] = {}
        for name, source, common in self.equal:
            kind = self.fields[name].type
            # Equal values of other types, and of numbers beside decimals or floats, may be other bytes.
            same = common in KEY_TYPES
            if name in self.keys and same and isinstance(kind, AtomicType) and kind.root in _PLAIN_ROOTS:
                source_columns.setdefault(name, source)
        return source_columns if self.keys and set(source_columns) == set(self.keys) else None

    def _finds_keys(self) -> bool:
        """True if rows are looked for by their key, and those without a match are inserted with the key that was looked for."""
        key = self.key_of_source()
        if key is None or self.rest or len(self.equal) != len(self.keys):
            return False
        inserts = [clause.sets.expressions for clause in self.clauses if clause.action == "INSERT"]
        return all(sets.get(name) == Column(source, SOURCE) for sets in inserts for name, source in key.items())

    def is_upsert(self, context: TableContext) -> bool:
        """True if all rows of the source are written, whatever the table holds."""
        key = self.key_of_source()
        plain = [clause for clause in self.clauses if clause.condition is None]
        kinds = sorted((clause.match, clause.action) for clause in plain)
        if kinds != [("MATCHED", "UPDATE"), ("NOT MATCHED", "INSERT")] or len(plain) != len(self.clauses):
            return False
        # In new rows a NULL becomes the default, in others it does not.
        has_defaults = any(field.default_value is not None for field in self.fields.values())
        if key is None or self.rest or len(self.equal) != len(self.keys) or has_defaults:
            return False
        if not context.settings.is_plain or context.changelog_settings.producer == INPUT:
            return False
        (inserted,) = self.of("NOT MATCHED")
        (updated,) = self.of("MATCHED")
        for name in self.fields:
            value = inserted.sets.expressions.get(name)
            if not isinstance(value, Column) or (name in key and value.name != key[name]):
                return False
            if name not in key and updated.sets.expressions.get(name) != value:
                return False
        return True


def plan_merge(merge: MergeStatement) -> MergePlan:
    """Read and check a merge. Raises InvalidInputError, UnsupportedError."""
    schema = merge.context.schema
    fields = {field.name: field for field in schema.fields}
    names = {TARGET: schema.field_names, SOURCE: tuple(merge.source.column_names)}
    if len(set(names[SOURCE])) < len(names[SOURCE]):
        raise InvalidInputError(f"the rows of the merge have two columns of one name: {', '.join(names[SOURCE])}", kind="columns")
    types = {TARGET: schema.arrow_schema, SOURCE: merge.source.schema}

    def type_of(column: Column) -> pa.DataType:
        kind = types[column.table].field(column.name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def checked(text: str, column_of: ColumnOf) -> Expression:
        condition = parse_expression_text(text, column_of, what="condition")
        holds(condition, no_rows(type_of))
        return condition

    both = _finder(names)
    equal, other_conditions = [], []
    for part in _conditions(merge, fields, names, lambda text: checked(text, both)):
        pair = _equal_pair(part)
        if pair is None:
            other_conditions.append(part)
        else:
            kind = together([pa.nulls(0, type_of(column)) for column in pair])[0].type
            if pa.types.is_nested(kind):
                raise UnsupportedError(
                    f"the merge is by {pair[0].name!r}, which is {kind}; name columns of numbers, texts or moments, or use SQL's "
                    "MERGE: tablestore.TableEnvironment",
                    kind="merge-condition",
                )
            equal.append((pair[0].name, pair[1].name, kind))
    if not equal:
        raise UnsupportedError(
            f"the merge condition {merge.on!r:.200} has no column of the table that equals one of the source "
            "(target.id = source.id); for other conditions use SQL's MERGE: tablestore.TableEnvironment",
            kind="merge-condition",
        )
    keyed = {(name, source) for name, source, _ in equal if name in schema.primary_keys}
    clauses = []
    for clause in merge.clauses:
        seen = {TARGET, SOURCE} if clause.match == "MATCHED" else {SOURCE} if clause.match == "NOT MATCHED" else {TARGET}
        column_of = _finder({table: columns for table, columns in names.items() if table in seen})
        condition = None if clause.predicate is None else checked(clause.predicate, column_of)
        sets = _sets(clause, fields, names[SOURCE], column_of, type_of)
        if clause.action == "UPDATE":
            # A key that is set to what the condition says it equals stays as it is.
            left = {
                name: value
                for name, value in sets.expressions.items()
                if not (isinstance(value, Column) and value.table == SOURCE and (name, value.name) in keyed)
            }
            sets = Assignments(left)
        clauses.append(PlannedClause(match=clause.match, action=clause.action, condition=condition, sets=sets))
    return MergePlan(
        equal=tuple(equal), rest=tuple(other_conditions), clauses=tuple(clauses), fields=fields, keys=tuple(schema.primary_keys)
    )


def _finder(names: Mapping[str, Sequence[str]]) -> ColumnOf:
    find = column_finder(names, "merge")
    return lambda table, name: find(_SHORT.get(table.casefold(), table), name)


def _conditions(
    merge: MergeStatement, fields: Mapping[str, Field], names: Mapping[str, Sequence[str]], read: Callable[[str], Expression]
) -> Iterator[Expression]:
    """The conditions that have to hold for two rows to match, part by part."""
    on = merge.on
    pairs: Mapping[str, str]
    if isinstance(on, str):
        if on not in fields:
            yield from _conjuncts(read(on))
            return
        pairs = {on: on}
    else:
        pairs = on if isinstance(on, Mapping) else {name: name for name in on}
    for target, source in pairs.items():
        for table, name in ((TARGET, target), (SOURCE, source)):
            if name not in names[table]:
                whose = "the table does" if table == TARGET else "the rows do"
                raise InvalidInputError(
                    f"the merge is by {name!r:.80}, which {whose} not have{did_you_mean(str(name), names[table])} "
                    f"(columns: {', '.join(names[table])})",
                    kind="unknown-column",
                )
        yield Call("=", (Column(target, TARGET), Column(source, SOURCE)))


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    match condition:
        case Call("AND", parts):
            for part in parts:
                yield from _conjuncts(part)
        case _:
            yield condition


def _equal_pair(condition: Expression) -> tuple[Column, Column] | None:
    """The column of the table and that of the source that a condition says to be equal."""
    match condition:
        case Call("=", (Column() as left, Column() as right)) if left.table != right.table:
            return (left, right) if left.table == TARGET else (right, left)
        case _:
            return None


def _sets(
    clause: MergeClause, fields: Mapping[str, Field], source: Sequence[str], column_of: ColumnOf, type_of: Any
) -> Assignments:
    if clause.action == "DELETE":
        return Assignments({})
    if clause.values is not None:
        return Assignments.parse(clause.values, fields, column_of, type_of)
    folded = {name.casefold(): name for name in source}
    if missing := [name for name in fields if name not in source and name.casefold() not in folded]:
        raise InvalidInputError(
            f"the rows of the merge lack the columns {', '.join(missing)}, and all columns are to be set; name those that are: "
            f"when_{'matched_update' if clause.action == 'UPDATE' else 'not_matched_insert'}({{…}})",
            kind="missing-column",
        )
    all_columns = Assignments({name: Column(name if name in source else folded[name.casefold()], SOURCE) for name in fields})
    nothing = no_rows(type_of)
    for field in fields.values():
        all_columns.values(field, nothing)
    return all_columns
