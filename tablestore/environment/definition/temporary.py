"""Runs CREATE and DROP of temporary tables, and DROP of temporary views.

    with a connector      properties only: what they stand for is resolved when the table is read or written
    managed               its storage is the table ``temporary.<catalog>-<database>-<table>`` of its catalog, or, where that catalog
                          does not exist, of the current one

The session forgets both at its end. The storage of a managed one stays, with its rows, until DROP TEMPORARY TABLE deletes it; a
later session takes it up again with CREATE TEMPORARY TABLE IF NOT EXISTS.
"""

from tablestore.environment.definition.create import connector_of, connector_table, managed_context
from tablestore.environment.definition.drop import stored_context
from tablestore.environment.definition.tabledefinition import TableDefinition, define
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.result import Result, already_there, done
from tablestore.environment.session.objects import TemporaryTable, kind_of
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from tablestore.names import check_name
from tablestore.sql.statements.definition import CreateTable, Drop

STORAGE_DATABASE = "temporary"


def create_temporary_table(session: Session, statement: CreateTable, source: Source) -> Result:
    """Runs CREATE TEMPORARY TABLE. Raises InvalidInputError, UnsupportedError, AlreadyExistsError."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        if statement.query is not None:
            raise UnsupportedError(
                "CREATE TEMPORARY TABLE … AS is not supported: a temporary table would leave its rows behind; CREATE TEMPORARY "
                "VIEW … AS keeps the query",
                kind="temporary-object",
            )
        if statement.replace:
            raise UnsupportedError("CREATE OR REPLACE TEMPORARY TABLE is not supported: DROP it first", kind="unsupported")
        made = add_temporary_table(
            session, path, define(session, statement, source), provider=statement.provider, ignore_if_exists=statement.if_not_exists
        )
    return done() if made else done(already_there(path))


def add_temporary_table(
    session: Session, path: ObjectPath, definition: TableDefinition, *, provider: str | None = None, ignore_if_exists: bool = False
) -> bool:
    """Makes a temporary table, unless it is there and that is ignored; true if it was made. Raises InvalidInputError,
    AlreadyExistsError."""
    check_whole(path)
    if (there := session.objects.temporary(path)) is not None:
        if ignore_if_exists:
            return False
        raise AlreadyExistsError(f"Temporary {kind_of(there)} '{path.quoted}' already exists", kind="table-exists")
    connector, options = connector_of(provider, definition)
    if connector is not None:
        session.objects.add(connector_table(path, definition, connector, options, temporary=True))
        return True
    storage = _storage(session, path)
    catalog = session.catalogs.get(storage.catalog)
    catalog.create_database(STORAGE_DATABASE, ignore_if_exists=True)
    session.factory.on_create_table(managed_context(session, storage, catalog, definition, temporary=True), ignore_if_exists)
    session.objects.add(TemporaryTable(path=path, storage=storage))
    return True


def _storage(session: Session, path: ObjectPath) -> ObjectPath:
    catalogs = session.catalogs
    catalog = path.catalog if path.catalog in catalogs.names() else catalogs.current
    if not catalogs.get(catalog).supports_managed_table:
        raise UnsupportedError(
            f"catalog {catalog!r} does not support managed tables: give the table the option 'connector'", kind="not-managed"
        )
    parts = ((path.catalog, "catalog"), (path.database, "database"), (path.name, "table"))
    # No name begins with "-", so the parts can be told from each other.
    return ObjectPath(catalog, STORAGE_DATABASE, "-".join(check_name(part, what).replace("-", "--") for part, what in parts))


def drop_temporary(session: Session, statement: Drop, source: Source) -> Result:
    """Runs DROP TEMPORARY TABLE and DROP TEMPORARY VIEW. Raises NotFoundError."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        if not drop_temporary_object(session, path, statement.what) and not statement.if_exists:
            raise NotFoundError(
                f"{statement.what.capitalize()} with identifier '{path.quoted}' does not exist.", kind=f"no-such-{statement.what}"
            )
    return done()


def drop_temporary_object(session: Session, path: ObjectPath, what: str) -> bool:
    """Drops a temporary ``table``, with the storage of a managed one, or a temporary ``view``; true if there was one."""
    found = session.objects.temporary(path)
    if found is None or kind_of(found) != what:
        return False
    if isinstance(found, TemporaryTable):
        session.factory.on_drop_table(stored_context(session, found.storage, temporary=True), True)
    session.objects.drop_temporary(path)
    return True
