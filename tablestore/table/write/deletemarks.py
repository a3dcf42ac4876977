"""Deletes rows by condition in append tables with deletion vectors: rows are marked, no file is written again.

Which rows of a file match never changes, so every file is looked at once, however often the commit is planned again; what a
round of the commit plans is made from that and from the vectors of the newest snapshot:

    matching   f1: {3, 5}   f2: {0, 1}   f3: {}        found once, kept as bytes of a vector each
    newest     f1: {3}      f2: {}                     of f2's two rows none is left: the file itself goes
    this round f1: {3, 5}   DELETE f2

So rows that others appended meanwhile are found too, rows that others deleted stay deleted, and after a lost race only the new
files are read. Memory: two bytes a matching row where few match, an eighth of a byte a row where many do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tablestore.format.index.deletionvector import decode_deletion_vector, encode_deletion_vector
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.types.filter.predicate import Predicate
from tablestore.types.sortedsets import union

Positions = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The positions, ascending, of the matching rows of a live file (its ADD ``entry``), deleted or not; there are some."""

    entry: ManifestEntry
    positions: Positions


@dataclass(slots=True)
class MarkingDelete:
    """One delete; the committer calls :meth:`plan_deletes` and :meth:`plan_index`, in this order, in every round.

    ``matching``: the matching rows of a snapshot. May raise StalePlan.
    """

    context: TableContext
    matching: Callable[[Snapshot], Iterable[MatchedRows]]
    _marks: dict[tuple[bytes, int], dict[str, Positions]] = field(default_factory=dict)

    def plan_deletes(self, latest: Snapshot | None) -> Sequence[ManifestEntry]:
        """DELETE entries of the files of which no row is left."""
        context = self.context
        self._marks = defaultdict(dict)
        if latest is None:
            return ()
        vectors = context.deletion_vectors(latest)
        emptied: list[ManifestEntry] = []
        for match in self.matching(latest):
            entry, file = match.entry, match.entry.file
            deleted = vectors.positions(file.file_name, file.row_count)
            all_positions = union(deleted, match.positions)
            if len(all_positions) == file.row_count:
                emptied.append(replace(entry, kind=EntryKind.DELETE))
            elif len(all_positions) > len(deleted):
                self._marks[entry.partition, entry.bucket][file.file_name] = match.positions
        return emptied

    def plan_index(self, latest: Snapshot | None, deletes: Sequence[ManifestEntry]) -> Sequence[IndexEntry]:
        """The index files that mark the matching rows."""
        if latest is None:
            return ()
        vectors = self.context.deletion_vectors(latest)
        deleted_files = {entry.file.file_name for entry in deletes}
        changes: list[IndexEntry] = []
        for (partition, bucket), marks in self._marks.items():
            changes += vectors.replace_bucket(partition, bucket, marks=marks, gone=deleted_files)
        return changes


@dataclass(slots=True)
class MatchingRows:
    """The rows of any snapshot for which ``predicate`` is TRUE. A file is looked at once."""

    context: TableContext
    predicate: Predicate
    _encoded: dict[str, bytes] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> Iterator[MatchedRows]:
        for split in plan_scan(self.context, snapshot, self.predicate).splits:
            for entry in split.entries:
                if len(positions := self._positions(split, entry.file)):
                    yield MatchedRows(entry, positions)

    def _positions(self, split: Split, file: DataFileMeta) -> Positions:
        name = file.file_name
        if name not in self._encoded:
            positions = SplitReader.whole(self.context, (), self.predicate).matching(split, file)
            self._encoded[name] = encode_deletion_vector(positions) if len(positions) else b""
        encoded = self._encoded[name]
        return decode_deletion_vector(encoded, name) if encoded else np.empty(0, np.uint32)
