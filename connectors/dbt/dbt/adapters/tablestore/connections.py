"""Manages the connections of dbt's threads: each is an environment of tablestore, taken from a pool."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt.adapters.tablestore.drivercursor import TablestoreCursor, TablestoreHandle
from dbt.adapters.tablestore.environments import EnvironmentPool
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from tablestore.errors import TablestoreError

logger = AdapterLogger("tablestore")


class TablestoreConnectionManager(SQLConnectionManager):
    """Opens connections, runs statements and says what they did."""

    TYPE = "tablestore"

    _pools: list[EnvironmentPool] = []  # noqa: RUF012, `open` is a class method and may be called for several profiles

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turns errors of tablestore into those that dbt reports with the model."""
        try:
            yield
        except TablestoreError as error:
            logger.debug(f"tablestore: {error}")
            raise DbtDatabaseError(str(error)) from error
        except DbtRuntimeError:
            raise
        except Exception as error:
            logger.debug(f"tablestore: {error}")
            raise DbtRuntimeError(str(error)) from error

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Takes an environment for the thread. Raises FailedToConnectError."""
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            connection.handle = TablestoreHandle(cls._pool_of(connection.credentials))
        except TablestoreError as error:
            connection.handle, connection.state = None, ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def _pool_of(cls, credentials: Any) -> EnvironmentPool:
        for pool in cls._pools:
            if pool.credentials == credentials:
                return pool
        cls._pools.append(EnvironmentPool(credentials))
        return cls._pools[-1]

    def cleanup_all(self) -> None:
        """Closes the connections of all threads, and their environments."""
        super().cleanup_all()
        self._pool_of(self.profile.credentials).close()

    def cancel(self, connection: Connection) -> None:
        """Ends the statement of a connection."""
        connection.handle.cancel()

    @classmethod
    def get_response(cls, cursor: TablestoreCursor) -> AdapterResponse:
        """The answer about a statement that has landed: its snapshot, and how many rows it changed if that was counted."""
        snapshot = cursor.snapshot
        if snapshot is None:
            return AdapterResponse(_message="OK")
        return AdapterResponse(
            _message=f"OK snapshot {snapshot.id}",
            code=str(snapshot.operation or snapshot.commit_kind),
            rows_affected=snapshot.counts.rows_affected,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """The name of a type: a cursor describes columns by it."""
        return str(type_code)

    def begin(self) -> None:
        """Leaves everything: there are no transactions."""

    def commit(self) -> None:
        """Leaves everything: there are no transactions."""

    def add_begin_query(self) -> None:
        """Leaves everything: there are no transactions."""

    def add_commit_query(self) -> None:
        """Leaves everything: there are no transactions."""

    def clear_transaction(self) -> None:
        """Leaves everything: there are no transactions."""

    def rollback_if_open(self) -> None:
        """Leaves everything: there are no transactions."""
