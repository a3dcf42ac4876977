"""Finds and reads the live snapshots of a table.

    ids on disk     3        7  8  9
                    dead     └──┴──┴── live: the longest unbroken tail

Ids are never used again and expiry removes them strictly oldest first, so the live ones form one unbroken range. An id below a
gap was published late, by a committer that was suspended while others expired past it, and is not read. Hints (``LATEST``,
``EARLIEST``) are written for other engines. A new handle lists the directory; ``EARLIEST`` only ever narrows the range.

A handle that has listed once need not list again, however many snapshots are retained:

    seen    first ──────────── newest
    now            first ····· newest ── newest + 1 ── …    probed one by one; then the last one seen is read again

While a snapshot that was live is still there nothing above it has expired, so what follows it without a gap is the history. It is
still there if its file holds the same bytes (otherwise the table was dropped and created again, or rolled back by another engine)
and ``EARLIEST``, which expiry writes before it frees an id, is not above it (otherwise a repeated publish may have written the
file again). In doubt the directory is listed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

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
from tablestore.timepoint import exact_utc_text

# A handle that is further behind than so many snapshots lists.
MOST_PROBES = 16

# The oldest snapshot is read behind every commit, and a few beside it.
_MOST_DECODED = 64

T = TypeVar("T")

# Stored, never renamed: the uuid of the snapshot that this one was built on.
PARENT_PROPERTY = "tablestore.parent"
# A lower bound of the place in the log where the changes of later snapshots begin; a commit hands on what it does not know better.
LOG_OFFSETS_PROPERTY = "tablestore.log-offsets"
# Properties about the sources of a materialized table's rows: a compaction, which only moves rows, keeps them.
CONTENT_PREFIX = "tablestore.materialized-table."


def follows(snapshot: Snapshot, previous: Snapshot) -> bool | None:
    """True if ``snapshot`` was built on ``previous``, the file of the id before it; None if a snapshot does not say.

    A file that was published late on a freed id is not in the history: no snapshot was built on it.
    """
    parent = parent_uuid(snapshot)
    return None if parent is None else parent == previous.uuid


def parent_uuid(snapshot: Snapshot) -> str | None:
    """The uuid of the snapshot that this one was built on; None if it does not say."""
    # Only what we wrote ourselves: another engine may have copied the properties of ours.
    return snapshot.properties.get(PARENT_PROPERTY) if snapshot.writer_version == WRITER_VERSION else None


def same_snapshot(snapshot: Snapshot, other: Snapshot) -> bool:
    """True if two reads of one id saw the same commit; old foreign snapshots have no uuid."""
    if snapshot.uuid is not None or other.uuid is not None:
        return snapshot.uuid == other.uuid
    return snapshot == other


def unbroken_tail(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The longest run of consecutive ids that ends at the greatest one. ``ids`` must ascend."""
    start = len(ids) - 1
    while start > 0 and ids[start - 1] == ids[start] - 1:
        start -= 1
    return ids[max(start, 0) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The live range when it was looked at: every id from ``first`` to that of ``newest``, whose file holds ``data``."""

    first: int
    newest: Snapshot
    data: bytes


class DecodedSnapshots:
    """Snapshots by their bytes: the same bytes are the same snapshot. What a file holds is read each time."""

    def __init__(self) -> None:
        self.decode = lru_cache(maxsize=_MOST_DECODED)(decode_snapshot)


class Snapshots:
    """The snapshot files of one table. It remembers the live range that it has seen (see the module); may be used by several
    threads.

    ``decoded``: what is known of these and of others already.
    """

    def __init__(self, files: FileStore, decoded: DecodedSnapshots | None = None) -> None:
        self._files = files
        self._decode = (decoded or DecodedSnapshots()).decode
        self._seen: _Seen | None = None
        # The number of listings so far. While it stays, the live range goes on from the one before.
        self.histories = 0

    def listed_ids(self) -> tuple[int, ...]:
        """Every id that has a file, dead ones included, ascending. Lists."""
        ids = map(parse_snapshot_id, self._files.names(SNAPSHOT_DIR, prefix="snapshot-"))
        return tuple(sorted(snapshot_id for snapshot_id in ids if snapshot_id is not None))

    def tail_ids(self) -> range:
        """The unbroken range that ends at the newest id, whatever EARLIEST says."""
        if (seen := self._look()) is None:
            return range(0)
        for first in range(seen.first, min(seen.first + MOST_PROBES, seen.newest.id + 1)):
            if self._files.exists(snapshot_path(first)):
                if first != seen.first:
                    self._seen = replace(seen, first=first)
                return range(first, seen.newest.id + 1)
        # More than that have expired since the last listing.
        self._seen = seen = self._listed()
        return range(0) if seen is None else range(seen.first, seen.newest.id + 1)

    def live_ids(self) -> range:
        """The ids of the table's history that is still retained, ascending."""
        ids, earliest = self.tail_ids(), self.earliest_hint()
        return range(earliest, ids.stop) if earliest in ids else ids

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for a table that was never written."""
        seen = self._look()
        return None if seen is None else seen.newest

    def newest_listed(self) -> Snapshot | None:
        """The newest snapshot as :meth:`latest` gives it, found by a listing whatever was seen before."""
        self._seen = None
        return self.latest()

    def has_moved_on(self, latest: Snapshot | None) -> bool:
        """True if there is a newer snapshot than ``latest``. If not, and what it needs is gone, then a file is missing."""
        newest = self.newest_listed()
        return newest is not None and (latest is None or not same_snapshot(newest, latest))

    def read_newest(self, read: Callable[[Snapshot | None], T]) -> tuple[Snapshot | None, T]:
        """The newest snapshot, and the result of ``read`` on it.

        It is read again on a newer one if it expired meanwhile. Raises NotFoundError for a file that is missing, and what ``read``
        raises.
        """
        while True:
            latest = self.latest()
            try:
                return latest, read(latest)
            except NotFoundError:
                if not self.has_moved_on(latest):
                    raise

    def identified(self, snapshot_id: int, uuid: str | None) -> Snapshot | None:
        """The newest snapshot that was seen, without another look, if it is the one of this identity."""
        newest = None if self._seen is None or uuid is None else self._seen.newest
        return newest if newest is not None and (newest.id, newest.uuid) == (snapshot_id, uuid) else None

    def saw(self, landed: Snapshot, data: bytes) -> None:
        """Take note of a snapshot that certainly landed on top of the newest one; ``data`` is its file."""
        seen = self._seen
        if seen is not None and seen.newest.id == landed.id - 1:
            self._seen = replace(seen, newest=landed, data=data)

    def was_never_freed(self, snapshot: Snapshot) -> bool:
        """True if a snapshot whose file is there cannot have expired before: EARLIEST is known, and not above it."""
        return 0 < self.earliest_hint() <= snapshot.id

    def _look(self) -> _Seen | None:
        seen = self._seen
        current = None if seen is None else self._probed(seen)
        if current is None:
            self.histories += 1
            current = self._listed()
        if current is not seen:
            self._seen = current
        return current

    def _probed(self, seen: _Seen) -> _Seen | None:
        """The live range now, found by looking at the ids above what was seen; None if that takes a listing."""
        base = top = seen.newest.id
        while self._files.exists(snapshot_path(top + 1)):
            top += 1
            if top - base > MOST_PROBES:
                return None
        try:
            current = seen
            if top > base:
                data = self._files.read(snapshot_path(top))
                current = replace(seen, newest=self._decoded(top, data), data=data)
            # In this order: what was seen is looked at after all that rests on it.
            is_there = self._files.read(snapshot_path(base)) == seen.data and self.earliest_hint() <= base
        except NotFoundError:
            return None
        return current if is_there else None

    def _listed(self) -> _Seen | None:
        while ids := self.listed_ids():
            try:
                data = self.read_file(ids[-1])
                return _Seen(first=unbroken_tail(ids)[0], newest=self._decoded(ids[-1], data), data=data)
            except NotFoundError:
                # Rolled back by hand or removed as dead between the listing and the read: look again.
                if self.listed_ids() == ids:
                    raise
        return None

    def read(self, snapshot_id: int) -> Snapshot:
        """One snapshot. Raises NotFoundError if there is no such id, FormatError if the file is not that snapshot."""
        return self._decoded(snapshot_id, self.read_file(snapshot_id))

    def _decoded(self, snapshot_id: int, data: bytes) -> Snapshot:
        seen = self._seen
        if seen is not None and seen.newest.id == snapshot_id and seen.data == data:
            return seen.newest
        path = snapshot_path(snapshot_id)
        snapshot = self._decode(data, f"{self._files.root_uri}/{path}")
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
        """True if an id belongs to the history and is not about to expire. Always lists the directory."""
        self._seen = None
        return snapshot_id in self.live_ids()

    def live(self, snapshot_id: int) -> Snapshot:
        """Reads as :meth:`read`, for ids that a user names. Raises NotFoundError for an id below a gap too."""
        snapshot = self.read(snapshot_id)
        # The floor of the history alone, not the hint: a damaged hint must not hide snapshots that are there.
        ids = unbroken_tail(self.listed_ids())
        if ids and snapshot_id < ids[0]:
            raise self._not_found(snapshot_id)
        return snapshot

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Reads as :meth:`read`, with None for an id that has no file."""
        try:
            data = self._files.read(snapshot_path(snapshot_id))
        except NotFoundError:
            return None
        return self._decoded(snapshot_id, data)

    def is_there(self, snapshot_id: int) -> bool:
        """True if an id has a file."""
        return self._files.exists(snapshot_path(snapshot_id))

    def back_from(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """``snapshot`` and those below it as far as they are there, newest first: one read for each that is asked for."""
        while snapshot is not None:
            yield snapshot
            below = self.find(snapshot.id - 1) if snapshot.id > 1 else None
            snapshot = None if below is None or follows(snapshot, below) is False else below

    def retained(self) -> tuple[Snapshot, ...]:
        """The live snapshots, oldest first."""
        return self._read_all(self.live_ids)

    def stream(self) -> Iterator[Snapshot]:
        """The live snapshots one by one, oldest first: those of now, of which some may expire before they are read."""
        above = 0
        while ids := [snapshot_id for snapshot_id in self.live_ids() if snapshot_id > above]:
            for snapshot_id in ids:
                if (snapshot := self.find(snapshot_id)) is not None:
                    yield snapshot
                    above = snapshot_id
            if above == ids[-1]:
                return
            # The newest has expired meanwhile, so there are others that were not listed.
            if ids[-1] in self.live_ids():
                self.read(ids[-1])

    def tail(self) -> tuple[Snapshot, ...]:
        """The snapshots as :meth:`retained` gives them, the rest of the unbroken range, and those from EARLIEST on.

        Neither a damaged hint nor a lost snapshot may make referenced files look unused.
        """

        def ids() -> tuple[int, ...]:
            listed, earliest = self.listed_ids(), self.earliest_hint()
            first = min(unbroken_tail(listed)[0], earliest or listed[-1]) if listed else 0
            return tuple(snapshot_id for snapshot_id in listed if snapshot_id >= first)

        return self._read_all(ids)

    def _read_all(self, ids: Callable[[], Sequence[int]]) -> tuple[Snapshot, ...]:
        while listed := ids():
            snapshots = [snapshot for snapshot_id in listed if (snapshot := self.find(snapshot_id)) is not None]
            # The oldest may expire while they are read. If the newest did, there are others that were not listed.
            if snapshots and snapshots[-1].id == listed[-1]:
                return tuple(snapshots)
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
            retained = (
                f"the earliest retained one is {self._floor(ids)}, of {self._time_of(ids[0])}" if ids else "it was never written"
            )
            raise NotFoundError(
                f"table {self._files.root_uri} has no snapshot at or before {exact_utc_text(time_millis)}; {retained}",
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
        """Write the hint that other engines read first."""
        self._files.overwrite(f"{SNAPSHOT_DIR}/{LATEST_HINT}", encode_hint(snapshot_id), lasting=False)
        if snapshot_id == 1:
            # Never replaced: expiry may have written a later one meanwhile.
            self._files.publish_if_absent(f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", encode_hint(1))

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Write the id from which the history is retained. Expiry does so before it frees an id."""
        self._files.overwrite(f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", encode_hint(snapshot_id))

    def write_hints_anew(self) -> None:
        """Repair hints that are damaged, and an EARLIEST above the newest snapshot.

        A LATEST above it stays, with an EARLIEST up to it: nothing else shows that a snapshot was lost.
        """
        latest = self._hint(LATEST_HINT)
        if ids := unbroken_tail(self.listed_ids()):
            earliest = self.earliest_hint()
            if earliest < 1 or earliest > max(latest, ids[-1]):
                self.write_earliest_hint(ids[0])
            if latest <= ids[-1]:
                self.write_latest_hint(ids[-1])

    def earliest_hint(self) -> int:
        """The id in EARLIEST, 0 if it is missing or damaged."""
        return self._hint(EARLIEST_HINT)

    def _hint(self, name: str) -> int:
        try:
            text = self._files.read(f"{SNAPSHOT_DIR}/{name}", max_bytes=64)
        except (NotFoundError, FormatError, InvalidInputError):
            return 0
        return parse_hint(text) or 0

    def _time_of(self, snapshot_id: int) -> str:
        return exact_utc_text(self.read(snapshot_id).time_millis)

    def _floor(self, live: Sequence[int]) -> str:
        """The earliest id for people: with the hint that says so, if the files alone would not."""
        hidden = unbroken_tail(self.listed_ids())[0] != live[0]
        return f"{live[0]}{f' (says {self._files.root_uri}/{SNAPSHOT_DIR}/{EARLIEST_HINT})' if hidden else ''}"

    def _not_found(self, snapshot_id: int) -> NotFoundError:
        # From a listing: this is how what is seen and cannot be read is reported.
        ids: Sequence[int] = unbroken_tail(self.listed_ids())
        earliest = self.earliest_hint()
        ids = range(earliest, ids[-1] + 1) if earliest in ids else ids
        retained = f"retained are {self._floor(ids)} to {ids[-1]}" if ids else "the table has no snapshot yet"
        return NotFoundError(f"table {self._files.root_uri} has no snapshot {snapshot_id}: {retained}", kind="no-such-snapshot")
