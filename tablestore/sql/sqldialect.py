"""Names the dialects of SQL that queries are written in."""

from enum import StrEnum

SQL_DIALECT = "table.sql-dialect"
"""The setting of a session that names one."""


class SqlDialect(StrEnum):
    """The words that a query is in. Statements around it are tablestore's own in any of them. Stored, never renamed."""

    SPARK = "spark"
    DUCKDB = "duckdb"
