"""Joins target and source of a MERGE, and names both in its query.

It joins them in the narrowest way that its clauses allow:

    only MATCHED                inner          + NOT MATCHED    right outer (the source is kept)
    + NOT MATCHED BY SOURCE     left outer     all three        full outer
    only NOT MATCHED            anti, of the source             only NOT MATCHED BY SOURCE    anti, of the target

Or it takes them out of pairs (``_tablestore_pairs``), which have columns ``_tablestore_source``, a row of the source as a struct,
and ``_tablestore_target``, the row of its key, or NULL. Each pair is asked what the condition demands besides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import PAIRS, POSITIONS, SOURCE, TARGET, RowQuery, TargetTable
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.rows import Match, Merge
from tablestore.sql.writing.columntext import qualified
from tablestore.sql.writing.columnvalues import Value
from tablestore.sql.writing.mergetext import EqualColumns, equal_columns, path_of, with_table

_JOINS = {
    (frozenset[Match](), True): "INNER",
    (frozenset({Match.NOT_MATCHED}), True): "RIGHT",
    (frozenset({Match.NOT_MATCHED_BY_SOURCE}), True): "LEFT",
    (frozenset({Match.NOT_MATCHED_BY_SOURCE}), False): "LEFT ANTI",
    (frozenset({Match.NOT_MATCHED, Match.NOT_MATCHED_BY_SOURCE}), True): "FULL",
    (frozenset({Match.NOT_MATCHED, Match.NOT_MATCHED_BY_SOURCE}), False): "FULL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSides:
    """The table that a MERGE changes and its source.

    ``alias`` and ``source``: their names in the user's text. ``paths``: those of them that the query names by the last part alone.
    ``matches``: the kinds of rows that there is a clause for. ``equal``: columns that the condition says to be equal.
    ``is_source``: the column that marks rows of the source; ``pairs``: what pairs are called.
    """

    merge: Merge
    target: TargetTable
    alias: str
    source: str
    paths: tuple[Path, ...]
    matches: frozenset[Match]
    equal: EqualColumns
    is_source: str
    pairs: str

    @property
    def only_source(self) -> bool:
        """True if only rows of the source are looked at: those that match no row of the target."""
        return self.matches == {Match.NOT_MATCHED}

    @property
    def compares_keys(self) -> bool:
        """True if the condition says nothing but that as many columns are equal as the primary key has."""
        return self.equal.nothing_else and len(self.equal.pairs) == len(self.target.keys)

    def joined(self) -> list[str | Fragment]:
        """Target and source, as they are joined."""
        target, source = f"{TARGET} AS {quote_name(self.alias)}", self.source_table()
        if self.only_source:
            tables = f"{source} LEFT ANTI JOIN {target}"
        else:
            word = _JOINS[self.matches - {Match.MATCHED}, Match.MATCHED in self.matches]
            tables = f"{target} {word} JOIN {source}"
        return [f"{tables} ON (", self.merge.on, ")"]

    def paired(self) -> list[str | Fragment]:
        """Target and source out of pairs. Without a target row, or where it does not fulfil the condition, the target is NULL."""
        target, source, pairs = map(quote_name, (TARGET, SOURCE, self.pairs))
        both = {target: self.alias, source: self.source}
        rows = [f", LATERAL (SELECT {pairs}.{side}.*) AS {quote_name(name)}" for side, name in both.items()]
        parts: list[str | Fragment] = [f"{PAIRS} AS {pairs}"]
        if not self.compares_keys:
            # No condition is asked of pairs that a join does not make.
            parts = [f"(SELECT CASE WHEN {pairs}.{target} IS NOT NULL THEN CASE WHEN (", self.merge.on, f") THEN {pairs}.{target}"]
            parts += [f" END END AS {target}, {pairs}.{source} FROM {PAIRS} AS {pairs}", *rows, f") AS {pairs}"]
        match Match.MATCHED in self.matches, Match.NOT_MATCHED in self.matches:
            case True, False:
                return [*parts, *rows, f" WHERE {pairs}.{target} IS NOT NULL"]
            case False, True:
                return [*parts, rows[1], f" WHERE {pairs}.{target} IS NULL"]
            case _:
                return [*parts, *rows]

    def source_table(self) -> str:
        """The source alone. Its rows are marked where a join has rows without one."""
        alias = f"AS {quote_name(self.source)}"
        if Match.NOT_MATCHED_BY_SOURCE in self.matches and len(self.matches) > 1:
            return f"(SELECT *, TRUE AS {quote_name(self.is_source)} FROM {SOURCE}) {alias}"
        return f"{SOURCE} {alias}"

    def source_query(self, statement: str) -> RowQuery:
        """The rows of the source."""
        columns = f" AS {quote_name(self.source)} ({', '.join(map(quote_name, self.merge.source_columns))})"
        text = RowText(statement, ())
        text.add("SELECT * FROM ", self.merge.source, columns if self.merge.source_columns else "")
        return RowQuery(text=text.text, pieces=text.pieces)

    def test(self, match: Match) -> str:
        """The condition that a joined row is of this kind."""
        if len(self.matches) == 1:
            return "TRUE"
        has_target = qualified(self.alias, self.target.keys[0] if self.target.keys else next(iter(POSITIONS))) + " IS"
        has_source = qualified(self.source, self.is_source) + " IS"
        if match is Match.NOT_MATCHED:
            return f"{has_target} NULL"
        if match is Match.NOT_MATCHED_BY_SOURCE:
            return f"{has_source} NULL"
        tests = [f"{has_target} NOT NULL"] if Match.NOT_MATCHED in self.matches else []
        tests += [f"{has_source} NOT NULL"] if Match.NOT_MATCHED_BY_SOURCE in self.matches else []
        return " AND ".join(tests)

    def seen_from(self, match: Match, parts: Sequence[str | Fragment]) -> list[str | Fragment]:
        """Text of a clause that sees one side only, in a join that has both: a name without a table means that side's column."""
        if match is Match.MATCHED or len(self.matches) == 1:
            return list(parts)
        alias = self.source if match is Match.NOT_MATCHED else self.alias
        names = frozenset(field.name.casefold() for field in self.target.fields)
        tables = frozenset({self.alias.casefold(), self.source.casefold()})
        pieces: list[str | Fragment] = []
        for part in parts:
            pieces += [part] if isinstance(part, str) else with_table(part, names, tables, quote_name(alias))
        return pieces

    def source_column(self, name: str, value: Value) -> str | None:
        """The column of the source, in lower case, that the column ``name`` is given as it is; None for other values."""
        if isinstance(value, str):
            return name.casefold()
        path = path_of(value, alone=True) if isinstance(value, Fragment) else None
        parts = tuple(part.casefold() for part in path.parts) if path is not None else ("",)
        return parts[-1] if parts[:-1] == (self.source.casefold(),) else None

    def is_equal(self, name: str, value: Value) -> bool:
        """True if the condition says that a column of the target equals this value."""
        return (name.casefold(), self.source_column(name, value)) in self.equal.pairs


def merge_sides(statement: str, merge: Merge, target: TargetTable) -> MergeSides:
    """The two sides of a MERGE."""
    named = path_of(merge.source)
    alias = merge.alias or merge.target.parts[-1]
    source = merge.source_alias or (named.parts[-1] if named is not None else target.fresh("_tablestore_unnamed", statement))
    paths = [] if merge.alias else [merge.target]
    paths += [named] if named is not None and not merge.source_alias else []
    return MergeSides(
        merge=merge,
        target=target,
        alias=alias,
        source=source,
        paths=tuple(paths),
        matches=frozenset(clause.match for clause in merge.clauses),
        equal=equal_columns(merge.on, target=alias, source=source),
        is_source=target.fresh("_tablestore_is_source", statement),
        pairs=target.fresh(PAIRS, statement),
    )
