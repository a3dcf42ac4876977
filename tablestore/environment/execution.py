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

# The kind of a statement: the function that runs it.
STATEMENT_FUNCTIONS: Mapping[str, str] = {
    "Query": "tablestore.environment.rows.queries:run_query",
    "StreamingQuery": "tablestore.environment.streams.selecting:select_stream",
    "Insert": "tablestore.environment.pipelines.inserts:insert",
    "ExecuteStatementSet": "tablestore.environment.pipelines.inserts:insert_all",
    "Delete": "tablestore.environment.rows.change:change",
    "Update": "tablestore.environment.rows.change:change",
    "Merge": "tablestore.environment.rows.change:change",
    "CreateTable": "tablestore.environment.definition.create:create_table",
    "CreateTableAs": "tablestore.environment.pipelines.creation:create_as",
    "ReplaceTable": "tablestore.environment.pipelines.creation:replace_table",
    "CreateView": "tablestore.environment.definition.views:create_view",
    "CreateFunction": "tablestore.environment.definition.functions:create_function",
    "Drop": "tablestore.environment.definition.drop:drop",
    "AlterTable": "tablestore.environment.definition.alter:alter_table",
    "AlterView": "tablestore.environment.definition.views:alter_view",
    "AlterFunction": "tablestore.environment.definition.functions:alter_function",
    "DescribeFunction": "tablestore.environment.definition.functions:describe_function",
    "RestoreTable": "tablestore.environment.definition.restoring:restore_table",
    "AnalyzeTable": "tablestore.environment.definition.analyzing:analyze_table",
    "TruncateTable": "tablestore.environment.definition.alter:truncate_table",
    "CreateDatabase": "tablestore.environment.definition.databases:create_database",
    "DropDatabase": "tablestore.environment.definition.databases:drop_database",
    "CreateCatalog": "tablestore.environment.definition.databases:create_catalog",
    "DropCatalog": "tablestore.environment.definition.databases:drop_catalog",
    "UseNames": "tablestore.environment.definition.databases:use",
    "Explain": "tablestore.environment.inspection.explaining:explain",
    "Show": "tablestore.environment.inspection.show:show",
    "Describe": "tablestore.environment.inspection.describe:describe",
    "DescribeHistory": "tablestore.environment.inspection.history:describe_history",
    "RefreshTable": "tablestore.environment.session.statements:refresh_table",
    "SetSessionOption": "tablestore.environment.session.statements:set_option",
    "ResetSessionOption": "tablestore.environment.session.statements:reset_option",
    "EngineStatement": "tablestore.environment.session.statements:by_engine",
    "CallProcedure": "tablestore.environment.procedures.call:call",
}
# Statements whose text may have parameters.
_WITH_PARAMETERS = frozenset(
    ("Query", "StreamingQuery", "Insert", "ExecuteStatementSet", "Delete", "Update", "Merge", "CreateTableAs", "Explain")
)
# Kinds of errors that are about an expression somewhere in the statement.
_OF_QUERIES = ("query", "engine", "cancelled")


def execute(
    session: Session,
    statement: "Statement",
    source: Source,
    parameters: Parameters = (),
    functions: Mapping[str, str] = STATEMENT_FUNCTIONS,
) -> Result:
    """Runs a statement by the function that its kind has in ``functions``. Raises TablestoreError, with the place in the source
    where one is known."""
    session.check_open()
    begun_s = session.clock.steady_s()
    kind = _kind_of(session, statement)
    try:
        if session.restrictions is not None:
            session.restrictions.check(statement)
        if kind not in functions:
            raise UnsupportedError(f"{kind} is not supported", kind="unsupported")
        result = imported(functions[kind])(session, statement, source, *((parameters,) if kind in _WITH_PARAMETERS else ()))
    except TablestoreError as error:
        source.guess(error)
        if error.kind not in _OF_QUERIES:
            source.place(error, _object_of(statement))
        raise
    assert isinstance(result, Result)
    return result.noting(*hint_notices(session, statement, source), seconds=session.clock.steady_s() - begun_s)


def _kind_of(session: Session, statement: "Statement") -> str:
    """The name of its class. CREATE TABLE with a query, what replaces a table, and a query without end are kinds of their own: only
    these load what writes rows, or follows tables."""
    name = type(statement).__name__
    if name == "Query" and session.settings.is_streaming:
        return "StreamingQuery"
    if name == "CreateTable":
        from tablestore.sql.statements.definition import CreateTable

        if isinstance(statement, CreateTable) and not statement.temporary:
            if statement.query is not None:
                return "CreateTableAs"
            if statement.replace:
                return "ReplaceTable"
    return name


def _object_of(statement: "Statement") -> Span:
    """The name of what a statement is about: the table, view, database or procedure."""
    names = (getattr(statement, attribute, None) for attribute in ("path", "target", "procedure"))
    return next((name.span for name in names if isinstance(name, Path)), NOWHERE)
