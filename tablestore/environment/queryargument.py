"""Reads a query that a call in Python takes as an argument: its text, where it stands, and the values of its parameters."""

from dataclasses import dataclass

from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError
from tablestore.names import check_flag
from tablestore.sql.parse.otherwords import Reach
from tablestore.sql.parse.statement import parse_path, parse_statement
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.source import Fragment, Path
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements import rows
from tablestore.sql.statements.rows import Insert


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryText:
    """A query that Python hands over. ``fragment`` is the query in the text of ``source``."""

    fragment: Fragment
    source: Source
    parameters: Parameters = ()


def query_text(
    text: object, parameters: Parameters = (), *, what: str, dialect: SqlDialect = SqlDialect.SPARK, reach: Reach = Reach.ALL
) -> QueryText:
    """The query that a text is. Raises InvalidInputError for another statement; ``what`` names the call, ``reach`` is what the
    session runs."""
    if not isinstance(text, str):
        type_name = type(text).__qualname__
        raise InvalidInputError(f"{what}: expected a Query or the SQL text of one, found {type_name}", kind="not-a-query")
    statement = parse_statement(text, dialect=dialect, reach=reach)
    if not isinstance(statement, rows.Query):
        raise InvalidInputError(f"{what}: expected a query; execute_sql runs other statements", kind="not-a-query")
    return QueryText(fragment=statement.query, source=Source(text), parameters=parameters)


def path_of(text: str) -> Path:
    """A path that Python hands over: it has no place in the text of the statement. Raises InvalidInputError."""
    return Path(parse_path(text).parts)


def insert_of(path: str, query: QueryText, *, overwrite: bool) -> Insert:
    """The INSERT of a query. Raises InvalidInputError for a wrong path, and for a text such as "false" as ``overwrite``."""
    check_flag(overwrite, "overwrite")
    return Insert(target=path_of(path), query=query.fragment, overwrite=overwrite)
