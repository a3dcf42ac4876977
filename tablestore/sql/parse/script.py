"""Splits a script into its statements.

They stand between ``;``. Those inside of texts, names and comments do not count, and a STATEMENT SET with its INSERTs is one
statement.
"""

from collections.abc import Iterator
from itertools import pairwise

from tablestore.sql.parse.dialecttokens import first_tokens, tokens_in
from tablestore.sql.parse.tokens import Kind, Token, name_of, tokenize
from tablestore.sql.source import Fragment, Span
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect


def split_script(text: str, dialect: SqlDialect = SqlDialect.SPARK) -> tuple[Fragment, ...]:
    """The statements of a script with their places and dialects, without the ``;`` and the comments around them.

    ``dialect``: that of the session; what stands behind ``SET 'table.sql-dialect' = …`` is read in that one, and RESET leads back.
    Raises InvalidInputError for a text, a name or a comment that is not closed.
    """
    if dialect is SqlDialect.SPARK and SQL_DIALECT not in text:
        return tuple(_statements(text, tokenize(text)[:-1], dialect))
    first, statements, start = dialect, list[Fragment](), 0
    while True:
        tokens, fault = first_tokens(text, Span(start, len(text)), dialect)
        for statement in _statements(text, tokens[:-1], dialect):
            statements.append(statement)
            changed = _dialect_behind(statement, first)
            if changed is not None and changed is not dialect:
                dialect, start = changed, statement.span.end
                break
        else:
            if fault is not None:
                raise fault
            return tuple(statements)


def _dialect_behind(statement: Fragment, first: SqlDialect) -> SqlDialect | None:
    """The dialect that a SET or RESET chooses for what follows; None for another statement. ``first``: that of the session."""
    words = [token for token in tokens_in(statement.text, dialect=statement.dialect) if token.kind is not Kind.END]
    named = [name_of(token).strip("'\"").lower() for token in words]
    if named[:1] == ["reset"] and (len(named) == 1 or "".join(named[1:]) == SQL_DIALECT):
        return first
    chosen = "".join(named[1:]).partition("=")
    if named[:1] == ["set"] and chosen[0] == SQL_DIALECT and chosen[2] in tuple(SqlDialect):
        return SqlDialect(chosen[2])
    return None


def _statements(text: str, tokens: list[Token], dialect: SqlDialect) -> Iterator[Fragment]:
    """The statements of tokens, each in the dialect."""
    first = 0
    while first < len(tokens):
        end = _end(tokens, first)
        if end > first:
            span = Span(tokens[first].start, tokens[end - 1].end)
            yield Fragment(text[span.start : span.end], span, dialect)
        first = end + 1


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
