"""The catalog protocol: what any catalog can do. Handles for users are built on top of it, in ``tablestore.table``.

Each catalog states three facts about itself: whether its tables may be managed ones, whether another process can open it, and
under which lock its tables are written. ``tablestore.testing.contracts.metacatalog`` tests what is promised here.
"""

from collections.abc import Callable
from typing import Protocol

from tablestore.catalog.identifier import Identifier
from tablestore.io.filestore import FileStore
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.types.schema import TableSchema


class MetaCatalog(Protocol):
    """Databases and tables by name. All names are checked; errors are NotFoundError, AlreadyExistsError, InvalidInputError.

    A table is whole or it is not there. What a creation, removal or renaming that died on the way has left behind is no table;
    the next creation or removal of that name deals with it.
    """

    @property
    def supports_managed_table(self) -> bool:
        """True if a table without a connector is one of ours."""
        ...

    @property
    def files(self) -> FileStore:
        """The warehouse: its tables lie in it, and creations that are under way."""
        ...

    @property
    def serializable(self) -> bool:
        """True if ``pickle`` makes of it a catalog that any process can open; if not, pickling raises UnsupportedError of kind
        "not-serializable"."""
        ...

    @property
    def lock(self) -> CatalogLock | None:
        """The lock under which its tables are published to; None where the store publishes conditionally. A picklable value."""
        ...

    def list_databases(self) -> tuple[str, ...]:
        """Database names, ascending."""
        ...

    def has_database(self, name: str) -> bool:
        """True if there is a database of that name."""
        ...

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create an empty database."""
        ...

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; with tables in it only if ``cascade``."""
        ...

    def list_tables(self, database: str) -> tuple[str, ...]:
        """Names of the tables of a database, ascending. Raises NotFoundError."""
        ...

    def has_table(self, identifier: Identifier) -> bool:
        """True if there is a table of that name; false if there is no such database."""
        ...

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False, table_uuid: str | None = None
    ) -> bool:
        """Create a table, all or nothing; an existing one is an error or, if ignored, left as it is.

        Whether this call made it: of several creators one gets True. ``table_uuid``: its identity, if it is not to be drawn.
        """
        ...

    def publish_table(self, identifier: Identifier, directory: str, *, is_wanted: Callable[[], bool] = ...) -> None:
        """Give the table that lies in a directory of the warehouse its name: in one step, and all or nothing.

        ``is_wanted`` is asked at the end where the store cannot rename; False takes the table back. Raises AlreadyExistsError (a
        table or what is left of one has the name), NotFoundError (no such database, or nothing lies there any more), ConflictError
        of kind ``creation-swept``, CommitOutcomeUnknown.
        """
        ...

    def exchange_table(self, identifier: Identifier, directory: str, *, table_uuid: str | None) -> None:
        """Let a table and the one that lies in a directory of the warehouse change places, in one step.

        ``table_uuid``: the identity of the table that has the name. Raises ConflictError of kind ``table-replaced`` for another
        one, NotFoundError, UnsupportedError where the store cannot (see ``ExchangesDirectories``).
        """
        ...

    def abandon_arrival(self, identifier: Identifier, directory: str) -> None:
        """Remove the copies that a dead :meth:`publish_table` from this directory left under the name. A table stays."""
        ...

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False, table_uuid: str | None = None) -> None:
        """Remove a table and all of its files, or the files that a removal that died has left of it.

        ``table_uuid``: only the table of this identity; another one raises ConflictError of kind ``table-replaced``.
        """
        ...

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        """Give a table another name, maybe in another database."""
        ...

    def table_files(self, identifier: Identifier) -> FileStore:
        """The file store of an existing table. Raises NotFoundError."""
        ...
