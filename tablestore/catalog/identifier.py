"""Which names are allowed, and how ``db.table`` is read.

Names become directories, so they come from an allow-list: letters, digits, ``_`` and ``-``, at most 128, not starting with
``-``. Everything else (separators, dots, control characters, ``..``) is refused before any path is made from it.
"""

import re
from dataclasses import dataclass

from tablestore.errors import InvalidInputError

# Tags and branches may hold dots (version numbers), but are no path of their own.
_REFERENCE = re.compile(r"[^\W][\w.-]{0,127}", re.ASCII)
_NAME = re.compile(r"[^\W][\w-]{0,127}", re.ASCII)
DATABASE_SUFFIX = ".db"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A table's database and name."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def directory(self) -> str:
        """The table's directory, relative to the warehouse."""
        return f"{database_directory(self.database)}/{self.table}"


def parse_identifier(text: str) -> Identifier:
    """Read ``db.table``. Raises InvalidInputError for anything else."""
    parts = text.split(".") if isinstance(text, str) else ()
    if len(parts) != 2:
        raise InvalidInputError(f"expected a table name of the form 'database.table', found {text!r}", kind="invalid-name")
    return Identifier(check_name(parts[0], "database"), check_name(parts[1], "table"))


def check_name(name: str, what: str) -> str:
    """``name`` itself if it is allowed. Raises InvalidInputError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r:.120} is no {what} name: expected 1 to 128 letters, digits, '_' or '-', not starting with '-'",
            kind="invalid-name",
        )
    return name


def check_reference(name: str, what: str) -> str:
    """As :func:`check_name` for tags and branches, which may hold dots. Raises InvalidInputError."""
    if not isinstance(name, str) or not _REFERENCE.fullmatch(name):
        raise InvalidInputError(
            f"{name!r:.120} is no {what} name: expected 1 to 128 letters, digits, '_', '-' or '.', not starting with '-' or '.'",
            kind="invalid-name",
        )
    return name


def database_directory(database: str) -> str:
    """A database's directory, relative to the warehouse."""
    return f"{check_name(database, 'database')}{DATABASE_SUFFIX}"
