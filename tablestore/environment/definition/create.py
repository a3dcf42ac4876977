"""Runs CREATE TABLE.

no connector, USING tablestore or nothing    managed: the factory makes files, log and entry, all or nothing
a connector, or USING anything else          kept by the session as properties
"""

from collections.abc import Mapping

from tablestore.environment.definition.tabledefinition import TableDefinition, define
from tablestore.environment.managed.factory import ManagedTableContext
from tablestore.environment.managed.nonphysical import Unstored
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.result import Result, already_there, done
from tablestore.environment.session.catalogs import DEFAULT_DATABASE
from tablestore.environment.session.objects import CONNECTOR, ConnectorTable
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.sql.statements.definition import CreateTable
from tablestore.table.catalog import Catalog
from tablestore.types.arrowtypes import to_arrow_schema

OURS = "tablestore"
# USING one of these means files of that format.
_FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")


def create_table(session: Session, statement: CreateTable, source: Source) -> Result:
    """Creates a table. Raises InvalidInputError, UnsupportedError, AlreadyExistsError, NotFoundError."""
    path = created_path(session, statement, source)
    if statement.replace:
        raise UnsupportedError(
            source.mark("CREATE OR REPLACE TABLE is not supported: DROP TABLE IF EXISTS, then CREATE TABLE", statement.path.span),
            kind="unsupported",
        )
    if statement.if_not_exists and session.objects.permanent(path) is not None:
        return done(already_there(path))
    definition = define(session, statement, source)
    connector, options = connector_of(statement.provider, definition)
    if connector is not None:
        with placing(source, statement.path.span):
            session.catalogs.get(path.catalog)
            session.catalogs.check_database(path.catalog, path.database)
        session.objects.add(connector_table(path, definition, connector, options))
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
    """A table that the session keeps. Raises InvalidInputError for partition columns that it does not declare."""
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
