"""Writes names and texts in DuckDB's SQL, and SQL whose views are named later."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """The place of a view in SQL."""

    view: str


Sql: TypeAlias = tuple[str | ViewPlace, ...]
"""SQL in pieces: what stands for a view is put between them, so no text of the user's is taken for the name of one."""


def identifier(name: str) -> str:
    """A name by exactly its characters."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def joined(*parts: str | ViewPlace | Sql) -> Sql:
    """Pieces one behind the other."""
    return tuple(piece for part in parts for piece in (part if isinstance(part, tuple) else (part,)))


def sql_text(sql: Sql, view: Callable[[str], str] = identifier) -> str:
    """The SQL as a text. ``view``: what stands for a view of this name."""
    return "".join(piece if isinstance(piece, str) else view(piece.view) for piece in sql)
