"""Runs a statement: one function for each kind of statement, and a place for each error that has none."""

from collections.abc import Callable, Mapping
from typing import Any

from tablestore.environment.definition.alter import alter_table, truncate_table
from tablestore.environment.definition.create import create_table
from tablestore.environment.definition.databases import create_catalog, create_database, drop_catalog, drop_database, use
from tablestore.environment.definition.drop import drop
from tablestore.environment.definition.functions import create_function, drop_function
from tablestore.environment.definition.temporary import create_temporary_table, drop_temporary
from tablestore.environment.definition.views import create_view
from tablestore.environment.inspection.describe import describe
from tablestore.environment.inspection.show import OPTIONS_SCHEMA, show
from tablestore.environment.procedures.call import call
from tablestore.environment.result import Result, done, records
from tablestore.environment.rows.change import change
from tablestore.environment.rows.explain import explain
from tablestore.environment.rows.insert import insert, insert_all
from tablestore.environment.rows.queries import run_query
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.alter import AlterTable, TruncateTable
from tablestore.sql.statements.definition import (
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    DropCatalog,
    DropDatabase,
)
from tablestore.sql.statements.rows import Delete, Insert, Merge, Query, StatementSet, Update
from tablestore.sql.statements.session import Call, Describe, EngineStatement, Explain, ResetOption, SetOption, Show, Statement, Use

Run = Callable[[Session, Any, Source], Result]
RunRows = Callable[[Session, Any, Source, Parameters], Result]


def execute(session: Session, statement: Statement, source: Source, parameters: Parameters = ()) -> Result:
    """Run a statement. Raises TablestoreError, with the place in the source where one is known."""
    try:
        if (run_rows := _ROWS.get(type(statement))) is not None:
            return run_rows(session, statement, source, parameters)
        if (run := _RUN.get(type(statement))) is None:
            raise UnsupportedError(f"{type(statement).__name__} is not supported", kind="unsupported")
        return run(session, statement, source)
    except TablestoreError as error:
        source.guess(error)
        raise


def _set(session: Session, statement: SetOption, source: Source) -> Result:
    with placing(source, statement.span):
        if statement.value is None:
            value = session.settings.get(statement.key)
            return records(OPTIONS_SCHEMA, [{"key": statement.key, "value": value}])
        session.settings.set(statement.key, statement.value)
    return done()


def _reset(session: Session, statement: ResetOption, source: Source) -> Result:
    with placing(source, statement.span):
        session.settings.reset(statement.key)
    return done()


def _by_engine(session: Session, statement: EngineStatement, source: Source) -> Result:
    words = " ".join(statement.text.text.split()[:2]).upper()
    with placing(source, statement.text.span):
        rows = session.engine_for(words).execute(statement.text.text)
    return done() if rows is None else Result(rows)


def _create_table(session: Session, statement: CreateTable, source: Source) -> Result:
    create = create_temporary_table if statement.temporary else create_table
    return create(session, statement, source)


def _drop(session: Session, statement: Drop, source: Source) -> Result:
    if statement.what == "function":
        return drop_function(session, statement, source)
    return (drop_temporary if statement.temporary else drop)(session, statement, source)


def _query(session: Session, statement: Query, source: Source, parameters: Parameters) -> Result:
    return run_query(session, statement.query, source, parameters)


_ROWS: Mapping[type, RunRows] = {
    Query: _query,
    Insert: insert,
    StatementSet: insert_all,
    Delete: change,
    Update: change,
    Merge: change,
    Explain: explain,
}
_RUN: Mapping[type, Run] = {
    CreateTable: _create_table,
    CreateView: create_view,
    CreateFunction: create_function,
    Drop: _drop,
    AlterTable: alter_table,
    TruncateTable: truncate_table,
    CreateDatabase: create_database,
    DropDatabase: drop_database,
    CreateCatalog: create_catalog,
    DropCatalog: drop_catalog,
    Use: use,
    Show: show,
    Describe: describe,
    SetOption: _set,
    ResetOption: _reset,
    Call: call,
    EngineStatement: _by_engine,
}
