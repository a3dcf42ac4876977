"""The contract of catalogs, over directories, private memory, SQLite and a real PostgreSQL."""

from itertools import count
from pathlib import Path

import pytest

from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.sqlcatalog import SqlCatalog
from tablestore.ids import SystemIds
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.contracts.metacatalog import CatalogOf, MetaCatalogContract
from tests.support.servers.postgres import PostgresServer

_databases = count()


class TestFileSystem(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self, tmp_path: Path) -> CatalogOf:
        return lambda: FileSystemCatalog(LocalFileStore(str(tmp_path / "warehouse")), SystemIds())


class TestMemory(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self) -> CatalogOf:
        catalog: MetaCatalog = FileSystemCatalog(MemoryFileStore.private("contract"), SystemIds())
        return lambda: catalog


class TestSqlite(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self, tmp_path: Path) -> CatalogOf:
        return sql_catalog(tmp_path, f"sqlite:///{tmp_path}/catalog.db")


@pytest.mark.xdist_group("postgres")
class TestPostgres(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self, tmp_path: Path, postgres: PostgresServer) -> CatalogOf:
        return sql_catalog(tmp_path, postgres.make_database(f"contract{next(_databases)}"))


def sql_catalog(folder: Path, url: str) -> CatalogOf:
    return lambda: SqlCatalog(LocalFileStore(str(folder / "warehouse")), SystemIds(), url=url, key="jdbc")
