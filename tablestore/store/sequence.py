"""Assigns sequence numbers to files, and checks that they still win when the commit lands.

For one key the row of the later snapshot wins, before and after any compaction. All rows of a level-0 file carry one number,
every file its own, drawn from a table-wide bound that snapshots record as ``tablestore.next-sequence``:

    writer opens at snapshot L      numbers next(L), next(L) + 1, …           files are written with these
    others land meanwhile           their numbers may be equal or higher
    round a of the commit           an own file that meets one of them is written again, and so are the own files of that bucket
                                    flushed after it, with next(latest) + 2^32 * a, …

The headroom leaves numbers for small commits that land meanwhile, so that the next lost race costs metadata only. Of a table
without a key it always does: all own files get numbers above the bound, without a look at what has landed.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.lsm.keyorder import KeyOrder
from tablestore.store.manifests import Manifests, max_sequence_number
from tablestore.store.snapshots import Snapshots
from tablestore.types.schema import POSTPONE_BUCKET

LOG = logging.getLogger(__name__)
NEXT_SEQUENCE_PROPERTY = "tablestore.next-sequence"
HEADROOM = 2**32

Overlap = Callable[[DataFileMeta, DataFileMeta], bool]
Rewrite = Callable[[ManifestEntry, int], DataFileMeta]
"""Writes the rows of an own file again, as a new file, with another sequence number."""


class SequenceNumbers:
    """The sequence bound of one table."""

    def __init__(self, snapshots: Snapshots, manifests: Manifests, keys: KeyOrder) -> None:
        self._snapshots, self._manifests, self._keys = snapshots, manifests, keys
        self._looked_at: set[int] = set()

    def next_after(self, latest: Snapshot | None) -> int:
        """The least number above every row that ``latest`` holds.

        Looks back to the newest snapshot of ours and adds what foreign snapshots brought since. Only if no retained snapshot
        has the property are all live files looked at.
        """
        bound = 0
        foreign: list[Snapshot] = []
        snapshot = latest
        while snapshot is not None:
            if (text := snapshot.properties.get(NEXT_SEQUENCE_PROPERTY)) is not None:
                if not text.isdigit():
                    raise FormatError(f"snapshot {snapshot.id}: property {NEXT_SEQUENCE_PROPERTY} is {text!r}, not a number")
                self._say_outnumbered(foreign)
                return max(bound, int(text))
            delta = self._delta(snapshot)
            if delta is None:
                break
            added = [entry for entry in delta if entry.kind is EntryKind.ADD]
            bound = max(bound, max_sequence_number(added) + 1)
            if snapshot.commit_kind is CommitKind.APPEND:
                foreign.append(snapshot)
            snapshot = self._snapshots.find(snapshot.id - 1) if snapshot.id > 1 else None
        live = self._manifests.live_columns(latest, ("max_sequence_number",))
        return max(bound, int(live.numbers("max_sequence_number").max(initial=-1)) + 1)

    def start(self) -> tuple[Snapshot | None, int]:
        """The state in which a writer begins: the newest snapshot, and the first number above it."""
        return self._snapshots.read_newest(self.next_after)

    def landed_since(self, base_id: int, base_uuid: str | None, latest: Snapshot) -> list[ManifestEntry]:
        """Live files that snapshots after the base added; all live files if one of these snapshots has expired, or the base was
        taken back: other engines may have used its id again."""
        if base_uuid is not None:
            base = latest if latest.id == base_id else self._snapshots.find(base_id)
            if base is None or base.uuid != base_uuid:
                return self._manifests.live(latest)
        added: dict[object, ManifestEntry] = {}
        for snapshot_id in range(base_id + 1, latest.id + 1):
            snapshot = latest if snapshot_id == latest.id else self._snapshots.find(snapshot_id)
            delta = self._delta(snapshot) if snapshot is not None else None
            if delta is None:
                return self._manifests.live(latest)
            for entry in delta:
                if entry.kind is EntryKind.ADD:
                    added[entry.identity] = entry
                else:
                    added.pop(entry.identity, None)
        return list(added.values())

    def _delta(self, snapshot: Snapshot) -> list[ManifestEntry] | None:
        """The entries that a snapshot added and deleted, None if it expires while it is read."""
        try:
            return self._manifests.delta(snapshot)
        except NotFoundError:
            return None

    def _say_outnumbered(self, foreign: Iterable[Snapshot]) -> None:
        """Say which foreign commits drew numbers that do not win over what was there: their files are theirs to mend."""
        for snapshot in foreign:
            before = None if snapshot.id in self._looked_at else self._snapshots.find(snapshot.id - 1)
            self._looked_at.add(snapshot.id)
            if before is None or not self._keys.types:
                continue
            try:
                added = [entry for entry in self._manifests.delta(snapshot) if entry.kind is EntryKind.ADD]
                places = {(entry.partition, entry.bucket) for entry in added}
                live = self._manifests.live_in(before, places.__contains__)
            except NotFoundError:
                continue  # expired meanwhile: what cannot be looked at must not fail the commit that looks
            outdated = pick_outdated(added, live, self._keys.overlap)
            if outdated:
                LOG.warning(
                    "snapshot %d of table %s, by %s: %d of its %d files have sequence numbers that were taken when it landed (its "
                    "writer was open meanwhile), so for keys that others wrote too the older row may win; write these rows again",
                    snapshot.id,
                    self._manifests.location,
                    snapshot.commit_user,
                    len(outdated),
                    len(added),
                )


def pick_outdated(new_entries: Sequence[ManifestEntry], landed: Iterable[ManifestEntry], overlap: Overlap) -> frozenset[int]:
    """Positions in ``new_entries`` (flush order) of the files whose number no longer wins over files that landed. Pure."""
    landed_files: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
    for entry in landed:
        landed_files[entry.partition, entry.bucket].append(entry.file)
    outdated: set[int] = set()
    buckets_hit: set[tuple[bytes, int]] = set()
    for position, entry in enumerate(new_entries):
        if entry.bucket == POSTPONE_BUCKET:
            # Its rows get their numbers with their buckets.
            continue
        bucket = (entry.partition, entry.bucket)
        if bucket in buckets_hit or any(
            file.max_sequence_number >= entry.file.min_sequence_number and overlap(file, entry.file)
            for file in landed_files.get(bucket, ())
        ):
            buckets_hit.add(bucket)
            outdated.add(position)
    return frozenset(outdated)


def is_base(latest: Snapshot, base_id: int, base_uuid: str | None) -> bool:
    """True if a snapshot is the one of this identity. Pure."""
    return latest.id == base_id and (base_uuid is None or latest.uuid == base_uuid)


def pick_lower(new_entries: Sequence[ManifestEntry], bound: int) -> frozenset[int]:
    """Positions in ``new_entries`` (flush order) from the first file on whose numbers begin below a bound. Pure."""
    places = [place for place, entry in enumerate(new_entries) if entry.bucket != POSTPONE_BUCKET]
    first = next((place for place in places if new_entries[place].file.min_sequence_number < bound), len(new_entries))
    return frozenset(place for place in places if place >= first)


def renumber(
    entries: Sequence[ManifestEntry], outdated: frozenset[int], *, next_sequence: int, attempt: int, rewrite: Rewrite
) -> tuple[ManifestEntry, ...]:
    """The entries with the outdated files written again under numbers above everything that landed."""
    number = next_sequence + HEADROOM * attempt
    result = []
    for position, entry in enumerate(entries):
        if position in outdated:
            entry = replace(entry, file=rewrite(entry, number))
            number = entry.file.max_sequence_number + 1
        result.append(entry)
    return tuple(result)
