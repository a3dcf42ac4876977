"""Runs CREATE TABLE and CREATE TEMPORARY TABLE.

no connector, USING tablestore or nothing    managed: the factory makes files, log and entry, all or nothing
a connector, or USING anything else          kept by its catalog as properties, resolved when the table is read or written; a
                                             TEMPORARY one by the session
TEMPORARY, managed                           its storage is the table ``temporary.<catalog>-<database>-<table>`` of its catalog, or,
                                             where that catalog does not exist, of the current one

The session forgets temporary tables at its end. The storage of a managed one stays, with its rows, until DROP TEMPORARY TABLE
deletes it; a later session takes it up again with CREATE TEMPORARY TABLE IF NOT EXISTS.
"""

from collections.abc import Mapping

from tablestore.environment.definition.tabledefinition import TableDefinition, define
from tablestore.environment.managed.factory import ManagedTableContext
from tablestore.environment.managed.nonphysical import Unstored
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.result import Result, already_there, done
from tablestore.environment.session.catalogs import DEFAULT_DATABASE
from tablestore.environment.session.objects import CONNECTOR, ConnectorTable, TemporaryTable, kind_of
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from tablestore.names import check_name, did_you_mean
from tablestore.sql.statements.definition import CreateTable
from tablestore.table.catalog import Catalog
from tablestore.types.arrowtypes import to_arrow_schema

OURS = "tablestore"
STORAGE_DATABASE = "temporary"
# USING one of these means files of that format.
_FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")


def create_table(session: Session, statement: CreateTable, source: Source) -> Result:
    """Creates a table of columns. Raises InvalidInputError, UnsupportedError, AlreadyExistsError, NotFoundError."""
    if statement.temporary:
        return _create_temporary(session, statement, source)
    path = created_path(session, statement, source)
    if statement.if_not_exists and session.kept.has(path):
        return done(already_there(path))
    definition = define(session, statement, source)
    connector, options = connector_of(statement.provider, definition)
    if connector is not None:
        with placing(source, statement.path.span):
            if statement.if_not_exists and session.exists(path):
                return done(already_there(path))
            session.kept.keep(connector_table(path, definition, connector, options))
    else:
        with placing(source, statement.path.span):
            context = new_managed(session, path, definition)
            was_there = statement.if_not_exists and session.exists(path)
        session.factory.on_create_table(context, statement.if_not_exists)
        if was_there:
            return done(already_there(path))
    return done()


def created_path(session: Session, statement: CreateTable, source: Source) -> ObjectPath:
    """The whole name of the table to be made. Raises InvalidInputError for that of a part of a table."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        check_whole(path)
    return path


def new_managed(session: Session, path: ObjectPath, definition: TableDefinition) -> ManagedTableContext:
    """The context of the factory for a table to be made, in a database that is there. Raises NotFoundError, UnsupportedError."""
    context = planned_managed(session, path, definition)
    if session.catalogs.is_unmade(path.catalog, path.database):
        context.catalog.create_database(DEFAULT_DATABASE, ignore_if_exists=True)
    return context


def planned_managed(session: Session, path: ObjectPath, definition: TableDefinition) -> ManagedTableContext:
    """Gives the same context as :func:`new_managed`; nothing is made."""
    catalog = session.catalogs.get(path.catalog)
    if not catalog.supports_managed_table:
        raise UnsupportedError(
            f"catalog {path.catalog!r} does not support managed tables: give the table the option 'connector'", kind="not-managed"
        )
    session.catalogs.check_database(path.catalog, path.database)
    return managed_context(session, path, catalog, definition)


def managed_context(
    session: Session, path: ObjectPath, catalog: Catalog, definition: TableDefinition, *, temporary: bool = False
) -> ManagedTableContext:
    """The context of the factory for a table to be made, its options enriched."""
    plain = ManagedTableContext(
        path=path,
        catalog=catalog,
        options=definition.kept_options,
        fields=definition.fields,
        primary_key=definition.primary_key,
        partition_by=definition.partition_by,
        comment=definition.comment,
        configuration=session.settings.all(),
        is_temporary=temporary,
    )
    return plain.with_options(session.factory.enrich_options(plain))


def connector_of(provider: str | None, definition: TableDefinition) -> tuple[str | None, Mapping[str, str]]:
    """The connector, None for a managed table, and its options; ``provider`` is what follows USING."""
    options = {key: value for key, value in definition.options.items() if key != CONNECTOR}
    named = definition.options.get(CONNECTOR, "").strip()
    provider = (provider or OURS).lower()
    if named:
        return named, options
    if provider in _FILE_FORMATS:
        return "filesystem", {"format": provider, **options}
    return (None if provider == OURS else provider), options


def connector_table(
    path: ObjectPath, definition: TableDefinition, connector: str, options: Mapping[str, str], *, temporary: bool = False
) -> ConnectorTable:
    """A table that its catalog or the session keeps. Raises InvalidInputError for partition columns that it does not declare."""
    if definition.checks:
        raise UnsupportedError(
            f"{path} has the connector {connector!r}, and the constraint {next(iter(definition.checks))!r}: only writers of "
            "managed tables compare rows with a CHECK; leave it out",
            kind="not-managed",
        )
    names = [field.name for field in definition.fields]
    if names and (unknown := [name for name in definition.partition_by if name not in names]):
        raise InvalidInputError(
            f"PARTITIONED BY ({unknown[0]}): {path} has no such column{did_you_mean(unknown[0], names)}", kind="unknown-column"
        )
    if definition.partition_by and len(definition.partition_by) == len(names):
        raise InvalidInputError(f"PARTITIONED BY all columns of {path} leaves no data; leave one out", kind="invalid-partitioning")
    return ConnectorTable(
        path=path,
        connector=connector,
        options=options,
        schema=to_arrow_schema(definition.fields) if definition.fields else None,
        unstored=definition.unstored if definition.unstored != Unstored() else None,
        primary_key=definition.primary_key,
        constraint=definition.constraint,
        partition_by=definition.partition_by,
        comment=definition.comment,
        temporary=temporary,
    )


def _create_temporary(session: Session, statement: CreateTable, source: Source) -> Result:
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
        is_new = add_temporary_table(
            session, path, define(session, statement, source), provider=statement.provider, ignore_if_exists=statement.if_not_exists
        )
    return done() if is_new else done(already_there(path))


def add_temporary_table(
    session: Session, path: ObjectPath, definition: TableDefinition, *, provider: str | None = None, ignore_if_exists: bool = False
) -> bool:
    """Makes a temporary table, unless it is there and that is ignored; true if it was made. Raises InvalidInputError,
    AlreadyExistsError."""
    check_whole(path)
    if (existing := session.objects.temporary(path)) is not None:
        if ignore_if_exists:
            return False
        raise AlreadyExistsError(f"Temporary {kind_of(existing)} '{path.quoted}' already exists", kind="table-exists")
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
    return ObjectPath(catalog, STORAGE_DATABASE, "-".join(check_name(part, kind).replace("-", "--") for part, kind in parts))
