"""Holds the new files of a large commit as columns and as records of a manifest, so that they land without an object for each.

Whoever goes through them gets objects, some thousand at a time; what a commit has to know of all of them is read from columns.

Memory: about 1 KiB an entry, half of it the record that the manifest gets.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.derivedcolumns import NAME_HASH
from tablestore.format.manifest.entrycolumns import EntryColumns, decode_together
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.types.arrays import numbers_of, one_chunk, places_array

FEWEST_ENTRIES = 1_000
"""Fewer entries are objects."""
_ROWS, _BYTES, _DELETES = (attrgetter(f"file.{name}") for name in ("row_count", "file_size", "delete_row_count"))
# Records of one commit are one array, of at most 2 GiB.
_MOST_BYTES = 1 << 30
_ENTRIES_AT_A_TIME = 4_096


class EncodedEntries(Sequence[ManifestEntry]):
    """ADDs as ``columns`` and as ``records`` (binary). Equal to a tuple of the same entries."""

    def __init__(self, columns: EntryColumns, records: pa.ChunkedArray) -> None:
        self.columns, self.records = columns, records

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, place: int) -> ManifestEntry: ...

    @overload
    def __getitem__(self, place: slice) -> "EncodedEntries": ...

    def __getitem__(self, place: "int | slice") -> "ManifestEntry | EncodedEntries":
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            assert step == 1, "only neighbours are one table"
            count = max(last - first, 0)
            return EncodedEntries(self.columns.slice(first, count), self.records.slice(first, count))
        (entry,) = self.columns.slice(range(len(self))[place], 1).entries()
        return entry

    def __iter__(self) -> Iterator[ManifestEntry]:
        for start in range(0, len(self), _ENTRIES_AT_A_TIME):
            yield from self.columns.slice(start, _ENTRIES_AT_A_TIME).entries()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | EncodedEntries):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @property
    def names(self) -> list[str]:
        """The names of the files, in order."""
        names: list[str] = self.columns.column("file_name").to_pylist()
        return names

    @property
    def rows(self) -> int:
        """The rows of all files."""
        # As Python's numbers, which do not overflow.
        return sum(self.columns.numbers("row_count").tolist())

    @property
    def deleted_rows(self) -> int | None:
        """The rows of all files that delete others; None if one file does not say."""
        counts = self.columns.column("delete_row_count")
        return None if counts.null_count else sum(numbers_of(counts).tolist())

    @property
    def max_sequence_number(self) -> int:
        """The greatest sequence number of the files, -1 for none."""
        return int(self.columns.numbers("max_sequence_number").max(initial=-1))

    @property
    def are_different(self) -> bool:
        """True if no file is there twice; False also where it may be."""
        hashes = np.sort(self.columns.numbers(NAME_HASH))
        return not (hashes[1:] == hashes[:-1]).any()

    def of_each_place(self) -> tuple[ManifestEntry, ...]:
        """One entry of each partition, bucket and number of buckets."""
        _, which = self.columns.groups("partition", "bucket", "total_buckets")
        return self.columns.take(np.unique(which, return_index=True)[1]).entries()

    def parts(self, most_bytes: int) -> Iterator[tuple[EntryColumns, pa.Array]]:
        """The entries by partition and bucket, in each as they are here, in parts of about so many bytes of records and at most an
        eighth more; a larger entry alone. Each is in memory of its own."""
        partitions = self.columns.column("partition")
        ranks = np.argsort(np.argsort(np.array(partitions.dictionary.to_pylist(), object)))
        order = np.lexsort((self.columns.numbers("bucket"), ranks[numbers_of(partitions.indices)]))
        sizes = numbers_of(one_chunk(pc.binary_length(self.records)))
        ends = np.cumsum(sizes[order].astype(np.int64))
        start = 0
        while start < len(self):
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + most_bytes, "right")), start + 1)
            # A small rest would be a manifest without a sidecar.
            if int(ends[-1]) - before <= most_bytes + most_bytes // 8:
                stop = len(self)
            places = order[start:stop]
            yield self.columns.take(places), one_chunk(self.records.take(places_array(places)))
            start = stop


def decode_entries(containers: Sequence[bytes], name: str) -> list[EncodedEntries] | None:
    """The entries of each of some manifests, decoded together; None if they have to be read as objects: they are few, in a rare
    form, damaged, or not all ADDs."""
    decoded = decode_together(containers, name, fewest=FEWEST_ENTRIES)
    if decoded is None:
        return None
    columns, records, counts = decoded
    if (columns.numbers("kind") != EntryKind.ADD).any():
        return None
    entries, ends = EncodedEntries(columns, pa.chunked_array([records])), np.cumsum([0, *counts]).tolist()
    return [entries[start:stop] for start, stop in pairwise(ends)]


def joined(parts: Iterable[Sequence[ManifestEntry]]) -> Sequence[ManifestEntry]:
    """The entries of all parts, in order: encoded if all of them are, and not copied then, else as objects."""
    parts = list(filter(None, parts))
    if set(map(type, parts)) != {EncodedEntries}:
        return tuple(chain.from_iterable(parts))
    encoded = cast(list[EncodedEntries], parts)
    if sum(part.records.nbytes for part in encoded) > _MOST_BYTES:
        return tuple(chain.from_iterable(parts))
    if len(encoded) == 1:
        return encoded[0]
    table = pa.concat_tables([part.columns.table for part in encoded]).unify_dictionaries()
    return EncodedEntries(EntryColumns(table), pa.chunked_array([chunk for part in encoded for chunk in part.records.chunks]))


def names_of(entries: Iterable[ManifestEntry]) -> list[str]:
    """The names of the files of entries, in order."""
    return entries.names if isinstance(entries, EncodedEntries) else [entry.file.file_name for entry in entries]


def each_place(entries: Iterable[ManifestEntry]) -> Iterable[ManifestEntry]:
    """The entries, or one of each partition, bucket and number of buckets where that takes less."""
    return entries.of_each_place() if isinstance(entries, EncodedEntries) else entries


def rows_in(entries: Sequence[ManifestEntry]) -> int:
    """The rows of the files of entries, those that delete others too."""
    return entries.rows if isinstance(entries, EncodedEntries) else sum(map(_ROWS, entries))


def deleting_rows_in(entries: Sequence[ManifestEntry]) -> int | None:
    """The rows of these files that delete others; None if one file does not say."""
    if isinstance(entries, EncodedEntries):
        return entries.deleted_rows
    counts = list(map(_DELETES, entries))
    return None if None in counts else sum(counts)


def files_and_bytes(entries: Sequence[ManifestEntry]) -> tuple[int, int]:
    """The number of files of the entries, and of their bytes."""
    if isinstance(entries, EncodedEntries):
        # As Python's numbers, which do not overflow.
        return len(entries), sum(entries.columns.numbers("file_size").tolist())
    return len(entries), sum(map(_BYTES, entries))
