"""Caches decoded row groups of data files for the next lookup in the same file.

A lookup finds a few rows in each row group of a large file, and most of its cost is decoding the others. Scattered updates repeat
that with every commit, and large files live long. So from the second lookup in a file on, its row groups are kept uncompressed in
scratch files, and rows are gathered from there.

    first lookup    keeps nothing, so that a single write costs no more
    second          decodes, and keeps the row groups in which it finds a key
    later           reads the scratch files

Once a bucket has had a second lookup, the files that compactions add to it are kept from the first lookup on.

A scratch file lies in the folder for temporary files and has no name, so it vanishes with the process. One cache holds at most
``budget_bytes`` in scratch files, and at most half of the free disk; the least recently used data file goes first. A data file
never changes and its name is never used again, so no entry becomes wrong. Files that compactions have replaced go with the next
lookup in their bucket.

Tables of one catalog share a cache (see :class:`~tablestore.store.context.Shared`), and so do tasks that one worker process runs.
"""

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.parquet.parquetread import RowGroup
from tablestore.store.scan.splitreader import SplitReader

# Smaller files cost little to decode, and are soon merged into others.
LEAST_FILE_BYTES = 256 * 1024


class CachedFile:
    """The kept row groups of one data file, by number. Batches are views of scratch files, one a row group."""

    def __init__(self) -> None:
        self._groups: dict[int, pa.RecordBatch] = {}
        self.size_bytes = 0

    def get(self, number: int) -> pa.RecordBatch | None:
        """A row group's rows; None if they were not kept."""
        return self._groups.get(number)

    def put(self, number: int, rows: pa.RecordBatch) -> None:
        """Keep a row group's rows."""
        with tempfile.TemporaryFile(prefix="tablestore-lookup-") as scratch:
            # Straight into the file: large columns are not copied on their way.
            with pa.ipc.new_stream(pa.PythonFile(scratch, mode="w"), rows.schema) as stream:
                stream.write_batch(rows)
            scratch.flush()
            # The map outlives the descriptor: a process may keep more row groups than it may have open files.
            with pa.memory_map(f"/dev/fd/{scratch.fileno()}") as mapped:
                data = mapped.read_buffer()
        with pa.ipc.open_stream(pa.BufferReader(data)) as stream:
            self._groups[number] = stream.read_next_batch()
        self.size_bytes += data.size

    def close(self) -> None:
        """Let the disk space go, as soon as no batch refers to it."""
        self._groups.clear()


@dataclass(slots=True)
class _Entry:
    """Columns of a data file that was looked up: where it belongs, its row groups, and what is kept of them."""

    bucket: Hashable
    data_file: Hashable
    layout: tuple[RowGroup, ...] = ()
    kept: CachedFile | None = None


class LookupCache:
    """Row groups of data files, those of the least recently used file first to go. Threads may share it; a forked process gets an
    empty one.

    What a file is known by may name its columns too: lookups of other columns keep a copy of their own.
    """

    def __init__(self, budget_bytes: int = 4 * 1024**3) -> None:
        self.budget_bytes = budget_bytes
        self._files: OrderedDict[Hashable, _Entry] = OrderedDict()
        # Buckets in which a file was looked up twice, and none had to go since.
        self._again: set[Hashable] = set()
        self._used = 0
        self._owner = os.getpid()
        self._lock = Lock()

    @property
    def used_bytes(self) -> int:
        """Bytes in scratch files."""
        return self._used

    def begin(self, file: Hashable, bucket: Hashable = None, data_file: Hashable = None) -> bool:
        """Note that a file is looked up; True if its row groups are worth keeping: it was before, or another of its bucket was.

        ``data_file``: what :meth:`keep_only` knows it by, if that is something else.
        """
        with self._lock:
            self._check_owner()
            if file in self._files:
                self._files.move_to_end(file)
                if bucket is not None:
                    self._again.add(bucket)
                return True
            self._files[file] = _Entry(bucket, file if data_file is None else data_file)
            return bucket in self._again

    def layout(self, file: Hashable) -> tuple[RowGroup, ...]:
        """The row groups of a file of which rows are kept; none of others."""
        with self._lock:
            self._check_owner()
            entry = self._files.get(file)
            return () if entry is None else entry.layout

    def get(self, file: Hashable, number: int) -> pa.RecordBatch | None:
        """The rows of a row group; None if they were not kept."""
        with self._lock:
            self._check_owner()
            entry = self._files.get(file)
            if entry is None or entry.kept is None:
                return None
            self._files.move_to_end(file)
            return entry.kept.get(number)

    def put(self, file: Hashable, number: int, rows: pa.RecordBatch, layout: tuple[RowGroup, ...] = ()) -> None:
        """Keep the rows of a row group of a file of that layout, if there is room. A full disk is no error: then they are decoded
        again."""
        with self._lock:
            self._check_owner()
            if not self._make_room(rows.nbytes, keep=file):
                return
            try:
                entry = self._files.setdefault(file, _Entry(None, file))
                entry.layout = layout
                entry.kept = entry.kept or CachedFile()
                before = entry.kept.size_bytes
                entry.kept.put(number, rows)
                self._used += entry.kept.size_bytes - before
            except OSError:
                self._drop(file)

    def keep_only(self, bucket: Hashable, data_files: Collection[Hashable]) -> None:
        """Forget the other files of a bucket."""
        with self._lock:
            self._check_owner()
            stale = [name for name, entry in self._files.items() if entry.bucket == bucket and entry.data_file not in data_files]
            for name in stale:
                self._drop(name)

    def _make_room(self, size: int, *, keep: Hashable) -> bool:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        limit = min(self.budget_bytes, self._used + free // 2)
        for file in [file for file, entry in self._files.items() if entry.kept is not None and file != keep]:
            if self._used + size <= limit:
                break
            # Where there is no room for all, keeping everything at once would only push out the rest.
            self._again.discard(self._files[file].bucket)
            self._drop(file)
        return self._used + size <= limit

    def _drop(self, file: Hashable) -> None:
        entry = self._files.pop(file, None)
        if entry is not None and entry.kept is not None:
            self._used -= entry.kept.size_bytes
            entry.kept.close()

    def _check_owner(self) -> None:
        # After a fork the scratch files are the parent's.
        if self._owner != os.getpid():
            self._files, self._again, self._used, self._owner = OrderedDict(), set(), 0, os.getpid()


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The row groups of one data file in a cache. ``fills``: decoded groups are to be kept."""

    cache: LookupCache
    file: Hashable
    fills: bool

    @classmethod
    def of(
        cls, cache: LookupCache, reader: SplitReader, directory: str, file: DataFileMeta, columns: Sequence[str]
    ) -> "KeptGroups | None":
        """Begin to look a file up; None for a small one."""
        if file.file_size < LEAST_FILE_BYTES:
            return None
        place, data_file = place_of(reader, directory), name_of(reader, file)
        name = (place, data_file, tuple(columns))
        return cls(cache, name, cache.begin(name, place, data_file))

    def get(self, group: int) -> pa.RecordBatch | None:
        """See :meth:`LookupCache.get`."""
        return self.cache.get(self.file, group)

    def put(self, group: int, rows: pa.RecordBatch, layout: tuple[RowGroup, ...]) -> None:
        """See :meth:`LookupCache.put`."""
        self.cache.put(self.file, group, rows, layout)

    def layout(self) -> tuple[RowGroup, ...]:
        """See :meth:`LookupCache.layout`."""
        return self.cache.layout(self.file)


def place_of(reader: SplitReader, directory: str) -> Hashable:
    """The cache key of a bucket."""
    return reader.files.root_uri, directory


def name_of(reader: SplitReader, file: DataFileMeta) -> Hashable:
    """The cache key of a file of a bucket."""
    return file.file_name, file.file_size, file.footer_digest, reader.schema.columns_digest
