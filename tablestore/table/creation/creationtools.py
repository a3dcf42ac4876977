"""Tools of a table creation: the parts of an open catalog, and the one way in which a visible table is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablestore.catalog.creations import CreationRecord, Creations
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.clock import Clock
from tablestore.errors import TablestoreError
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.log.opening import ChangeLogs
from tablestore.memo import RecentlyUsed
from tablestore.names import Names
from tablestore.options import option_texts, with_options
from tablestore.store.context import Shared, TableContext, newest_schema, open_context
from tablestore.store.schemas import Schemas, table_uuid_of
from tablestore.store.settings import check_writable, table_settings
from tablestore.table.table import Table
from tablestore.types.filter.constraints import with_plain_texts
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema
from tablestore.types.userschema.usercolumns import GivenSchema, columns_of

if TYPE_CHECKING:
    from tablestore.log.port import ChangeLog

# The tables of a catalog whose contexts are kept.
_MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class CreationTools:
    """The parts of one open catalog. ``logs``: those of its tables. ``defaults``: options of tables that do not name them."""

    meta: MetaCatalog
    clock: Clock
    ids: Ids
    logs: ChangeLogs
    shared: Shared
    defaults: Mapping[str, str]

    @property
    def creations(self) -> Creations:
        """The creations on record in the warehouse."""
        return Creations(self.meta.files)

    def definition(
        self,
        identifier: Identifier,
        schema: GivenSchema,
        *,
        primary_key: Names | None,
        partition_by: Names | None,
        options: Mapping[str, object] | None,
        comment: str | None,
    ) -> TableSchema:
        """The first schema of a table of that name, checked. Raises InvalidInputError, UnsupportedError."""
        # Only who makes a table needs to know what its log is called.
        from tablestore.log.settings import named_log

        table_schema = new_schema(
            schema=columns_of(schema),
            primary_key=primary_key or (),
            partition_by=partition_by or (),
            options=with_options(self.defaults, option_texts(options or {})),
            comment=comment,
            time_millis=self.clock.now_ms(),
        )
        table_schema = named_log(table_schema, str(identifier))
        settings = table_settings(table_schema)
        if settings.constrained:
            table_schema = replace(table_schema, options=with_plain_texts(table_schema.options, table_schema.fields))
        check_writable(table_schema, settings, str(identifier))
        return table_schema

    def create(
        self, identifier: Identifier, definition: TableSchema, *, ignore_if_exists: bool, table_uuid: str | None = None
    ) -> tuple[Table, bool]:
        """The table of that name with its log, all or nothing, and whether this made it."""
        created = self.meta.create_table(identifier, definition, ignore_if_exists=ignore_if_exists, table_uuid=table_uuid)
        try:
            table = self.open(identifier)
            table.change_log.begin(ignore_if_exists=ignore_if_exists)
        except BaseException as error:
            # All or nothing, whatever the error; a table that was there before is left as it is.
            if created:
                self._take_back(identifier, error)
            raise
        return table, created

    def _take_back(self, identifier: Identifier, error: BaseException) -> None:
        try:
            self.meta.drop_table(identifier, ignore_if_not_exists=True)
        except TablestoreError as left:
            error.add_note(f"table {identifier} was made and could not be removed again ({left}): drop it")

    def open(self, identifier: Identifier) -> Table:
        """The table of that name. Raises NotFoundError."""
        files = self.meta.table_files(identifier)
        schema = newest_schema(files, self.shared)
        # A table that is opened again, and has the schema that it had, is the same context: what is known of it stays known.
        key = (files.root_uri, schema.id, schema.time_millis, table_uuid_of(schema))
        context = self.shared.once(_opened_lately).find(key, lambda: self.context(files, schema))
        return Table(context if context.schema == schema else self.context(files, schema), str(identifier), self.logs)

    def context(self, files: FileStore, schema: TableSchema | None = None) -> TableContext:
        """The table whose directory this is, at its newest schema, or at ``schema``, known to be that."""
        return open_context(files, clock=self.clock, ids=self.ids, schema=schema, shared=self.shared)

    def log_at_its_place(self, record: CreationRecord, directory: str) -> "ChangeLog":
        """The log of the table that lies in ``directory`` until it has its name: what it notes of its place is that of the name."""
        place = self.meta.files.at(record.identifier.directory).root_uri
        context = self.context(self.meta.files.at(directory))
        return self.logs.of(replace(context, files=_Placed(context.files, place)))

    def uuid_of(self, identifier: Identifier) -> str | None:
        """The identity of the table that has this name now; None if there is none, or it is of another engine."""
        if not self.meta.has_table(identifier):
            return None
        return table_uuid_of(Schemas(self.meta.files.at(identifier.directory)).latest())


def _opened_lately() -> RecentlyUsed[TableContext]:
    return RecentlyUsed(lambda _: 1, most=_MOST_OPEN, most_weight=_MOST_OPEN)


@dataclass(frozen=True)
class _Placed(WrappedFileStore):
    """Files that are about to lie elsewhere, and say so."""

    place: str

    @property
    def root_uri(self) -> str:
        return self.place
