"""Keeps the text of a statement, and marks places in it in errors.

A statement value may also be made without a text (from Python): then nothing is marked.
"""

import re
from dataclasses import dataclass

from tablestore.errors import TablestoreError
from tablestore.sql.source import NOWHERE, Span, marked

_PLACE = re.compile(r"^line \d+, column \d+:$", re.MULTILINE)
_NAMED = re.compile(r"['`]([^'`\n]{1,128})['`]")


@dataclass(frozen=True, slots=True)
class Source:
    """A text that statements were read from: one statement, or a whole file. ``part``: the place of the statement in the file."""

    text: str = ""
    part: Span = NOWHERE

    @property
    def statement(self) -> str:
        """The text of the statement alone."""
        return self.text if self.part == NOWHERE else self.text[self.part.start : self.part.end]

    def mark(self, message: str, span: Span) -> str:
        """The message, with the place below it; one that has a place already is left as it is."""
        if span == NOWHERE or not self.text or _PLACE.search(message):
            return message
        return f"{message}\n{marked(self.text, span)}"

    def word(self, word: str, within: Span = NOWHERE) -> Span:
        """The place at which a word stands first (inside of ``within``, if that is somewhere); nowhere if it does not."""
        end = within.end if within != NOWHERE else len(self.text)
        match = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self.text, within.start, end)
        return NOWHERE if match is None else Span(*match.span())

    def guess(self, error: TablestoreError, within: Span = NOWHERE) -> None:
        """Adds a place to an error whose message names something (between quotes) that stands in the text."""
        spans = (self.word(name, within) for name in _NAMED.findall(error.message))
        self.place(error, next((span for span in spans if span != NOWHERE), NOWHERE))

    def place(self, error: TablestoreError, span: Span) -> None:
        """Adds a place to an error that has none. It stays the same object, with all that it carries."""
        error.message = self.mark(error.message, span)
        error.args = (error.message,)


NO_SOURCE = Source()
