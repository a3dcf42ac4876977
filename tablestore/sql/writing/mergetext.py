"""Analyses the user's text in a MERGE: columns that are equal, names, and parts that look beyond a row.

t.id = s.id AND t.x > 1        the columns ("id", "id") are equal, and the condition demands more than that
s.x                            is the name of a column, and nothing but that
(SELECT max(x) FROM u)         sees more than the row
"""

from dataclasses import dataclass
from itertools import pairwise

from tablestore.sql.query.tokenstream import Tokens, tokens_of
from tablestore.sql.source import Fragment, Path, Span

# Behind a parenthesis, these begin a query.
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualColumns:
    """Columns that a condition says to be equal, in lower case: ``pairs`` of target and source.

    ``nothing_else``: the condition says no more than this.
    """

    pairs: frozenset[tuple[str, str]] = frozenset()
    nothing_else: bool = False


def equal_columns(on: Fragment, *, target: str, source: str) -> EqualColumns:
    """The columns of these tables that a condition says to be equal: ``t.a = s.b AND …``, in either order."""
    tables = target.casefold(), source.casefold()
    tokens = tokens_of(on)
    pairs: set[tuple[str, str]] = set()
    at, begins, conditions, is_between = 0, True, 0, False
    while at < len(tokens):
        key = tokens.key(at)
        # An AND behind these need not join two conditions. A NOT binds closer than AND.
        if key in ("OR", "CASE"):
            return EqualColumns()
        conditions += begins
        if begins and tokens.is_name(at) and tokens.key(sign := tokens.after_chain(at)) == "=" and tokens.is_name(sign + 1):
            behind = tokens.after_chain(sign + 1)
            columns = dict([_last_two(tokens, at, sign), _last_two(tokens, sign + 1, behind)])
            if tokens.key(behind) in ("", "AND") and set(columns) == set(tables):
                pairs.add((columns[tables[0]], columns[tables[1]]))
        # The first AND behind a BETWEEN is a part of it.
        begins = key == "AND" and not is_between
        is_between = key == "BETWEEN" or (is_between and key != "AND")
        at = max(at + 1, tokens.after_group(at))
    return EqualColumns(pairs=frozenset(pairs), nothing_else=len(pairs) == conditions)


def path_of(fragment: Fragment, *, alone: bool = False) -> Path | None:
    """The name that a fragment begins with, if it is no call and no query; ``alone``: if it is nothing but this name."""
    tokens = tokens_of(fragment)
    if not tokens.is_name(0) or tokens.key(tokens.after_chain(0)) == "(":
        return None
    end = tokens.after_chain(0)
    if alone and end < len(tokens):
        return None
    return Path(tuple(tokens.name(at) for at in range(0, end, 2)), Span(0, tokens[end - 1].end))


def looks_around(fragment: Fragment) -> bool:
    """True if a text may see more than its row: in a subquery, or by a star for all columns that there are."""
    tokens = tokens_of(fragment)
    keys = [tokens.key(at) for at in range(len(tokens))]
    return any((key == "*" and before in ("(", ",")) or (before == "(" and key in _QUERIES) for before, key in pairwise(keys))


def with_table(fragment: Fragment, names: frozenset[str], tables: frozenset[str], table: str) -> list[str | Fragment]:
    """The fragment with a table put before columns of these names, where no table stands, but for those in subqueries."""
    tokens = tokens_of(fragment)
    first = (at for at in range(len(tokens)) if tokens.is_name(at) and tokens.key(at - 1) != ".")
    if not any(tokens.name(at).casefold() in names for at in first):
        return [_part(fragment, 0, len(fragment.text))]
    # sqlglot takes a while to load; most statements do without it.
    from tablestore.sql.query.barecolumns import bare_columns

    pieces: list[str | Fragment] = []
    start = 0
    for place in bare_columns(fragment.text, names, tables):
        pieces += [_part(fragment, start, place), f"{table}."]
        start = place
    return [*pieces, _part(fragment, start, len(fragment.text))]


def _last_two(tokens: Tokens, start: int, end: int) -> tuple[str, str]:
    """Table and column of a name; the table is empty if the name is a column alone."""
    return tokens.name(end - 3).casefold() if end - start > 1 else "", tokens.name(end - 1).casefold()


def _part(fragment: Fragment, start: int, end: int) -> Fragment:
    return Fragment(fragment.text[start:end], Span(fragment.span.start + start, fragment.span.start + end))
