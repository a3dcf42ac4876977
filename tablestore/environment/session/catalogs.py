"""Keeps the catalogs of a session, and the current catalog and database.

Every catalog has the database ``default``, made with the first table in it: a fresh warehouse takes ``CREATE TABLE t`` at once, and
one that is only read stays as it is. A catalog is opened when it is first used; what creations that died long ago have left in
it goes then.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tablestore.environment.objectpath import known
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.names import check_name
from tablestore.table.catalog import Catalog

LOG = logging.getLogger(__name__)

DEFAULT_CATALOG = "tablestore"
DEFAULT_DATABASE = "default"


@dataclass(kw_only=True)
class Registered:
    """One catalog. ``owned``: this session closes it."""

    open: Callable[[], Catalog]
    owned: bool = True
    opened: Catalog | None = None

    def get(self) -> Catalog:
        """The catalog, opened."""
        if self.opened is None:
            self.opened = self.open()
            sweep_dead(self.opened)
        return self.opened

    def shown(self) -> Mapping[str, str]:
        """The properties it was opened with, without secrets."""
        return self.get().properties


class Catalogs:
    """Catalogs by name."""

    def __init__(self) -> None:
        self._all: dict[str, Registered] = {}
        self.current = DEFAULT_CATALOG
        self.current_database = DEFAULT_DATABASE
        self._closed = False

    def check_open(self) -> None:
        """Raises InvalidInputError once :meth:`close` was called."""
        if self._closed:
            raise InvalidInputError(
                "this environment was closed with close(): make another one with TableEnvironment.create(…)", kind="closed"
            )

    def register(self, name: str, registered: Registered) -> None:
        """Adds a catalog. Raises AlreadyExistsError."""
        self.check_open()
        if check_name(name, "catalog") in self._all:
            raise AlreadyExistsError(
                f"a catalog {name!r} is registered; drop it first or choose another name", kind="catalog-exists"
            )
        self._all[name] = registered

    def drop(self, name: str) -> None:
        """Forgets a catalog; what it holds stays. Raises NotFoundError, InvalidInputError for the current one."""
        entry = self.entry(name)
        if name == self.current:
            raise InvalidInputError(f"catalog {name!r} is the current one: USE CATALOG another one first", kind="current-catalog")
        del self._all[name]
        self._close(entry)

    def names(self) -> tuple[str, ...]:
        """Names of all catalogs, ascending."""
        self.check_open()
        return tuple(sorted(self._all))

    def entry(self, name: str) -> Registered:
        """The catalog that is registered under a name. Raises NotFoundError."""
        self.check_open()
        if name not in self._all:
            raise NotFoundError(f"no catalog {name!r:.120}{known(self._all, name)}", kind="no-such-catalog")
        return self._all[name]

    def get(self, name: str) -> Catalog:
        """A catalog. Raises NotFoundError, and whatever opening it raises."""
        return self.entry(name).get()

    def databases(self, name: str) -> tuple[str, ...]:
        """The databases of a catalog, ascending."""
        return tuple(sorted({*self.get(name).list_databases(), DEFAULT_DATABASE}))

    def check_database(self, catalog: str, database: str) -> None:
        """Raises NotFoundError unless a catalog has a database."""
        if database != DEFAULT_DATABASE and not self.get(catalog).database_exists(database):
            databases = self.databases(catalog)
            raise NotFoundError(
                f"no database {database!r:.120} in catalog {catalog!r}{known(databases, database)}; CREATE DATABASE makes one",
                kind="no-such-database",
            )

    def is_unmade(self, catalog: str, database: str) -> bool:
        """True for the default database while it is not made yet."""
        return database == DEFAULT_DATABASE and not self.get(catalog).database_exists(database)

    def tables(self, catalog: str, database: str) -> tuple[str, ...]:
        """The tables of a database, ascending. Raises NotFoundError."""
        self.check_database(catalog, database)
        return () if self.is_unmade(catalog, database) else self.get(catalog).list_tables(database)

    def use(self, catalog: str, database: str = DEFAULT_DATABASE) -> None:
        """Makes a catalog and a database of it the current ones. Raises NotFoundError."""
        self.entry(catalog)
        if database != DEFAULT_DATABASE:
            self.check_database(catalog, database)
        self.current, self.current_database = catalog, database

    def close(self) -> None:
        """Closes the catalogs that this session opened. It can be repeated."""
        self._closed = True
        for entry in self._all.values():
            self._close(entry)

    @staticmethod
    def _close(entry: Registered) -> None:
        if entry.owned and entry.opened is not None:
            entry.opened.close()


def sweep_dead(catalog: Catalog) -> None:
    """Removes what creations that died have left. What cannot be removed waits for ``tablestore clean``."""
    try:
        if catalog.list_creations() and catalog.sweep_creations().creations:
            catalog.release_dead_holds()
    except TablestoreError as error:
        LOG.warning("what creations that died have left could not be removed: %s", error)
