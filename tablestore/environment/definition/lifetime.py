"""Runs CREATE TABLE and DROP for objects of this session (TEMPORARY), and for those of a catalog."""

from tablestore.environment.definition import create, functions, temporary
from tablestore.environment.definition.drop import drop as drop_permanent
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.sql.statements.definition import CreateTable, Drop


def create_table(session: Session, statement: CreateTable, source: Source) -> Result:
    """Runs CREATE [TEMPORARY] TABLE."""
    made = temporary.create_temporary_table if statement.temporary else create.create_table
    return made(session, statement, source)


def drop(session: Session, statement: Drop, source: Source) -> Result:
    """Runs DROP [TEMPORARY] TABLE, VIEW, FUNCTION."""
    if statement.what == "function":
        return functions.drop_function(session, statement, source)
    return (temporary.drop_temporary if statement.temporary else drop_permanent)(session, statement, source)
