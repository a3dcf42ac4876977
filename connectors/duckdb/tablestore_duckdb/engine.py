"""Runs queries in DuckDB, behind the port ``QueryEngine``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from tablestore.distributed.read import ReadPin
from tablestore.environment.engine import BoundQuery, ChangeTarget, ConnectorRelation, Function, InsertTarget
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.memo import Memo
from tablestore.names import did_you_mean
from tablestore.options import parse_bool
from tablestore.sql.binding.sqltypes import Type
from tablestore.sql.query.functions import is_spark_function
from tablestore.sql.sqldialect import SqlDialect
from tablestore.table.table import Table
from tablestore_duckdb.checksums import ScanChecks
from tablestore_duckdb.columntypes import arrow_type
from tablestore_duckdb.database import Database
from tablestore_duckdb.ownwords import is_open_function
from tablestore_duckdb.prepared import Parser, Placed, PreparedQuery, is_view_name, prepare
from tablestore_duckdb.quoting import identifier
from tablestore_duckdb.resultrows import DuckDBRows, KeptRows
from tablestore_duckdb.scans import folders_of
from tablestore_duckdb.sessions import BATCH_ROWS, QueryRun, Sessions

VERIFY_CHECKSUMS = "duckdb.verify-checksums"
RESULT_BATCH_ROWS = "duckdb.batch-rows"
# The time zone of a connection of our own.
TIME_ZONE = "UTC"


class DuckDBEngine:
    """Queries in this process. ``connection``: yours, which stays open; None: a database in memory of its own, in UTC."""

    name = "duckdb"
    takes_hints = False
    dialects = frozenset(SqlDialect)

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self._owns = connection is None
        self._remembered = Memo()
        self._functions: dict[str, Type] = {}
        self._registered: dict[str, Function] = {}
        self._database = Database(self._registered) if connection is None else None
        self._sessions = Sessions(self._database, connection)
        if self._owns:
            self._sessions.settings["timezone"] = TIME_ZONE

    def query(self, query: BoundQuery) -> DuckDBRows:
        """Makes a query ready: its scans are planned, its columns are known. Raises InvalidInputError, UnsupportedError."""
        rows = DuckDBRows(self._sessions, self._prepared(query))
        # DuckDB has checked it when it knows the columns.
        assert rows.schema is not None
        return rows

    def read(self, query: BoundQuery) -> pa.RecordBatchReader:
        """The rows of a query, which begins now: its views are made and it is bound once, and not once more to be checked."""
        return DuckDBRows(self._sessions, self._prepared(query)).begun()

    def explain(self, query: BoundQuery) -> str:
        """DuckDB's plan, and what the scans of managed tables read."""
        prepared = self._prepared(query)
        with self._sessions.run(prepared) as run:
            plan = run.relation().explain()
        return "\n\n".join([plan.rstrip(), *(scan.explain(name) for name, scan in prepared.scans)])

    def insert(self, query: BoundQuery, target: InsertTarget) -> Snapshot | None:
        """Writes the rows of a query as one snapshot, batch by batch."""
        # A program that only reads does not load what writes.
        from tablestore_duckdb.writing import insert_rows

        return insert_rows(self.read(query), target)

    def change(self, query: BoundQuery, target: ChangeTarget) -> Snapshot | None:
        """Applies the rows of a query as changes, batch by batch. Raises StalePlan if rows changed since the pin."""
        from tablestore_duckdb.writing import change_rows

        if target.matching is None:
            return change_rows(self.read(query), target)
        from tablestore_duckdb.keptsource import can_say, merged_rows

        if not can_say(query, target.matching):
            return change_rows(self.read(query), target)
        # They are read where the rows of its source are kept.
        self._sessions.add_folders(folders_of(query))
        with merged_rows(self._sessions, self._prepared, query, target, target.matching) as (rows, narrowed):
            return change_rows(rows, narrowed)

    def check_target(self, target: ConnectorRelation) -> None:
        """Raises UnsupportedError, InvalidInputError for what is no table of files, or for columns that its files do not hold."""
        from tablestore_duckdb.fileinsert import checked_target

        checked_target(target)

    def write(
        self, query: BoundQuery, target: ConnectorRelation, *, overwrite: bool, partition: Mapping[str, str | None] | None = None
    ) -> None:
        """Writes the rows of a query into files, batch by batch. See :class:`tablestore.environment.engine.WritesConnectors`."""
        from tablestore_duckdb.fileinsert import insert_into_files

        insert_into_files(self, self._sessions.ids, query, target, overwrite=overwrite, partition=partition)

    def compact(self, table: Table, pin: ReadPin, partitions: Sequence[Mapping[str, Any]] | None) -> object:
        """Fully compacts a table or some partitions, in this process."""
        return table.compact(full=True, partitions=partitions)

    def knows(self, parts: tuple[str, ...]) -> bool:
        """True if DuckDB has a table or view of this name."""
        return any(_matches(parts, table) for table in self._names())

    def list_views(self) -> tuple[str, ...]:
        """Names of the temporary views of the session."""
        return tuple(sorted(name for database, _, name, is_view in self._names() if database == "temp" and is_view))

    def register_function(self, name: str, function: Function) -> None:
        """Lets queries call a function, by column or by value. Raises InvalidInputError if its types are not known."""
        from tablestore_duckdb.pythonfunctions import create_function

        with self._alone(function.name):
            create_function(self._sessions.connection, name, function)
        self._registered[name] = function
        self._functions[name.lower()] = None if function.returns is None else arrow_type(function.returns)

    def drop_function(self, name: str) -> None:
        """Forgets a function that was registered."""
        with self._alone(name):
            self._sessions.connection.remove_function(name)
        self._registered.pop(name, None)
        self._functions.pop(name.lower(), None)

    def agrees(self, *, calls: bool) -> bool:
        """True if only the time zone was set, and nobody else sets anything."""
        return self._owns and self._sessions.settings.keys() <= {"timezone"}

    def has_function(self, name: str) -> bool:
        """True if Spark's dialect, in which queries are written, has a function of this name."""
        return is_spark_function(name)

    def function_names(self, dialect: SqlDialect) -> tuple[str, ...]:
        """The functions of Spark's that are known to mean the same here, or DuckDB's own, as far as queries may call them."""
        if dialect is SqlDialect.SPARK:
            from tablestore.sql.duckdb.functions.functiontable import BOUNDS

            return tuple(sorted(BOUNDS))
        with self._alone("names of functions") as run:
            rows = run.connection.sql(_FUNCTIONS).fetchall()
        named = {str(name).lower() for (name,) in rows}
        return tuple(sorted(name for name in named if name.isidentifier() and name[0] != "_" and is_open_function(name)))

    def is_native(self, value: object) -> bool:
        """True if a value is a relation of DuckDB's."""
        return isinstance(value, duckdb.DuckDBPyRelation)

    def execute(self, text: str) -> KeptRows | None:
        """Runs a statement that reads or sets something, now; its rows are kept. Raises UnsupportedError for every other one, and
        for what lists Spark's functions."""
        if _ABOUT_FUNCTIONS.match(text):
            raise UnsupportedError(
                "functions are called by the names of Spark, and DuckDB has no list of those that it runs; SHOW USER FUNCTIONS "
                "lists those of the session, the engine spark all",
                kind="engine",
            )
        words = text.upper().split(maxsplit=2)[:2]
        if words[:1] and (words[0] not in _RUNS or words[1:] in (["VARIABLE"], ["VAR"])):
            operation = " ".join(words) if words[0] in ("CREATE", "DROP", "SET") else words[0]
            instead = next((way for root, way in _INSTEAD.items() if operation.startswith(root)), _OWN_CONNECTION)
            raise UnsupportedError(f"{operation} is not run on the engine duckdb; {instead}", kind="engine")
        with self._alone(text) as run:
            relation = run.connection.sql(text)
            if words == ["SET", "TIME"]:
                # The other connections get it from here, and the one after this.
                self._sessions.settings["timezone"] = run.connection.sql("SELECT current_setting('TimeZone')").fetchall()[0][0]
            return None if relation is None else KeptRows(relation)

    def set_option(self, key: str, value: str | None) -> None:
        """Sets a setting of DuckDB's, ``duckdb.verify-checksums`` (``checksums``), or ``duckdb.batch-rows``: how many rows of a
        result are in memory at once. None resets it.

        Raises InvalidInputError for one that DuckDB does not have.
        """
        key = key.lower()
        if key == VERIFY_CHECKSUMS:
            self._sessions.checked = ScanChecks() if value is None or parse_bool(value) else None
            return
        if key == RESULT_BATCH_ROWS:
            rows = str(BATCH_ROWS) if value is None else value
            if not (rows.isascii() and rows.isdecimal() and 0 < int(rows[:9]) == int(rows)):
                raise InvalidInputError(f"{key}: expected a whole number above 0, found {value!r:.80}", kind="invalid-option")
            self._sessions.batch_rows = int(rows)
            return
        if key == "temp_directory" and self._database is not None:
            self._database.spill_into(value)
            self._sessions.renew()
            return
        with self._alone(key) as run:
            setting_names = [name.lower() for (name,) in run.connection.sql("SELECT name FROM duckdb_settings()").fetchall()]
            if key not in setting_names:
                raise InvalidInputError(f"DuckDB has no setting {key!r}{did_you_mean(key, setting_names)}", kind="unknown-option")
            if value is None and self._owns and key == "timezone":
                value = TIME_ZONE
            if value is None:
                run.connection.execute(f"RESET {identifier(key)}").complete()
                self._sessions.settings.pop(key, None)
            else:
                self._set(run, key, value)

    def _prepared(self, query: BoundQuery, placed: Mapping[int, Placed] | None = None) -> PreparedQuery:
        if folders := set(folders_of(query)):
            self._sessions.add_folders(folders)
        by_bytes = self._owns and "default_collation" not in self._sessions.settings
        parser = Parser(parse=self._parsed, rows=self._values, reads_files=not self._owns, compares_texts=by_bytes)
        return prepare(query, self._sessions.new_name, self._remembered, self._sessions.columns, self._functions, placed, parser)

    def _parsed(self, text: str) -> str:
        """The tree of a query in DuckDB's own words."""
        with self._alone(text) as run:
            return str(run.connection.execute(_TREE, [text]).fetchall()[0][0])

    def _values(self, prepared: PreparedQuery) -> list[str | None]:
        """The first column of a query of texts, which runs now."""
        values: list[str | None] = DuckDBRows(self._sessions, prepared).to_reader().read_all().column(0).to_pylist()
        return values

    def _set(self, run: QueryRun, key: str, value: str) -> None:
        run.connection.execute(f"SET {identifier(key)} = $1", [value]).complete()
        self._sessions.settings[key] = value

    def cancel(self, thread: int | None = None) -> None:
        """Ends what runs, or only what one thread runs."""
        self._sessions.cancel(thread)

    def close(self) -> None:
        """Closes the connection, if it is ours."""
        self._sessions.close()

    @contextmanager
    def _alone(self, text: str) -> Iterator[QueryRun]:
        """A run of a statement that is none of tablestore's."""
        with self._sessions.run(PreparedQuery(sql=(text,), text=text)) as run:
            yield run

    def _names(self) -> list[tuple[str, str, str, bool]]:
        """Database, schema and name of each table and view, and whether it is a view; those of queries left out."""
        with self._alone("names of tables") as run:
            rows = run.connection.sql(_NAMES).fetchall()
        return [(database, schema, name, is_view) for database, schema, name, is_view in rows if not is_view_name(name)]


_FUNCTIONS = (
    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro') AND internal"
)
_TREE = "SELECT json_serialize_sql($1::VARCHAR, skip_empty := true, skip_null := true, skip_default := true)"
_ABOUT_FUNCTIONS = re.compile(r"\s*(?:SHOW\s+(?:\w+\s+)?FUNCTIONS|DESC(?:RIBE)?\s+FUNCTION)\b", re.IGNORECASE)
# The statements that change nothing outside of the session.
_RUNS = frozenset({"SELECT", "SHOW", "SET", "RESET"})
_OWN_CONNECTION = (
    "run it on a DuckDB connection of your own, and make the environment over that: "
    "engine=tablestore_duckdb.open_engine(connection)"
)
_OF_SPARK = "it is a statement of Spark's: run it on the engine spark, or leave it out"
# The advice in place of a statement, by how it begins; for others a connection of one's own.
_INSTEAD = {
    "PRAGMA": "SET reads and changes settings",
    "SUMMARIZE": "DESCRIBE lists columns, a query aggregates them",
    "SET": "give the query a parameter (:name)",
    "CREATE TYPE": "write the type where it is used",
    "CREATE MACRO": "CREATE TEMPORARY FUNCTION makes a function",
    **dict.fromkeys(("CACHE", "UNCACHE", "CLEAR", "REFRESH", "ANALYZE", "ADD", "LIST", "DECLARE", "EXECUTE"), _OF_SPARK),
    **dict.fromkeys(("CREATE VARIABLE", "CREATE VAR", "DROP VARIABLE", "CREATE GLOBAL", "CREATE FUNCTION"), _OF_SPARK),
}
_NAMES = """
SELECT database_name, schema_name, table_name, false FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT database_name, schema_name, view_name, true FROM duckdb_views() WHERE NOT internal
"""


def _matches(parts: Sequence[str], table: tuple[str, str, str, bool]) -> bool:
    """True if a name in one to three parts, regardless of case, is that of a table; two parts: a schema's or a database's."""
    database, schema, name = (part.casefold() for part in table[:3])
    folded_parts = tuple(part.casefold() for part in parts)
    return folded_parts in {(name,), (schema, name), (database, name), (database, schema, name)}
