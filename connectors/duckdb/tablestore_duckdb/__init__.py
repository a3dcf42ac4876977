"""DuckDB as an engine of queries over managed tables: embedded, without Java, for what one machine can do.

Found by the entry point ``tablestore.query_engines``. DuckDB itself is imported when the engine is opened.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablestore_duckdb.engine import DuckDBEngine


def open_engine(session: Any = None) -> "DuckDBEngine":
    """The engine on ``session``, a DuckDB connection of yours, which stays open; None: on a database in memory of its own.

    Raises UnsupportedError if DuckDB is not installed.
    """
    try:
        import duckdb  # noqa: F401
    except ImportError as error:
        from tablestore.errors import UnsupportedError

        raise UnsupportedError(
            f"the engine duckdb needs its package, which does not load ({error}): pip install 'managed-tablestore[duckdb]'",
            kind="no-engine",
        ) from error
    from tablestore_duckdb.engine import DuckDBEngine

    return DuckDBEngine(session)
