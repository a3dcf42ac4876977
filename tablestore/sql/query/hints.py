"""Reads hints: those that give a table dynamic options, and those that are the engine's.

    FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */ AS a      options of this reference to t
    SELECT /*+ BROADCAST(u) */ …                              a hint of the engine

OPTIONS stands directly behind the name of a table; several of them, in one hint or in several, are one list. What the options mean
is not decided here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tablestore.errors import InvalidInputError
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.tokens import Kind, Token, tokenize
from tablestore.sql.source import Span, syntax_error

OPTIONS = "OPTIONS"


@dataclass(frozen=True, slots=True)
class DynamicOption:
    """One option of one table reference, as written."""

    key: str
    value: str
    span: Span


def gives_options(text: str, hint: Token) -> bool:
    """True if a hint has OPTIONS in it."""
    return OPTIONS in hint.text.upper() and any(token.key == OPTIONS for token in tokenize(text, _inside(hint)))


def options_of(text: str, hints: Iterable[Token]) -> tuple[DynamicOption, ...]:
    """The options that hints give, none of which is of another kind. Raises InvalidInputError, also for a key that comes twice."""
    options: dict[str, DynamicOption] = {}
    for hint in hints:
        cursor = Cursor(text, _inside(hint))
        while not options or cursor.next.kind is not Kind.END:
            cursor.expect(OPTIONS)
            for _ in cursor.listed():
                start = cursor.next.start
                key = cursor.string("the key of an option")
                cursor.expect("=")
                value = cursor.string("its value")
                option = DynamicOption(key, value, cursor.span_from(start))
                if key in options:
                    raise syntax_error(text, option.span, f"the option {key!r} is given twice")
                options[key] = option
            cursor.accept(",")
    return tuple(options.values())


def misplaced(text: str, hint: Token) -> InvalidInputError:
    """The error of OPTIONS that stand where no table's name is in front of them."""
    return syntax_error(
        text,
        hint.span,
        "OPTIONS are those of one table: they stand directly behind its name in a query, before its alias, as in FROM orders "
        "/*+ OPTIONS('scan.snapshot-id' = '1') */ AS o; what is written, and a name of WITH, has none",
    )


def check_no_options(text: str, span: Span) -> None:
    """Raises InvalidInputError for OPTIONS in a part of a text that reads no table of ours."""
    if "/*+" in text:
        for token in tokenize(text, span):
            if token.kind is Kind.HINT and gives_options(text, token):
                raise misplaced(text, token)


def engine_hints(text: str, span: Span | None = None) -> tuple[str, ...]:
    """The hints of a text, or of a part of it, that are for the engine, each on one line."""
    if "/*+" not in text:
        return ()
    hints = (token for token in tokenize(text, span) if token.kind is Kind.HINT)
    return tuple(" ".join(hint.text.split()) for hint in hints if not gives_options(text, hint))


def _inside(hint: Token) -> Span:
    return Span(hint.start + len("/*+"), hint.end - len("*/"))
