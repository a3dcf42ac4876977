"""Runs the blue/green evolution of a materialized table: STAGE, COMPARE, PROMOTE, ROLLBACK and DISCARD.

    STAGE      the new version is built beside the table, and readers see nothing of it until it is whole
    PROMOTE    the staged version is refreshed to now -> the current one is kept as the previous one -> they change places
    ROLLBACK   the same with the previous version, and the current one is kept as the staged one

A version takes the place of another one in one step, with definition, columns and rows, refreshed to now. Refreshes and other
statements of the version that was there do not land any more; of two sessions that replace it one wins, the other gets a
ConflictError. Whether the table is suspended is no part of a version.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.environment.definition.tabledefinition import check_own_options
from tablestore.environment.jobs import Job
from tablestore.environment.result import Result, done
from tablestore.environment.session.catalogs import sweep_dead
from tablestore.environment.session.session import Session
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TablestoreError,
)
from tablestore.materialized.declaring import declared_freshness, with_query
from tablestore.materialized.difference import check_declared, settled
from tablestore.materialized.evolution.comparing import CompareReport, compare
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.freshness import LogicalRefreshMode, RefreshMode
from tablestore.materialized.materializedtable import MaterializedTable, RefreshStatus, Upkeep, default_constraint
from tablestore.materialized.newversion import Version, build, changed_meanwhile
from tablestore.materialized.refreshing import check_formats
from tablestore.materialized.storing import (
    StoredTable,
    check_not_initializing,
    find_materialized,
    open_materialized,
    rules_of,
    while_there,
)
from tablestore.materialized.tableversions import (
    VERSION,
    VERSION_OF,
    Role,
    check_is_no_version,
    drop_stored,
    find_version,
    get_version,
    version_id,
    version_path,
)
from tablestore.materialized.upkeep import PreparedRefresh, end_upkeep, prepare_upkeep
from tablestore.options import partition_date_column, with_options
from tablestore.sql.source import Path
from tablestore.sql.statements.materialized import Compare, Discard, EvolutionAction, Promote, Rollback, Stage
from tablestore.types.datatypes import with_nullable

COMPARE_SCHEMA = pa.schema(
    [
        ("version", pa.string()),
        ("only_current", pa.int64()),
        ("only_other", pa.int64()),
        ("changed", pa.int64()),
        ("columns_added", pa.string()),
        ("columns_removed", pa.string()),
        ("columns_retyped", pa.string()),
        ("sources_apart", pa.string()),
    ]
)


def evolve(session: Session, written: Path, action: EvolutionAction, source: Source) -> Result:
    """Runs a statement about the versions of a table.

    Raises NotFoundError, InvalidInputError, UnsupportedError, AlreadyExistsError, ConflictError, and what a query raises.
    """
    if isinstance(action, Compare):
        return _as_row(compare_versions(session, written, source))
    stored = find_materialized(session, written, source)

    def act() -> None:
        match action:
            case Stage():
                _stage(session, stored, _restated(session, stored, action, source))
            case Promote():
                _swap(session, stored, get_version(session, stored, Role.STAGED), kept_as=Role.PREVIOUS)
            case Rollback():
                _swap(session, stored, get_version(session, stored, Role.PREVIOUS), kept_as=Role.STAGED)
            case Discard():
                drop_stored(session, _newest_beside(session, stored)[1])

    return _as_job(session, stored, act)


def stage_definition(session: Session, stored: StoredTable, definition: MaterializedTable) -> Result:
    """Stages a version of a table that is declared as a whole. Raises as :func:`evolve`."""
    return _as_job(session, stored, lambda: _stage(session, stored, definition))


def _as_job(session: Session, stored: StoredTable, act: Callable[[], None]) -> Result:
    check_not_initializing(stored, "alter")
    check_is_no_version(stored)

    def work(_: Job[Result]) -> Result:
        sweep_dead(session.catalogs.get(stored.path.catalog))
        with _one_wins(session, stored):
            act()
        return done()

    return session.jobs.run(work)


def compare_versions(session: Session, written: Path, source: Source = NO_SOURCE) -> CompareReport:
    """Compares a table with its staged version, or where there is none with the previous one."""
    stored = find_materialized(session, written, source)
    with while_there(stored):
        role, other = _newest_beside(session, stored)
    with while_there(stored, other):
        return compare(session, stored, other, role)


def _stage(session: Session, stored: StoredTable, definition: MaterializedTable) -> None:
    check_declared(definition)
    check_formats(definition.options)
    versions = [version_path(stored.path, role) for role in Role]
    if read := [path for path in sources_of(definition.query) if path in versions]:
        raise InvalidInputError(
            f"the query reads {read[0]}, which is a version of {stored.path} and goes: read the tables that it is made from",
            kind="materialized-cycle",
        )
    # Key columns become NOT NULL anew, and those that are none any more may be NULL.
    fields = tuple(replace(field, type=with_nullable(field.type, True)) for field in definition.fields)
    definition = replace(definition, fields=fields)
    staged_before = find_version(session, stored, Role.STAGED)
    version = _beside(stored, Role.STAGED, definition, like=stored, version=session.jobs.ids.uuid(), now_ms=session.clock.now_ms())
    staged = build(session, version, over=staged_before)
    if not _stays(session, stored):
        drop_stored(session, staged)
        raise changed_meanwhile(stored.path)


def _stays(session: Session, stored: StoredTable) -> bool:
    """True if a table is the one that it was: what lies beside another one is no version of it."""
    try:
        current = open_materialized(session, stored.path)
    except (NotFoundError, InvalidInputError):
        return False
    return current.table.context.table_uuid == stored.table.context.table_uuid


def _restated(session: Session, stored: StoredTable, action: Stage, source: Source) -> MaterializedTable:
    """The definition that a statement stages: what it leaves out is as it was."""
    old, declared, clauses = stored.definition, action.declared, action.given
    check_own_options(declared.options, source)
    new, _ = with_query(session, old, declared.query, source, stored.path, declared.path)
    if "(" in clauses:
        constraint = declared.constraint or default_constraint(declared.primary_key)
        new = replace(new, primary_key=declared.primary_key, constraint=constraint)
    if "PARTITIONED" in clauses:
        new = replace(new, partition_by=declared.partitioned_by)
    if "COMMENT" in clauses:
        new = replace(new, comment=declared.comment)
    new = replace(new, options=with_options(old.options, declared.options))
    if declared.freshness is not None or declared.refresh_mode is not None:
        freshness = None if old.default_freshness else old.freshness
        if declared.freshness is not None:
            freshness = declared_freshness(declared.freshness, source)
        logical = old.logical_mode if declared.refresh_mode is None else LogicalRefreshMode(declared.refresh_mode)
        settled_freshness, mode = settled(old, freshness, logical, rules_of(session.settings))
        new = replace(
            new, freshness=settled_freshness, default_freshness=freshness is None, logical_mode=logical, refresh_mode=mode
        )
    return new


def _beside(
    stored: StoredTable, role: Role, definition: MaterializedTable, *, like: StoredTable, version: str, now_ms: int
) -> Version:
    """A version beside a table: nothing refreshes it by itself."""
    return Version(
        path=version_path(stored.path, role),
        definition=definition,
        upkeep=Upkeep(status=RefreshStatus.SUSPENDED, since_ms=now_ms),
        like=like,
        marks={VERSION: version, VERSION_OF: stored.path.name},
    )


def _swap(session: Session, stored: StoredTable, other: StoredTable, *, kept_as: Role) -> None:
    """Puts a version in the place of the current one, which is kept beside the table."""
    now_ms = session.clock.now_ms()
    built: list[StoredTable] = []

    def keep() -> None:
        # Not earlier: what was kept there before stays if the version cannot be made.
        version = _beside(stored, kept_as, stored.definition, like=stored, version=version_id(stored), now_ms=now_ms)
        built.append(build(session, version, over=find_version(session, stored, kept_as), rows=stored, refreshes=False))

    upkeep = _Upkeep.plan(session, stored, other.definition, now_ms)
    try:
        version = Version(
            path=stored.path,
            definition=other.definition,
            upkeep=upkeep.stored,
            like=other,
            marks={VERSION: version_id(other)},
        )
        # A table that is refreshed partition by partition is not made anew: its schedule goes on from the rows that it has.
        by_partition = any(partition_date_column(key) for key in other.definition.options)
        build(session, version, over=stored, rows=other, refreshes=not by_partition, once_whole=keep)
    except CommitOutcomeUnknown:
        # The version may be there.
        upkeep.begin()
        raise
    except BaseException:
        upkeep.take_back()
        if built and not _stays(session, stored):
            drop_stored(session, built[0])
        raise
    upkeep.turn(session, stored)
    drop_stored(session, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upkeep:
    """The upkeep of the table after a swap. ``prepared``: begins then; ``ends``: what refreshed it before ends."""

    stored: Upkeep
    prepared: PreparedRefresh | None
    ends: bool

    @classmethod
    def plan(cls, session: Session, stored: StoredTable, after: MaterializedTable, now_ms: int) -> "_Upkeep":
        before, upkeep = stored.definition, replace(stored.upkeep, epoch=stored.upkeep.epoch + 1)
        if before.refresh_mode is after.refresh_mode is RefreshMode.FULL and before.freshness == after.freshness:
            # The workflow reads the definition each time.
            return cls(stored=upkeep, prepared=None, ends=False)
        if upkeep.status is RefreshStatus.SUSPENDED:
            # RESUME makes what it needs.
            return cls(stored=replace(upkeep, handler=None), prepared=None, ends=True)
        prepared = prepare_upkeep(session, stored.path, after)
        return cls(stored=replace(upkeep, handler=prepared.handler, since_ms=now_ms), prepared=prepared, ends=True)

    def take_back(self) -> None:
        if self.prepared is not None:
            self.prepared.take_back()

    def turn(self, session: Session, stored: StoredTable) -> None:
        if self.ends:
            end_upkeep(session, stored)
        self.begin()

    def begin(self) -> None:
        if self.prepared is not None:
            self.prepared.begin()


def _newest_beside(session: Session, stored: StoredTable) -> tuple[Role, StoredTable]:
    """The staged version, or where there is none the previous one. Raises NotFoundError."""
    for role in (Role.STAGED, Role.PREVIOUS):
        if (version := find_version(session, stored, role)) is not None:
            return role, version
    raise NotFoundError(
        f"materialized table {stored.path} has no other version: ALTER MATERIALIZED TABLE … STAGE AS query makes one",
        kind="no-such-version",
    )


@contextmanager
def _one_wins(session: Session, stored: StoredTable) -> Iterator[None]:
    """Turns whatever goes wrong because another session was faster into a ConflictError that says so."""
    try:
        yield
    except CommitOutcomeUnknown:
        raise
    except TablestoreError as error:
        raced = isinstance(error, ConflictError) or (isinstance(error, AlreadyExistsError) and error.kind == "table-exists")
        try:
            current = open_materialized(session, stored.path)
            raced = raced or (current.upkeep.epoch, version_id(current)) != (stored.upkeep.epoch, version_id(stored))
        except NotFoundError:
            raced = True
        except TablestoreError:
            # The error that is under way says what went wrong.
            pass
        if not raced or error.kind == "materialized-changed":
            raise
        raise changed_meanwhile(stored.path) from error


def _as_row(report: CompareReport) -> Result:
    row = {
        "version": report.role.value,
        "only_current": report.only_current,
        "only_other": report.only_other,
        "changed": report.changed,
        "columns_added": ", ".join(report.columns_added),
        "columns_removed": ", ".join(report.columns_removed),
        "columns_retyped": ", ".join(report.columns_retyped),
        "sources_apart": ", ".join(report.apart),
    }
    return Result(pa.Table.from_pylist([row], schema=COMPARE_SCHEMA))
