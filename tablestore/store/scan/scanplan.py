"""Plans a scan: prunes the files of a snapshot and groups them into splits, which can be read independently.

    snapshot -> manifests (pruned by partition) -> live entries -> partition, bucket, key and value pruning -> sections -> splits

Everything after reading the manifests is pure. What a file can be dropped for:

* partition values and bucket number: always;
* key bounds: always, a row of the key could not be in it;
* value bounds: only if the file is alone in its section, because otherwise its rows may hide older ones of the same key.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import numpy as np

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, IndexEntry
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.snapshot import Snapshot
from tablestore.format.stats import decode_stats
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import Section, partition_intervals
from tablestore.store.context import TableContext
from tablestore.store.scan.entrypruning import EntryPruning
from tablestore.store.scan.filepruning import FilePruning, column_range
from tablestore.store.scan.splits import (
    SPLIT_BYTES,
    ColumnSplits,
    DeletionFile,
    Split,
    check_readable,
    deletions_of,
    pack_sections,
    sizes_of,
)
from tablestore.store.settings import TableSettings
from tablestore.telemetry.tracing import traced
from tablestore.types.arrays import Mask
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate, keep_only
from tablestore.types.filter.pruning import may_match
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The splits that a scan reads, and totals of the snapshot that show what it left out (for ``explain``)."""

    snapshot: Snapshot | None
    splits: Sequence[Split]
    files_total: int
    manifests_read: int = 0
    manifests_total: int = 0

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files that are read, as objects."""
        return tuple(file for split in self.splits for file in split.files)

    @property
    def file_count(self) -> int:
        """The number of files that are read."""
        return len(self.splits.files) if isinstance(self.splits, ColumnSplits) else sum(len(split.files) for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """The bytes on disk of the files that are read."""
        return int(sizes_of(self.splits).sum())

    @property
    def merged_files(self) -> int:
        """The number of files that are read and merged with others."""
        if isinstance(self.splits, ColumnSplits):
            return self.splits.merged_files
        return sum(len(section.files) for split in self.splits for section in split.sections if section.needs_merge)

    @property
    def buckets(self) -> set[tuple[bytes, int]]:
        """The partitions and buckets of these files."""
        if isinstance(self.splits, ColumnSplits):
            return self.splits.buckets()
        return {(split.partition, split.bucket) for split in self.splits}


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFiles:
    """The files of some partitions and buckets, and of some levels; None: of all."""

    in_place: Callable[[tuple[bytes, int]], bool] | None = None
    at_level: Callable[[int], bool] | None = None

    def has(self, entry: ManifestEntry) -> bool:
        """True if the file of an entry is one of them."""
        return (self.in_place is None or self.in_place((entry.partition, entry.bucket))) and (
            self.at_level is None or self.at_level(entry.file.level)
        )

    def mask(self, entries: EntryColumns) -> Mask:
        """True for each entry whose file is one of them."""
        mask = np.ones(len(entries), np.bool_)
        if self.in_place is not None:
            mask &= entries.in_places(self.in_place)
        if self.at_level is not None:
            levels, which = entries.groups("level")
            mask &= np.array([self.at_level(level) for (level,) in levels], np.bool_)[which] if levels else mask
        return mask


def plan_scan(
    context: TableContext,
    snapshot: Snapshot | None,
    predicate: Predicate | None = None,
    *,
    wanted: WantedFiles | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> ScanPlan:
    """Plan a read of ``snapshot``; ``wanted``: only these of its files, as if the others were not there.

    Memory: the entries of small manifests as objects; of large ones the columns of the files that are read, or without a predicate
    some 60 bytes a file: the other columns are read as the splits are taken."""
    if snapshot is None:
        return ScanPlan(snapshot=None, splits=(), files_total=0)
    tracer = context.shared.observers.tracer
    with traced(tracer, "scan", context.files.root_uri) as span:
        manifests, schema = context.manifests, context.schema
        listed = manifests.all_manifests(snapshot)
        chosen = prune_manifests(listed, schema, predicate)
        splits: Sequence[Split]
        if manifests.are_columns(chosen):
            splits = _of_columns(context, snapshot, chosen, predicate, wanted, split_bytes)
        else:
            live = live_entries(map(manifests.read_manifest, [one.file_name for one in chosen]), whole=predicate is None).values()
            splits = plan_splits(
                live if wanted is None else filter(wanted.has, live),
                manifests.read_index(snapshot),
                schema,
                context.settings,
                predicate,
                # To use the statistics of files that were written with older schemas.
                file_fields=context.fields_by_schema() if predicate is not None else {},
                split_bytes=split_bytes,
            )
        plan = ScanPlan(
            snapshot=snapshot,
            splits=splits,
            files_total=sum(manifest.num_added - manifest.num_deleted for manifest in listed),
            manifests_read=len(chosen),
            manifests_total=len(listed),
        )
        if tracer is not None:
            span.record(files=plan.file_count, size_bytes=plan.size_bytes, snapshot_id=snapshot.id)
        return plan


def _of_columns(
    context: TableContext,
    snapshot: Snapshot,
    chosen: Sequence[ManifestFile],
    predicate: Predicate | None,
    wanted: WantedFiles | None,
    split_bytes: int,
) -> Sequence[Split]:
    # Loads what small tables do not need.
    from tablestore.store.scan.columnsections import PlannedColumns, column_splits

    manifests, schema, settings = context.manifests, context.schema, context.settings
    vectors = deletion_files(manifests.read_index(snapshot))
    is_late = predicate is None and wanted is None
    in_wanted = None if wanted is None else wanted.mask
    planned = PlannedColumns(schema, settings, in_wanted, is_late=is_late, has_vectors=bool(vectors))
    keeps = None if predicate is None else EntryPruning(schema, predicate, stands_alone=settings.stands_alone).keeps
    parts = manifests.live_among(chosen, planned.names, planned.part, keeps=keeps)
    pruning = FilePruning(schema, predicate, context.fields_by_schema() if predicate is not None else {})
    is_pruned = pruning.prunes_files
    splits = column_splits(
        parts,
        schema,
        settings,
        keeps=lambda partition, bucket, total: pruning.keeps_partition(partition) and pruning.keeps_bucket(bucket, total),
        # To be looked at section by section.
        split_bytes=1 if is_pruned else split_bytes,
        vectors=vectors,
        load=lambda number, rows, names: manifests.load_rows(chosen[number], rows, names),
    )
    return _pruned(splits, pruning, split_bytes) if is_pruned else splits


def _pruned(splits: Sequence[Split], pruning: FilePruning, split_bytes: int) -> tuple[Split, ...]:
    """The splits of those sections that are kept, each of which is a split by now."""
    pieces = (pruned for split in splits if (pruned := pruned_split(split, pruning)) is not None)
    return tuple(joined(pieces, split_bytes))


def pruned_split(split: Split, pruning: FilePruning) -> Split | None:
    """The split without the files that cannot matter, None if none is left."""
    sections = tuple(left for section in split.sections if (left := pruning.keep_section(section)) is not None)
    return replace(split, sections=sections) if sections else None


def joined(pieces: Iterable[Split], split_bytes: int = SPLIT_BYTES) -> Iterator[Split]:
    """Neighbouring sections of one bucket put together again."""
    for (partition, bucket), group in groupby(pieces, key=lambda split: (split.partition, split.bucket)):
        splits = list(group)
        vectors = dict(vector for split in splits for vector in split.deletions)
        for sections in pack_sections([section for split in splits for section in split.sections], split_bytes):
            yield Split(
                partition=partition,
                bucket=bucket,
                total_buckets=splits[0].total_buckets,
                sections=sections,
                deletions=deletions_of((file.file_name for section in sections for file in section.files), vectors),
            )


def prune_manifests(
    manifests: Sequence[ManifestFile], schema: TableSchema, predicate: Predicate | None
) -> tuple[ManifestFile, ...]:
    """The manifests that can hold entries of matching partitions.

    All entries of one file have one partition, so leaving out a manifest never separates an ADD from its DELETE.
    """
    partition_predicate = keep_only(predicate, schema.partition_keys) if predicate is not None else None
    if partition_predicate is None:
        return tuple(manifests)
    types = [field.type for field in schema.partition_fields]
    chosen = []
    for manifest in manifests:
        stats = decode_stats(manifest.partition_stats, types)
        rows = manifest.num_added + manifest.num_deleted
        ranges = {name: column_range(column, rows) for name, column in zip(schema.partition_keys, stats, strict=False)}
        if may_match(partition_predicate, ranges):
            chosen.append(manifest)
    return tuple(chosen)


def plan_splits(
    live: Iterable[ManifestEntry],
    index: Sequence[IndexEntry],
    schema: TableSchema,
    settings: TableSettings,
    predicate: Predicate | None,
    *,
    file_fields: Mapping[int, Sequence[Field]],
    split_bytes: int = SPLIT_BYTES,
) -> tuple[Split, ...]:
    """Group live files by bucket, prune, cut into sections and pack these into splits. Pure."""
    buckets: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
    for entry in live:
        if entry.bucket != POSTPONE_BUCKET:
            buckets[entry.partition, entry.bucket].append(entry)
    pruning = FilePruning(schema, predicate, file_fields)
    vectors = deletion_files(index)
    splits: list[Split] = []
    for (partition, bucket), entries in sorted(buckets.items(), key=lambda item: item[0]):
        if not pruning.keeps_partition(partition) or not pruning.keeps_bucket(bucket, entries[0].total_buckets):
            continue
        files = [entry.file for entry in entries if not (settings.skips_level_zero and entry.file.level == 0)]
        for file in files:
            check_readable(file.file_name, file.write_cols, file.external_path)
        sections = _sections(files, schema, settings)
        pruned_sections = tuple(pruned for section in sections if (pruned := pruning.keep_section(section)) is not None)
        for packed in pack_sections(pruned_sections, split_bytes):
            names = [file.file_name for section in packed for file in section.files] if vectors else []
            splits.append(
                Split(
                    partition=partition,
                    bucket=bucket,
                    total_buckets=entries[0].total_buckets,
                    sections=packed,
                    deletions=deletions_of(names, vectors) if vectors else (),
                )
            )
    return tuple(splits)


def split_pruning(context: TableContext, predicate: Predicate | None) -> Callable[[Split], Split | None]:
    """A function that narrows a split planned for all rows; it gives None if none of its rows can be kept."""
    if predicate is None:
        return lambda split: split
    pruning = FilePruning(context.schema, predicate, context.fields_by_schema())

    def pruned(split: Split) -> Split | None:
        if not pruning.keeps_partition(split.partition) or not pruning.keeps_bucket(split.bucket, split.total_buckets):
            return None
        return pruned_split(split, pruning)

    return pruned


def _sections(files: Sequence[DataFileMeta], schema: TableSchema, settings: TableSettings) -> tuple[Section, ...]:
    # From old to new, wherever the files were listed.
    ordered = sorted(files, key=attrgetter("min_sequence_number", "file_name"))
    if not settings.stands_alone:
        return partition_intervals(ordered, KeyOrder.of(schema.key_fields))
    # Rows of append tables, and of merge-on-write tables, are unique as they are.
    return tuple(Section(((file,),)) for file in ordered)


def deletion_files(index: Sequence[IndexEntry]) -> dict[str, DeletionFile]:
    """The deletion vectors of an index, by the names of their data files."""
    deletion_files: dict[str, DeletionFile] = {}
    for entry in index:
        if entry.index_type != DELETION_VECTORS:
            continue
        for vector in entry.deletion_vectors or ():
            deletion_files[vector.data_file] = DeletionFile(index_file=entry.file_name, offset=vector.offset, length=vector.length)
    return deletion_files
