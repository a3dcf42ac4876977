"""Opens a catalog from its settings."""

from dataclasses import replace

from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.settings import JDBC, MEMORY, CatalogSettings
from tablestore.ids import Ids
from tablestore.io.lock import lockoptions
from tablestore.io.opening import open_store


def open_meta_catalog(settings: CatalogSettings, ids: Ids) -> tuple[MetaCatalog, CatalogSettings]:
    """The catalog, and its settings made complete: the warehouse's own address, and a lock where the store needs one.

    A database that keeps the names keeps the lock too, unless another one is named.
    """
    if settings.metastore == MEMORY:
        from tablestore.io.memory import MemoryFileStore

        return FileSystemCatalog(MemoryFileStore.private(f"catalog-{ids.uuid()}"), ids), settings
    assert settings.warehouse is not None, "the parser saw to it"
    store = open_store(settings.warehouse, settings.storage)
    if settings.metastore != JDBC:
        return FileSystemCatalog(store, ids), replace(settings, warehouse=store.root_uri)
    from tablestore.catalog.sqlcatalog import (  # SQLAlchemy is an extra, and takes a while to import
        SqlCatalog,
        database_url,
        lock_url,
    )

    url, warehouse = database_url(settings), settings.warehouse
    if not store.can_publish:
        settings = replace(settings, lock={lockoptions.TYPE.key: "sql", lockoptions.LOCATION.key: lock_url(url)})
        # The store pickles with the tables: it keeps the lock's address without a password, which this process knows.
        store = open_store(warehouse, settings.without_password().storage_options)
    return SqlCatalog(store, ids, url=url, key=settings.key), replace(settings, warehouse=store.root_uri)
