"""Runs EXPLAIN of a statement: how it would run, and what it reads of each managed table after pruning."""

from tablestore.environment.pipelines.creation import plan_creation
from tablestore.environment.pipelines.inserts import plan_one, plan_set
from tablestore.environment.result import Result, one_text
from tablestore.environment.rows.change import plan_change
from tablestore.environment.rows.queries import explain_query, explained
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import UnsupportedError
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.anystatement import Explain
from tablestore.sql.statements.definition import CreateTable
from tablestore.sql.statements.rows import Delete, ExecuteStatementSet, Insert, Merge, Query, Update


def explain(session: Session, statement: Explain, source: Source, parameters: Parameters) -> Result:
    """Runs EXPLAIN. Nothing is made or written. Raises UnsupportedError for a statement that neither reads nor changes rows."""
    return one_text("plan", _plan(session, statement, source, parameters))


def _plan(session: Session, statement: Explain, source: Source, parameters: Parameters) -> str:
    inner = statement.statement
    match inner:
        case Query():
            return explain_query(session, inner.query, source, parameters)
        case Insert():
            return plan_one(session, inner, source, parameters).explain()
        case ExecuteStatementSet():
            return plan_set(session, inner, source, parameters).explain()
        case CreateTable(query=query) if query is not None and not inner.temporary:
            return plan_creation(session, inner, source, parameters).explain()
        case Delete() | Update() | Merge():
            table = session.table(inner.target, type(inner).__name__.upper(), source)
            bound, _ = plan_change(session, inner, source, parameters, table, table.context.snapshots.latest())
            return explained(session, bound)
    raise UnsupportedError(
        "EXPLAIN is for queries, INSERT, STATEMENT SET, CREATE TABLE … AS, CREATE [OR ALTER] MATERIALIZED TABLE, DELETE, UPDATE "
        "and MERGE",
        kind="unsupported",
    )
