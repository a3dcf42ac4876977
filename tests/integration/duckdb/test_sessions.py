"""What is cancelled while the connection of a query is closed ends nothing else."""

from typing import Any

import duckdb
from tablestore_duckdb.prepared import PreparedQuery
from tablestore_duckdb.sessions import Sessions

QUERY = PreparedQuery(sql=("SELECT 1",), text="SELECT 1")


class _CancelsBehindItsClose:
    """A connection that is cancelled once it is closed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sessions: Sessions) -> None:
        self._connection, self._sessions = connection, sessions
        self.error: Exception | None = None

    def close(self) -> None:
        self._connection.close()
        try:
            self._sessions.cancel()
        except duckdb.Error as error:
            self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_what_is_cancelled_beside_the_end_of_a_query_does_not_meet_its_closed_connection() -> None:
    with duckdb.connect() as connection:
        sessions = Sessions(None, connection)
        with sessions.run(QUERY), sessions.run(QUERY) as copy:
            assert copy.connection is not connection, "a second query runs on a copy"
            copy.connection = closing = _CancelsBehindItsClose(copy.connection, sessions)  # type: ignore[assignment]
    assert closing.error is None
