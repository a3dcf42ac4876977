"""Describes places in the text of a statement, edits it there, and marks them in errors.

Every value that the parser makes keeps the place that it came from, so that an error found much later (an unknown table, a column
of the wrong type) points at line and column, and so that a query is edited where a name stands and left alone everywhere else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.options import holds_no_secret
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statementmask import masked_statement


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters ``start`` to ``end`` (half open) of a statement's text."""

    start: int
    end: int


NOWHERE = Span(0, 0)
# The most characters of its line that are shown on either side of a place.
SHOWN = 100
# The characters before those in which the beginning of a secret is looked for.
_LOOKED_AT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Path:
    """The name of a table, view, function or database as written, one to three parts, without quotes."""

    parts: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of the user's own text that is handed on as it is: a query, a condition, an expression.

    ``dialect``: the words that it is in. ``read``: its tokens, where somebody has read them (``tokens_of``).
    """

    text: str
    span: Span = field(default=NOWHERE, compare=False)
    dialect: SqlDialect = SqlDialect.SPARK
    read: list[Any] = field(init=False, default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Characters of the text that are replaced. ``relation`` counts the relations; None: ``text`` alone takes their place.

    With a relation, ``text`` follows its name (an alias), or is empty.
    """

    span: Span
    relation: int | None = None
    text: str = ""


def apply_edits(
    text: str, edits: Iterable[Edit], name: Callable[[int], str], plain: Callable[[str], str] = lambda text: text
) -> str:
    """The text with each relation's number replaced by its name; ``plain`` is applied to all text that is the user's."""
    parts, at = [], 0
    for edit in edits:
        parts.append(plain(text[at : edit.span.start]))
        parts.append(plain(edit.text) if edit.relation is None else name(edit.relation) + plain(edit.text))
        at = edit.span.end
    return "".join([*parts, plain(text[at:])])


def unedited(edits: Iterable[Edit], place: Span, length: Callable[[int], int], end: int) -> Span:
    """The place of a text that a place behind :func:`apply_edits` came from: all that was replaced, where it lies in that.

    ``length``: of each relation's name; ``end``: of the text.
    """
    edit_list = list(edits)
    first = _unedited(edit_list, place.start, length, end)
    return Span(first.start, max(_unedited(edit_list, place.end - 1, length, end).end, first.end))


def _unedited(edits: list[Edit], place: int, length: Callable[[int], int], end: int) -> Span:
    original_end, edited_end = 0, 0
    for edit in edits:
        if place < (ahead := edited_end + edit.span.start - original_end):
            break
        edited_end = ahead + len(edit.text) + (length(edit.relation) if edit.relation is not None else 0)
        if place < edited_end:
            return edit.span
        original_end = edit.span.end
    at = min(original_end + place - edited_end, end)
    return Span(at, at + 1)


def syntax_error(text: str, span: Span, message: str) -> InvalidInputError:
    """The error of a statement, with line, column and the place marked below its line."""
    return InvalidInputError(f"{message}\n{marked(text, span)}", kind="sql-syntax")


def shown_part(text: str, span: Span) -> str:
    """The characters of a place as they may be shown: of values that may be secrets nothing."""
    first = max(span.start - _LOOKED_AT, 0)
    return masked_statement(text[first : span.end + SHOWN], holds_no_secret)[span.start - first : span.end - first]


def marked(text: str, span: Span) -> str:
    """``line L, column C`` and the line with the place marked below it; lines and columns count from 1.

    Of a long line only what is around the place is shown, and of values that may be secrets nothing.
    """
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    first = line_start if start - line_start <= SHOWN else start - SHOWN
    last = min(line_end, start + SHOWN)
    masked = masked_statement(text[max(first - _LOOKED_AT, 0) : last], holds_no_secret)
    # Character for character, so that the mark stands under its place.
    line = "".join(c if c == "\t" or c.isprintable() else "\ufffd" for c in masked[len(masked) - (last - first) :].rstrip("\r"))
    before, after = "…" * (first > line_start), "…" * (last < line_end)
    indent = "".join(c if c == "\t" else " " for c in before + line[: start - first])
    mark = "^" * max(1, min(span.end, first + len(line)) - start)
    place = f"line {text.count(chr(10), 0, start) + 1}, column {start - line_start + 1}"
    return f"{place}:\n  {before}{line}{after}\n  {indent}{mark}"
