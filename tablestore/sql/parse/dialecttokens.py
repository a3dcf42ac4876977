"""Splits a text into its tokens in the words of a dialect."""

from tablestore.errors import InvalidInputError
from tablestore.sql.parse.duckdbtokens import tokenize_duckdb
from tablestore.sql.parse.tokens import Kind, Token, tokenize
from tablestore.sql.source import Span
from tablestore.sql.sqldialect import SqlDialect


def tokens_in(text: str, span: Span | None = None, dialect: SqlDialect = SqlDialect.SPARK) -> list[Token]:
    """The tokens of a text, or of a part of it, and one of kind END. Raises InvalidInputError for what is not closed."""
    return tokenize(text, span) if dialect is SqlDialect.SPARK else tokenize_duckdb(text, span)


def first_tokens(text: str, span: Span, dialect: SqlDialect) -> tuple[list[Token], InvalidInputError | None]:
    """The tokens up to what is not closed, and the error that says so; None if there is nothing of the kind.

    A text whose query is in another dialect has its first words in tablestore's, and what is behind them is read anew.
    """
    tokens: list[Token] = []
    read = tokenize if dialect is SqlDialect.SPARK else tokenize_duckdb
    try:
        return read(text, span, tokens), None
    except InvalidInputError as error:
        last = tokens[-1].end if tokens else span.start
        return [*tokens, Token(Kind.END, "", last, last, "")], error
