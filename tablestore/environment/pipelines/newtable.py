"""Runs CREATE TABLE of columns, and of a query."""

from tablestore.environment.definition.lifetime import create_table as create_empty
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.definition import CreateTable


def create_table(session: Session, statement: CreateTable, source: Source, parameters: Parameters) -> Result:
    """Runs CREATE [TEMPORARY] TABLE …, and CREATE TABLE … AS."""
    if statement.query is None or statement.temporary:
        return create_empty(session, statement, source)
    from tablestore.environment.pipelines.creation import create_as

    return create_as(session, statement, source, parameters)
