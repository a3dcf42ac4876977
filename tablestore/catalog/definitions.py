"""Defines how catalogs keep the definitions of objects that have no files of their own: views, functions, tables with a connector.

    <database>.db/.definitions/relations/<name>.json    a view, or a table with a connector: they share their names with tables
    <database>.db/.definitions/functions/<name>.json    a function
    <database>.db/.definitions/database/<name>.json     what is said of the database itself: it goes with it

No table has a name with a dot, so the directory is none of a table's. Paimon in Java looks for schemas, and pypaimon passes over
names that begin with a dot: neither lists it. A definition is text to a catalog: what it means, and whether it may act, is decided
by who reads it. Keeping one is one published file, so of two creators of a name one wins.
"""

from enum import StrEnum
from typing import Protocol, runtime_checkable

from tablestore.catalog.identifier import Identifier, database_directory
from tablestore.names import is_name

DIRECTORY = ".definitions"
SUFFIX = ".json"
MOST_BYTES = 4_000_000
"""Of one definition; a longer one is not written, nor read."""


class DefinitionKind(StrEnum):
    """The names that a definition shares: those of relations also with tables. Stored in paths."""

    RELATION = "relations"
    FUNCTION = "functions"
    DATABASE = "database"

    @property
    def fills_database(self) -> bool:
        """True if a database with such a definition is not empty."""
        return self is not DefinitionKind.DATABASE


@runtime_checkable
class KeepsDefinitions(Protocol):
    """A catalog that keeps definitions beside its tables."""

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        """Names, ascending; none where there is no such database."""
        ...

    def find_definition(self, identifier: Identifier, kind: DefinitionKind) -> str | None:
        """The text of a definition; None if there is none."""
        ...

    def keep_definition(self, identifier: Identifier, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        """Keeps a definition, ``replace``: also in the place of another one, of which the last writer wins.

        Raises AlreadyExistsError of kind ``definition-exists``, or ``table-exists`` for a relation where a table has the name;
        NotFoundError for a database that is not there.
        """
        ...

    def drop_definition(self, identifier: Identifier, kind: DefinitionKind) -> bool:
        """Removes a definition; False if it was gone already."""
        ...


def definitions_directory(database: str, kind: DefinitionKind) -> str:
    """The directory of the definitions of a database, relative to the warehouse."""
    return f"{database_directory(database)}/{DIRECTORY}/{kind.value}"


def definition_path(identifier: Identifier, kind: DefinitionKind) -> str:
    """The file of a definition, relative to the warehouse."""
    return f"{definitions_directory(identifier.database, kind)}/{identifier.table}{SUFFIX}"


def defined_name(file_name: str) -> str | None:
    """The name that a file defines; None for any other file."""
    name = file_name.removesuffix(SUFFIX)
    return name if name != file_name and is_name(name) else None
