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

import pyarrow as pa

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, IndexEntry
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.paths import file_format_of
from tablestore.format.snapshot import Snapshot
from tablestore.format.stats import ColumnStats, decode_stats
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import Section, partition_intervals
from tablestore.store.context import TableContext
from tablestore.store.settings import TableSettings
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataType, Field, is_float
from tablestore.types.filter.predicate import Predicate, equalities, keep_only, to_scalar
from tablestore.types.filter.pruning import ColumnRange, may_match, values_may_match
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
    """The splits that a scan reads, and totals that show what it left out (for ``explain``)."""

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
    groups = (manifests.read_manifest(manifest.file_name) for manifest in chosen)
    live = list(live_entries(groups).values())
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
        files_total=len(live),
        manifests_read=len(chosen),
        manifests_total=len(listed),
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
        ranges = {name: _range(column, rows) for name, column in zip(schema.partition_keys, stats, strict=False)}
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
    pruning = _Pruning(schema, predicate, file_fields)
    vectors = _deletion_files(index)
    splits: list[Split] = []
    for (partition, bucket), entries in sorted(buckets.items(), key=lambda item: item[0]):
        if not pruning.keeps_bucket(partition, bucket, entries[0].total_buckets):
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


def file_pruning(context: TableContext, predicate: Predicate | None) -> Callable[[DataFileMeta], bool]:
    """A test for files that may hold a row that a predicate keeps. Not every other one may be left out: it may hide rows (see
    above)."""
    if predicate is None:
        return lambda _: True
    pruning = _Pruning(context.schema, predicate, context.fields_by_schema())
    return lambda file: pruning.file_may_match(predicate, file)


def split_pruning(context: TableContext, predicate: Predicate | None) -> Callable[[Split], Split | None]:
    """A function that narrows a split planned for all rows; it gives None if none of its rows can be kept."""
    if predicate is None:
        return lambda split: split
    pruning = _Pruning(context.schema, predicate, context.fields_by_schema())

    def pruned(split: Split) -> Split | None:
        if not pruning.keeps_bucket(split.partition, split.bucket, split.total_buckets):
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
    file_format = file_format_of(file.file_name)
    if file_format != "parquet":
        raise UnsupportedError(
            f"data file {file.file_name} has format {file_format!r}; tablestore reads parquet: compact the table with the engine "
            "that wrote it and file.format = parquet",
            kind="file-format",
        )
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


class _Pruning:
    """The parts of a predicate that prune partitions, buckets and files."""

    def __init__(self, schema: TableSchema, predicate: Predicate | None, file_fields: Mapping[int, Sequence[Field]]) -> None:
        self._schema = schema
        self._predicate = predicate
        self._file_fields = file_fields
        self._partition = keep_only(predicate, schema.partition_keys) if predicate is not None else None
        self._key = keep_only(predicate, schema.trimmed_primary_keys) if predicate is not None else None
        self._partition_types = [field.type for field in schema.partition_fields]
        # -0.0 and 0.0 are equal to a filter and lie in different buckets.
        hashable = schema.bucket_keys and not any(is_float(schema.field(name).type) for name in schema.bucket_keys)
        self._bucket_keys = equalities(predicate, schema.bucket_keys) if predicate is not None and hashable else None
        self._wanted_buckets: dict[int, frozenset[int]] = {}

    def keeps_bucket(self, partition: bytes, bucket: int, total_buckets: int) -> bool:
        if self._partition is not None:
            values = decode_row(partition, self._partition_types)
            if not values_may_match(self._partition, dict(zip(self._schema.partition_keys, values, strict=True))):
                return False
        if self._bucket_keys is None or total_buckets < 1:
            return True
        if total_buckets == 1 and self._bucket_keys:
            return bucket == 0
        if total_buckets not in self._wanted_buckets:
            self._wanted_buckets[total_buckets] = self._buckets_of(self._bucket_keys, total_buckets)
        return bucket in self._wanted_buckets[total_buckets]

    def keep_section(self, section: Section) -> Section | None:
        """The section without files that cannot matter, None if none is left."""
        if self._predicate is None:
            return section
        if not section.needs_merge:
            files = [file for file in section.files if self.file_may_match(self._predicate, file)]
            return Section((tuple(files),)) if files else None
        if self._key is None:
            return section
        runs = (tuple(file for file in run if self._key_may_match(file)) for run in section.runs)
        pruned_runs = tuple(run for run in runs if run)
        return Section(pruned_runs) if pruned_runs else None

    def _buckets_of(self, keys: Sequence[Mapping[str, object]], total_buckets: int) -> frozenset[int]:
        fields = [self._schema.field(name) for name in self._schema.bucket_keys]
        columns = [_literals([key[field.name] for key in keys], to_arrow_type(field.type)) for field in fields]
        function = self._schema.options.get("bucket-function.type", "default")
        from tablestore.format.bucket import bucket_of

        buckets = bucket_of(columns, [field.type for field in fields], total_buckets, function)
        return frozenset(int(bucket) for bucket in buckets)

    def _key_may_match(self, file: DataFileMeta) -> bool:
        if self._key is None:
            return True
        return may_match(self._key, self._key_ranges(file))

    def file_may_match(self, predicate: Predicate, file: DataFileMeta) -> bool:
        keys = self._key_ranges(file)
        # The key says so of most files, without the statistics of the other columns.
        if self._key is not None and not may_match(self._key, keys):
            return False
        return may_match(predicate, {**self._value_ranges(file), **keys})

    def _key_ranges(self, file: DataFileMeta) -> dict[str, ColumnRange]:
        if not self._schema.is_keyed:
            return {}
        fields = self._schema.key_fields
        types = [field.type for field in fields]
        low, high = decode_row(file.min_key, types), decode_row(file.max_key, types)
        stats = decode_stats(file.key_stats, types)
        ranges = {}
        for position, field in enumerate(fields):
            column = stats[position] if position < len(stats) else None
            # The first key column is bounded by the exact first and last key, whatever the statistics say. NaN has no bound.
            bounded = position == 0 and not is_float(field.type)
            ranges[field.name] = ColumnRange(
                min=low[0] if bounded else column.min if column else None,
                max=high[0] if bounded else column.max if column else None,
                null_count=column.null_count if column else None,
                row_count=file.row_count,
            )
        return ranges

    def _value_ranges(self, file: DataFileMeta) -> dict[str, ColumnRange]:
        written = self._schema.fields if file.schema_id == self._schema.id else self._file_fields.get(file.schema_id)
        if written is None:
            return {}
        by_name = {field.name: field for field in written}
        names = file.value_stats_cols if file.value_stats_cols is not None else tuple(by_name)
        if any(name not in by_name for name in names):
            raise FormatError(
                f"data file {file.file_name}: statistics name the columns {', '.join(names)}, its schema {file.schema_id} has only "
                f"{', '.join(by_name)}"
            )
        columns = [by_name[name] for name in names]
        stats = decode_stats(file.value_stats, [field.type for field in columns])
        by_id = {field.id: (field, column) for field, column in zip(columns, stats, strict=False)}
        written_ids = {field.id for field in written}
        ranges = {}
        for field in self._schema.fields:
            if field.id not in written_ids:
                ranges[field.name] = ColumnRange(min=None, max=None, null_count=file.row_count, row_count=file.row_count)
            elif field.id in by_id and _comparable(by_id[field.id][0].type, field.type):
                column = by_id[field.id][1]
                ranges[field.name] = _range(column, file.row_count, nan_free=file.footer_digest is not None)
        return ranges


def _literals(values: Sequence[object], arrow_type: pa.DataType) -> pa.Array:
    # A handful of filter literals, not rows. Arrow takes a nanosecond literal with a zone only as a scalar.
    return pa.concat_arrays([pa.repeat(to_scalar(value, arrow_type), 1) for value in values]) if values else pa.nulls(0, arrow_type)


def _range(column: ColumnStats, rows: int, *, nan_free: bool = False) -> ColumnRange:
    # Our own bounds are unknown where a NaN is among the values; others just leave NaN out.
    return ColumnRange(min=column.min, max=column.max, null_count=column.null_count, row_count=rows, nan_free=nan_free)


def _comparable(old: DataType, new: DataType) -> bool:
    """True if bounds of the old type bound the same values read as the new one."""
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        return False
    if old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS:
        return True
    if old.root in TEXT_ROOTS and new.root in TEXT_ROOTS:
        return True
    return old.root is new.root and old.precision == new.precision and old.scale == new.scale
