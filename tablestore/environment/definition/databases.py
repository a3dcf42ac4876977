"""Runs statements about databases and catalogs: CREATE, DROP, USE."""

from tablestore.environment.definition.drop import drop_managed
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, done
from tablestore.environment.session.catalogs import DEFAULT_DATABASE, Registered
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.sql.source import Path
from tablestore.sql.statements.definition import CreateCatalog, CreateDatabase, DropCatalog, DropDatabase
from tablestore.sql.statements.session import UseNames
from tablestore.table.opening import open_catalog


def create_database(session: Session, statement: CreateDatabase, source: Source) -> Result:
    """Runs CREATE DATABASE. Raises AlreadyExistsError, UnsupportedError."""
    if statement.comment is not None or statement.options:
        raise UnsupportedError(
            source.mark("a database has neither comment nor options: leave them out", statement.path.span), kind="unsupported"
        )
    catalog, name = database_path(session, statement.path, source)
    with placing(source, statement.path.span):
        session.catalogs.get(catalog).create_database(name, ignore_if_exists=statement.if_not_exists)
    return done()


def drop_database(session: Session, statement: DropDatabase, source: Source) -> Result:
    """Runs DROP DATABASE; one with tables only with CASCADE. Raises NotFoundError, InvalidInputError."""
    catalog, name = database_path(session, statement.path, source)
    with placing(source, statement.path.span):
        try:
            session.catalogs.check_database(catalog, name)
        except NotFoundError:
            if statement.if_exists:
                return done()
            raise
        handle, unmade = session.catalogs.get(catalog), session.catalogs.is_unmade(catalog, name)
        if statement.cascade and not unmade:
            _drop_tables(session, catalog, name)
        handle.drop_database(name, ignore_if_not_exists=unmade or statement.if_exists, cascade=statement.cascade)
    if (session.catalogs.current, session.catalogs.current_database) == (catalog, name):
        session.catalogs.use(catalog, DEFAULT_DATABASE)
    return done()


def _drop_tables(session: Session, catalog: str, database: str) -> None:
    dropped: list[str] = []
    for name in session.catalogs.tables(catalog, database):
        try:
            drop_managed(session, ObjectPath(catalog, database, name), ignore_if_not_exists=True)
        except TablestoreError as error:
            earlier_drops = f"dropped before it: {', '.join(dropped)}" if dropped else "nothing was dropped before it"
            raise type(error)(
                f"table {database}.{name} could not be dropped ({earlier_drops}): {error.message}", kind=error.kind
            ) from error
        dropped.append(name)


def create_catalog(session: Session, statement: CreateCatalog, source: Source) -> Result:
    """Runs CREATE CATALOG: opens one, and registers it for this session. Raises what opening it raises."""
    if statement.if_not_exists and statement.name in session.catalogs.names():
        return done()
    with placing(source, statement.span):
        options = dict(statement.options)
        opened = open_catalog(options)
        session.catalogs.register(statement.name, Registered(open=lambda: opened, opened=opened))
    return done()


def drop_catalog(session: Session, statement: DropCatalog, source: Source) -> Result:
    """Runs DROP CATALOG: forgets it; what it holds stays."""
    if statement.if_exists and statement.name not in session.catalogs.names():
        return done()
    with placing(source, statement.span):
        session.catalogs.drop(statement.name)
    return done()


def use(session: Session, statement: UseNames, source: Source) -> Result:
    """Runs USE: sets the catalog and database that short names are filled up with."""
    parts = statement.path.parts
    with placing(source, statement.path.span):
        if statement.what == "catalog" and len(parts) == 1:
            session.catalogs.use(parts[0])
        elif len(parts) == 2:
            session.catalogs.use(parts[0], parts[1])
        elif len(parts) == 1:
            session.catalogs.use(session.catalogs.current, parts[0])
        else:
            raise InvalidInputError(
                f"USE {statement.path}: expected USE CATALOG catalog, USE database or USE catalog.database", kind="invalid-name"
            )
    return done()


def database_path(session: Session, path: Path, source: Source) -> tuple[str, str]:
    """The catalog and the name of a database as written. Raises InvalidInputError."""
    if len(path.parts) > 2:
        raise InvalidInputError(
            source.mark(f"expected database or catalog.database, found {str(path)!r:.200}", path.span), kind="invalid-name"
        )
    return (session.catalogs.current, path.parts[0]) if len(path.parts) == 1 else (path.parts[0], path.parts[1])
