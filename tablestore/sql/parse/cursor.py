"""Reads tokens from left to right; its errors say what was expected at a place, and what was found.

Whatever is asked for and not found is remembered until the cursor moves, so every error lists all that could have stood there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.sql.parse.dialecttokens import first_tokens
from tablestore.sql.parse.tokens import Kind, Token, name_of, text_of, tokenize
from tablestore.sql.source import Fragment, Path, Span, marked, shown_part, syntax_error
from tablestore.sql.sqldialect import SqlDialect

MOST_PARTS = 3
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NAMES = (Kind.WORD, Kind.NAME)
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
DUCKDB_QUERY_WORDS = ("SUMMARIZE", "PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER")
"""The words that a query begins with in DuckDB's words alone."""


class Cursor:
    """A place among the tokens of ``text``. ``dialect``: the words of the queries in it; all around them is in tablestore's own."""

    def __init__(self, text: str, span: Span | None = None, dialect: SqlDialect = SqlDialect.SPARK) -> None:
        self.text, self.dialect = text, dialect
        self.at = 0
        self._end = len(text) if span is None else span.end
        self._read_in = SqlDialect.SPARK
        # The fault in what was not read in the words that it is in.
        self._fault: InvalidInputError | None = None
        self._hoped: tuple[int, list[str]] = (0, [])
        if dialect is SqlDialect.SPARK:
            self.tokens = tokenize(text, span)
            self._closing = _matched(text, self.tokens)
        else:
            self.tokens = []
            self._closing = {}
            self._read_on(0 if span is None else span.start)

    def _read_on(self, start: int, dialect: SqlDialect = SqlDialect.SPARK) -> None:
        """Reads what comes next in the words of a dialect. Raises InvalidInputError, but for faults in what may be in others."""
        tokens, self._fault = first_tokens(self.text, Span(start, self._end), dialect)
        try:
            closing = _matched(self.text, tokens)
        except InvalidInputError as error:
            closing, self._fault = _matched_part(tokens), self._fault or error
        if self._fault is not None and dialect is self.dialect:
            raise self._fault
        self._read_in = dialect
        self.tokens[self.at :] = tokens
        before = {at: end for at, end in self._closing.items() if end < self.at}
        self._closing = before | {self.at + at: self.at + end for at, end in closing.items()}

    # --- what is next

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.at]

    def ahead(self, count: int) -> Token:
        """The token ``count`` after the next one."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def at_end(self) -> bool:
        """True if the statement ends here."""
        return self.next.kind is Kind.END or self.next.key == ";"

    def sees(self, *keys: str) -> bool:
        """True if these words and signs come next."""
        return all(self.ahead(count).key == key for count, key in enumerate(keys))

    def sees_name(self, count: int = 0) -> bool:
        """True if a word or a name between backticks comes next."""
        return self.ahead(count).kind in _NAMES

    def sees_text(self, count: int = 0) -> bool:
        """True if a text between quotes comes next."""
        return self.ahead(count).kind is Kind.TEXT

    # --- taking

    def take(self) -> Token:
        """The next token; the cursor moves behind it."""
        token = self.next
        if token.kind is not Kind.END:
            self.at += 1
        return token

    def accept(self, *keys: str) -> bool:
        """Takes these words and signs if they come next."""
        if self.sees(*keys):
            self.at += len(keys)
            return True
        self.hope(" ".join(keys))
        return False

    def accept_one(self, *keys: str) -> str | None:
        """Takes the one of these words that comes next."""
        return next((key for key in keys if self.accept(key)), None)

    def expect(self, *keys: str) -> None:
        """Takes these words and signs. Raises InvalidInputError if others come next."""
        for key in keys:
            if not self.accept(key):
                raise self.error()

    def expect_one(self, *keys: str) -> str:
        """Takes one of these words. Raises InvalidInputError if none comes next."""
        word = self.accept_one(*keys)
        if word is None:
            raise self.error()
        return word

    def expect_end(self) -> None:
        """Raises InvalidInputError if something follows."""
        if self.next.kind is not Kind.END or self._fault is not None:
            self.hope("the end of the statement")
            raise self.error()

    def name(self, what: str) -> str:
        """Takes a name."""
        if not self.sees_name():
            raise self.error(what)
        return name_of(self.take())

    def dotted(self, what: str) -> Path:
        """Takes names with dots between them, any number."""
        start, parts = self.next.start, [self.name(what)]
        while self.sees("."):
            self.take()
            parts.append(self.name(what))
        hyphen = self.next
        if hyphen.key == "-" and self.tokens[self.at - 1].end == hyphen.start and self.ahead(1).start == hyphen.end:
            raise self.wrong(f"expected {what}, found one with a hyphen; such a name stands between backticks", start)
        return Path(tuple(parts), self.span_from(start))

    def path(self, what: str, most: int = MOST_PARTS) -> Path:
        """Takes the name of an object, one to ``most`` parts."""
        path = self.dotted(what)
        if len(path.parts) > most:
            parts = "one part" if most == 1 else f"at most {most} parts"
            raise syntax_error(
                self.text,
                path.span,
                f"expected {what} of {parts}, found {len(path.parts)}; a name that holds a dot stands between backticks",
            )
        return path

    def string(self, what: str) -> str:
        """Takes a text."""
        if not self.sees_text():
            raise self.error(f"{what} between quotes")
        return text_of(self.text, self.take())

    def whole_number(self, what: str) -> int:
        """Takes a number of digits alone."""
        if self.next.kind is not Kind.NUMBER or not self.next.text.isdecimal() or len(self.next.text) > 18:
            raise self.error(what)
        return int(self.take().text)

    def listed(self) -> Iterator[None]:
        """Yields once for each item of ``( item, item, … )``; the body of the loop takes the item."""
        self.expect("(")
        while True:
            yield
            if not self.accept(","):
                break
        self.expect(")")

    def names(self, what: str) -> tuple[str, ...]:
        """Takes ``( name, name, … )``. Raises InvalidInputError for a name that stands there twice."""
        names: dict[str, None] = {}
        for _ in self.listed():
            place = self.next.span
            name = self.name(what)
            if name in names:
                raise syntax_error(self.text, place, f"{name!r:.80} stands here twice")
            names[name] = None
        return tuple(names)

    def if_exists(self) -> bool:
        """Takes ``IF EXISTS`` if it comes next."""
        if self.next.key == "IF" and self.sees_name(1):
            self.expect("IF", "EXISTS")
            return True
        self.hope("IF EXISTS")
        return False

    def if_not_exists(self) -> bool:
        """Takes ``IF NOT EXISTS`` if it comes next."""
        if self.next.key == "IF" and self.sees_name(1):
            self.expect("IF", "NOT", "EXISTS")
            return True
        self.hope("IF NOT EXISTS")
        return False

    # --- pieces that are handed on as they are

    def fragment(self, what: str, stops: Callable[[], bool] = lambda: False) -> Fragment:
        """Takes everything up to a place where ``stops`` holds, a closing bracket, ``;`` or the end.

        ``stops`` is asked outside of brackets and of CASE … END.
        """
        first, cases = self.at, 0
        while (token := self.next).kind is not Kind.END and token.key not in (")", "]", "}", ";"):
            if cases == 0 and stops():
                break
            if token.key in ("CASE", "END") and (self.at == first or self.tokens[self.at - 1].key != "."):
                cases = cases + 1 if token.key == "CASE" else max(0, cases - 1)
            self.skip()
        if self.at == first:
            raise self.error(what)
        return self.fragment_from(self.tokens[first].start)

    def fragment_from(self, start: int) -> Fragment:
        """The characters from ``start`` to the last token that was taken."""
        span = self.span_from(start)
        return Fragment(self.text[span.start : span.end], span, self._read_in)

    def query(self) -> Fragment:
        """Takes a query: the rest of the statement, or of the brackets. What it says is the engine's business."""
        if self.next.key not in (*self._query_words, "("):
            raise self.error(f"a query ({', '.join(self._query_words)})")
        if self.dialect is SqlDialect.SPARK:
            return self.fragment("a query")
        self.read_query()
        query = self.fragment("a query")
        self._read_on(self.next.start)
        return query

    def read_query(self) -> None:
        """Reads what comes next in the words of queries."""
        if self._read_in is not self.dialect:
            self._read_on(self.next.start, self.dialect)

    @property
    def _query_words(self) -> tuple[str, ...]:
        return _QUERY_WORDS if self.dialect is SqlDialect.SPARK else (*_QUERY_WORDS, *DUCKDB_QUERY_WORDS)

    def sees_query(self) -> bool:
        """True if what comes next is a query, and no name in a list."""
        word = self.next.key in self._query_words and self.ahead(1).key not in (",", ")", ".")
        return word or self.next.key == "("

    def skip(self) -> None:
        """Moves behind the next token; behind the bracket that closes it, if it opens one."""
        self.at = self._closing.get(self.at, self.at) + 1

    def span_from(self, start: int) -> Span:
        """The span from ``start`` to the end of the last token that was taken."""
        return Span(start, max(start, self.tokens[self.at - 1].end))

    # --- errors

    def hope(self, what: str) -> None:
        """Remembers what could stand here."""
        if self._hoped[0] != self.at:
            self._hoped = (self.at, [])
        if what not in self._hoped[1]:
            self._hoped[1].append(what)

    def error(self, what: str | None = None) -> InvalidInputError:
        """The error that says what was expected here, and what was found."""
        if self._fault is not None and self.next.kind is Kind.END:
            return self._fault
        if what is not None:
            self.hope(what)
        place, hoped = self._hoped
        hopes = hoped if place == self.at else []
        words = [hope for hope in hopes if hope.isupper()]
        near = did_you_mean(self.next.text, words) if self.next.kind is Kind.WORD else ""
        return syntax_error(self.text, self.next.span, f"expected {either(hopes)}, found {self._shown(self.next)}{near}")

    def _shown(self, token: Token) -> str:
        text = shown_part(self.text, token.span)
        match token.kind:
            case Kind.END:
                return "the end of the statement"
            case Kind.HINT:
                return "a hint; hints stand in queries, OPTIONS behind the name of a table that is read"
            case Kind.TEXT | Kind.NAME:
                return text if len(text) <= 40 else f"{text[:37]}…{text[-1]}"
            case _:
                return repr(text[:40])

    def wrong(self, message: str, start: int | None = None) -> InvalidInputError:
        """An error about the next token, or about what was taken from ``start`` on."""
        return syntax_error(self.text, self.next.span if start is None else self.span_from(start), message)

    def unsupported(self, message: str, start: int | None = None) -> UnsupportedError:
        """The error for syntax that is known and not supported."""
        span = self.next.span if start is None else self.span_from(start)
        return UnsupportedError(f"{message}\n{marked(self.text, span)}", kind="sql")


def either(hopes: list[str]) -> str:
    """The words as ``A, B or C``."""
    return " or ".join(part for part in (", ".join(hopes[:-1]), *hopes[-1:]) if part)


def blanked(fragment: Fragment, spared: Span) -> Fragment:
    """The fragment with the characters of ``spared`` as blanks; line breaks stay, and so does every place behind them."""
    start, end = spared.start - fragment.span.start, spared.end - fragment.span.start
    blanks = "".join(c if c in "\r\n" else " " for c in fragment.text[start:end])
    return replace(fragment, text=fragment.text[:start] + blanks + fragment.text[end:])


def _matched(text: str, tokens: list[Token]) -> Mapping[int, int]:
    """Each opening bracket's place among the tokens, and that of the bracket that closes it."""
    closing: dict[int, int] = {}
    open_ones: list[int] = []
    for place, token in enumerate(tokens):
        if token.key in _CLOSING:
            open_ones.append(place)
        elif token.key in (")", "]", "}"):
            if not open_ones or _CLOSING[tokens[open_ones[-1]].key] != token.key:
                raise syntax_error(text, token.span, f"{token.key!r} closes no bracket")
            closing[open_ones.pop()] = place
    if open_ones:
        token = tokens[open_ones[-1]]
        raise syntax_error(text, token.span, f"the bracket that begins here is not closed: expected {_CLOSING[token.key]!r}")
    return closing


def _matched_part(tokens: list[Token]) -> Mapping[int, int]:
    """The brackets that are matched, of a text that is not read in its own words to its end."""
    closing: dict[int, int] = {}
    open_ones: list[int] = []
    for place, token in enumerate(tokens):
        if token.key in _CLOSING:
            open_ones.append(place)
        elif token.key in (")", "]", "}"):
            if not open_ones or _CLOSING[tokens[open_ones[-1]].key] != token.key:
                break
            closing[open_ones.pop()] = place
    return closing
