"""Statements that create, alter and drop materialized tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore.sql.source import NOWHERE, Fragment, Path, Span
from tablestore.sql.statements.alter import PartitionSpec, ResetOptions, SetOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``INTERVAL 'interval' unit``, as written."""

    interval: str
    unit: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMaterializedTable:
    """``CREATE [OR ALTER] MATERIALIZED TABLE path … AS query``.

    A distribution is among the options. ``freshness`` and ``refresh_mode`` (in upper case) are None where nothing is said.
    """

    path: Path
    query: Fragment
    or_alter: bool = False
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    freshness: Interval | None = None
    refresh_mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuery:
    """``AS query``."""

    query: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFreshness:
    """``SET FRESHNESS = INTERVAL …``."""

    freshness: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRefreshMode:
    """``SET REFRESH_MODE = CONTINUOUS|FULL``, in upper case."""

    refresh_mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """``SUSPEND``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """``RESUME [WITH (…)]``: ``options`` hold for this run only."""

    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """``REFRESH [PARTITION (…)] [VERIFY]``."""

    partition: PartitionSpec | None = None
    verify: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """``STAGE [clauses of CREATE] AS query``: another version of the table, beside it.

    ``given``: the first words of the clauses that are written, ``(`` for the key. All others stay as they are.
    """

    declared: CreateMaterializedTable
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """``COMPARE``: the table with its staged version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """``PROMOTE``: the staged version takes the place of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """``ROLLBACK``: the version before the last promotion comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """``DISCARD``: the other versions go."""


EvolutionAction = Stage | Compare | Promote | Rollback | Discard
MaterializedAction = (
    SetQuery | SetFreshness | SetRefreshMode | SetOptions | ResetOptions | Suspend | Resume | Refresh | EvolutionAction
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterMaterializedTable:
    """``ALTER MATERIALIZED TABLE path action``."""

    path: Path
    action: MaterializedAction


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMaterializedTable:
    """``DROP MATERIALIZED TABLE [IF EXISTS] path``."""

    path: Path
    if_exists: bool = False
