"""Splits a text in DuckDB's SQL into words, texts, numbers and signs, as :mod:`tablestore.sql.parse.tokens` does one in Spark's.

    "name"     any characters; a quote in it is doubled; also between backticks
    'text'     without escapes, a quote in it is doubled; e'text' has escapes; $tag$ text $tag$
    comments   -- to the end of the line, and /* … */; they are left out, and a hint /*+ … */ is kept

The engine looks at the whole text once more with DuckDB's own parser, so what is read in another way here is refused there.
"""

import re

from tablestore.sql.parse.tokens import Kind, Token
from tablestore.sql.source import Span, syntax_error

_TOKEN = re.compile(
    r"""[\s\ufeff]*+ (?: --[^\r\n]*+ [\s\ufeff]*+ )*+
    (?: (?P<COMMENT> /\* )
      | (?P<TEXT> [eE]'(?: [^'\\]++ | \\. | '' )*+' | '(?: [^']++ | '' )*+'
                | \$(?P<tag>(?:[^\W\d]\w*+)?)\$ .*? \$(?P=tag)\$ )
      | (?P<NAME> "(?: [^"]++ | "" )*+" | `(?: [^`]++ | `` )*+` )
      | (?P<NUMBER> 0[xX][0-9a-fA-F_]++ | (?: \d[\d_]*+(?:\.[\d_]*+)? | (?<![\w`")\]])\.\d[\d_]*+ ) (?:[eE][+-]?\d++)? )
      | (?P<WORD> (?: [^\W\d] | [^\x00-\x7f\s] ) (?: [\w$] | [^\x00-\x7f\s] )*+ )
      | (?P<SIGN> => | \|\| | :: | . )
      | (?P<END> \Z ) )""",
    re.VERBOSE | re.DOTALL,
)
_NOT_CLOSED = {"'": "text", '"': "name", "`": "name"}


def tokenize_duckdb(text: str, span: Span | None = None, tokens: list[Token] | None = None) -> list[Token]:
    """The tokens of a text, or of a part of it, and one of kind END; ``tokens`` takes them, as far as they go.

    Raises InvalidInputError for what is not closed, and for an empty name.
    """
    at, end = (0, len(text)) if span is None else (span.start, span.end)
    tokens = [] if tokens is None else tokens
    while at < end:
        match = _TOKEN.match(text, at, end)
        assert match is not None, "the last alternative takes any character"
        kind = "TEXT" if match["TEXT"] is not None else str(match.lastgroup)
        word = match[kind]
        at = match.end()
        start = at - len(word)
        if kind == "COMMENT":
            at = text.find("*/", start + 2, end) + 2
            if at < 2:
                raise syntax_error(text, Span(start, start + 2), "the comment that begins here is not closed: expected */")
            if text.startswith("+", start + 2):
                tokens.append(Token(Kind.HINT, text[start:at], start, at, ""))
        elif kind == "SIGN":
            if word in _NOT_CLOSED:
                raise syntax_error(
                    text, Span(start, at), f"the {_NOT_CLOSED[word]} that begins here is not closed: expected another {word}"
                )
            tokens.append(Token(Kind.SIGN, word, start, at, word))
        elif kind != "END":
            if kind == "NAME" and len(word) == 2:
                raise syntax_error(text, Span(start, at), f"expected a name between the quotes {word}, found an empty name")
            tokens.append(Token(Kind[kind], word, start, at, word.upper() if kind == "WORD" else ""))
    last = tokens[-1].end if tokens else at
    tokens.append(Token(Kind.END, "", last, last, ""))
    return tokens


def text_of_duckdb(source: str, token: Token) -> str:
    """The text that a token of kind TEXT stands for. Raises InvalidInputError for one with escapes: only DuckDB reads it."""
    if token.text[0] != "'":
        raise syntax_error(source, token.span, "expected a text between single quotes")
    return token.text[1:-1].replace("''", "'")
