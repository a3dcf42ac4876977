"""Reads a table's deletion vectors, and writes index files that mark more rows as deleted.

One index file holds the vectors of all data files of a bucket. To mark more rows, or to drop the vectors of files that are
gone, a new one is written that takes its place:

    index-1                 f1: {3}           f2: {0, 7}
    marks f1: {5} f3: {1}, gone: f2
    index manifest          DELETE index-1    ADD index-2
    index-2                 f1: {3, 5}        f3: {1}

Vectors of other files are copied as bytes. The committer refuses a change whose bucket got another index file meanwhile, so of
two deletes in one bucket neither is lost. Memory: the vectors of one bucket, at most an eighth of a byte
per row where many rows are deleted and two bytes a deleted row where few are, and the positions of one file as numpy.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.format.index.deletionvector import (
    byte_range,
    check_file_version,
    decode_deletion_vector,
    encode_deletion_vector,
    encode_vector_file,
)
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.lazy import lazy
from tablestore.store.indexfiles import IndexFiles
from tablestore.types.sortedsets import contained, union

Positions = npt.NDArray[np.uint32]
Marks = Mapping[str, npt.NDArray[np.integer]]
"""Positions to mark, by data file name."""


def live_rows(rows: Iterator[pa.RecordBatch], file: DataFileMeta, deleted: npt.NDArray[np.integer]) -> Iterator[pa.RecordBatch]:
    """The rows of a data file, given from its beginning, without those at the positions ``deleted``."""
    alive = np.ones(file.row_count, dtype=np.bool_)
    alive[deleted] = False
    start = 0
    for batch in rows:
        yield batch.filter(pa.array(alive[start : start + batch.num_rows]))
        start += batch.num_rows


class DeletionVectors:
    """The deletion vectors of one snapshot."""

    def __init__(self, files: IndexFiles, index: Sequence[IndexEntry]) -> None:
        self._files = files
        self._entries = [entry for entry in index if entry.index_type == DELETION_VECTORS]
        self._loaded: tuple[str, bytes] = ("", b"")

    def __contains__(self, data_file: str) -> bool:
        return data_file in self._places

    def positions(self, data_file: str, row_count: int | None = None) -> Positions:
        """The deleted positions of a data file, ascending. Raises FormatError if the vector is damaged or of another file."""
        place = self._places.get(data_file)
        if place is None:
            return np.empty(0, np.uint32)
        index_file, where = place
        return decode_deletion_vector(self._bytes(index_file, where), self._files.describe(index_file), row_count=row_count)

    def alive(self, file: DataFileMeta, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """The mask of the positions of a data file, ascending, that are not deleted."""
        return ~contained(places, self.positions(file.file_name, file.row_count).astype(np.int64))

    def deleted_count(self, data_file: str) -> int:
        """The number of deleted rows of a data file."""
        place = self._places.get(data_file)
        if place is None:
            return 0
        cardinality = place[1].cardinality
        return len(self.positions(data_file)) if cardinality is None else cardinality

    def deleted_counts(self) -> dict[str, int]:
        """The number of deleted rows of every data file that has a vector."""
        return {name: self.deleted_count(name) for name in self._places}

    def replace_bucket(self, partition: bytes, bucket: int, *, marks: Marks, gone: Collection[str] = ()) -> tuple[IndexEntry, ...]:
        """The index changes that mark positions in files of one bucket and forget the files that are gone.

        Writes the bucket's new index file. Empty if nothing changes.
        """
        bucket_entries = [entry for entry in self._entries if (entry.partition, entry.bucket) == (partition, bucket)]
        data_files = [vector.data_file for entry in bucket_entries for vector in entry.deletion_vectors or ()]
        marks = {name: positions for name, positions in marks.items() if len(positions) and name not in gone}
        if not marks and not any(name in gone for name in data_files):
            return ()
        vectors: dict[str, tuple[bytes, int]] = {}
        for name in data_files:
            if name not in gone and name not in marks:
                index_file, where = self._places[name]
                vectors[name] = self._bytes(index_file, where), self.deleted_count(name)
        for name, positions in marks.items():
            united = union(self.positions(name), positions.astype(np.uint32))
            vectors[name] = encode_deletion_vector(united), len(united)
        changes = [replace(entry, kind=EntryKind.DELETE) for entry in bucket_entries]
        if vectors:
            data, ranges = encode_vector_file(vectors)
            changes.append(
                self._files.write(
                    data,
                    partition=partition,
                    bucket=bucket,
                    index_type=DELETION_VECTORS,
                    row_count=len(ranges),
                    deletion_vectors=ranges,
                )
            )
            self._files.sync()
        return tuple(changes)

    @lazy
    def _places(self) -> dict[str, tuple[str, DeletionVectorRange]]:
        return {vector.data_file: (entry.file_name, vector) for entry in self._entries for vector in entry.deletion_vectors or ()}

    def _bytes(self, index_file: str, where: DeletionVectorRange) -> bytes:
        # The files of a bucket are asked for one after the other, and their vectors lie in one index file.
        if self._loaded[0] != index_file:
            data = self._files.read(index_file)
            check_file_version(data, self._files.describe(index_file))
            self._loaded = index_file, data
        start, size = byte_range(where)
        return self._loaded[1][start : start + size]
