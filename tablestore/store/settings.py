"""Parses the store options of a table into a frozen value, and refuses to write tables that it can only read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tablestore import options as opt
from tablestore.bounds import DEFAULT_BOUNDS, LEAST_ROW_GROUP_BYTES, ROW_GROUP_BYTES, ReadBounds
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.datafiles.datafilewriter import check_formats
from tablestore.format.manifest.avro import CODEC, CODECS
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.functions.mergeoptions import merge_function
from tablestore.options import MIB, TableOptions
from tablestore.store.tracking import Tracking, tracking_of
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

if TYPE_CHECKING:
    from tablestore.lsm.bucketmap import BucketPolicy

DYNAMIC_BUCKETS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePolicy:
    """The policy by which small manifests are merged: ``min_count`` manifests make a group worth merging; one of
    ``target_bytes`` is left alone. All are merged once those that hold deletes reach ``rewrite_bytes``, or, without that,
    once a quarter of the entries are deletes."""

    min_count: int = 30
    target_bytes: int = 8 * 1024 * 1024
    rewrite_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormats:
    """The formats of new files: of data files, those of some levels apart, and of changelog files."""

    data: str = "parquet"
    levels: Mapping[int, str] = field(default_factory=dict)
    changelog: str = "parquet"

    @property
    def all(self) -> frozenset[str]:
        """Every format that files may get."""
        return frozenset((self.data, *self.levels.values(), self.changelog))


# The formats of a table that sets none.
PARQUET = FileFormats()
_FORMAT_KEYS = frozenset((opt.FILE_FORMAT.key, opt.FILE_FORMAT_PER_LEVEL.key, opt.CHANGELOG_FILE_FORMAT.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeLayout:
    """The layout of files that a write makes of an append table: ``count`` ranges of ``order`` (0: as many as the target size of
    files gives). A write that replaces what was there, or is the first one, makes one run of ``level``."""

    order: ClusterOrder
    count: int
    level: int

    def alone(self) -> "RangeLayout":
        """The layout of a task that has one of the ranges."""
        return replace(self, count=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Typed settings of one table. Sizes in bytes, ages in seconds.

    ``stats_mode``: what manifests say of a column (see :func:`tablestore.options.parse_stats_mode`), ``column_stats_modes`` of
    those that are set apart. ``postpones``: a compaction chooses the buckets of new rows, and until then no reader sees them.
    ``numbers_rows``: each row has a number for ever, which no commit of ours would go on with. ``constrained``: there are
    conditions that every row holds.
    """

    total_buckets: int
    postpones: bool
    numbers_rows: bool
    bucket_function: str
    dynamic_buckets: "BucketPolicy | None"
    thin: bool
    stats_mode: int | None
    column_stats_modes: Mapping[str, int | None]
    data_file_prefix: str
    changelog_prefix: str
    formats: FileFormats
    data_directory: str
    default_partition: str
    legacy_partition_names: bool
    target_file_bytes: int
    write_buffer_bytes: int
    dynamic_overwrite: bool
    deletion_vectors: bool
    skips_level_zero: bool
    data_files: DataFileOptions
    merge: MergeFunction | None
    rowkind_field: str | None
    tombstone_retention_ms: int | None
    commit_timeout_s: float
    orphan_age_s: float
    tracking: Tracking
    manifest_merge: MergePolicy
    manifest_codec: str
    ranges: RangeLayout | None = None
    constrained: bool = False
    bounds: ReadBounds = DEFAULT_BOUNDS

    @property
    def stands_alone(self) -> bool:
        """True if no file of the table hides rows of another one."""
        return self.merge is None or self.deletion_vectors

    @property
    def is_plain(self) -> bool:
        """True if a new file holds the rows that readers will see: nothing that is there already has a say in them."""
        merge = self.merge
        if merge is None:
            return True
        keeps_last = merge.engine == "deduplicate" and not merge.sequence_fields and not merge.ignore_delete
        return keeps_last and not self.skips_level_zero


def table_settings(schema: TableSchema) -> TableSettings:
    """The settings that a schema's options ask for.

    Raises UnsupportedError for tables whose files mean something that tablestore does not know, InvalidInputError for values
    that do not parse.
    """
    opt.refuse_unsupported(schema.options)
    options = TableOptions(schema.options)
    merge = merge_function(schema) if schema.is_keyed else None
    target = options.value(opt.TARGET_FILE_SIZE)
    deletion_vectors = options.flag(opt.DELETION_VECTORS_ENABLED)
    compression = options.text(opt.FILE_COMPRESSION).lower()
    bucket = options.value(opt.BUCKET)
    stats_mode, column_stats_modes = _stats_modes(options)
    rewrite_bytes = options.value(opt.MANIFEST_FULL_COMPACTION_SIZE)
    return TableSettings(
        total_buckets=bucket if isinstance(bucket, int) else -1,
        postpones=bucket == POSTPONE_BUCKET,
        numbers_rows=options.flag(opt.ROW_TRACKING_ENABLED),
        bucket_function=options.text(opt.BUCKET_FUNCTION).lower(),
        dynamic_buckets=_bucket_policy(options) if schema.is_keyed and bucket in (None, DYNAMIC_BUCKETS) else None,
        thin=options.flag(opt.DATA_FILE_THIN_MODE),
        stats_mode=stats_mode,
        column_stats_modes=column_stats_modes,
        data_file_prefix=options.text(opt.DATA_FILE_PREFIX),
        changelog_prefix=options.text(opt.CHANGELOG_FILE_PREFIX),
        formats=PARQUET if _FORMAT_KEYS.isdisjoint(schema.options) else _formats(options),
        data_directory=str(options.value(opt.DATA_FILE_PATH_DIRECTORY) or "").strip("/"),
        default_partition=options.text(opt.PARTITION_DEFAULT_NAME),
        legacy_partition_names=options.flag(opt.PARTITION_LEGACY_NAME),
        target_file_bytes=target if isinstance(target, int) else (128 if schema.is_keyed else 256) * MIB,
        write_buffer_bytes=options.integer(opt.WRITE_BUFFER_SIZE),
        dynamic_overwrite=options.flag(opt.DYNAMIC_PARTITION_OVERWRITE),
        deletion_vectors=deletion_vectors,
        # Their level 0 is not folded yet: the table's own rule is that a batch read sees it after compaction.
        skips_level_zero=schema.is_keyed and (deletion_vectors or (merge is not None and merge.engine == "first-row")),
        data_files=DataFileOptions(
            compression=compression,
            compression_level=options.integer(opt.FILE_COMPRESSION_ZSTD_LEVEL) if compression == "zstd" else None,
            row_group_bytes=min(max(options.integer(opt.FILE_BLOCK_SIZE), LEAST_ROW_GROUP_BYTES), ROW_GROUP_BYTES),
        ),
        merge=merge,
        rowkind_field=schema.options.get(opt.ROWKIND_FIELD.key) if schema.is_keyed else None,
        commit_timeout_s=options.integer(opt.COMMIT_TIMEOUT) / 1000,
        tombstone_retention_ms=retention if isinstance(retention := options.value(opt.TOMBSTONE_RETENTION), int) else None,
        orphan_age_s=options.integer(opt.ORPHAN_AGE) / 1000,
        tracking=tracking_of(schema),
        manifest_merge=MergePolicy(
            min_count=options.integer(opt.MANIFEST_MERGE_MIN_COUNT),
            target_bytes=options.integer(opt.MANIFEST_TARGET_FILE_SIZE),
            rewrite_bytes=rewrite_bytes if isinstance(rewrite_bytes, int) else None,
        ),
        manifest_codec=CODECS.get(_manifest_compression(options), CODEC),
        constrained=any(map(opt.is_check, schema.options)),
        ranges=_ranges(options) if opt.CLUSTERING_RANGES.key in schema.options and not schema.is_keyed else None,
    )


def top_level(options: TableOptions) -> int:
    """The level of the oldest rows."""
    levels = options.value(opt.NUM_LEVELS)
    return (levels if isinstance(levels, int) else options.integer(opt.COMPACTION_TRIGGER) + 1) - 1


def read_only_table(schema: TableSchema, key: str, table: str) -> UnsupportedError:
    """The error of a table that is not written because of one of its options."""
    return UnsupportedError(
        f"table {table} has {key} = {schema.options.get(key, 'unset')}: tablestore reads such tables and does not write them yet; "
        "write it with another engine, or copy it into a table without this option",
        kind="read-only-table",
    )


def check_writable(schema: TableSchema, settings: TableSettings, table: str, *, new_rows: bool = True) -> None:
    """Refuse to write what others would read wrong. Raises UnsupportedError that names the option, InvalidInputError for
    options of columns that name what is not there. A compaction brings no ``new_rows``."""
    from tablestore.lsm.functions.mergeoptions import check_column_options
    from tablestore.store.changelogproducer import INPUT, changelog_settings, check_producer
    from tablestore.store.tombstones import check_retention

    options = TableOptions(schema.options)
    options.stats_modes()
    check_column_options(schema)
    check_producer(schema, table)
    check_retention(schema, table)
    if settings.constrained:
        from tablestore.store.tableconstraints import check_constraints

        check_constraints(schema, settings.merge, table)
    if settings.formats is not PARQUET:
        _level_formats(options)
        check_formats(settings.formats.all, schema, settings.data_files.compression, table=table)
    refused = {
        opt.MANIFEST_COMPRESSION.key: _manifest_compression(options) not in CODECS,
        "data-file.external-paths": bool(options.get("data-file.external-paths")),
        opt.ROW_TRACKING_ENABLED.key: settings.numbers_rows,
    }
    for key, applies in refused.items():
        if applies:
            raise read_only_table(schema, key, table)
    if new_rows and settings.postpones and changelog_settings(schema.options).producer == INPUT:
        raise UnsupportedError(
            f"table {table} postpones the choice of buckets (bucket = {POSTPONE_BUCKET}) and has changelog-producer = input: rows "
            "are written before their bucket is known, so no changelog can lie beside them; set changelog-producer to none, lookup "
            "or full-compaction, or fix the number of buckets",
            kind="postponed",
        )
    if new_rows and settings.postpones and opt.is_materialized(schema.options):
        raise UnsupportedError(
            f"table {table} is a materialized table that postpones the choice of buckets (bucket = {POSTPONE_BUCKET}): no reader "
            "would see what a refresh writes before somebody compacts it; give it a fixed number of buckets, or bucket = "
            f"{DYNAMIC_BUCKETS}",
            kind="postponed",
        )
    if settings.dynamic_buckets is not None and not set(schema.partition_keys) <= set(schema.primary_keys):
        outside = ", ".join(name for name in schema.partition_keys if name not in schema.primary_keys)
        raise UnsupportedError(
            f"table {table} makes its buckets as keys arrive (bucket = -1), and the partition column(s) {outside} are not in its "
            "primary key, so an upsert may have to move a row to another partition: tablestore does not do that; add them to the "
            "primary key, or fix the number of buckets",
            kind="cross-partition",
        )


def _manifest_compression(options: TableOptions) -> str:
    return str(options.get(opt.MANIFEST_COMPRESSION.key, opt.MANIFEST_COMPRESSION.default)).strip().lower()


def _formats(options: TableOptions) -> FileFormats:
    """Another engine's formats are no error here: readers go by the names of files, and writers are refused (check_writable)."""
    data = _format_text(options, opt.FILE_FORMAT, "parquet")
    try:
        levels = _level_formats(options)
    except InvalidInputError:
        levels = {}
    return FileFormats(
        data=data,
        levels=levels,
        changelog=_format_text(options, opt.CHANGELOG_FILE_FORMAT, data),
    )


def _level_formats(options: TableOptions) -> dict[int, str]:
    return opt.parse_level_formats(options.get(opt.FILE_FORMAT_PER_LEVEL.key, ""))


def _format_text(options: TableOptions, option: opt.Option, default: str) -> str:
    return str(options.get(option.key, default)).strip().lower()


def _stats_modes(options: TableOptions) -> tuple[int | None, Mapping[str, int | None]]:
    try:
        return options.stats_modes()
    except InvalidInputError:
        # Another engine's value: readers do not need it, and writers are refused (check_writable).
        return opt.parse_stats_mode(str(opt.METADATA_STATS_MODE.default)), {}


def _ranges(options: TableOptions) -> RangeLayout:
    return RangeLayout(
        order=ClusterOrder.of(options.names(opt.CLUSTERING_COLUMNS), options.text(opt.CLUSTERING_STRATEGY)),
        count=options.integer(opt.CLUSTERING_RANGES),
        level=top_level(options),
    )


def _bucket_policy(options: TableOptions) -> "BucketPolicy":
    from tablestore.lsm.bucketmap import BucketPolicy

    initial, most = options.value(opt.DYNAMIC_BUCKET_INITIAL), options.integer(opt.DYNAMIC_BUCKET_MAX)
    return BucketPolicy(
        target_rows=options.integer(opt.DYNAMIC_BUCKET_TARGET_ROWS),
        initial_buckets=initial if isinstance(initial, int) else 1,
        max_buckets=most if most > 0 else None,
    )
