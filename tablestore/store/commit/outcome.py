"""Publishes a snapshot and determines the outcome: landed, lost, dead, or unknown.

    publish snapshot-K if absent (`snapshotcommit`: by the store, or through a service)
      ├ created        ── look back ──> LANDED | DEAD
      ├ occupied: ours ── look back ──> LANDED | DEAD      (an earlier try of the same publish was applied after all)
      ├ occupied: other ──────────────> LOST
      └ no answer      ── repeat the same conditional publish until the deadline, then CommitOutcomeUnknown

Creating the file is not yet landing. Expiry frees names, so a committer that was suspended while others committed and expired
past it could publish K on a freed id, outside of the history. After creating K the committer therefore reads K-1. While K-1 is
still the snapshot that K was built on, and was not freed and published again, K was never used before. Nor was it if nothing is
above it. Otherwise the history decides: K has landed if its files are in it.

After the first try an error decides nothing: the committer looks again until the deadline, and then the outcome is unknown, never
"failed". Only after a certain failure may the metadata of the attempt be removed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.clock import Clock
from tablestore.errors import CommitOutcomeUnknown, NotFoundError, StorageError, TablestoreError
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import snapshot_path
from tablestore.format.snapshot import Snapshot, encode_snapshot
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.store.commit.snapshotcommit import SnapshotCommit
from tablestore.store.manifests import Manifests
from tablestore.store.snapshots import Snapshots, follows, same_snapshot

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 2.0
# Errors of other classes than a store's are taken for temporary so many times.
MOST_UNEXPECTED = 3


class Outcome(Enum):
    """The known outcome of a publish."""

    LANDED = "landed"
    LOST = "lost"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPublisher:
    """Publishes the snapshots of one table. ``is_same_table``: it was not dropped and created again."""

    files: FileStore
    commit: SnapshotCommit
    snapshots: Snapshots
    manifests: Manifests
    clock: Clock
    ids: Ids
    is_same_table: Callable[[], bool]

    def publish(self, snapshot: Snapshot, base: Snapshot | None, entries: Sequence[ManifestEntry], *, deadline_s: float) -> Outcome:
        """Publish ``snapshot`` on top of ``base``; ``entries`` is its delta, ``deadline_s`` is on the steady clock.

        Raises CommitOutcomeUnknown if the store gives no answer before the deadline. Any other error means that nothing was
        published.
        """
        data, wait_s = encode_snapshot(snapshot), FIRST_WAIT_S
        # linked: K is there and ours, and the history is still to be read. doubtful: an earlier try may have been applied.
        linked = doubtful = False
        unexpected = 0
        while True:
            answered = False
            try:
                if not linked:
                    linked = self.commit.publish(snapshot, data, base, entries)
                    answered = True
                if not linked:
                    occupant = self.snapshots.find(snapshot.id)
                    if occupant is None:
                        return self._after_expiry(snapshot, entries, doubtful=doubtful)
                    if occupant.uuid != snapshot.uuid:
                        return Outcome.LOST
                    linked = True
                outcome = self._look_back(snapshot, base, entries, doubtful=doubtful)
                if outcome is Outcome.LANDED:
                    self.snapshots.saw(snapshot, data)
                return outcome
            except CommitOutcomeUnknown:
                raise
            except Exception as error:  # Of any library: after the first try no error shows that nothing landed.
                certain = isinstance(error, TablestoreError) and error.kind != "unknown-outcome"
                if certain and not (answered or linked or doubtful):
                    raise
                unexpected += not isinstance(error, (StorageError, NotFoundError))
                if unexpected > MOST_UNEXPECTED or self.clock.steady_s() >= deadline_s:
                    raise self._unknown(snapshot, f"the store gave no answer: {error}") from error
                doubtful = doubtful or not linked
            self.clock.sleep(wait_s * (0.5 + self.ids.fraction()))
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _look_back(self, snapshot: Snapshot, base: Snapshot | None, entries: Sequence[ManifestEntry], *, doubtful: bool) -> Outcome:
        if base is not None:
            previous = self.snapshots.find(base.id)
            is_there = previous is not None and same_snapshot(previous, base)
            # With ids above K that is not enough, because a late duplicate of its publish may have written K-1 again.
            if is_there and (self._was_never_freed(base) or self._is_newest(snapshot) or not _added_names(entries)):
                return Outcome.LANDED
        latest = self.snapshots.newest_listed()
        if latest is None or latest.id < snapshot.id:
            raise self._unknown(snapshot, "its file was there and is gone, and there is none above it")
        if latest.uuid == snapshot.uuid:
            # Expiry never removes the newest snapshot: with nothing above it, K was not used before, unless the table was dropped.
            return Outcome.LANDED if self.is_same_table() else self._dead(snapshot, doubtful=doubtful)
        if self._in_history_of(latest, entries):
            return Outcome.LANDED
        # In this order: expiry removes K before K+1. If K+1 is missing and K is there afterwards, K is not of this history.
        successor = self.snapshots.find(snapshot.id + 1)
        occupant = self.snapshots.find(snapshot.id)
        if occupant is None or occupant.uuid != snapshot.uuid:
            raise self._unknown(snapshot, "it expired before its committer looked again")
        if successor is not None:
            is_successor = follows(successor, snapshot)
            if is_successor or (is_successor is None and self._in_base_of(successor, entries)):
                return Outcome.LANDED
            if is_successor is False:
                return self._dead(snapshot, doubtful=doubtful)
        if successor is None or any(entry.kind is EntryKind.ADD for entry in entries):
            return self._dead(snapshot, doubtful=doubtful)
        raise self._unknown(snapshot, "others committed and expired past it, and it adds no file to recognise it by")

    def _was_never_freed(self, base: Snapshot) -> bool:
        # Two signs, because a late duplicate of its publish may have written the file again: our expiry writes EARLIEST before it
        # frees an id, and other engines' expiry removes the manifest lists first.
        return self.snapshots.was_never_freed(base) and self.manifests.has_list(base.delta_manifest_list)

    def _is_newest(self, snapshot: Snapshot) -> bool:
        return self.snapshots.listed_ids()[-1:] == (snapshot.id,)

    def _after_expiry(self, snapshot: Snapshot, entries: Sequence[ManifestEntry], *, doubtful: bool) -> Outcome:
        """The outcome where K was occupied and has expired since. It can be ours only if a try had no answer."""
        if not doubtful:
            return Outcome.LOST
        latest = self.snapshots.newest_listed()
        if latest is not None and self._in_history_of(latest, entries):
            return Outcome.LANDED
        raise self._unknown(snapshot, "its file may have been there, and expired before its committer looked")

    def _dead(self, snapshot: Snapshot, *, doubtful: bool) -> Outcome:
        self.files.delete(snapshot_path(snapshot.id))
        if doubtful:
            # An earlier try may have landed and expired, and its files may have been compacted since.
            raise self._unknown(snapshot, "others committed and expired past it between two tries")
        return Outcome.DEAD

    def _in_history_of(self, latest: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        added_names = _added_names(entries)
        live = self.manifests.live_columns(latest, ("file_name",))
        return bool(pc.any(pc.is_in(live.column("file_name"), pa.array(added_names, pa.string()))).as_py())

    def _in_base_of(self, successor: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        # Its lists may expire while they are read. NotFoundError decides nothing: the caller looks again.
        added_names = _added_names(entries)
        before = self.manifests.entries(self.manifests.read_list(successor.base_manifest_list))
        return bool(added_names) and any(entry.file.file_name in added_names for entry in before)

    def _unknown(self, snapshot: Snapshot, why: str) -> CommitOutcomeUnknown:
        return CommitOutcomeUnknown(
            f"the outcome of snapshot {snapshot.id} (uuid {snapshot.uuid}) of table {self.files.root_uri} is unknown: {why}. "
            "No file of it was deleted. Look for that uuid with table.snapshots(); if it is not there, repeat the write"
        )


def _added_names(entries: Sequence[ManifestEntry]) -> frozenset[str]:
    # By name, not by identity: a compaction may have moved the file to another level since.
    return frozenset(entry.file.file_name for entry in entries if entry.kind is EntryKind.ADD)
