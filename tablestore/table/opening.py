"""Opens handles: ``open_catalog`` and ``open_table``."""

from collections.abc import Mapping
from typing import Any

from tablestore.catalog.opening import open_meta_catalog
from tablestore.catalog.settings import parse_catalog_settings
from tablestore.clock import Clock, SystemClock
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.ids import Ids, SystemIds
from tablestore.io.opening import open_store
from tablestore.store.context import open_context
from tablestore.store.schemas import Schemas
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemkinds import SEPARATOR
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.table.tablenames import named_part
from tablestore.telemetry.observers import Observers
from tablestore.telemetry.observers import observers as make_observers


def open_catalog(
    warehouse: str | Mapping[str, Any] | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    observers: Observers | None = None,
    **options: Any,
) -> Catalog:
    """Open the catalog of a warehouse: a directory, ``memory://name``, ``s3://bucket/path`` or any fsspec URL.

    ``metastore`` says where names are kept: ``filesystem`` (the directories of the warehouse, the default), ``jdbc`` (a database,
    at ``uri``) or ``memory`` (private memory, no warehouse). ``table-default.<option>`` are options that new tables get where they
    name none. The other options go to the file system (``key=``, ``secret=``, ``endpoint_url=``, …). Instead of a warehouse a
    dict with all of them may be given. ``observers``: who watches its tables, in place of those that its options name. Nothing is
    created before the first database, but the tables of the database at ``uri``.
    Raises InvalidInputError, also for an option that nobody knows; UnsupportedError for a package that is missing.
    """
    if isinstance(warehouse, Mapping):
        options = {**warehouse, **options}
    elif warehouse is not None:
        options = {**options, "warehouse": warehouse}
    place = options.get("warehouse")
    if place is not None and not isinstance(place, str) and not hasattr(place, "__fspath__"):
        raise InvalidInputError(
            f'expected a warehouse as a path or URL, found {place!r}; for example open_catalog("/data/warehouse")'
        )
    clock, ids = clock or SystemClock(), ids or SystemIds()
    parsed = parse_catalog_settings(options)
    if observers is None:
        observers = make_observers(clock, ids, opentelemetry=parsed.opentelemetry, openlineage=parsed.openlineage)
    meta, settings = open_meta_catalog(parsed, ids)
    return Catalog(meta, clock, ids, settings, observers)


def open_table(path: str, *, clock: Clock | None = None, ids: Ids | None = None, **options: Any) -> Table | SystemTable:
    """Open the table whose directory is ``path`` (also a URL), without a catalog. Raises NotFoundError.

    ``path$files`` is a system table of it, ``path$branch_b`` a branch.
    """
    directory, separator, suffix = _split(str(path))
    files = open_store(str(path), options)
    if separator and not Schemas(files).ids():
        files = open_store(directory, options)
    else:
        separator = ""
    try:
        context = open_context(files, clock=clock, ids=ids)
    except NotFoundError as error:
        if error.kind == "no-such-table" and (other := next((it for it in _OTHER_TABLES if files.names(it)), None)) is not None:
            raise UnsupportedError(
                f"{files.root_uri} is a table of {_OTHER_TABLES[other]} ({other} is in it), expected one of tablestore or Apache "
                "Paimon: read it with its own library, and write its rows into a table here; docs/guides/migrate.md has the lines",
                kind="other-format",
            ) from error
        raise
    table = Table(context, files.root_uri)
    return named_part(table, suffix) if separator else table


# The directory that tells whose a table is.
_OTHER_TABLES = {"_delta_log": "Delta Lake", "metadata": "Apache Iceberg", ".hoodie": "Apache Hudi", "_versions": "Lance"}


def _split(path: str) -> tuple[str, str, str]:
    """A path and what stands behind the first separator of its last part."""
    parent, slash, last = path.rstrip("/").rpartition("/")
    name, separator, suffix = last.partition(SEPARATOR)
    return f"{parent}{slash}{name}", separator, suffix
