"""Finds a materialized table, and writes its definition: one schema, on top of the one that was read.

What was read is named by its epoch. Where another session was faster, nothing is written, and a ConflictError says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session, placing
from tablestore.environment.session.sessionsettings import CONTINUOUS_FRESHNESS, FRESHNESS_THRESHOLD, FULL_FRESHNESS, Settings
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.materialized.difference import WAY_OUT, AlterationPlan, ModifyColumns, ModifyComment, ModifyOptions
from tablestore.materialized.freshness import FreshnessRules
from tablestore.materialized.materializedtable import (
    EPOCH,
    MaterializedTable,
    RefreshStatus,
    Upkeep,
    definition_of,
    options_of,
    upkeep_of,
)
from tablestore.options import TYPE, is_materialized
from tablestore.sql.source import Path
from tablestore.store.commit.alterschema import check_alteration
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.evolution import schemachanges as to

_NOT_THERE = ("no-such-table", "no-such-database", "no-such-catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A materialized table as it was read. ``table`` is a handle at the schema that carries the other two."""

    path: ObjectPath
    table: Table
    definition: MaterializedTable
    upkeep: Upkeep


def find_materialized(session: Session, written: Path, source: Source = NO_SOURCE) -> StoredTable:
    """The materialized table of a name. Raises NotFoundError, InvalidInputError for another table."""
    path = session.expand(written, source)
    with placing(source, written.span):
        return open_materialized(session, path)


def open_materialized(session: Session, path: ObjectPath) -> StoredTable:
    """The materialized table of a whole name, as it is now. Raises as :func:`find_materialized`."""
    table: Table | SystemTable | None = None
    try:
        table = session.open_table(path)
    except NotFoundError as error:
        if error.kind not in _NOT_THERE and session.exists(path):
            raise
        if not session.kept.has(path):
            raise _no_materialized(session, path, error) from error
    if not isinstance(table, Table) or path.suffix or not is_materialized(table.options()):
        raise InvalidInputError(
            f"Table {path} is not a materialized table, does not support materialized table related operation.",
            kind="not-materialized",
        )
    return read_stored(path, table)


def _no_materialized(session: Session, path: ObjectPath, error: NotFoundError) -> NotFoundError:
    way_out = session.creation_of(path) or "SHOW MATERIALIZED TABLES lists those that do; CREATE MATERIALIZED TABLE makes one"
    kind = error.kind if error.kind in _NOT_THERE else "no-such-table"
    return NotFoundError(f"Materialized table with identifier {path} does not exist. {way_out}", kind=kind)


@contextmanager
def while_there(*tables: StoredTable) -> Iterator[None]:
    """Guards what only reads materialized tables, where a table that is gone reads like an empty one.

    Raises NotFoundError where one was dropped meanwhile, and ConflictError where another table is in its place, whether or not
    reading it has failed.
    """
    try:
        yield
    except TablestoreError as error:
        for stored in tables:
            check_there(stored, error)
        raise
    for stored in tables:
        check_there(stored)


def check_there(stored: StoredTable, error: TablestoreError | None = None) -> None:
    """Raises NotFoundError for a table that was dropped since it was read, ConflictError for one that was replaced.

    ``error``: what came of it.
    """
    try:
        stored.table.context.still_there()
    except NotFoundError as not_found:
        raise NotFoundError(
            f"Materialized table {stored.path} is gone: another session has dropped it meanwhile; SHOW MATERIALIZED TABLES lists "
            "those that there are",
            kind=not_found.kind,
        ) from error or not_found
    except ConflictError as replaced:
        raise replaced from error


def read_stored(path: ObjectPath, table: Table) -> StoredTable:
    """The materialized table that the schema of a handle carries."""
    schema = table.table_schema
    return StoredTable(path=path, table=table, definition=definition_of(schema), upkeep=upkeep_of(schema))


def store(stored: StoredTable, upkeep: Upkeep, plan: AlterationPlan | None = None) -> StoredTable:
    """Writes the state of a table, and what a plan changes in its definition, with the next epoch, and returns what is there then.

    Raises ConflictError if another session has changed it since it was read, and what altering a table raises.
    """
    with _not_faster(stored):
        return read_stored(stored.path, stored.table.alter(_changes(stored, upkeep, plan)))


def check_storable(stored: StoredTable, plan: AlterationPlan, *, filled: bool) -> None:
    """Raises what storing a plan would raise, as far as the table decides that: nothing is changed. ``filled``: the table is
    refreshed before."""
    try:
        with _not_faster(stored):
            check_alteration(stored.table.context, _changes(stored, stored.upkeep, plan), filled=filled)
    except UnsupportedError as error:
        if "STAGE" not in error.message:
            error.message = f"{error.message}. {WAY_OUT}"
            error.args = (error.message,)
        raise


@contextmanager
def _not_faster(stored: StoredTable) -> Iterator[None]:
    """Says of a table that is not as it was read that another session has changed it, in place of the option that shows it."""
    try:
        yield
    except ConflictError as error:
        if error.kind != "option-changed":
            raise
        raise ConflictError(
            f"Materialized table {stored.path} was changed by another session meanwhile; nothing was changed here: repeat the "
            "statement",
            kind="materialized-changed",
        ) from error


def rules_of(settings: Settings) -> FreshnessRules:
    """The rules of freshness that hold in a session."""
    return FreshnessRules(
        threshold_ms=settings.millis(FRESHNESS_THRESHOLD),
        continuous_ms=settings.millis(CONTINUOUS_FRESHNESS),
        full_ms=settings.millis(FULL_FRESHNESS),
    )


def check_not_initializing(stored: StoredTable, operation: str) -> None:
    """Raises InvalidInputError for a table that another session is about to make."""
    if stored.upkeep.status is RefreshStatus.INITIALIZING:
        raise InvalidInputError(
            f"Materialized table {stored.path} is being initialized and does not support {operation} operation.",
            kind="materialized-status",
        )


def _changes(stored: StoredTable, upkeep: Upkeep, plan: AlterationPlan | None) -> list[to.SchemaChange]:
    definition = stored.definition if plan is None else plan.new
    before = stored.table.options()
    after = options_of(definition, replace(upkeep, epoch=stored.upkeep.epoch + 1))
    handled = options_of(stored.definition, stored.upkeep)
    changes: list[to.SchemaChange] = [_unchanged(stored)]
    if plan is not None:
        changes += _of_plan(plan)
    changes += [to.SetOption(key, text) for key, text in after.items() if key != TYPE.key and before.get(key) != text]
    changes += [to.RemoveOption(key) for key in handled if key not in after and key in before]
    return changes


def _unchanged(stored: StoredTable) -> to.RequireOption:
    epoch = stored.upkeep.epoch
    # A table that another engine made has none.
    return to.RequireOption(EPOCH, str(epoch) if epoch else None)


def _of_plan(plan: AlterationPlan) -> list[to.SchemaChange]:
    changes: list[to.SchemaChange] = [to.AddColumn((column.name,), column.type) for column in plan.appended]
    for change in plan.changes:
        match change:
            case ModifyColumns():
                changes += [to.ChangeType((after.name,), after.type) for _, after in change.columns]
            case ModifyOptions():
                changes += [to.SetOption(key, text) for key, text in change.set.items()]
                changes += [to.RemoveOption(key) for key in change.reset]
            case ModifyComment():
                changes.append(to.SetTableComment(change.comment))
    return changes
