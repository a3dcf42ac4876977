"""Checks that a text which was stored is one query, and nothing else.

Whoever can write into a warehouse can write any text into a definition, and it runs in the process that reads it.
"""

from functools import lru_cache

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.sql.depth import too_deep
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Span, marked
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import Query
from tablestore.sql.stored.sparkreach import reaches

MOST_CHARACTERS = 1_000_000
"""Of a query that is stored."""

# What begins so changes a table, wherever it stands: Spark takes INSERT behind FROM, and behind the queries of a WITH.
_CHANGES = {"INSERT": ("INTO", "OVERWRITE"), "MERGE": ("INTO",)}


@lru_cache(maxsize=256)
def check_stored_query(text: str, dialect: SqlDialect = SqlDialect.SPARK) -> None:
    """Raises InvalidInputError for a text that is no query, or more than one; UnsupportedError for what reaches out of one.

    In DuckDB's words the engine looks at it once more, with DuckDB's own parser.

    Pure. The time is linear in the length of the text.
    """
    if len(text) > MOST_CHARACTERS:
        raise InvalidInputError(f"expected a query of at most {MOST_CHARACTERS:,} characters, found {len(text):,}", kind="limit")
    try:
        statement = parse_statement(text, dialect=dialect)
    except RecursionError as error:
        raise too_deep() from error
    except TablestoreError as error:
        raise InvalidInputError(f"expected one query: {error.message}", kind="not-a-query") from error
    if not isinstance(statement, Query):
        raise InvalidInputError("expected one query, found another statement", kind="not-a-query")
    tokens = Tokens(text, dialect)
    if dialect is SqlDialect.DUCKDB:
        return
    for at in tokens.places(_CHANGES):
        if tokens.key(at + 1) in _CHANGES[tokens.key(at)]:
            message = f"expected one query, found {tokens.key(at)} {tokens.key(at + 1)}"
            raise InvalidInputError(f"{message}\n{marked(text, Span(tokens[at].start, tokens[at + 1].end))}", kind="not-a-query")
    for reach in reaches(tokens):
        message = f"a stored query does not reach out of its tables, found {reach.what}"
        raise UnsupportedError(f"{message}\n{marked(text, reach.span)}", kind="unsafe")
