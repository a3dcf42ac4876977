"""Finds columns of a query that cannot be columns of a table: those without a name, and those with the name of another one. Engines
make up names for them, each its own.

    SELECT id, price * 2 AS twice, t.* FROM t      all have one
    SELECT count(*) FROM t                         the first has none
    VALUES (1, 'a')                                none has one
    SELECT a.id, b.id FROM a, b                    the second has that of the first

What sqlglot does not understand is not refused.
"""

from dataclasses import dataclass

from tablestore.sql.depth import deep
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Fragment, Span

_ENDS = frozenset(["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "WINDOW"])


@dataclass(frozen=True, slots=True)
class Unusable:
    """A column of a query, with its place in the statement. ``name``: it is also that of a column before it; None: it has none."""

    column: Fragment
    name: str | None


def unusable_column(query: Fragment) -> Unusable | None:
    """The first column that cannot be one of a table; None if all can."""
    # sqlglot takes a while to load; a session that makes no such table does without it.
    import sqlglot
    from sqlglot import exp

    from tablestore.sql.query.dialect import Spark4

    try:
        with deep():
            tree = sqlglot.parse_one(query.text, read=Spark4)
    except Exception:
        return None
    if isinstance(tree, exp.Values):
        return Unusable(query, None)
    if not isinstance(tree, exp.Query):
        return None
    selects, seen = tree.selects, set[str]()
    for place, one in enumerate(selects):
        name = one.alias_or_name
        if not isinstance(one, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.Star):
            return Unusable(_item(query, place, len(selects)), None)
        if isinstance(one, exp.Alias | exp.Column) and not one.is_star:
            if name.casefold() in seen:
                return Unusable(_item(query, place, len(selects)), name)
            seen.add(name.casefold())
    return None


def _item(query: Fragment, place: int, count: int) -> Fragment:
    """The item at a place of the list of the first SELECT; the whole query if it cannot be told."""
    items = _items(query.text)
    if len(items) != count:
        return query
    span = items[place]
    return Fragment(query.text[span.start : span.end], Span(query.span.start + span.start, query.span.start + span.end))


def _items(text: str) -> list[Span]:
    """The places of the items of the first SELECT."""
    tokens = Tokens(text)
    at = 0
    while at < len(tokens) and tokens.key(at) != "SELECT":
        # A query before it is that of a WITH.
        at = tokens.close(at) + 1 if tokens.words(at - 1, "AS", "(") else at + 1
    at += 1
    if tokens.key(at) in ("DISTINCT", "ALL"):
        at += 1
    items, first = [], at
    while at <= len(tokens):
        if at == len(tokens) or tokens.key(at) in (",", ")") or tokens.key(at) in _ENDS:
            if at > first:
                items.append(Span(tokens[first].start, tokens[at - 1].end))
            if tokens.key(at) != ",":
                break
            first = at + 1
        at = tokens.close(at) + 1 if tokens.key(at) == "(" else at + 1
    return items
