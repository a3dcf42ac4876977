"""Which snapshots does a table have?

    ids on disk     3        7  8  9
                    dead     └──┴──┴── live: the longest unbroken tail

Ids are never re-used and expiry removes them strictly oldest first, so the live ones form one unbroken range. An id below a
gap was published by a committer that slept while others expired past it; nobody may look at it. Hints (``LATEST``,
``EARLIEST``) are written for foreign readers. We decide from a listing; ``EARLIEST`` only ever narrows what the listing shows.
"""

from collections.abc import Callable

from tablestore.errors import FormatError, InvalidInputError, NotFoundError
from tablestore.format.paths import (
    EARLIEST_HINT,
    LATEST_HINT,
    SNAPSHOT_DIR,
    encode_hint,
    parse_hint,
    parse_snapshot_id,
    snapshot_path,
    tag_path,
)
from tablestore.format.snapshot import WRITER_VERSION, Snapshot, decode_snapshot
from tablestore.io.filestore import FileStore

# Stored, never renamed: the uuid of the snapshot that this one was built on.
PARENT_PROPERTY = "tablestore.parent"


def follows(snapshot: Snapshot, previous: Snapshot) -> bool | None:
    """Whether ``snapshot`` was built on ``previous``, the file of the id before it; None if a snapshot does not say.

    Beside a history may lie a file that a sleeping committer published on a freed id. It is nobody's parent.
    """
    parent = snapshot.properties.get(PARENT_PROPERTY)
    # Only what we wrote ourselves: another engine may have copied the properties of ours.
    if parent is None or snapshot.writer_version != WRITER_VERSION:
        return None
    return parent == previous.uuid


def unbroken_tail(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The longest run of consecutive ids that ends at the greatest one. ``ids`` must ascend."""
    start = len(ids) - 1
    while start > 0 and ids[start - 1] == ids[start] - 1:
        start -= 1
    return ids[max(start, 0) :]


class Snapshots:
    """The snapshot files of one table."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def listed_ids(self) -> tuple[int, ...]:
        """Every id that has a file, dead ones included, ascending."""
        found = (parse_snapshot_id(info.name) for info in self._files.list(SNAPSHOT_DIR, prefix="snapshot-"))
        return tuple(sorted(snapshot_id for snapshot_id in found if snapshot_id is not None))

    def live_ids(self) -> tuple[int, ...]:
        """The ids of the table's history that is still retained, ascending."""
        ids = unbroken_tail(self.listed_ids())
        earliest = self.earliest_hint()
        return tuple(i for i in ids if i >= earliest) if earliest in ids else ids

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for a table that was never written."""
        while ids := self.listed_ids():
            try:
                return self.read(ids[-1])
            except NotFoundError:
                # Rolled back by hand or removed as dead between the listing and the read: look again.
                if self.listed_ids() == ids:
                    raise
        return None

    def read(self, snapshot_id: int) -> Snapshot:
        """One snapshot. Raises NotFoundError if there is no such id, FormatError if the file is not that snapshot."""
        path = snapshot_path(snapshot_id)
        snapshot = decode_snapshot(self.read_file(snapshot_id), f"{self._files.root_uri}/{path}")
        if snapshot.id != snapshot_id:
            raise FormatError(
                f"{self._files.root_uri}/{path} says that it is snapshot {snapshot.id}, expected {snapshot_id}: the file was "
                "swapped or renamed; read another snapshot or restore the file",
                kind="swapped",
            )
        return snapshot

    def read_file(self, snapshot_id: int) -> bytes:
        """The file of one snapshot as it is. Raises NotFoundError if there is no such id."""
        try:
            return self._files.read(snapshot_path(snapshot_id))
        except NotFoundError as error:
            raise self._not_found(snapshot_id) from error

    def is_retained(self, snapshot_id: int) -> bool:
        """Whether an id belongs to the history and is not about to expire."""
        return snapshot_id in self.live_ids()

    def live(self, snapshot_id: int) -> Snapshot:
        """As :meth:`read`, for ids that a user names: one below a gap is not there, whatever its file says."""
        snapshot = self.read(snapshot_id)
        # The floor of the history alone, not the hint: a damaged hint must not hide snapshots that are there.
        ids = unbroken_tail(self.listed_ids())
        if ids and snapshot_id < ids[0]:
            raise self._not_found(snapshot_id)
        return snapshot

    def find(self, snapshot_id: int) -> Snapshot | None:
        """As :meth:`read`, with None for an id that has no file."""
        try:
            return self.read(snapshot_id)
        except NotFoundError:
            return None

    def retained(self) -> tuple[Snapshot, ...]:
        """All live snapshots, oldest first."""
        return self._read_all(self.live_ids)

    def tail(self) -> tuple[Snapshot, ...]:
        """As :meth:`retained`, whatever EARLIEST says: a damaged hint must not make anybody take what is there for unused."""
        return self._read_all(lambda: unbroken_tail(self.listed_ids()))

    def _read_all(self, ids: Callable[[], tuple[int, ...]]) -> tuple[Snapshot, ...]:
        while listed := ids():
            found = [snapshot for snapshot_id in listed if (snapshot := self.find(snapshot_id)) is not None]
            # The oldest may expire while they are read. If the newest did, there are others that were not listed.
            if found and found[-1].id == listed[-1]:
                return tuple(found)
            if ids() == listed:
                self.read(listed[-1])
        return ()

    def at_time(self, time_millis: int) -> Snapshot:
        """The newest snapshot committed at or before ``time_millis`` (milliseconds since the epoch, UTC).

        Commit times ascend with the ids, so this looks at log2(n) files. Raises NotFoundError if the table had no
        snapshot then, or it has expired.
        """
        ids = self.live_ids()
        low, high = 0, len(ids)
        while low < high:
            middle = (low + high) // 2
            if self.read(ids[middle]).time_millis <= time_millis:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            raise NotFoundError(
                f"table {self._files.root_uri} has no snapshot at or before {time_millis} ms since the epoch; "
                + (f"the earliest retained one is {self._floor(ids)}" if ids else "it was never written"),
                kind="no-such-snapshot",
            )
        return self.read(ids[low - 1])

    def tagged(self, tag: str) -> Snapshot:
        """The snapshot that a tag keeps."""
        path = tag_path(tag)
        try:
            data = self._files.read(path)
        except NotFoundError as error:
            raise NotFoundError(f"table {self._files.root_uri} has no tag {tag!r}", kind="no-such-tag") from error
        return decode_snapshot(data, f"{self._files.root_uri}/{path}")

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Tell foreign readers where to look first. Only ever a hint."""
        self._files.overwrite(f"{SNAPSHOT_DIR}/{LATEST_HINT}", encode_hint(snapshot_id))
        if snapshot_id == 1:
            # Never replaced: expiry may have written a later one meanwhile.
            self._files.publish_if_absent(f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", encode_hint(1))

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Say from where on the history is retained. Expiry does so before it frees an id."""
        self._files.overwrite(f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", encode_hint(snapshot_id))

    def earliest_hint(self) -> int:
        """What EARLIEST says, 0 if it says nothing."""
        try:
            text = self._files.read(f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", max_bytes=64)
        except (NotFoundError, FormatError, InvalidInputError):
            return 0
        return parse_hint(text) or 0

    def _floor(self, live: tuple[int, ...]) -> str:
        """The earliest id for people: with the hint that says so, if the files alone would not."""
        hidden = unbroken_tail(self.listed_ids())[:1] != live[:1]
        return f"{live[0]}{f' (says {self._files.root_uri}/{SNAPSHOT_DIR}/{EARLIEST_HINT})' if hidden else ''}"

    def _not_found(self, snapshot_id: int) -> NotFoundError:
        ids = self.live_ids()
        there = f"retained are {self._floor(ids)} to {ids[-1]}" if ids else "the table has no snapshot yet"
        return NotFoundError(f"table {self._files.root_uri} has no snapshot {snapshot_id}: {there}", kind="no-such-snapshot")
