"""Decides whether rows written under an older schema may be committed to a table that was altered since. Pure.

    yes     comments, the order of columns, columns that take nulls now, options that say nothing about the rows of a commit
    maybe   new columns without a default: the rows have nulls there, which must not take the place of values
    maybe   constraints: those of the table now have to be those that the rows were compared with
    no      columns that were dropped, renamed or retyped, NOT NULL, defaults, keys, every other option, a replacement of the table

Files keep the id of the schema that they were written with, and columns their ids, so late files read right in any case. This is
about what rows mean: nothing that an alteration promises, or that another commit wrote, is undone by a writer that did not know.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tablestore import options as opt
from tablestore.types.datatypes import with_nullable
from tablestore.types.evolution.replacing import REPLACES_AFTER_OPTION
from tablestore.types.schema import TableSchema

# Options about what is kept, how large files get, when compactions run and where readers begin.
# fmt: off
_ABOUT_NO_ROWS = frozenset(
    option.key
    for option in (
        opt.SNAPSHOT_NUM_RETAINED_MIN, opt.SNAPSHOT_NUM_RETAINED_MAX, opt.SNAPSHOT_TIME_RETAINED, opt.SNAPSHOT_EXPIRE_LIMIT,
        opt.CHANGELOG_NUM_RETAINED_MIN, opt.CHANGELOG_NUM_RETAINED_MAX, opt.CHANGELOG_TIME_RETAINED,
        opt.CONSUMER_EXPIRATION_TIME, opt.TAG_AUTOMATIC_CREATION, opt.TAG_CREATION_PERIOD, opt.TAG_CREATION_DELAY,
        opt.TAG_PERIOD_FORMATTER, opt.TAG_NUM_RETAINED_MAX, opt.TAG_DEFAULT_TIME_RETAINED, opt.PROCESS_TIME_ZONE,
        opt.PARTITION_EXPIRATION_TIME, opt.PARTITION_EXPIRATION_STRATEGY, opt.PARTITION_TIMESTAMP_FORMATTER,
        opt.PARTITION_TIMESTAMP_PATTERN, opt.FILE_COMPRESSION, opt.FILE_COMPRESSION_ZSTD_LEVEL, opt.FILE_BLOCK_SIZE,
        opt.TARGET_FILE_SIZE, opt.WRITE_BUFFER_SIZE, opt.WRITE_ONLY, opt.MANIFEST_TARGET_FILE_SIZE,
        opt.MANIFEST_MERGE_MIN_COUNT, opt.MANIFEST_FULL_COMPACTION_SIZE, opt.METADATA_STATS_MODE,
        opt.COMPACTION_MAX_SIZE_AMPLIFICATION, opt.COMPACTION_SIZE_RATIO, opt.COMPACTION_OPTIMIZATION_INTERVAL,
        opt.COMPACTION_TOTAL_SIZE_THRESHOLD, opt.COMPACTION_INCREMENTAL_SIZE_THRESHOLD, opt.COMPACTION_MIN_FILE_NUM,
        opt.COMPACTION_DELETE_RATIO, opt.COMPACTION_FORCE_UP_LEVEL_0, opt.STOP_TRIGGER, opt.COMMIT_FORCE_COMPACT,
        opt.CLUSTERING_COLUMNS, opt.CLUSTERING_STRATEGY, opt.CLUSTERING_INCREMENTAL,
        opt.CLUSTERING_RANGES,
        opt.COMMIT_TIMEOUT, opt.LOG_SCAN, opt.LOG_SCAN_TIMESTAMP, opt.LOG_RETENTION, opt.DISCOVERY_INTERVAL,
    )
)
# fmt: on


def obstacles(schemas: Sequence[TableSchema]) -> tuple[str, ...]:
    """The reasons, in words, why rows of the first schema may not be committed under the last; empty if there are none.

    ``schemas``: all from the one that the rows were written with to the newest, in order.
    """
    written, newest = schemas[0], schemas[-1]
    if any(REPLACES_AFTER_OPTION in schema.options for schema in schemas):
        # Of the first too: it may be that of a replacement which was taken back.
        return ("the table was replaced",)
    return (*_columns(written, newest), *_options(schemas))


def added_columns(written: TableSchema, newest: TableSchema) -> tuple[str, ...]:
    """The names of the columns that rows of ``written`` lack."""
    written_ids = {field.id for field in written.fields}
    return tuple(field.name for field in newest.fields if field.id not in written_ids)


def _columns(written: TableSchema, newest: TableSchema) -> Iterator[str]:
    newest_fields = {field.id: field for field in newest.fields}
    for field in written.fields:
        current = newest_fields.pop(field.id, None)
        if current is None:
            yield f"column {field.name!r} was dropped"
        elif current.name != field.name:
            yield f"column {field.name!r} is {current.name!r} now"
        elif current.type not in (field.type, with_nullable(field.type, True)):
            yield f"column {field.name!r} has another type"
        elif current.default_value != field.default_value:
            yield f"column {field.name!r} has another default"
    for field in newest_fields.values():
        if not field.type.nullable:
            yield f"column {field.name!r} was added as NOT NULL"
        elif field.default_value is not None:
            yield f"column {field.name!r} was added with a default"
    if (written.primary_keys, written.partition_keys) != (newest.primary_keys, newest.partition_keys):
        yield "the table has another key or partitioning"


def _options(schemas: Sequence[TableSchema]) -> Iterator[str]:
    """Options that changed, also those that were changed back: commits in between were made under them."""
    changed = {
        key
        for old, new in pairwise(schemas)
        for key in old.options.keys() | new.options.keys()
        if old.options.get(key) != new.options.get(key)
    }
    written, newest = schemas[0].options, schemas[-1].options
    for key in sorted(changed - _ABOUT_NO_ROWS):
        if opt.is_check(key):
            if key in newest and newest[key] != written.get(key):
                yield f"constraint {key.removeprefix(opt.CHECK_PREFIX)!r} was added"
        elif not (key.startswith(opt.FIELDS_PREFIX) and key.endswith(opt.COLUMN_STATS_MODE)):
            yield f"option {key!r} was changed"
