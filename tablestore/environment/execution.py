"""Runs a statement: one function for each kind of statement, and a place for each error that has none.

What runs a kind of statement is imported when the first of its kind runs: a query loads nothing of what defines or describes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tablestore.environment.result import Result
from tablestore.environment.rows.hintnotices import hint_notices
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.lazy import imported
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.source import NOWHERE, Path, Span

if TYPE_CHECKING:
    from tablestore.sql.statements.anystatement import Statement


def execute(session: Session, statement: "Statement", source: Source, parameters: Parameters = ()) -> Result:
    """Runs a statement. Raises TablestoreError, with the place in the source where one is known."""
    session.check_open()
    kind = type(statement).__name__
    try:
        if session.restrictions is not None:
            session.restrictions.check(statement)
        if kind in _WITH_PARAMETERS:
            result = imported(_HERE + _WITH_PARAMETERS[kind])(session, statement, source, parameters)
        elif kind in _WITHOUT:
            result = imported(_HERE + _WITHOUT[kind])(session, statement, source)
        else:
            raise UnsupportedError(f"{kind} is not supported", kind="unsupported")
    except TablestoreError as error:
        source.guess(error)
        if error.kind not in _OF_QUERIES:
            source.place(error, _object_of(statement))
        raise
    assert isinstance(result, Result)
    return result.noting(*hint_notices(session, statement))


def _object_of(statement: "Statement") -> Span:
    """The name of what a statement is about: the table, view, database or procedure."""
    names = (getattr(statement, attribute, None) for attribute in ("path", "target", "procedure"))
    return next((name.span for name in names if isinstance(name, Path)), NOWHERE)


# Kinds of errors that are about an expression somewhere in the statement.
_OF_QUERIES = ("query", "engine", "cancelled")
_HERE = "tablestore.environment."
# The class of a statement: the module beside this one, and the function in it.
_WITH_PARAMETERS: Mapping[str, str] = {
    "Query": "rows.queries:run_query",
    "Insert": "pipelines.inserts:insert",
    "StatementSet": "pipelines.inserts:insert_all",
    "Delete": "rows.change:change",
    "Update": "rows.change:change",
    "Merge": "rows.change:change",
    "CreateTable": "pipelines.newtable:create_table",
    "Explain": "inspection.explaining:explain",
}
_WITHOUT: Mapping[str, str] = {
    "CreateView": "definition.views:create_view",
    "CreateFunction": "definition.functions:create_function",
    "Drop": "definition.lifetime:drop",
    "AlterTable": "definition.alter:alter_table",
    "TruncateTable": "definition.alter:truncate_table",
    "CreateMaterializedTable": "materialized.declaring:create_materialized",
    "AlterMaterializedTable": "materialized.lifecycle:alter_materialized",
    "DropMaterializedTable": "materialized.lifecycle:drop_materialized",
    "CreateDatabase": "definition.databases:create_database",
    "DropDatabase": "materialized.lifecycle:drop_database",
    "CreateCatalog": "definition.databases:create_catalog",
    "DropCatalog": "definition.databases:drop_catalog",
    "Use": "definition.databases:use",
    "Show": "inspection.show:show",
    "Describe": "inspection.describe:describe",
    "SetOption": "session.statements:set_option",
    "ResetOption": "session.statements:reset_option",
    "EngineStatement": "session.statements:by_engine",
    "Call": "procedures.call:call",
}
