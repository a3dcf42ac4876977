"""What does the name of a column stand for in a query, and of which kind is that?

    SELECT e + 1 AS x, x * 2 FROM t    e: a column of t          x: in what the query reads, else the alias before it
    … ORDER BY x                       the alias first
    (SELECT … WHERE t.e = …)           in its own query, else in the one around it

A query may read what nobody knows the columns of (a generator, a pivot). Whatever could be a column of that is left open.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tablestore.sql.duckdb.kinds import TEXT, Kind, agreed

Columns = Sequence[tuple[str, Kind | None]]


class Open(Exception):
    """The name may be that of a column that is not known."""


@dataclass(slots=True)
class Names:
    """The names in one tree. ``tables``: the columns of those tables that are known; ``kind_of`` an expression."""

    tables: Mapping[str, Columns]
    kind_of: Callable[[exp.Expr], Kind | None]
    _known: dict[int, Columns | None] = field(default_factory=dict, init=False)

    def kind(self, column: exp.Column) -> Kind | None:
        """The kind of what a name stands for. Raises Open."""
        name, table = column.name.casefold(), column.table.casefold()
        order = column.find_ancestor(exp.Order)
        query = column.find_ancestor(exp.Select, exp.SetOperation)
        while query is not None:
            ordered = order is not None and order.parent is query
            if isinstance(query, exp.Select):
                kinds = self._found(query, column, name, table, ordered=ordered)
            else:
                kinds = _of_name(name, self.columns(query) or ()) if ordered else []
            if kinds:
                return agreed(kinds)
            query = query.find_ancestor(exp.Select, exp.SetOperation)
        raise Open

    def _found(self, query: exp.Select, column: exp.Column, name: str, table: str, *, ordered: bool) -> list[Kind | None]:
        made = [] if table else [one for one in query.selects if isinstance(one, exp.Alias) and one.alias.casefold() == name]
        aliased = [self._value(one.this) for one in made if not _is_inside(column, one)]
        if ordered and aliased:
            return aliased
        read = list(sources(query))
        chosen = [one for one in read if not table or one.alias_or_name.casefold() == table]
        known = [self.columns(one) for one in chosen]
        if kinds := [kind for columns in known for kind in _of_name(name, columns or ())]:
            return kinds
        if None in known:
            raise Open
        return aliased

    def columns(self, query: exp.Expr) -> Columns | None:
        """The columns of a query, or of what stands in FROM; None if they are not known."""
        if id(query) not in self._known:
            # A query that reads itself.
            self._known[id(query)] = None
            self._known[id(query)] = None if query.args.get("pivots") else _renamed(query, self._columns(query))
        return self._known[id(query)]

    def _columns(self, query: exp.Expr) -> Columns | None:
        match query:
            case exp.Subquery() | exp.CTE():
                return self.columns(query.this)
            case exp.Table(this=exp.Identifier()) if not query.db:
                made = common_query(query)
                return self.columns(made) if made is not None else self.tables.get(query.name.casefold())
            case exp.Values():
                return self._written(query)
            case exp.SetOperation():
                left, right = self.columns(query.left), self.columns(query.right)
                if left is None or right is None or len(left) != len(right):
                    return None
                return [(name, agreed([kind, other])) for (name, kind), (_, other) in zip(left, right, strict=True)]
            case exp.Select():
                return self._selected(query)
            case _:
                return None

    def _selected(self, query: exp.Select) -> Columns | None:
        found: list[tuple[str, Kind | None]] = []
        for one in query.selects:
            if not one.is_star:
                found.append((one.alias_or_name.casefold(), self._value(one.unalias())))
                continue
            star = one.this if isinstance(one, exp.Column) else one
            table = one.table.casefold() if isinstance(one, exp.Column) else ""
            read = [self.columns(source) for source in sources(query) if table in ("", source.alias_or_name.casefold())]
            if any(star.args.values()) or query.args.get("laterals"):
                return None
            for columns in read:
                if columns is None:
                    return None
                found += columns
        return found

    def _written(self, values: exp.Values) -> Columns:
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row.unnest()] for row in values.expressions]
        given = [[self._value(value) for value in column if not isinstance(value, exp.Null)] for column in zip(*rows, strict=False)]
        return [(f"col{place}", agreed(kinds)) for place, kinds in enumerate(given, 1)]

    def _value(self, node: exp.Expr) -> Kind | None:
        return TEXT if isinstance(node, exp.Literal) and node.is_string else self.kind_of(node)


def _of_name(name: str, columns: Columns) -> list[Kind | None]:
    return [kind for one, kind in columns if one.casefold() == name]


def sources(query: exp.Select) -> Iterator[exp.Expr]:
    """What a query reads."""
    start = query.args.get("from_")
    for clause in [*([start] if start else []), *(query.args.get("joins") or ())]:
        yield clause.this
        yield from (join.this for join in clause.this.args.get("joins") or ())


def _renamed(query: exp.Expr, columns: Columns | None) -> Columns | None:
    alias = query.args.get("alias")
    names = alias.columns if isinstance(alias, exp.TableAlias) else []
    if columns is None or not names:
        return columns
    return [(name.name, kind) for name, (_, kind) in zip(names, columns, strict=False)]


def common_query(table: exp.Table) -> exp.CTE | None:
    """The query of a WITH that has the name, from the inside out; none that the table is a part of."""
    at = table.parent
    while at is not None:
        for made in getattr(at.args.get("with_"), "expressions", ()):
            if made.alias.casefold() == table.name.casefold() and not _is_inside(table, made):
                return made if isinstance(made, exp.CTE) else None
        at = at.parent
    return None


def _is_inside(node: exp.Expr, outer: exp.Expr) -> bool:
    at: exp.Expr | None = node
    while at is not None and at is not outer:
        at = at.parent
    return at is not None
