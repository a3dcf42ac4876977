"""Watches the statements that engines receive: queries over planned relations, and the few that set a query up.

    a text -> what was planned is cut out of it -> its tree -> tables that are left, and calls that reach out

What was planned is the SQL that tablestore itself has written for a relation: a scan of the files of a managed table, the reader of
a declared connector, a relation that the program handed in. Anything of that kind in the rest came through a text.
"""

import re
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

from tablestore.sql.binding.binder import tables_of_others
from tablestore.sql.depth import deep

# Results are read later than they were planned, but not by thousands.
_MOST_PLANNED = 2000
_VIEW = re.compile(r"__tablestore_[0-9a-f]{32}")
_SETUP = re.compile(
    r"""SET\ "\w+"\ =\ \$1 | RESET\ "\w+" | SET\ TIME\ ZONE\ '[^']*' | SELECT\ 1 | SELECT\ name\ FROM\ duckdb_settings\(\)
    | SHOW\ TABLES | SELECT\ (current_setting\('\w+'\)\ AS\ \w+(,\ )?)+
    | DROP\ (VIEW|TABLE)\ IF\ EXISTS\ "__tablestore_VIEW"
    | \s*SELECT\ database_name.+FROM\ duckdb_tables\(\)\ WHERE\ NOT\ internal
      \s*UNION\ ALL\ SELECT\ database_name.+FROM\ duckdb_views\(\)\ WHERE\ NOT\ internal\s*""",
    re.VERBOSE,
)
_MADE = re.compile(r'CREATE OR REPLACE TEMPORARY (?:VIEW|TABLE) "__tablestore_VIEW" AS ')
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "explode", "generate_subscripts"})
_REACHING = re.compile(
    r"^(?:read_.*|.*_scan|scan_.*|glob|sniff_.*|query|query_table|duckdb_.*|pragma_.*|parquet_.*|getenv|current_setting|getvariable"
    r"|set_config|write_.*|which_secret|current_query|nextval|currval)$"
)


class Received:
    """The statements that engines have received, and what is wrong with them."""

    def __init__(self) -> None:
        self.planned: dict[str, None] = {}
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
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Values)):
        return "what is not one query", None
    (tree,) = trees
    for node in tree.find_all(exp.DML, exp.Command, exp.Create, exp.Drop, exp.Copy, exp.Attach, exp.Set, exp.Pragma):
        return f"{type(node).__name__} in a query", None
    for call in tree.find_all(exp.Func):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
        if _REACHING.match(name) or (isinstance(call.parent, exp.Table) and name not in _TABLE_FUNCTIONS):
            return f"the call {name}", None
    for table in tables_of_others(tree, {}):
        if not isinstance(table.this, exp.Identifier):
            return f"the table {table}", None
        if table.name != "__tablestore_VIEW":
            return f"the table {table}", table.name.casefold()
    return None


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
    received = Received()
    if find_spec("duckdb") is not None:
        _record_duckdb(patch, received)
    yield received


def _record_duckdb(patch: pytest.MonkeyPatch, received: Received) -> None:
    from tablestore_duckdb import prepared, scans
    from tablestore_duckdb.engine import DuckDBEngine

    made, opened, placed = DuckDBEngine.__init__, DuckDBEngine._own_connection, prepared._Preparing._placed

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
    patch.setattr(DuckDBEngine, "_own_connection", lambda self: _Connection(opened(self), received))
    patch.setattr(prepared._Preparing, "_placed", place)
    for module, name in ((scans, "native_scan"), (prepared, "connector_sql")):
        patch.setattr(module, name, _planning(getattr(module, name), received))


def _planning(write: Callable[..., str], received: Received) -> Callable[..., str]:
    def written(*arguments: Any, **options: Any) -> str:
        return received.plan(write(*arguments, **options))

    return written
