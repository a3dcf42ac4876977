"""The file system catalog, made of directories: ``<warehouse>/<database>.db/<table>/schema/schema-0``.

There is no registry to disagree with the files. A table exists if it has a schema file; publishing ``schema-0`` if absent is the
one step that creates it, so two creators cannot both win and a failed creation leaves nothing that counts. A table that was made
elsewhere in the warehouse comes to its name in one step too (:mod:`tablestore.catalog.tablepublish`). A removal takes the directory
away in one step, to a name beside the databases that nobody reads, and removes it there. Where the store cannot, it begins with the
schemas and ends with the snapshots: a directory with snapshots and without schemas is what a removal that died has left. Over a
memory store this is the in-memory catalog.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tablestore.catalog import refusals
from tablestore.catalog.definitions import MOST_BYTES, DefinitionKind, defined_name, definition_path, definitions_directory
from tablestore.catalog.identifier import DATABASE_SUFFIX, Identifier, database_directory
from tablestore.catalog.tabledirectory import others_files
from tablestore.catalog.tablepublish import TablePublish, claim_path, has_claim
from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from tablestore.format.paths import SCHEMA_DIR, SNAPSHOT_DIR, parse_schema_id, schema_path
from tablestore.format.schemafile import encode_schema
from tablestore.ids import Ids
from tablestore.io.filestore import TEMPORARY_PREFIX, ExchangesDirectories, FileStore, RenamesDirectories
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.store.schemas import TABLE_UUID_OPTION, Schemas, check_is_same
from tablestore.types.schema import TableSchema

DATABASE_MARKER = "_database"
# Attempts to create a table while its database is being removed file by file.
_ATTEMPTS = 5


class FileSystemCatalog:
    """The tables below one warehouse directory."""

    supports_managed_table = True

    def __init__(self, files: FileStore, ids: Ids) -> None:
        self._files, self._ids = files, ids

    @property
    def files(self) -> FileStore:
        return self._files

    @property
    def serializable(self) -> bool:
        return not self._files.root_uri.startswith("memory://")

    @property
    def lock(self) -> CatalogLock | None:
        return self._files.lock if isinstance(self._files, LockedFileStore) else None

    def __reduce__(self) -> tuple[object, ...]:
        if not self.serializable:
            raise UnsupportedError(
                f"the catalog at {self._files.root_uri} lies in the memory of this process, and cannot be serialized for others; "
                "use a warehouse that every process sees, a directory or an object store",
                kind="not-serializable",
            )
        return FileSystemCatalog, (self._files, self._ids)

    # ---- databases

    def list_databases(self) -> tuple[str, ...]:
        names = (info.name for info in self._files.list("") if info.is_dir and info.name.endswith(DATABASE_SUFFIX))
        return tuple(sorted(name.removesuffix(DATABASE_SUFFIX) for name in names))

    def has_database(self, name: str) -> bool:
        directory = database_directory(name)
        return any(info.is_dir and info.name == directory for info in self._files.list("", prefix=directory))

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        # An empty directory does not exist on an object store; a marker file does, and foreign readers skip it.
        marker = f"{database_directory(name)}/{DATABASE_MARKER}"
        existed = self.has_database(name)
        created = self._files.publish_if_absent(marker, b"") and not existed
        if not created and not ignore_if_exists:
            raise refusals.database_exists(name, self._files.root_uri)

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        if not self.has_database(name):
            if ignore_if_not_exists:
                return
            raise refusals.no_database(name, self._files.root_uri, self.list_databases())
        tables = self.list_tables(name)
        if tables and not cascade:
            raise refusals.database_not_empty(name, tables)
        kinds = [kind for kind in DefinitionKind if kind.fills_database]
        if not cascade and (defined := [defined for kind in kinds for defined in self.list_definitions(name, kind)]):
            raise refusals.database_not_empty(name, defined, refusals.DEFINITIONS)
        for table in tables:
            self._remove(f"{database_directory(name)}/{table}")
        with suppress(NotFoundError):  # another one has dropped it meanwhile
            self._files.delete_directory(self._set_aside(database_directory(name)))

    # ---- tables

    def list_tables(self, database: str) -> tuple[str, ...]:
        if not self.has_database(database):
            raise refusals.no_database(database, self._files.root_uri, self.list_databases())
        directory = database_directory(database)
        inside = self._files.at(directory)
        return tuple(name for name in sorted(self._files.names(directory)) if _schema_ids(inside, name))

    def has_table(self, identifier: Identifier) -> bool:
        return bool(_schema_ids(self._files, identifier.directory))

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False, table_uuid: str | None = None
    ) -> bool:
        self._check_database(identifier)
        options = {**schema.options, TABLE_UUID_OPTION: table_uuid or self._ids.uuid()}
        data = encode_schema(replace(schema, options=options))
        created = not self.has_table(identifier)
        if created:
            self._refuse_defined(identifier)
            self._refuse_half_removed(identifier)
            if not ignore_if_exists:
                self._refuse_others_files(identifier)
            created = self._publish(identifier, data)
            if created and has_claim(self._files, identifier.directory):
                # A table arrives here, and its rows may be in place: this one gives way.
                self._files.delete(f"{identifier.directory}/{schema_path(0)}")
                self._refuse_half_removed(identifier)
        if not created and not ignore_if_exists:
            raise refusals.table_exists(identifier, self._files.root_uri)
        return created

    def _publish(self, identifier: Identifier, data: bytes) -> bool:
        path = f"{identifier.directory}/{schema_path(0)}"
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                # A request that was repeated meets what it made itself.
                return self._files.publish_if_absent(path, data) or self._holds(path, data)
            except (CommitOutcomeUnknown, StorageError) as error:
                if error.kind not in ("unknown-outcome", CommitOutcomeUnknown.default_kind):
                    raise
                # Its directory may have been removed meanwhile, with the database or by a removal of the table.
                if self.has_table(identifier):
                    return self._holds(path, data)
                if not self.has_database(identifier.database):
                    raise refusals.no_database(identifier.database, self._files.root_uri, self.list_databases()) from None
                if not attempts_left:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self._files.read(path) == data
        except NotFoundError:
            return False

    def publish_table(self, identifier: Identifier, directory: str, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        with self.publishing(identifier, directory, is_wanted) as publish:
            publish.bring()
            self.reveal(identifier, publish)

    def publishing(self, identifier: Identifier, directory: str, is_wanted: Callable[[], bool]) -> TablePublish:
        """The way of a table from a directory of the warehouse to its name. Raises AlreadyExistsError, NotFoundError."""
        self._check_free(identifier)
        return TablePublish(self._files, directory, identifier.directory, is_wanted=is_wanted)

    def reveal(self, identifier: Identifier, publish: TablePublish) -> None:
        """The last step of publishing, which makes the table."""
        self._check_database(identifier)
        try:
            publish.reveal()
        except (AlreadyExistsError, UnsupportedError) as error:
            if self.has_table(identifier) or publish.has_claimed:
                raise refusals.table_exists(identifier, self._files.root_uri) from error
            # The files there are no table: a creation or a removal that died has left them.
            self._check_free(identifier)
            publish.copy()
            publish.reveal()

    def _check_free(self, identifier: Identifier) -> None:
        self._check_database(identifier)
        if self.has_table(identifier):
            raise refusals.table_exists(identifier, self._files.root_uri)
        self._refuse_defined(identifier)
        self._refuse_half_removed(identifier)
        self._refuse_others_files(identifier)

    def _check_database(self, identifier: Identifier) -> None:
        if not self.has_database(identifier.database):
            raise refusals.no_database(identifier.database, self._files.root_uri, self.list_databases())

    def exchange_table(self, identifier: Identifier, directory: str, *, table_uuid: str | None) -> None:
        if not isinstance(self._files, ExchangesDirectories):
            raise refusals.cannot_exchange(identifier, self._files.root_uri)
        check_is_same(table_uuid, Schemas(self.table_files(identifier)).latest(), table=str(identifier))
        self._files.exchange_directories(directory, identifier.directory)

    def abandon_arrival(self, identifier: Identifier, directory: str) -> None:
        claim = claim_path(directory, identifier.directory)
        if not self._files.exists(claim):
            return
        if not self.has_table(identifier):
            # With the claim there nobody creates a table here.
            self._remove(identifier.directory)
        self._files.delete(claim)

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False, table_uuid: str | None = None) -> None:
        try:
            if table_uuid is not None and self.has_table(identifier):
                check_is_same(table_uuid, Schemas(self.table_files(identifier)).latest(), table=str(identifier))
            if self.has_table(identifier) or self._half_removed(identifier):
                return self._remove(identifier.directory)
        except NotFoundError:
            pass  # another one has removed it meanwhile
        if not ignore_if_not_exists:
            raise self._no_table(identifier)

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        if not self.has_table(identifier):
            if ignore_if_not_exists:
                return
            raise self._no_table(identifier)
        if not self.has_database(new.database):
            raise refusals.no_database(new.database, self._files.root_uri, self.list_databases())
        if self.has_table(new):
            raise refusals.name_taken(new)
        if not isinstance(self._files, RenamesDirectories):
            raise refusals.cannot_rename(identifier, new, self._files.root_uri)
        self._refuse_defined(new)
        self._refuse_half_removed(new)
        self._files.rename_directory(identifier.directory, new.directory)

    def table_files(self, identifier: Identifier) -> FileStore:
        if not self.has_table(identifier):
            raise self._no_table(identifier)
        return self._files.at(identifier.directory)

    # ---- definitions

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        names = map(defined_name, self._files.names(definitions_directory(database, kind)))
        return tuple(sorted(name for name in names if name is not None))

    def find_definition(self, identifier: Identifier, kind: DefinitionKind) -> str | None:
        path = definition_path(identifier, kind)
        try:
            return self._files.read(path, max_bytes=MOST_BYTES).decode()
        except NotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self._files.root_uri}/{path}: expected a definition in UTF-8 ({error.reason} at byte {error.start}); restore "
                "the file, or remove it",
                kind="definition",
            ) from error

    def keep_definition(self, identifier: Identifier, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        self._check_database(identifier)
        path, data = definition_path(identifier, kind), text.encode()
        if len(data) > MOST_BYTES:
            raise InvalidInputError(
                f"the definition of {identifier} has {len(data):,} bytes, and may have {MOST_BYTES:,}; make it shorter",
                kind="limit",
            )
        self._refuse_table(identifier, kind)
        if replace:
            self._files.overwrite(path, data)
        elif not self._files.publish_if_absent(path, data) and not self._holds(path, data):
            raise refusals.defined(identifier, self._files.root_uri)
        try:
            self._refuse_table(identifier, kind)
        except AlreadyExistsError:
            # A table was created meanwhile: this gives way.
            self._files.delete(path)
            raise

    def drop_definition(self, identifier: Identifier, kind: DefinitionKind) -> bool:
        return self._files.delete(definition_path(identifier, kind))

    def _refuse_table(self, identifier: Identifier, kind: DefinitionKind) -> None:
        if kind is DefinitionKind.RELATION and self.has_table(identifier):
            raise refusals.name_taken(identifier)

    def _refuse_defined(self, identifier: Identifier) -> None:
        if self._files.exists(definition_path(identifier, DefinitionKind.RELATION)):
            raise refusals.defined(identifier, self._files.root_uri)

    # ---- helpers

    def _set_aside(self, directory: str) -> str:
        """Moves what lies in ``directory`` aside, to be deleted, and returns the new place: what is created there meanwhile is
        safe."""
        if not isinstance(self._files, RenamesDirectories):
            return directory
        aside = f"{TEMPORARY_PREFIX}{self._ids.uuid()}"
        try:
            self._files.rename_directory(directory, aside)
        except (UnsupportedError, StorageError):  # a file system that cannot, or a database on another one
            return directory
        return aside

    def _remove(self, directory: str) -> None:
        aside = self._set_aside(directory)
        if aside != directory:
            # Nobody reads it there, so it may go in any order. If it was a link, what it led to is not reached any more.
            self._files.delete_directory(aside)
            return
        # Without schemas it is no table: whatever happens after this line, nobody reads half of one.
        self._files.delete_directory(f"{directory}/{SCHEMA_DIR}")
        for info in self._files.list(directory):
            if info.is_dir and info.name != SNAPSHOT_DIR:
                self._files.delete_directory(f"{directory}/{info.name}")
        self._files.delete_directory(directory)

    def _half_removed(self, identifier: Identifier) -> bool:
        return not self.has_table(identifier) and bool(self._files.names(f"{identifier.directory}/{SNAPSHOT_DIR}"))

    def _refuse_half_removed(self, identifier: Identifier) -> None:
        # The rest is not removed here: who removes the table may still be at it.
        if self._half_removed(identifier):
            raise AlreadyExistsError(
                f"directory {self._files.root_uri}/{identifier.directory} holds snapshots and no schema: table {identifier} is "
                "being removed or created with its rows, or what did that died. If nobody is at it, call "
                f"catalog.drop_table({str(identifier)!r}) to remove the rest, and repeat",
                kind="half-removed-table",
            )

    def _refuse_others_files(self, identifier: Identifier) -> None:
        # A table that is dropped takes all of its directory along. What writers of a table that was dropped left is no reason.
        if (foreign_path := next(others_files(self._files, identifier.directory), None)) is not None:
            raise refusals.directory_exists(identifier, self._files.root_uri, foreign_path)

    def _no_table(self, identifier: Identifier) -> NotFoundError:
        if not self.has_database(identifier.database):
            return refusals.no_database_of_table(identifier, self._files.root_uri, self.list_databases())
        return refusals.no_table(identifier, self._files.root_uri, self.list_tables(identifier.database))


def _schema_ids(files: FileStore, directory: str) -> list[int]:
    """The ids of the schemas of the table in a directory; none where there is no table."""
    names = files.names(f"{directory}/{SCHEMA_DIR}", prefix="schema-")
    return [schema_id for name in names if (schema_id := parse_schema_id(name)) is not None]
