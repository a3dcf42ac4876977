"""Parses the compaction options of a table into a frozen value."""

from dataclasses import dataclass

from tablestore import options as opt
from tablestore.errors import InvalidInputError
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.compaction.compactiontask import CompactionPolicy
from tablestore.options import TableOptions
from tablestore.store.changelogproducer import FULL_COMPACTION, LOOKUP
from tablestore.store.settings import TableSettings, top_level
from tablestore.types.newschema import check_cluster_columns
from tablestore.types.schema import TableSchema

# By how much the stop trigger lies above the compaction trigger if it is not set.
_STOP_ABOVE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """The compaction settings of a table. ``full_every``: a full compaction follows so many commits, None: none does.
    ``forced``: a writer compacts without bound.

    ``deleted_share``: append files of which more than this share of the rows is deleted are written again. ``cluster_by``: the
    order that compactions of an append table put its rows in.
    """

    policy: CompactionPolicy
    write_only: bool
    forced: bool
    full_every: int | None
    full_interval_ms: int | None
    append_min_files: int
    deleted_share: float
    cluster_by: ClusterOrder | None = None


def compaction_settings(schema: TableSchema, settings: TableSettings) -> CompactionSettings:
    """The settings in a table's options. Raises InvalidInputError for values that do not parse."""
    options = TableOptions(schema.options)
    trigger = options.integer(opt.COMPACTION_TRIGGER)
    stop = options.value(opt.STOP_TRIGGER)
    producer = options.text(opt.CHANGELOG_PRODUCER).lower()
    every = _optional(options.value(opt.FULL_COMPACTION_DELTA_COMMITS))
    if producer == FULL_COMPACTION and schema.is_keyed:
        # Only full compactions write its changes down.
        every = every or 1
    merge = settings.merge
    return CompactionSettings(
        policy=CompactionPolicy(
            top_level=top_level(options),
            trigger=trigger,
            stop_trigger=max(stop if isinstance(stop, int) else trigger + _STOP_ABOVE, trigger),
            max_amplification_percent=options.integer(opt.COMPACTION_MAX_SIZE_AMPLIFICATION),
            size_ratio_percent=options.integer(opt.COMPACTION_SIZE_RATIO),
            total_size_threshold=_optional(options.value(opt.COMPACTION_TOTAL_SIZE_THRESHOLD)),
            incremental_size_threshold=_optional(options.value(opt.COMPACTION_INCREMENTAL_SIZE_THRESHOLD)),
            target_file_bytes=settings.target_file_bytes,
            takes_level_zero=options.flag(opt.COMPACTION_FORCE_UP_LEVEL_0) or settings.skips_level_zero or producer == LOOKUP,
            last_arrival_wins=merge is None or (merge.engine == "deduplicate" and not merge.sequence_fields),
            retractions_apart=merge is not None and merge.keeps_retractions_apart,
            # Above level 0, merge on write keeps one row a key, and what waits in level 0 is folded with it as one.
            folds_at_once=merge is not None and merge.folds_at_once and not settings.deletion_vectors,
        ),
        write_only=options.flag(opt.WRITE_ONLY),
        forced=options.flag(opt.COMMIT_FORCE_COMPACT),
        full_every=every,
        full_interval_ms=_optional(options.value(opt.COMPACTION_OPTIMIZATION_INTERVAL)),
        append_min_files=options.integer(opt.COMPACTION_MIN_FILE_NUM),
        deleted_share=_share(options),
        cluster_by=_cluster_order(schema, settings),
    )


def _cluster_order(schema: TableSchema, settings: TableSettings) -> ClusterOrder | None:
    options = TableOptions(schema.options)
    if schema.is_keyed or settings.total_buckets > 0 or not options.flag(opt.CLUSTERING_INCREMENTAL):
        return None
    names = options.names(opt.CLUSTERING_COLUMNS)
    check_cluster_columns(schema, names, f"option {opt.CLUSTERING_COLUMNS.key}")
    return ClusterOrder.of(names, options.text(opt.CLUSTERING_STRATEGY))


def _share(options: TableOptions) -> float:
    text = options.text(opt.COMPACTION_DELETE_RATIO)
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidInputError(
            f"option {opt.COMPACTION_DELETE_RATIO.key}: expected a share of the rows from 0 to 1 such as 0.2, found {text!r:.100}",
            kind="invalid-option",
        )
    return share


def _optional(value: object) -> int | None:
    return value if isinstance(value, int) else None
