"""Runs CREATE, ALTER, DESCRIBE and DROP of functions: those of catalogs, and temporary ones of the session."""

from tablestore.environment.engine import Function
from tablestore.environment.result import Result, done, pairs
from tablestore.environment.session.callables import function_of, named_callable
from tablestore.environment.session.functions import FunctionKey, catalog_key, system_key, written_key
from tablestore.environment.session.keptfunctions import ALLOWED_MODULES, PYTHON, KeptFunction, check_module
from tablestore.environment.session.session import Session, placing
from tablestore.environment.session.statements import by_engine
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.sql.query.functions import engine_name
from tablestore.sql.statements.alter import AlterFunction
from tablestore.sql.statements.definition import CreateFunction, Drop
from tablestore.sql.statements.session import DescribeFunction, EngineStatement
from tablestore.types.typestring import quote_identifier, type_to_sql


def create_function(session: Session, statement: CreateFunction, source: Source) -> Result:
    """Runs CREATE FUNCTION, of a catalog or (TEMPORARY) of the session. Raises InvalidInputError, UnsupportedError,
    AlreadyExistsError."""
    with placing(source, statement.path.span):
        _check_language(statement.language)
        if not statement.temporary:
            return _create_kept(session, statement, source)
        assert statement.class_name is not None, "an engine runs the others"
        key = system_key(statement.path) if statement.system else written_key(statement.path, session.place)
        if statement.if_not_exists and session.functions.has(key):
            return done()
        function = function_of(key.name, named_callable(statement.class_name))
        add_function(session, key, function, replace=statement.replace)
    return done()


def _create_kept(session: Session, statement: CreateFunction, source: Source) -> Result:
    path = session.expand(statement.path, source)
    if statement.if_not_exists and session.kept_functions.find(path) is not None:
        return done()
    if statement.class_name is not None:
        function = KeptFunction(path=path, class_name=statement.class_name)
        _check_python(session, function)
    else:
        assert statement.returns is not None and statement.body is not None, "the parser saw to it"
        names = [name.casefold() for name, _ in statement.parameters]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInputError(f"function {path.quoted} has the parameter {twice[0]!r:.80} twice", kind="function")
        function = KeptFunction(
            path=path,
            parameters=tuple((name, type_to_sql(of)) for name, of in statement.parameters),
            returns=type_to_sql(statement.returns),
            body=statement.body.text,
            comment=statement.comment,
        )
        function.sql_function()
    session.kept_functions.keep(function, replace=statement.replace)
    return done()


def alter_function(session: Session, statement: AlterFunction, source: Source) -> Result:
    """Runs ALTER FUNCTION … AS: another class for a function of a catalog. Raises NotFoundError, UnsupportedError."""
    with placing(source, statement.path.span):
        _check_language(statement.language)
        path = session.expand(statement.path, source)
        session.functions.check_permanent(statement.path, session.place)
        if session.kept_functions.find(path) is None:
            if statement.if_exists:
                return done()
            raise _no_function(path.quoted)
        function = KeptFunction(path=path, class_name=statement.class_name)
        _check_python(session, function)
        session.kept_functions.keep(function, replace=True)
    return done()


def describe_function(session: Session, statement: DescribeFunction, source: Source) -> Result:
    """Runs DESCRIBE FUNCTION: of a catalog what it keeps, of the session that it is temporary, else the engine's word."""
    with placing(source, statement.path.span):
        path = session.expand(statement.path, source)
        is_own = (
            len(statement.path.parts) == 1 and session.engine is not None and session.engine.has_function(statement.path.parts[0])
        )
        if session.engine is not None and session.temporary_function(statement.path) is not None:
            return pairs([("name", str(statement.path)), ("kind", "temporary function of this session")])
        function = None if is_own else session.kept_functions.find(path)
    if function is None:
        return by_engine(session, EngineStatement(text=statement.text), source)
    rows = [("name", str(path)), ("kind", "function of a catalog"), ("language", function.language.upper())]
    if function.class_name is not None:
        return pairs([*rows, ("class", function.class_name)])
    signature = ", ".join(f"{quote_identifier(name)} {of}" for name, of in function.parameters)
    details = [("parameters", signature), ("returns", function.returns), ("body", function.body), ("comment", function.comment)]
    return pairs([*rows, *details])


def _check_language(language: str | None) -> None:
    if language not in (None, PYTHON):
        raise UnsupportedError(f"expected LANGUAGE PYTHON, found {language}", kind="unsupported")


def _check_python(session: Session, function: KeptFunction) -> None:
    """Raises unless the module of a function is allowed here, and holds what it names."""
    check_module(function, str(session.settings.get(ALLOWED_MODULES) or ""))
    function_of(function.path.quoted, named_callable(function.class_name or ""))


def _no_function(name: str) -> NotFoundError:
    return NotFoundError(f"Function with identifier '{name}' does not exist.", kind="no-such-function")


def add_function(session: Session, key: FunctionKey, function: Function, *, replace: bool = False) -> None:
    """Registers a function, with the engine too. Raises AlreadyExistsError, and what the engine says of it."""
    called = engine_name(session.functions.new_number(), key.name, function.kind)
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
            path = session.expand(statement.path, source)
            if session.kept_functions.drop(path):
                return done()
            key = catalog_key(statement.path, session.place)
        elif drop_temporary_function(session, key):
            return done()
        if not statement.if_exists:
            raise _no_function(str(key))
    return done()
