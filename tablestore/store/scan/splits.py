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

from tablestore.errors import UnsupportedError
from tablestore.format.datafiles.datafilereader import unread_format
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, IndexEntry
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.paths import file_format_of
from tablestore.format.snapshot import Snapshot
from tablestore.format.stats import decode_stats
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import Section, partition_intervals
from tablestore.options import FILE_FORMATS
from tablestore.store.context import TableContext
from tablestore.store.scan.entrypruning import EntryPruning
from tablestore.store.scan.filepruning import FilePruning, column_range
from tablestore.store.settings import TableSettings
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate, keep_only
from tablestore.types.filter.pruning import may_match
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

# Small, so that tasks that are packed from splits come out even.
SPLIT_BYTES = 8 * 1024 * 1024
# The cost of opening one more file, as bytes: many small files make a split of their own weight.
OPEN_COST_BYTES = 256 * 1024


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The splits that a scan reads, and totals of the snapshot that show what it left out (for ``explain``)."""

    snapshot: Snapshot | None
    splits: tuple[Split, ...]
    files_total: int
    manifests_read: int = 0
    manifests_total: int = 0

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files that are read."""
        return tuple(file for split in self.splits for file in split.files)


def plan_scan(
    context: TableContext,
    snapshot: Snapshot | None,
    predicate: Predicate | None = None,
    *,
    wanted: Callable[[ManifestEntry], bool] | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> ScanPlan:
    """Plan a read of ``snapshot``; ``wanted``: only these of its files, as if the others were not there."""
    if snapshot is None:
        return ScanPlan(snapshot=None, splits=(), files_total=0)
    manifests, schema = context.manifests, context.schema
    listed = manifests.all_manifests(snapshot)
    chosen = prune_manifests(listed, schema, predicate)
    live = list(live_entries(_entries(context, chosen, predicate), whole=predicate is None).values())
    splits = plan_splits(
        live if wanted is None else filter(wanted, live),
        manifests.read_index(snapshot),
        schema,
        context.settings,
        predicate,
        # To use the statistics of files that were written with older schemas.
        file_fields=context.fields_by_schema() if predicate is not None else {},
        split_bytes=split_bytes,
    )
    return ScanPlan(
        snapshot=snapshot,
        splits=splits,
        files_total=sum(manifest.num_added - manifest.num_deleted for manifest in listed),
        manifests_read=len(chosen),
        manifests_total=len(listed),
    )


def _entries(
    context: TableContext, chosen: Sequence[ManifestFile], predicate: Predicate | None
) -> Iterator[tuple[ManifestEntry, ...]]:
    """The entries of each manifest, without some that cannot matter."""
    if predicate is None:
        return context.manifests.whole(chosen)
    schema, settings = context.schema, context.settings
    stands_alone = not schema.is_keyed or settings.deletion_vectors
    return context.manifests.matching(chosen, EntryPruning(schema, predicate, stands_alone=stands_alone).keeps)


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
    vectors = _deletion_files(index)
    splits: list[Split] = []
    for (partition, bucket), entries in sorted(buckets.items(), key=lambda item: item[0]):
        if not pruning.keeps_partition(partition) or not pruning.keeps_bucket(bucket, entries[0].total_buckets):
            continue
        files = [_readable(entry.file) for entry in entries if not (settings.skips_level_zero and entry.file.level == 0)]
        sections = _sections(files, schema, settings)
        pruned_sections = tuple(pruned for section in sections if (pruned := pruning.keep_section(section)) is not None)
        for packed in pack_sections(pruned_sections, split_bytes):
            names = {file.file_name for section in packed for file in section.files}
            deletions = tuple((name, vectors[name]) for name in sorted(names) if name in vectors)
            splits.append(
                Split(
                    partition=partition,
                    bucket=bucket,
                    total_buckets=entries[0].total_buckets,
                    sections=packed,
                    deletions=deletions,
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
        pruned_sections = tuple(left for section in split.sections if (left := pruning.keep_section(section)) is not None)
        return replace(split, sections=pruned_sections) if pruned_sections else None

    return pruned


def _sections(files: Sequence[DataFileMeta], schema: TableSchema, settings: TableSettings) -> tuple[Section, ...]:
    if schema.is_keyed and not settings.deletion_vectors:
        return partition_intervals(files, KeyOrder.of(schema.key_fields))
    # Rows of append tables, and of merge-on-write tables, are unique as they are: every file stands alone.
    ordered = sorted(files, key=lambda file: (file.min_sequence_number, file.file_name))
    return tuple(Section(((file,),)) for file in ordered)


def _readable(file: DataFileMeta) -> DataFileMeta:
    """Refuse what the engine would read wrong, by name."""
    if file_format_of(file.file_name) not in FILE_FORMATS:
        raise unread_format(file.file_name)
    if file.write_cols is not None:
        raise UnsupportedError(
            f"data file {file.file_name} holds only the columns {', '.join(file.write_cols)} (data evolution), which tablestore "
            "does not read; compact the table with the engine that wrote it",
            kind="partial-columns",
        )
    if file.external_path is not None:
        raise UnsupportedError(
            f"data file {file.file_name} lies outside of the table, at an external path; tablestore reads only inside the table's "
            "directory",
            kind="external-path",
        )
    return file


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


def _deletion_files(index: Sequence[IndexEntry]) -> dict[str, DeletionFile]:
    deletion_files: dict[str, DeletionFile] = {}
    for entry in index:
        if entry.index_type != DELETION_VECTORS:
            continue
        for vector in entry.deletion_vectors or ():
            deletion_files[vector.data_file] = DeletionFile(index_file=entry.file_name, offset=vector.offset, length=vector.length)
    return deletion_files
