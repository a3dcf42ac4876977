"""Which rows does a DELETE, UPDATE or MERGE write? As one query, in which conditions and values are the user's text.

Its rows are changes of the target: ``_row_kind`` (``+I``, ``+U`` with the new row, ``-D`` with the old one), all columns of the
target in order, and what :class:`TargetTable` asks for besides. The target stands in it as a table named ``_tablestore_target``.

    UPDATE t SET x = x + 1 WHERE id = 7
    SELECT '+U' AS `_row_kind`, `t`.`id` AS `id`, CAST(x + 1 AS INT) AS `x` FROM `_tablestore_target` AS `t` WHERE (id = 7)

A MERGE joins target and source in the narrowest way that its clauses allow, and numbers the clause that is for a row:

    only MATCHED                inner          + NOT MATCHED    right outer (the source is kept)
    + NOT MATCHED BY SOURCE     left outer     all three        full outer
    only NOT MATCHED            anti, of the source             only NOT MATCHED BY SOURCE    anti, of the target

A target row that two source rows match gives two rows of one key or place; whoever writes them refuses that. Values are cast to the
types of their columns; in Spark's ANSI mode a value that does not fit is an error.

A MERGE that gives all columns of the source to rows that match and to rows that do not writes the same rows whatever the target
holds, if a new row takes the place of the one of its key. Such a query reads the source alone.

The source stands in the query as a table named ``_tablestore_source``, and is a query of its own. Where the condition says that
columns of both are equal, and rows without a source do not count, the other rows of the target need not be looked at.

Where these columns are the whole primary key, each row of the source has one row of the target at most. For an engine that looks
it up there is the same query over pairs (``_tablestore_pairs``), instead of a join: columns ``_tablestore_source``, a row of the
source as a struct, and ``_tablestore_target``, the row of its key, or NULL. Each pair is asked what the condition demands besides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.extent import Tokens
from tablestore.sql.query.querytext import Piece, RowText, origin_of
from tablestore.sql.query.sparktypes import as_type, cast_text, refusal, stays_equal
from tablestore.sql.source import NOWHERE, Fragment, Path, Span, marked
from tablestore.sql.statements.rows import Assignment, Delete, Match, Merge, MergeAction, MergeClause, Update
from tablestore.types.datatypes import DataType, Field, RowType

TARGET, SOURCE = "_tablestore_target", "_tablestore_source"
PAIRS = "_tablestore_pairs"
ROW_KIND = "_row_kind"
POSITIONS = {"_data_file": "STRING", "_row_position": "BIGINT"}
BEFORE = "_row_before"
_CLAUSE = "_tablestore_clause"
_NAMELESS = "_tablestore_unnamed"
_IS_SOURCE = "_tablestore_is_source"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable:
    """What is changed. ``positions``: rows have the place of the old row; ``before``: a ``+U`` also has the old row (a struct).

    ``replaces``: a row takes the place of the one that has its key, whatever that holds.
    """

    fields: tuple[Field, ...]
    keys: tuple[str, ...] = ()
    positions: bool = False
    before: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """The query. ``sets``: columns that its updates assign; ``inserts``, ``deletes``: it may yield such rows.

    ``source``: that of a MERGE. ``equal``: columns of target and source, without regard to case; of the target only rows count that
    have the values of a row of the source there. ``paired``: the same rows by a query over pairs of both, where there is one.
    """

    text: str
    pieces: tuple[Piece, ...] = ()
    sets: tuple[str, ...] = ()
    inserts: bool = False
    deletes: bool = False
    source: "RowQuery | None" = None
    equal: tuple[tuple[str, str], ...] = ()
    paired: "RowQuery | None" = None

    def place(self, span: Span) -> Span | None:
        """Where in the statement a place of ``text`` came from, None if it is not the user's."""
        return origin_of(self.pieces, span)


Place = tuple[int, tuple[str, ...]]
"""Where a value goes: the number of the clause, the column and the fields inside it."""
GivenTypes = Mapping[Place, DataType | None]
"""The types that values have by themselves, None that of NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A value that a statement gives to a column, or to a field of one: its type there, and its place in the statement."""

    place: Place
    type: DataType
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValues:
    """A query whose columns are the values that a statement assigns, in the types that they have by themselves."""

    query: RowQuery
    values: tuple[Assigned, ...]

    def checked(self, statement: str, given: Sequence[DataType | None]) -> GivenTypes:
        """The types of the query's columns, None that of NULL, by where the values go. Raises InvalidInputError for a value whose
        type its column does not take."""
        for value, found in zip(self.values, given, strict=True):
            if (wrong := refusal(".".join(value.place[1]), value.type, found)) is not None:
                raise InvalidInputError(f"{wrong}\n{marked(statement, value.span)}", kind="columns")
        return {value.place: found for value, found in zip(self.values, given, strict=True)}


def assigned_values(statement: str, change: Update | Merge, target: TargetTable) -> AssignedValues | None:
    """The values that an UPDATE or a MERGE assigns; None if there are none but defaults."""
    if isinstance(change, Merge):
        return _MergeText(statement, change, target, {}).assigned()
    alias = change.alias or change.target.parts[-1]
    leaves = list(_leaves(_assigned(statement, change.assignments, target, (alias, change.target)), target.fields, (0, ())))
    text = RowText(statement, () if change.alias else (change.target,))
    return _values_query(text, [(leaf, [value]) for leaf, value in leaves], [f"{TARGET} AS {quote_name(alias)}"])


def delete_query(statement: str, delete: Delete, target: TargetTable) -> RowQuery:
    """The rows that a DELETE removes. A place is enough to remove a row by; otherwise they have all columns."""
    alias = delete.alias or delete.target.parts[-1]
    text = RowText(statement, () if delete.alias else (delete.target,))
    row = [f"'-D' AS {quote_name(ROW_KIND)}"]
    if not target.positions:
        row += [_kept(alias, field) for field in target.fields]
    text.add("SELECT ", ", ".join([*row, *_positions(alias, target)]), f" FROM {TARGET} AS {quote_name(alias)}")
    if delete.where is not None:
        text.add(" WHERE (", delete.where, ")")
    return RowQuery(text=text.text, pieces=text.pieces, deletes=True)


def update_query(statement: str, update: Update, target: TargetTable, types: GivenTypes | None = None) -> RowQuery:
    """The new rows of an UPDATE. ``types``: those of its values, where they are known."""
    alias = update.alias or update.target.parts[-1]
    values = _assigned(statement, update.assignments, target, (alias, update.target))
    text = RowText(statement, () if update.alias else (update.target,))
    text.add(f"SELECT '+U' AS {quote_name(ROW_KIND)}")
    for field in target.fields:
        text.add(", ")
        if field.name in values:
            value = _cast(values[field.name], _qualified(alias, field.name), field, types or {}, (0, (field.name,)))
            text.add(*value, f" AS {quote_name(field.name)}")
        else:
            text.add(_kept(alias, field))
    for position in _positions(alias, target):
        text.add(", ", position)
    if target.before:
        text.add(f", {_old_row(alias, target)} AS {quote_name(BEFORE)}")
    text.add(f" FROM {TARGET} AS {quote_name(alias)}")
    if update.where is not None:
        text.add(" WHERE (", update.where, ")")
    return RowQuery(text=text.text, pieces=text.pieces, sets=tuple(values))


def merge_query(statement: str, merge: Merge, target: TargetTable, types: GivenTypes | None = None) -> RowQuery:
    """The changed rows of a MERGE. ``types``: those of its values, where they are known."""
    text = _MergeText(statement, merge, target, types or {})
    return text.upsert() or replace(text.query(), paired=text.paired())


@dataclass(frozen=True, slots=True)
class _Inside:
    """What is assigned to fields of a struct, by name."""

    fields: Mapping[str, "_Value"]


_Value = Fragment | str | None | _Inside  # text of our own; None: DEFAULT


class _MergeText:
    def __init__(self, statement: str, merge: Merge, target: TargetTable, types: GivenTypes) -> None:
        self._statement, self._types = statement, types
        self._merge = merge
        self._target = target
        self._alias = merge.alias or merge.target.parts[-1]
        source = _path_of(merge.source)
        self._source = merge.source_alias or (source.parts[-1] if source is not None else _NAMELESS)
        self._tables = [] if merge.alias else [merge.target]
        self._tables += [source] if source is not None and not merge.source_alias else []
        self._text = RowText(statement, self._tables)
        self._equal, self._is_equality = _equal_columns(merge.on, self._alias, self._source)
        self._matches = {clause.match for clause in merge.clauses}
        self._values = [self._clause_values(statement, clause) for clause in merge.clauses]
        # DuckDB takes no alias of an expression with a subquery: such a choice is written out wherever it is looked at.
        nested = any("SELECT" in clause.condition.text.upper() for clause in merge.clauses if clause.condition is not None)
        self._number: list[str | Fragment] = ["(", *self._choice(), ")"] if nested else [quote_name(_CLAUSE)]

    def upsert(self) -> RowQuery | None:
        """The rows without a look at the target, None if that has a say in them."""
        target, clauses = self._target, self._merge.clauses
        kinds = [(clause.match, clause.action) for clause in clauses if clause.condition is None]
        if len(kinds) != len(clauses) or set(kinds) != _UPSERT or len(clauses) != len(_UPSERT):
            return None
        insert = kinds.index((Match.NOT_MATCHED, MergeAction.INSERT))
        inserted, updated = self._values[insert], self._values[1 - insert]
        # In new rows a NULL becomes the default, in others it does not.
        if not target.replaces or target.before or any(field.default_value is not None for field in target.fields):
            return None
        is_by_key = self._is_equality and len(self._equal) == len(target.keys)
        if not is_by_key or not all(self._finds(field, inserted, insert) for field in target.fields if field.name in target.keys):
            return None
        columns = {field.name: self._source_column(inserted, field.name) for field in target.fields}
        others = [name for name in columns if name not in target.keys]
        if None in columns.values() or any(columns[name] != self._source_column(updated, name) for name in others):
            return None
        text = RowText(self._statement, ())
        text.add(f"SELECT '+I' AS {quote_name(ROW_KIND)}")
        for field in target.fields:
            value = _cast(inserted[field.name], "", field, self._types, (insert, (field.name,)))
            text.add(", ", *value, f" AS {quote_name(field.name)}")
        text.add(f" FROM {self._source_text()}")
        sets = tuple(field.name for field in target.fields if field.name in updated)
        return RowQuery(text=text.text, pieces=text.pieces, sets=sets, inserts=True, source=self._source_rows())

    def _finds(self, key: Field, inserted: Mapping[str, "_Value"], clause: int) -> bool:
        """Whether a source row that is inserted has the key by which it looks for its match."""
        value, place = inserted.get(key.name), (clause, (key.name,))
        return self._is_equal(key.name, value) and place in self._types and stays_equal(self._types[place], key.type)

    def paired(self) -> RowQuery | None:
        """The rows of pairs; None where a source row may have several rows of the target, or a target row none of the source."""
        keys = {key.casefold() for key in self._target.keys}
        by_key = bool(keys) and keys <= {mine for mine, _ in self._equal} and Match.NOT_MATCHED_BY_SOURCE not in self._matches
        return self._rows(self._pair_parts()) if by_key and not any(map(_looks_around, self._fragments())) else None

    def _fragments(self) -> Iterator[Fragment]:
        """What the user wrote of conditions and values."""
        yield self._merge.on
        yield from (clause.condition for clause in self._merge.clauses if clause.condition is not None)
        for values in self._values:
            yield from (value for _, value in _leaves(values, self._target.fields, (0, ())) if isinstance(value, Fragment))

    def query(self) -> RowQuery:
        """The rows of a join of both."""
        return self._rows(self._join_parts())

    def _rows(self, tables: Sequence[str | Fragment]) -> RowQuery:
        """The rows of these tables, which show target and source under their names."""
        self._text = text = RowText(self._statement, self._tables)
        target, clauses = self._target, self._merge.clauses
        actions = {clause.action for clause in clauses}
        names = [] if target.positions and actions == {MergeAction.DELETE} else [field.name for field in target.fields]
        names = [ROW_KIND, *names, *(POSITIONS if target.positions else ()), *([BEFORE] if target.before else [])]
        text.add(f"SELECT {', '.join(map(quote_name, names))} FROM (SELECT ")
        text.add(*self._choice(), f" AS {quote_name(_CLAUSE)}, CASE ", *self._number)
        for number, clause in enumerate(clauses):
            text.add(f" WHEN {number} THEN '{_KINDS[clause.action]}'")
        text.add(f" END AS {quote_name(ROW_KIND)}")
        for field in target.fields:
            if field.name in names:
                self._column(field)
        if target.positions:
            for name, kind in POSITIONS.items():
                text.add(f", {self._old(name, kind)} AS {quote_name(name)}")
        if target.before:
            self._before()
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
            source=self._source_rows(),
            equal=() if Match.NOT_MATCHED_BY_SOURCE in self._matches else tuple(sorted(self._equal)),
        )

    def assigned(self) -> AssignedValues | None:
        """The values of all clauses, as each clause sees them."""
        found: list[tuple[Assigned, Sequence[str | Fragment]]] = []
        for number, (clause, values) in enumerate(zip(self._merge.clauses, self._values, strict=True)):
            for leaf, value in _leaves(values, self._target.fields, (number, ())):
                # The columns of a star have no place of their own.
                placed = leaf if isinstance(value, Fragment) else replace(leaf, span=self._merge.target.span)
                found.append((placed, self._seen_from(clause.match, [value])))
        only_source = self._matches == {Match.NOT_MATCHED}
        return _values_query(self._text, found, [self._source_text()] if only_source else self._join_parts())

    def _source_rows(self) -> RowQuery:
        columns = f" AS {quote_name(self._source)} ({', '.join(map(quote_name, self._merge.source_columns))})"
        text = RowText(self._statement, ())
        text.add("SELECT * FROM ", self._merge.source, columns if self._merge.source_columns else "")
        return RowQuery(text=text.text, pieces=text.pieces)

    def _choice(self) -> list[str | Fragment]:
        """The number of the clause that is for a row."""
        parts: list[str | Fragment] = ["CASE"]
        for number, clause in enumerate(self._merge.clauses):
            parts.append(f" WHEN {self._test(clause.match)}")
            if clause.condition is not None:
                parts += [" AND (", *self._seen_from(clause.match, [clause.condition]), ")"]
            parts.append(f" THEN {number}")
        return [*parts, " END"]

    def _clause_values(self, statement: str, clause: MergeClause) -> dict[str, _Value]:
        if clause.action is MergeAction.DELETE:
            return {}
        if clause.assignments is None:
            values: dict[str, _Value] = {field.name: _qualified(self._source, field.name) for field in self._target.fields}
        else:
            values = _assigned(statement, clause.assignments, self._target, (self._alias, self._merge.target))
        if clause.action is MergeAction.INSERT:
            return {name: value for name, value in values.items() if value is not None}
        # A key that is set to what the condition says it equals stays as it is.
        return {name: value for name, value in values.items() if not (name in self._target.keys and self._is_equal(name, value))}

    def _is_equal(self, key: str, value: _Value) -> bool:
        return (key.casefold(), self._source_column({key: value}, key)) in self._equal

    def _source_column(self, values: Mapping[str, _Value], name: str) -> str | None:
        """Which column of the source a column is given as it is, without regard to case; None for other values."""
        value = values.get(name)
        if isinstance(value, str):
            return name.casefold()
        path = _path_of(value, alone=True) if isinstance(value, Fragment) else None
        parts = tuple(part.casefold() for part in path.parts) if path is not None else ("",)
        return parts[-1] if parts[:-1] == (self._source.casefold(),) else None

    def _test(self, match: Match) -> str:
        """The condition that a joined row is of this kind."""
        if len(self._matches) == 1:
            return "TRUE"
        has_target = _qualified(self._alias, self._target.keys[0] if self._target.keys else next(iter(POSITIONS))) + " IS"
        has_source = _qualified(self._source, _IS_SOURCE) + " IS"
        if match is Match.NOT_MATCHED:
            return f"{has_target} NULL"
        if match is Match.NOT_MATCHED_BY_SOURCE:
            return f"{has_source} NULL"
        tests = [f"{has_target} NOT NULL"] if Match.NOT_MATCHED in self._matches else []
        tests += [f"{has_source} NOT NULL"] if Match.NOT_MATCHED_BY_SOURCE in self._matches else []
        return " AND ".join(tests)

    def _seen_from(self, match: Match, parts: Sequence[str | Fragment]) -> list[str | Fragment]:
        """Text of a clause that sees one side only, in a join that has both: a name without a table means that side's column."""
        if match is Match.MATCHED or len(self._matches) == 1:
            return list(parts)
        alias = self._source if match is Match.NOT_MATCHED else self._alias
        names = frozenset(field.name.casefold() for field in self._target.fields)
        tables = frozenset({self._alias.casefold(), self._source.casefold()})
        pieces: list[str | Fragment] = []
        for part in parts:
            pieces += [part] if isinstance(part, str) else _with_table(part, names, tables, quote_name(alias))
        return pieces

    def _old(self, name: str, kind: str) -> str:
        """A value of the target's row; there is none where only rows of the source are looked at."""
        return f"CAST(NULL AS {kind})" if self._matches == {Match.NOT_MATCHED} else _qualified(self._alias, name)

    def _column(self, field: Field) -> None:
        text = self._text
        only_source = self._matches == {Match.NOT_MATCHED}
        old = cast_text("NULL", field.type) if only_source else _qualified(self._alias, field.name)
        numbers = [number for number, values in enumerate(self._values) if field.name in values]
        text.add(", ", *(["CASE ", *self._number] if numbers else [old]))
        for number in numbers:
            value = _cast(self._values[number][field.name], old, field, self._types, (number, (field.name,)))
            text.add(f" WHEN {number} THEN ", *self._seen_from(self._merge.clauses[number].match, value))
        # Where every clause sets it, the old value is of no use, and need not be read.
        otherwise = "" if len(numbers) == len(self._values) else f" ELSE {old}"
        text.add(f"{otherwise} END" if numbers else "", f" AS {quote_name(field.name)}")

    def _before(self) -> None:
        updates = [str(n) for n, clause in enumerate(self._merge.clauses) if clause.action is MergeAction.UPDATE]
        self._text.add(", ")
        if updates:
            old = _old_row(self._alias, self._target)
            self._text.add("CASE WHEN ", *self._number, f" IN ({', '.join(updates)}) THEN {old} END")
        else:
            self._text.add(cast_text("NULL", RowType(fields=self._target.fields)))
        self._text.add(f" AS {quote_name(BEFORE)}")

    def _join_parts(self) -> list[str | Fragment]:
        """Target and source, as they are joined."""
        target, source = f"{TARGET} AS {quote_name(self._alias)}", self._source_text()
        if self._matches == {Match.NOT_MATCHED}:
            tables = f"{source} LEFT ANTI JOIN {target}"
        else:
            word = _JOINS[frozenset(self._matches - {Match.MATCHED}), Match.MATCHED in self._matches]
            tables = f"{target} {word} JOIN {source}"
        return [f"{tables} ON (", self._merge.on, ")"]

    def _pair_parts(self) -> list[str | Fragment]:
        """Target and source out of pairs. Without a target row, or where it does not fulfil the condition, the target is NULL."""
        target, source, pairs = map(quote_name, (TARGET, SOURCE, PAIRS))
        both = {target: self._alias, source: self._source}
        rows = [f", LATERAL (SELECT {pairs}.{side}.*) AS {quote_name(name)}" for side, name in both.items()]
        # No condition is asked of pairs that a join does not make.
        found: list[str | Fragment] = [f"(SELECT CASE WHEN {pairs}.{target} IS NOT NULL THEN CASE WHEN (", self._merge.on]
        found += [f") THEN {pairs}.{target} END END AS {target}, {pairs}.{source} FROM {PAIRS} AS {pairs}", *rows, f") AS {pairs}"]
        match Match.MATCHED in self._matches, Match.NOT_MATCHED in self._matches:
            case True, False:
                return [*found, *rows, f" WHERE {pairs}.{target} IS NOT NULL"]
            case False, True:
                return [*found, rows[1], f" WHERE {pairs}.{target} IS NULL"]
            case _:
                return [*found, *rows]

    def _source_text(self) -> str:
        alias = f"AS {quote_name(self._source)}"
        if Match.NOT_MATCHED_BY_SOURCE in self._matches and len(self._matches) > 1:
            return f"(SELECT *, TRUE AS {quote_name(_IS_SOURCE)} FROM {SOURCE}) {alias}"
        return f"{SOURCE} {alias}"


# Behind a parenthesis, these begin a query.
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")
_UPSERT = {(Match.MATCHED, MergeAction.UPDATE), (Match.NOT_MATCHED, MergeAction.INSERT)}
_KINDS = {MergeAction.INSERT: "+I", MergeAction.UPDATE: "+U", MergeAction.DELETE: "-D"}
_JOINS = {
    (frozenset[Match](), True): "INNER",
    (frozenset({Match.NOT_MATCHED}), True): "RIGHT",
    (frozenset({Match.NOT_MATCHED_BY_SOURCE}), True): "LEFT",
    (frozenset({Match.NOT_MATCHED_BY_SOURCE}), False): "LEFT ANTI",
    (frozenset({Match.NOT_MATCHED, Match.NOT_MATCHED_BY_SOURCE}), True): "FULL",
    (frozenset({Match.NOT_MATCHED, Match.NOT_MATCHED_BY_SOURCE}), False): "FULL",
}


def _assigned(statement: str, assignments: Sequence[Assignment], target: TargetTable, named: tuple[str, Path]) -> dict[str, _Value]:
    """What each column of the target is set to, by its name in the schema. Raises InvalidInputError for an unknown column."""
    values: dict[str, _Value] = {}
    for assignment in assignments:
        parts = _without_table(assignment.column, target, named)
        root = RowType(fields=target.fields)
        merged = _put(values, parts, assignment.value, root)
        if isinstance(merged, str):
            raise InvalidInputError(f"{merged}\n{marked(statement, assignment.span)}", kind="columns")
        values = merged
    return values


def _leaves(values: Mapping[str, _Value], fields: Sequence[Field], outer: Place) -> Iterator[tuple[Assigned, str | Fragment]]:
    """What is assigned to columns, and to fields inside; no defaults."""
    for field in fields:
        place = _inside(outer, field)
        match values.get(field.name):
            case _Inside(fields=inner):
                assert isinstance(field.type, RowType), "only a struct has fields"
                yield from _leaves(inner, field.type.fields, place)
            case (Fragment() | str()) as value:
                span = value.span if isinstance(value, Fragment) else NOWHERE
                yield Assigned(place=place, type=field.type, span=span), value


def _inside(place: Place, field: Field) -> Place:
    return place[0], (*place[1], field.name)


def _values_query(
    text: RowText, found: Sequence[tuple[Assigned, Sequence[str | Fragment]]], tables: Sequence[str | Fragment]
) -> AssignedValues | None:
    if not found:
        return None
    text.add("SELECT ")
    for place, (_, value) in enumerate(found):
        text.add(", (" if place else "(", *value, f") AS {quote_name(f'_c{place}')}")
    text.add(" FROM ", *tables)
    return AssignedValues(query=RowQuery(text=text.text, pieces=text.pieces), values=tuple(leaf for leaf, _ in found))


def _without_table(column: tuple[str, ...], target: TargetTable, named: tuple[str, Path]) -> tuple[str, ...]:
    alias, path = named
    folded = [part.casefold() for part in column]
    if folded[0] in {field.name.casefold() for field in target.fields}:
        return column
    for table in ((alias,), *(path.parts[-count:] for count in range(1, len(path.parts) + 1))):
        if len(column) > len(table) and folded[: len(table)] == [part.casefold() for part in table]:
            return column[len(table) :]
    return column


def _put(values: Mapping[str, _Value], parts: Sequence[str], value: _Value, row: RowType) -> dict[str, _Value] | str:
    """``values`` with one more; or what is wrong with it."""
    names = [field.name for field in row.fields]
    found = [field for field in row.fields if field.name.casefold() == parts[0].casefold()]
    if not found:
        return f"there is no column {parts[0]!r} to set{did_you_mean(parts[0], names)}; the columns are {', '.join(names)}"
    field = next((known for known in found if known.name == parts[0]), found[0])
    there = values.get(field.name)
    if len(parts) == 1 or not isinstance(field.type, RowType):
        if len(parts) > 1:
            return f"the column {field.name!r} is no struct; it has no field {parts[1]!r} to set"
        if field.name in values:
            return f"the column {field.name!r} is set twice"
        return {**values, field.name: value}
    if field.name in values and not isinstance(there, _Inside):
        return f"the column {field.name!r} is set as a whole, and its field {parts[1]!r} too"
    inner = _put(there.fields if isinstance(there, _Inside) else {}, parts[1:], value, field.type)
    return inner if isinstance(inner, str) else {**values, field.name: _Inside(inner)}


def _cast(value: _Value, old: str, field: Field, types: GivenTypes, place: Place) -> list[str | Fragment]:
    """A value as its column has it. ``place``: where it goes."""
    if isinstance(value, (Fragment, str)):
        cast = as_type("\0", types[place], field.type) if place in types else cast_text("\0", field.type)
        opening, closing = cast.split("\0")
        return [opening or "(", value, closing or ")"]
    if value is None:
        return [_default(field.default_value, field.type)]
    assert isinstance(field.type, RowType), "only a struct has fields"
    parts: list[str | Fragment] = ["named_struct("]
    for number, inner in enumerate(field.type.fields):
        before = f"{old}.{quote_name(inner.name)}"
        parts.append(f"{', ' if number else ''}{_text_literal(inner.name)}, ")
        within = value.fields.get(inner.name, before)
        parts += _cast(within, before, inner, types, _inside(place, inner)) if inner.name in value.fields else [before]
    return [*parts, ")"]


def _default(text: str | None, data_type: DataType) -> str:
    return cast_text("NULL" if text is None else _text_literal(text), data_type)


def _text_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _qualified(alias: str, name: str) -> str:
    return f"{quote_name(alias)}.{quote_name(name)}"


def _kept(alias: str, field: Field) -> str:
    return f"{_qualified(alias, field.name)} AS {quote_name(field.name)}"


def _positions(alias: str, target: TargetTable) -> list[str]:
    return [f"{_qualified(alias, name)} AS {quote_name(name)}" for name in POSITIONS] if target.positions else []


def _old_row(alias: str, target: TargetTable) -> str:
    parts = [f"{_text_literal(field.name)}, {_qualified(alias, field.name)}" for field in target.fields]
    return f"named_struct({', '.join(parts)})"


def _path_of(fragment: Fragment, *, alone: bool = False) -> Path | None:
    """The name that a fragment begins with, if it is no call and no query; ``alone``: if it is nothing but this name."""
    tokens = Tokens(fragment.text)
    if not tokens.is_name(0) or tokens.key(tokens.after_chain(0)) == "(":
        return None
    end = tokens.after_chain(0)
    if alone and end < len(tokens):
        return None
    return Path(tuple(tokens.name(at) for at in range(0, end, 2)), Span(0, tokens[end - 1].end))


def _with_table(fragment: Fragment, names: frozenset[str], tables: frozenset[str], table: str) -> list[str | Fragment]:
    """The fragment with a table put before columns of these names, where no table stands, but for those in subqueries."""
    # sqlglot takes a while to load; most statements do without it.
    from tablestore.sql.query.barecolumns import bare_columns

    pieces: list[str | Fragment] = []
    start = 0
    for place in bare_columns(fragment.text, names, tables):
        pieces += [_part(fragment, start, place), f"{table}."]
        start = place
    return [*pieces, _part(fragment, start, len(fragment.text))]


def _looks_around(fragment: Fragment) -> bool:
    """Whether a text may see more than its row: in a subquery, or by a star for all columns that there are."""
    tokens = Tokens(fragment.text)
    keys = [tokens.key(at) for at in range(len(tokens))]
    return any((key == "*" and before in ("(", ",")) or (before == "(" and key in _QUERIES) for before, key in pairwise(keys))


def _part(fragment: Fragment, start: int, end: int) -> Fragment:
    return Fragment(fragment.text[start:end], Span(fragment.span.start + start, fragment.span.start + end))


def _equal_columns(on: Fragment, target: str, source: str) -> tuple[frozenset[tuple[str, str]], bool]:
    """Columns of target and source that a merge condition says to be equal: ``t.a = s.b AND …``, in either order; and whether it
    says nothing else."""
    tokens = Tokens(on.text)
    equal: set[tuple[str, str]] = set()
    at, begins, conditions = 0, True, 0
    while at < len(tokens):
        if tokens.key(at) in ("OR", "NOT", "CASE", "BETWEEN"):
            return frozenset(), False
        conditions += begins
        if begins and tokens.is_name(at) and tokens.key(sign := tokens.after_chain(at)) == "=" and tokens.is_name(sign + 1):
            behind = tokens.after_chain(sign + 1)
            sides = dict([_last_two(tokens, at, sign), _last_two(tokens, sign + 1, behind)])
            if tokens.key(behind) in ("", "AND") and set(sides) == {target.casefold(), source.casefold()}:
                equal.add((sides[target.casefold()], sides[source.casefold()]))
        begins = tokens.key(at) == "AND"
        at = max(at + 1, tokens.after_group(at))
    return frozenset(equal), len(equal) == conditions


def _last_two(tokens: Tokens, start: int, end: int) -> tuple[str, str]:
    """Table and column of a name; the table is empty if the name is a column alone."""
    return tokens.name(end - 3).casefold() if end - start > 1 else "", tokens.name(end - 1).casefold()
