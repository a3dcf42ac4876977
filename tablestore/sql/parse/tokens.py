"""Splits a SQL text into its words, texts, numbers and signs, with their places.

Read as Spark reads them:

    word       letters, digits, _ and (not first) $
    `name`     any characters; a backtick in it is doubled
    'text'     also "text"; with backslash escapes, a quote in it may be doubled; r'text' has no escapes
    comments   -- to the end of the line, and /* … */, which may hold others; they are left out
    hint       /*+ … */ is kept as a token

Everything else is one sign each, but for ``=>``, ``|>``, ``||`` and ``::``. The time is linear in the length of the text.
"""

import re
from dataclasses import dataclass
from enum import Enum

from tablestore.sql.source import Span, syntax_error


class Kind(Enum):
    """The kinds of tokens."""

    WORD = "word"
    NAME = "name"  # between backticks
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"
    HINT = "hint"
    END = "end"


# Not frozen, as that doubles the time to make one, and long queries have thousands.
@dataclass(slots=True)
class Token:
    """Characters ``start`` to ``end`` of the text. ``key``: a word in upper case, a sign itself, otherwise empty."""

    kind: Kind
    text: str
    start: int
    end: int
    key: str

    @property
    def span(self) -> Span:
        """The span of the token."""
        return Span(self.start, self.end)


# Every repetition is possessive: nothing is tried twice. Blanks and comments to the end of a line go with what is behind them.
_TOKEN = re.compile(
    r"""[\s\ufeff]*+ (?: --(?: \\\n | [^\r\n] )*+ [\s\ufeff]*+ )*+
    (?: (?P<COMMENT> /\* )
      | (?P<TEXT> [rR]'[^']*+' | [rR]"[^"]*+" | '(?: [^'\\]++ | \\. | '' )*+' | "(?: [^"\\]++ | \\. | "" )*+" )
      | (?P<NAME> `(?: [^`]++ | `` )*+` )
      | (?P<NUMBER> (?: \d++(?:\.\d*+)? | (?<![\w`)\]])\.\d++ ) (?:[eE][+-]?\d++)? (?:[bB][dD]|[lLsSyYdDfF])? (?![\w$]) )
      | (?P<WORD> \w[\w$]*+ )
      | (?P<SIGN> => | \|> | \|\| | :: | . )
      | (?P<END> \Z ) )""",
    re.VERBOSE | re.DOTALL,
)
_KINDS: dict[str | None, Kind] = {kind.name: kind for kind in Kind}
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NOT_CLOSED = {"'": "text", '"': "text", "`": "name"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|(''|\"\")", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def tokenize(text: str, span: Span | None = None, tokens: list[Token] | None = None) -> list[Token]:
    """The tokens of a text, or of a part of it, and one of kind END. ``tokens``: an empty list that takes them, as far as they go.

    Raises InvalidInputError for what is not closed, and for an empty name.
    """
    at, end = (0, len(text)) if span is None else (span.start, span.end)
    tokens = [] if tokens is None else tokens
    add, kinds = tokens.append, _KINDS
    while at < end:
        match = _TOKEN.match(text, at, end)
        assert match is not None, "the last alternative takes any character"
        kind = match.lastgroup
        word = match[kind or 0]
        at = match.end()
        start = at - len(word)
        if kind == "WORD":
            add(Token(kinds[kind], word, start, at, word.upper()))
        elif kind == "SIGN":
            if word in _NOT_CLOSED:
                raise syntax_error(
                    text, Span(start, at), f"the {_NOT_CLOSED[word]} that begins here is not closed: expected another {word}"
                )
            add(Token(kinds[kind], word, start, at, word))
        elif kind == "COMMENT":
            at = _comment_end(text, start, end)
            if text.startswith("+", start + 2):
                add(Token(Kind.HINT, text[start:at], start, at, ""))
        elif word == "``":
            raise syntax_error(text, Span(start, at), "expected a name between the backticks, found an empty name")
        elif kind != "END":
            add(Token(kinds[kind], word, start, at, ""))
    last = tokens[-1].end if tokens else at
    add(Token(Kind.END, "", last, last, ""))
    return tokens


def name_of(token: Token) -> str:
    """The name that a word, or a name between backticks (in DuckDB's words also quotes), stands for."""
    if token.kind is not Kind.NAME:
        return token.text
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)


def text_of(source: str, token: Token) -> str:
    """The text that a token of kind TEXT stands for. Raises InvalidInputError for an escape that is no character."""
    body = token.text
    if body[0] in "rR":
        return body[2:-1]
    if "\\" not in body and body[0] * 2 not in body[1:-1]:
        return body[1:-1]
    quote = body[0]

    def unescape(match: re.Match[str]) -> str:
        four, eight, octal, character, doubled = match.groups()
        if doubled:
            return quote if doubled[0] == quote else doubled
        if octal:
            return chr(int(octal, 8))
        if four or eight:
            code = int(four or eight, 16)
            if code > 0x10FFFF:
                place = token.start + 1 + match.start()
                raise syntax_error(source, Span(place, place + 10), f"{match[0]} is no character: the last one is \\U0010FFFF")
            return chr(code)
        return _ESCAPED.get(character, character)

    value = _ESCAPE.sub(unescape, body[1:-1])
    try:
        # \uD83D\uDE00 are two halves of one character.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise syntax_error(source, token.span, "this text holds half a character: a \\uD… that stands alone") from None


def _comment_end(text: str, start: int, end: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start, end):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise syntax_error(text, Span(start, start + 2), "the comment that begins here is not closed: expected */")
