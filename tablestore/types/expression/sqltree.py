"""Parses SQL text of a condition or value into sqlglot's tree (Spark's dialect).

As in Spark 4, a quote inside a text is doubled or escaped (``'it''s'``, ``'it\\'s'``), and double quotes make a text too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from tablestore.errors import InvalidInputError

MAX_TEXT = 1 << 20


def parse_tree(text: str, *, what: str, example: str) -> exp.Expression:
    """The tree of one condition or value. Raises InvalidInputError for other text, which says that it is the ``what``."""
    if len(text) > MAX_TEXT:
        raise InvalidInputError(
            f"the {what} has {len(text)} characters, more than the limit of {MAX_TEXT}; write it shorter, or split it", kind="limit"
        )
    dialect = sqlglot.Dialect.get_or_raise("spark")
    try:
        tokens = _join_quotes(dialect.tokenize(text), text)
        trees: list[Any] = dialect.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise InvalidInputError(
            f"expected {_a(what)} such as {example}, found {shorten(text)!r}{_where(error)}; "
            "put column names that are SQL words between backticks"
        ) from error
    if len(trees) != 1 or trees[0] is None:
        raise InvalidInputError(f"expected one condition as {what}, found {shorten(text)!r}")
    tree: exp.Expression = trees[0]
    return tree


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _where(error: SqlglotError) -> str:
    """The parser's message, if it is about the text and not about the parser's classes."""
    reason = str(error).partition("\n")[0]
    return f" ({reason})" if reason and "<class" not in reason else ", which is not whole"


def _join_quotes(tokens: Iterable[Token], text: str) -> list[Token]:
    """Tokens in which ``'it''s'`` is one text, not two beside each other."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            joined[-1] = Token(
                TokenType.STRING,
                last.text + text[token.start] + token.text,
                line=last.line,
                col=last.col,
                start=last.start,
                end=token.end,
            )
        else:
            joined.append(token)
    return joined


def unwrapped(node: exp.Expression) -> exp.Expression:
    """The node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def operands(node: exp.Expression) -> Iterator[exp.Expression]:
    """The operands of a chain of one connector, without recursion: chains may be long."""
    kind, stack = type(node), [node]
    while stack:
        part = unwrapped(stack.pop())
        if type(part) is kind:
            stack += [part.expression, part.this]
        else:
            yield part


def shorten(text: str) -> str:
    """The text, or the beginning of a long one."""
    return text if len(text) <= 200 else text[:200] + "…"
