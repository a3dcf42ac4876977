"""Writes a query so that each of its rows says which row of a stream it comes from, or says why its rows need more than that.

    SELECT *, upper(v) AS u FROM t WHERE id > 1
    SELECT `row`, * EXCEPT (`row`), upper(v) AS u FROM t WHERE id > 1

A query without state makes its rows of one row of a stream at a time: it filters and computes, adds streams up (UNION ALL), and
looks rows up in tables that are no streams. What combines rows of a stream, or needs all of them, has state: it is refused.
The text stays as it is written but for the column that is carried.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.sql.depth import deep
from tablestore.sql.incremental.shapes import NoRuleError
from tablestore.sql.query.dialect import CALL, WRITTEN
from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.parsedquery import ParsedQuery
from tablestore.sql.source import Edit, Span, apply_edits

Origin = tuple[str, str]
"""A stream, and a column of it."""

_ALLOWED = frozenset({"expressions", "from_", "joins", "laterals", "where", "hint", "with_"})
_STATE = {
    "group": "it has a GROUP BY",
    "having": "it has a HAVING",
    "qualify": "it has a QUALIFY",
    "distinct": "it has a DISTINCT",
    "windows": "it has a window",
    "order": "it has an ORDER BY",
    "sort": "it has a SORT BY",
    "cluster": "it has a CLUSTER BY",
    "distribute": "it has a DISTRIBUTE BY",
    "limit": "it has a LIMIT",
    "offset": "it has an OFFSET",
}
_INNER = frozenset({"", "INNER", "CROSS"})
_LOOKS_UP = _INNER | {"OUTER", "SEMI", "ANTI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamShape:
    """The rows of a relation that is a stream, or is made of streams. ``columns``: their names, each with the column of a stream
    that it is, None for one that is computed; None where they are not known. ``filters``: a row of a stream may give none, or
    several."""

    columns: tuple[tuple[str, Origin | None], ...] | None
    filters: bool = False

    @staticmethod
    def of(stream: str, names: Sequence[str]) -> "StreamShape":
        """The shape of a stream itself."""
        return StreamShape(columns=tuple((name, (stream, name)) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryingQuery:
    """A query whose first column is the one that is carried. ``shape``: of the others."""

    text: str
    edits: tuple[Edit, ...]
    shape: StreamShape


def carry(query: ParsedQuery, streams: Mapping[int, StreamShape], column: str) -> CarryingQuery:
    """Writes a query so that a column which the relations ``streams`` (by their numbers) begin with is its first one.

    Raises NoRuleError where a row of the query does not come from one row of a stream.
    """
    if "|>" in query.text:
        raise NoRuleError("it has pipes (|>)")
    with deep():
        try:
            trees = query.take()
        except SqlglotError as error:
            raise NoRuleError("its text is not understood by the planner of streams") from error
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise NoRuleError("it is no query of SELECT and UNION ALL")
        walk = _Walk(query.text, {f"{query.prefix}{number}".casefold(): shape for number, shape in streams.items()}, column)
        shape = walk.query(trees[0], {})
        walk.check_all_read(trees[0])
        query.put_back(trees)
    if shape is None:
        raise NoRuleError("it reads no stream")
    inserts = [Edit(span=Span(at, at), text=text) for at, text in sorted(walk.inserts)]
    text = apply_edits(query.text, inserts, str)
    names = re.finditer(rf"{re.escape(query.prefix)}(\d+)", text)
    return CarryingQuery(
        text=text,
        edits=tuple(Edit(span=Span(*name.span()), relation=int(name[1])) for name in names),
        shape=shape,
    )


@dataclass(slots=True)
class _Walk:
    """Walks a tree from its inner queries outwards. ``inserts``: what is written into the text, by place."""

    text: str
    streams: Mapping[str, StreamShape]
    column: str
    inserts: list[tuple[int, str]] = field(default_factory=list)
    _read: set[int] = field(default_factory=set)
    _named: set[str] = field(default_factory=set)

    def query(self, query: exp.Expr, bound: Mapping[str, StreamShape]) -> StreamShape | None:
        """The shape of a query; None where it reads no stream. ``bound``: the queries of WITH around it."""
        clause = query.args.get("with_")
        if clause is not None:
            bound = self._with(clause, bound)
        if isinstance(query, exp.Subquery):
            shape = self.query(query.this, bound)
            if shape is not None:
                _check_clauses(query, {"this", "with_", "alias"})
            return shape
        if isinstance(query, exp.SetOperation):
            return self._union(query, bound)
        return self._select(query, bound) if isinstance(query, exp.Select) else None

    def check_all_read(self, tree: exp.Expr) -> None:
        """Raises NoRuleError for a stream in a place where its rows are not carried: in a condition, or in parentheses."""
        for table in tree.find_all(exp.Table):
            name = table.name.casefold()
            if (name in self.streams or (not table.db and name in self._named)) and id(table) not in self._read:
                raise NoRuleError("a subquery of it, or a join in parentheses, reads a stream")

    def _with(self, clause: exp.Expr, bound: Mapping[str, StreamShape]) -> Mapping[str, StreamShape]:
        inner = dict(bound)
        for item in clause.expressions:
            inner.pop(item.alias.casefold(), None)
            if (shape := self.query(item.this, inner)) is None:
                continue
            if clause.args.get("recursive"):
                raise NoRuleError("it has a recursive WITH")
            inner[item.alias.casefold()] = self._renamed(shape, item.args.get("alias"))
            self._named.add(item.alias.casefold())
        return inner

    def _union(self, query: exp.SetOperation, bound: Mapping[str, StreamShape]) -> StreamShape | None:
        sides = [self.query(side, bound) for side in (query.left, query.right)]
        shapes = [shape for shape in sides if shape is not None]
        if not shapes:
            return None
        if not isinstance(query, exp.Union) or query.args.get("distinct"):
            raise NoRuleError(f"it has a {type(query).__name__.upper()} that compares rows")
        if len(shapes) < len(sides):
            raise NoRuleError("a side of its UNION ALL reads no stream, so its rows would come again with each batch")
        _check_clauses(query, {"this", "expression", "distinct", "with_", "by_name", "side", "kind", "on"})
        if query.args.get("by_name"):
            raise NoRuleError("it has a UNION ALL BY NAME")
        left, right = (shape.columns for shape in shapes)
        columns = None
        if left is not None and right is not None and len(left) == len(right):
            # Of each stream a column may be another one; it is the key of each only if its name is the same in all.
            columns = tuple(
                (name, origin if origin is not None and other is not None and origin[1] == other[1] else None)
                for (name, origin), (_, other) in zip(left, right, strict=True)
            )
        return StreamShape(columns=columns, filters=any(shape.filters for shape in shapes))

    def _select(self, select: exp.Select, bound: Mapping[str, StreamShape]) -> StreamShape | None:
        source = select.args.get("from_")
        joins = select.args.get("joins") or []
        inputs = [] if source is None else [self._input(place, bound) for place in (source.this, *(join.this for join in joins))]
        carrying = [place for place, shape in enumerate(inputs) if shape is not None]
        if not carrying:
            return None
        if len(carrying) > 1:
            raise NoRuleError("it joins two streams; a table that rows are looked up in is read as of now: t TIMESTAMP AS OF now()")
        (place,) = carrying
        shape = inputs[place]
        assert shape is not None, "it is among those that carry"
        _check_clauses(select, _ALLOWED)
        self._check_joins(joins, place)
        self._check_values(select)
        carrier = (source if place == 0 else joins[place - 1]).this if source is not None else None
        assert carrier is not None, "a SELECT without FROM reads no stream"
        alias = carrier.alias_or_name.casefold()
        self._carry(select, alias)
        filters = shape.filters or bool(joins) or bool(select.args.get("where")) or bool(select.args.get("laterals"))
        columns = _columns(select, alias, shape.columns, is_alone=not joins)
        return StreamShape(columns=columns, filters=filters or _makes_rows(select))

    def _input(self, place: exp.Expr, bound: Mapping[str, StreamShape]) -> StreamShape | None:
        if isinstance(place, exp.Table):
            name = place.name.casefold()
            shape = self.streams.get(name) or (None if place.db else bound.get(name))
            if shape is not None:
                self._read.add(id(place))
        elif isinstance(place, exp.Subquery) and isinstance(place.this, exp.Query):
            shape = self.query(place.this, bound)
        else:
            return None
        if shape is None:
            return None
        if place.args.get("joins") or place.args.get("pivots") or place.args.get("sample") or place.args.get("laterals"):
            raise NoRuleError("it has joins in parentheses, a PIVOT, an UNPIVOT or a TABLESAMPLE")
        _check_clauses(place, {"this", "alias", "db", "catalog", "with_"})
        return self._renamed(shape, place.args.get("alias"))

    def _renamed(self, shape: StreamShape, alias: exp.Expr | None) -> StreamShape:
        """The shape behind an alias with names of columns, which then begins with the one that is carried."""
        names = [] if alias is None else alias.args.get("columns") or []
        if not names:
            return shape
        first = names[0].meta.get("start")
        if first is None:
            raise NoRuleError("its text is not understood by the planner of streams")
        self.inserts.append((first, f"{quote_name(self.column)}, "))
        if shape.columns is None or len(shape.columns) != len(names):
            return replace(shape, columns=None)
        renamed = tuple((name.name, origin) for name, (_, origin) in zip(names, shape.columns, strict=True))
        return replace(shape, columns=renamed)

    def _check_joins(self, joins: Sequence[exp.Join], place: int) -> None:
        for number, join in enumerate(joins, 1):
            kind, side = (join.args.get("kind") or "").upper(), (join.args.get("side") or "").upper()
            is_before = number <= place
            fits = kind in _INNER and not side if is_before else kind in _LOOKS_UP and side in ("", "LEFT")
            if join.args.get("method") or not fits:
                words = " ".join(filter(None, (join.args.get("method"), side, kind)))
                raise NoRuleError(f"it has a {words} JOIN that may give rows for rows of a stream that did not come yet")

    def _check_values(self, select: exp.Select) -> None:
        for value in _own_values(select):
            if isinstance(value, exp.Window):
                raise NoRuleError("it has a window function")
            if isinstance(value, exp.AggFunc):
                raise NoRuleError(
                    f"it has an aggregate ({value.meta[CALL].name if CALL in value.meta else value.sql_name().lower()})"
                )

    def _carry(self, select: exp.Select, alias: str) -> None:
        first = True
        for value in select.expressions:
            written = value.meta.get(WRITTEN)
            if written is None:
                raise NoRuleError("its text is not understood by the planner of streams")
            if first:
                self.inserts.append((written[0], f"{quote_name(self.column)}, "))
                first = False
            star = value.this if isinstance(value, exp.Column) else value
            if not isinstance(star, exp.Star) or (isinstance(value, exp.Column) and value.table.casefold() != alias):
                continue
            behind = self.text.find("(", written[0], written[1]) if star.args.get("except_") else -1
            if behind < 0:
                self.inserts.append((written[1], f" EXCEPT ({quote_name(self.column)})"))
            else:
                self.inserts.append((behind + 1, f"{quote_name(self.column)}, "))


def _check_clauses(query: exp.Expr, allowed: "frozenset[str] | set[str]") -> None:
    for clause, value in query.args.items():
        if value and clause not in allowed:
            raise NoRuleError(_STATE.get(clause, f"it has a clause that no stream has here ({clause.strip('_').upper()})"))


def _own_values(select: exp.Select) -> Iterator[exp.Expr]:
    """The parts of the values that a SELECT computes, without those of queries in them."""
    waiting: list[exp.Expr] = list(select.expressions)
    while waiting:
        value = waiting.pop()
        if isinstance(value, exp.Query):
            continue
        yield value
        waiting.extend(value.iter_expressions())


def _makes_rows(select: exp.Select) -> bool:
    return any(isinstance(value, exp.UDTF | exp.Explode | exp.Posexplode | exp.Inline) for value in _own_values(select))


def _columns(
    select: exp.Select, alias: str, columns: tuple[tuple[str, Origin | None], ...] | None, *, is_alone: bool
) -> tuple[tuple[str, Origin | None], ...] | None:
    """The columns of a SELECT, each with the column of a stream that it is. ``is_alone``: nothing is joined with the stream."""
    if columns is None or select.args.get("laterals"):
        return None
    by_name = {name.casefold(): origin for name, origin in columns}
    known: list[tuple[str, Origin | None]] = []
    for value in select.expressions:
        inner = value.unalias()
        star = inner.this if isinstance(inner, exp.Column) else inner
        if isinstance(star, exp.Star):
            if not is_alone and (not isinstance(inner, exp.Column) or inner.table.casefold() != alias):
                return None
            left_out = {one.name.casefold() for one in star.args.get("except_") or ()}
            known += [(name, origin) for name, origin in columns if name.casefold() not in left_out]
            continue
        is_plain = isinstance(inner, exp.Column) and inner.table.casefold() in ({"", alias} if is_alone else {alias})
        known.append((value.alias_or_name, by_name.get(inner.name.casefold()) if is_plain else None))
    return tuple(known)
