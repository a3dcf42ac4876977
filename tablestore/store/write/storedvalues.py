"""Fills columns that written rows lack with the stored values, also with concurrent writers.

    a flush      keys of its rows -> the rows of these keys in the newest snapshot, and in earlier flushes of the commit
                 -> the stored values in place of the missing ones
    its commit   in every round: did one of these keys get another row since that snapshot?
                     no     the files stay as they are
                     yes    they are written again with the values stored now, and so are the later files of their bucket

A commit reads only files that landed since its look-up, and there only its own keys; compactions change no row.
Memory: one window of keys with all versions of their rows, as for finding changes, and the rows of the flush.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tablestore.errors import ConflictError, NotFoundError
from tablestore.format.binaryrow import encode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.write.keptcolumns import with_stored
from tablestore.lsm.write.writebuffer import SortedRows
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.manifests import Manifests
from tablestore.store.message import NOT_LOOKED_UP, KeptColumns, Revise
from tablestore.store.scan.keywindows import WINDOW_KEYS, key_windows
from tablestore.store.scan.lookup import find_rows, sorted_keys
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.snapshots import Snapshots
from tablestore.types.arrays import Kinds, Places, retracts
from tablestore.types.evolution.fieldpaths import Path

Bucket = tuple[bytes, int]

# The commit's own files are newer than all that has landed, whatever numbers they will get.
_OWN_NUMBERS = 2**62


@dataclass(slots=True, kw_only=True)
class StoredValueFiller:
    """Looks up missing columns in the newest snapshot, or in ``pinned``. Reads a newer snapshot once its files have expired.

    ``replaced``: how many rows that add were found by their keys, so far. ``check_may_look``: raises UnsupportedError where its
    caller does not see all of what is looked up.
    """

    reader: SplitReader
    snapshots: Snapshots
    manifests: Manifests
    vectors_of: Callable[[Snapshot], DeletionVectors]
    check_may_look: Callable[[], None]
    pinned: Snapshot | None = None
    replaced: int = 0
    _seen: bool = False
    _files: Mapping[Bucket, list[DataFileMeta]] = field(default_factory=dict)
    _vectors: DeletionVectors | None = None

    def fill(
        self, run: SortedRows, lacks: Sequence[Path], uncommitted: Sequence[ManifestEntry]
    ) -> tuple[Snapshot | None, Iterator[tuple[pa.Table, Kinds]]]:
        """Fill the columns that the rows of ``run`` lack; returns the snapshot that was looked into, and the rows in their
        order.

        ``uncommitted``: files of the same commit, which are newer than the snapshot, the later ones newer than the earlier ones.
        """
        if not self._seen:
            self._look(self.pinned or self.snapshots.latest())
        return self.pinned, self._filled(run, lacks, uncommitted)

    def _look(self, snapshot: Snapshot | None) -> None:
        if not self._seen:
            # An error about a filled row shows stored values.
            self.check_may_look()
        self._seen, self.pinned, self._files = True, snapshot, _by_bucket(self.manifests.live(snapshot))
        self._vectors = self.vectors_of(snapshot) if snapshot and self.reader.settings.deletion_vectors else None

    def stored_order(
        self, partition: tuple[object, ...], bucket: int, keys: pa.Table, uncommitted: Sequence[ManifestEntry]
    ) -> tuple[pa.Table, Places]:
        """The columns of ``sequence.field`` of stored rows, and the place of each key's row (-1: none). ``keys`` are distinct and
        in key order, ``uncommitted`` as in :meth:`fill`."""
        merge = self.reader.settings.merge
        assert merge is not None, "only keyed tables delete by key"
        if not self._seen:
            self._look(self.pinned or self.snapshots.latest())
        lacks = [(field.name,) for field in merge.sequence_fields]
        rows: list[pa.Table] = []
        places: list[Places] = []
        before = 0
        for _, stored, row_of_key in self._stored(partition, bucket, keys, lacks, uncommitted):
            places.append(np.where(row_of_key >= 0, row_of_key + before, -1))
            rows.append(stored.select([name for (name,) in lacks]))
            before += stored.num_rows
        return pa.concat_tables(rows), np.concatenate(places)

    def _filled(
        self, run: SortedRows, lacks: Sequence[Path], uncommitted: Sequence[ManifestEntry]
    ) -> Iterator[tuple[pa.Table, Kinds]]:
        start, where = 0, f"table {self.reader.files.root_uri}"
        for count, stored, places in self._stored(run.partition, run.bucket, run.rows, lacks, uncommitted):
            rows, kinds = run.rows.slice(start, count), run.kinds[start : start + count]
            self.replaced += int(np.count_nonzero((places >= 0) & ~retracts(kinds)))
            yield with_stored(rows, kinds, lacks, stored, places, self.reader.schema.fields, where=where), kinds
            start += count

    def _stored(
        self,
        partition: tuple[object, ...],
        bucket: int,
        rows: pa.Table,
        lacks: Sequence[Path],
        uncommitted: Sequence[ManifestEntry],
    ) -> Iterator[tuple[int, pa.Table, Places]]:
        """Looks rows up as :meth:`_looked_up`, for all of these rows."""
        place = encode_row(partition, [f.type for f in self.reader.schema.partition_fields]), bucket
        newest = [
            replace(entry.file, min_sequence_number=_OWN_NUMBERS + number, max_sequence_number=_OWN_NUMBERS + number)
            for number, entry in enumerate(uncommitted)
            if (entry.partition, entry.bucket) == place
        ]
        start = 0
        while start < rows.num_rows:
            files = (*self._files.get(place, ()), *newest)
            try:
                for portion in self._looked_up(place, files, rows.slice(start), lacks):
                    yield portion
                    start += portion[0]
            except NotFoundError:
                # Its files expired while they were read, which takes a newer snapshot. Without one a file is missing.
                latest = self.snapshots.latest()
                if latest == self.pinned:
                    raise
                self._look(latest)

    def _looked_up(
        self, place: Bucket, files: tuple[DataFileMeta, ...], rows: pa.Table, lacks: Sequence[Path]
    ) -> Iterator[tuple[int, pa.Table, Places]]:
        """A number of next rows, the stored rows, and the place of each key in these (-1: none)."""
        fields = self.reader.schema.key_fields
        windows = (sorted_keys(rows.slice(n, WINDOW_KEYS), fields) for n in range(0, rows.num_rows, WINDOW_KEYS))
        columns = tuple(dict.fromkeys(path[0] for path in lacks))
        states = StateDiff(reader=self.reader, partition=place[0], bucket=place[1], columns=columns)
        for keys, state in states.rows_at(BucketState(files=files, vectors=self._vectors), windows):
            places = np.full(len(keys), -1, dtype=np.int64)
            places[state.keys] = np.arange(len(state.keys)) if state.places is None else state.places
            yield len(keys), state.rows, places


Rewrite = Callable[
    [int, Bucket, Snapshot | None, Sequence[ManifestEntry], Iterator[tuple[pa.Table, pa.Array, tuple[Path, ...]]]],
    tuple[tuple[ManifestEntry, ...], tuple[KeptColumns, ...]],
]
"""Writes rows (with their kinds and what they lack) as new files of a bucket, from a first sequence number on, with what a
snapshot and own earlier files hold."""


@dataclass(slots=True, kw_only=True)
class KeepCommit:
    """Revises the files for which values were looked up, in every round of a commit.

    ``kept``: what was looked up for the files of the message. ``move`` gives files other buckets first (see ``dynamicbuckets``).
    """

    reader: SplitReader
    snapshots: Snapshots
    manifests: Manifests
    first_sequence: Callable[[Snapshot | None, int], int]
    rewrite: Rewrite
    kept: tuple[KeptColumns, ...]
    move: Revise | None = None
    # The kept columns of the files of the last round, in their order: the commit may have renamed them since.
    _last: list[KeptColumns | None] | None = None

    def revise(self, latest: Snapshot | None, new_entries: tuple[ManifestEntry, ...], attempt: int) -> tuple[ManifestEntry, ...]:
        """The commit's files with the values stored in ``latest``."""
        kept_columns = self._notes_of(new_entries)
        if self.move is not None:
            moved = self.move(latest, new_entries, attempt)
            if moved != new_entries:
                kept_columns, new_entries = self._after_move(kept_columns, len(moved)), moved
        revised: list[ManifestEntry] = []
        notes: list[KeptColumns | None] = []
        for place, members in _members(new_entries).items():
            entries, entry_notes = [new_entries[n] for n in members], [kept_columns[n] for n in members]
            first = next(
                (n for n, note in enumerate(entry_notes) if note and self._is_stale(place, entries[n], note, latest)), None
            )
            if first is not None:
                moving = zip(entries[first:], entry_notes[first:], strict=True)
                rows = (part for entry, note in moving for part in self._rows(entry, note))
                written, new_notes = self.rewrite(self.first_sequence(latest, attempt), place, latest, tuple(entries[:first]), rows)
                named = {note.file_name: note for note in new_notes}
                entries = [*entries[:first], *written]
                entry_notes = [*entry_notes[:first], *(named.get(entry.file.file_name) for entry in written)]
            revised += entries
            notes += entry_notes
        self._last = notes
        return tuple(revised)

    def replaced(self) -> int | None:
        """The number of rows of the commit that were found in the snapshot under it; None where not all of them were looked up."""
        if self._last is None or any(note is None for note in self._last):
            return None
        return sum(note.replaced for note in self._last if note is not None)

    def _notes_of(self, new_entries: tuple[ManifestEntry, ...]) -> list[KeptColumns | None]:
        if self._last is not None:
            assert len(self._last) == len(new_entries), "a round renames files and keeps their order"
            return self._last
        named = {note.file_name: note for note in self.kept}
        return [named.get(entry.file.file_name) for entry in new_entries]

    def _after_move(self, notes: Sequence[KeptColumns | None], count: int) -> list[KeptColumns | None]:
        """The kept columns of ``count`` files that took the place of these, when their rows were given other buckets."""
        lacking = {note.columns if note else () for note in notes}
        if len(lacking) > 1:
            raise ConflictError(
                f"another commit to table {self.reader.files.root_uri} gave new keys of this one other buckets, and its rows lack "
                "different columns; nothing was committed: write the rows again, those with the same columns in one commit"
            )
        (columns,) = lacking
        return [KeptColumns(file_name="", columns=columns, snapshot_id=NOT_LOOKED_UP) if columns else None for _ in range(count)]

    def _is_stale(self, place: Bucket, entry: ManifestEntry, note: KeptColumns, latest: Snapshot | None) -> bool:
        if latest is None:
            return note.snapshot_id != 0
        if not self._is_in_history(note, latest):
            return True
        landed: list[DataFileMeta] = []
        for snapshot_id in range(note.snapshot_id + 1, latest.id + 1):
            snapshot = self.snapshots.find(snapshot_id)
            if snapshot is None:
                return True
            if snapshot.commit_kind.keeps_rows:
                continue
            try:
                delta = self.manifests.delta(snapshot)
            except NotFoundError:
                return True
            bucket_delta = [other for other in delta if (other.partition, other.bucket) == place]
            if any(other.kind is EntryKind.DELETE for other in bucket_delta):
                return True
            landed += [other.file for other in bucket_delta]
        return bool(landed) and self._share_keys(place, entry, landed)

    def _is_in_history(self, note: KeptColumns, latest: Snapshot) -> bool:
        """True if the snapshot that was looked into is still there. Another engine's rollback may have put another in its place."""
        if note.snapshot_id == 0:
            return True
        if note.snapshot_id == NOT_LOOKED_UP or note.snapshot_id > latest.id:
            return False
        snapshot = latest if note.snapshot_id == latest.id else self.snapshots.find(note.snapshot_id)
        return snapshot is not None and snapshot.uuid == note.snapshot_uuid

    def _share_keys(self, place: Bucket, entry: ManifestEntry, landed: Sequence[DataFileMeta]) -> bool:
        try:
            return any(
                next(find_rows(self.reader, *place, landed, keys), None) is not None
                for keys in key_windows(self.reader, *place, [entry.file])
            )
        except NotFoundError:
            # Compacted and expired: its keys are no longer known.
            return True

    def _rows(self, entry: ManifestEntry, note: KeptColumns | None) -> Iterator[tuple[pa.Table, pa.Array, tuple[Path, ...]]]:
        schema = self.reader.schema
        directory = self.reader.directory(entry.partition, entry.bucket)
        for batch in self.reader.file_rows(directory, entry.file, schema.field_names, (KIND_COLUMN,)):
            rows = pa.Table.from_batches([batch]).select(list(schema.field_names)).cast(schema.arrow_schema)
            yield rows, batch.column(KIND_COLUMN), note.columns if note else ()


def _members(new_entries: Sequence[ManifestEntry]) -> dict[Bucket, list[int]]:
    """The numbers of the files by bucket."""
    by_bucket: dict[Bucket, list[int]] = {}
    for number, entry in enumerate(new_entries):
        by_bucket.setdefault((entry.partition, entry.bucket), []).append(number)
    return by_bucket


def _by_bucket(entries: Sequence[ManifestEntry]) -> dict[Bucket, list[DataFileMeta]]:
    by_bucket: dict[Bucket, list[DataFileMeta]] = {}
    for entry in entries:
        by_bucket.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return by_bucket
