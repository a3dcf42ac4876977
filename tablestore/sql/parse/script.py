"""Splits a script into its statements.

They stand between ``;``. Those inside of texts, names and comments do not count, and a STATEMENT SET with its INSERTs is one
statement.
"""

from itertools import pairwise

from tablestore.sql.parse.tokens import Token, tokenize
from tablestore.sql.source import Fragment, Span


def split_script(text: str) -> tuple[Fragment, ...]:
    """The statements of a script with their places, without the ``;`` and the comments around them.

    Raises InvalidInputError for a text, a name or a comment that is not closed.
    """
    tokens = tokenize(text)[:-1]
    statements: list[Fragment] = []
    first = 0
    while first < len(tokens):
        end = _end(tokens, first)
        if end > first:
            span = Span(tokens[first].start, tokens[end - 1].end)
            statements.append(Fragment(text[span.start : span.end], span))
        first = end + 1
    return tuple(statements)


def _end(tokens: list[Token], first: int) -> int:
    """The place of the ``;`` that ends the statement which begins at ``first``, or of the end."""
    a_set = _begins_set([token.key for token in tokens[first : first + 5]])
    for place in range(first, len(tokens)):
        if tokens[place].key == ";" and not (a_set and not _closes_set(tokens, place)):
            return place
    return len(tokens)


def _begins_set(keys: list[str]) -> bool:
    return keys[0] in ("EXECUTE", "BEGIN", "EXPLAIN") and ("STATEMENT", "SET") in pairwise(keys)


def _closes_set(tokens: list[Token], place: int) -> bool:
    return tokens[place - 1].key == "END" and tokens[place - 2].key == ";"
