"""Table identifiers: parses ``db.table``, and checks names.

Names become directories, so they come from an allow-list: letters, digits, ``_`` and ``-``, at most 128, not starting with
``-``. Everything else (separators, dots, control characters, ``..``) is refused before any path is made from it.
"""

from dataclasses import dataclass

from tablestore.errors import InvalidInputError
from tablestore.names import check_name

DATABASE_SUFFIX = ".db"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A table's database and name. Raises InvalidInputError for a name that is not allowed."""

    database: str
    table: str

    def __post_init__(self) -> None:
        check_name(self.database, "database")
        check_name(self.table, "table")

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
    return Identifier(*parts)


def database_directory(database: str) -> str:
    """A database's directory, relative to the warehouse."""
    return f"{check_name(database, 'database')}{DATABASE_SUFFIX}"
