"""Writes rows of a table to level-0 data files, through the write buffer.

    rows -> WriteBuffer (sorts, folds, routes to partition and bucket) -> one level-0 run a bucket -> RunWriter -> entries

Memory: the buffer's byte budget, plus one sorted copy of it while it is flushed. No reader sees the files before a commit names
them.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, StorageError
from tablestore.format.datafiles.datafilereader import open_data_file
from tablestore.format.datafiles.datafilewriter import create_data_file
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.parquet.parquetschema import SEQUENCE_COLUMN, file_schema
from tablestore.format.paths import data_file_name, file_format_of
from tablestore.format.snapshot import Snapshot
from tablestore.ids import Ids
from tablestore.inorder import in_order, threads_for
from tablestore.io.filestore import FileStore
from tablestore.lsm.compaction.compactiontask import CompactionPolicy
from tablestore.lsm.rangecuts import RangeCuts
from tablestore.lsm.write.writebuffer import AssignBuckets, SortedRows, WriteBuffer
from tablestore.store.datapaths import DataPaths, entry_directory, entry_path
from tablestore.store.message import KeptColumns
from tablestore.store.settings import RangeLayout
from tablestore.store.tracking import Tracking
from tablestore.store.write.rowconstraints import RowConstraints
from tablestore.store.write.runwriter import RunTarget, RunWriter
from tablestore.store.write.spillablerows import SpillableRows
from tablestore.store.write.storedvalues import StoredValueFiller
from tablestore.types.arrays import Kinds, Mask, Places
from tablestore.types.evolution.fieldpaths import Path
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import KEY_PREFIX, POSTPONE_BUCKET, TableSchema


class DataWriter:
    """Writes rows of one table as new level-0 files, and removes them if its ``with`` block fails. One writer, one thread.

    ``first_sequence``: the number of the first file; the following ones count on. ``assign`` gives the buckets of rows where the
    table does not fix them. ``changelog``: what is written to the partitions that it includes is kept in changelog files too,
    unfolded. ``filler`` looks up what rows lack, and the order of rows that are deleted by key, in the table and in ``own_before``:
    files of the same commit that were flushed earlier. Without it such a delete has the order of what was written before it.
    ``once``: each key is written at most once (see :class:`WriteBuffer`). ``ranges``: the rows of an append table are held until
    :meth:`finish`, which lays them out. ``constraints``: rows that lacked columns are compared with them once they are filled;
    others have been before. The rows handed in must already have the table's schema (``types.conform.conform``).
    """

    def __init__(
        self,
        target: RunTarget,
        *,
        first_sequence: int,
        assign: AssignBuckets | None = None,
        changelog: Tracking | None = None,
        filler: StoredValueFiller | None = None,
        own_before: Sequence[ManifestEntry] = (),
        once: bool = False,
        ranges: RangeLayout | None = None,
        constraints: RowConstraints | None = None,
    ) -> None:
        schema, settings = target.schema, target.settings
        self._files, self._schema = target.files, schema
        self._paths = DataPaths(schema, settings)
        self._target = target
        self._next_sequence, self._numbering = first_sequence, Lock()
        self._buffer = WriteBuffer(
            schema,
            total_buckets=settings.total_buckets,
            budget_bytes=settings.write_buffer_bytes,
            assign=assign,
            merge=settings.merge,
            keep_input=changelog is not None,
            once=once,
            stored_order=None if filler is None else self._stored_order,
            folds=not settings.postpones,
        )
        self._entries: list[ManifestEntry] = []
        self._tracking = changelog
        self._changelog: list[ManifestEntry] = []
        self._started_millis: int | None = None
        self._failed = False
        self._last_creation = 0
        self._ranges = ranges
        self._held = None if ranges is None else SpillableRows(ranges.order, settings.write_buffer_bytes)
        self._filler, self._own_before = filler, tuple(own_before)
        self._constraints = constraints
        self._lacks: tuple[Path, ...] = ()
        self._kept: list[KeptColumns] = []

    @property
    def created_millis(self) -> int | None:
        """The time when the first file was begun, None before that."""
        return self._started_millis

    def write(
        self,
        rows: pa.Table,
        kinds: pa.Array | None = None,
        *,
        lacks: tuple[Path, ...] = (),
        orderless: Mask | None = None,
    ) -> None:
        """Take rows; ``kinds`` (int8 row kinds) None means that all are inserts. What they ``lack`` is looked up, and where they
        are ``orderless`` retractions the order of the rows that they remove."""
        if rows.num_rows == 0:
            return
        if lacks != self._lacks:
            # All rows of a flush lack the same.
            self.flush()
        self._lacks = lacks
        if lacks and kinds is not None:
            deletes = pc.equal(kinds, int(RowKind.DELETE))
            if pc.any(deletes).as_py():
                # Deletes go in a flush of their own: a row after the delete of its key keeps no stored value.
                self._buffer.add(rows.filter(deletes), kinds.filter(deletes))
                self.flush()
        self._buffer.add(rows, kinds, orderless=orderless)
        if self._buffer.full:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows as one run per bucket. After a failure they are lost, and the writer accepts nothing more."""
        if self._failed:
            raise InvalidInputError(
                f"this writer of table {self._files.root_uri} failed to write some of its rows, so it cannot commit the rest; "
                "begin a new writer and write all rows again",
                kind="writer-failed",
            )
        self._failed = True
        # Rows that are looked up see the files of the runs before; what is postponed is ordered by when it was written.
        threads = 1 if self._lacks or self._target.settings.postpones else threads_for(self._buffer.nbytes)
        if self._tracking is not None:
            # Before the rows themselves: a delete by key has the order of the row that was stored before it.
            tracked = (run for run in self._buffer.flush_input() if self._tracking.includes(run.partition))
            self._write_runs(tracked, self._changelog, threads, changelog=True)
        if self._held is None:
            self._write_runs(self._buffer.flush(), self._entries, threads)
        else:
            for run in self._buffer.flush():
                self._held.add(run.partition, run.rows)
        self._failed = False

    def finish(self) -> tuple[ManifestEntry, ...]:
        """Flush and hand over the new files, in the order in which they were written, their names durable."""
        self.flush()
        if self._held is not None:
            self._write_ranges(self._held)
        written = (*self._entries, *self._changelog)
        for directory in sorted({entry_directory(self._paths, entry, self._schema) for entry in written}):
            self._files.sync(directory)
        entries, self._entries = tuple(self._entries), []
        return entries

    def take_changelog(self) -> tuple[ManifestEntry, ...]:
        """Hand over the changelog files for the files that :meth:`finish` handed over."""
        entries, self._changelog = tuple(self._changelog), []
        return entries

    def take_kept(self) -> tuple[KeptColumns, ...]:
        """Hand over the kept columns of the files that :meth:`finish` handed over."""
        handed_over, self._kept = tuple(self._kept), []
        return handed_over

    def abort(self) -> None:
        """Remove the files that were written and not handed over."""
        if self._held is not None:
            self._held.close()
        for entry in (*self._entries, *self.take_changelog()):
            self._files.delete(entry_path(self._paths, entry, self._schema))
        self._entries = []

    def __enter__(self) -> "DataWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            with suppress(StorageError):
                self.abort()

    def _write_runs(
        self, runs: Iterator[SortedRows], entries: list[ManifestEntry], threads: int, *, changelog: bool = False
    ) -> None:
        """Write runs of different buckets, several at a time, while the next ones are sorted; ``entries`` takes their files."""
        if threads == 1:
            for run in runs:
                entries.extend(self._written(run, changelog=changelog))
            return
        complete: list[tuple[ManifestEntry, ...]] = []

        def write(run: SortedRows) -> tuple[ManifestEntry, ...]:
            written = self._written(run, changelog=changelog)
            complete.append(written)
            return written

        count = len(entries)
        try:
            # One more than the cores: at its end each waits for the disk.
            for written in in_order(write, runs, threads=threads + 1):
                entries.extend(written)
        except BaseException:
            # Those behind the failing run too, so that an abort removes them.
            entries[count:] = [entry for written in complete for entry in written]
            raise

    def _written(self, run: SortedRows, *, changelog: bool = False) -> tuple[ManifestEntry, ...]:
        if run.rows.num_rows == 0:
            return ()
        if self._started_millis is None:
            self._started_millis = self._target.clock.now_ms()
        parts: Iterator[tuple[pa.Table, Kinds]] = iter(((run.rows, run.kinds),))
        looked_up: Snapshot | None = None
        if self._lacks:
            assert self._filler is not None, "rows that lack columns need a filler"
            before = self._filler.replaced
            looked_up, parts = self._filler.fill(run, self._lacks, (*self._own_before, *self._entries))
        postpones = self._target.settings.postpones
        with RunWriter(
            self._target,
            partition=run.partition,
            bucket=POSTPONE_BUCKET if postpones else run.bucket,
            total_buckets=self._target.settings.total_buckets,
            level=0,
            source=FileSource.APPEND,
            numbers=_no_numbers if postpones else self._take_numbers,
            target_bytes=self._file_bytes(run),
            changelog=changelog,
        ) as writer:
            for rows, kinds in parts:
                if self._lacks and self._constraints is not None:
                    self._constraints.check(rows, kinds)
                writer.write(rows, kinds)
            entries = writer.close()
        if postpones:
            entries = self._in_order_of_creation(entries)
        if self._lacks:
            assert self._filler is not None, "they were looked up"
            snapshot_id, uuid = (looked_up.id, looked_up.uuid) if looked_up else (0, None)
            # The rows of one run: with its first file all of them are counted.
            counts = [self._filler.replaced - before, *[0] * (len(entries) - 1)]
            self._kept += [
                KeptColumns(
                    file_name=entry.file.file_name,
                    columns=self._lacks,
                    snapshot_id=snapshot_id,
                    snapshot_uuid=uuid,
                    replaced=count,
                )
                for entry, count in zip(entries, counts, strict=True)
            ]
        return entries

    def _write_ranges(self, held: SpillableRows) -> None:
        """Write what is held, a partition after the other, in order; a file ends where a range does."""
        assert self._ranges is not None, "rows are held for a layout"
        self._failed = True
        for partition, count, batches in held.partitions():
            if self._started_millis is None:
                self._started_millis = self._target.clock.now_ms()
            cuts = RangeCuts(self._ranges.order.columns, count=self._ranges.count, row_count=count)
            with RunWriter(
                self._target,
                partition=partition,
                bucket=0,
                total_buckets=self._target.settings.total_buckets,
                level=self._ranges.level,
                source=FileSource.APPEND,
                numbers=self._take_numbers,
            ) as writer:
                for batch in batches:
                    rows, start = pa.Table.from_batches([batch]), 0
                    for end in cuts.ends(batch):
                        writer.write(rows.slice(start, end - start))
                        writer.cut()
                        start = end
                    writer.write(rows.slice(start))
                self._entries.extend(writer.close())
        held.close()
        self._failed = False

    def _in_order_of_creation(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestEntry, ...]:
        """The entries with a later creation time each, because a compaction replays postponed files in its order."""
        times = [entry.file.creation_time_millis or 0 for entry in entries]
        for place, time in enumerate(times):
            times[place] = self._last_creation = max(time, self._last_creation + 1)
        return tuple(
            replace(entry, file=replace(entry.file, creation_time_millis=time)) for entry, time in zip(entries, times, strict=True)
        )

    def _stored_order(self, partition: tuple[object, ...], bucket: int, keys: pa.Table) -> tuple[pa.Table, Places]:
        assert self._filler is not None, "a delete by key is looked up"
        return self._filler.stored_order(partition, bucket, keys, (*self._own_before, *self._entries))

    def _file_bytes(self, run: SortedRows) -> int:
        """A large flush is written in pieces, so that a compaction can take them one by one."""
        target = self._target.settings.target_file_bytes
        if not self._schema.is_keyed or self._target.settings.postpones:
            return target
        return CompactionPolicy(target_file_bytes=target).file_bytes(run.rows.nbytes)

    def _take_numbers(self, count: int) -> int:
        with self._numbering:
            first = self._next_sequence
            self._next_sequence += count
        return first


def _no_numbers(_count: int) -> int:
    """Rows whose buckets are postponed get their numbers with their buckets. Other engines write this one."""
    return -1


def rewrite_with_sequence(
    files: FileStore,
    paths: DataPaths,
    entry: ManifestEntry,
    number: int,
    *,
    ids: Ids,
    partition: tuple[object, ...],
) -> DataFileMeta:
    """The rows of an own, not yet committed file again, under another sequence number.

    A keyed file carries the number in every row, so it is written anew, row group by row group; in an append table only the
    metadata has it.
    """
    meta = entry.file
    if not paths.schema.is_keyed:
        return replace(meta, min_sequence_number=number, max_sequence_number=number + meta.row_count - 1)
    directory = paths.bucket(partition, entry.bucket)
    name = data_file_name(ids.uuid(), 0, paths.settings.data_file_prefix, file_format_of(meta.file_name))
    schema = file_schema(paths.schema, thin=paths.settings.thin)
    with files.open_output(f"{directory}/{name}") as sink:
        writer = create_data_file(
            sink,
            schema,
            file_name=name,
            options=paths.settings.data_files,
            unique_columns=frozenset(paths.schema.trimmed_primary_keys),
        )
        for batch in _read_own(files, f"{directory}/{meta.file_name}", meta, paths.schema):
            numbers = pa.array(np.full(batch.num_rows, number, dtype=np.int64))
            columns = [
                numbers if field.name == SEQUENCE_COLUMN else batch.column(field.name.removeprefix(KEY_PREFIX)).cast(field.type)
                for field in schema
            ]
            writer.write(pa.Table.from_arrays(columns, schema=schema))
        footer = writer.close()
    files.sync(directory)
    return replace(
        meta,
        file_name=name,
        file_size=footer.file_size,
        min_sequence_number=number,
        max_sequence_number=number,
        footer_digest=footer.digest,
    )


def _read_own(files: FileStore, path: str, meta: DataFileMeta, schema: TableSchema) -> Iterator[pa.RecordBatch]:
    source = files.open_input(path)
    reader = open_data_file(
        source,
        file_name=meta.file_name,
        fields=lambda: schema.fields,
        footer_digest=meta.footer_digest,
        size=meta.file_size,
    )
    try:
        yield from reader.read(None)
    finally:
        reader.close()
