"""Opens a catalog from its settings: a built-in one, or one that another package brings as an entry point.

    [project.entry-points."tablestore.catalogs"]
    glue = "my_package:open_catalog"        # open_catalog(settings, ids) -> (catalog, settings)

``settings.storage`` holds the options that tablestore does not know; a catalog refuses those that it does not know either. It
passes ``tablestore.testing.contracts.metacatalog``, and returns the settings with the warehouse's own address.
"""

from dataclasses import replace
from importlib.metadata import entry_points

from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.settings import CATALOGS, FILESYSTEM, JDBC, MEMORY, REST, CatalogSettings
from tablestore.errors import UnsupportedError
from tablestore.ids import Ids
from tablestore.io.lock import lockoptions
from tablestore.io.opening import open_store
from tablestore.io.service.serviceoptions import (
    SERVICE_KEYS,
    SERVICE_PREFIX,
    SERVICE_RULES,
    SERVICE_TOKEN,
    SERVICE_URI,
    parse_service,
)


def open_meta_catalog(settings: CatalogSettings, ids: Ids) -> tuple[MetaCatalog, CatalogSettings]:
    """The catalog, and its settings made complete: the warehouse's own address, and a lock where the store needs one.

    A database that keeps the names keeps the lock too, unless another one is named.
    """
    if settings.metastore == MEMORY:
        from tablestore.io.memory import MemoryFileStore

        return FileSystemCatalog(MemoryFileStore.private(f"catalog-{ids.uuid()}"), ids), settings
    if settings.metastore == REST:
        return _rest(settings, ids)
    if settings.metastore not in (FILESYSTEM, JDBC):
        return _of_another_package(settings, ids)
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


def _rest(settings: CatalogSettings, ids: Ids) -> tuple[MetaCatalog, CatalogSettings]:
    from tablestore.catalog.restcatalog import open_rest_catalog  # its client loads what other catalogs have no use for

    service = {SERVICE_URI.key: settings.uri or ""}
    if settings.token is not None:
        service[SERVICE_TOKEN.key] = settings.token
    if settings.hands_out_keys:
        service[SERVICE_KEYS.key] = "true"
    client, _, _ = parse_service(service, ids=ids)
    assert client is not None, "it has an address"
    catalog, answer = open_rest_catalog(settings, client, ids, hands_out_keys=settings.hands_out_keys)
    if answer.prefix:
        service[SERVICE_PREFIX.key] = answer.prefix
    if answer.warehouse is None:
        service[SERVICE_RULES.key] = "by-table"
    warehouse, table_defaults = answer.warehouse or settings.warehouse, answer.merged(settings.table_defaults)
    return catalog, replace(settings, service=service, warehouse=warehouse, table_defaults=table_defaults)


def _of_another_package(settings: CatalogSettings, ids: Ids) -> tuple[MetaCatalog, CatalogSettings]:
    points = [point for point in entry_points(group=CATALOGS) if point.name == settings.metastore]
    if len(points) != 1:
        raise UnsupportedError(
            f"metastore = {settings.metastore}: expected one package to bring it, found "
            f"{', '.join(point.value for point in points) or 'none'}; install one of them alone",
            kind="catalog",
        )
    try:
        opened: tuple[MetaCatalog, CatalogSettings] = points[0].load()(settings, ids)
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"metastore = {settings.metastore}: {points[0].value} does not load ({error}); repair or remove its package",
            kind="catalog",
        ) from error
    return opened
