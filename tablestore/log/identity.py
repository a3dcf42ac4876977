"""Identifies the history that a position belongs to, and detects that it is no longer the table's.

    table uuid      differs: another table, or one that was dropped and made again
    snapshot name   differs: the history was replaced, say by an older copy whose ids have caught up
    not there yet   the position is ahead of the table: restored from an older copy
    expired         its successor names the snapshot that it was built on; without a successor the table's uuid has to do

Snapshots are named by their uuid; those of engines that give none by what no two commits share.
"""

import hashlib
import json
from typing import NoReturn

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.snapshot import WRITER_VERSION, Snapshot
from tablestore.log.position import LogPlace, Place, Position, done
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.context import TableContext
from tablestore.store.snapshots import PARENT_PROPERTY

_REMEMBERED = 64
_WAYS_OUT = 'begin anew: without a position, with scan="full"'


def snapshot_name(snapshot: Snapshot) -> str:
    """The name that identifies a snapshot among all that may have its id."""
    if snapshot.uuid is not None:
        return snapshot.uuid
    identifying = [snapshot.commit_user, snapshot.commit_identifier, snapshot.time_millis, snapshot.delta_manifest_list]
    return hashlib.sha256(json.dumps(identifying).encode()).hexdigest()[:32]


class Identity:
    """Names places of one table, and checks those that come back. Not thread-safe."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._names: dict[int, str | None] = {0: None}

    def check_is_there(self) -> None:
        """The table must still be there. Raises NotFoundError, ConflictError."""
        self._context.still_there()

    def note(self, snapshot: Snapshot) -> None:
        """A snapshot that was read: its name is known."""
        self._remember(snapshot.id, snapshot_name(snapshot))

    def position(self, place: Place) -> Position:
        """The place, with the history that it is of."""
        newest = place.newest if isinstance(place, LogPlace) else place.anchor
        return Position(
            table=self._context.table_uuid,
            snapshot_uuid=self.name(place.anchor),
            place=place,
            newest_uuid=self.name(newest) if newest > place.anchor else None,
        )

    def after(self, snapshot_id: int) -> Position:
        """The position behind a snapshot that has landed; 0: before all of them. Raises NotFoundError."""
        latest = self._context.snapshots.latest()
        newest = latest.id if latest else 0
        if not 0 <= snapshot_id <= newest:
            raise NotFoundError(
                f"table {self._context.files.root_uri} has no snapshot {snapshot_id} to go on behind, its newest is {newest}",
                kind="no-such-snapshot",
            )
        return self.position(done(snapshot_id))

    def checked(self, position: Position, *, is_kept: bool = False) -> Place:
        """The place of a position that is of this table's history. ``is_kept``: it was kept in the table itself.

        Raises InvalidInputError of kind ``position-table`` or ``position-history`` that names the ways out.
        """
        place = position.place
        if position.table != self._context.table_uuid:
            self._refuse_table(position)
        if place.anchor:
            self._check(position, place.anchor, position.snapshot_uuid, is_kept=is_kept)
        if isinstance(place, LogPlace) and place.newest > place.anchor:
            self._check(position, place.newest, position.newest_uuid, is_kept=is_kept)
        return place

    def _check(self, position: Position, snapshot_id: int, name: str | None, *, is_kept: bool) -> None:
        """The snapshot that a position calls by this name must be the table's."""
        context = self._context
        snapshot = self._find(snapshot_id)
        if snapshot is not None:
            if name not in (None, snapshot_name(snapshot)):
                self._refuse_history(position, f"snapshot {snapshot_id} is another one now: {snapshot_name(snapshot)}")
            self.note(snapshot)
            return
        latest = context.snapshots.latest()
        if latest is None or latest.id < snapshot_id:
            self._refuse_history(position, f"the newest snapshot is {latest.id if latest else 'none'}")
        built_on = self._parent_of(snapshot_id)
        if built_on is None and context.table_uuid is None and not is_kept:
            self._refuse_history(position, f"snapshot {snapshot_id} has expired, and the table has no uuid that would identify it")
        if built_on is not None and name not in (None, built_on):
            self._refuse_history(position, f"snapshot {snapshot_id} was another one: {built_on}")
        self._remember(snapshot_id, name)

    def name(self, snapshot_id: int) -> str | None:
        """The name that identifies a snapshot among all of its id; None if that is not known any more."""
        if snapshot_id not in self._names:
            snapshot = self._find(snapshot_id)
            self._remember(snapshot_id, self._parent_of(snapshot_id) if snapshot is None else snapshot_name(snapshot))
        return self._names[snapshot_id]

    def _remember(self, snapshot_id: int, name: str | None) -> None:
        if len(self._names) > _REMEMBERED:
            self._names = {0: None}
        self._names[snapshot_id] = name

    def _find(self, snapshot_id: int) -> Snapshot | None:
        return self._context.snapshots.find(snapshot_id) or Changelogs(self._context.files).find(snapshot_id)

    def _parent_of(self, snapshot_id: int) -> str | None:
        """The name of an expired snapshot, as the one that was built on it has noted it."""
        after = self._find(snapshot_id + 1)
        return after.properties.get(PARENT_PROPERTY) if after is not None and after.writer_version == WRITER_VERSION else None

    def _refuse_table(self, position: Position) -> NoReturn:
        context = self._context
        raise InvalidInputError(
            f"the position {position} is of the table with uuid {position.table}, not of {context.files.root_uri} "
            f"({context.table_uuid}): it is another one, or it was dropped and made again; {_WAYS_OUT}",
            kind="position-table",
        )

    def _refuse_history(self, position: Position, why: str) -> NoReturn:
        raise InvalidInputError(
            f"the position {position} is of a history that table {self._context.files.root_uri} does not have ({why}): the "
            "table was restored from a copy, or its snapshots were replaced; "
            f"{_WAYS_OUT} (a named consumer under another consumer_id); or say up to which of its snapshots you are done: "
            "position=table.position_after(...), for a named one `tablestore consumer reset`",
            kind="position-history",
        )
