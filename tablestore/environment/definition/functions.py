"""Runs CREATE and DROP of temporary functions. There are no permanent ones but those of the engine."""

import re

from tablestore.environment.engine import Function
from tablestore.environment.result import Result, done
from tablestore.environment.session.callables import function_of, named_callable
from tablestore.environment.session.functions import FunctionKey, system_key, written_key
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.sql.query.functions import FUNCTION_PREFIX
from tablestore.sql.statements.definition import CreateFunction, Drop

PYTHON = "python"


def create_function(session: Session, statement: CreateFunction, source: Source) -> Result:
    """Runs CREATE TEMPORARY [SYSTEM] FUNCTION. Raises InvalidInputError, UnsupportedError, AlreadyExistsError."""
    with placing(source, statement.path.span):
        if not statement.temporary:
            raise UnsupportedError("permanent functions are not supported: CREATE TEMPORARY FUNCTION", kind="unsupported")
        if statement.language not in (None, PYTHON):
            raise UnsupportedError(f"expected LANGUAGE PYTHON, found {statement.language}", kind="unsupported")
        key = system_key(statement.path) if statement.system else written_key(statement.path, session.place)
        if statement.if_not_exists and session.functions.has(key):
            return done()
        function = function_of(key.name, named_callable(statement.class_name))
        add_function(session, key, function, replace=statement.replace)
    return done()


def add_function(session: Session, key: FunctionKey, function: Function, *, replace: bool = False) -> None:
    """Registers a function, with the engine too. Raises AlreadyExistsError, and what the engine says of it."""
    word = re.sub(r"\W", "_", key.name, flags=re.ASCII)[:60]
    called = f"{FUNCTION_PREFIX}{session.functions.new_number()}_{word}".lower()
    if session.functions.has(key) and replace and session.engine is not None:
        session.engine.register_function(called, function)
        drop_temporary_function(session, key)
    elif not session.functions.has(key) and session.engine is not None:
        session.engine.register_function(called, function)
    session.functions.add(key, called, replace=replace)


def drop_temporary_function(session: Session, key: FunctionKey) -> bool:
    """Forgets a temporary function; true if there was one."""
    called = session.functions.drop(key)
    if called is not None and session.engine is not None:
        session.engine.drop_function(called)
    return called is not None


def drop_function(session: Session, statement: Drop, source: Source) -> Result:
    """Runs DROP [TEMPORARY [SYSTEM]] FUNCTION. Raises NotFoundError, InvalidInputError."""
    with placing(source, statement.path.span):
        key = system_key(statement.path) if statement.system else written_key(statement.path, session.place)
        if not statement.temporary:
            session.functions.check_permanent(statement.path, session.place)
        elif drop_temporary_function(session, key):
            return done()
        if not statement.if_exists:
            raise NotFoundError(f"Function with identifier '{key}' does not exist.", kind="no-such-function")
    return done()
