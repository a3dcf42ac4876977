"""Statements that change an existing table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore.sql.source import NOWHERE, Fragment, Path, Span
from tablestore.sql.statements.definition import Check, PhysicalColumn
from tablestore.types.datatypes import DataType

# A partition as written: column -> value as text, None for NULL.
PartitionSpec = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlacement:
    """``FIRST``, or ``AFTER column``."""

    after: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumnAction:
    """``ADD [COLUMN] name type … [FIRST | AFTER x]``; ``path`` leads into a struct if it has several parts."""

    path: tuple[str, ...]
    column: PhysicalColumn
    place: ColumnPlacement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumnAction:
    """``DROP [COLUMN] [IF EXISTS] name``."""

    path: tuple[str, ...]
    if_exists: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumnAction:
    """``RENAME [COLUMN] old TO new``."""

    path: tuple[str, ...]
    new_name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumn:
    """``MODIFY name type …``, ``ALTER COLUMN name TYPE|COMMENT|SET NOT NULL|DROP NOT NULL|SET DEFAULT|DROP DEFAULT|FIRST …``.

    What is None stays, also the nullability: ``nullable`` says it, not ``type``. ``drop_default`` takes a default away.
    """

    path: tuple[str, ...]
    type: DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drop_default: bool = False
    place: ColumnPlacement | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint:
    """``ADD [CONSTRAINT name] CHECK (condition)``."""

    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """``DROP CONSTRAINT [IF EXISTS] name``."""

    name: str
    if_exists: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """``[PARTITION spec] SET ('key' = 'value', …)``, also ``SET 'change-tracking' = 'false'`` and ``SET TBLPROPERTIES``."""

    options: Mapping[str, str]
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions:
    """``[PARTITION spec] RESET ('key', …)`` and ``UNSET TBLPROPERTIES``."""

    keys: tuple[str, ...]
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetComment:
    """``COMMENT 'text'`` and ``SET COMMENT 'text'``; None takes it away."""

    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTo:
    """``RENAME TO path``."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    """``DROP [IF EXISTS] PARTITION spec [, PARTITION spec …]``."""

    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """``[PARTITION spec] COMPACT``: synchronous."""

    partition: PartitionSpec | None = None


AlterAction = (
    AddColumnAction
    | DropColumnAction
    | RenameColumnAction
    | ModifyColumn
    | AddConstraint
    | DropConstraint
    | SetOptions
    | ResetOptions
    | SetComment
    | RenameTo
    | DropPartitions
    | Compact
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """``ALTER TABLE [IF EXISTS] path action``: ``actions`` are all done or none; only column and option changes come together."""

    path: Path
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterView:
    """``ALTER VIEW [IF EXISTS] path AS query | RENAME TO path | SET TBLPROPERTIES (…) | UNSET TBLPROPERTIES (…)``."""

    path: Path
    action: Fragment | RenameTo | SetOptions | ResetOptions
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction:
    """``ALTER FUNCTION [IF EXISTS] path AS 'class_name' [LANGUAGE language]``."""

    path: Path
    class_name: str
    language: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTable:
    """``RESTORE [TABLE] path TO VERSION AS OF version | TIMESTAMP AS OF time``; ``kind`` in lower case, ``value`` as Python's."""

    path: Path
    kind: str
    value: str | int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeTable:
    """``ANALYZE TABLE path COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]``; ``columns`` None: all.

    ``refused``: the word that asks for statistics which a managed table has not; ``text``: the statement itself, for an engine
    whose own table that is.
    """

    path: Path
    columns: tuple[str, ...] | None = ()
    refused: str | None = None
    text: Fragment = field(default=Fragment(""), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable:
    """``TRUNCATE TABLE path [PARTITION spec]``."""

    path: Path
    partition: PartitionSpec | None = None
