"""Runs a compaction task of one bucket: merges its files, writes the output level, returns the commit message.

    task -> section after section: files -> merge (one row per key, in key order) -> RunWriter -> files at the output level
         -> DELETE of every file that went in, ADD of what came out; an upgraded file is both, under one name

Each row keeps its sequence number and its kind, so what a query returns is the same before and after. Old files come out in the
newest schema. Memory: a window of all runs of the section with its sorted copy, and a row group being written (see bounds). Nothing
is visible before the commit of the message that is returned, and a message that is not committed is taken back by :func:`discard`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import StorageError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.format.paths import index_path
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.compaction.compactiontask import CompactionTask, KeptRetractions, pieces_of
from tablestore.lsm.keyorder import row_bound
from tablestore.lsm.keys import key_at, plain_columns, rows_up_to
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.lsm.rangecuts import RangeCuts
from tablestore.lsm.run import Section
from tablestore.store.commit.committerfactory import committer
from tablestore.store.compact.changelogfiles import compaction_changelog
from tablestore.store.compact.mergeonwrite import Upper, UpperFiles, upper_rule
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import live_rows
from tablestore.store.message import CommitMessage
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.write.clusteredrows import MEMORY_BYTES, clustered_rows
from tablestore.store.write.runwriter import RunTarget, RunWriter
from tablestore.types.datatypes import Field

# A file may become so much larger than planned before another one is begun: sizes are estimates.
_SLACK = 1.25
_MIB = 1024 * 1024

Merged = Callable[[int, int], None]
"""So many rows were read, of so many that the task's files have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFiles:
    """The live files of one bucket of a snapshot. ``deleted``: how many rows deletion vectors name, by file name."""

    partition: bytes
    bucket: int
    total_buckets: int
    entries: tuple[ManifestEntry, ...]
    deleted: Mapping[str, int] = field(default_factory=dict)

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files without their place."""
        return tuple(entry.file for entry in self.entries)


def run_compaction(
    context: TableContext,
    base: Snapshot,
    bucket: BucketFiles,
    task: CompactionTask,
    merged: Merged | None = None,
    *,
    threads: int = 1,
) -> CommitMessage:
    """Run ``task`` on a bucket as it is in ``base``; returns the message to commit. ``merged`` is called after each written batch.
    ``threads``: how many tasks run side by side, and share the bounds of memory.

    Raises FormatError for damaged files, NotFoundError for files that expired meanwhile, StorageError. Then no file remains.
    """
    message = context.message(base)
    task = _with_rewrites(task, upper_rule(context.settings))
    moves = (*((file, task.output_level) for file in task.upgrades), *task.shifts)
    compacted_names = {file.file_name for file in (*task.files, *(file for file, _ in task.shifts))}
    entries = {entry.file.file_name: entry for entry in bucket.entries if entry.file.file_name in compacted_names}
    before = tuple(replace(entry, kind=EntryKind.DELETE) for entry in entries.values())
    moved = tuple(replace(entries[file.file_name], file=replace(file, level=level), kind=EntryKind.ADD) for file, level in moves)
    message = replace(message, compact_before=before)
    rewriter = _Rewriter(context, base, bucket, task, merged, threads)
    try:
        written = rewriter.run()
        message = replace(message, compact_after=(*moved, *written))
        if context.schema.is_keyed:
            changelog = compaction_changelog(
                context,
                bucket.partition,
                bucket.bucket,
                total_buckets=bucket.total_buckets,
                live=bucket.files,
                consumed=task.files,
                output_level=task.output_level,
                vectors=rewriter.vectors,
            )
            message = replace(message, changelog=changelog)
        return replace(message, index_changes=rewriter.index_changes())
    except BaseException:
        discard(context, message)
        raise


def discard(context: TableContext, message: CommitMessage) -> None:
    """Remove the files of a message that was never given to a commit. A file that cannot be removed is an orphan."""
    _remove(context, message, named=())


def discard_unnamed(context: TableContext, message: CommitMessage) -> None:
    """Discards as :func:`discard`, a message that another process may have committed: files that the table names stay."""
    names = {entry.file.file_name for entry in message.new_files} | {change.file_name for change in message.index_changes}
    _remove(context, message, named=committer(context).landings.named(names))


def _remove(context: TableContext, message: CommitMessage, *, named: Collection[str]) -> None:
    for entry in message.new_files:
        if entry.file.file_name not in named:
            with suppress(StorageError):
                context.remove_file(entry)
    for change in message.index_changes:
        if change.kind is EntryKind.ADD and change.file_name not in named:
            with suppress(StorageError):
                context.files.delete(index_path(change.file_name))


class _Rewriter:
    """One task being done."""

    def __init__(
        self,
        context: TableContext,
        base: Snapshot,
        bucket: BucketFiles,
        task: CompactionTask,
        merged: Merged | None,
        threads: int,
    ) -> None:
        self._context, self._bucket, self._task, self._merged_rows = context, bucket, task, merged
        self._rows_read, self._rows_total = 0, sum(file.row_count for file in task.rewritten)
        reader = SplitReader.whole(context, (), None)
        self._reader = reader if threads == 1 else replace(reader, bounds=reader.bounds.of_threads(threads))
        self._clustered_bytes = MEMORY_BYTES // threads
        self.vectors = context.deletion_vectors(base)
        self._rule = upper_rule(context.settings)
        rewritten = {file.file_name for file in task.rewritten}
        self._upper = UpperFiles(
            reader=self._reader,
            partition=bucket.partition,
            bucket=bucket.bucket,
            files=[file for file in bucket.files if file.level > 0 and file.file_name not in rewritten],
            vectors=self.vectors,
        )
        schema = context.schema
        self._stored = tuple(name for name in schema.field_names if name not in schema.partition_keys)
        self._cutter: _Cutter | RangeCuts = _Cutter(task.cuts, schema.key_fields)
        ranges = context.settings.ranges
        if task.cluster_by is not None and ranges is not None and ranges.count and task.cluster_by == ranges.order:
            self._cutter = RangeCuts(ranges.order.columns, count=ranges.count, row_count=self._rows_total)

    def run(self) -> tuple[ManifestEntry, ...]:
        """Write what the task merges; the new files, their names durable."""
        context, bucket = self._context, self._bucket
        target = RunTarget.of(context)
        partition = decode_row(bucket.partition, [f.type for f in context.schema.partition_fields])
        written: list[ManifestEntry] = []
        with ExitStack() as stack:
            for group in self._task.groups:
                writer = stack.enter_context(
                    RunWriter(
                        target,
                        partition=partition,
                        bucket=bucket.bucket,
                        total_buckets=bucket.total_buckets,
                        level=self._task.output_level,
                        source=FileSource.COMPACT,
                        target_bytes=_file_limit(group, self._task.target_bytes),
                    )
                )
                for rows in self._rows(group):
                    self._write(writer, rows)
                    if self._merged_rows is not None:
                        self._merged_rows(min(self._rows_read, self._rows_total), self._rows_total)
                written.extend(writer.close())
            if written:
                context.files.sync(writer.directory)
        return tuple(written)

    def index_changes(self) -> tuple[IndexEntry, ...]:
        """Index files that mark what the task replaces elsewhere, and forget the rewritten files: their vectors were applied."""
        if self._rule is Upper.MARK:
            self._upper.mark([file for file in self._task.files if file.level == 0])
        return self._upper.index_changes({file.file_name for file in self._task.rewritten})

    # -- reading

    def _rows(self, group: Sequence[Section]) -> Iterator[pa.RecordBatch]:
        """The rows of a group in order: system columns, then the columns that files store."""
        if (order := self._task.cluster_by) is not None:
            files = [file for section in group for file in section.files]
            yield from clustered_rows(
                lambda: chain.from_iterable(map(self._numbered, files)),
                lambda: chain.from_iterable(self._live_rows(self._reader, file, (), order.columns) for file in files),
                order,
                row_count=sum(file.row_count for file in files),
                memory_bytes=self._clustered_bytes,
            )
            return
        for section in group:
            if self._context.schema.is_keyed:
                yield from self._merged(section)
            else:
                for file in section.files:
                    yield from self._numbered(file)

    def _merged(self, section: Section) -> Iterator[pa.RecordBatch]:
        merge = self._context.settings.merge
        assert merge is not None, "only keyed tables have runs to merge"
        spec = MergeSpec(
            key_fields=self._context.schema.key_fields,
            output_columns=self._stored,
            function=merge,
            # Where level 0 settles with all older rows, a retraction has nothing left to hide.
            drop_retractions=self._task.drop_retractions or self._rule is not Upper.NOTHING,
            ordered=True,
            emit_system_columns=True,
            batch_rows=self._context.settings.data_files.row_group_rows,
            batch_bytes=self._reader.bounds.batch_bytes,
        )
        reader = self._reader.of_runs(len(section.runs))
        runs = [[self._source(reader, file) for file in run] for run in section.runs]
        if self._rule is Upper.FOLD:
            older = self._upper.older([file for file in section.files if file.level == 0], self._stored)
            runs = runs if older is None else [[older], *runs]
        kept_retractions = self._task.kept if self._rule is Upper.NOTHING else None
        if kept_retractions is None:
            return merge_section(runs, spec)
        return (
            _without_old_retractions(rows, kept_retractions) for rows in merge_section(runs, replace(spec, drop_retractions=False))
        )

    def _source(self, reader: SplitReader, file: DataFileMeta) -> SortedSource:
        system = (KIND_COLUMN,) if file.min_sequence_number == file.max_sequence_number else (SEQUENCE_COLUMN, KIND_COLUMN)
        source = SortedSource(
            min_sequence=file.min_sequence_number,
            max_sequence=file.max_sequence_number,
            read=lambda: self._live_rows(reader, file, system),
            ours=file.footer_digest is not None,
        )
        return self._upper.unknown_only(source) if self._rule is Upper.KEEP and file.level == 0 else source

    def _numbered(self, file: DataFileMeta) -> Iterator[pa.RecordBatch]:
        """The rows of an append file, each with the number that its place gives it."""
        start = file.min_sequence_number
        for batch in self._live_rows(self._reader, file, ()):
            numbers = np.minimum(np.arange(start, start + batch.num_rows, dtype=np.int64), file.max_sequence_number)
            kinds = np.zeros(batch.num_rows, dtype=np.int8)
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays(
                [pa.array(numbers), pa.array(kinds), *batch.columns], [SEQUENCE_COLUMN, KIND_COLUMN, *batch.schema.names]
            )

    def _live_rows(
        self, reader: SplitReader, file: DataFileMeta, system: tuple[str, ...], columns: tuple[str, ...] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The file's rows, without those that its deletion vector names. ``columns``: only these, by which none counts as read."""
        directory = reader.directory(self._bucket.partition, self._bucket.bucket)
        rows = reader.file_rows(directory, file, self._stored if columns is None else columns, system)
        rows = self._counted(rows) if columns is None else rows
        if file.file_name not in self.vectors:
            return rows
        return live_rows(rows, file, self.vectors.positions(file.file_name, file.row_count))

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._rows_read += batch.num_rows
            yield batch

    # -- writing

    def _write(self, writer: RunWriter, rows: pa.RecordBatch) -> None:
        names = list(self._context.schema.field_names)
        sequences = np.asarray(rows.column(SEQUENCE_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int64)
        kinds = np.asarray(rows.column(KIND_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int8)
        table = pa.Table.from_batches([self._reader.with_partition(rows, self._bucket.partition)]).select(names)
        start = 0
        for stop in self._cutter.ends(rows):
            _write_part(writer, table, kinds, sequences, start, stop)
            writer.cut()
            start = stop
        _write_part(writer, table, kinds, sequences, start, rows.num_rows)


class _Cutter:
    """Finds where rows that come in key order pass the keys at which files end."""

    def __init__(self, cuts: Sequence[bytes], key_fields: Sequence[Field]) -> None:
        self._names = [field.name for field in key_fields]
        self._nullable = [field.type.nullable for field in key_fields]
        self._bounds = [row_bound(cut, key_fields) for cut in cuts]
        self._next = 0

    def ends(self, rows: pa.RecordBatch) -> Iterator[int]:
        """The numbers of rows after which a file ends."""
        if self._next == len(self._bounds) or not rows.num_rows:
            return
        plain = plain_columns([rows.column(name) for name in self._names], self._nullable)
        last = key_at(plain, rows.num_rows - 1)
        start = 0
        while self._next < len(self._bounds) and last > self._bounds[self._next]:
            start = rows_up_to(plain, self._bounds[self._next], start, rows.num_rows)
            self._next += 1
            yield start


def _without_old_retractions(rows: pa.RecordBatch, kept_retractions: KeptRetractions) -> pa.RecordBatch:
    """The rows without those retractions that need not be kept."""
    retract = np.asarray(rows.column(KIND_COLUMN).to_numpy(zero_copy_only=False)) & 1 == 1
    if not retract.any():
        return rows
    old = np.asarray(rows.column(SEQUENCE_COLUMN).to_numpy(zero_copy_only=False)) < kept_retractions.from_sequence
    return rows.filter(pa.array(~(retract & old)))


def _with_rewrites(task: CompactionTask, rule: Upper) -> CompactionTask:
    """The task with those files of level 0 rewritten that must not be read as they are above it."""

    def stays(file: DataFileMeta) -> bool:
        return file.level > 0 or rule is Upper.NOTHING or (rule is Upper.MARK and not file.may_retract)

    changed = tuple((Section(((file,),)),) for file in task.upgrades if not stays(file))
    return replace(task, upgrades=tuple(file for file in task.upgrades if stays(file)), groups=(*task.groups, *changed))


def _write_part(
    writer: RunWriter, table: pa.Table, kinds: npt.NDArray[np.int8], sequences: npt.NDArray[np.int64], start: int, stop: int
) -> None:
    if stop > start:
        writer.write(table.slice(start, stop - start), kinds[start:stop], sequences[start:stop])


def _file_limit(group: Sequence[Section], target_bytes: int) -> int:
    """The size at which a file of the group is followed by a next one, so that they come out even."""
    size = sum(file.file_size for section in group for file in section.files)
    return int(size / pieces_of(size, target_bytes) * _SLACK) + _MIB
