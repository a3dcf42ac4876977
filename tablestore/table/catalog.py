"""The handle of a catalog: databases and tables by name."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tablestore.catalog.definitions import DefinitionKind, KeepsDefinitions
from tablestore.catalog.identifier import Identifier, parse_identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.refusals import materialized_stays
from tablestore.catalog.settings import CatalogSettings
from tablestore.clock import Clock
from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.ids import Ids
from tablestore.log.opening import ChangeLogs
from tablestore.names import Names, check_flag
from tablestore.options import is_materialized
from tablestore.othernames import CATALOG, missing_attribute
from tablestore.store.context import Shared, TableContext
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.system.systemkinds import SEPARATOR
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.table.tablenames import named_part
from tablestore.telemetry.observers import NOBODY, Observers
from tablestore.types.filter.constraints import constraint_options
from tablestore.types.typestring import sql_name
from tablestore.types.userschema.usercolumns import GivenSchema

if TYPE_CHECKING:
    from tablestore.catalog.creations import CreationKind, CreationRecord
    from tablestore.log.port import ChangeLog
    from tablestore.table.creation.deadleases import DeadHold
    from tablestore.table.creation.stagedtable import StagedTable
    from tablestore.table.creation.sweep import SweepReport
    from tablestore.table.creation.visiblecreation import VisibleCreation
    from tablestore.types.evolution.schemachanges import SchemaChange


class Catalog:
    """Databases and their tables. Made by ``tablestore.open_catalog(...)``.

    It pickles, so that another process opens the same catalog, unless it lies in the memory of this one (UnsupportedError of kind
    "not-serializable").
    """

    def __init__(
        self, meta: MetaCatalog, clock: Clock, ids: Ids, settings: CatalogSettings, observers: Observers = NOBODY
    ) -> None:
        self._meta, self._clock, self._ids, self._settings = meta, clock, ids, settings
        self._logs, self._shared = ChangeLogs(), Shared(observers)

    def __reduce__(self) -> tuple[object, ...]:
        return Catalog, (self._meta, self._clock, self._ids, self._settings.without_password())

    @property
    def _observers(self) -> Observers:
        """Those who watch its tables in this process; what is done elsewhere (Spark's tasks) they do not see."""
        return self._shared.observers

    @property
    def supports_managed_table(self) -> bool:
        """True if a table without a connector is one of ours."""
        return self._meta.supports_managed_table

    @property
    def serializable(self) -> bool:
        """True if another process can open it from its pickled form."""
        return self._meta.serializable

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties it was opened with, to be shown: passwords, and what may hold a secret, are ``***``."""
        return self._settings.shown()

    @property
    def location(self) -> str:
        """The address of its warehouse, without credentials."""
        return self._meta.files.root_uri

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """The options of the file system, with those of the lock, as ``open_table`` takes them beside a path. May hold
        secrets."""
        return self._settings.storage_options

    def list_databases(self) -> tuple[str, ...]:
        """Database names, ascending."""
        return self._meta.list_databases()

    def database_exists(self, name: str) -> bool:
        """True if there is a database of that name."""
        return self._meta.has_database(name)

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create a database."""
        self._meta.create_database(name, ignore_if_exists=ignore_if_exists)

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; one with tables only if ``cascade``, and their logs with them. Raises InvalidInputError if it holds
        materialized tables, as :meth:`drop_table`."""
        check_flag(cascade, "cascade")
        if cascade and self._meta.has_database(name):
            tables = self._meta.list_tables(name)
            for table in tables:
                # Before any of them goes.
                self._check_plain(Identifier(name, table), f"DROP DATABASE {sql_name(name)} CASCADE")
            for table in tables:
                self.drop_table(f"{name}.{table}", ignore_if_not_exists=True)
        self._meta.drop_database(name, ignore_if_not_exists=ignore_if_not_exists, cascade=cascade)

    def list_tables(self, database: str) -> tuple[str, ...]:
        """Names of the permanent tables of a database, ascending."""
        return self._meta.list_tables(database)

    def __contains__(self, name: str) -> bool:
        return self.table_exists(name)

    def __getitem__(self, name: str) -> "Table | SystemTable":
        return self.table(name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise missing_attribute(self, name, CATALOG)

    def table_exists(self, name: str) -> bool:
        """True if there is a table ``database.name``; false if there is no such database."""
        return self._meta.has_table(parse_identifier(name))

    def create_table(
        self,
        name: str,
        schema: GivenSchema,
        primary_key: Names | None = None,
        partition_by: Names | None = None,
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        *,
        checks: Mapping[str, str] | None = None,
        ignore_if_exists: bool = False,
    ) -> Table:
        """Create the table ``database.name``, all or nothing, and open it.

        ``schema`` is an Arrow schema, SQL text (``"id BIGINT, name STRING"``), a dict of types, a frame or schema of pandas or
        polars, or columns with their comments and defaults. Options may be texts, numbers and booleans.
        Options that ``options`` lacks come from the catalog (``table-default.<option>``), and what both lack has its default.
        ``checks``: conditions that every row holds, by name: ``{"positive": "price > 0"}``.
        With ``ignore_if_exists`` an existing table is opened as it is. Raises InvalidInputError, UnsupportedError,
        AlreadyExistsError, NotFoundError (no such database).
        """
        identifier = parse_identifier(name)
        definition = self._tools.definition(
            identifier,
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            options=options if not checks else {**(options or {}), **constraint_options(checks)},
            comment=comment,
        )
        table, _ = self._tools.create(identifier, definition, ignore_if_exists=ignore_if_exists)
        return table

    def check_new_table(
        self,
        name: str,
        schema: GivenSchema,
        primary_key: Names | None = None,
        partition_by: Names | None = None,
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> None:
        """Raise InvalidInputError or UnsupportedError if :meth:`create_table` would refuse these arguments; nothing is made."""
        self._tools.definition(
            parse_identifier(name), schema, primary_key=primary_key, partition_by=partition_by, options=options, comment=comment
        )

    # -- with their first rows

    def stage_table(
        self,
        name: str,
        schema: GivenSchema,
        primary_key: Names | None = None,
        partition_by: Names | None = None,
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        *,
        ignore_if_exists: bool = False,
        job_id: str | None = None,
    ) -> "StagedTable":
        """Begin a table that nobody sees before it is published with its rows.

            with catalog.stage_table("shop.totals", schema) as staged:
                staged.table.append(rows)
                staged.publish()

        Arguments as :meth:`create_table`; a table of that name is an error at once, and one that comes meanwhile when it is
        published, unless ``ignore_if_exists``. ``job_id`` names the creation (default: a new id). What a job that dies leaves
        behind is removed by :meth:`sweep_creations`. Raises what :meth:`create_table` raises.
        """
        from tablestore.table.creation.stagedtable import stage

        identifier = parse_identifier(name)
        definition = self._tools.definition(
            identifier, schema, primary_key=primary_key, partition_by=partition_by, options=options, comment=comment
        )
        return stage(self._tools, self._record(identifier, "stage", job_id), definition, ignore_if_exists=ignore_if_exists)

    def stage_replacement(
        self,
        name: str,
        schema: GivenSchema,
        primary_key: Names | None = None,
        partition_by: Names | None = None,
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        *,
        must_exist: bool = False,
        job_id: str | None = None,
    ) -> "StagedTable":
        """Begin to replace a table, which stays readable as it is until this is published with its rows.

        Columns, options (but those of its log) and comment become the ones given. Where key, partitioning and buckets stay the
        table keeps its history and tags; else it becomes another table, where the store can exchange directories. Without a table
        of that name this is :meth:`stage_table`, unless it ``must_exist``. Raises what :meth:`create_table` raises,
        NotFoundError, UnsupportedError; publishing it ConflictError if the table was altered or dropped meanwhile.
        """
        from tablestore.table.creation.replacement import stage_replacement

        identifier = parse_identifier(name)
        definition = self._tools.definition(
            identifier, schema, primary_key=primary_key, partition_by=partition_by, options=options, comment=comment
        )
        if not must_exist and not self._meta.has_table(identifier):
            return self.stage_table(name, schema, primary_key, partition_by, options, comment, job_id=job_id)
        return stage_replacement(self._tools, self._record(identifier, "replace", job_id), definition)

    def intend_creation(self, job_id: str, name: str, commit_user: str | None = None) -> "VisibleCreation":
        """Begin the creation of a table that is visible at once, and is taken back if its job fails or dies.

        ``commit_user``: under which name the job commits its rows; a table that has a snapshot of it is whole. Raises
        AlreadyExistsError of kind ``job-exists``.
        """
        from tablestore.table.creation.visiblecreation import VisibleCreation

        record = self._record(parse_identifier(name), "create", job_id, commit_user)
        self._tools.creations.begin(record)
        return VisibleCreation(self._tools, record)

    def creation(self, job_id: str) -> "VisibleCreation | None":
        """The creation that :meth:`intend_creation` has begun; None once it is over."""
        from tablestore.catalog.creations import check_job_id
        from tablestore.table.creation.visiblecreation import VisibleCreation

        record = self._tools.creations.find(check_job_id(job_id))
        return VisibleCreation(self._tools, record) if record is not None and record.kind == "create" else None

    def creation_of(self, name: str) -> "CreationRecord | None":
        """The creation on record of the table ``database.name``; None if nobody is making it, or has died doing so."""
        identifier = str(parse_identifier(name))
        records = self._tools.creations.all()
        return next((record for record in records if record.table == identifier and record.kind != "replace"), None)

    def list_creations(self) -> tuple[str, ...]:
        """The jobs that make tables with their first rows, or died doing so, ascending."""
        return self._tools.creations.job_ids()

    def sweep_creations(self, older_than: timedelta | None = None, *, dry_run: bool = False) -> "SweepReport":
        """Remove the remains of creations that died: staged tables, logs made for them, tables that were to be taken back.

        Those count that were not renewed for ``older_than`` (default: an hour). A job that was only slow finds out, and makes
        nothing visible. With ``dry_run`` nothing is removed. Print what is returned.
        """
        from tablestore.table.creation.sweep import DEAD_AFTER, sweep

        return sweep(self._tools, DEAD_AFTER if older_than is None else older_than, dry_run=dry_run)

    def release_dead_holds(self, *, dry_run: bool = False) -> "tuple[DeadHold, ...]":
        """Let expiry have the snapshots that are kept for materialized tables that are gone, or died before they came to be.

        What a creation on record needs stays: call :meth:`sweep_creations` before. This looks at every table. With ``dry_run``
        nothing is released. Print what is returned.
        """
        from tablestore.table.creation.deadleases import release_dead_holds

        return release_dead_holds(self._tools, dry_run=dry_run)

    def _record(
        self, identifier: Identifier, kind: "CreationKind", job_id: str | None, commit_user: str | None = None
    ) -> "CreationRecord":
        from tablestore.catalog.creations import CreationRecord, check_job_id, marked

        record = CreationRecord(
            job_id=check_job_id(job_id if job_id is not None else self._ids.uuid()),
            kind=kind,
            table=str(identifier),
            table_uuid="",
            begun_millis=self._clock.now_ms(),
            commit_user=commit_user,
            secret=self._ids.uuid(),
        )
        return marked(record)

    def table(self, name: str) -> Table | SystemTable:
        """Open the table ``database.name``, or what ``name$…`` names (a system table, a branch). Raises NotFoundError.

        Only the name of a system table opens a :class:`SystemTable`, which can be read as a table can, and no more.
        """
        plain, separator, suffix = name.partition(SEPARATOR) if isinstance(name, str) else (name, "", "")
        table = self._tools.open(parse_identifier(plain))
        return named_part(table, suffix) if separator else table

    def forget_cached(self) -> None:
        """Drop what is cached of its tables: handles from then on read schemas, snapshots and manifests anew.

        Nothing stale is in there, since names of files are never used twice: it gives memory back, and shows what became of a
        file that others removed.
        """
        self._shared = Shared(self._observers)

    def narrowed(self, narrow: Callable[[MetaCatalog], MetaCatalog]) -> "Catalog":
        """The same catalog as ``narrow`` shows it, such as to a caller who may read only some of its tables."""
        return Catalog(narrow(self._meta), self._clock, self._ids, self._settings, self._observers)

    @property
    def _tools(self) -> CreationTools:
        return CreationTools(self._meta, self._clock, self._ids, self._logs, self._shared, self._settings.table_defaults)

    def alter_table(
        self, name: str, changes: "Sequence[SchemaChange] | SchemaChange", *, ignore_if_not_exists: bool = False
    ) -> Table | None:
        """Alter columns, options or comments of a table, all changes or none; the altered table.

        None if there is no such table and that is to be ignored. Raises what :meth:`Table.alter` raises.
        """
        try:
            table = self.table(name)
        except NotFoundError as error:
            if ignore_if_not_exists and error.kind == "no-such-table":
                return None
            raise
        return table.alter(changes)

    def drop_table(self, name: str, *, ignore_if_not_exists: bool = False, materialized: bool = False) -> None:
        """Remove a table, its log and all of its files.

        A materialized table is refused: DROP MATERIALIZED TABLE also stops its refreshes and lets its sources go. Pass
        ``materialized=True`` after doing both.

        Where the log cannot be removed the table stays; one whose brokers are gone for good is altered to ``log.system`` =
        ``filestore`` first. With settings that no client of the log takes the table goes, and its log is left behind: that is said.
        """
        identifier = parse_identifier(name)
        if not materialized:
            self._check_plain(identifier, f"DROP MATERIALIZED TABLE {sql_name(identifier.database)}.{sql_name(identifier.table)}")
        if (log := self._log(identifier)) is not None:
            log.drop()
        self._meta.drop_table(identifier, ignore_if_not_exists=ignore_if_not_exists)

    def _check_plain(self, identifier: Identifier, statement: str) -> None:
        context = self._readable(identifier)
        if context is not None and is_materialized(context.schema.options):
            raise materialized_stays(identifier, statement)

    def _log(self, identifier: Identifier) -> "ChangeLog | None":
        """The change log of a table, None if the table cannot be read, or its options (another engine's) name no log of ours."""
        try:
            context = self._readable(identifier)
            return None if context is None else self._logs.of(context)
        except TablestoreError:
            return None

    def _readable(self, identifier: Identifier) -> TableContext | None:
        """The context of a table, None if it cannot be read at all."""
        try:
            return self._tools.context(self._meta.table_files(identifier))
        except TablestoreError:
            return None

    def rename_table(self, name: str, new_name: str, *, ignore_if_not_exists: bool = False) -> None:
        """Give a table another name; ``new_name`` may be in another database. A materialized table keeps its name, which what
        refreshes it knows."""
        old, new = parse_identifier(name), parse_identifier(new_name)
        before = self._readable(old)
        if before is not None and is_materialized(before.schema.options):
            raise InvalidInputError(
                f"table {old} is a materialized table, which keeps its name: CREATE MATERIALIZED TABLE {new} with the same "
                f"query, and DROP MATERIALIZED TABLE {old}",
                kind="materialized-table",
            )
        self._meta.rename_table(old, new, ignore_if_not_exists=ignore_if_not_exists)
        if before is not None:
            self._logs.moved(before.files.root_uri, self._tools.open(new).context)

    # -- definitions of what has no files of its own

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        """Names of the views and tables with a connector (``RELATION``), or functions, of a database, ascending."""
        return self._meta.list_definitions(database, kind) if isinstance(self._meta, KeepsDefinitions) else ()

    def find_definition(self, name: str, kind: DefinitionKind) -> str | None:
        """The text of the definition ``database.name``; None if there is none."""
        return self._meta.find_definition(parse_identifier(name), kind) if isinstance(self._meta, KeepsDefinitions) else None

    def keep_definition(self, name: str, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        """Keep a definition, ``replace``: also in the place of another one. Raises AlreadyExistsError, NotFoundError,
        UnsupportedError of kind ``no-definitions`` where the catalog keeps none."""
        self._keeping(name).keep_definition(parse_identifier(name), kind, text, replace=replace)

    def drop_definition(self, name: str, kind: DefinitionKind) -> bool:
        """Remove a definition; False if there is none. Raises UnsupportedError as :meth:`keep_definition`."""
        return self._keeping(name).drop_definition(parse_identifier(name), kind)

    def _keeping(self, name: str) -> KeepsDefinitions:
        if isinstance(self._meta, KeepsDefinitions):
            return self._meta
        raise UnsupportedError(
            f"{name}: its catalog keeps tables with files of their own alone; CREATE TEMPORARY makes an object of this session, "
            "and a catalog of metastore = filesystem or jdbc keeps a permanent one",
            kind="no-definitions",
        )

    def close(self) -> None:
        """Give up open connections to change logs, of this catalog and its tables; the next write opens them again. Waits a moment
        for what its observers still have to send."""
        self._logs.close()
        self._observers.close()

    def __repr__(self) -> str:
        return f"Catalog({self._settings.warehouse or self._settings.metastore!r})"

    def _repr_html_(self) -> str:
        # Only notebooks need it.
        from tablestore.table.inspect.catalogcard import catalog_card

        def context(name: str) -> TableContext | None:
            table = self.table(name)
            return table.context if isinstance(table, Table) else None

        return catalog_card(self.location, self.list_databases(), self.list_tables, context)


def tools_of(catalog: Catalog) -> CreationTools:
    """The parts of an open catalog, for services and tools."""
    return catalog._tools
