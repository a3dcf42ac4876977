"""Runs SET, RESET, REFRESH TABLE, and the statements that go to the engine as they are."""

from tablestore.environment.result import Result, done, pairs
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.sql.query.hints import check_no_options
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect
from tablestore.sql.statements.session import EngineStatement, RefreshTable, ResetSessionOption, SetSessionOption
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table


def set_option(session: Session, statement: SetSessionOption, source: Source) -> Result:
    """Runs ``SET key = value``, or gives the value of ``SET key``."""
    with placing(source, statement.span):
        if statement.value is None:
            return pairs([(statement.key, session.settings.get(statement.key))])
        if statement.key == SQL_DIALECT and statement.value in tuple(SqlDialect):
            session.check_dialect(SqlDialect(statement.value))
        session.settings.set(statement.key, statement.value)
    return done()


def reset_option(session: Session, statement: ResetSessionOption, source: Source) -> Result:
    """Runs ``RESET``, of one key or of all."""
    with placing(source, statement.span):
        session.settings.reset(statement.key)
    return done()


def refresh_table(session: Session, statement: RefreshTable, source: Source) -> Result:
    """Drops what is cached of a table; a view and a table with a connector are looked up anew each time as it is.

    What the engine itself has is its own business. Raises NotFoundError.
    """
    target = session.find(statement.path, source)
    if target is None:
        return by_engine(session, EngineStatement(text=statement.text), source)
    if isinstance(target, Table | SystemTable):
        session.catalogs.get(session.stored(session.expand(statement.path)).catalog).forget_cached()
    return done()


def by_engine(session: Session, statement: EngineStatement, source: Source) -> Result:
    """Runs a statement of the engine's own."""
    words = " ".join(statement.text.text.split()[:2]).upper()
    check_no_options(source.text, statement.text.span)
    with placing(source, statement.text.span):
        rows = session.engine_for(words).execute(statement.text.text)
    return done() if rows is None else Result(rows)
