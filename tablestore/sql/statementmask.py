"""Takes secrets out of the text of a statement: their characters become ``*``, all others keep their places.

    SET key = …             the value of a setting is all that follows
    OPTIONS (…), WITH (…)   a list of properties; so are TBLPROPERTIES, SET (…), CREATE SECRET (…) and hints
    map(…), properties =>   of a call, and the texts of one in a query
    'key' = …               wherever it stands
    key 'text'              if the key is called as those of secrets are
    a URL, a text           as in any message

A value behind one of the first four is shown only if its key is known to hold no secret, and then its first word or text alone. It
is found by its place and not by its form, since a statement that is shown is often one that is wrong: without quotes, with a comma
too few, cut off in the middle. Words and texts are those of :mod:`tablestore.sql.parse.tokens`. The time is linear.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tablestore.redaction import (
    is_harmless,
    is_reference,
    is_telling,
    stars,
    without_addresses,
    without_assigned,
    without_urls,
    without_user,
)

_LEXEME = re.compile(
    r"""(?P<BLANK> \s++ )
    | (?P<LINE> --(?: \\\n | [^\r\n] )*+ )
    | (?P<COMMENT> /\* )
    | (?P<TEXT> [rR]'[^']*+'? | '(?: [^'\\]++ | \\(?: . | \Z ) | '' )*+'?
              | [rR]"[^"]*+"? | "(?: [^"\\]++ | \\(?: . | \Z ) | "" )*+"? )
    | (?P<WORD> `(?: [^`]++ | `` )*+`? | [\w$](?: [\w.$] | -(?!-) )*+ )
    | (?P<SIGN> => | := | . )""",
    re.VERBOSE | re.DOTALL,
)
_BORDER = re.compile(r"/\*|\*/")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNING = frozenset(["=", "=>", ":", ":="])
# Words that a list of properties follows, unless they are the name of something.
_LISTS = frozenset(["OPTIONS", "WITH", "TBLPROPERTIES", "PROPERTIES", "SERDEPROPERTIES", "DBPROPERTIES", "SET"])
_BEFORE_NAMES = frozenset(["TABLE", "INTO", "EXISTS", "VIEW", "FROM", "JOIN", "UPDATE", "UNSET", "RESET"])
# What may follow SET and is no setting.
_NO_SETTINGS = frozenset(["TIME", "VAR", "VARIABLE", "CATALOG", "SCHEMA", "DATABASE", "ROLE", "FRESHNESS"])
_SCOPES = frozenset(["GLOBAL", "SESSION", "LOCAL"])
_PROPERTIES = frozenset(["properties", "options"])


def masked_statement(text: str, is_known: Callable[[str], bool] = is_harmless) -> str:
    """A statement, or a piece of one, in which every character of a secret is ``*``; all others keep their places."""
    characters = list(text)
    tokens, comments = _lexed(text, 0)
    _Mask(text, characters, tokens, len(text), is_known).apply()
    for start, end in comments:
        # A comment may be a hint, or what was to be none; what is in it is no comment.
        inside, _ = _lexed(re.sub(r"/\*|\*/|--", "  ", text[start:end]), start)
        _Mask(text, characters, inside, end, is_known).apply()
    return without_urls("".join(characters), stars)


class _Kind(Enum):
    TEXT = auto()
    WORD = auto()
    SIGN = auto()


@dataclass(slots=True)
class _Token:
    kind: _Kind
    start: int
    end: int
    # In upper case.
    key: str


def _lexed(text: str, at: int) -> tuple[list[_Token], list[tuple[int, int]]]:
    """Tokens, and the places of what is inside of comments; ``at``: where the text begins."""
    tokens, comments, position = [], [], 0
    while lexeme := _LEXEME.match(text, position):
        position = lexeme.end()
        match lexeme.lastgroup:
            case "BLANK":
                pass
            case "LINE":
                comments.append((at + lexeme.start() + 2, at + position))
            case "COMMENT":
                inside, position = _comment_ends(text, position)
                comments.append((at + lexeme.end(), at + inside))
            case kind:
                assert kind is not None, "every character is one of them"
                tokens.append(_Token(_Kind[kind], at + lexeme.start(), at + position, lexeme[0].upper()))
    return tokens, comments


def _comment_ends(text: str, position: int) -> tuple[int, int]:
    """The end of what is inside of a comment, which may hold others, and its own."""
    depth = 1
    for border in _BORDER.finditer(text, position):
        depth += 1 if border[0] == "/*" else -1
        if depth == 0:
            return border.start(), border.end()
    return len(text), len(text)


class _Mask:
    """Writes ``*`` into the characters of a text where its tokens say that there may be a secret."""

    def __init__(
        self, text: str, characters: list[str], tokens: list[_Token], end: int, is_known: Callable[[str], bool]
    ) -> None:
        self._text, self._characters, self._tokens, self._end, self._is_known = text, characters, tokens, end, is_known
        self._closed, self._commas = self._brackets()

    def _brackets(self) -> tuple[dict[int, int], dict[int, list[int]]]:
        """By the number of each opening bracket that of the closing one, and those of the commas between them."""
        closed: dict[int, int] = {}
        commas: dict[int, list[int]] = {}
        opened: list[int] = []
        for number, token in enumerate(self._tokens):
            if token.key in _OPENING:
                opened.append(number)
                commas[number] = []
            elif token.key in _CLOSING and opened:
                closed[opened.pop()] = number
            elif token.key == "," and opened:
                commas[opened[-1]].append(number)
        return {**closed, **dict.fromkeys(opened, len(self._tokens))}, commas

    def apply(self) -> None:
        for token in self._tokens:
            if token.kind is _Kind.TEXT:
                self._show(token.start, token.end)
        at, begins = 0, True
        updates = calls = secret = False
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.key == ";":
                begins, updates, calls, secret = True, False, False, False
            before = self._key(at - 1)
            updates |= token.key == "UPDATE"
            calls |= token.key == "CALL"
            secret |= token.key == "SECRET" and before in ("CREATE", "REPLACE", "PERSISTENT", "TEMPORARY")
            follows = self._key(at + 1)
            after = None
            if token.key == "SET" and follows != "(" and not updates and before != "STATEMENT":
                after = self._set(at + 1, strict=begins or before == "EXPLAIN")
            elif follows == "(" and token.key in _LISTS and before not in _BEFORE_NAMES and not (updates and token.key == "SET"):
                after = self._list(at + 1, whole=True)
            elif token.key == "(" and secret:
                after, secret = self._list(at, whole=True), False
            elif token.key == "MAP" and follows in _OPENING and before not in _BEFORE_NAMES:
                after = self._list(at + 1, whole=calls) if follows == "{" else self._map(at + 1, whole=calls)
            elif follows == "=>" and self._names_property(at):
                calls = True
                if self._key(at + 2) != "MAP" or self._key(at + 3) not in _OPENING:
                    after = self._value(self._name(at), at + 2, self._ends(at + 2), whole=True)
            if after is None:
                after = self._pair(at)
            begins = token.key == ";"
            # A text that ends a value may be a key itself.
            at = max(after, at + 1)

    def _names_property(self, at: int) -> bool:
        """Tells whether an argument of a call may hold a secret."""
        name = self._name(at)
        return name.lower() in _PROPERTIES or is_telling(name) or self._text[self._tokens[at].start] == "'"

    # ---- places of values

    def _set(self, at: int, *, strict: bool) -> int | None:
        """Masks the value of a setting; ``strict``: also where it has no sign. None if there is no setting."""
        if self._key(at) in _SCOPES and self._kind(at + 1) not in (None, _Kind.SIGN):
            at += 1
        if self._kind(at) in (None, _Kind.SIGN) or self._key(at) in _NO_SETTINGS:
            return None
        value = at + 1
        if self._key(value) in _ASSIGNING:
            value += 1
        elif not strict:
            return None
        end = next((number for number in range(value, len(self._tokens)) if self._tokens[number].key == ";"), len(self._tokens))
        self._value(self._name(at), value, end, whole=True)
        return end

    def _list(self, opening: int, *, whole: bool) -> int:
        """Masks the values of a list of properties, and returns its end."""
        is_broken = False
        for at, end in self._entries(opening):
            if self._kind(at) is _Kind.SIGN:
                self._hide(at, end, whole=whole)
                continue
            value = at + 1 + (self._key(at + 1) in _ASSIGNING and at + 1 < end)
            if at + 1 < end:
                is_broken = self._tokens[value - 1 if value == end else value].kind is not _Kind.TEXT
                self._value(self._name(at), value, end, whole=whole)
            elif (is_broken or self._kind(at) is _Kind.TEXT) and not self._is_shown(self._name(at)):
                # A value that is cut by its own comma, or that has lost its key.
                self._value("", at, end, whole=whole)
        return self._closed[opening]

    def _map(self, opening: int, *, whole: bool) -> int:
        """Masks the values of a map, every second entry, and returns its end; ``whole``: not only texts."""
        key = ""
        for number, (at, end) in enumerate(self._entries(opening)):
            if number % 2:
                self._value(key, at, end, whole=whole)
            else:
                key = self._name(at) if end == at + 1 else ""
                self._hide(at + 1, end, whole=whole)
        return self._closed[opening]

    def _pair(self, at: int) -> int:
        """Masks the value of a key that stands anywhere, and returns where to go on."""
        token = self._tokens[at]
        if token.kind is _Kind.SIGN:
            return at
        value = at + 1
        assigns = self._key(value) in _ASSIGNING
        value += assigns
        # Two texts side by side are one text, and a name before a text is a column, a function or a type.
        is_option = self._text[token.start] == "'" and assigns and self._key(value - 1) != ":"
        if not is_option and not is_telling(self._name(at)):
            return at
        end = value
        if self._kind(value) is _Kind.TEXT:
            while self._kind(end) is _Kind.TEXT:
                end += 1
        elif is_option:
            end = self._run(value, len(self._tokens))
        if end == value:
            return at
        self._value(self._name(at), value, end, whole=True, until=self._tokens[end - 1].end)
        return end - 1

    # ---- values

    def _value(self, name: str, at: int, end: int, *, whole: bool, until: int | None = None) -> int:
        """Masks the tokens of a value, but for what may be shown of it; returns its end."""
        if at < end and self._is_shown(name):
            first = at + 1 if self._kind(at) is _Kind.TEXT else max(self._run(at, end), at + 1)
            self._show(self._tokens[at].start, self._tokens[first - 1].end, address=True)
            at = first
            if at == end:
                return end
        if end == at + 1 and self._kind(at) is _Kind.TEXT:
            self._hide_text(self._tokens[at])
        else:
            self._hide(at, end, whole=whole, until=until)
        return end

    def _hide(self, at: int, end: int, *, whole: bool, until: int | None = None) -> None:
        """Masks tokens and what is between them; or only texts."""
        if not whole:
            for token in self._tokens[at:end]:
                if token.kind is _Kind.TEXT:
                    self._hide_text(token)
            return
        start = self._tokens[at - 1].end if at else 0
        stop = until if until is not None else self._tokens[end].start if end < len(self._tokens) else self._end
        inside = self._text[start:stop].strip()
        self._write(start + self._text[start:stop].find(inside), stars(inside))

    def _hide_text(self, token: _Token) -> None:
        start, end = self._inside(token)
        if not is_reference(self._text[start:end]):
            self._write(start, stars(self._text[start:end]))

    def _show(self, start: int, end: int, *, address: bool = False) -> None:
        """Masks what any message masks; ``address``: user and password of one without a scheme, too."""
        if self._text[start] in "'\"":
            start, end = self._inside(_Token(_Kind.TEXT, start, end, ""))
        shown = without_assigned(without_user(self._text[start:end], stars), stars)
        self._write(start, without_addresses(shown, stars) if address else shown)

    def _write(self, start: int, masked: str) -> None:
        """Never shows again what is masked."""
        for at, character in enumerate(masked, start):
            if character == "*":
                self._characters[at] = character

    def _is_shown(self, name: str) -> bool:
        return not is_telling(name) and self._is_known(name)

    # ---- tokens

    def _inside(self, token: _Token) -> tuple[int, int]:
        """A text without its quotes, of which the last may be missing."""
        start = token.start + (self._text[token.start] in "rR") + 1
        ends = token.end - start >= 1 and self._text[token.end - 1] == self._text[start - 1]
        return start, token.end - ends

    def _entries(self, opening: int) -> Iterator[tuple[int, int]]:
        at = opening + 1
        for end in (*self._commas[opening], self._closed[opening]):
            if at < end:
                yield at, end
            at = end + 1

    def _run(self, at: int, end: int) -> int:
        """The end of tokens without blanks between them; what ends an entry is none of them."""
        number = at
        while number < end and (number == at or self._tokens[number].start == self._tokens[number - 1].end):
            if self._kind(number) is _Kind.TEXT or self._key(number) in _CLOSING or self._key(number) in (",", ";"):
                break
            number += 1
        return number

    def _ends(self, at: int) -> int:
        """The end of an entry that begins here."""
        while at < len(self._tokens) and self._key(at) not in _CLOSING and self._key(at) not in (",", ";"):
            at = self._closed[at] + 1 if self._key(at) in _OPENING else at + 1
        return min(at, len(self._tokens))

    def _key(self, at: int) -> str:
        return self._tokens[at].key if 0 <= at < len(self._tokens) else ""

    def _kind(self, at: int) -> _Kind | None:
        return self._tokens[at].kind if 0 <= at < len(self._tokens) else None

    def _name(self, at: int) -> str:
        return self._text[self._tokens[at].start : self._tokens[at].end].strip("'\"`")
