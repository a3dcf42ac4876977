"""Did this snapshot land?

    publish snapshot-K if absent
      ├ created        ── settle ──> LANDED | DEAD
      ├ occupied: ours ── settle ──> LANDED | DEAD      (an earlier try of the same publish was applied after all)
      ├ occupied: other ───────────> LOST
      └ no answer      ── repeat the same conditional publish until the deadline, then CommitOutcomeUnknown

Creating the file is not yet landing: expiry frees names, so a committer that slept while others committed and expired past it
could link K onto a history that is over. Whoever creates K therefore looks at K-1 afterwards. While K-1 is still the snapshot
that K was built on, K was never used before. Otherwise the history decides: K is good if its files are in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tablestore.clock import Clock
from tablestore.errors import CommitOutcomeUnknown, NotFoundError, StorageError
from tablestore.format.manifest import EntryKind, ManifestEntry
from tablestore.format.paths import snapshot_path
from tablestore.format.snapshot import Snapshot, encode_snapshot
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.store.manifests import Manifests
from tablestore.store.snapshots import Snapshots

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 2.0


class Outcome(Enum):
    """What became of a publish whose outcome is known."""

    LANDED = "landed"
    LOST = "lost"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Publishes the snapshots of one table."""

    files: FileStore
    snapshots: Snapshots
    manifests: Manifests
    clock: Clock
    ids: Ids

    def publish(self, snapshot: Snapshot, base: Snapshot | None, entries: Sequence[ManifestEntry], *, deadline_s: float) -> Outcome:
        """Publish ``snapshot`` on top of ``base``; ``entries`` is its delta, ``deadline_s`` is on the steady clock.

        Raises CommitOutcomeUnknown if the store gives no answer before the deadline, StorageError if it refuses.
        """
        path, data = snapshot_path(snapshot.id), encode_snapshot(snapshot)
        wait_s = FIRST_WAIT_S
        unanswered: StorageError | None = None
        while True:
            try:
                created = self.files.publish_if_absent(path, data)
            except StorageError as error:
                if error.kind == "denied" and unanswered is None:
                    raise
                unanswered = error
                if self.clock.steady_s() >= deadline_s:
                    raise self._unknown(snapshot, f"the store gave no answer: {error}") from error
                self.clock.sleep(wait_s * (0.5 + self.ids.fraction()))
                wait_s = min(wait_s * 2, LONGEST_WAIT_S)
                continue
            if created:
                return self._settle(snapshot, base, entries)
            occupant = self.snapshots.find(snapshot.id)
            if occupant is None:
                # Occupied a moment ago and gone now: expired past us. Only an unanswered try could have been ours.
                return Outcome.LOST if unanswered is None else self._settle(snapshot, base, entries)
            return self._settle(snapshot, base, entries) if occupant.uuid == snapshot.uuid else Outcome.LOST

    def _settle(self, snapshot: Snapshot, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> Outcome:
        if base is not None:
            previous = self.snapshots.find(base.id)
            if previous is not None and same_snapshot(previous, base):
                return Outcome.LANDED
        latest = self.snapshots.latest()
        if latest is None or latest.id < snapshot.id:
            raise self._unknown(snapshot, "its file was there and is gone, and there is none above it")
        if latest.uuid == snapshot.uuid:
            # Expiry never removes the newest snapshot, so nothing above K means that K was not used before.
            return Outcome.LANDED
        if self._in_history_of(latest, entries):
            return Outcome.LANDED
        occupant = self.snapshots.find(snapshot.id)
        if occupant is None or occupant.uuid != snapshot.uuid:
            raise self._unknown(snapshot, "it expired before its committer looked again")
        successor = self.snapshots.find(snapshot.id + 1)
        if successor is not None and self._in_base_of(successor, entries):
            return Outcome.LANDED
        if successor is None or any(entry.kind is EntryKind.ADD for entry in entries):
            self.files.delete(snapshot_path(snapshot.id))
            return Outcome.DEAD
        raise self._unknown(snapshot, "others committed and expired past it, and it adds no file to recognise it by")

    def _in_history_of(self, latest: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        own = _added_names(entries)
        return bool(own) and any(entry.file.file_name in own for entry in self.manifests.live(latest))

    def _in_base_of(self, successor: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        own = _added_names(entries)
        try:
            before = self.manifests.entries(self.manifests.read_list(successor.base_manifest_list))
        except NotFoundError:
            return False
        return bool(own) and any(entry.file.file_name in own for entry in before)

    def _unknown(self, snapshot: Snapshot, why: str) -> CommitOutcomeUnknown:
        return CommitOutcomeUnknown(
            f"the outcome of snapshot {snapshot.id} (uuid {snapshot.uuid}) of table {self.files.root_uri} is unknown: {why}. "
            "No file was deleted. Look for that uuid with table.snapshots(); if it is not there, repeat the write"
        )


def _added_names(entries: Sequence[ManifestEntry]) -> frozenset[str]:
    # By name, not by identity: a compaction may have moved the file to another level since.
    return frozenset(entry.file.file_name for entry in entries if entry.kind is EntryKind.ADD)


def same_snapshot(one: Snapshot, other: Snapshot) -> bool:
    """Whether two reads of one id saw the same commit; old foreign snapshots have no uuid."""
    if one.uuid is not None or other.uuid is not None:
        return one.uuid == other.uuid
    return one == other
