"""Splits: the least units of reading, each files of one bucket and how to merge them.

:class:`ColumnSplits` are those of a plan of many files, which stay columns: a file is an object while its split is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from tablestore.errors import UnsupportedError
from tablestore.format.datafiles.datafilereader import unread_format
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import EntryColumns, Places
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import file_format_of
from tablestore.lsm.run import Section
from tablestore.options import FILE_FORMATS
from tablestore.types.arrays import places_array

# Small, so that tasks that are packed from splits come out even.
SPLIT_BYTES = 8 * 1024 * 1024
# The cost of opening one more file, as bytes: many small files make a split of their own weight.
OPEN_COST_BYTES = 256 * 1024
# Files of which all columns are loaded together: those of neighbouring splits may lie in all manifests.
FILES_LOADED = 131_072
# Files of columns that become objects together.
_FILES_AT_A_TIME = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFile:
    """The place of the deletion vector of a data file."""

    index_file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The least unit of reading: files of one bucket and how to merge them.

    ``sections`` are independent; a section of one run is read as it is, others are merged.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    sections: tuple[Section, ...]
    deletions: tuple[tuple[str, DeletionFile], ...] = ()

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files of the split, section by section."""
        return tuple(file for section in self.sections for file in section.files)

    @property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """Its files as they were added."""
        return tuple(
            ManifestEntry(
                kind=EntryKind.ADD, partition=self.partition, bucket=self.bucket, total_buckets=self.total_buckets, file=file
            )
            for file in self.files
        )

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.file_size for file in self.files)

    @property
    def weight(self) -> int:
        """The cost of reading it, as bytes."""
        return sum(map(_weight, self.sections))

    @property
    def needs_merge(self) -> bool:
        """True if rows of one key may lie in several of its files."""
        return any(section.needs_merge for section in self.sections)


class ColumnSplits(Sequence[Split]):
    """Splits of files that are columns. A split becomes objects when it is taken; some thousand files do at a time for one who goes
    through all.

    ``files``: all of them, in the order of the splits, their sections and runs; each of these begins at a place among the files.
    ``vectors``: deletion vectors by the names of data files. Memory: about 350 bytes a file, where objects take 1.3 KiB; of late
    columns 60 bytes, and those of some ten thousand files while splits are taken.
    """

    def __init__(
        self, files: EntryColumns, *, splits: Places, sections: Places, runs: Places, vectors: Mapping[str, DeletionFile]
    ) -> None:
        self.files, self.split_starts, self.section_starts, self.run_starts = files, splits, sections, runs
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self.split_starts)

    @overload
    def __getitem__(self, place: int) -> Split: ...

    @overload
    def __getitem__(self, place: slice) -> "ColumnSplits": ...

    def __getitem__(self, place: int | slice) -> "Split | ColumnSplits":
        """One split, or neighbouring ones."""
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            assert step == 1, "only neighbours are one table"
            return self._between(first, max(first, last))
        first = range(len(self))[place]
        (split,) = self._between(first, first + 1)._objects()
        return split

    def __iter__(self) -> Iterator[Split]:
        for loaded in self.pieces(FILES_LOADED):
            for piece in loaded.of(loaded.files.loaded()).pieces(_FILES_AT_A_TIME):
                yield from piece._objects()

    def pieces(self, files: int) -> Iterator["ColumnSplits"]:
        """Neighbouring splits with so many files together; one that has more is alone."""
        ends = np.append(self.split_starts[1:], len(self.files))
        first = 0
        while first < len(self):
            last = int(np.searchsorted(ends, self.split_starts[first] + files, "right"))
            last = max(last, first + 1)
            yield self._between(first, last)
            first = last

    def of(self, files: EntryColumns) -> "ColumnSplits":
        """The same splits of other columns of the files."""
        starts = {"splits": self.split_starts, "sections": self.section_starts, "runs": self.run_starts}
        return ColumnSplits(files, **starts, vectors=self._vectors)

    @property
    def sizes(self) -> Places:
        """The bytes on disk of each split."""
        return self._sums(self.files.numbers("file_size"))

    @property
    def rows(self) -> Places:
        """The rows of the files of each split."""
        return self._sums(self.files.numbers("row_count"))

    @property
    def weights(self) -> Places:
        """The cost of reading each split, as bytes."""
        return self._sums(np.maximum(self.files.numbers("file_size"), OPEN_COST_BYTES))

    @property
    def merged_files(self) -> int:
        """The number of files in sections that need a merge."""
        files = np.diff(np.append(self.section_starts, len(self.files)))
        runs = np.diff(np.append(np.searchsorted(self.run_starts, self.section_starts), len(self.run_starts)))
        return int(files[runs > 1].sum())

    def vectors(self) -> dict[str, DeletionFile]:
        """The deletion vectors of the files, by their names."""
        if not self._vectors:
            return {}
        marked = np.flatnonzero(self.files.is_in("file_name", self._vectors.keys()))
        return {name: self._vectors[name] for name in self.files.column("file_name").take(places_array(marked)).to_pylist()}

    def buckets(self) -> set[tuple[bytes, int]]:
        """The partitions and buckets that have splits."""
        return set(self.files.groups("partition", "bucket")[0])

    def _sums(self, numbers: Places) -> Places:
        sums: Places = np.add.reduceat(numbers, self.split_starts) if len(self) else np.zeros(0, np.int64)
        return sums

    def _between(self, first: int, last: int) -> "ColumnSplits":
        start = int(self.split_starts[first]) if first < last else 0
        stop = start if first >= last else int(self.split_starts[last]) if last < len(self) else len(self.files)

        def among(starts: Places) -> Places:
            here: Places = starts[np.searchsorted(starts, start) : np.searchsorted(starts, stop)] - start
            return here

        return ColumnSplits(
            self.files.slice(start, stop - start),
            splits=among(self.split_starts),
            sections=among(self.section_starts),
            runs=among(self.run_starts),
            vectors=self._vectors,
        )

    def _objects(self) -> Iterator[Split]:
        entries = self.files.entries()
        is_section, is_run = np.zeros(len(entries), np.bool_), np.zeros(len(entries), np.bool_)
        is_section[self.section_starts] = is_run[self.run_starts] = True
        begins = list(zip(is_section.tolist(), is_run.tolist(), strict=True))
        starts = self.split_starts.tolist()
        for start, stop in zip(starts, [*starts[1:], len(entries)], strict=False):
            sections: list[list[list[DataFileMeta]]] = []
            for entry, (begins_section, begins_run) in zip(entries[start:stop], begins[start:stop], strict=True):
                if begins_section:
                    sections.append([])
                if begins_run:
                    sections[-1].append([])
                sections[-1][-1].append(entry.file)
            yield Split(
                partition=entries[start].partition,
                bucket=entries[start].bucket,
                total_buckets=entries[start].total_buckets,
                sections=tuple(Section(tuple(map(tuple, runs))) for runs in sections),
                deletions=deletions_of((entry.file.file_name for entry in entries[start:stop]), self._vectors),
            )


def check_readable(file_name: str, write_cols: Sequence[str] | None, external_path: str | None) -> None:
    """Refuse a file that the engine would read wrong, by name. Raises UnsupportedError."""
    if file_format_of(file_name) not in FILE_FORMATS:
        raise unread_format(file_name)
    if write_cols is not None:
        raise UnsupportedError(
            f"data file {file_name} holds only the columns {', '.join(write_cols)} (data evolution), which tablestore "
            "does not read; compact the table with the engine that wrote it",
            kind="partial-columns",
        )
    if external_path is not None:
        raise UnsupportedError(
            f"data file {file_name} lies outside of the table, at an external path; tablestore reads only inside the table's "
            "directory",
            kind="external-path",
        )


def deletions_of(names: Iterable[str], vectors: Mapping[str, DeletionFile]) -> tuple[tuple[str, DeletionFile], ...]:
    """The deletion vectors of the files of these names, in their order."""
    return tuple((name, vectors[name]) for name in sorted(names) if name in vectors) if vectors else ()


def weights_of(splits: Sequence[Split]) -> Places:
    """The cost of reading each split, as bytes."""
    return splits.weights if isinstance(splits, ColumnSplits) else np.array([split.weight for split in splits], np.int64)


def rows_of(splits: Sequence[Split]) -> Places:
    """The rows of the files of each split."""
    if isinstance(splits, ColumnSplits):
        return splits.rows
    return np.array([sum(file.row_count for file in split.files) for split in splits], np.int64)


def sizes_of(splits: Sequence[Split]) -> Places:
    """The bytes on disk of each split."""
    return splits.sizes if isinstance(splits, ColumnSplits) else np.array([split.size_bytes for split in splits], np.int64)


def have_deletions(splits: Sequence[Split]) -> bool:
    """True if a file of these has a deletion vector."""
    return bool(splits.vectors()) if isinstance(splits, ColumnSplits) else any(split.deletions for split in splits)


def first_of_packs(costs: Places, most: int, ends: Places) -> Places:
    """The places where packs of neighbours begin that cost up to ``most`` together; what costs more is alone. ``ends``: the place
    behind the last neighbour of each."""
    count = len(costs)
    before = np.append(0, np.cumsum(costs))
    # The place at which the pack after one that begins here begins.
    behind = np.searchsorted(before, before[:-1] + most, "right") - 1
    behind = np.minimum(np.maximum(behind, np.arange(1, count + 1)), ends)
    if (behind == np.arange(1, count + 1)).all():
        return np.arange(count)
    following, firsts, place = behind.tolist(), [], 0
    while place < count:
        firsts.append(place)
        place = following[place]
    return np.array(firsts, np.int64)


def _weight(section: Section) -> int:
    return sum(max(file.file_size, OPEN_COST_BYTES) for file in section.files)


def pack_sections(sections: Sequence[Section], split_bytes: int) -> Iterator[tuple[Section, ...]]:
    """Neighbouring sections up to ``split_bytes`` together; a larger one alone."""
    pending: list[Section] = []
    weight = 0
    for section in sections:
        cost = _weight(section)
        if pending and weight + cost > split_bytes:
            yield tuple(pending)
            pending, weight = [], 0
        pending.append(section)
        weight += cost
    if pending:
        yield tuple(pending)
