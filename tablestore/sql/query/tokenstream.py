"""Finds where a name, an expression or a group of parentheses ends, by the tokens of a text that is not parsed.

An expression is operands with operators between them; its end is the first token that continues neither.
"""

from collections.abc import Container, Iterator

from tablestore.memo import MOST_CHARACTERS
from tablestore.sql.depth import MOST_LEVELS, too_deep
from tablestore.sql.parse.dialecttokens import tokens_in
from tablestore.sql.parse.duckdbtokens import text_of_duckdb
from tablestore.sql.parse.tokens import Kind, Token, name_of, text_of
from tablestore.sql.source import Fragment, marked, syntax_error
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.typestring import MAX_TYPE_DEPTH

_BINARY = frozenset(["+", "-", "*", "/", "%", "||", "&", "|", "^", "DIV", "::"])
_LITERAL_TYPES = frozenset(["DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "X"])
_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in ["YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"]
    for plural in ("", "S")
)


_NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
_BEHIND_A_COMPARISON = frozenset({"AND", "OR", "THEN", "WHEN", "ELSE", "END", "FROM", "WHERE"})
QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
"""Words that a query begins with."""


class Tokens:
    """The tokens of a text; each parenthesis knows its partner. Hints are not among them: ``hints`` has those in front of a place.

    Raises InvalidInputError for parentheses that are nested more than ``MOST_LEVELS`` deep, and types more than ``MAX_TYPE_DEPTH``.
    """

    def __init__(self, text: str, dialect: SqlDialect = SqlDialect.SPARK) -> None:
        self.text, self.dialect = text, dialect
        self.hints: dict[int, list[Token]] = {}
        self._tokens: list[Token] = []
        for token in tokens_in(text, dialect=dialect)[:-1]:
            if token.kind is Kind.HINT:
                self.hints.setdefault(len(self._tokens), []).append(token)
            else:
                self._tokens.append(token)
        self._keys = [token.key for token in self._tokens]
        self._closing: dict[int, int] = {}
        open_ones: list[int] = []
        open_types = 0
        for at, key in enumerate(self._keys):
            if key == "<" and self.key(at - 1) in _NESTED_TYPES:
                open_types += 1
                if open_types > MAX_TYPE_DEPTH:
                    raise syntax_error(text, self._tokens[at].span, f"a type is nested more than {MAX_TYPE_DEPTH} levels deep")
            elif key == ">":
                open_types -= open_types > 0
            elif key in _BEHIND_A_COMPARISON:
                # ``array < a AND`` began no type.
                open_types = 0
            elif key == "(":
                open_ones.append(at)
                if len(open_ones) > MOST_LEVELS:
                    raise too_deep(f"\n{marked(text, self._tokens[at].span)}")
            elif key == ")" and open_ones:
                self._closing[open_ones.pop()] = at

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, at: int) -> Token:
        return self._tokens[at]

    def get(self, at: int) -> Token | None:
        """A token, None outside of the text."""
        return self._tokens[at] if 0 <= at < len(self._tokens) else None

    def key(self, at: int) -> str:
        """The keyword or symbol at a place; empty for a name in backticks, a literal, and outside of the text."""
        return self._keys[at] if 0 <= at < len(self._keys) else ""

    def places(self, words: Container[str]) -> Iterator[int]:
        """The places of these keywords or symbols, in order."""
        return (at for at, key in enumerate(self._keys) if key in words)

    def words(self, at: int, *words: str) -> bool:
        """True if these words stand here one behind the other."""
        return all(self.key(at + i) == word for i, word in enumerate(words))

    def is_name(self, at: int) -> bool:
        """True if a word or a name in backticks stands here."""
        token = self.get(at)
        return token is not None and token.kind in (Kind.WORD, Kind.NAME)

    def name(self, at: int) -> str:
        """The name that stands here, without backticks."""
        return name_of(self._tokens[at])

    def value(self, at: int) -> str:
        """The value of the text between quotes that stands here."""
        token = self._tokens[at]
        return text_of(self.text, token) if self.dialect is SqlDialect.SPARK else text_of_duckdb(self.text, token)

    def close(self, at: int) -> int:
        """The partner of the opening parenthesis at a place; the end of the text if there is none."""
        return self._closing.get(at, len(self._tokens))

    def line(self, first: int, end: int) -> str:
        """The text between two tokens on one line: one blank where there are blanks, no comments, subqueries as ``(…)``."""
        parts: list[str] = []
        # A group that is not closed ends with the text.
        at, end = first, min(end, len(self._tokens))
        while at < end:
            if at > first and self._tokens[at - 1].end < self._tokens[at].start:
                parts.append(" ")
            if self.key(at) == "(" and self.key(at + 1) in QUERY_WORDS:
                parts.append("(…)")
                at = min(self.after_group(at), end)
            else:
                parts.append(self._tokens[at].text)
                at += 1
        return "".join(parts)

    def after_group(self, at: int) -> int:
        """The place behind the group of parentheses that begins here, if one does."""
        return min(self.close(at) + 1, len(self)) if self.key(at) == "(" else at

    def after_chain(self, at: int) -> int:
        """The place behind a name of parts with dots between them."""
        at += 1
        while self.key(at) == "." and self.is_name(at + 1):
            at += 2
        return at

    def after_expression(self, at: int) -> int:
        """The place behind an expression: literals, names, calls, casts, intervals, parameters, and operators between them."""
        at = self._after_operand(at)
        while self.key(at) in _BINARY:
            at = self._after_operand(at + 1)
        return at

    def _after_operand(self, at: int) -> int:
        while self.key(at) in ("+", "-", "~"):
            at += 1
        token = self.get(at)
        if token is None:
            return at
        if token.key == "(":
            return self.after_group(at)
        if token.key == "CASE":
            return self._after_case(at)
        if token.key == "INTERVAL":
            at = self._after_operand(at + 1)
            while self.key(at) in _UNITS or self.key(at) == "TO" or (self._is_count(at) and self.key(at + 1) in _UNITS):
                at += 1
            return at
        following = self.get(at + 1)
        if token.key == ":" and following is not None and following.start == token.end:
            return at + 2
        if token.key in _LITERAL_TYPES and following is not None and following.kind is Kind.TEXT:
            return at + 2
        if token.kind in (Kind.WORD, Kind.NAME):
            return self.after_group(self.after_chain(at))
        return at + 1

    def _is_count(self, at: int) -> bool:
        token = self.get(at)
        return token is not None and token.kind in (Kind.NUMBER, Kind.TEXT)

    def _after_case(self, at: int) -> int:
        depth = 0
        while at < len(self):
            depth += {"CASE": 1, "END": -1}.get(self.key(at), 0)
            at += 1
            if depth == 0:
                break
        return at


def tokens_of(fragment: Fragment) -> Tokens:
    """The tokens of a fragment, which are read once, but for those of a long one: they are not held. Raises as :class:`Tokens`."""
    tokens: Tokens = fragment.read[0] if fragment.read else Tokens(fragment.text, fragment.dialect)
    if not fragment.read and len(fragment.text) <= MOST_CHARACTERS:
        fragment.read.append(tokens)
    return tokens
