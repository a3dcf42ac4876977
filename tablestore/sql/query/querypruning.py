"""Finds the columns and rows that a query uses of each of its tables.

It walks the tree, in which each table has a name of its own already, and the answer errs on the side of too much:

* columns: all names that the query says where a column of the table could be meant. A star asks for what is asked of the query that
  it stands in (``SELECT a FROM (SELECT * FROM t)`` uses ``a``); set operations, DISTINCT, PIVOT and NATURAL ask for everything.
* a filter: what WHERE and ON imply for the rows of the table (``conditions``), unless an outer join may make a row without it.

Whatever is not understood (pipes, syntax that sqlglot does not know) is read whole; this module never refuses a query.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from sqlglot import exp

from tablestore.sql.depth import deep
from tablestore.sql.query.parsedquery import NumberedQuery, ParsedQuery, Trees
from tablestore.sql.query.use import Use
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, Field
from tablestore.types.expression.sqltree import MAX_TEXT
from tablestore.types.filter.predicate import Predicate, all_of
from tablestore.types.filter.predicatetext import to_sql


def prune(
    query: NumberedQuery,
    fields: Sequence[Sequence[Field] | None],
    parameters: Mapping[str, Any],
    computed: Sequence[Sequence[str]],
) -> tuple[Use, ...]:
    """The columns and rows that a query uses of each relation. ``fields``: their columns; None for a relation that is read whole
    anyway; ``computed``: the names of those that are made of them."""
    whole = tuple(Use() for _ in fields)
    if all(columns is None for columns in fields):
        return whole
    try:
        with deep():
            return _Reader(fields, parameters, computed).uses(query)
    except Exception:
        return whole


def _as_filter(conditions: Sequence[Predicate]) -> Predicate | None:
    """The first of the conditions, as many as the text of a filter has room for: the engine asks all of them again."""
    lengths = accumulate(len(to_sql(condition)) + len("() AND ") for condition in conditions)
    kept = [condition for condition, end in zip(conditions, lengths, strict=True) if end <= MAX_TEXT]
    return all_of(kept) if kept else None


class _NotUnderstoodError(Exception):
    """Signals a tree of a shape that this module does not know."""


@dataclass(slots=True)
class _Need:
    """Names of columns, without regard to case, or all."""

    names: set[str] = field(default_factory=set)
    all: bool = False

    def add(self, other: "_Need") -> None:
        self.names |= other.names
        self.all = self.all or other.all


@dataclass(slots=True)
class _Source:
    """A source in a FROM: a relation of ours, a query, or neither. ``fixed``: conditions of the query do not reach its rows."""

    alias: str
    relation: int | None = None
    query: "_Scope | None" = None
    fixed: bool = False
    optional: bool = False  # an outer join may make rows without it
    hidden: bool = False  # the right side of a SEMI or ANTI JOIN
    star: bool = False
    need: _Need = field(default_factory=_Need)
    conditions: list[Predicate] = field(default_factory=list)


@dataclass(slots=True)
class _Scope:
    """One SELECT. ``need``: what is asked of its columns; ``above``: conditions on its rows, of the only query that reads it."""

    select: exp.Select
    outer: "_Scope | None"
    sources: list[_Source] = field(default_factory=list)
    star: bool = False
    need: _Need = field(default_factory=_Need)
    readers: int = 0
    above: list["_Above"] = field(default_factory=list)


_Resolve = Callable[[exp.Column], exp.Column | None]


@dataclass(frozen=True, slots=True)
class _Above:
    """A condition of a query, and which column of the query below a column in it stands for."""

    condition: exp.Expression
    resolve: _Resolve


_Queries = Mapping[str, "_Scope | None"]
_QUERY = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_SELECT_ARGS = frozenset({
    "with_", "kind", "expressions", "hint", "distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify",
    "windows", "order", "sort", "cluster", "distribute", "limit", "offset", "operation_modifiers",
})  # fmt: skip
# A name that has a backtick in it is an identifier in any case.
_WORD = re.compile(r"`[^`]*+`|\w[\w$]*+")
_TABLE_ARGS = frozenset({"this", "db", "catalog", "alias", "joins", "sample", "pivots"})
_SUBQUERY_ARGS = frozenset({"this", "alias", "with_", "order", "limit", "offset", "sample", "pivots", "joins"})


class _Reader:
    def __init__(
        self, fields: Sequence[Sequence[Field] | None], parameters: Mapping[str, Any], computed: Sequence[Sequence[str]]
    ) -> None:
        self._reading: list[NumberedQuery] = []  # the query, and the view in it that is read just now
        self._fields = fields
        self._computed = computed
        self._parameters = parameters
        self._scopes: list[_Scope] = []  # a query stands before the queries that use it
        self._sources: dict[int, _Source] = {}
        self._trees: list[tuple[ParsedQuery, Trees]] = []
        self._names = [{column.name.casefold() for column in columns or ()} for columns in fields]

    def uses(self, query: NumberedQuery) -> tuple[Use, ...]:
        try:
            self._numbered(query, all_columns=True)
            for scope in reversed(self._scopes):
                self._ask(scope)
                self._filter(scope)
            missed = set[str]().union(*(self._missed(parsed, trees) for parsed, trees in self._trees))
            return tuple(self._use(relation, missed) for relation in range(len(self._fields)))
        finally:
            for parsed, trees in self._trees:
                parsed.put_back(trees)

    def _numbered(self, query: NumberedQuery, *, all_columns: bool) -> _Scope | None:
        """Reads the tree of a query."""
        if "|>" in query.parsed.text:
            raise _NotUnderstoodError("pipes")
        trees = query.parsed.take()
        self._trees.append((query.parsed, trees))
        if trees[0] is None:
            raise _NotUnderstoodError("no query")
        self._reading.append(query)
        scope = self._query(trees[0], {}, None, all_columns=all_columns)
        self._reading.pop()
        return scope

    def _use(self, relation: int, missed: set[str]) -> Use:
        columns, source = self._fields[relation], self._sources.get(relation)
        if columns is None or source is None:
            return Use()
        names = source.need.names | missed
        used = tuple(column.name for column in columns if column.name.casefold() in names)
        if not used:
            # Rows without columns cannot be counted on the ways that some engines hand them on.
            used = (min(columns, key=_width).name,)
        computed = tuple(name for name in self._computed[relation] if source.need.all or name.casefold() in names)
        return Use(
            columns=None if source.need.all or len(used) == len(columns) else used,
            computed=computed,
            filter=_as_filter(source.conditions),
        )

    def _missed(self, parsed: ParsedQuery, trees: Trees) -> set[str]:
        """Columns whose names stand in the text and were made something other than a name by sqlglot; they are read.

        In most texts there is none, and they need not be looked at again.
        """
        names = set().union(*(self._names[relation] for relation in self._sources))
        names.update(name.casefold() for relation in self._sources for name in self._computed[relation])
        names.difference_update(*(source.need.names for source in self._sources.values()))
        names.intersection_update(word.casefold().strip("`") for word in set(_WORD.findall(parsed.text)))
        if names:
            tokens = parsed.tokens
            names &= {tokens.name(at).casefold() for at in range(len(tokens)) if tokens.is_name(at)}
            names -= {
                identifier.name.casefold() for tree in trees if tree is not None for identifier in tree.find_all(exp.Identifier)
            }
        return names

    # Reading the tree.

    def _query(self, node: exp.Expr, queries: _Queries, outer: _Scope | None, *, all_columns: bool) -> _Scope | None:
        """Reads a query; returns its SELECT if it is a plain one, of which columns can be asked by name."""
        if not isinstance(node, _QUERY):
            raise _NotUnderstoodError(type(node).__name__)
        queries = self._bound(node, queries, outer)
        scope: _Scope | None
        match node:
            case exp.Select():
                scope = self._select(node, queries, outer)
            case exp.Subquery():
                self._only(node, _SUBQUERY_ARGS - {"pivots", "joins"})
                scope = self._query(node.this, queries, outer, all_columns=all_columns or _is_ordered(node))
            case exp.SetOperation():
                for side in (node.left, node.right):
                    self._query(side, queries, outer, all_columns=True)
                return None
            case _:
                return None
        if scope is not None and all_columns:
            scope.need.all = True
        return scope

    def _bound(self, node: exp.Expr, queries: _Queries, outer: _Scope | None) -> _Queries:
        """The queries that names stand for inside of a node, with those of its WITH."""
        clause = node.args.get("with_")
        if clause is None:
            return queries
        bound: dict[str, _Scope | None] = dict(queries)
        for item in clause.expressions:
            name, columns = item.alias.casefold(), item.args["alias"].columns
            inside = {**bound, name: None} if clause.args.get("recursive") else bound
            bound[name] = self._query(item.this, inside, outer, all_columns=bool(columns))
        return bound

    def _select(self, node: exp.Select, queries: _Queries, outer: _Scope | None) -> _Scope:
        self._only(node, _SELECT_ARGS)
        scope = _Scope(node, outer)
        if (origin := node.args.get("from_")) is not None:
            self._source(origin.this, scope, queries)
        for join in node.args.get("joins") or ():
            self._source(join.this, scope, queries)
        for key, value in node.args.items():
            if key == "joins":
                for join in value or ():
                    self._join_words(join, scope, queries)
            elif key not in ("with_", "from_", "hint", "kind", "operation_modifiers"):
                self._words(value, scope, queries)
        self._scopes.append(scope)
        return scope

    def _source(self, node: exp.Expr, scope: _Scope, queries: _Queries, *, nested: bool = False) -> None:
        """Adds what a FROM or JOIN reads to a scope."""
        alias = node.args.get("alias")
        name = (alias.name if alias is not None else node.name).casefold()
        source = _Source(name, fixed=nested or bool(node.args.get("sample") or node.args.get("joins")))
        scope.sources.append(source)
        match node:
            case exp.Table(this=exp.Identifier()):
                self._only(node, _TABLE_ARGS)
                self._named(node, source, queries)
            case exp.Subquery(this=exp.Table()):
                self._only(node, _SUBQUERY_ARGS - {"with_"})
                scope.sources.pop()
                self._source(node.this, scope, queries, nested=True)
                if alias is not None:
                    scope.sources[-1].need.all = True
            case exp.Subquery():
                self._only(node, _SUBQUERY_ARGS)
                inside = self._bound(node, queries, scope)
                source.query = self._query(node.this, inside, scope.outer, all_columns=_is_ordered(node))
            case _:
                self._words([node], scope, queries)
        if source.query is not None:
            source.query.readers += 1
            source.query.need.all = source.query.need.all or bool(alias is not None and alias.args.get("columns"))
        if alias is not None and alias.args.get("columns"):
            source.need.all = True
            source.fixed = True
        for join in node.args.get("joins") or ():
            self._source(join.this, scope, queries, nested=True)
            self._join_words(join, scope, queries)
        if node.args.get("pivots"):
            # The columns that a PIVOT does not name are those that it groups by.
            for joined_source in scope.sources:
                joined_source.need.all = joined_source.fixed = True
            self._words(node.args["pivots"], scope, queries)

    def _named(self, node: exp.Table, source: _Source, queries: _Queries) -> None:
        if node.args.get("db") is not None:
            return
        prefix = self._reading[-1].parsed.prefix
        number = node.name.removeprefix(prefix)
        if number == node.name or not number.isdecimal():
            source.query = queries.get(node.name.casefold())
            return
        relation = self._reading[-1].relations[int(number)]
        if isinstance(relation, NumberedQuery):
            source.query = self._numbered(relation, all_columns=False)
            return
        if relation in self._sources:
            raise _NotUnderstoodError("a relation stands here twice")
        source.relation = relation
        self._sources[relation] = source

    def _join_words(self, join: exp.Join, scope: _Scope, queries: _Queries) -> None:
        for column in join.args.get("using") or ():
            self._mention((column.name,), scope)
        if join.method == "NATURAL":
            for source in scope.sources:
                source.need.all = True
        self._words([value for key, value in join.args.items() if key not in ("this", "using")], scope, queries)

    def _words(self, value: Any, scope: _Scope, queries: _Queries) -> None:
        """Notes the columns that an expression may name, and reads the queries in it."""
        stack = list(value) if isinstance(value, list) else [value]
        while stack:
            node = stack.pop()
            if isinstance(node, list):
                stack += node
            if not isinstance(node, exp.Expr) or isinstance(node, exp.Identifier):
                continue
            if isinstance(node, exp.Column):
                if isinstance(node.this, exp.Star):
                    self._star(node, scope, node.table.casefold())
                else:
                    self._mention([part.name for part in node.parts], scope)
            elif isinstance(node, (exp.Select, exp.SetOperation)) or (
                isinstance(node, exp.Subquery) and isinstance(node.this, _QUERY)
            ):
                self._query(node, queries, scope, all_columns=not isinstance(node.parent, exp.Exists))
                continue
            elif isinstance(node, exp.Star):
                self._star(node, scope, None)
            elif isinstance(node, exp.Table):
                raise _NotUnderstoodError("a table in an expression")
            stack += node.args.values()

    def _star(self, node: exp.Expr, scope: _Scope, table: str | None) -> None:
        parent = node.parent
        if table is None and isinstance(parent, exp.Column):
            return  # seen with its table
        if table is None and isinstance(parent, exp.Count):
            return
        projected = parent is scope.select
        if projected and table is None:
            scope.star = True
        for source in scope.sources if table is None else self._visible(scope):
            if table is None or source.alias == table:
                source.star = source.star or projected
                source.need.all = source.need.all or not projected

    def _mention(self, parts: Sequence[str], scope: _Scope) -> None:
        """A name of one or more parts: a column, a table's column, a column's field."""
        names = [part.casefold() for part in parts]
        for source in self._visible(scope):
            if len(names) > 1 and source.alias == names[0]:
                source.need.names.add(names[1])
                if source.relation is not None and names[1] in self._names[source.relation]:
                    return
            if len(names) > 2 and source.alias == names[1]:
                source.need.names.add(names[2])
        for source in self._visible(scope):
            source.need.names.add(names[0])

    def _visible(self, scope: _Scope | None) -> Iterable[_Source]:
        while scope is not None:
            yield from scope.sources
            scope = scope.outer

    def _only(self, node: exp.Expr, supported: frozenset[str]) -> None:
        for key, value in node.args.items():
            if value and key not in supported:
                raise _NotUnderstoodError(f"{type(node).__name__} with {key}")

    # Asking, from the outermost query inwards.

    def _ask(self, scope: _Scope) -> None:
        """Hands on what is asked of a query to what it reads."""
        args = scope.select.args
        stars = scope.star or any(source.star for source in scope.sources)
        if stars and (args.get("distinct") or args.get("group") or _has_ordinals(args.get("order"))):
            scope.need.all = True
        for source in scope.sources:
            if scope.star or source.star:
                source.need.add(scope.need)
            if source.query is not None:
                source.query.need.add(source.need)

    def _filter(self, scope: _Scope) -> None:
        """Gives each relation of a query the conditions that its rows have to fulfil."""
        args = scope.select.args
        read = 1 if args.get("from_") is not None else 0
        joins = args.get("joins") or ()
        if len(scope.sources) != read + len(joins):
            # Parentheses around joins: their sources cannot be told apart by their place.
            return
        for place, join in enumerate(joins, read):
            left, right = scope.sources[:place], scope.sources[place]
            side, kind = join.side, join.kind
            if not (side == "FULL" or kind == "ANTI"):
                self._imply(join.args.get("on"), scope.sources[: place + 1], [] if side == "LEFT" and kind != "SEMI" else left)
            if side != "FULL" and side != "RIGHT":
                self._imply(join.args.get("on"), scope.sources[: place + 1], [right])
            if kind in ("SEMI", "ANTI"):
                right.hidden = True
            elif side in ("LEFT", "FULL"):
                right.optional = True
            if side in ("RIGHT", "FULL"):
                for source in left:
                    source.optional = True
        seen = [source for source in scope.sources if not source.hidden]
        if (where := args.get("where")) is not None:
            self._imply(where.this, seen, scope.sources)
        for above in scope.above:
            self._imply(above.condition, seen, scope.sources, above.resolve)

    def _imply(
        self,
        condition: exp.Expression | None,
        visible: Sequence[_Source],
        eligible: Sequence[_Source],
        resolve: _Resolve = lambda column: column,
    ) -> None:
        for source in eligible:
            if condition is None or source.optional or source.hidden or source.fixed:
                continue
            if source.relation is not None:
                # Loaded for a query with conditions.
                from tablestore.sql.query.pushdown import Conditions

                field_of = _FieldOf(source, visible, self._fields, self._names, resolve)
                if (implied := Conditions(field_of=field_of, parameters=self._parameters).filter(condition)) is not None:
                    source.conditions.append(implied)
            elif source.query is not None and source.query.readers == 1 and _passes(source.query.select):
                source.query.above.append(_Above(condition, _Through(source, visible, resolve)))


@dataclass(frozen=True, slots=True)
class _Through:
    """Finds the column of a derived table's query that a column of the query around it is."""

    source: _Source
    visible: Sequence[_Source]
    resolve: _Resolve

    def __call__(self, column: exp.Column) -> exp.Column | None:
        resolved = self.resolve(column)
        if resolved is None or resolved.args.get("db") is not None or self.source.query is None:
            return None
        # Of a name without a table it is only known in which of them it is if there is one.
        candidates = [source for source in self.visible if not resolved.table or source.alias == resolved.table.casefold()]
        only = len(candidates) == 1 and candidates[0] is self.source
        return _projected(self.source.query.select, resolved.name.casefold()) if only else None


@dataclass(frozen=True, slots=True)
class _FieldOf:
    """Finds the column of one source that a name stands for, among the sources that can be seen."""

    source: _Source
    visible: Sequence[_Source]
    fields: Sequence[Sequence[Field] | None]
    names: Sequence[set[str]]
    resolve: _Resolve

    def __call__(self, written: exp.Column) -> Field | None:
        relation, column = self.source.relation, self.resolve(written)
        if relation is None or column is None or column.args.get("db") is not None or not isinstance(column.this, exp.Identifier):
            return None
        name = column.name.casefold()
        if name not in self.names[relation]:
            return None
        if column.table:
            candidates = [source for source in self.visible if source.alias == column.table.casefold()]
        else:
            # If a source with unknown columns had it too, the engine would refuse the name as ambiguous.
            candidates = [source for source in self.visible if source.relation is not None and name in self.names[source.relation]]
        if len(candidates) != 1 or candidates[0] is not self.source:
            return None
        fields = [candidate for candidate in self.fields[relation] or () if candidate.name.casefold() == name]
        return fields[0] if len(fields) == 1 else None


def _width(column: Field) -> int:
    """The rank of a column by the cost of reading it: whole numbers are read faster than all others."""
    return 0 if isinstance(column.type, AtomicType) and column.type.root in INTEGER_ROOTS else 1


def _is_ordered(node: exp.Expr) -> bool:
    """True if parentheses around a query are followed by an ORDER BY, which names columns of it."""
    return bool(node.args.get("order"))


def _passes(select: exp.Select) -> bool:
    """True if a condition on the rows of a query may be asked before it: it neither counts, ranks nor cuts them."""
    if any(select.args.get(key) for key in ("group", "having", "qualify", "windows", "limit", "offset")):
        return False
    return not any(isinstance(node, (exp.AggFunc, exp.Window)) for item in select.expressions for node in item.walk())


def _projected(select: exp.Select, name: str) -> exp.Column | None:
    """The column that a query hands on under a name."""
    named = [item for item in select.expressions if not item.is_star and item.alias_or_name.casefold() == name]
    if len(named) == 1:
        column = named[0].unalias()
        return column if isinstance(column, exp.Column) else None
    stars = [item for item in select.expressions if item.is_star]
    plain = len(stars) == 1 and isinstance(stars[0], exp.Star) and not any(stars[0].args.values())
    return exp.column(name, quoted=True) if plain and not named else None


def _has_ordinals(order: exp.Expr | None) -> bool:
    return order is not None and any(isinstance(item.this, exp.Literal) for item in order.expressions)
