"""Writes aliases that are used beside the expressions that they name as columns of a query below.

    SELECT upper(a) AS b, b || 'x' AS c, c || c AS d FROM t WHERE n > 1 ORDER BY n

    SELECT _0 AS b, _2 AS c, _2 || _2 AS d FROM (
        SELECT *, _0 || 'x' AS _2 FROM (SELECT upper(a) AS _0, n AS _1 FROM t WHERE n > 1)) ORDER BY _1

DuckDB puts the expression in the place of each use. So it doubles with each step of ``b || b AS c, c || c AS d``, is computed once
a use, and is refused where it may raise an error of ours. Here everything is computed once, from the rows or groups that are left.
So is a query written in whose ORDER BY an expression uses an alias that hides a column: DuckDB would take the column.

A query stays as it is, and DuckDB decides, where a name in it is not known, and where Spark refuses the alias: inside of an
aggregate, and in GROUP BY if the alias stands for another alias.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.scopes import Meaning
from tablestore.sql.duckdb.calls import call
from tablestore.sql.duckdb.resultnames import sources
from tablestore.sql.query.dialect import STACK

PREFIX = "_tablestore_alias_"
"""The beginning of the names of the columns of queries below."""
_BELOW = ("from_", "joins", "where", "group", "having", "sample", "windows")
_ABOVE = ("qualify", "order", "cluster", "sort", "distribute")
_OF_MANY_COLUMNS = (exp.Aliases, exp.Posexplode, exp.Inline, STACK)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_AROUND_KEYS = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_AGGREGATES = ("every", "some")


def write_out_aliases(tree: exp.Expr, bound: Bound) -> bool:
    """Rewrites a tree; True if a query in it has got another one below it: then the tree is to be bound again.

    Raises InvalidInputError for an alias that two expressions before it have.
    """
    names = _Names(bound)
    written_out = [_written_out(query, names) for query in list(tree.find_all(exp.Select))]
    return any(written_out)


def _written_out(query: exp.Select, names: "_Names") -> bool:
    aliases = _Aliases.of(query, names)
    if not aliases.are_below:
        return False
    try:
        _Rewriting(aliases, names).carry_out()
    except _StaysAsItIs:
        return False
    return True


def field_of_alias(name: exp.Column, bound: Bound) -> exp.Expr | None:
    """A field of a struct that an alias names, in ORDER BY or HAVING: DuckDB would look for a table of that name.

    None for every other name.
    """
    meaning, names = bound.meaning(name), name.parts
    if meaning is None or not meaning.is_known or len(names) == 1 or isinstance(name.this, exp.Star):
        return None
    is_of_having = meaning.is_alias and isinstance(name.find_ancestor(exp.Having, exp.Query), exp.Having)
    if meaning.query is not None and not is_of_having:
        return None
    value: exp.Expr = exp.column(names[0].copy())
    for part in names[1:]:
        value = call("STRUCT_EXTRACT", value, exp.Literal.string(part.name))
    return value


class _StaysAsItIs(Exception):
    """A query cannot be written in another way."""


@dataclass(slots=True)
class _Names:
    """The meanings of the tree's names, also in copies. New nodes are kept: the id of one that is gone would be used again."""

    bound: Bound
    meanings: dict[int, Meaning] = field(default_factory=dict)
    kept: list[exp.Expr] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def meaning(self, name: exp.Column) -> Meaning:
        """The meaning of a name."""
        return self.meanings.get(id(name)) or self.bound.meaning(name) or Meaning(is_known=False)

    def of(self, query: exp.Select, part: exp.Expr | None) -> list[exp.Column]:
        """The names in a part of a query, or in queries in it, that mean something of this query."""
        return [] if part is None else [name for name in part.find_all(exp.Column) if self.meaning(name).query is query]

    def copy(self, node: exp.Expr) -> exp.Expr:
        """A copy whose names mean the same."""
        copied = node.copy()
        for old, new in zip(node.find_all(exp.Column), copied.find_all(exp.Column), strict=True):
            self.meanings[id(new)] = self.meaning(old)
        self.kept.append(copied)
        return copied

    def new(self) -> str:
        """A name that nothing has."""
        return f"{PREFIX}{next(self.numbers)}"

    def column(self, name: str) -> exp.Column:
        """A column of a query below."""
        column = exp.column(name, quoted=True)
        self.meanings[id(column)] = Meaning()
        self.kept.append(column)
        return column


@dataclass(slots=True)
class _Aliases:
    """The aliases of a query: ``used`` by their places, and how many others each expression stands on (``levels``).

    ``are_below``: the query is to be written so that they are columns of one below.
    """

    query: exp.Select
    uses: dict[int, int]
    levels: list[int]
    used: set[int]
    are_below: bool = False

    @classmethod
    def of(cls, query: exp.Select, names: _Names) -> "_Aliases":
        """The aliases of a query."""
        aliases = cls(query, {}, [], set())
        for place, item in enumerate(query.expressions):
            used_places = aliases._note(item, query.expressions[:place], names)
            aliases.used |= used_places
            aliases.levels.append(max((aliases.levels[one] + 1 for one in used_places), default=0))
        aliases.used |= aliases._note(query.args.get("qualify"), query.expressions, names)
        aliases.are_below = bool(aliases.used) or aliases._hides_in_order(names)
        if aliases.are_below:
            aliases._note(query.args.get("group"), query.expressions, names)
            aliases._prefer_aliases(query.args.get("having"), names)
            aliases.used |= aliases._note(query.args.get("having"), query.expressions, names)
        return aliases

    def _hides_in_order(self, names: _Names) -> bool:
        """True if an expression in ORDER BY uses an alias that hides a column, or a field of one that is called like a table.

        DuckDB takes the column or the table there.
        """
        order, tables = self.query.args.get("order"), {part.alias_or_name.casefold() for part in sources(self.query)}
        return order is not None and any(
            (names.meaning(name).hides or (names.meaning(name).query is None and name.parts[0].name.casefold() in tables))
            and any(_is_named(item, name.parts[0].name) and not _is_column(item) for item in self.query.expressions)
            for name in order.find_all(exp.Column)
            if (name.parts[1:] or not isinstance(name.parent, exp.Ordered)) and self._is_outside_of_aggregates(name)
        )

    def _prefer_aliases(self, having: exp.Expr | None, names: _Names) -> None:
        """Lets names in HAVING outside of aggregates mean aliases, unless the rows are grouped by the column that the alias
        hides."""
        group = self.query.args.get("group")
        keys = [] if group is None else [key for key in group.find_all(exp.Expr) if isinstance(key.parent, _AROUND_KEYS)]
        places = [int(key.name) - 1 for key in keys if isinstance(key, exp.Literal) and key.name.isdecimal()]
        places += [self.uses[id(key)] for key in keys if id(key) in self.uses]
        columns = [key for key in keys if id(key) not in self.uses]
        columns += [item.unalias() for place, item in enumerate(self.query.expressions) if place in places]
        grouped = {column.name.casefold() for column in columns if isinstance(column, exp.Column)}
        for name in names.of(self.query, having):
            is_alias = len(name.parts) == 1 and any(_is_named(item, name.name) for item in self.query.expressions)
            if is_alias and name.name.casefold() not in grouped and self._is_outside_of_aggregates(name):
                names.meanings[id(name)] = Meaning(query=self.query, is_alias=True)

    def _is_outside_of_aggregates(self, name: exp.Column) -> bool:
        """True if a name stands in a clause of this query, outside of aggregates and of queries in it."""
        return name.find_ancestor(exp.AggFunc, exp.Query, *_WRAPPERS) is self.query

    def _note(self, part: exp.Expr | None, before: list[exp.Expr], names: _Names) -> set[int]:
        """Notes the aliases that a part uses, and returns their places."""
        used_places = set()
        for name in names.of(self.query, part):
            if not names.meaning(name).is_alias:
                continue
            alias = name.parts[0].name
            places = [place for place, item in enumerate(before) if _is_named(item, alias)]
            if len(places) > 1:
                raise InvalidInputError(
                    f"the alias `{alias}` is ambiguous: {len(places)} expressions before it have it", kind="query"
                )
            self.uses[id(name)] = places[0]
            used_places.add(places[0])
        return used_places


def _is_named(item: exp.Expr, alias: str) -> bool:
    return isinstance(item, exp.Alias) and item.alias.casefold() == alias.casefold()


def _is_column(item: exp.Expr) -> bool:
    """True if an item is a column under its own name."""
    return isinstance(item.this, exp.Column) and item.this.name.casefold() == item.alias.casefold()


class _Rewriting:
    """Splits a query: what it is computed from goes below, what uses an alias stays above."""

    def __init__(self, aliases: _Aliases, names: _Names) -> None:
        self._aliases, self._names, self._query = aliases, names, aliases.query
        self._items = list(self._query.expressions)
        self._below: dict[str, tuple[str, exp.Expr]] = {}
        self._columns = [names.new() for _ in self._items]
        self._stars: list[int] = []

    def carry_out(self) -> None:
        """Writes the query. Raises _StaysAsItIs before anything is changed."""
        self._check()
        query, names, levels, used = self._query, self._names, self._aliases.levels, self._aliases.used
        self._resolve_groups()
        having_above = self._resolve_having()
        for place, item in enumerate(self._items):
            if not levels[place] and not item.is_star:
                # The same expression twice is one column.
                name, _ = self._below.setdefault(_text(item.unalias()), (self._columns[place], item.unalias()))
                self._columns[place] = name
        above: dict[int, exp.Expr] = {}
        for place, item in enumerate(self._items):
            if levels[place]:
                above[place] = self._above(item.unalias())
        for key in _ABOVE:
            if isinstance(part := query.args.get(key), exp.Expr):
                query.set(key, self._above(part))
        having = query.args["having"].pop().this if having_above else None
        condition = self._above(having) if having is not None else None
        outer = [one for place, item in enumerate(self._items) for one in self._outer(place, item, above)]
        inner = exp.Select()
        for key in _BELOW:
            inner.set(key, query.args.get(key))
            query.set(key, None)
        if condition is not None:
            query.set("where", exp.Where(this=condition))
        elif (qualify := query.args.get("qualify")) is not None and not any(part.find(exp.Window) for part in [*outer, qualify]):
            # Its windows are columns by now.
            query.set("where", exp.Where(this=qualify.this))
            query.set("qualify", None)
        stars = [item for item in self._items if item.is_star]
        inner.set(
            "expressions", [*(exp.alias_(node, name, quoted=True, copy=False) for name, node in self._below.values()), *stars]
        )
        below = _from(inner, names.new())
        for level in range(1, max((levels[place] for place in used), default=0) + 1):
            steps = [
                exp.alias_(above[place], self._columns[place], quoted=True, copy=False)
                for place in sorted(used)
                if levels[place] == level
            ]
            below = _from(exp.Select(expressions=[exp.Star(), *steps], from_=below), names.new())
        query.set("expressions", outer)
        query.set("from_", below)

    def _check(self) -> None:
        query, names = self._query, self._names
        parts = [*self._items, *(query.args.get(key) for key in _ABOVE)]
        for part in parts:
            for name in part.find_all(exp.Column) if isinstance(part, exp.Expr) else ():
                if not isinstance(name.this, exp.Star) and not names.meaning(name).is_known:
                    raise _StaysAsItIs
        above = [item for place, item in enumerate(self._items) if self._aliases.levels[place]]
        is_moved = any(isinstance(item.unalias(), exp.Explode) for item in above)
        is_named = query.args.get("windows") and any(part.find(exp.Window) for part in [*above, query.args.get("qualify")] if part)
        many = any(isinstance(item.unalias() if isinstance(item, exp.Alias) else item, _OF_MANY_COLUMNS) for item in self._items)
        in_where = query.args.get("where") is not None and self._uses_alias(query.args["where"])
        in_aggregate = any(self._uses_alias(one) for part in parts for one in self._aggregates(part))
        if is_moved or is_named or many or in_where or in_aggregate:
            raise _StaysAsItIs
        for place, item in enumerate(self._items):
            if item.is_star:
                self._stars.append(place)
        if self._stars and self._stars[-1] - self._stars[0] >= len(self._stars):
            # What each of them stands for is not known: a scan gives the columns that are used.
            raise _StaysAsItIs
        group = query.args.get("group")
        for part in self._ordinals(group):
            place = int(part.name) - 1
            if self._stars or not 0 <= place < len(self._items) or isinstance(self._items[place].unalias(), exp.Literal):
                raise _StaysAsItIs
        places = [self._aliases.uses[id(name)] for name in names.of(query, group) if names.meaning(name).is_alias]
        places += [int(part.name) - 1 for part in self._ordinals(group)]
        if any(self._aliases.levels[place] for place in places):
            raise _StaysAsItIs
        has_windows = any(part.find(exp.Window) for part in parts if isinstance(part, exp.Expr))
        if has_windows and self._is_having_above():
            raise _StaysAsItIs

    @staticmethod
    def _ordinals(group: exp.Expr | None) -> list[exp.Expr]:
        keys = [] if group is None else group.expressions
        return [key for key in keys if isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal()]

    def _is_having_above(self) -> bool:
        names = self._names.of(self._query, self._query.args.get("having"))
        return any(self._names.meaning(name).is_alias and self._aliases.levels[self._aliases.uses[id(name)]] for name in names)

    def _resolve_having(self) -> bool:
        """True if HAVING uses an alias of an alias, and so stands above; otherwise puts expressions in the place of its aliases."""
        if self._is_having_above():
            return True
        self._put_expressions(self._query.args.get("having"))
        return False

    def _resolve_groups(self) -> None:
        """Puts the expressions in the place of numbers and aliases by which the rows are grouped."""
        group = self._query.args.get("group")
        for part in self._ordinals(group):
            part.replace(self._names.copy(self._items[int(part.name) - 1].unalias()))
        self._put_expressions(group)

    def _put_expressions(self, part: exp.Expr | None) -> None:
        for name in self._names.of(self._query, part):
            if self._names.meaning(name).is_alias:
                expression = exp.paren(self._names.copy(self._items[self._aliases.uses[id(name)]].unalias()), copy=False)
                name.replace(_with_fields(expression if name.parts[1:] or name.parent is not part else expression.this, name))

    def _outer(self, place: int, item: exp.Expr, above: dict[int, exp.Expr]) -> Iterator[exp.Expr]:
        if item.is_star:
            if place == self._stars[0]:
                hidden = [name for name, _ in self._below.values()]
                hidden += [self._columns[one] for one in sorted(self._aliases.used) if self._aliases.levels[one]]
                yield exp.Star(except_=[exp.to_identifier(name, quoted=True) for name in hidden])
            return
        is_below = not self._aliases.levels[place] or place in self._aliases.used
        value = self._names.column(self._columns[place]) if is_below else above[place]
        yield exp.alias_(value, item.alias_or_name, quoted=True, copy=False) if item.alias_or_name else value

    def _above(self, node: exp.Expr, *, in_query: bool = False, in_lambda: bool = False, is_windowed: bool = False) -> exp.Expr:
        """A part of the query above, written with the columns of the one below."""
        if isinstance(node, exp.Column):
            return self._column(node)
        is_value = isinstance(node, (exp.Condition, *_WRAPPERS)) and not isinstance(node, exp.Literal)
        is_own = is_value and not (in_query or in_lambda or is_windowed)
        if is_own and (self._is_aggregate(node) or (self._is_known_below(node) and not self._uses_result(node))):
            return self._take(node)
        in_query |= isinstance(node, exp.Query)
        in_lambda |= isinstance(node, exp.Lambda)
        for child in list(node.iter_expressions()):
            windowed = child.arg_key == "this" and (isinstance(node, exp.Window) or (is_windowed and isinstance(node, _WRAPPERS)))
            replacement = self._above(child, in_query=in_query, in_lambda=in_lambda, is_windowed=windowed)
            if replacement is not child:
                self._names.kept.append(child)
                child.replace(replacement)
        return node

    def _column(self, node: exp.Column) -> exp.Expr:
        meaning = self._names.meaning(node)
        if meaning.query is not self._query:
            return node
        if meaning.is_alias:
            return _with_fields(self._names.column(self._columns[self._aliases.uses[id(node)]]), node)
        return self._take(node)

    def _uses_alias(self, node: exp.Expr) -> bool:
        return any(self._names.meaning(name).is_alias for name in self._names.of(self._query, node))

    def _uses_result(self, node: exp.Expr) -> bool:
        """True if a name in a node means an alias or a column of the result: the same text means a column elsewhere."""
        meanings = [self._names.meaning(name) for name in node.find_all(exp.Column)]
        return any(meaning.is_alias or meaning.query is None for meaning in meanings)

    def _is_known_below(self, node: exp.Expr) -> bool:
        text = _text(node)
        return text in self._below or text in self._keys()

    def _take(self, node: exp.Expr) -> exp.Column:
        """The column below that a node becomes."""
        if (text := _text(node)) not in self._below:
            self._below[text] = (self._names.new(), self._names.copy(node))
        return self._names.column(self._below[text][0])

    def _keys(self) -> set[str]:
        """The expressions by which the rows are grouped."""
        group = self._query.args.get("group")
        return set() if group is None else {_text(part.unnest()) for part in group.find_all(exp.Expr) if part is not group}

    def _aggregates(self, part: exp.Expr | None) -> list[exp.Expr]:
        return [] if part is None else [node for node in part.walk(prune=_is_query) if self._is_aggregate(node)]

    @staticmethod
    def _is_aggregate(node: exp.Expr) -> bool:
        """True if a node is an aggregate of the query's groups, and no function of a window."""
        if isinstance(node, _WRAPPERS):
            return _Rewriting._is_aggregate(node.this)
        is_named = isinstance(node, exp.Anonymous) and str(node.this).lower() in _AGGREGATES
        if not (is_named or isinstance(node, (exp.AggFunc, exp.Grouping))):
            return False
        around = node.parent
        while isinstance(around, _WRAPPERS):
            around = around.parent
        return not (isinstance(around, exp.Window) and node.find_ancestor(exp.Window) is around and _is_function_of(around, node))


def _is_function_of(window: exp.Window, node: exp.Expr) -> bool:
    inner = window.this
    while isinstance(inner, _WRAPPERS):
        inner = inner.this
    return inner is node


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _text(node: exp.Expr) -> str:
    return node.sql()


def _with_fields(node: exp.Expr, name: exp.Column) -> exp.Expr:
    """The fields of a value that a name has behind its first part."""
    for part in name.parts[1:]:
        node = exp.Dot(this=node, expression=part.copy())
    return node


def _from(query: exp.Select, name: str) -> exp.From:
    return exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))))
