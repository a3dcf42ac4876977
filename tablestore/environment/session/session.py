"""Defines a session: what a name means in it, and where that is looked up.

a name -> filled up -> temporary objects -> the catalog's tables, then its views and tables with a connector
       -> the engine's own tables -> an error
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tablestore.clock import Clock
from tablestore.distributed.spec import TableSpec
from tablestore.environment.engine import QueryEngine, RunsDialects
from tablestore.environment.jobs import Jobs
from tablestore.environment.managed.factory import ManagedTableFactory
from tablestore.environment.objectpath import MOST_PARTS, ObjectPath, expand, known
from tablestore.environment.restricted.restrictions import Restrictions
from tablestore.environment.session.catalogs import Catalogs
from tablestore.environment.session.connectoraccess import ALLOWED, check_access
from tablestore.environment.session.engines import no_engine
from tablestore.environment.session.functions import Functions
from tablestore.environment.session.keptfunctions import ALLOWED_MODULES, KeptFunctions
from tablestore.environment.session.keptobjects import KeptObjects
from tablestore.environment.session.objects import (
    VIEWS,
    ConnectorTable,
    InformationView,
    RowsView,
    SessionObjects,
    TemporaryTable,
    View,
)
from tablestore.environment.session.sessionsettings import Settings
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.memo import Memo
from tablestore.options import is_materialized
from tablestore.sql.query.functions import Called
from tablestore.sql.source import Path, Span
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.typestring import quote_identifier

Found = Table | SystemTable | ConnectorTable | View | RowsView
Place = tuple[str, str]
# Statements for tables whose rows are the user's own.
_CHANGES = ("INSERT", "DELETE", "UPDATE", "MERGE", "RESTORE TABLE", "TRUNCATE TABLE")
INFORMATION_SCHEMA = "information_schema"
"""The database of the tables that describe a catalog, unless a catalog has one of this name."""
_FORMATS_BY_PATH = ("csv", "parquet", "json", "orc", "text", "avro")
_PATH_SIGNS = frozenset("/.*\\:")
_NOT_THERE = ("no-such-table", "no-such-database", "no-such-catalog", "invalid-name")


@dataclass(kw_only=True)
class Session:
    """The state that the statements of one environment share. Used by one thread at a time.

    ``reads_engine``: names also stand for tables that the engine itself has. ``restrictions``: its texts are those of others.
    ``describing``: finds the tables of ``information_schema``.
    """

    catalogs: Catalogs
    settings: Settings
    factory: ManagedTableFactory
    clock: Clock
    jobs: Jobs
    engine: QueryEngine | None = None
    objects: SessionObjects = field(default_factory=SessionObjects)
    functions: Functions = field(default_factory=Functions)
    memo: Memo = field(default_factory=Memo)
    reads_engine: bool = True
    restrictions: Restrictions | None = None
    describing: "Callable[[Session, ObjectPath], InformationView | None] | None" = None
    kept: KeptObjects = field(init=False)
    kept_functions: KeptFunctions = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptObjects(self.catalogs)
        self.kept_functions = KeptFunctions(self.catalogs, self.functions)

    def check_open(self) -> None:
        """Raises InvalidInputError after the environment was closed."""
        self.catalogs.check_open()

    @property
    def place(self) -> Place:
        """The current catalog and database."""
        self.check_open()
        return self.catalogs.current, self.catalogs.current_database

    def expand(self, path: Path, source: Source = NO_SOURCE, place: Place | None = None) -> ObjectPath:
        """The whole name, filled up from the current catalog and database, or those of ``place``. Raises InvalidInputError."""
        with placing(source, path.span):
            return expand(path, *(place or self.place))

    def engine_for(self, what: str) -> QueryEngine:
        """The engine. Raises UnsupportedError that names the ways out if there is none."""
        self.check_open()
        if self.engine is None:
            raise no_engine(what)
        return self.engine

    def check_dialect(self, dialect: SqlDialect) -> None:
        """Raises UnsupportedError for a dialect in which this session runs no queries. Without an engine it may still be named."""
        if dialect is SqlDialect.SPARK:
            return
        if self.restrictions is not None:
            raise UnsupportedError(
                f"a restricted environment runs queries in Spark's words alone, and not in the dialect {dialect}", kind="restricted"
            )
        engine = self.engine
        if engine is not None and not (isinstance(engine, RunsDialects) and dialect in engine.dialects):
            raise UnsupportedError(
                f"the engine {engine.name} does not run queries in the dialect {dialect}: use the engine {dialect}, or write them "
                f"in Spark's words ({SQL_DIALECT} = {SqlDialect.SPARK})",
                kind="engine",
            )

    def catalog_of(self, path: ObjectPath, written: Path, source: Source = NO_SOURCE) -> Catalog:
        """The catalog of a name. Raises NotFoundError."""
        with placing(source, written.span):
            return self.catalogs.get(path.catalog)

    def find(
        self, written: Path, source: Source = NO_SOURCE, place: Place | None = None, *, permanent: bool = False
    ) -> Found | None:
        """The object that a name stands for; None for what the engine itself has. Raises NotFoundError with the nearest name.

        ``permanent``: what ends with this session, and what the engine has, does not count.
        """
        if len(written.parts) > MOST_PARTS and not permanent and self._engine_has(written):
            return None
        path = self.expand(written, source, place)
        session_object = None if permanent else self.objects.temporary(path)
        if session_object is not None and not isinstance(session_object, TemporaryTable):
            return session_object
        try:
            return self._open(path if permanent else self.stored(path))
        except TablestoreError as error:
            if error.kind not in _NOT_THERE:
                raise
            if permanent:
                source.place(error, written.span)
                raise
            if self._engine_has(written):
                return None
            if self.restrictions is None and (refused := files_by_path(written)) is not None:
                source.place(refused, written.span)
                raise refused from error
            if path.database.casefold() == INFORMATION_SCHEMA and self.describing is not None:
                with placing(source, written.span):
                    information = self.describing(self, path)
                if information is not None:
                    return information
            source.place(error, written.span)
            raise

    def _engine_has(self, written: Path) -> bool:
        return self.reads_engine and self.engine is not None and self.engine.knows(written.parts)

    def temporary_function(self, written: Path, place: Place | None = None) -> str | None:
        """The name by which the engine calls a temporary function; None for what is none."""
        engine = self.engine
        if engine is None or not 1 <= len(written.parts) <= MOST_PARTS:
            return None
        return self.functions.find(written, place or self.place, engine.has_function)

    def function(self, written: Path, place: Place | None = None, *, permanent: bool = False) -> Called | None:
        """The name or text to put in the place of a function; None for one that the engine finds itself.

        A temporary system function, a function of the engine's, a temporary one of a catalog, a function of a catalog: in this
        order. ``permanent``: temporary ones do not count.
        """
        engine = self.engine
        if not permanent and (called := self.temporary_function(written, place)) is not None:
            return called
        if engine is None or self.restrictions is not None or not 1 <= len(written.parts) <= MOST_PARTS:
            return None
        if len(written.parts) == 1 and engine.has_function(written.parts[0]):
            return None
        path = expand(written, *(place or self.place))
        return self.kept_functions.called(path, engine, str(self.settings.get(ALLOWED_MODULES) or ""))

    def stored(self, path: ObjectPath) -> ObjectPath:
        """The name by which a catalog knows a managed table: its own, but for a temporary one."""
        temporary = self.objects.temporary(path.plain)
        return replace(temporary.storage, suffix=path.suffix) if isinstance(temporary, TemporaryTable) else path

    def open_table(self, path: ObjectPath) -> Table | SystemTable:
        """The managed table of a whole name. Raises NotFoundError."""
        table = self._open(path, kept=False)
        assert isinstance(table, Table | SystemTable), "a catalog's table is managed"
        return table

    def _open(self, path: ObjectPath, *, kept: bool = True) -> Found:
        """The managed table of a whole name, or ``kept``, what its catalog keeps as a definition. Raises NotFoundError."""
        catalog = self.catalogs.get(path.catalog)
        try:
            return catalog.table(path.in_catalog)
        except NotFoundError as error:
            if error.kind not in ("no-such-table", "no-such-database") or self.exists(path):
                raise
            if kept and (definition := self.kept.find(path)) is not None:
                return definition
            raise self._no_table(path) from error

    def check_access(self, table: ConnectorTable, *, writes: bool = False) -> None:
        """Raises UnsupportedError for a permanent table with a connector of another session that this one must not touch."""
        if not table.temporary:
            allowed = str(self.settings.get(ALLOWED) or "")
            check_access(table, self.catalogs.get(table.path.catalog).location, allowed, writes=writes)

    def table(self, written: Path, what: str, source: Source = NO_SOURCE, place: Place | None = None) -> Table:
        """The managed table (or branch of one) that a statement is about; ``what`` names it in errors.

        Raises NotFoundError, InvalidInputError for anything else that has this name.
        """
        return self.checked_table(self.find(written, source, place), written, what, source, place)

    def checked_table(
        self, target: Found | None, written: Path, what: str, source: Source = NO_SOURCE, place: Place | None = None
    ) -> Table:
        """The object that was found for a name, if a statement can be about it: as :meth:`table`."""
        if isinstance(target, Table):
            if what in _CHANGES and is_materialized(target.table_schema.options):
                raise made_by_query(self.expand(written, place=place), what, source, written.span)
            return target
        kind, way_out = _KINDS[type(target)]
        if isinstance(target, View) and not target.temporary:
            kind = "a view"
        path = self.expand(written, place=place)
        raise InvalidInputError(
            source.mark(f"{path} is {kind}: {what} is for managed tables only; {way_out}", written.span), kind="not-managed"
        )

    def spec(self, path: ObjectPath, table: Table) -> TableSpec:
        """The description by which any process finds a managed table."""
        return spec_of(self.catalogs.get(self.stored(path).catalog), table)

    def exists(self, path: ObjectPath) -> bool:
        """True if a permanent table of this name exists."""
        return self.catalogs.get(path.catalog).table_exists(f"{path.database}.{path.name}")

    def _no_table(self, path: ObjectPath) -> NotFoundError:
        try:
            stored_names: Iterable[str] = self.catalogs.tables(path.catalog, path.database)
        except NotFoundError as error:
            return error
        beside = [one.name for one in self.objects.names() if (one.catalog, one.database) == (path.catalog, path.database)]
        names = sorted({*stored_names, *beside, *self.kept.names(path.catalog, path.database)})
        hint = f". {under_way}" if (under_way := self.creation_of(path)) else known(names, path.name)
        return NotFoundError(f"Table with identifier '{path.plain.quoted}' does not exist{hint}", kind="no-such-table")

    def creation_of(self, path: ObjectPath) -> str:
        """A message on the creation of a table that is not there yet; nothing if there is none on record."""
        try:
            record = self.catalogs.get(path.catalog).creation_of(f"{path.database}.{path.name}")
        except TablestoreError:
            return ""
        if record is None:
            return ""
        since = datetime.fromtimestamp(record.begun_millis // 1000, UTC).isoformat(sep=" ")
        return (
            f"It is being made and filled since {since} by job {record.job_id}, and is there once that is done. If its process "
            "died, create it again: nothing is in the way"
        )


def named_files(written: Path) -> tuple[str, str] | None:
    """The format and path of a name that stands for files, as Spark reads them (``csv.`/data/x.csv```); None for any other."""
    if len(written.parts) != 2:
        return None
    file_format, place = written.parts[0].lower(), written.parts[1]
    return None if file_format not in _FORMATS_BY_PATH or _PATH_SIGNS.isdisjoint(place) else (file_format, place)


def files_by_path(written: Path) -> UnsupportedError | None:
    """The refusal of a name that stands for files; None for any other name.

    A query of this session reads them (:mod:`tablestore.environment.rows.relations`). A text that is stored opens no file: whoever
    declares a table says which files there are, and what their columns mean on every engine. Nor is one written or described.
    """
    if (named := named_files(written)) is None:
        return None
    file_format, place = named
    columns = "" if file_format in ("parquet", "orc") else " (column type, …)"
    shown = place.replace("'", "''")
    return UnsupportedError(
        f"{file_format}.{quote_identifier(place)} names files by their path, which only a query of this session opens: CREATE "
        f"TEMPORARY TABLE name{columns} USING {file_format} OPTIONS (path '{shown}') declares them as a table, and `tablestore "
        "import` loads them into a managed one",
        kind="files",
    )


def made_by_query(path: ObjectPath, what: str, source: Source, span: Span) -> InvalidInputError:
    """The error of a statement that changes the rows of a materialized table, or what they are."""
    if what == "DROP TABLE":
        way_out = "DROP MATERIALIZED TABLE drops it, and ends what refreshes it"
    elif what in ("ALTER TABLE", "CREATE OR REPLACE TABLE"):
        way_out = "ALTER MATERIALIZED TABLE and CREATE OR ALTER MATERIALIZED TABLE change its definition"
    else:
        way_out = (
            "its rows are those of its query: change the tables that it reads, and ALTER MATERIALIZED TABLE … REFRESH it, or AS "
            "another query"
        )
    return InvalidInputError(
        source.mark(f"{path} is a materialized table, and {what} is not for these: {way_out}", span), kind="materialized-table"
    )


def spec_of(catalog: Catalog, table: Table) -> TableSpec:
    """The description by which any process finds a managed table of a catalog."""
    return TableSpec(
        location=table.location,
        storage_options=catalog.storage_options,
        branch=table.branch_name,
        files=None if catalog.serializable else table.context.main_files,
    )


_KINDS: dict[type, tuple[str, str]] = {
    SystemTable: ("a system table", "it can only be read"),
    ConnectorTable: ("a table with a connector of its own", "change it where it is kept"),
    InformationView: ("a table of information_schema, which describes a catalog", "it can only be read"),
    **dict.fromkeys(VIEWS, ("a temporary view", "drop it, or change the tables that it reads")),
    type(None): ("a table of the query engine itself", "change it with the engine's own statements"),
}


@contextmanager
def placing(source: Source, span: Span) -> Iterator[None]:
    """Errors from inside mark the place of a statement that they come from."""
    try:
        yield
    except TablestoreError as error:
        source.place(error, span)
        raise
