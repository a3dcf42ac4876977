"""Keeps the snapshots that a cursor points to: expiry of a source waits for the tables that are made from it.

A hold is taken before a snapshot is first read, and moves on some time after the refresh has landed; so a crash leaves it too
early, never too late. It says where its target lies. That of a target that never came into being, or has gone, is found by this
(:mod:`tablestore.table.creation.deadleases`).
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress

from tablestore.environment.session.session import Session
from tablestore.errors import ConflictError, TablestoreError
from tablestore.materialized.incremental.refreshcursor import Point, parse_cursor, stored_cursor
from tablestore.materialized.incremental.sources import RefreshSource, Sources, find_sources
from tablestore.options import MATERIALIZED_DEFINITION_QUERY
from tablestore.sql.source import Fragment
from tablestore.store.context import TableContext
from tablestore.store.history.retention import snapshot_retention
from tablestore.store.history.retentionleases import RetentionLeases, target_hold
from tablestore.table.table import Table


def hold_back(target: Table, sources: Sequence[RefreshSource]) -> None:
    """Sees to it that no snapshot from those of the sources on expires."""
    for source in sources:
        holds, name = _holds(source.table), _name(target)
        held, first = holds.find(name), source.now.id if source.now else 1
        if held is None or held.next_snapshot > first:
            _take(holds, target, first)


def let_go_before(target: Table, sources: Sequence[RefreshSource]) -> None:
    """Lets the snapshots before those of the sources expire: a refresh that read these has landed.

    That is two files to be made durable, so it waits while a source would keep them anyway (``snapshot.num-retained.min``).
    """
    for source in sources:
        context, name, first = source.table.context, _name(target), source.now.id if source.now else 1
        due = first - context.once(_snapshots_kept)
        seen, place = context.shared.once(_SeenHolds).next_snapshot, (context.files.root_uri, context.table_uuid, name)
        if seen.get(place, 0) > due:
            continue
        holds = _holds(source.table)
        held = holds.find(name)
        if held is not None and held.next_snapshot <= due:
            # Another refresh has moved it meanwhile.
            with suppress(ConflictError):
                held = holds.move(held, first)
        if held is not None:
            seen[place] = held.next_snapshot


def _snapshots_kept(context: TableContext) -> int:
    return snapshot_retention(context.schema.options).num_min


class _SeenHolds:
    """Remembers the first snapshot that each hold kept when it was last read: until that is due to go, nothing is to be moved.

    One that was taken anew meanwhile, for older snapshots, moves later than it could.
    """

    def __init__(self) -> None:
        self.next_snapshot: dict[tuple[str, str | None, str], int] = {}


def let_go(target: Table, sources: Sequence[RefreshSource]) -> None:
    """Lets all snapshots of the sources expire: no cursor points to them any more."""
    for source in sources:
        _holds(source.table).release(_name(target))


def hold_cursor(session: Session, target: Table) -> None:
    """Sees to it that no snapshot from those of the target's own cursor on expires: its rows came from another table."""
    for point, table in _of_points(session, _points(target)):
        holds, name, first = _holds(table), _name(target), point.snapshot_id or 1
        held = holds.find(name)
        if held is None or held.next_snapshot > first:
            _take(holds, target, first)


def held_sources(session: Session, target: Table, query: str | Fragment) -> Mapping[str, Table]:
    """The tables of which a target may hold snapshots, by their whole names; those that are gone are left out."""
    held = {point.name: table for point, table in _of_points(session, _points(target))}
    # A refresh that failed has taken holds too, and noted no cursor.
    with suppress(TablestoreError):
        sources = find_sources(session, query)
        held |= {source.name: source.table for source in (sources.sources if isinstance(sources, Sources) else ())}
    return held


def release(target: Table, held: Mapping[str, Table], *, but: Container[str] = ()) -> None:
    """Lets all snapshots of tables expire, whatever the target has held of them. ``but``: names of those that it still reads."""
    for name, table in held.items():
        if name not in but:
            with suppress(TablestoreError):
                _holds(table).release(_name(target))


def release_sources(session: Session, target: Table) -> None:
    """Releases as :func:`release` does, for all sources: the target is dropped, or no longer refreshed."""
    release(target, held_sources(session, target, target.options().get(MATERIALIZED_DEFINITION_QUERY.key, "")))


def _points(target: Table) -> Sequence[Point]:
    cursor = parse_cursor(stored_cursor(target.context.snapshots.latest()))
    return cursor.points if cursor is not None else ()


def _of_points(session: Session, points: Sequence[Point]) -> Iterator[tuple[Point, Table]]:
    """The tables of points that are still there."""
    from tablestore.sql.parse.statement import parse_path

    for point in points:
        with suppress(TablestoreError):
            table = session.find(parse_path(point.name))
            if isinstance(table, Table):
                yield point, table


def _take(holds: RetentionLeases, target: Table, first: int) -> None:
    owner = f"materialized table {target.name}"
    holds.take(_name(target), first, owner=owner, ids=target.context.ids, target=target.location)


def _holds(table: Table) -> RetentionLeases:
    return RetentionLeases(table.context.files)


def _name(target: Table) -> str:
    return target_hold(target.context.table_uuid)
