"""Spark's SQL in DuckDB's words."""

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.errors import UnsupportedError as NotInDuckDB
from sqlglot.parsers.spark import SparkParser

from tablestore.errors import InvalidInputError, UnsupportedError


class _Spark(Spark):
    """Spark 4: in its ANSI mode a CAST that fails is an error."""

    class Parser(SparkParser):
        STRICT_CAST = True


def to_duckdb(text: str) -> str:
    """A query of Spark's dialect in DuckDB's. Raises InvalidInputError, UnsupportedError."""
    try:
        tree = sqlglot.parse_one(text, read=_Spark)
        for hint in list(tree.find_all(exp.Hint)):
            hint.pop()
        return tree.sql(dialect=DuckDB, unsupported_level=ErrorLevel.RAISE)
    except NotInDuckDB as error:
        raise UnsupportedError(f"DuckDB cannot run the query: {error}; run it on the engine spark", kind="engine") from error
    except SqlglotError as error:
        raise InvalidInputError(f"the query cannot be parsed: {error}", kind="sql-syntax") from error
