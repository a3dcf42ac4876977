"""Measures how fresh a materialized table is, and what its refreshes did, from its snapshots and those of its sources.

    target   the freshness that it declares
    lag      the age of the oldest commit of a source that its rows do not show yet; 0 if they show all

A target is no promise: a table is *late* while its lag is above it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session
from tablestore.errors import FormatError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.materialized.due import materialized_tables
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.freshness import RefreshMode
from tablestore.materialized.incremental.refreshcursor import RefreshCursor, parse_cursor, stored_cursor
from tablestore.materialized.lasterror import LastError, shown_error
from tablestore.materialized.materializedtable import RefreshStatus
from tablestore.materialized.refreshing import RefreshNote, note_in
from tablestore.materialized.storing import StoredTable, read_stored
from tablestore.materialized.tableversions import is_version
from tablestore.options import is_materialized
from tablestore.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRefresh:
    """A refresh that landed. ``took_ms``: from its start to its commit.

    ``rows_in`` are the changed rows of the sources that were read, ``rows_out`` the rows that were written; None of a full refresh,
    of which nobody counts them. ``rows_more``: how many more rows the files of the table had behind it.
    """

    snapshot_id: int
    at_ms: int
    took_ms: int
    mode: str
    reason: str | None
    rows_in: int | None
    rows_out: int | None
    rows_more: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessFigures:
    """One table. ``lag_ms`` is None where a source cannot be read; ``error`` is why its last refresh or alteration failed."""

    table: ObjectPath
    status: RefreshStatus
    mode: RefreshMode
    target_ms: int
    lag_ms: int | None
    last: PastRefresh | None
    error: LastError | None = None

    @property
    def is_late(self) -> bool:
        """True if its rows are older than they are to be."""
        return self.lag_ms is not None and self.lag_ms > self.target_ms


def figures_of(session: Session, database: str | None = None) -> Iterator[FreshnessFigures]:
    """The figures of each materialized table of the current catalog, or of one of its databases.

    Versions beside a table are left out: nobody waits for their rows. So are tables whose definition is damaged.
    """
    now_ms = session.clock.now_ms()
    for path, table in materialized_tables(session, session.catalogs.current, database):
        if (figures := figures_of_table(session, path, table, now_ms)) is not None:
            yield figures


def figures_of_table(session: Session, path: ObjectPath, table: Table, now_ms: int) -> FreshnessFigures | None:
    """The figures of one materialized table; None for a version, and where the definition is damaged."""
    if is_version(table):
        return None
    try:
        stored = read_stored(path, table)
    except FormatError:
        # One damaged definition does not hide all others; the refresh of its table says what is wrong.
        return None
    return FreshnessFigures(
        table=path,
        status=stored.upkeep.status,
        mode=stored.definition.refresh_mode,
        target_ms=stored.definition.freshness.millis,
        lag_ms=_lag(session, stored, now_ms),
        last=next(past_refreshes(stored), None),
        error=shown_error(session, stored),
    )


def figures_of_path(session: Session, database: str, name: str) -> FreshnessFigures | None:
    """The figures of one table of the current catalog; None if it is not materialized, or cannot be read."""
    path = ObjectPath(session.catalogs.current, database, name)
    try:
        table = session.open_table(path)
    except TablestoreError:
        return None
    if not isinstance(table, Table) or not is_materialized(table.options()):
        return None
    return figures_of_table(session, path, table, session.clock.now_ms())


def past_refreshes(stored: StoredTable) -> Iterator[PastRefresh]:
    """The refreshes whose snapshots are still there, newest first."""
    context = stored.table.context.ruled()
    snapshots = context.snapshots
    for number in reversed(snapshots.live_ids()):
        snapshot = snapshots.find(number)
        note = note_in(snapshot)
        # A compaction keeps the note of the rows that it compacts.
        if snapshot is not None and note is not None and not snapshot.commit_kind.keeps_rows:
            yield _past(context.shown(snapshot), note)


def _past(snapshot: Snapshot, note: RefreshNote) -> PastRefresh:
    return PastRefresh(
        snapshot_id=snapshot.id,
        at_ms=note.at_ms,
        took_ms=max(0, snapshot.time_millis - note.at_ms),
        mode=note.mode,
        reason=note.reason,
        rows_in=None if snapshot.delta_record_count is None else note.rows_in,
        rows_out=None if snapshot.delta_record_count is None else note.rows_out,
        rows_more=snapshot.delta_record_count,
    )


def _lag(session: Session, stored: StoredTable, now_ms: int) -> int | None:
    cursor = parse_cursor(stored_cursor(stored.table.context.snapshots.latest()))
    try:
        times = [_first_missing(session, path, cursor) for path in sources_of(stored.definition.query)]
    except TablestoreError:
        return None
    waiting = [time_ms for time_ms in times if time_ms is not None]
    return max(0, now_ms - min(waiting)) if waiting else 0


def _first_missing(session: Session, path: ObjectPath, cursor: RefreshCursor | None) -> int | None:
    """The time of the oldest commit that the rows do not show; None if they show all."""
    table = session.open_table(path)
    if not isinstance(table, Table):
        return None
    point = cursor.of_source(str(path)) if cursor is not None else None
    shown = point.snapshot_id or 0 if point is not None else 0
    snapshots = table.context.snapshots
    for number in snapshots.live_ids():
        snapshot = snapshots.find(number) if number > shown else None
        if snapshot is not None and not snapshot.commit_kind.keeps_rows:
            return snapshot.time_millis
    return None
