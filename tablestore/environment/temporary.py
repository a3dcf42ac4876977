"""Offers temporary objects in Python: what CREATE TEMPORARY …, DROP TEMPORARY … and SHOW TEMPORARY … do in SQL.

A path is a text of one to three parts, as in a query; what is missing is that of the current catalog and database. Temporary
objects hide permanent ones of their name, may lie in catalogs and databases that do not exist, and end with the environment.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablestore.environment.execution import execute
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.query import Query
from tablestore.environment.session.functions import system_key, written_key
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError
from tablestore.names import Names, names_of
from tablestore.sql.parse.statement import parse_path, parse_statement
from tablestore.sql.query.parameters import with_literals
from tablestore.sql.source import Fragment, Span
from tablestore.sql.statements import rows
from tablestore.types.arrowtypes import fields_from_arrow

if TYPE_CHECKING:
    from tablestore.environment.session.callables import TypeSource


class TemporaryObjects:
    """The part of a TableEnvironment that is about temporary objects."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- views

    def create_temporary_view(self, path: str, what: Any, *, replace: bool = False) -> None:
        """Names a query or rows: SQL text, a Query, a scan, a DataFrame of the engine's, or anything that Arrow can see.

        A query is checked now and run whenever the view is read; the values of its parameters stay with it. Other rows are read
        once, but for those of a scan or of the engine. Raises InvalidInputError, AlreadyExistsError unless ``replace``.
        """
        whole = self._path(path)
        if isinstance(what, str | Query):
            self._create_view(path, what, replace)
        else:
            from tablestore.environment.definition.views import add_rows_view

            add_rows_view(self._session, whole, what, replace=replace)

    def drop_temporary_view(self, path: str) -> bool:
        """Drops a temporary view; true if there was one. Nothing permanent is touched."""
        from tablestore.environment.definition.drop import drop_temporary_object

        return drop_temporary_object(self._session, self._path(path), "view")

    def list_temporary_views(self) -> tuple[str, ...]:
        """The temporary views of the current database, ascending."""
        return self._listed("SHOW TEMPORARY VIEWS")

    # -- tables

    def create_temporary_table(
        self,
        path: str,
        options: Mapping[str, str] | None = None,
        schema: pa.Schema | None = None,
        *,
        primary_key: Names = (),
        partition_by: Names = (),
        comment: str | None = None,
        ignore_if_exists: bool = False,
    ) -> None:
        """A table from properties alone, which are resolved when it is read or written; without ``connector`` a managed one.

        The storage of a managed temporary table outlives the environment, until it is dropped. Raises InvalidInputError,
        AlreadyExistsError.
        """
        from tablestore.environment.definition.create import add_temporary_table
        from tablestore.environment.definition.tabledefinition import TableDefinition

        definition = TableDefinition(
            fields=() if schema is None else fields_from_arrow(schema)[0],
            primary_key=names_of(primary_key),
            partition_by=names_of(partition_by),
            comment=comment,
            options=dict(options or {}),
        )
        add_temporary_table(self._session, self._path(path), definition, ignore_if_exists=ignore_if_exists)

    def drop_temporary_table(self, path: str) -> bool:
        """Drops a temporary table, a managed one with its storage; true if there was one. Nothing permanent is touched."""
        from tablestore.environment.definition.drop import drop_temporary_object

        return drop_temporary_object(self._session, self._path(path), "table")

    def list_temporary_tables(self) -> tuple[str, ...]:
        """The temporary tables of the current database, ascending."""
        return self._listed("SHOW TEMPORARY TABLES")

    # -- functions

    def create_temporary_function(
        self,
        path: str,
        function: Any,
        *,
        arguments: "Sequence[TypeSource] | None" = None,
        returns: "TypeSource | None" = None,
        replace: bool = False,
    ) -> None:
        """Names a function for queries: a Python function, a class, an object, or an object of the engine's (a Spark UDF or UDTF).

        A path of one part makes a system function, one of two or three a function of a catalog. Types are Arrow's or SQL text; type
        hints stand for them. A function whose hints are pyarrow arrays gets columns. Raises InvalidInputError, AlreadyExistsError.
        """
        from tablestore.environment.definition.functions import add_function
        from tablestore.environment.session.callables import function_of

        written = parse_path(path)
        key = written_key(written, self._session.place)
        typed_function = function_of(key.name, function, arguments=arguments, returns=returns)
        add_function(self._session, key, typed_function, replace=replace)

    def create_temporary_system_function(
        self,
        name: str,
        function: Any,
        *,
        arguments: "Sequence[TypeSource] | None" = None,
        returns: "TypeSource | None" = None,
        replace: bool = False,
    ) -> None:
        """Names a function as ``create_temporary_function`` does with a name of one part, which comes before the engine's."""
        from tablestore.environment.definition.functions import add_function
        from tablestore.environment.session.callables import function_of

        key = system_key(parse_path(name))
        typed_function = function_of(key.name, function, arguments=arguments, returns=returns)
        add_function(self._session, key, typed_function, replace=replace)

    def drop_temporary_function(self, path: str) -> bool:
        """Drops a temporary function; true if there was one."""
        from tablestore.environment.definition.functions import drop_temporary_function

        return drop_temporary_function(self._session, written_key(parse_path(path), self._session.place))

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drops a temporary system function; true if there was one."""
        from tablestore.environment.definition.functions import drop_temporary_function

        return drop_temporary_function(self._session, system_key(parse_path(name)))

    def list_temporary_functions(self) -> tuple[str, ...]:
        """The temporary system functions, and those of the current database, ascending."""
        return self._listed("SHOW TEMPORARY FUNCTIONS")

    def _create_view(self, path: str, query: str | Query, replace: bool) -> None:
        from tablestore.sql.statements.definition import CreateView

        dialect = self._session.settings.dialect
        if isinstance(query, Query):
            dialect = query.query_text.fragment.dialect
            query = with_literals(query.text, query.parameters, dialect)
        statement = parse_statement(query, dialect=dialect)
        if not isinstance(statement, rows.Query):
            raise InvalidInputError("create_temporary_view: expected a query", kind="not-a-query")
        text = statement.query.text
        view = CreateView(path=parse_path(path), query=Fragment(text, Span(0, len(text)), dialect), temporary=True, replace=replace)
        execute(self._session, view, Source(text))

    def _path(self, path: str) -> ObjectPath:
        return self._session.expand(parse_path(path))

    def _listed(self, text: str) -> tuple[str, ...]:
        result = execute(self._session, parse_statement(text), Source())
        return tuple(result.to_arrow().column(0).to_pylist())
