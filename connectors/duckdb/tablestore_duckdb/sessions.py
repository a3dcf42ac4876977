"""Chooses the connection on which a query runs, and cancels and ends it.

A connection of DuckDB's runs one query at a time, until its last row is read. So a query runs on the session's own connection
while that is free, and otherwise on a copy of it, which sees the same databases and settings but not its temporary tables.
The views and streams of a query are there while it runs.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from tablestore.errors import InvalidInputError, StorageError, TablestoreError
from tablestore.ids import Ids, SystemIds
from tablestore.sql.binding.scopes import Columns
from tablestore_duckdb.arrowcalls import ArrowCalls
from tablestore_duckdb.checksums import ScanChecks
from tablestore_duckdb.columntypes import Parameters, columns_of
from tablestore_duckdb.database import Database
from tablestore_duckdb.prepared import VIEW_PREFIX, PreparedQuery, TemporaryView, asked_for
from tablestore_duckdb.quoting import Sql, identifier, joined, sql_text
from tablestore_duckdb.scans import RowStream

# The errors that rise from DuckDB, or from a stream that DuckDB fills.
RAW_ERRORS = (duckdb.Error, pa.ArrowException, OSError, ValueError, TypeError)


@dataclass(eq=False, slots=True)
class QueryRun:
    """One run of a query on a connection, which is that of its ``database`` or a copy. ``thread``: the one that asked for it."""

    connection: duckdb.DuckDBPyConnection
    database: duckdb.DuckDBPyConnection
    prepared: PreparedQuery
    thread: int
    arrow_calls: ArrowCalls
    cancelled: bool = False
    _streams: dict[str, duckdb.DuckDBPyRelation] = field(default_factory=dict)

    def begin(self) -> None:
        """Makes what the query reads known to the connection."""
        self._make(self.prepared.views)

    def keep(self, name: str) -> None:
        """Runs the query, and keeps its rows in a table of this name."""
        view = TemporaryView(name=name, sql=self.prepared.sql, kept=True, parameters=self.prepared.parameters)
        view.create(self.connection, self._text)
        self.prepared = replace(self.prepared, views=(*self.prepared.views, view))

    def then(self, prepared: PreparedQuery) -> None:
        """Go on with another query, which may name what was kept."""
        before = self.prepared
        self.prepared = replace(
            prepared,
            views=(*before.views, *prepared.views),
            scans=(*before.scans, *prepared.scans),
            names={**before.names, **prepared.names},
        )
        self._make(prepared.views)

    def _make(self, views: Sequence[TemporaryView]) -> None:
        for view in views:
            if isinstance(view.source, RowStream):
                # It costs a quarter of a view, and only this run names it.
                self._streams[view.name] = self.connection.from_arrow(view.source)
            else:
                view.create(self.connection, self._text)

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The query, bound: nothing has run yet."""
        return relation_of(self.connection, self._text(self.prepared.sql), self.prepared.parameters)

    def bound(self, sql: Sql) -> duckdb.DuckDBPyRelation:
        """Another query over the same views, bound."""
        return relation_of(self.connection, self._text(sql), self.prepared.parameters)

    def end(self) -> None:
        """Takes back what :meth:`begin` made."""
        for view in reversed(self.prepared.views):
            if not isinstance(view.source, RowStream):
                view.drop(self.connection)
        self._streams.clear()

    def check(self) -> None:
        """Raises if the run was cancelled: between two batches there is nothing that DuckDB could interrupt."""
        if self.cancelled:
            from tablestore_duckdb.queryerrors import cancellation

            raise cancellation()

    def _text(self, sql: Sql) -> str:
        text = sql_text(sql, self._read)
        self.arrow_calls.register(text, self.connection, self.database)
        return text

    def _read(self, view: str) -> str:
        stream = self._streams.get(view)
        return identifier(view) if stream is None else f"({stream.sql_query()})"


# DuckDB fills a batch before it hands it out.
BATCH_ROWS = 65_536


@dataclass(eq=False)
class Sessions:
    """Holds the connection of an engine, and what runs on it and on its copies.

    ``database`` opens the connection when it is first needed, and another one where a fatal error of DuckDB's has ended the first
    or more folders are to be read; the settings are set again in it. None: the connection is somebody else's.
    """

    database: Database | None = None
    _connection: duckdb.DuckDBPyConnection | None = None
    settings: dict[str, str] = field(default_factory=dict)
    checked: ScanChecks | None = field(default_factory=ScanChecks)
    batch_rows: int = BATCH_ROWS
    ids: Ids = field(default_factory=SystemIds)
    _running: set[QueryRun] = field(default_factory=set)
    _closed: bool = False
    _handed_out: bool = False
    _kept: list[TemporaryView] = field(default_factory=list)
    _left: list[duckdb.DuckDBPyConnection] = field(default_factory=list)
    _arrow_calls: ArrowCalls = field(default_factory=ArrowCalls)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection on which queries run, unless one runs."""
        with self._lock:
            if self._connection is None:
                assert self.database is not None, "sessions have a connection or a database"
                self._connection = self.database.open()
                self._set_up(self._connection)
            return self._connection

    def add_folders(self, folders: Iterable[str]) -> None:
        """Lets queries that begin from now on read files in these folders; somebody else's connection reads what it does."""
        with self._lock:
            if self.database is not None and self.database.add_folders(folders):
                self.renew()

    def renew(self) -> None:
        """Lets queries that begin from now on run in another database. What runs, and what was kept, goes on in its own."""
        with self._lock:
            left, self._connection = self._connection, None
            if left is None:
                return
            self._left.append(left)
            for view in self._kept:
                view.create(self.connection, self._text)
            self._close_left()

    def new_name(self) -> str:
        """A name for a view, used once, which no text and no other session on the same connection has."""
        return f"{VIEW_PREFIX}{self.ids.uuid().replace('-', '')}"

    @contextmanager
    def run(self, prepared: PreparedQuery, thread: int | None = None) -> Iterator[QueryRun]:
        """A connection with the views of a query; what goes wrong on it leaves as an error of tablestore's.

        ``thread``: the one that asked for it, by default this one.
        """
        self._check_open()
        thread = threading.get_ident() if thread is None else thread
        with self._lock:
            is_free = all(run.connection is not self.connection for run in self._running)
            connection = self.connection if is_free else self.connection.cursor()
            run = QueryRun(connection, self.connection, prepared, thread, self._arrow_calls)
            self._running.add(run)
        try:
            with translating(run):
                if not is_free:
                    self._set_up(run.connection)
                run.begin()
                yield run
        except TablestoreError as error:
            if isinstance(error.__cause__, RAW_ERRORS) and not self._is_alive():
                raise self._ended(error) from error.__cause__
            raise
        finally:
            self._end(run, copy=not is_free)

    def columns(self, sources: Sequence[Sql], views: PreparedQuery) -> list[Columns | None]:
        """The columns of what stands in FROM as SQL, which DuckDB binds; None where it cannot.

        ``views``: a query with those that it may name.
        """
        source_columns: list[Columns | None] = []
        with self.run(views) as run:
            for source in sources:
                try:
                    source_columns.append(columns_of(run.bound(joined("SELECT * FROM ", source))))
                except duckdb.Error:
                    # It says so itself where the query runs.
                    source_columns.append(None)
        return source_columns

    def check_files(self, run: QueryRun) -> None:
        """Checks the files that DuckDB reads itself, if that is asked for. Raises FormatError."""
        if self.checked is not None:
            self.checked.check([scan for _, scan in run.prepared.scans], run.check)

    def native(self, prepared: PreparedQuery) -> duckdb.DuckDBPyRelation:
        """A query as a relation on the session's own connection; its views stay until the session is closed."""
        self._check_open()
        self._handed_out = True
        run = QueryRun(self.connection, self.connection, prepared, threading.get_ident(), self._arrow_calls)
        with translating(run):
            self.check_files(run)
            for view in prepared.views:
                view.create(self.connection, self._text)
                self._kept.append(view)
            return relation_of(self.connection, self._text(prepared.sql), prepared.parameters)

    def close(self) -> None:
        """Closes the connection, if it is ours, or drops the views that were kept. What is asked later raises InvalidInputError."""
        self._closed = True
        with self._lock, suppress(duckdb.Error):
            if self.database is None:
                while self._kept:
                    self._kept.pop().drop(self.connection)
                return
            self._kept.clear()
            if self._connection is not None:
                self._connection.close()
            while self._left:
                self._left.pop().close()
            self.database.close()

    def cancel(self, thread: int | None = None) -> None:
        """Ends all that runs, or what one thread asked for."""
        with self._lock:
            for run in self._running:
                if thread is None or run.thread == thread:
                    run.cancelled = True
                    run.connection.interrupt()

    def _text(self, sql: Sql) -> str:
        """A text for the session's own connection, on which what it calls is registered."""
        text = sql_text(sql)
        self._arrow_calls.register(text, self.connection, self.connection)
        return text

    def _is_alive(self) -> bool:
        """True if the database still runs queries."""
        try:
            with self.connection.cursor() as probe:
                probe.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def _ended(self, error: TablestoreError) -> TablestoreError:
        """The error that is raised where DuckDB's database has ended with one; it is opened again, if it is ours."""
        if self._closed:
            return error
        if self.database is None:
            return StorageError(f"{error}\nDuckDB runs no more queries on the connection that was given; give another one")
        with self._lock:
            if not self._is_alive():
                self._kept.clear()
                self.renew()
        return StorageError(
            f"{error}\nThe database of DuckDB ended with this error and was opened again: settings, functions and all objects of "
            "tablestore are there, tables and views that were made in DuckDB alone are not"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(
                "the engine duckdb was closed, with its environment: read the rows of a query before env.close()", kind="closed"
            )

    def _set_up(self, copy: duckdb.DuckDBPyConnection) -> None:
        for key, value in self.settings.items():
            copy.execute(f"SET {identifier(key)} = $1", [value]).complete()

    def _end(self, run: QueryRun, *, copy: bool) -> None:
        if not copy:
            with suppress(duckdb.Error):
                run.end()
        with self._lock:
            self._running.discard(run)
        if copy:
            # Last: whoever cancels interrupts the connections of what runs, and one that is closed raises.
            with suppress(duckdb.Error):
                run.connection.close()
        if self._left:
            with self._lock:
                self._close_left()

    def _close_left(self) -> None:
        """Closes the databases in which nothing runs any more, unless somebody has a relation of one."""
        if self._handed_out:
            return
        in_use = {id(run.database) for run in self._running}
        for left in [left for left in self._left if id(left) not in in_use]:
            self._left.remove(left)
            with suppress(duckdb.Error):
                left.close()


@contextmanager
def translating(run: QueryRun) -> Iterator[None]:
    """Translates errors of DuckDB, and of streams that it fills or pulls, to tablestore's."""
    try:
        yield
    except TablestoreError:
        raise
    except RAW_ERRORS as error:
        from tablestore_duckdb.queryerrors import cancellation, translated

        if run.cancelled:
            raise cancellation() from error
        for stream in run.prepared.streams:
            if stream.failure is not None:
                raise stream.failure from error
        raise translated(str(error), run.prepared.text, run.prepared.columns, run.prepared.readable) from error


def relation_of(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters) -> duckdb.DuckDBPyRelation:
    """A query, whose views are there, as a relation."""
    if not parameters:
        return connection.sql(sql)
    if isinstance(parameters, Mapping):
        (statement,) = connection.extract_statements(sql)
        parameters = asked_for(statement, parameters)
    return connection.sql(sql, params=parameters or None)
