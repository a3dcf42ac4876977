"""Runs ALTER TABLE and TRUNCATE TABLE."""

from dataclasses import replace

from tablestore.distributed.read import pin_read
from tablestore.environment.definition.altercolumns import schema_changes
from tablestore.environment.definition.drop import stored_context
from tablestore.environment.definition.partitions import partition_of
from tablestore.environment.objectpath import ObjectPath, expand
from tablestore.environment.result import Result, done, landed
from tablestore.environment.session.objects import CONNECTOR, ConnectorTable
from tablestore.environment.session.session import Found, Session, made_by_query, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.options import CHANGE_TRACKING, is_materialized
from tablestore.sql.statements.alter import (
    AlterAction,
    AlterTable,
    Compact,
    DropPartitions,
    ModifyColumn,
    RenameTo,
    ResetOptions,
    SetOptions,
    TruncateTable,
)
from tablestore.table.table import Table


def alter_table(session: Session, statement: AlterTable, source: Source) -> Result:
    """Alters a table. Raises InvalidInputError, UnsupportedError, NotFoundError, ConflictError."""
    try:
        target = session.find(statement.path, source)
    except NotFoundError:
        if statement.if_exists:
            return done()
        raise
    if isinstance(target, ConnectorTable):
        return _alter_connector_table(session, target, statement, source)
    if any(isinstance(action, Compact) for action in statement.actions) and not isinstance(target, Table):
        raise InvalidInputError(
            source.mark(f"Only managed table supports compaction: {statement.path} is none", statement.path.span),
            kind="not-managed",
        )
    table = session.table(statement.path, "ALTER TABLE", source)
    if is_materialized(table.options()) and not all(map(_keeps_definition, statement.actions)):
        raise made_by_query(session.expand(statement.path), "ALTER TABLE", source, statement.path.span)
    if len(statement.actions) == 1:
        match statement.actions[0]:
            case RenameTo() as rename:
                return _rename(session, statement, rename, source)
            case DropPartitions() as drop:
                return _drop_partitions(table, drop, source)
            case Compact() as compact:
                return _compact(session, session.expand(statement.path), table, compact, source)
    # DROP COLUMN IF EXISTS of a column that is not there changes nothing.
    if changes := schema_changes(table, statement.actions, source):
        table.alter(changes)
    return done()


def _keeps_definition(action: AlterAction) -> bool:
    """True if a materialized table takes an action: comments of columns are no part of its definition."""
    if isinstance(action, ModifyColumn):
        return action == ModifyColumn(path=action.path, comment=action.comment)
    return isinstance(action, Compact)


def truncate_table(session: Session, statement: TruncateTable, source: Source) -> Result:
    """Removes all rows of a table or of a partition, by one commit."""
    table = session.table(statement.path, "TRUNCATE TABLE", source)
    partition = {} if statement.partition is None else partition_of(table, statement.partition, source)
    return landed(table.overwrite(table.schema.empty_table(), partition=partition))


def _rename(session: Session, statement: AlterTable, rename: RenameTo, source: Source) -> Result:
    old = session.expand(statement.path)
    if session.stored(old) != old:
        raise UnsupportedError(
            source.mark(f"{old} is a temporary table, which keeps its name: create another one, or a view", statement.path.span),
            kind="unsupported",
        )
    new = _beside(old, rename, source)
    if old.suffix or new.suffix:
        raise InvalidInputError(source.mark("a part of a table cannot be renamed", rename.path.span), kind="invalid-name")
    if new.catalog != old.catalog:
        raise UnsupportedError(
            source.mark(
                f"a table stays in its catalog: {old.catalog!r} is not {new.catalog!r}; create the new table and insert the rows",
                rename.path.span,
            ),
            kind="unsupported",
        )
    with placing(source, rename.path.span):
        session.catalogs.get(old.catalog).rename_table(old.in_catalog, new.in_catalog)
    return done()


def _beside(old: ObjectPath, rename: RenameTo, source: Source) -> ObjectPath:
    """A name alone stays in the database of the table."""
    with placing(source, rename.path.span):
        return expand(rename.path, old.catalog, old.database)


def _drop_partitions(table: Table, drop: DropPartitions, source: Source) -> Result:
    specs = [partition_of(table, spec, source) for spec in drop.partitions]
    if not drop.if_exists:
        for spec, written in zip(specs, drop.partitions, strict=True):
            if not table.drop_partitions([spec], dry_run=True).partitions:
                shown = ", ".join(f"{name}={value}" for name, value in written.items())
                raise NotFoundError(
                    f"table {table.name} has no partition ({shown}); DROP IF EXISTS PARTITION takes one that is not there",
                    kind="no-such-partition",
                )
    return landed(table.drop_partitions(specs).snapshot)


def _compact(session: Session, path: ObjectPath, table: Table, compact: Compact, source: Source) -> Result:
    if session.settings.is_streaming:
        raise UnsupportedError("Compact managed table only works under batch mode.", kind="streaming")
    partitions = None if compact.partition is None else [partition_of(table, compact.partition, source)]
    session.factory.on_compact_table(
        stored_context(session, session.stored(path), temporary=session.stored(path) != path), partitions
    )
    if session.engine is None:
        table.compact(full=True, partitions=partitions)
    else:
        session.engine.compact(table, pin_read(table, session.spec(path, table)), partitions)
    return done()


def _alter_connector_table(session: Session, table: ConnectorTable, statement: AlterTable, source: Source) -> Result:
    altered = table
    for action in statement.actions:
        altered = _altered(session, altered, action, statement, source)
    if not table.temporary:
        session.kept.alter(table, altered)
    elif altered.path != table.path:
        session.objects.move(table, altered)
    else:
        session.objects.add(altered, replace=True)
    return done()


def _altered(session: Session, table: Found, action: AlterAction, statement: AlterTable, source: Source) -> ConnectorTable:
    assert isinstance(table, ConnectorTable)
    match action:
        case SetOptions() if CHANGE_TRACKING.key in action.options or action.partition is not None:
            message = f"Only managed table tracks changes: {table.path} has the connector {table.connector!r}"
        case SetOptions(partition=None) if CONNECTOR not in action.options:
            return replace(table, options={**table.options, **action.options})
        case ResetOptions(partition=None) if CONNECTOR not in action.keys:
            return replace(table, options={key: value for key, value in table.options.items() if key not in action.keys})
        case RenameTo():
            return replace(table, path=_beside(table.path, action, source))
        case Compact():
            message = f"Only managed table supports compaction: {table.path} has the connector {table.connector!r}"
        case SetOptions() | ResetOptions():
            message = f"the connector of {table.path} cannot be altered: DROP TABLE, and CREATE TABLE with another one"
        case _:
            message = (
                f"{table.path} has the connector {table.connector!r} and is not managed: only its options and its name can be "
                "altered here"
            )
    raise InvalidInputError(source.mark(message, statement.path.span), kind="not-managed")
