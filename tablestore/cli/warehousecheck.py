"""Refuses a folder that is no warehouse: a warehouse of files is a folder of databases, ``<name>.db``.

A catalog that keeps its names in a database or a service says itself what it lacks, and passes.
"""

from collections.abc import Sequence

import tablestore as ts
from tablestore.catalog.identifier import DATABASE_SUFFIX
from tablestore.catalog.settings import FILESYSTEM, METASTORE
from tablestore.format.paths import SCHEMA_DIR, parse_schema_id
from tablestore.table.catalog import Catalog, tools_of

# Names beside the databases that count for nothing: what is being written or removed, and files that systems leave everywhere.
_HIDDEN = (".", "_")
_SHOWN = 3


def check_is_warehouse(catalog: Catalog, *, may_be_empty: bool) -> None:
    """Raises NotFoundError of kind ``no-warehouse`` where the folder holds no database.

    ``may_be_empty``: a folder in which nothing lies, or that is not there, is a warehouse whose first database is still to come.
    """
    if catalog.properties.get(METASTORE.key) != FILESYSTEM or catalog.list_databases():
        return
    files = tools_of(catalog).meta.files
    held = [name for name in files.names("") if not name.startswith(_HIDDEN)]
    if not held and may_be_empty:
        return
    is_table = any(parse_schema_id(name) is not None for name in files.names(SCHEMA_DIR))
    raise ts.NotFoundError(_sentence(files.root_uri, held, is_table=is_table), kind="no-warehouse")


def _sentence(place: str, held: Sequence[str], *, is_table: bool) -> str:
    expected = f"expected a warehouse, which is a folder of databases (<name>{DATABASE_SUFFIX}), at {place}, found"
    above, _, name = place.rstrip("/").rpartition("/")
    if is_table:
        return f"{expected} a table; name the folder that its database lies in, {above.rpartition('/')[0] or '/'}"
    if name.endswith(DATABASE_SUFFIX):
        return f"{expected} a database; name the folder that it lies in, {above or '/'}"
    makes = f"tablestore db create NAME --warehouse {place} makes the first database"
    if not held:
        return f"{expected} nothing; name the folder of your tables, or {makes}"
    more = "" if len(held) <= _SHOWN else f" and {len(held) - _SHOWN:,} more"
    shown = ", ".join(f"{name:.80}" for name in held[:_SHOWN])
    return f"{expected} no database, only {shown}{more}; name the folder of your tables, or {makes}"
