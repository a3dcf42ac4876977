"""Shows a catalog to one caller: the tables that it may read, and nothing that changes anything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tablestore.catalog.definitions import DefinitionKind, KeepsDefinitions
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.io.filestore import FileStore
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.server.access.roles import Principal, Resource, Role
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True)
class ReadableTables:
    """The catalog ``beneath`` as ``principal`` may read it."""

    beneath: MetaCatalog
    principal: Principal

    @property
    def supports_managed_table(self) -> bool:
        return self.beneath.supports_managed_table

    @property
    def files(self) -> FileStore:
        return self.beneath.files

    @property
    def serializable(self) -> bool:
        return False

    @property
    def lock(self) -> CatalogLock | None:
        return self.beneath.lock

    def list_databases(self) -> tuple[str, ...]:
        return tuple(name for name in self.beneath.list_databases() if self.principal.sees(Resource(name)))

    def has_database(self, name: str) -> bool:
        return self.principal.sees(Resource(name)) and self.beneath.has_database(name)

    def list_tables(self, database: str) -> tuple[str, ...]:
        return tuple(name for name in self.beneath.list_tables(database) if self._may(database, name))

    def has_table(self, identifier: Identifier) -> bool:
        return self._may(identifier.database, identifier.table) and self.beneath.has_table(identifier)

    def table_files(self, identifier: Identifier) -> FileStore:
        if not self._may(identifier.database, identifier.table):
            raise NotFoundError(f"there is no table {identifier}", kind="no-such-table")
        return self.beneath.table_files(identifier)

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        if not isinstance(self.beneath, KeepsDefinitions):
            return ()
        return tuple(name for name in self.beneath.list_definitions(database, kind) if self._may(database, name))

    def find_definition(self, identifier: Identifier, kind: DefinitionKind) -> str | None:
        if not isinstance(self.beneath, KeepsDefinitions) or not self._may(identifier.database, identifier.table):
            return None
        return self.beneath.find_definition(identifier, kind)

    def _may(self, database: str, name: str) -> bool:
        return self.principal.may(Role.READER, Resource(database, name))

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        _only_reads()

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        _only_reads()

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False, table_uuid: str | None = None
    ) -> bool:
        _only_reads()

    def publish_table(self, identifier: Identifier, directory: str, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        _only_reads()

    def exchange_table(self, identifier: Identifier, directory: str, *, table_uuid: str | None) -> None:
        _only_reads()

    def abandon_arrival(self, identifier: Identifier, directory: str) -> None:
        _only_reads()

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False, table_uuid: str | None = None) -> None:
        _only_reads()

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        _only_reads()

    def keep_definition(self, identifier: Identifier, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        _only_reads()

    def drop_definition(self, identifier: Identifier, kind: DefinitionKind) -> bool:
        _only_reads()


def _only_reads() -> NoReturn:
    raise UnsupportedError("a page only reads the warehouse", kind="restricted")
