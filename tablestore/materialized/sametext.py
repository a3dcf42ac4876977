"""Tells whether two texts say the same query, by their words, then by what they mean to the parser. Pure.

    SELECT id FROM orders            select  id
                                       from `orders` -- all of them            the same words
    SELECT id a FROM orders          SELECT id AS a FROM db.orders             the same query, once its names are filled up

It errs on the side of a difference: then the query is planned again, and nothing is lost. A query with ``SELECT *`` gives other
columns once its tables are altered, so it is planned again each time.
"""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.sql.parse.tokens import Kind, Token, name_of, tokenize
from tablestore.sql.query.dialect import Spark4


def same_words(one: str, other: str) -> bool:
    """True if two texts have the same words: layout, comments, the case of keywords and quotes around plain names do not count."""
    return _words(one) == _words(other)


def same_query(one: str, other: str) -> bool:
    """True if two queries, their names filled up, are the same but for how they are written."""
    return same_words(one, other) or _canonical(one) == _canonical(other)


def takes_all_columns(text: str) -> bool:
    """True if the columns of a query follow those of its tables: it has a ``*`` that stands for columns."""
    if "*" not in text:
        return False
    try:
        return any(select.is_star for select in sqlglot.parse_one(text, read=Spark4).find_all(exp.Select))
    except (SqlglotError, RecursionError):
        return True


# Single words only: of several, each is one.
_KEYWORDS = frozenset(key for key in Spark4.Tokenizer.KEYWORDS if key.isalpha())


def _words(text: str) -> list[tuple[Kind, str]]:
    tokens = tokenize(text)
    end = len(tokens) - 1
    while end > 0 and tokens[end - 1].key == ";":
        end -= 1
    return [_word(token) for token in tokens[:end]]


def _word(token: Token) -> tuple[Kind, str]:
    if token.kind is Kind.WORD:
        return Kind.WORD, token.key if token.key in _KEYWORDS else token.text
    if token.kind is Kind.NAME and (name := name_of(token)).isidentifier():
        return Kind.WORD, name
    return token.kind, token.text


def _canonical(text: str) -> str:
    try:
        tree = sqlglot.parse_one(text, read=Spark4)
        return tree.sql(dialect=Spark4, comments=False, identify=True, normalize=False, normalize_functions="upper")
    except (SqlglotError, RecursionError):
        return text
