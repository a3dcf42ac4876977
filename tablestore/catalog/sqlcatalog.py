"""The SQL catalog: a database keeps the names, in the tables of Paimon's JDBC catalog. Its catalogs open ours, and we theirs.

    paimon_tables                  catalog_key, database_name, table_name                     a row a table
    paimon_database_properties     catalog_key, database_name, property_key, property_value   a row (exists, true) a database
    paimon_table_properties        copies of options that Paimon keeps; never read, removed and renamed with their table

The definitions of views, functions and tables with a connector lie beside the files.
The files lie where :class:`~tablestore.catalog.filesystem.FileSystemCatalog` puts them, and it does all that is done to them. The
row is the lock of a name: who creates, removes or renames a table has its row locked by a transaction meanwhile, which the database
frees when its holder dies. A table exists if it has a row *and* a schema:

    create     row -> (locked:) schema                     rename   new row -> (both locked:) directory -> old row gone
    remove     (locked:) files -> row gone

So whoever dies leaves a row without a schema at most. Such a name is free: the next one who creates or removes it takes it over.
Files without a row come from elsewhere (a warehouse that had no database before); they are never touched. A creation that ignores
what exists takes such a table into the catalog.

Paimon's Java catalog locks nothing that we could see, unless all is told to: two engines should not change one name at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from tablestore.catalog import refusals
from tablestore.catalog.definitions import DefinitionKind
from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.settings import URI, CatalogSettings
from tablestore.catalog.tablepublish import has_claim
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore, RenamesDirectories
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.io.lock.databaseurl import complete_url, ensure_table, exc, open_engine, parse_url, portable_url, reason, sa
from tablestore.lazy import lazy
from tablestore.names import check_name
from tablestore.types.schema import TableSchema

T = TypeVar("T")
_NAME = sa.String(255)
_METADATA = sa.MetaData()
TABLES = sa.Table(
    "paimon_tables",
    _METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("table_name", _NAME, primary_key=True),
)
DATABASE_PROPERTIES = sa.Table(
    "paimon_database_properties",
    _METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("property_key", _NAME, primary_key=True),
    sa.Column("property_value", sa.String(1000)),
)
TABLE_PROPERTIES = sa.Table(
    "paimon_table_properties",
    _METADATA,
    sa.Column("catalog_key", _NAME, primary_key=True),
    sa.Column("database_name", _NAME, primary_key=True),
    sa.Column("table_name", _NAME, primary_key=True),
    sa.Column("property_key", _NAME, primary_key=True),
    sa.Column("property_value", sa.String(1000)),
)
_EXISTS = "exists"

# One writer at a time in SQLite: from its first change on a transaction keeps others out, who wait for so long. PostgreSQL waits
# until the holder of the row has ended.
_SQLITE = {"timeout": 60, "isolation_level": "IMMEDIATE"}
# A row that was there can be gone before it is locked, once for each who removed the table meanwhile.
_ATTEMPTS = 20


def database_url(settings: CatalogSettings) -> str:
    """The URL of the database with user and password, from Paimon's spelling (``jdbc:…``) or SQLAlchemy's."""
    text = (settings.uri or "").removeprefix("jdbc:")
    if text.startswith("sqlite:") and not text.startswith("sqlite://"):
        text = f"sqlite:///{text.removeprefix('sqlite:').removeprefix('file:')}"
    url = parse_url(text, URI.key)
    if settings.user is not None:
        url = url.set(username=settings.user)
    if settings.password is not None:
        url = url.set(password=settings.password)
    return url.render_as_string(hide_password=False)


def lock_url(url: str) -> str:
    """The URL of the lock of tables. SQLite locks all of a file: the lock has a file of its own beside the catalog's."""
    parsed = parse_url(url, URI.key)
    if parsed.get_backend_name() == "sqlite":
        parsed = parsed.set(database=f"{parsed.database}.locks")
    return parsed.render_as_string(hide_password=False)


class SqlCatalog:
    """The tables of one catalog key in the database at ``url``, whose files lie in one warehouse."""

    supports_managed_table = True

    def __init__(self, files: FileStore, ids: Ids, *, url: str, key: str) -> None:
        self._files, self._ids, self._url, self._key = files, ids, url, key
        self._directories = FileSystemCatalog(files, ids)

    @property
    def files(self) -> FileStore:
        return self._files

    @property
    def serializable(self) -> bool:
        return self._directories.serializable

    @property
    def lock(self) -> CatalogLock | None:
        return self._directories.lock

    def __reduce__(self) -> tuple[object, ...]:
        self._directories.__reduce__()  # refuses a warehouse in memory
        return _unpickled, (self._files, self._ids, portable_url(self._url, URI.key), self._key)

    # ---- databases

    def list_databases(self) -> tuple[str, ...]:
        parts = (sa.select(of.c.database_name).where(of.c.catalog_key == self._key) for of in (DATABASE_PROPERTIES, TABLES))
        with self._transaction() as connection:
            return tuple(sorted(connection.execute(sa.union(*parts)).scalars()))

    def has_database(self, name: str) -> bool:
        check_name(name, "database")
        return name in self.list_databases()

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        check_name(name, "database")
        row = {"catalog_key": self._key, "database_name": name, "property_key": _EXISTS, "property_value": "true"}
        try:
            with self._transaction() as connection:
                connection.execute(sa.insert(DATABASE_PROPERTIES).values(row))
        except exc.IntegrityError:
            if not ignore_if_exists:
                raise refusals.database_exists(name, self._where) from None
        self._directories.create_database(name, ignore_if_exists=True)

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        if not self.has_database(name):
            if ignore_if_not_exists:
                return
            raise refusals.no_database(name, self._where, self.list_databases())
        identifiers = [Identifier(name, table) for table in self.list_tables(name)]
        if not cascade and (
            tables := tuple(identifier.table for identifier in identifiers if self._directories.has_table(identifier))
        ):
            raise refusals.database_not_empty(name, tables)
        kinds = [kind for kind in DefinitionKind if kind.fills_database]
        defined = [defined for kind in kinds for defined in self.list_definitions(name, kind)]
        if defined and not cascade:
            raise refusals.database_not_empty(name, defined, refusals.DEFINITIONS)
        for identifier in identifiers:
            self.drop_table(identifier, ignore_if_not_exists=True)
        with self._transaction() as connection:
            self._lock_database(connection, name)
            if tables := self._tables(connection, name):  # made meanwhile
                raise refusals.database_not_empty(name, tables)
            if self._directories.has_database(name):
                if tables := self._directories.list_tables(name):
                    raise InvalidInputError(self._unnamed(Identifier(name, tables[0])), kind="database-not-empty")
                self._directories.drop_database(name, cascade=cascade)
            connection.execute(sa.delete(DATABASE_PROPERTIES).where(*self._of(DATABASE_PROPERTIES, name)))

    # ---- tables

    def list_tables(self, database: str) -> tuple[str, ...]:
        check_name(database, "database")
        with self._transaction() as connection:
            tables = self._tables(connection, database)
        if not tables and not self.has_database(database):
            raise refusals.no_database(database, self._where, self.list_databases())
        return tables

    def has_table(self, identifier: Identifier) -> bool:
        with self._transaction() as connection:
            row = connection.execute(sa.select(TABLES).where(*self._of(TABLES, identifier.database, identifier.table))).first()
        return row is not None and self._directories.has_table(identifier)

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False, table_uuid: str | None = None
    ) -> bool:
        def create() -> bool:
            self._remove_rest(identifier)
            return self._directories.create_table(identifier, schema, ignore_if_exists=ignore_if_exists, table_uuid=table_uuid)

        return self._with_row(identifier, create, take_over=ignore_if_exists)

    def publish_table(self, identifier: Identifier, directory: str, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        if not self.has_database(identifier.database):
            raise refusals.no_database(identifier.database, self._where, self.list_databases())
        if self.has_table(identifier):
            raise refusals.table_exists(identifier, self._files.root_uri)
        self._with_row(identifier, lambda: self._remove_rest(identifier), take_over=False)
        with self._directories.publishing(identifier, directory, is_wanted) as publish:
            publish.bring()  # copies can take long: the row is locked afterwards
            self._with_row(identifier, lambda: self._directories.reveal(identifier, publish), take_over=False)

    # ---- definitions

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        return self._directories.list_definitions(database, kind)

    def find_definition(self, identifier: Identifier, kind: DefinitionKind) -> str | None:
        return self._directories.find_definition(identifier, kind)

    def keep_definition(self, identifier: Identifier, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        if not self.has_database(identifier.database):
            raise refusals.no_database(identifier.database, self._where, self.list_databases())
        self._prepare_database(identifier)
        self._directories.keep_definition(identifier, kind, text, replace=replace)

    def drop_definition(self, identifier: Identifier, kind: DefinitionKind) -> bool:
        return self._directories.drop_definition(identifier, kind)

    def _with_row(self, identifier: Identifier, make: Callable[[], T], *, take_over: bool) -> T:
        """Calls ``make``, which makes the table of a name, while the name's row is locked."""
        for _ in range(_ATTEMPTS):
            self._claim(identifier, take_over=take_over)
            try:
                with self._transaction() as connection:
                    if not self._lock(connection, identifier):
                        continue
                    self._prepare_database(identifier)
                    if not self._directories.has_table(identifier):
                        self._forget_properties(connection, identifier)
                    return make()
            except Exception:
                self._give_up(identifier)
                raise
        raise self._busy(identifier)

    def _remove_rest(self, identifier: Identifier) -> None:
        # The row is locked, so whoever began to remove the rest is gone. A table that arrives locks it for its last step only.
        directory = identifier.directory
        if not self._directories.has_table(identifier) and not has_claim(self._files, directory):
            self._directories.drop_table(identifier, ignore_if_not_exists=True)

    def _prepare_database(self, identifier: Identifier) -> None:
        """A database that was made elsewhere has a row, and may have no directory."""
        if not self._directories.has_database(identifier.database):
            self._directories.create_database(identifier.database, ignore_if_exists=True)

    def exchange_table(self, identifier: Identifier, directory: str, *, table_uuid: str | None) -> None:
        with self._transaction() as connection:
            if not self._lock(connection, identifier):
                raise self._no_table(identifier)
            self._directories.exchange_table(identifier, directory, table_uuid=table_uuid)

    def abandon_arrival(self, identifier: Identifier, directory: str) -> None:
        self._directories.abandon_arrival(identifier, directory)
        self._give_up(identifier)

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False, table_uuid: str | None = None) -> None:
        with self._transaction() as connection:
            if self._lock(connection, identifier):
                self._directories.drop_table(identifier, ignore_if_not_exists=True, table_uuid=table_uuid)
                self._forget_properties(connection, identifier)
                self._forget(connection, identifier)
                return
        if not ignore_if_not_exists:
            raise self._no_table(identifier)

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        if not self.has_table(identifier):
            if ignore_if_not_exists:
                return
            raise self._no_table(identifier)
        if self.has_table(new):
            raise refusals.name_taken(new)
        if not isinstance(self._files, RenamesDirectories):
            raise refusals.cannot_rename(identifier, new, self._files.root_uri)
        for _ in range(_ATTEMPTS):
            self._claim(new, take_over=False)
            try:
                if self._renamed(identifier, new):
                    return
            except Exception as error:
                self._give_up(new)
                if ignore_if_not_exists and isinstance(error, NotFoundError):
                    return
                raise
        raise self._busy(new)

    def table_files(self, identifier: Identifier) -> FileStore:
        if not self.has_table(identifier):
            raise self._no_table(identifier)
        return self._directories.table_files(identifier)

    # ---- names and their rows

    def _claim(self, identifier: Identifier, *, take_over: bool) -> None:
        """Give a name a row if it has none. Raises NotFoundError if there is no such database."""
        row = {"catalog_key": self._key, "database_name": identifier.database, "table_name": identifier.table}
        try:
            with self._transaction() as connection:
                connection.execute(sa.insert(TABLES).values(row))
                # Locked until this row is there: who drops the database sees it, or has dropped it before.
                locked = self._lock_database(connection, identifier.database)
                if not locked and self._tables(connection, identifier.database) == (identifier.table,):
                    raise refusals.no_database(identifier.database, self._where, self.list_databases())
                if not take_over and self._directories.has_table(identifier):
                    raise AlreadyExistsError(self._unnamed(identifier), kind="table-exists")
        except exc.IntegrityError:
            return  # it has one

    def _give_up(self, identifier: Identifier) -> None:
        """Remove the row of a name again, unless there is a table by now."""
        # The first error is raised; a row that stays is free.
        with suppress(StorageError), self._transaction() as connection:
            if self._lock(connection, identifier) and not self._directories.has_table(identifier):
                self._forget(connection, identifier)

    def _renamed(self, identifier: Identifier, new: Identifier) -> bool:
        """True if the table has its new name: not if that has lost its row meanwhile. Raises NotFoundError, AlreadyExistsError."""
        with self._transaction() as connection:
            # In one order, so that two who rename in a circle do not wait for each other.
            locked = {name: self._lock(connection, name) for name in sorted((identifier, new), key=str)}
            if not locked[identifier] or not self._directories.has_table(identifier):
                raise self._no_table(identifier)
            if self._directories.has_table(new):
                raise refusals.name_taken(new)
            if not locked[new]:
                return False
            self._directories.drop_table(new, ignore_if_not_exists=True)
            if not self._directories.has_database(new.database):
                self._directories.create_database(new.database, ignore_if_exists=True)
            self._forget_properties(connection, new)
            self._directories.rename_table(identifier, new)
            moved = sa.update(TABLE_PROPERTIES).where(*self._of(TABLE_PROPERTIES, identifier.database, identifier.table))
            connection.execute(moved.values(database_name=new.database, table_name=new.table))
            self._forget(connection, identifier)
            return True

    def _lock(self, connection: sa.Connection, identifier: Identifier) -> bool:
        """Lock the row of a name until the transaction ends; false if it has none. A change to what it was locks everywhere."""
        locking = sa.update(TABLES).where(*self._of(TABLES, identifier.database, identifier.table))
        return connection.execute(locking.values(table_name=identifier.table)).rowcount == 1

    def _lock_database(self, connection: sa.Connection, name: str) -> bool:
        locking = sa.update(DATABASE_PROPERTIES).where(*self._of(DATABASE_PROPERTIES, name))
        return connection.execute(locking.values(database_name=name)).rowcount > 0

    def _tables(self, connection: sa.Connection, database: str) -> tuple[str, ...]:
        return tuple(sorted(connection.execute(sa.select(TABLES.c.table_name).where(*self._of(TABLES, database))).scalars()))

    def _forget(self, connection: sa.Connection, identifier: Identifier) -> None:
        connection.execute(sa.delete(TABLES).where(*self._of(TABLES, identifier.database, identifier.table)))

    def _forget_properties(self, connection: sa.Connection, identifier: Identifier) -> None:
        connection.execute(sa.delete(TABLE_PROPERTIES).where(*self._of(TABLE_PROPERTIES, identifier.database, identifier.table)))

    def _of(self, table: sa.Table, database: str, name: str | None = None) -> list[sa.ColumnElement[bool]]:
        conditions = [table.c.catalog_key == self._key, table.c.database_name == database]
        return conditions if name is None else [*conditions, table.c.table_name == name]

    # ---- the database

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except exc.IntegrityError:
            raise  # a row is there already: the caller knows what that means
        except exc.SQLAlchemyError as error:
            raise self._failed(error) from error

    @lazy
    def _engine(self) -> sa.Engine:
        """The engine of a database that has the tables."""
        engine = open_engine(parse_url(self._url, URI.key), URI.key, sqlite=_SQLITE)
        try:
            with engine.connect() as connection:
                for table in _METADATA.sorted_tables:
                    ensure_table(connection, table)
        except exc.SQLAlchemyError as error:
            raise self._failed(error) from error
        return engine

    @property
    def _where(self) -> str:
        return parse_url(self._url, URI.key).render_as_string(hide_password=True)

    def _failed(self, error: exc.SQLAlchemyError) -> StorageError:
        return StorageError(
            f"the database of the catalog, {self._where}, failed: {reason(error)}; check that it runs and that its user may create "
            "and change tables, look whether what you asked for is done, and repeat",
            kind="catalog-database",
        )

    def _no_table(self, identifier: Identifier) -> NotFoundError:
        if not self.has_database(identifier.database):
            return refusals.no_database_of_table(identifier, self._where, self.list_databases())
        return refusals.no_table(identifier, self._where, self.list_tables(identifier.database))

    def _unnamed(self, identifier: Identifier) -> str:
        return (
            f"directory {self._files.root_uri}/{identifier.directory} holds a table that {self._where} does not name; take it into "
            f"the catalog with create_table({str(identifier)!r}, …, ignore_if_exists=True), or move it away"
        )

    def _busy(self, identifier: Identifier) -> StorageError:
        return StorageError(f"others create and remove {identifier} all the time; repeat when they have done", kind="catalog-busy")


def _unpickled(files: FileStore, ids: Ids, url: str, key: str) -> SqlCatalog:
    return SqlCatalog(files, ids, url=complete_url(url), key=key)
