"""Marks or folds the older rows that level 0 replaces in files that a compaction does not rewrite (merge on write).

Batch readers of tables with deletion vectors, and of first-row tables, read every file above level 0 without a merge. So a
compaction takes all of level 0, and marks or folds the older rows of the same keys in every other file:

    level 0    a=2  c=1                  the task: its keys are looked up in the upper files outside of the task
    level 3    b=1  d=1                  rewritten with level 0
    level 5    a=1  b=0(deleted)  e=1    not rewritten: position 0 is marked

    what the table needs    deduplicate            the position of the older row is marked
                            other engines          the older row takes part in the fold too (``older``)
                            first-row              the newer row is dropped, the older one stays (``unknown_only``)

Rows that are deleted already count as absent. Memory: one window of keys, the rows found for as many of them at a time as the
bounds allow, and four bytes a marked row.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import pyarrow as pa

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.lsm.gather import take_rows
from tablestore.lsm.merge.mergespec import SortedSource
from tablestore.store.deletionvectors import DeletionVectors, Positions
from tablestore.store.scan.keywindows import key_windows
from tablestore.store.scan.lookup import FileMatches, SortedKeys, find_rows, in_portions, sorted_keys
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.settings import TableSettings

# The rows that are found, once more in key order; and those of level 0, which are merged with them.
_SHARE = 4


class Upper(StrEnum):
    """The treatment of older rows in files that a compaction does not rewrite."""

    NOTHING = "nothing"
    MARK = "mark"
    FOLD = "fold"
    KEEP = "keep"


def upper_rule(settings: TableSettings) -> Upper:
    """The treatment of older rows that the table's compactions need. NOTHING: its readers merge."""
    merge = settings.merge
    if merge is None or not settings.skips_level_zero:
        return Upper.NOTHING
    if merge.engine == "first-row":
        return Upper.KEEP
    plain = merge.engine == "deduplicate" and not merge.sequence_fields and not merge.ignore_delete
    return Upper.MARK if plain else Upper.FOLD


@dataclass(slots=True, kw_only=True)
class UpperFiles:
    """The files above level 0 that one compaction of a bucket leaves alone, and the rows it marks in them.

    ``files`` are these files, ``vectors`` the deletion vectors of the snapshot that the compaction was planned on.
    """

    reader: SplitReader
    partition: bytes
    bucket: int
    files: Sequence[DataFileMeta]
    vectors: DeletionVectors
    _marks: dict[str, list[Positions]] = field(default_factory=lambda: defaultdict(list))

    def mark(self, arriving: Sequence[DataFileMeta]) -> None:
        """Mark the older rows of the keys in these files."""
        for keys in self._windows(arriving):
            for matches in self._alive(keys, None):
                self._note(matches)

    def older(self, arriving: Sequence[DataFileMeta], columns: Sequence[str]) -> SortedSource | None:
        """The older rows of the keys in these files, as one more run of their merge; each is marked when it is read.

        None if there is no file that could hold one.
        """
        if not self.files:
            return None
        return SortedSource(
            min_sequence=min(file.min_sequence_number for file in self.files),
            max_sequence=max(file.max_sequence_number for file in self.files),
            read=lambda: self._older(arriving, columns),
            ours=all(file.footer_digest is not None for file in self.files),
        )

    def unknown_only(self, source: SortedSource) -> SortedSource:
        """The rows of a level-0 file whose key no upper file has."""
        return replace(source, read=lambda: self._unknown(source))

    def index_changes(self, rewritten: Collection[str]) -> tuple[IndexEntry, ...]:
        """The index files that mark the rows that were found, and forget the files of these names, whose vectors were applied."""
        marks = {name: np.concatenate(parts) for name, parts in self._marks.items()}
        return self.vectors.replace_bucket(self.partition, self.bucket, marks=marks, gone=rewritten)

    def _older(self, arriving: Sequence[DataFileMeta], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        windows = self._windows(arriving)
        most = self.reader.bounds.window_bytes // _SHARE
        for _, hits in in_portions(lambda keys: self._alive(keys, columns), windows, most):
            if not hits:
                continue
            rows = pa.Table.from_batches([hit.rows for hit in hits])
            order = np.argsort(np.concatenate([hit.keys for hit in hits]), kind="stable")
            for hit in hits:
                self._note(hit)
            yield from take_rows(rows.combine_chunks(), order).combine_chunks().to_batches()

    def _unknown(self, source: SortedSource) -> Iterator[pa.RecordBatch]:
        fields = self.reader.schema.key_fields
        for batch in source.read():
            stored = np.zeros(batch.num_rows, dtype=np.bool_)
            if batch.num_rows and self.files:
                for matches in self._alive(sorted_keys(batch, fields), None):
                    stored[matches.keys] = True
            yield batch.filter(pa.array(~stored)) if stored.any() else batch

    def _windows(self, arriving: Sequence[DataFileMeta]) -> Iterator[SortedKeys]:
        return key_windows(self.reader, self.partition, self.bucket, arriving) if self.files and arriving else iter(())

    def _alive(self, keys: SortedKeys, columns: Sequence[str] | None) -> Iterator[FileMatches]:
        """The rows that are found and not deleted."""
        for matches in find_rows(self.reader, self.partition, self.bucket, self.files, keys, columns):
            alive = self.vectors.alive(matches.file, matches.positions)
            if alive.all():
                yield matches
            elif alive.any():
                rows = None if matches.rows is None else matches.rows.filter(pa.array(alive))
                yield FileMatches(file=matches.file, positions=matches.positions[alive], keys=matches.keys[alive], rows=rows)

    def _note(self, matches: FileMatches) -> None:
        self._marks[matches.file.file_name].append(matches.positions.astype(np.uint32))
