"""Decides which statements that change something a restricted session runs, where its restrictions allow changes.

    runs      rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, RESTORE
              tables and databases: CREATE and DROP, and ALTER of columns, comments and names
    refused   all else: what stores an expression, sets up a connector or a log, or names a place, a class or a catalog

Options say where files and topics lie, so a text sets only those of :data:`SETTABLE`. The queries of these statements are contained
as any other of a restricted session. Pure.
"""

from collections.abc import Iterable

from tablestore.sql.statements.alter import (
    AddColumnAction,
    AlterAction,
    AlterTable,
    DropColumnAction,
    DropPartitions,
    ModifyColumn,
    RenameColumnAction,
    RenameTo,
    RestoreTable,
    SetComment,
    SetOptions,
    TruncateTable,
)
from tablestore.sql.statements.definition import CreateDatabase, CreateTable, Drop, DropDatabase, PhysicalColumn
from tablestore.sql.statements.rows import Delete, Insert, Merge, Update

SETTABLE = frozenset(
    {
        *("bucket", "bucket-key", "merge-engine", "sequence.field", "sequence.field.sort-order", "changelog-producer"),
        *("file.format", "file.compression", "deletion-vectors.enabled", "target-file-size", "clustering.columns"),
        *("partial-update.remove-record-on-delete", "aggregation.remove-record-on-delete", "ignore-delete"),
    }
)
_ACTIONS = (
    *(AddColumnAction, DropColumnAction, RenameColumnAction, ModifyColumn),
    *(SetComment, SetOptions, RenameTo, DropPartitions),
)


def refused_change(statement: object) -> str | None:
    """The part of a statement that does not run, in words; None if all of it does."""
    match statement:
        case Insert() | Update() | Delete() | Merge() | TruncateTable() | RestoreTable() | DropDatabase():
            return None
        case CreateDatabase(options=options):
            return _options(options)
        case CreateTable():
            return _refused_table(statement)
        case Drop(what=what, temporary=temporary):
            return None if what in ("table", "view") and not temporary else f"DROP {'TEMPORARY ' * temporary}{what.upper()}"
        case AlterTable(actions=actions):
            return next(filter(None, map(_refused_action, actions)), None)
    return f"a statement of the kind {type(statement).__name__}"


def _refused_table(statement: CreateTable) -> str | None:
    if statement.temporary:
        return "CREATE TEMPORARY TABLE"
    if statement.provider is not None:
        return "CREATE TABLE … USING"
    if statement.like is not None:
        return "CREATE TABLE … LIKE"
    if statement.checks or statement.watermark is not None:
        return "CREATE TABLE with an expression that is stored (CHECK, WATERMARK)"
    for column in statement.columns or ():
        if not isinstance(column, PhysicalColumn):
            return f"CREATE TABLE with the column {column.name}, which is no stored one,"
    return _options(statement.options)


def _refused_action(action: AlterAction) -> str | None:
    if isinstance(action, SetOptions):
        return "ALTER TABLE … PARTITION … SET" if action.partition is not None else _options(action.options)
    return None if isinstance(action, _ACTIONS) else f"ALTER TABLE with {type(action).__name__}"


def _options(keys: Iterable[str]) -> str | None:
    unknown = [key for key in keys if key not in SETTABLE and not key.startswith("fields.")]
    return f"a statement that sets the option {unknown[0][:80]!r} (it may set {', '.join(sorted(SETTABLE))})" if unknown else None
