"""A catalog that remembers which tables were opened by it: what Ctrl-C looks at, to say what had landed."""

from collections.abc import Callable, Mapping
from typing import Any

from tablestore.catalog.opening import open_meta_catalog
from tablestore.catalog.settings import WAREHOUSE, parse_catalog_settings
from tablestore.clock import SystemClock
from tablestore.ids import Ids
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table


class WatchedCatalog(Catalog):
    """``opened`` gets each table."""

    opened: Callable[[Table], None]

    def table(self, name: str) -> Table | SystemTable:
        """Open a table, as ever."""
        table = super().table(name)
        if isinstance(table, Table):
            self.opened(table)
        return table


def open_watched(warehouse: str, storage: Mapping[str, Any], ids: Ids, opened: Callable[[Table], None]) -> WatchedCatalog:
    """The catalog of a warehouse."""
    meta, settings = open_meta_catalog(parse_catalog_settings({**storage, WAREHOUSE.key: warehouse}), ids)
    catalog = WatchedCatalog(meta, SystemClock(), ids, settings)
    catalog.opened = opened
    return catalog
