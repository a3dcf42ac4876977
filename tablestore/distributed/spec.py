"""Table specs: plain values by which any process finds a table, no handle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tablestore.format.paths import MAIN_BRANCH
from tablestore.io.filestore import FileStore
from tablestore.io.opening import open_store
from tablestore.store.context import Shared, TableContext
from tablestore.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """The address of a table for any process: location, branch and the options of its file system (which may hold secrets).

    ``files``: the store itself where only this process has it (a catalog in private memory). ``write_options``: what this process
    writes with beside the stored options (:meth:`Table.writing_with <tablestore.table.table.Table.writing_with>`).
    """

    location: str
    storage_options: Mapping[str, Any] = field(repr=False)
    branch: str = MAIN_BRANCH
    files: FileStore | None = None
    write_options: Mapping[str, str] = field(default_factory=dict)

    def open(self, schema_id: int | None = None, shared: Shared | None = None) -> TableContext:
        """The table at its newest schema, or at the one that a plan was made with. ``shared``: with other tasks of this process."""
        from tablestore.store.history.branchfiles import open_branch

        files = self.files if self.files is not None else open_store(self.location, self.storage_options)
        context = open_branch(files, self.branch, shared=shared)
        schema = context.schema if schema_id is None else context.schemas.read(schema_id)
        return context.at_schema(replace(schema, options={**schema.options, **self.write_options}))

    def table(self, schema_id: int | None = None) -> Table:
        """A handle of the table."""
        return Table(self.open(schema_id), self.location)
