"""Watches the statements that engines receive: queries over planned relations, and the few that set a query up.

    DuckDB   a text -> what was planned is cut out of it -> its tree -> tables that are left, and calls that reach out
    Spark    a text of a bound query -> its tree -> tables that are left

What was planned is, for DuckDB, the SQL that tablestore itself has written for a relation: a scan of the files of a managed table,
the reader of a declared connector, a relation that the program handed in; for Spark, the name of a DataFrame's view. Anything of
that kind in the rest came through a text. A user who is not restricted may call functions of Spark's, and read tables of Spark's
that the bound query lists.

Spark's session is watched from the first test with the marker ``spark``, so that no other one imports it; calls by a test's own
program are its own business. Processes that a test starts, and with them Spark Connect, are not watched.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from tablestore.environment.engine import BoundQuery
from tablestore.errors import TablestoreError
from tablestore.sql.binding.binder import tables_of_others
from tablestore.sql.depth import deep
from tablestore.sql.duckdb.transpile import WITH_PREFIX
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.query.tablereferences import find_references

# Results are read later than they were planned, but not by thousands.
_MOST_PLANNED = 2000
_VIEW = re.compile(r"__tablestore_[0-9a-f]{32}")
_SETUP = re.compile(
    r"""SET\ "\w+"\ =\ \$1 | RESET\ "\w+" | SET\ TIME\ ZONE\ '[^']*' | SELECT\ 1 | SELECT\ name\ FROM\ duckdb_settings\(\)
    | SELECT\ DISTINCT\ function_name\ FROM\ duckdb_functions\(\)\ WHERE\ function_type\ IN\ \([a-z', ]+\)\ AND\ internal
    | SHOW\ TABLES | SELECT\ (current_setting\('\w+'\)\ AS\ \w+(,\ )?)+
    | DROP\ (VIEW|TABLE)\ IF\ EXISTS\ "__tablestore_VIEW"
    | SELECT\ table_name\ FROM\ duckdb_tables\(\)\ UNION\ SELECT\ view_name\ FROM\ duckdb_views\(\)\ WHERE\ NOT\ internal
    | \s*SELECT\ database_name.+FROM\ duckdb_tables\(\)\ WHERE\ NOT\ internal
      \s*UNION\ ALL\ SELECT\ database_name.+FROM\ duckdb_views\(\)\ WHERE\ NOT\ internal\s*""",
    re.VERBOSE,
)
_MADE = re.compile(r'CREATE OR REPLACE TEMPORARY (?:VIEW|TABLE) "__tablestore_VIEW" AS ')
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "explode", "generate_subscripts"})
_OWN_NAME = re.compile(rf"__tablestore_VIEW|{WITH_PREFIX}_*\d+")
_REACHING = re.compile(
    r"^(?:read_.*|.*_scan|scan_.*|glob|sniff_.*|query|query_table|duckdb_.*|pragma_.*|parquet_.*|getenv|current_setting|getvariable"
    r"|set_config|write_.*|which_secret|current_query|nextval|currval)$"
)
# Whether its clocks are set back decides what a cast to a TIMESTAMP is.
_TIME_ZONE = exp.Anonymous(this="CURRENT_SETTING", expressions=[exp.Literal.string("TimeZone")])
# Views of DataFrames, and in Spark Connect what stands for one.
_FRAME = re.compile(r"\b_pyspark_[0-9a-f]{32}\b|\{m\d+\}")
_SPARK_SETUP = re.compile(
    r"""SELECT\ id\ FROM\ VALUES\ \(1L\)\ AS\ one\ \(id\) | SELECT\ reflect\('java\.time\.ZoneId',\ 'systemDefault'\)
    | DROP\ TEMPORARY\ FUNCTION\ IF\ EXISTS\ \w+""",
    re.VERBOSE,
)
# Where a text of an unrestricted user's goes to Spark that is no statement of tablestore's.
_SPARK_OWN = ("pyspark_tablestore.engine", "execute")


class Received:
    """The statements that engines have received, and what is wrong with them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.watches_spark = False
        self.planned: dict[str, None] = {}
        # What bound queries were written as, with the tables of the engine's own that they list.
        self.bound: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.violations: list[str] = []
        self.statements = 0

    def plan(self, sql: str) -> str:
        """Remember SQL that was written for a relation."""
        # What is planned anew is the newest again.
        self.planned.pop(sql, None)
        self.planned[sql] = None
        while len(self.planned) > _MOST_PLANNED:
            del self.planned[next(iter(self.planned))]
        return sql

    def duckdb(self, text: str, connection: Any) -> None:
        """A statement on a connection of DuckDB's."""
        self.statements += 1
        rest = text
        for sql in self.planned:
            rest = rest.replace(sql, "SELECT 1")
        rest = _VIEW.sub("__tablestore_VIEW", rest)
        wrong = unplanned(rest)
        if wrong is not None and not (wrong[1] and wrong[1] in _own_tables(connection)):
            self.violations.append(f"DuckDB received {wrong[0]} in: {text[:2000]}")

    def bind(self, text: str, query: BoundQuery) -> str:
        """Remember the text that a bound query was written as."""
        self.bound[text] = query.engine_tables
        while len(self.bound) > _MOST_PLANNED:
            del self.bound[next(iter(self.bound))]
        return text

    def spark(self, text: str, caller: tuple[str, str]) -> None:
        """A text for Spark's session, and the module and function that sent it."""
        self.statements += 1
        if caller == _SPARK_OWN or _SPARK_SETUP.fullmatch(text):
            return
        listed = self.bound.get(text)
        if listed is None:
            wrong: str | None = "what is no bound query"
        else:
            plain = text.replace("{{", "{").replace("}}", "}") if "{m0}" in text else text
            wrong = unlisted(_FRAME.sub("_pyspark_VIEW", plain), frozenset(listed))
        if wrong is not None:
            self.violations.append(f"Spark received {wrong} from {'.'.join(caller)} in: {text[:2000]}")

    def watch_spark(self) -> None:
        """Record what tablestore sends to sessions of Spark's from now on. Imports pyspark."""
        if not self.watches_spark:
            self.watches_spark = True
            _record_spark(self.patch, self)

    def check(self) -> None:
        """Raise AssertionError for what was wrong since the last time, and forget it."""
        wrong, self.violations = self.violations, []
        assert not wrong, "\n".join(wrong)


@lru_cache(maxsize=4096)
def unplanned(text: str) -> tuple[str, str | None] | None:
    """What of a statement for DuckDB is no query over views of tablestore's; and its name, if the connection may have the table."""
    if _SETUP.fullmatch(text):
        return None
    query = _MADE.sub("", text, count=1)
    try:
        with deep():
            trees = [tree for tree in sqlglot.parse(query, read=DuckDB) if tree is not None]
    except SqlglotError as error:
        return f"what cannot be parsed ({error})", None
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Values, exp.Summarize, exp.Pivot)):
        return "what is not one query", None
    (tree,) = trees
    for node in tree.find_all(exp.DML, exp.Command, exp.Create, exp.Drop, exp.Copy, exp.Attach, exp.Set, exp.Pragma):
        return f"{type(node).__name__} in a query", None
    for call in tree.find_all(exp.Func):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
        reaches = _REACHING.match(name) and call != _TIME_ZONE
        if reaches or (isinstance(call.parent, exp.Table) and name not in _TABLE_FUNCTIONS):
            return f"the call {name}", None
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue
        if not isinstance(table.this, exp.Identifier):
            return f"the table {table}", None
        # Whatever a WITH binds where, DuckDB knows no file and no table of its own by such a name.
        if table.db or not _OWN_NAME.fullmatch(table.name):
            return f"the table {table}", table.name.casefold()
    return None


@lru_cache(maxsize=4096)
def unlisted(text: str, listed: frozenset[tuple[str, ...]]) -> str | None:
    """What of a bound query's text for Spark is no query over views of DataFrames and the tables that it lists."""
    known = {("_pyspark_view",), *(tuple(part.casefold() for part in name) for name in listed)}
    try:
        with deep():
            trees = [tree for tree in sqlglot.parse(text, read=Spark4) if tree is not None]
    except SqlglotError:
        return _unlisted_by_tokens(text, known)
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Values)):
        return "what is not one query"
    (tree,) = trees
    for hint in list(tree.find_all(exp.Hint)):
        # What a hint names is a table of the query.
        hint.pop()
    for node in tree.find_all(exp.DML, exp.Command, exp.Create, exp.Drop, exp.Copy, exp.Attach, exp.Set, exp.QueryTransform):
        return f"{type(node).__name__} in a query"
    for table in tables_of_others(tree, {}):
        if tuple(part.name.casefold() for part in table.parts) not in known:
            return f"the table {table.sql(dialect=Spark4)}"
    return None


def _unlisted_by_tokens(text: str, known: set[tuple[str, ...]]) -> str | None:
    """As :func:`unlisted`, of syntax that sqlglot does not know: by the words around the names of tables."""
    try:
        references = find_references(text)
    except TablestoreError as error:
        return f"what cannot be read ({error})"
    names = (reference.path.parts for reference in references)
    return next((f"the table {'.'.join(name)}" for name in names if tuple(map(str.casefold, name)) not in known), None)


def _own_tables(connection: Any) -> set[str]:
    """The tables and views that a connection has: those of a program that handed it in."""
    listed = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
    return {name.casefold() for (name,) in connection.sql(listed).fetchall()}


class _Connection:
    """A connection of DuckDB's whose statements are recorded."""

    def __init__(self, connection: Any, received: Received) -> None:
        self._connection, self._received = connection, received

    def sql(self, text: str, *arguments: Any, **options: Any) -> Any:
        self._received.duckdb(text, self._connection)
        return self._connection.sql(text, *arguments, **options)

    def execute(self, statement: Any, *arguments: Any) -> Any:
        self._received.duckdb(statement if isinstance(statement, str) else statement.query, self._connection)
        return self._connection.execute(statement, *arguments)

    def from_arrow(self, rows: Any) -> Any:
        relation = self._connection.from_arrow(rows)
        self._received.plan(relation.sql_query())
        return relation

    def cursor(self) -> "_Connection":
        return _Connection(self._connection.cursor(), self._received)

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@contextmanager
def recording(patch: pytest.MonkeyPatch) -> Iterator[Received]:
    """What engines that are opened meanwhile receive."""
    received = Received(patch)
    if find_spec("duckdb") is not None:
        _record_duckdb(patch, received)
    yield received


def _record_duckdb(patch: pytest.MonkeyPatch, received: Received) -> None:
    from tablestore_duckdb import prepared, scans
    from tablestore_duckdb.database import Database
    from tablestore_duckdb.engine import DuckDBEngine

    made, opened, placed = DuckDBEngine.__init__, Database.open, prepared._Preparing._placed

    def make(self: Any, connection: Any = None) -> None:
        made(self, None if connection is None else _Connection(connection, received))  # type: ignore[arg-type]

    def place(self: Any, relation: Any, conditions: Any) -> Any:
        sql, columns = placed(self, relation, conditions)
        if type(relation).__name__ == "NativeRelation":
            for piece in sql:
                if isinstance(piece, str):
                    received.plan(piece.removeprefix("(").removesuffix(")"))
        return sql, columns

    patch.setattr(DuckDBEngine, "__init__", make)
    patch.setattr(Database, "open", lambda self: _Connection(opened(self), received))
    patch.setattr(prepared._Preparing, "_placed", place)
    for module, name in ((scans, "native_scan"), (prepared, "connector_sql")):
        patch.setattr(module, name, _planning(getattr(module, name), received))


def _planning(write: Callable[..., Any], received: Received) -> Callable[..., Any]:
    def written(*arguments: Any, **options: Any) -> Any:
        sql = write(*arguments, **options)
        # In pieces, views stand between them, and each is a statement's own.
        pieces = (sql,) if isinstance(sql, str) else sql
        if len(pieces) == 1:
            received.plan(pieces[0])
        return sql

    return written


def _record_spark(patch: pytest.MonkeyPatch, received: Received) -> None:
    from pyspark.sql import SparkSession

    edited, sent = BoundQuery.edited, SparkSession.sql

    def edit(self: BoundQuery, *arguments: Any) -> str:
        return received.bind(edited(self, *arguments), self)

    def send(self: Any, sqlQuery: str, *arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1)
        # Code that a test runs as text has no module.
        module = caller.f_globals.get("__name__", "")
        if module.partition(".")[0] == "pyspark_tablestore":
            received.spark(sqlQuery, (module, caller.f_code.co_name))
        return sent(self, sqlQuery, *arguments, **options)

    patch.setattr(BoundQuery, "edited", edit)
    patch.setattr(SparkSession, "sql", send)
