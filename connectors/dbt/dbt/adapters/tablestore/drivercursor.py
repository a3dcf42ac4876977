"""Adapts an environment of tablestore to what dbt expects of a database driver: a connection with cursors.

There are no transactions: each statement lands as one snapshot, or not at all.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from dbt.adapters.tablestore.environments import EnvironmentPool
from dbt.adapters.tablestore.typewords import sql_type

import tablestore as ts
from tablestore.environment.result import Result

_NO_TRANSACTION = ("BEGIN", "COMMIT", "ROLLBACK")


class TablestoreHandle:
    """A connection: an environment that belongs to one thread until it is closed."""

    def __init__(self, pool: EnvironmentPool) -> None:
        self._pool = pool
        self._environment: ts.TableEnvironment | None = pool.take()

    @property
    def environment(self) -> ts.TableEnvironment:
        """The environment. Raises RuntimeError once the connection is closed."""
        if self._environment is None:
            raise RuntimeError("the connection is closed")
        return self._environment

    def cursor(self) -> "TablestoreCursor":
        """A cursor that runs statements here."""
        return TablestoreCursor(self.environment)

    def commit(self) -> None:
        """Leaves everything: a statement has landed when it ends."""

    def rollback(self) -> None:
        """Leaves everything: what has landed stays."""

    def cancel(self) -> None:
        """Ends the statement that runs."""
        if self._environment is not None and (engine := self._environment.engine) is not None:
            engine.cancel()

    @property
    def closed(self) -> bool:
        """True once the environment went back."""
        return self._environment is None

    def close(self) -> None:
        """Hands the environment back."""
        environment, self._environment = self._environment, None
        if environment is not None:
            self._pool.give_back(environment)


class TablestoreCursor:
    """Runs statements, and gives the rows of the last one."""

    def __init__(self, environment: ts.TableEnvironment) -> None:
        self._environment = environment
        self._result: Result | None = None
        self._rows: list[tuple[Any, ...]] | None = None

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Runs the statements of a text. Raises TablestoreError."""
        self._rows, self._result = None, None
        if bindings:
            self._result = self._environment.execute_sql(sql, *bindings)
        elif sql.strip().upper() not in _NO_TRANSACTION:
            self._result = self._environment.execute_script(sql)
        if self._result is not None and self._result.kind != "rows":
            # What a statement reports of itself is no result of a query, but the job has to end before the next statement.
            self._result.to_arrow()

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and type of each column, as DB-API has it; the type is its text in SQL."""
        if self._result is None:
            return None
        return [(item.name, sql_type(item.type), None, None, None, None, True) for item in self._result.schema]

    @property
    def snapshot(self) -> Any:
        """The snapshot that the last statement published; None for a query."""
        return None if self._result is None else self._result.snapshot

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        rows, self._rows = self._fetched(), []
        return rows

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``size``."""
        rows = self._fetched()
        self._rows = rows[size:]
        return rows[:size]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None at the end."""
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        """Lets the rows go."""
        self._result, self._rows = None, []

    def _fetched(self) -> list[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = [] if self._result is None else rows_of(self._result.to_arrow())
        return self._rows


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as Python values, which is what dbt reads: results of tests and macros, which are small."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []
