"""A catalog made of directories: ``<warehouse>/<database>.db/<table>/schema/schema-0``.

There is no registry to disagree with the files. A table exists if it has a schema file; publishing ``schema-0`` if absent is
the one step that creates it, so two creators cannot both win and a failed creation leaves nothing that counts. Over a memory
store this is the in-memory catalog.
"""

from dataclasses import replace

from tablestore.catalog.identifier import DATABASE_SUFFIX, Identifier, database_directory
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from tablestore.format.paths import SCHEMA_DIR, parse_schema_id, schema_path
from tablestore.format.schemafile import encode_schema
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore, RenamesDirectories
from tablestore.names import check_name
from tablestore.store.schemas import TABLE_UUID_OPTION
from tablestore.types.schema import TableSchema

DATABASE_MARKER = "_database"


class FileSystemCatalog:
    """The tables below one warehouse directory."""

    def __init__(self, files: FileStore, ids: Ids) -> None:
        self._files, self._ids = files, ids

    def list_databases(self) -> tuple[str, ...]:
        names = (info.name for info in self._files.list("") if info.is_dir and info.name.endswith(DATABASE_SUFFIX))
        return tuple(sorted(name.removesuffix(DATABASE_SUFFIX) for name in names))

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        # An empty directory does not exist on an object store; a marker file does, and foreign readers skip it.
        marker = f"{database_directory(name)}/{DATABASE_MARKER}"
        existed = self._has_database(name)
        created = self._files.publish_if_absent(marker, b"") and not existed
        if not created and not ignore_if_exists:
            raise AlreadyExistsError(
                f"database {name!r} exists in {self._files.root_uri}; pass ignore_if_exists=True to use it",
                kind="database-exists",
            )

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        if not self._has_database(name):
            if ignore_if_not_exists:
                return
            raise self._no_database(name)
        tables = self.list_tables(name)
        if tables and not cascade:
            raise InvalidInputError(
                f"database {name!r} holds {len(tables)} table(s), for example {tables[0]!r}; drop them first or pass cascade=True",
                kind="database-not-empty",
            )
        for table in tables:
            self.drop_table(Identifier(name, table))
        self._files.delete_directory(database_directory(name))

    def list_tables(self, database: str) -> tuple[str, ...]:
        if not self._has_database(database):
            raise self._no_database(database)
        directory = database_directory(database)
        names = sorted(info.name for info in self._files.list(directory) if info.is_dir)
        return tuple(name for name in names if self._schema_ids(f"{directory}/{name}"))

    def create_table(self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False) -> None:
        if not self._has_database(identifier.database):
            raise self._no_database(identifier.database)
        options = {**schema.options, TABLE_UUID_OPTION: self._ids.uuid()}
        data = encode_schema(replace(schema, options=options))
        path = f"{identifier.directory}/{schema_path(0)}"
        created = not self._exists(identifier) and self._files.publish_if_absent(path, data)
        if not created and not ignore_if_exists:
            raise AlreadyExistsError(
                f"Failed to create file store path. Reason: directory {self._files.root_uri}/{identifier.directory} exists for "
                f"table {identifier}. Suggestion: open it with catalog.table({str(identifier)!r}), pass ignore_if_exists=True "
                "to use it as it is, or choose another table name",
                kind="table-exists",
            )

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        if not self._exists(identifier):
            if ignore_if_not_exists:
                return
            raise self._no_table(identifier)
        # Without schemas it is no table: whatever happens after this line, nobody reads half of one.
        self._files.delete_directory(f"{identifier.directory}/{SCHEMA_DIR}")
        self._files.delete_directory(identifier.directory)

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        if not self._exists(identifier):
            if ignore_if_not_exists:
                return
            raise self._no_table(identifier)
        if not self._has_database(new.database):
            raise self._no_database(new.database)
        if self._exists(new):
            raise AlreadyExistsError(f"table {new} exists; drop it first or choose another name", kind="table-exists")
        if not isinstance(self._files, RenamesDirectories):
            raise UnsupportedError(
                f"{self._files.root_uri} cannot rename a directory in one step, so {identifier} cannot become {new} atomically; "
                "create the new table from the old one and drop the old one"
            )
        self._files.rename_directory(identifier.directory, new.directory)

    def table_files(self, identifier: Identifier) -> FileStore:
        if not self._exists(identifier):
            raise self._no_table(identifier)
        return self._files.at(identifier.directory)

    def _has_database(self, name: str) -> bool:
        directory = database_directory(name)
        return any(info.is_dir and info.name == directory for info in self._files.list("", prefix=directory))

    def _exists(self, identifier: Identifier) -> bool:
        return bool(self._schema_ids(identifier.directory))

    def _schema_ids(self, directory: str) -> list[int]:
        infos = self._files.list(f"{directory}/{SCHEMA_DIR}", prefix="schema-")
        return [schema_id for info in infos if (schema_id := parse_schema_id(info.name)) is not None]

    def _no_database(self, name: str) -> NotFoundError:
        known = ", ".join(self.list_databases()) or "none"
        return NotFoundError(
            f"no database {check_name(name, 'database')!r} in {self._files.root_uri} (known: {known}); create it with "
            f"catalog.create_database({name!r})",
            kind="no-such-database",
        )

    def _no_table(self, identifier: Identifier) -> NotFoundError:
        known = ", ".join(self.list_tables(identifier.database)) if self._has_database(identifier.database) else "none"
        return NotFoundError(
            f"Table with identifier '{identifier}' does not exist. Tables of {identifier.database!r} in {self._files.root_uri}: "
            f"{known or 'none'}",
            kind="no-such-table",
        )
