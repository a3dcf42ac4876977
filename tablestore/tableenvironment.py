"""Defines the environment: SQL over managed tables.

    env = ts.TableEnvironment.create(warehouse="/data/wh", engine="duckdb")
    env.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO t VALUES (1, 'a')").snapshot
    env.execute_sql("SELECT * FROM t WHERE id = :id", id=1).to_arrow()

    text -> statement (a value) -> names and snapshots -> the catalog, or the query engine

Not safe for threads: each has an environment of its own, over the same warehouse.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tablestore.clock import Clock, SystemClock
from tablestore.environment.configuration import Configuration
from tablestore.environment.deprecated import DeprecatedNames
from tablestore.environment.engine import QueryEngine
from tablestore.environment.execution import STATEMENT_FUNCTIONS, execute
from tablestore.environment.jobs import Jobs
from tablestore.environment.managed.factory import FILE_PATH, STORAGE_PREFIX, discover_factory
from tablestore.environment.query import Query, as_query_text
from tablestore.environment.queryargument import query_text
from tablestore.environment.restricted.limitedengine import limited
from tablestore.environment.restricted.restrictions import Restrictions
from tablestore.environment.result import Result
from tablestore.environment.session.catalogs import DEFAULT_CATALOG, Catalogs, Registered
from tablestore.environment.session.engines import open_engine
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import SQL_DIALECT_OPTION, Settings
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, StorageError, TablestoreError
from tablestore.htmltext import html_card, html_element
from tablestore.ids import Ids, SystemIds
from tablestore.sql.parse.otherwords import Reach, add_our_way
from tablestore.sql.parse.script import split_script
from tablestore.sql.parse.statement import checked_text, parse_path, parse_statement
from tablestore.sql.query.parameters import Parameters, checked_parameters
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect
from tablestore.table.catalog import Catalog
from tablestore.table.opening import open_catalog
from tablestore.types.typestring import quote_identifier

if TYPE_CHECKING:
    from tablestore.environment.objectpath import ObjectPath
    from tablestore.environment.pipelines.pipeline import TablePipeline
    from tablestore.environment.session.objects import InformationView
    from tablestore.environment.statementset import StatementSet
    from tablestore.materialized.due import DueRefresh
    from tablestore.materialized.evolution.evolution import TableEvolution
    from tablestore.materialized.figures.freshnessfigures import FreshnessFigures, PastRefresh
    from tablestore.materialized.figures.refreshplan import RefreshPlan
    from tablestore.materialized.folder.folderplan import FolderPlan, PlannedStatement
    from tablestore.materialized.folder.sqlfolder import Declaration
    from tablestore.materialized.materializedtable import MaterializedTable
    from tablestore.sql.statements.anystatement import Statement

CatalogSource = Catalog | str | os.PathLike[str] | Mapping[str, Any]
# The kind of a statement: the function that runs it, where it is or may be about materialized tables too.
_STATEMENT_FUNCTIONS: Mapping[str, str] = {
    **STATEMENT_FUNCTIONS,
    "CreateMaterializedTable": "tablestore.materialized.declaring:create_materialized",
    "AlterMaterializedTable": "tablestore.materialized.lifecycle:alter_materialized",
    "DropMaterializedTable": "tablestore.materialized.lifecycle:drop_materialized",
    "DropDatabase": "tablestore.materialized.lifecycle:drop_database",
    "Explain": "tablestore.materialized.inspection:explain",
    "Show": "tablestore.materialized.inspection:show",
    "Describe": "tablestore.materialized.inspection:describe",
}


# What a notebook shows of an environment: names of tables, nodes of the graph; and the tables up to which it looks for one.
_SHOWN_TABLES, _DRAWN_NODES, _LOOKED_AT = 50, 60, 200


class TableEnvironment(DeprecatedNames):
    """Catalogs, settings, temporary objects and an engine; statements run in it. Made by :meth:`create`."""

    def __init__(self, session: Session, *, closes_engine: bool) -> None:
        super().__init__(session)
        self._closes_engine = closes_engine

    @classmethod
    def create(
        cls,
        warehouse: CatalogSource | None = None,
        *,
        engine: str | QueryEngine | None = None,
        spark: Any = None,
        catalogs: Mapping[str, CatalogSource] | None = None,
        config: Mapping[str, str] | None = None,
        sql_dialect: str | None = None,
        restricted: bool | Restrictions = False,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> Self:
        """An environment over a warehouse: the catalog ``tablestore``, its current one.

        ``engine`` runs the queries: ``"duckdb"``, ``"spark"`` or an engine; a ``spark`` session stands for Spark with that session,
        and without any of them there is DDL only. ``catalogs`` are more catalogs by name; without a warehouse the first of them is
        the current one. A catalog is given as a warehouse (path or URL), as options with the key ``warehouse``, or as one that is
        open. ``config`` are the first settings, which RESET goes back to, and ``sql_dialect`` is one of them:
        the words of queries, ``"spark"`` or (on the engine duckdb) ``"duckdb"``. ``restricted``: texts are those of
        others, so they only read tables, within limits. Raises InvalidInputError, UnsupportedError.
        """
        factory = discover_factory()
        restrictions = _restrictions(restricted)
        if restrictions is not None and not (engine is None or isinstance(engine, str)):
            raise InvalidInputError(
                "restricted: expected the name of an engine, which is then opened within limits, found an engine that is open",
                kind="engine",
            )
        opened, closes = _engine(engine, spark)
        if opened is not None and restrictions is not None:
            opened = limited(opened, restrictions)
        if sql_dialect is not None:
            if SQL_DIALECT in (config or {}):
                raise InvalidInputError(f"sql_dialect and {SQL_DIALECT} are one setting; give one of them", kind="invalid-option")
            config = {**(config or {}), SQL_DIALECT: sql_dialect}
        settings = Settings(config, None if opened is None else opened.set_option)
        registered = Catalogs()

        def register(name: str, source: CatalogSource) -> None:
            registered.register(name, _registered(source, clock, ids))

        if warehouse is not None:
            register(DEFAULT_CATALOG, warehouse)
        for name, source in (catalogs or {}).items():
            register(name, source)
        if DEFAULT_CATALOG not in registered.names():
            if catalogs:
                registered.use(next(iter(catalogs)))
            else:
                registered.register(DEFAULT_CATALOG, Registered(open=lambda: _by_setting(settings, clock, ids)))
        session = Session(
            catalogs=registered,
            settings=settings,
            factory=factory,
            clock=clock or SystemClock(),
            jobs=Jobs(ids or SystemIds(), (lambda thread: None) if opened is None else opened.cancel),
            engine=opened,
            reads_engine=restrictions is None,
            restrictions=restrictions,
            describing=_describing,
        )
        session.check_dialect(settings.dialect)
        return cls(session, closes_engine=closes)

    # -- statements

    def execute_sql(self, text: str, /, *args: Any, sql_dialect: str | None = None, **params: Any) -> Result:
        """Runs one statement. ``args`` are the values of ``?``, ``params`` those of ``:name`` (in DuckDB's words ``$name``).
        ``sql_dialect``: the words of its query, by default those of the session.

        A query is checked, and its snapshots are fixed; it runs when its rows are read. Raises TablestoreError, with the place.
        """
        statement = parse_statement(self._checked(text), dialect=self._dialect(sql_dialect), reach=self._reach)
        try:
            return self._execute(statement, Source(text), _parameters(text, args, params))
        except TablestoreError as error:
            add_our_way(error, text, self._reach)
            raise

    def execute_script(self, text: str, each: Callable[[str, Result], None] | None = None) -> Result | None:
        """Runs statements that ``;`` separates, one after another, and returns the last result.

        ``each`` is called with the text and the result of each statement before the next one runs. All are parsed before the first
        one runs. The first error ends it, and says where in the script it is and how many statements ran before it.
        """
        result = None
        pieces = split_script(self._checked(text), self._session.settings.dialect)
        statements = [parse_statement(text, piece.span, piece.dialect, self._reach) for piece in pieces]
        for number, (piece, statement) in enumerate(zip(pieces, statements, strict=True)):
            try:
                result = self._execute(statement, Source(text, piece.span), ())
                if each is not None:
                    each(piece.text, result)
            except TablestoreError as error:
                add_our_way(error, piece.text, self._reach)
                ran = "nothing ran before it" if number == 0 else f"the {number} before it ran"
                line = text.count("\n", 0, piece.span.start) + 1
                error.message = f"{error.message}\nstatement {number + 1} of {len(pieces)}, line {line}: {ran}"
                error.args = (error.message,)
                raise
        return result

    def execute_file(self, path: str | os.PathLike[str], each: Callable[[str, Result], None] | None = None) -> Result | None:
        """Runs the statements of a file, as :meth:`execute_script`. Raises StorageError, InvalidInputError for what is no text."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"expected a text in UTF-8 in {os.fspath(path)}: {error}", kind="encoding") from error
        except OSError as error:
            raise StorageError(f"cannot read {os.fspath(path)}: {error.strerror}", kind="file") from error
        return self.execute_script(text, each)

    def sql_query(self, text: str, /, *args: Any, sql_dialect: str | None = None, **params: Any) -> Query:
        """A query to be read later, maybe several times; ``sql_dialect`` as of :meth:`execute_sql`. Raises InvalidInputError for
        another statement."""
        parameters, dialect = _parameters(text, args, params), self._dialect(sql_dialect)
        query = query_text(self._checked(text), parameters, what="sql_query", dialect=dialect, reach=self._reach)
        return Query(self._session, query)

    @property
    def _reach(self) -> Reach:
        restrictions = self._session.restrictions
        return Reach.ALL if restrictions is None else restrictions.reach

    def _dialect(self, name: str | None) -> SqlDialect:
        """The dialect of this name, or that of the session. Raises InvalidInputError, UnsupportedError."""
        if name is None:
            return self._session.settings.dialect
        dialect = SqlDialect(str(SQL_DIALECT_OPTION.parse(name)))
        self._session.check_dialect(dialect)
        return dialect

    def from_path(self, path: str) -> Query:
        """The rows of a table or view by its name, such as ``orders`` or ``lake.shop.`odd-name```."""
        self._session.expand(parsed := parse_path(path))
        text = f"SELECT * FROM {'.'.join(map(quote_identifier, parsed.parts))}"
        return Query(self._session, query_text(text, what="from_path"))

    # -- writing

    def insert_into(self, path: str, query: Query | str, *, overwrite: bool = False) -> "TablePipeline":
        """A pipeline that writes the rows of a query into a table, as ``query.insert_into(path)``. Nothing happens yet."""
        return self._as_query(query, "insert_into").insert_into(path, overwrite=overwrite)

    def create_table(self, path: str, options: Mapping[str, Any], query: Query | str) -> "TablePipeline":
        """Creates a table from a query, as ``query.save_as(path).options(options).create()``, and returns the pipeline that writes
        its rows."""
        return self._as_query(query, "create_table").save_as(path).options(options).create()

    def create_statement_set(self) -> "StatementSet":
        """An empty set of INSERTs, to be run as one job."""
        from tablestore.environment.statementset import StatementSet

        return StatementSet(self._session)

    def _as_query(self, query: Query | str, caller: str) -> Query:
        return Query(self._session, as_query_text(query, caller, self._session.settings.dialect))

    def _checked(self, text: str) -> str:
        checked_text(text, "SQL text")
        if self._session.restrictions is not None:
            self._session.restrictions.check_text(text)
        return text

    def _execute(self, statement: "Statement", source: Source, parameters: Parameters) -> Result:
        return execute(self._session, statement, source, parameters, _STATEMENT_FUNCTIONS)

    # -- materialized tables

    def materialized_table(self, path: str) -> "MaterializedTable":
        """The definition of a materialized table. Raises NotFoundError, InvalidInputError for another table."""
        from tablestore.materialized.storing import find_materialized

        return find_materialized(self._session, parse_path(path)).definition

    def evolution(self, path: str) -> "TableEvolution":
        """The versions of a materialized table: stage another one, compare it, promote it, go back."""
        from tablestore.materialized.evolution.evolution import TableEvolution

        return TableEvolution(self._session, path)

    def refresh_due(self, now_ms: int | None = None) -> "tuple[DueRefresh, ...]":
        """Refreshes the materialized tables of the current catalog that are due now, sources before what is made from them.

        What each did, or why it failed: then it is due again. Several processes may do this at one time.
        """
        from tablestore.materialized.due import refresh_due

        return tuple(refresh_due(self._session, now_ms))

    def each_refresh_due(self, skip: "Callable[[ObjectPath], bool] | None" = None) -> "Iterator[DueRefresh]":
        """Refreshes as :meth:`refresh_due` does, and gives each as soon as it is done. ``skip``: the tables that are left out this
        time."""
        from tablestore.materialized.due import refresh_due

        return refresh_due(self._session, skip=skip)

    def refresh_chain(self, path: str) -> "tuple[DueRefresh, ...]":
        """Refreshes a materialized table now, behind those that it is made from, all from one set of snapshots.

        One of these that is suspended, or refreshed partition by partition, is read as it is. What each did; the last one may be
        why it failed, and nothing is refreshed then that is made from it. Raises NotFoundError, InvalidInputError.
        """
        from tablestore.materialized.due import refresh_chain

        return tuple(refresh_chain(self._session, self._session.expand(parse_path(path))))

    def freshness(self, database: str | None = None) -> "tuple[FreshnessFigures, ...]":
        """The figures of freshness of each materialized table of the current catalog, or of one of its databases. No engine is
        needed."""
        from tablestore.materialized.figures.freshnessfigures import figures_of

        return tuple(figures_of(self._session, database))

    def freshness_of(self, database: str, name: str) -> "FreshnessFigures | None":
        """The figures of one table of the current catalog; None if it is not materialized, or not there. No engine is needed."""
        from tablestore.materialized.figures.freshnessfigures import figures_of_path

        return figures_of_path(self._session, database, name)

    def refresh_history(self, path: str) -> "tuple[PastRefresh, ...]":
        """The refreshes of a materialized table whose snapshots are still there, newest first. Raises NotFoundError,
        InvalidInputError for another table."""
        from tablestore.materialized.figures.freshnessfigures import past_refreshes
        from tablestore.materialized.figures.graphdrawing import RefreshHistory
        from tablestore.materialized.storing import find_materialized

        return RefreshHistory(past_refreshes(find_materialized(self._session, parse_path(path))))

    def sources_of(self, path: str) -> tuple[str, ...]:
        """The tables and views that the query of a materialized table names, each as ``database.table``, or with its catalog in
        front where that is not the current one. No engine is needed. Raises NotFoundError, InvalidInputError for another table."""
        from tablestore.materialized.expansion import sources_of
        from tablestore.materialized.storing import find_materialized

        paths = sources_of(find_materialized(self._session, parse_path(path)).definition.query)
        return tuple(f"{one.database}.{one.name}" if one.catalog == self.current_catalog else str(one) for one in paths)

    def refresh_plan(self, path: str) -> "RefreshPlan":
        """The rule of the refreshes of a materialized table: from changes of its sources, or of all rows, and why. No engine is
        needed. Raises NotFoundError, InvalidInputError for another table."""
        from tablestore.materialized.figures.refreshplan import plan_of
        from tablestore.materialized.storing import find_materialized

        return plan_of(self._session, find_materialized(self._session, parse_path(path)))

    def plan_folder(self, folder: str | os.PathLike[str], *, blue_green: bool = False) -> "FolderPlan":
        """The changes that the SQL files of a folder would make; they hold CREATE OR ALTER MATERIALIZED TABLE statements, and
        CREATE … IF NOT EXISTS for the tables and databases that these need. Nothing is done. ``blue_green``: another query, key or
        partitioning is to be staged beside the table. Raises NotFoundError, InvalidInputError."""
        from tablestore.materialized.folder.folderplan import plan_folder

        return plan_folder(self._session, Path(folder), blue_green=blue_green)

    def apply_folder(self, folder: str | os.PathLike[str], *, blue_green: bool = False) -> "Iterator[PlannedStatement]":
        """Makes what the SQL files of a folder declare; each statement as soon as it is done. ``blue_green``: another query, key
        or partitioning is staged beside the table, which stays as it is.

        Raises as :meth:`plan_folder`, and what its statements raise.
        """
        from tablestore.materialized.folder.folderplan import apply_folder

        def run(one: "Declaration") -> Result:
            return self._execute(one.statement, one.source, ())

        return apply_folder(self._session, Path(folder), run, blue_green=blue_green)

    # -- catalogs and databases

    def register_catalog(self, name: str, catalog: CatalogSource) -> None:
        """Adds a catalog: one that is open, or a warehouse to open. Raises AlreadyExistsError."""
        self._session.catalogs.register(name, _registered(catalog, None, None))

    def catalog(self, name: str | None = None) -> Catalog:
        """A catalog by name, by default the current one. Raises NotFoundError."""
        return self._session.catalogs.get(name or self.current_catalog)

    def use_catalog(self, name: str) -> None:
        """Makes a catalog the current one. Raises NotFoundError."""
        self._session.catalogs.use(name)

    def use_database(self, name: str) -> None:
        """Makes a database of the current catalog the current one. Raises NotFoundError."""
        self._session.catalogs.use(self.current_catalog, name)

    @property
    def current_catalog(self) -> str:
        """The name of the current catalog."""
        return self._session.place[0]

    @property
    def current_database(self) -> str:
        """The name of the current database."""
        return self._session.place[1]

    def list_catalogs(self) -> tuple[str, ...]:
        """Names of all catalogs, ascending."""
        return self._session.catalogs.names()

    def list_databases(self) -> tuple[str, ...]:
        """Databases of the current catalog, ascending."""
        return self._session.catalogs.databases(self.current_catalog)

    def list_tables(self, *, include_temporary: bool = False) -> tuple[str, ...]:
        """The permanent tables of the current database, ascending; ``include_temporary``: temporary tables and views too."""
        permanent = self._listed("SHOW TABLES")
        if not include_temporary:
            return permanent
        return tuple(sorted({*permanent, *self.list_temporary_tables(), *self.list_temporary_views()}))

    def list_functions(self) -> tuple[str, ...]:
        """The functions that a query may call by one name here: the engine's, those of the current database, and temporary ones."""
        return self._listed("SHOW ALL FUNCTIONS")

    def list_views(self) -> tuple[str, ...]:
        """The views that a query may read by one name here: those of the current database, and temporary ones."""
        return self._listed("SHOW VIEWS")

    # -- settings, end

    def get_config(self) -> Configuration:
        """The settings."""
        self._session.check_open()
        return Configuration(self._session.settings)

    @property
    def engine(self) -> QueryEngine | None:
        """The engine that runs the queries."""
        return self._session.engine

    def close(self) -> None:
        """Waits for jobs that run, and gives up what was opened here; catalogs and sessions that were handed in stay.

        What is asked of the environment afterwards raises InvalidInputError of kind ``closed``. Closing it twice is allowed.
        """
        self._session.jobs.wait()
        if (engine := self._session.engine) is not None:
            for name in (*self._session.functions.called(), *self._session.kept_functions.registered()):
                # A session that its owner has closed took them along.
                with suppress(TablestoreError):
                    engine.drop_function(name)
            if self._closes_engine:
                engine.close()
        self._session.catalogs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        engine = self._session.engine.name if self._session.engine is not None else None
        catalogs = self._session.catalogs
        return f"TableEnvironment(engine={engine!r}, current={catalogs.current}.{catalogs.current_database})"

    def _repr_html_(self) -> str:
        """The current database with its tables, and the graph of its materialized tables where it has few tables."""
        from tablestore.materialized.figures.graphdrawing import graph_drawing
        from tablestore.materialized.figures.tablegraph import graph_of_database

        session = self._session
        try:
            catalogs, tables = session.catalogs, self.list_tables()
            database = catalogs.current_database
            facts = {
                "engine": session.engine.name if session.engine is not None else "none: statements without queries alone",
                "catalogs": ", ".join(catalogs.names()),
                "current": f"{catalogs.current}.{database}",
                "tables": ", ".join(tables[:_SHOWN_TABLES])
                + (f" and {len(tables) - _SHOWN_TABLES:,} more" * (len(tables) > _SHOWN_TABLES)),
            }
            card = html_card("TableEnvironment", "", facts)
            graph = graph_of_database(session, database, most=_DRAWN_NODES) if len(tables) <= _LOOKED_AT else None
        except TablestoreError as error:
            return html_card("TableEnvironment", "", {"state": error.message})
        if graph is None or not graph.nodes:
            return card
        return card + html_element("div", {"style": "overflow-x:auto"}, graph_drawing(graph, lambda _: None))


def _describing(session: Session, path: "ObjectPath") -> "InformationView | None":
    """A table of ``information_schema``."""
    from tablestore.environment.inspection.informationschema import find_information

    return find_information(session, path)


def _engine(engine: str | QueryEngine | None, spark: Any) -> tuple[QueryEngine | None, bool]:
    """The engine, and whether this environment closes it."""
    if spark is not None:
        if engine not in (None, "spark"):
            raise InvalidInputError(f"spark=… means engine='spark', found engine={engine!r:.80}", kind="engine")
        return open_engine("spark", spark), True
    if isinstance(engine, str):
        return open_engine(engine), True
    return engine, False


def _restrictions(restricted: bool | Restrictions) -> Restrictions | None:
    if isinstance(restricted, Restrictions):
        return restricted
    if not isinstance(restricted, bool):
        raise InvalidInputError(f"expected True, False or Restrictions as restricted, found {restricted!r:.80}", kind="option")
    return Restrictions() if restricted else None


def _registered(source: CatalogSource, clock: Clock | None, ids: Ids | None) -> Registered:
    if isinstance(source, Catalog):
        return Registered(open=lambda: source, opened=source, owned=False)
    location = source if isinstance(source, Mapping) else os.fspath(source)
    return Registered(open=lambda: open_catalog(location, clock=clock, ids=ids))


def _by_setting(settings: Settings, clock: Clock | None, ids: Ids | None) -> Catalog:
    root = settings.get(STORAGE_PREFIX + FILE_PATH)
    if not root:
        raise InvalidInputError(
            f"Failed to create file store path. Please specify a root dir by setting session level configuration as `SET "
            f"'{STORAGE_PREFIX}{FILE_PATH}' = '...'`. Alternatively, create the environment with a warehouse: "
            "TableEnvironment.create(warehouse=…), or CREATE CATALOG one with the option 'warehouse'",
            kind="no-warehouse",
        )
    return open_catalog(root, clock=clock, ids=ids)


def _parameters(text: str, args: tuple[Any, ...], params: Mapping[str, Any]) -> Parameters:
    if args and params:
        raise InvalidInputError("give the values of parameters by place (?) or by name (:name), not both", kind="parameters")
    return checked_parameters(text, params or args)
