"""Where does a query call functions, and which names may tablestore give to them?

    SELECT lake.shop.net(price) FROM orders          SELECT __tablestore_function_0_net(price) FROM orders
           -------------

A walk over the tokens: a name with a parenthesis behind it, unless it is a word of SQL's, or names columns.
"""

import re
from collections.abc import Callable, Iterator

from tablestore.sql.query.extent import Tokens
from tablestore.sql.query.tablereferences import CALLS
from tablestore.sql.source import Edit, Path, Span

FUNCTION_PREFIX = "__tablestore_function_"
_PREFIX, _COUNTED = re.compile(rf"{FUNCTION_PREFIX}\d+_"), re.compile(r":_\d+\b")
# With a parenthesis behind them they call nothing; as the name of a function they stand between backticks.
_WORDS = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CAST", "CUBE", "DISTINCT", "ELSE", "EXCEPT", "EXISTS", "EXTRACT",
    "FILTER", "FROM", "GROUP", "HAVING", "IDENTIFIER", "IN", "INTERSECT", "INTERVAL", "IS", "JOIN", "LATERAL", "LIKE",
    "LIMIT", "NOT", "ON", "OR", "ORDER", "OVER", "PARTITION", "RECURSIVE", "ROLLUP", "SELECT", "SETS", "SOME", "TABLE",
    "THEN", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH", "WITHIN",
})  # fmt: skip


def function_edits(tokens: Tokens, resolve: Callable[[Path], str | None]) -> Iterator[Edit]:
    """Put the names that ``resolve`` gives in the places of functions; None leaves a name as it is."""
    at = 0
    while at < len(tokens):
        if not tokens.is_name(at):
            at += 1
            continue
        behind = tokens.after_chain(at)
        if tokens.key(behind) == "(" and not _is_word(tokens, at, behind) and not _names_columns(tokens, at, behind):
            span = Span(tokens[at].start, tokens[behind - 1].end)
            name = resolve(Path(tuple(tokens.name(i) for i in range(at, behind, 2)), span))
            if name is not None:
                yield Edit(span=span, text=name)
        at = behind


def as_written(text: str) -> str:
    """A part of a bound query with functions of the user's under their own names, and question marks that were counted."""
    return _COUNTED.sub("?", without_prefix(text))


def without_prefix(text: str) -> str:
    """A text with functions of the user's under their own names."""
    return _PREFIX.sub("", text)


def _is_word(tokens: Tokens, at: int, behind: int) -> bool:
    return behind == at + 1 and (tokens.key(at) in _WORDS or tokens.key(at).lower() in CALLS)


def _names_columns(tokens: Tokens, at: int, behind: int) -> bool:
    """``… AS t (a, b)`` and ``WITH t (a, b) AS (…)``."""
    end = tokens.after_group(behind)
    return tokens.key(at - 1) == "AS" or (tokens.key(end) == "AS" and tokens.key(end + 1) == "(")
