"""What any catalog can do: the protocol. Handles for users are built on top of it, in ``tablestore.table``."""

from typing import Protocol

from tablestore.catalog.identifier import Identifier
from tablestore.io.filestore import FileStore
from tablestore.types.schema import TableSchema


class MetaCatalog(Protocol):
    """Databases and tables by name. All names are checked; errors are NotFoundError, AlreadyExistsError, InvalidInputError."""

    def list_databases(self) -> tuple[str, ...]:
        """Database names, ascending."""
        ...

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create an empty database."""
        ...

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; with tables in it only if ``cascade``."""
        ...

    def list_tables(self, database: str) -> tuple[str, ...]:
        """Names of the tables of a database, ascending."""
        ...

    def create_table(self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False) -> None:
        """Create a table, all or nothing; an existing one is an error or, if ignored, left as it is."""
        ...

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        """Remove a table and all of its files."""
        ...

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        """Give a table another name."""
        ...

    def table_files(self, identifier: Identifier) -> FileStore:
        """The file store of an existing table. Raises NotFoundError."""
        ...
