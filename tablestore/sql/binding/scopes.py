"""Holds what names mean at a place of a query: columns of what FROM reads, aliases, variables of lambdas, common queries.

    SELECT e + 1 AS x, x * 2 FROM t       x: a column of t, else the alias before it
    … ORDER BY x                          the alias first
    (SELECT … WHERE t.e = …)              a column of its own query, else of the one around it

A name stands for one column of one scope, or for nothing that is known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tablestore.sql.binding.functiontypes import field as field_of
from tablestore.sql.binding.sqltypes import Type

Columns = Sequence[tuple[str, Type]]
"""Names and types, in order."""


@dataclass(frozen=True, slots=True)
class ScopedTable:
    """Something that FROM reads, under a name in small letters. ``columns``: None where they are not known."""

    name: str
    columns: Columns | None

    def types(self, column: str) -> list[Type]:
        """The types of its columns of a name in small letters."""
        return [kind for name, kind in self.columns or () if name.casefold() == column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of a name: a column of what a ``query`` reads, or an alias in its list; one of its result has no query, and
    ``hides`` a column of that name that the query reads."""

    type: Type = None
    query: exp.Select | None = None
    is_alias: bool = False
    hides: bool = False
    is_known: bool = True


@dataclass(slots=True)
class Scope:
    """The names that one query can use, with their meanings, and behind them those of the queries around it. ``joined``: the
    columns of USING, which are one for both sides; ``query``: the SELECT that reads its sources."""

    outer: "Scope | None" = None
    sources: list[ScopedTable] = field(default_factory=list)
    joined: dict[str, Type] = field(default_factory=dict)
    aliases: dict[str, Type] = field(default_factory=dict)
    common: Mapping[str, Columns | None] = field(default_factory=dict)
    variables: Mapping[str, Type] = field(default_factory=dict)
    query: exp.Select | None = None

    def around(self) -> "Iterator[Scope]":
        """This scope and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def common_query(self, name: str) -> tuple[bool, Columns | None]:
        """True if a query of a WITH has this name; and its columns."""
        for scope in self.around():
            if name in scope.common:
                return True, scope.common[name]
        return False, None

    def variable(self, name: str) -> Type:
        """The type of a variable of a lambda."""
        return next((scope.variables[name] for scope in self.around() if name in scope.variables), None)

    def column(self, node: exp.Column) -> Meaning:
        """The meaning of the name of a column."""
        parts = [part.name for part in node.parts]
        for scope in self.around():
            is_open = False
            # The longest qualifier first: what is behind the column are fields of it.
            for place in range(len(parts) - 1, -1, -1):
                types, is_unknown = scope._types_named(parts[:place], parts[place].casefold())
                is_open |= is_unknown
                if types:
                    hides = not place and scope._hides(parts[0].casefold())
                    return Meaning(type=_with_fields(_agreed(types), parts[place + 1 :]), query=scope.query, hides=hides)
            if is_open:
                return Meaning(is_known=False)
            if (alias := parts[0].casefold()) in scope.aliases:
                return Meaning(type=_with_fields(scope.aliases[alias], parts[1:]), query=scope.query, is_alias=True)
        return Meaning(is_known=False)

    def _hides(self, column: str) -> bool:
        """True if this is the scope of a result, and its query reads a column of this name."""
        return self.query is None and self.outer is not None and bool(self.outer._types_named((), column)[0])

    def _types_named(self, qualifier: Sequence[str], column: str) -> tuple[list[Type], bool]:
        """The types of the columns of a name; and True if there may be others that are not known."""
        if not qualifier and column in self.joined:
            return [self.joined[column]], False
        read = [one for one in self.sources if not qualifier or one.name == qualifier[-1].casefold()]
        return [kind for one in read for kind in one.types(column)], any(one.columns is None for one in read)

    def star(self, table: str = "") -> Columns | None:
        """The columns that ``*`` or ``t.*`` stands for; None where some are not known."""
        read = [one for one in self.sources if table in ("", one.name)]
        if any(one.columns is None for one in read):
            return None
        columns = [(name, kind) for one in read for name, kind in one.columns or ()]
        if table:
            return columns
        first = {name.casefold(): name for name, _ in reversed(columns)}
        return [
            # An engine refuses USING of a column that no table has.
            *((first.get(name, name), kind) for name, kind in self.joined.items()),
            *((name, kind) for name, kind in columns if name.casefold() not in self.joined),
        ]


def _agreed(types: Iterable[Type]) -> Type:
    """The type of a name of several columns, which an engine refuses, or which have one value."""
    distinct = set(types)
    return distinct.pop() if len(distinct) == 1 else None


def _with_fields(kind: Type, fields: Sequence[str]) -> Type:
    for name in fields:
        kind = field_of(kind, name)
    return kind
