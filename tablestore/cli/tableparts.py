"""Lists the parts of a table by name alone: columns, tags, snapshots, branches, consumers, options.

For the completion of a word, which must not keep the user waiting. Neither is the table opened nor Arrow loaded: the names of files
say what there is, and a schema file which columns. In an object store or an SQL catalog it takes as long as that takes to answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tablestore.catalog.identifier import parse_identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.opening import open_meta_catalog
from tablestore.catalog.settings import WAREHOUSE, parse_catalog_settings
from tablestore.format import paths
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.io.opening import open_store
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.tags import Tags
from tablestore.store.schemas import Schemas
from tablestore.store.snapshots import Snapshots
from tablestore.table.system.systemkinds import BRANCH_PREFIX, SEPARATOR, SYSTEM_TABLES, fields_of


@dataclass(frozen=True, slots=True)
class TableParts:
    """The parts of a table or of one of its branches. ``main`` is rooted at the table, ``files`` at the branch.

    ``system``: it is about the columns of this system table.
    """

    main: FileStore
    files: FileStore
    system: str | None

    def columns(self) -> list[str]:
        """Names of columns."""
        schema = Schemas(self.files).latest()
        return [field.name for field in (schema.fields if self.system is None else fields_of(self.system, schema))]

    def options(self) -> list[str]:
        """Keys of the options that are set."""
        return list(Schemas(self.files).latest().options)

    def tags(self) -> list[str]:
        """Names of tags."""
        return list(Tags(self.files).names())

    def snapshots(self) -> list[str]:
        """Ids of the retained snapshots, newest first."""
        return [str(snapshot_id) for snapshot_id in reversed(Snapshots(self.files).live_ids())]

    def branches(self) -> list[str]:
        """Names of branches, without the table itself."""
        return [name.removeprefix(paths.BRANCH_PREFIX) for name in self.main.names(paths.BRANCH_DIR, prefix=paths.BRANCH_PREFIX)]

    def consumers(self) -> list[str]:
        """Names of consumers."""
        return [consumer.id for consumer in Consumers(self.files).all()]


def open_names(warehouse: str | None, storage: Mapping[str, Any], ids: Ids) -> MetaCatalog:
    """The names in a warehouse. Raises InvalidInputError without one."""
    options = {**storage, WAREHOUSE.key: warehouse} if warehouse else storage
    return open_meta_catalog(parse_catalog_settings(options), ids)[0]


def find_parts(name: str, warehouse: str | None, storage: Mapping[str, Any], ids: Ids, *, is_path: bool) -> TableParts:
    """The parts of what ``name`` names: ``database.table`` or a path, and behind ``$`` a branch, a system table or both."""
    folder, slash, last = name.rpartition("/")
    base, *behind = last.split(SEPARATOR)
    plain = f"{folder}{slash}{base}"
    main = open_store(plain, storage) if is_path else open_names(warehouse, storage, ids).table_files(parse_identifier(plain))
    files = main
    if behind and behind[0].startswith(BRANCH_PREFIX):
        files = main.at(f"{paths.BRANCH_DIR}/{paths.BRANCH_PREFIX}{behind.pop(0).removeprefix(BRANCH_PREFIX)}")
    return TableParts(main, files, behind[0] if behind and behind[0] in SYSTEM_TABLES else None)
