"""Warehouses in which creations are tested: over stores that rename directories or not, with names in directories or a database."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa

from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.settings import CatalogSettings
from tablestore.catalog.sqlcatalog import SqlCatalog
from tablestore.io.filestore import ExchangesDirectories, FileStore, RenamesDirectories
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.store.history.unfinishedbranches import walk
from tablestore.table.catalog import Catalog
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.files import FaultyFileStore
from tablestore.testing.memorylog import MemoryBroker, memory_logs

KINDS = ("memory", "local", "copying", "sqlite", "sqlite-copying")
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
NAME = "shop.orders"
_numbers = count()


class RenamingFaultyStore(FaultyFileStore):
    """One that renames directories too; the other one is as an object store is."""

    def rename_directory(self, old: str, new: str) -> None:
        inner = self.inner
        assert isinstance(inner, RenamesDirectories)
        self._do("rename_directory", old, lambda: inner.rename_directory(old, new))

    def exchange_directories(self, one: str, other: str) -> None:
        inner = self.inner
        assert isinstance(inner, ExchangesDirectories)
        self._do("exchange_directories", one, lambda: inner.exchange_directories(one, other))


class Place:
    """A warehouse with the database ``shop``, opened by several, each with ids of its own."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.clock, self._opened = kind, ManualClock(), 0
        number = next(_numbers)
        self.files: FileStore = MemoryFileStore.private(f"place-{number}", clock=self.clock)
        if kind == "local":
            self.files = LocalFileStore(folder / f"warehouse-{number}")
        if kind.endswith("copying"):
            self.files = WrappedFileStore(self.files)
        self._url = f"sqlite:///{folder}/catalog-{number}.db" if kind.startswith("sqlite") else None
        self.open().create_database("shop")

    def open(self, files: FileStore | None = None) -> Catalog:
        """The catalog as another process opens it, over a store of its own."""
        self._opened += 1
        ids, store = SeededIds(self._opened), files or self.files
        meta = FileSystemCatalog(store, ids) if self._url is None else SqlCatalog(store, ids, url=self._url, key="jdbc")
        return Catalog(meta, self.clock, ids, CatalogSettings(warehouse=store.root_uri))

    @property
    def renames(self) -> bool:
        """Whether a table gets its name by a renaming."""
        return isinstance(self.files, RenamesDirectories)

    def rest(self) -> set[str]:
        """The files of the warehouse, but the mark of its database."""
        found = (path for info in self.files.list("") if info.is_dir for path, _ in walk(self.files, info.name))
        return {path for path in found if not path.endswith("/_database")}


@contextmanager
def broker_of(name: str) -> Iterator[MemoryBroker]:
    """A broker in memory of a name of its own; tables that name its address have their log there."""
    broker = MemoryBroker(re.sub(r"[^a-z0-9]+", "-", name.lower()))
    try:
        with memory_logs():
            yield broker
    finally:
        broker.close()
