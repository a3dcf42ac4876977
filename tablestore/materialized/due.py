"""Finds the refreshes that are due, and runs them, as any process may do at any time, and several at one time.

    due(definition, …)   the time that a refresh is due for, None if none is; pure
    refresh_due(…)       every table of a catalog whose refresh is due, sources before what is made from them, all from one set of
                         snapshots: one round; previous versions of tables that were kept for long enough go
    refresh_chain(…)     a table, due or not, behind those that it is made from: one round too

Two processes that find the same table due both refresh it; one of them lands, and the other finds nothing due any more. A
continuous table is due only where its job does not run. A workflow of another scheduler is left to that.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session
from tablestore.errors import ConflictError, TablestoreError
from tablestore.materialized.continuous import is_alive
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.freshness import RefreshMode, next_due
from tablestore.materialized.incremental.holding import hold_back
from tablestore.materialized.incremental.refreshreport import RefreshReport
from tablestore.materialized.incremental.sources import Round, Sources, find_sources
from tablestore.materialized.materializedtable import RefreshStatus
from tablestore.materialized.refreshing import (
    CONFLICTS,
    RefreshNote,
    last_refresh,
    partition_of_schedule,
    refresh_now,
    refresh_once,
    refresh_session,
    refresh_until_landed,
    zone_of,
)
from tablestore.materialized.storing import StoredTable, check_not_initializing, open_materialized
from tablestore.materialized.tableversions import drop_expired
from tablestore.materialized.workflows import EMBEDDED, scheduler_of
from tablestore.options import is_materialized, partition_date_column
from tablestore.table.table import Table

# A table that was left alone for long catches up over several calls.
MOST_PERIODS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRefresh:
    """A refresh that was due, for a time: what it did, or why it failed. It is due again then."""

    table: ObjectPath
    schedule_ms: int
    report: RefreshReport | None = None
    error: TablestoreError | None = None


def due(stored: StoredTable, last: RefreshNote | None, now_ms: int) -> int | None:
    """The time that a refresh of an active table is due for; None if none is."""
    if stored.upkeep.status is not RefreshStatus.ACTIVATED:
        return None
    definition = stored.definition
    return next_due(
        definition.freshness,
        definition.refresh_mode,
        last_ms=None if last is None else last.schedule_ms,
        since_ms=stored.upkeep.since_ms,
        now_ms=now_ms,
        zone=zone_of(stored),
        each=any(partition_date_column(key) for key in definition.options),
    )


def refresh_due(
    session: Session, now_ms: int | None = None, skip: Callable[[ObjectPath], bool] | None = None
) -> Iterator[DueRefresh]:
    """Refreshes what is due now in the current catalog, one after another as they are taken. An error of one table does not keep
    the others. ``skip``: the tables that are left out this time."""
    time_ms = session.clock.now_ms() if now_ms is None else now_ms
    this_round = Round()
    paths = _in_order(session)
    # Asked once for each table: a caller may count how often it leaves one out.
    due_paths = [path for path in paths if skip is None or not skip(path)]
    _begin(session, due_paths, time_ms, this_round)
    for path in due_paths:
        yield from _refresh_table(session, path, time_ms, this_round)
    for path in paths:
        drop_expired(session, path, time_ms)


def _begin(session: Session, paths: Sequence[ObjectPath], now_ms: int, this_round: Round) -> None:
    """Lets a round read the newest snapshots of the sources of what is due; they stay until each table has its refresh."""
    for path in paths:
        # The refresh of a table says what is wrong with it.
        with suppress(TablestoreError):
            stored = open_materialized(session, path)
            if _is_left_to_others(session, stored) or due(stored, last_refresh(stored), now_ms) is None:
                continue
            _hold_sources(session, stored, this_round)


def _hold_sources(session: Session, stored: StoredTable, this_round: Round) -> None:
    sources = find_sources(refresh_session(session), stored.definition.query, this_round)
    if isinstance(sources, Sources):
        hold_back(stored.table, sources.sources)


def refresh_chain(session: Session, path: ObjectPath) -> Iterator[DueRefresh]:
    """Refreshes a table behind the materialized tables that it is made from, through others too, all from one set of snapshots.

    Of these, one that is suspended, or refreshed partition by partition, is read as it is. The first that fails is the last that
    is refreshed. Raises NotFoundError, InvalidInputError for another table.
    """
    check_not_initializing(open_materialized(session, path), "refresh")
    now_ms, this_round, chain = session.clock.now_ms(), Round(), _chain(session, path)
    for member in chain:
        # The refresh of a table says what is wrong with it.
        with suppress(TablestoreError):
            _hold_sources(session, open_materialized(session, member), this_round)

    def once(stored: StoredTable) -> RefreshReport:
        return refresh_now(session, stored, in_round=this_round)

    for member in chain:
        try:
            stored = open_materialized(session, member)
            report = refresh_until_landed(session, stored, once)
            this_round.move_on(stored.table)
        except TablestoreError as error:
            yield DueRefresh(table=member, schedule_ms=now_ms, error=error)
            return
        yield DueRefresh(table=member, schedule_ms=now_ms, report=report)


def _chain(session: Session, path: ObjectPath) -> Sequence[ObjectPath]:
    """A table behind those that are refreshed with it."""
    sorter: TopologicalSorter[ObjectPath] = TopologicalSorter()
    waiting, seen = [path], {path}
    while waiting:
        current = waiting.pop()
        sources = [source for source in _sources(session, current) if _is_refreshed_with_others(session, source)]
        sorter.add(current, *sources)
        waiting += [source for source in sources if source not in seen]
        seen.update(sources)
    return _sorted(sorter, tuple(seen))


def _is_refreshed_with_others(session: Session, path: ObjectPath) -> bool:
    try:
        stored = open_materialized(session, path)
    except TablestoreError:
        return False
    by_partition = any(partition_date_column(key) for key in stored.definition.options)
    return stored.upkeep.status is RefreshStatus.ACTIVATED and not by_partition


def refresh_scheduled(
    session: Session, stored: StoredTable, last: RefreshNote | None, schedule_ms: int, in_round: Round | None = None
) -> RefreshReport:
    """The refresh that a table has at a time of its schedule: of the partition that has just closed, where it says so."""
    partition = None if stored.definition.refresh_mode is RefreshMode.CONTINUOUS else partition_of_schedule(stored, schedule_ms)
    return refresh_once(session, stored, before=last, schedule_ms=schedule_ms, partition=partition, in_round=in_round)


def _refresh_table(session: Session, path: ObjectPath, now_ms: int, this_round: Round) -> Iterator[DueRefresh]:
    for _ in range(MOST_PERIODS):
        schedule = now_ms
        try:
            stored = open_materialized(session, path)
            last = last_refresh(stored)
            when = None if _is_left_to_others(session, stored) else due(stored, last, now_ms)
            if when is None:
                return
            schedule = when
            report = refresh_scheduled(session, stored, last, schedule, this_round)
            # Tables that are made from it read these rows.
            this_round.move_on(stored.table)
        except ConflictError as error:
            if error.kind in CONFLICTS:
                # Somebody else was faster: what is due now is read anew.
                continue
            yield DueRefresh(table=path, schedule_ms=schedule, error=error)
            return
        except TablestoreError as error:
            yield DueRefresh(table=path, schedule_ms=schedule, error=error)
            return
        yield DueRefresh(table=path, schedule_ms=schedule, report=report)
        if report.mode == "none":
            return


def _is_left_to_others(session: Session, stored: StoredTable) -> bool:
    """True if a running job, or another scheduler, refreshes the table."""
    handler = stored.upkeep.handler
    if stored.definition.refresh_mode is RefreshMode.CONTINUOUS:
        return is_alive(session, handler)
    return handler is not None and scheduler_of(handler) != EMBEDDED


def _in_order(session: Session) -> Sequence[ObjectPath]:
    """The materialized tables of the current catalog, each behind those that it is made from."""
    tables = dict(materialized_tables(session, session.catalogs.current))
    sorter: TopologicalSorter[ObjectPath] = TopologicalSorter()
    for path in tables:
        sorter.add(path, *(source for source in _sources(session, path) if source in tables and source != path))
    return _sorted(sorter, tuple(tables))


def _sources(session: Session, path: ObjectPath) -> Sequence[ObjectPath]:
    try:
        return sources_of(open_materialized(session, path).definition.query)
    except TablestoreError:
        # Its refresh says what is wrong with it.
        return ()


def _sorted(sorter: "TopologicalSorter[ObjectPath]", unsorted: Sequence[ObjectPath]) -> Sequence[ObjectPath]:
    try:
        return tuple(sorter.static_order())
    except CycleError:
        # Two were altered at one time. Each refresh still lands whole.
        return unsorted


def materialized_tables(session: Session, catalog: str, database: str | None = None) -> Iterator[tuple[ObjectPath, Table]]:
    """The materialized tables of a catalog, or of one of its databases; what cannot be read is left out."""
    for database_name in session.catalogs.databases(catalog) if database is None else (database,):
        for name in session.catalogs.tables(catalog, database_name):
            path = ObjectPath(catalog, database_name, name)
            try:
                table = session.open_table(path)
            except TablestoreError:
                continue
            if isinstance(table, Table) and is_materialized(table.options()):
                yield path, table
