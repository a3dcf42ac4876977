"""Parses CREATE and DROP: finds the kind of object that a statement is about, and reads the small ones in full."""

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.sql.parse.literals import add_option, option_list, set_option
from tablestore.sql.parse.materialized import create_materialized, drop_materialized
from tablestore.sql.parse.show import DATABASES
from tablestore.sql.parse.tabledefinition import create_table
from tablestore.sql.source import Path
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
from tablestore.sql.statements.materialized import CreateMaterializedTable, DropMaterializedTable
from tablestore.sql.statements.session import EngineStatement
from tablestore.types.datatypes import DataType

_NOT_YET = {
    "EXTERNAL": "EXTERNAL is not supported; a table with a connector option, or with USING, keeps its data elsewhere",
    "STREAMING": "streaming tables are not supported; write a table, and INSERT INTO it",
    "METRIC": "metric views are not supported; write a TEMPORARY VIEW",
}
_ENGINES = ("VARIABLE", "VAR", "MACRO", "SECRET", "TYPE")

Created = CreateTable | CreateView | CreateFunction | CreateDatabase | CreateCatalog | CreateMaterializedTable | EngineStatement


def create(cursor: Cursor) -> Created:
    """Takes CREATE …, or REPLACE TABLE."""
    start = cursor.next.start
    if cursor.accept("REPLACE"):
        cursor.expect("TABLE")
        return create_table(cursor, temporary=False, replaces=True, must_exist=True)
    cursor.expect("CREATE")
    replaces = cursor.accept("OR")
    if replaces:
        if cursor.accept("ALTER"):
            cursor.expect("MATERIALIZED")
            return create_materialized(cursor, or_alter=True)
        if cursor.sees("REPLACE", "MATERIALIZED"):
            raise cursor.unsupported(
                "CREATE OR REPLACE MATERIALIZED TABLE is not supported: CREATE OR ALTER keeps the rows and what refreshes them"
            )
        cursor.expect("REPLACE")
    elif cursor.accept("MATERIALIZED"):
        return create_materialized(cursor, or_alter=False)
    shared = cursor.accept("GLOBAL")
    temporary = cursor.accept_one("TEMPORARY", "TEMP") is not None
    if cursor.next.key in _NOT_YET:
        raise cursor.unsupported(_NOT_YET[cursor.next.key])
    if cursor.next.key in _ENGINES:
        return _engines(cursor, start)
    if cursor.accept("VIEW"):
        return _view(cursor, start, temporary=temporary, replaces=replaces, shared=shared)
    if shared:
        cursor.hope("TEMPORARY VIEW")
        raise cursor.error()
    if cursor.accept("TABLE"):
        return create_table(cursor, temporary=temporary, replaces=replaces)
    if cursor.sees("SYSTEM", "FUNCTION") or cursor.sees("FUNCTION"):
        return _function(cursor, start, temporary=temporary, replaces=replaces)
    cursor.hope("FUNCTION")
    if not temporary and not replaces:
        if cursor.accept_one(*DATABASES):
            return _database(cursor)
        if cursor.accept("CATALOG"):
            return _catalog(cursor)
    raise cursor.error()


def drop(cursor: Cursor) -> Drop | DropDatabase | DropCatalog | DropMaterializedTable | EngineStatement:
    """Takes DROP …."""
    start = cursor.next.start
    cursor.expect("DROP")
    if cursor.accept("MATERIALIZED"):
        return drop_materialized(cursor)
    temporary = cursor.accept_one("TEMPORARY", "TEMP") is not None
    if cursor.next.key in _NOT_YET:
        raise cursor.unsupported(_NOT_YET[cursor.next.key])
    if cursor.next.key in _ENGINES:
        return _engines(cursor, start)
    system = temporary and cursor.accept("SYSTEM")
    kind = cursor.accept_one("FUNCTION") if system else cursor.accept_one("TABLE", "VIEW", "FUNCTION")
    if kind is not None:
        if_exists = cursor.if_exists()
        path = cursor.path(f"the name of a {kind.lower()}")
        if kind == "TABLE":
            # Nothing is kept in a bin: every DROP is one.
            cursor.accept("PURGE")
        return Drop(what=kind.lower(), path=path, temporary=temporary, system=system, if_exists=if_exists)
    if temporary:
        raise cursor.error()
    if cursor.accept_one(*DATABASES):
        if_exists = cursor.if_exists()
        path = cursor.path("the name of a database", most=2)
        return DropDatabase(path=path, if_exists=if_exists, cascade=cursor.accept_one("RESTRICT", "CASCADE") == "CASCADE")
    cursor.expect("CATALOG")
    if_exists = cursor.if_exists()
    start = cursor.next.start
    return DropCatalog(name=cursor.name("the name of a catalog"), if_exists=if_exists, span=cursor.span_from(start))


def _engines(cursor: Cursor, start: int) -> EngineStatement:
    cursor.fragment("the rest of the statement")
    return EngineStatement(text=cursor.fragment_from(start))


def _view(cursor: Cursor, start: int, *, temporary: bool, replaces: bool, shared: bool) -> CreateView | EngineStatement:
    if_not_exists = cursor.if_not_exists()
    path = cursor.path("the name of a view")
    if shared or cursor.sees("USING") or (cursor.sees("(") and _typed(cursor)):
        return _engines(cursor, start)
    columns: list[str] = []
    if cursor.sees("("):
        for _ in cursor.listed():
            columns.append(cursor.name("the name of a column"))
            if cursor.accept("COMMENT"):
                raise cursor.unsupported("a view's columns have no comments; leave them out")
    comment = cursor.string("a comment") if cursor.accept("COMMENT") else None
    options: dict[str, str] = {}
    if cursor.sees("TBLPROPERTIES"):
        if temporary:
            raise cursor.unsupported("a temporary view has no options; leave them out")
        cursor.take()
        for _ in cursor.listed():
            set_option(cursor, options)
    cursor.expect("AS")
    return CreateView(
        path=path,
        query=cursor.query(),
        columns=tuple(columns),
        comment=comment,
        options=options,
        temporary=temporary,
        if_not_exists=if_not_exists,
        replace=replaces,
    )


def _typed(cursor: Cursor) -> bool:
    """True if USING follows the list of columns."""
    at = cursor.at
    cursor.skip()
    has_using = cursor.sees("USING")
    cursor.at = at
    return has_using


def _function(cursor: Cursor, start: int, *, temporary: bool, replaces: bool) -> CreateFunction | EngineStatement:
    system = temporary and cursor.accept("SYSTEM")
    cursor.expect("FUNCTION")
    if_not_exists = cursor.if_not_exists()
    path = cursor.path("the name of a function")
    if not cursor.accept("AS"):
        # Spark's functions in SQL: (parameters) RETURNS type RETURN expression.
        if cursor.next.key not in ("(", "RETURNS", "RETURN"):
            raise cursor.error()
        if temporary:
            return _engines(cursor, start)
        return _sql_function(cursor, path, if_not_exists=if_not_exists, replaces=replaces)
    class_name = cursor.string("the name of a class")
    if cursor.sees("USING"):
        return _engines(cursor, start)
    language = cursor.name("a language") if cursor.accept("LANGUAGE") else None
    return CreateFunction(
        path=path,
        class_name=class_name,
        language=None if language is None else language.lower(),
        temporary=temporary,
        system=system,
        if_not_exists=if_not_exists,
        replace=replaces,
    )


def _sql_function(cursor: Cursor, path: Path, *, if_not_exists: bool, replaces: bool) -> CreateFunction:
    parameters: list[tuple[str, DataType]] = []
    if cursor.sees("(", ")"):
        cursor.take()
        cursor.take()
    else:
        for _ in cursor.listed():
            parameters.append((cursor.name("the name of a parameter"), data_type(cursor)))
            if cursor.next.key in ("DEFAULT", "COMMENT"):
                raise cursor.unsupported("a parameter has neither a default nor a comment; leave them out")
    cursor.expect("RETURNS")
    if cursor.next.key == "TABLE":
        raise cursor.unsupported("a function in SQL returns one value; CREATE VIEW keeps a query")
    returns, comment = data_type(cursor), None
    while not cursor.accept("RETURN"):
        if cursor.accept("LANGUAGE"):
            cursor.expect("SQL")
        elif cursor.accept("COMMENT"):
            comment = cursor.string("a comment")
        elif not (cursor.accept("DETERMINISTIC") or cursor.accept("CONTAINS", "SQL")):
            cursor.hope("RETURN")
            raise cursor.error()
    body = cursor.fragment("an expression")
    return CreateFunction(
        path=path,
        parameters=tuple(parameters),
        returns=returns,
        body=body,
        comment=comment,
        if_not_exists=if_not_exists,
        replace=replaces,
    )


def _database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = cursor.if_not_exists()
    path = cursor.path("the name of a database", most=2)
    comment: str | None = None
    options: dict[str, str] = {}
    while not cursor.at_end():
        start = cursor.next.start
        if comment is None and cursor.accept("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.accept("LOCATION"):
            add_option(cursor, options, "location", cursor.string("a path"), cursor.span_from(start))
        elif cursor.accept("WITH"):
            cursor.accept_one("DBPROPERTIES", "PROPERTIES")
            for _ in cursor.listed():
                set_option(cursor, options)
        else:
            break
    return CreateDatabase(path=path, if_not_exists=if_not_exists, comment=comment, options=options)


def _catalog(cursor: Cursor) -> CreateCatalog:
    if_not_exists = cursor.if_not_exists()
    start = cursor.next.start
    name = cursor.name("the name of a catalog")
    span = cursor.span_from(start)
    comment = cursor.string("a comment") if cursor.accept("COMMENT") else None
    options = option_list(cursor) if cursor.accept("WITH") else {}
    return CreateCatalog(name=name, options=options, if_not_exists=if_not_exists, comment=comment, span=span)
