"""Spark's SQL in DuckDB's words."""

from tablestore.errors import InvalidInputError, UnsupportedError


def to_duckdb(sql: str) -> str:
    """A query of Spark's dialect in DuckDB's. Raises InvalidInputError, UnsupportedError."""
    import sqlglot
    from sqlglot.errors import ErrorLevel, SqlglotError
    from sqlglot.errors import UnsupportedError as NotInDuckDB

    try:
        (written,) = sqlglot.transpile(sql, read="spark", write="duckdb", unsupported_level=ErrorLevel.RAISE)
    except NotInDuckDB as error:
        raise UnsupportedError(f"DuckDB cannot run the query: {error}; run it on the engine spark", kind="engine") from error
    except SqlglotError as error:
        raise InvalidInputError(f"the query cannot be parsed: {error}", kind="sql-syntax") from error
    return written
