"""Composes the text of a query from pieces of a statement.

The pieces are the user's own text, but for two kinds of edits: ``?`` becomes ``:_n``, counted in the whole statement, because
pieces change their order; and ``db.t.c`` becomes ``t.c`` where ``t`` is the alias that the made query gives a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore.sql.query.edits import prefix_edits
from tablestore.sql.query.parameters import find_markers
from tablestore.sql.query.tablereferences import Reference, references_in
from tablestore.sql.query.tokenstream import Tokens, tokens_of
from tablestore.sql.source import NOWHERE, Edit, Fragment, Path, Span


@dataclass(frozen=True, slots=True)
class Piece:
    """``span`` of a made text came from ``origin`` of the statement; both have one length."""

    span: Span
    origin: Span


class RowText:
    """Collects pieces one behind the other. ``tables``: paths whose columns are now named by the last part alone."""

    def __init__(self, statement: str, tables: Sequence[Path]) -> None:
        markers = find_markers(Tokens(statement)) if "?" in statement else ()
        self._names = {marker.span.start: marker.name for marker in markers if marker.by_place}
        self._tables = [path for path in tables if len(path.parts) > 1]
        self._parts: list[str] = []
        self._length = 0
        self._pieces: list[Piece] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The origins of its parts."""
        return tuple(self._pieces)

    def add(self, *parts: str | Fragment) -> None:
        """Adds text of our own, and pieces of the statement. A piece ends its line: it may end in a comment."""
        for part in parts:
            if isinstance(part, str):
                self._put(part)
            else:
                self._fragment(part)

    def _fragment(self, fragment: Fragment) -> None:
        at = 0
        for edit in self._edits(fragment):
            self._user(fragment, Span(at, edit.span.start))
            self._put(edit.text)
            at = edit.span.end
        self._user(fragment, Span(at, len(fragment.text)))
        if "--" in fragment.text:
            self._put("\n")

    def _edits(self, fragment: Fragment) -> list[Edit]:
        tokens = tokens_of(fragment)
        edits = [
            Edit(span=marker.span, text=f":{self._names.get(fragment.span.start + marker.span.start, marker.name)}")
            for marker in find_markers(tokens)
            if marker.by_place
        ]
        scope = Span(0, len(fragment.text))
        named = [(Reference(path=path, span=NOWHERE, scope=scope, alias_at=0), ()) for path in self._tables]
        edits += prefix_edits(tokens, references_in(tokens, is_whole=False), named)
        return sorted(edits, key=lambda edit: edit.span)

    def _user(self, fragment: Fragment, inside: Span) -> None:
        length = inside.end - inside.start
        if length:
            start = fragment.span.start + inside.start
            self._pieces.append(Piece(Span(self._length, self._length + length), Span(start, start + length)))
            self._put(fragment.text[inside.start : inside.end])

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def origin_of(pieces: Sequence[Piece], span: Span) -> Span | None:
    """The place in the statement that a place of the made text came from; None for text that the statement did not have."""
    for piece in pieces:
        if piece.span.start <= span.start < piece.span.end:
            start = piece.origin.start + span.start - piece.span.start
            return Span(start, min(start + span.end - span.start, piece.origin.end))
    return None
