"""Table options: the registry of all keys (kind, default, sentence), their parser, and their checks.

The one registry of table options (key, kind, default, sentence) and the one parser. Options are stored as text;
:class:`TableOptions` gives typed values. Creating a table refuses unknown keys and bad values
(:func:`validate_options`); reading a table that another engine wrote keeps whatever it finds, except for features
that change what the files mean (:func:`refuse_unsupported`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tablestore.brokers import parse_brokers
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean, split_names
from tablestore.redaction import is_harmless, is_telling, shown_options

OptionKind = Literal["text", "int", "bool", "bytes", "duration", "choice", "names", "brokers"]
Value = str | int | bool | tuple[str, ...] | None
T = TypeVar("T")

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000

# Keys that are not in the registry but belong to it: per-column settings, our own notes.
FIELDS_PREFIX, COLUMN_STATS_MODE = "fields.", ".stats-mode"
DEFAULT_FUNCTION, SEQUENCE_GROUP = "fields.default-aggregate-function", "sequence-group"
# Columns that are not stored: computed ones, as Flink's catalogs keep them.
SCHEMA_PREFIX = "schema."
# The name of the primary key, where CREATE TABLE gives it one; the format has no place for it.
KEY_CONSTRAINT = "tablestore.primary-key-constraint"
# Conditions that every row holds: the name of one follows, the value is its SQL text.
CHECK_PREFIX = "tablestore.constraint."
# A session's settings for the tables that it creates.
SESSION_PREFIX = "table-storage."
# Another spelling of log.scan.timestamp-mills.
LOG_SCAN_TIMESTAMP_ALIAS = "log.scan.timestamp-millis"
# Other spellings of options, those of Kafka's client among them.
SPELLINGS = {
    LOG_SCAN_TIMESTAMP_ALIAS: "log.scan.timestamp-mills",
    "log.kafka.compression.codec": "log.kafka.compression.type",
    "log.kafka.fetch.message.max.bytes": "log.kafka.max.partition.fetch.bytes",
}
# What a string partition column holds: `#` stands for it.
PARTITION_DATE_FORMATTER = "partition.fields.#.date-formatter"
_PARTITION_DATE_PARTS = tuple(PARTITION_DATE_FORMATTER.split("#"))
# What a table may set of a client of Kafka: nothing that names a file, a plug-in or a secret. Stored in tables: never taken away.
KAFKA_PREFIX = "log.kafka."
KAFKA_CLIENT_SETTINGS = frozenset(
    [
        "batch.num.messages",
        "batch.size",
        "bootstrap.servers",
        "client.dns.lookup",
        "client.rack",
        "compression.codec",
        "compression.level",
        "compression.type",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "linger.ms",
        "max.partition.fetch.bytes",
        "message.max.bytes",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "socket.timeout.ms",
        "transaction.timeout.ms",
    ]
)
# Statements about materialized tables write these, and nobody else.
MATERIALIZED_TABLE = "materialized-table"
MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX = "materialized-table.", "tablestore.materialized-table."
_OWN_NOTES = (KEY_CONSTRAINT, LOG_SCAN_TIMESTAMP_ALIAS, "tablestore.table-uuid", "tablestore.replaces-after-snapshot")
_FAMILIES = (FIELDS_PREFIX, SCHEMA_PREFIX, OWN_MATERIALIZED_PREFIX)

_MEASURED = re.compile(r"\s*(\d{1,18})\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_BYTE_UNITS = {
    **dict.fromkeys(("", "b", "byte", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib", "kibibyte", "kibibytes"), KIB),
    **dict.fromkeys(("m", "mb", "mib", "mebibyte", "mebibytes"), MIB),
    **dict.fromkeys(("g", "gb", "gib", "gibibyte", "gibibytes"), GIB),
    **dict.fromkeys(("t", "tb", "tib", "tebibyte", "tebibytes"), GIB << 10),
}
_DURATION_UNITS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE_MS),
    **dict.fromkeys(("h", "hour", "hours"), HOUR_MS),
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
}
_INT = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_STATS_MODE = re.compile(r"(none)|(counts)|full|truncate\(([1-9]\d{0,8})\)", re.ASCII)
# Formats of data files that are written.
FILE_FORMATS = ("parquet", "orc", "avro")
# Bounds of texts in manifests have at most so many characters, whatever a table asks for.
MAX_BOUND_CHARACTERS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One table option. ``minimum`` bounds int, bytes and duration values."""

    key: str
    kind: OptionKind
    default: Value
    sentence: str
    choices: tuple[str, ...] = ()
    minimum: int | None = None

    def parse(self, text: str) -> Value:
        """The typed value of a text; InvalidInputError names the key, what it takes, and what was found."""
        try:
            value = self._convert(text)
        except InvalidInputError as error:
            raise InvalidInputError(f"option {self.key}: {error}", kind="invalid-option") from error
        if self.minimum is not None and isinstance(value, int) and value < self.minimum:
            raise InvalidInputError(
                f"option {self.key}: expected at least {self.minimum}, found {text!r:.200}", kind="invalid-option"
            )
        return value

    def _convert(self, text: str) -> Value:
        match self.kind:
            case "int":
                return parse_int(text)
            case "bool":
                return parse_bool(text)
            case "bytes":
                return parse_bytes(text)
            case "duration":
                return parse_duration(text)
            case "names":
                return split_names(text)
            case "choice":
                word = text.strip().lower()
                if word not in self.choices:
                    raise InvalidInputError(f"expected one of {', '.join(self.choices)}, found {text!r:.200}")
                return word
            case "brokers":
                parse_brokers(text)
                return text
            case "text":
                return text


def parse_int(text: str) -> int:
    """A decimal integer of 64 bits."""
    if _INT.fullmatch(text.strip()) is None or not -(1 << 63) <= int(text) < 1 << 63:
        raise InvalidInputError(f"expected a number such as 8, found {text!r:.200}")
    return int(text)


def parse_bool(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise InvalidInputError(f"expected true or false, found {text!r:.200}")
    return word == "true"


def parse_bytes(text: str) -> int:
    """``"128 mb"`` as bytes; units are powers of 1024, no unit means bytes."""
    return _measured(text, _BYTE_UNITS, "a size such as 128 mb (b, kb, mb, gb, tb)")


def parse_duration(text: str) -> int:
    """``"1 h"`` as milliseconds; no unit means milliseconds."""
    return _measured(text, _DURATION_UNITS, "a duration such as 1 h (ms, s, min, h, d)")


def _measured(text: str, units: Mapping[str, int], expected: str) -> int:
    match = _MEASURED.fullmatch(text)
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InvalidInputError(f"expected {expected}, found {text!r:.200}")
    return int(match[1]) * unit


def parse_level_formats(text: str) -> dict[int, str]:
    """``"0:avro,5:orc"`` as formats by level. Formats that are not written are kept; InvalidInputError for another form."""
    formats: dict[int, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        level, _, name = part.partition(":")
        if not level.strip().isdecimal() or len(level) > 4 or not name.strip():
            raise InvalidInputError(
                f"option file.format.per.level: expected levels and formats such as 0:avro,5:orc, found {text!r:.200}",
                kind="invalid-option",
            )
        formats[int(level)] = name.strip().lower()
    return formats


def parse_stats_mode(text: str) -> int | None:
    """The statistics kept of a column: None for none, 0 for its null count, n also for bounds, of texts at most n characters."""
    match = _STATS_MODE.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInputError(f"expected none, counts, truncate(n) or full, found {text!r:.200}")
    none, counts, characters = match.groups()
    return None if none else 0 if counts else min(int(characters or MAX_BOUND_CHARACTERS), MAX_BOUND_CHARACTERS)


def _option(
    key: str, kind: OptionKind, default: Value, sentence: str, *, choices: tuple[str, ...] = (), minimum: int | None = None
) -> Option:
    return Option(key=key, kind=kind, default=default, sentence=sentence, choices=choices, minimum=minimum)


# fmt: off
BUCKET = _option("bucket", "int", None,
    "Number of buckets per partition; -1 makes those of keyed tables as keys arrive and leaves append tables unbucketed, "
    "-2 leaves the choice to a compaction, before which no reader sees new rows. "
    "create_table writes 1 for keyed tables and -1 for append tables.", minimum=-2)
BUCKET_KEY = _option("bucket-key", "names", (),
    "Columns whose hash picks the bucket, separated by commas; the primary key without partition columns if unset.")
DYNAMIC_BUCKET_TARGET_ROWS = _option("dynamic-bucket.target-row-num", "int", 2_000_000,
    "Keyed tables with bucket = -1 begin a new bucket once the others hold this many keys.", minimum=1)
DYNAMIC_BUCKET_INITIAL = _option("dynamic-bucket.initial-buckets", "int", None,
    "Buckets that a partition with dynamic buckets spreads its keys over from the start; 1 if unset.", minimum=1)
DYNAMIC_BUCKET_MAX = _option("dynamic-bucket.max-buckets", "int", -1,
    "Most buckets of a partition with dynamic buckets; -1 for no limit.", minimum=-1)
POSTPONE_DEFAULT_BUCKETS = _option("postpone.default-bucket-num", "int", 1,
    "Buckets that the first compaction of a partition with postponed buckets makes.", minimum=1)
POSTPONE_TARGET_ROWS = _option("postpone.target-row-num-per-bucket", "int", None,
    "If set, and postpone.default-bucket-num is not: that compaction makes a bucket for so many postponed rows.", minimum=1)
POSTPONE_TARGET_SIZE = _option("postpone.target-size-per-bucket", "bytes", None,
    "As postpone.target-row-num-per-bucket, by the size of the postponed files.", minimum=1)
BUCKET_FUNCTION = _option("bucket-function.type", "choice", "default",
    "How the bucket key becomes a bucket number.", choices=("default", "mod", "hive"))
MERGE_ENGINE = _option("merge-engine", "choice", "deduplicate",
    "How rows of equal key combine.", choices=("deduplicate", "partial-update", "aggregation", "first-row"))
SEQUENCE_FIELD = _option("sequence.field", "names", (),
    "Columns that order rows of equal key before the order of writing does; the largest wins.")
SEQUENCE_FIELD_SORT_ORDER = _option("sequence.field.sort-order", "choice", "ascending",
    "Whether the largest or the smallest sequence.field wins.", choices=("ascending", "descending"))
IGNORE_DELETE = _option("ignore-delete", "bool", False, "Skip -U and -D records when rows are merged.")
ROWKIND_FIELD = _option("rowkind.field", "text", None, "A text column that holds the row kind of every row written.")
FILE_FORMAT = _option("file.format", "choice", "parquet",
    "Format of new data files; a table may hold files of several formats. Paimon's other formats (row, text, csv, json, lance, "
    "vortex, blob) are neither written nor read.", choices=FILE_FORMATS)
FILE_FORMAT_PER_LEVEL = _option("file.format.per.level", "text", None,
    "Formats of levels of the merge tree that have one of their own, such as 0:avro,5:orc; file.format is that of the others.")
FILE_COMPRESSION = _option("file.compression", "choice", "zstd",
    "Compression of data files; gzip is zlib in ORC and deflate in Avro, and lz4 is none of Avro's.",
    choices=("zstd", "snappy", "lz4", "gzip", "none"))
FILE_COMPRESSION_ZSTD_LEVEL = _option("file.compression.zstd-level", "int", 1,
    "Zstandard level of data files in Parquet and Avro, 1 (fast) to 22 (small); ORC files have the fast one.", minimum=1)
FILE_BLOCK_SIZE = _option("file.block-size", "bytes", 64 * MIB,
    "Most memory that the rows of one Parquet row group take before they are encoded: 64 kb to 64 mb, and never more than 131072 "
    "rows. Of ORC, the encoded size of a stripe, 64 kb to 16 mb.", minimum=1)
TARGET_FILE_SIZE = _option("target-file-size", "bytes", None,
    "Size at which a writer starts a new data file; 128 mb for keyed tables and 256 mb for append tables if unset.",
    minimum=1)
WRITE_BUFFER_SIZE = _option("write-buffer-size", "bytes", 256 * MIB,
    "Memory that a writer fills before it flushes to level 0.", minimum=1)
WRITE_ONLY = _option("write-only", "bool", False, "Writers neither compact nor expire snapshots.")
PARTITION_DEFAULT_NAME = _option("partition.default-name", "text", "__DEFAULT_PARTITION__",
    "Directory name of a null or blank partition value.")
PARTITION_LEGACY_NAME = _option("partition.legacy-name", "bool", True,
    "Spell dates in partition directories as day numbers, as Paimon does by default.")
DATA_FILE_PREFIX = _option("data-file.prefix", "text", "data-", "How names of data files begin.")
DATA_FILE_PATH_DIRECTORY = _option("data-file.path-directory", "text", None,
    "A directory inside the table that holds the partitions and buckets; the table's own directory if unset.")
DATA_FILE_THIN_MODE = _option("data-file.thin-mode", "bool", False,
    "Do not store key columns a second time in data files; create_table writes true for keyed tables.")
CHANGELOG_FILE_PREFIX = _option("changelog-file.prefix", "text", "changelog-", "How names of changelog files begin.")
CHANGELOG_FILE_FORMAT = _option("changelog-file.format", "choice", None,
    "Format of new changelog files; as file.format if unset.", choices=FILE_FORMATS)
MANIFEST_COMPRESSION = _option("manifest.compression", "choice", "zstd",
    "Compression of manifests; null for none.", choices=("zstd", "snappy", "deflate", "null"))
MANIFEST_TARGET_FILE_SIZE = _option("manifest.target-file-size", "bytes", 8 * MIB,
    "Small manifests are merged up to this size.", minimum=1)
MANIFEST_MERGE_MIN_COUNT = _option("manifest.merge-min-count", "int", 30,
    "The tail of the manifest list is merged once it has this many manifests.", minimum=1)
MANIFEST_FULL_COMPACTION_SIZE = _option("manifest.full-compaction-threshold-size", "bytes", None,
    "All manifests are rewritten without deleted files once those that name such files sum to this size; once a quarter of the "
    "entries are deletes if unset.", minimum=1)
METADATA_STATS_MODE = _option("metadata.stats-mode", "text", "full",
    "Statistics of columns in manifests, by which files are skipped: none, counts (of nulls), truncate(n) (bounds too, of texts n "
    "characters) or full (128 characters, which is also the most). `fields.<column>.stats-mode` is that of one column.")
SNAPSHOT_NUM_RETAINED_MIN = _option("snapshot.num-retained.min", "int", 10,
    "Expiry keeps at least this many snapshots.", minimum=1)
SNAPSHOT_NUM_RETAINED_MAX = _option("snapshot.num-retained.max", "int", 2_147_483_647,
    "Expiry keeps at most this many snapshots.", minimum=1)
SNAPSHOT_TIME_RETAINED = _option("snapshot.time-retained", "duration", HOUR_MS,
    "Expiry keeps snapshots younger than this.")
SNAPSHOT_EXPIRE_LIMIT = _option("snapshot.expire.limit", "int", 50,
    "One run of expiry drops at most this many snapshots.", minimum=1)
CHANGELOG_NUM_RETAINED_MIN = _option("changelog.num-retained.min", "int", None,
    "Changes of at least this many snapshots stay readable; as snapshot.num-retained.min if unset.", minimum=1)
CHANGELOG_NUM_RETAINED_MAX = _option("changelog.num-retained.max", "int", None,
    "Changes of at most this many snapshots stay readable; as snapshot.num-retained.max if unset.", minimum=1)
CHANGELOG_TIME_RETAINED = _option("changelog.time-retained", "duration", None,
    "Changes younger than this stay readable, also those of expired snapshots; as snapshot.time-retained if unset.")
CONSUMER_EXPIRATION_TIME = _option("consumer.expiration-time", "duration", None,
    "A consumer that has not moved for this long no longer holds snapshots back; never if unset.", minimum=1)
TAG_AUTOMATIC_CREATION = _option("tag.automatic-creation", "choice", "none",
    "process-time: the first commit after a period tags the state at the period's end. watermark and batch are left to other "
    "engines.", choices=("none", "process-time", "watermark", "batch"))
TAG_CREATION_PERIOD = _option("tag.creation-period", "choice", "daily",
    "How often a tag is made automatically.", choices=("daily", "hourly", "two-hours"))
TAG_CREATION_DELAY = _option("tag.creation-delay", "duration", 0,
    "How long after the end of its period a tag is made; what is committed until then still belongs to it.")
TAG_PERIOD_FORMATTER = _option("tag.period-formatter", "choice", "with_dashes",
    "Names of automatic tags: 2024-01-31 or 20240131; those of hours end in -07.",
    choices=("with_dashes", "without_dashes", "without_dashes_and_spaces"))
TAG_NUM_RETAINED_MAX = _option("tag.num-retained-max", "int", None,
    "The oldest automatic tags are deleted when there are more; all stay if unset.", minimum=1)
TAG_DEFAULT_TIME_RETAINED = _option("tag.default-time-retained", "duration", None,
    "How long a tag is kept when nothing else was asked for; for ever if unset.", minimum=1)
PROCESS_TIME_ZONE = _option("sink.process-time-zone", "text", None,
    "Time zone of the periods of automatic tags, such as Europe/Berlin; that of the machine if unset.")
PARTITION_EXPIRATION_TIME = _option("partition.expiration-time", "duration", None,
    "expire_partitions drops partitions older than this; data never expires by itself.", minimum=1)
PARTITION_EXPIRATION_STRATEGY = _option("partition.expiration-strategy", "choice", "values-time",
    "Whether the age of a partition comes from its values or from its newest file.", choices=("values-time", "update-time"))
PARTITION_TIMESTAMP_FORMATTER = _option("partition.timestamp-formatter", "text", None,
    "How the time of a partition is spelled, such as yyyyMMdd or yyyy-MM-dd HH:mm:ss; the latter two forms if unset.")
PARTITION_TIMESTAMP_PATTERN = _option("partition.timestamp-pattern", "text", None,
    "How partition columns make a time, such as '$day $hour:00:00'; the first partition column if unset.")
COMMIT_TIMEOUT = _option("commit.timeout", "duration", 10 * MINUTE_MS,
    "A commit stops retrying after this time.", minimum=1)
DELETION_VECTORS_ENABLED = _option("deletion-vectors.enabled", "bool", False,
    "Mark deleted rows in bitmaps beside the data files: deletes rewrite nothing, and reads of keyed tables need no merge.")
DELETION_VECTORS_BITMAP64 = _option("deletion-vectors.bitmap64", "bool", False,
    "Deletion vectors of 64 bits; not supported.")
CHANGELOG_PRODUCER = _option("changelog-producer", "choice", "none",
    "Which commits write complete changelog files: none, those of rows (input), or compactions (full-compaction, lookup).",
    choices=("none", "input", "full-compaction", "lookup"))
CHANGELOG_ROW_DEDUPLICATE = _option("changelog-producer.row-deduplicate", "bool", False,
    "Leave out changes whose row before equals the row after.")
CHANGELOG_ROW_DEDUPLICATE_IGNORE = _option("changelog-producer.row-deduplicate-ignore-fields", "names", (),
    "Columns that do not count when changelog-producer.row-deduplicate compares rows.")
DYNAMIC_PARTITION_OVERWRITE = _option("dynamic-partition-overwrite", "bool", True,
    "Overwrite replaces only the partitions that the new rows fall into.")
NUM_LEVELS = _option("num-levels", "int", None,
    "Levels of the merge tree; one more than num-sorted-run.compaction-trigger if unset.", minimum=2)
COMPACTION_TRIGGER = _option("num-sorted-run.compaction-trigger", "int", 5,
    "A bucket with this many sorted runs is compacted.", minimum=1)
STOP_TRIGGER = _option("num-sorted-run.stop-trigger", "int", None,
    "Writers wait for compaction above this many sorted runs; compaction-trigger plus 3 if unset.", minimum=1)
COMPACTION_MAX_SIZE_AMPLIFICATION = _option("compaction.max-size-amplification-percent", "int", 200,
    "All runs are compacted once the newer ones are this many percent of the oldest.", minimum=0)
COMPACTION_SIZE_RATIO = _option("compaction.size-ratio", "int", 1,
    "Percent by which a run may be larger than those before it and still join their compaction.", minimum=0)
COMPACTION_OPTIMIZATION_INTERVAL = _option("compaction.optimization-interval", "duration", None,
    "How often a full compaction is made for faster reading; never if unset.", minimum=1)
COMPACTION_TOTAL_SIZE_THRESHOLD = _option("compaction.total-size-threshold", "bytes", None,
    "Buckets smaller than this are always compacted fully.", minimum=1)
COMPACTION_INCREMENTAL_SIZE_THRESHOLD = _option("compaction.incremental-size-threshold", "bytes", None,
    "A bucket is compacted fully once its runs below the top level sum to this size.", minimum=1)
COMPACTION_MIN_FILE_NUM = _option("compaction.min.file-num", "int", 5,
    "Append tables compact this many small files of a bucket at once.", minimum=2)
COMPACTION_DELETE_RATIO = _option("compaction.delete-ratio-threshold", "text", "0.2",
    "Append files are rewritten once this share of their rows is deleted.")
CLUSTERING_COLUMNS = _option("clustering.columns", "names", (),
    "Columns that append tables without buckets are ordered by, so that files are left out by them.")
CLUSTERING_STRATEGY = _option("clustering.strategy", "choice", "auto",
    "How: by the first column and then the next (order), or by all alike (zorder, hilbert); auto: order for one, zorder for up to "
    "four, hilbert for more.", choices=("auto", "order", "zorder", "hilbert"))
CLUSTERING_INCREMENTAL = _option("clustering.incremental", "bool", False,
    "Compactions order rows by clustering.columns, new files with those of similar size; else compact(order_by=…) does.")
CLUSTERING_RANGES = _option("tablestore.clustering.ranges", "int", None,
    "DISTRIBUTED BY RANGE: each write lays rows out in this many files a partition, each with a range of clustering.columns; "
    "0: in as many as target-file-size gives. If unset, rows are written as they come.", minimum=0)
COMPACTION_FORCE_UP_LEVEL_0 = _option("compaction.force-up-level-0", "bool", False,
    "Every compaction takes all files of level 0.")
COMMIT_FORCE_COMPACT = _option("commit.force-compact", "bool", False, "Writers compact before every commit.")
FULL_COMPACTION_DELTA_COMMITS = _option("full-compaction.delta-commits", "int", None,
    "A full compaction follows every so many commits. If unset: none; every one with changelog-producer = full-compaction.",
    minimum=1)
SEQUENCE_SNAPSHOT_ORDERING = _option("sequence.snapshot-ordering", "bool", False,
    "Order rows of equal key by snapshot; not supported.")
DATA_EVOLUTION_ENABLED = _option("data-evolution.enabled", "bool", False,
    "Add columns to rows in files of their own; not supported.")
ROW_TRACKING_ENABLED = _option("row-tracking.enabled", "bool", False,
    "Number rows for ever. Such tables of other engines are read, and not written.")
PK_CLUSTERING_OVERRIDE = _option("pk-clustering-override", "bool", False,
    "Sort data files by other columns than the primary key; not supported.")
TYPE = _option("type", "choice", "table", "Kind of table; a materialized table is made by CREATE MATERIALIZED TABLE.",
    choices=("table", MATERIALIZED_TABLE))
MATERIALIZED_DEFINITION_QUERY = _option("materialized-table.definition-query", "text", None,
    "The query of a materialized table, with whole names.")
MATERIALIZED_FRESHNESS = _option("materialized-table.interval-freshness", "int", None,
    "How many units a materialized table may be behind its sources.", minimum=1)
MATERIALIZED_FRESHNESS_UNIT = _option("materialized-table.interval-freshness.time-unit", "choice", None,
    "The unit of its freshness.", choices=("second", "minute", "hour", "day"))
MATERIALIZED_LOGICAL_MODE = _option("materialized-table.logical-refresh-mode", "choice", None,
    "The REFRESH_MODE that its statement asked for.", choices=("automatic", "continuous", "full"))
MATERIALIZED_REFRESH_MODE = _option("materialized-table.refresh-mode", "choice", None,
    "How a materialized table is kept fresh: by a loop, or at fixed times.", choices=("continuous", "full"))
MATERIALIZED_REFRESH_STATUS = _option("materialized-table.refresh-status", "choice", None,
    "Whether a materialized table is kept fresh.", choices=("initializing", "activated", "suspended"))
MATERIALIZED_HANDLER_DESCRIPTION = _option("materialized-table.refresh-handler-description", "text", None,
    "Who refreshes a materialized table, for people.")
MATERIALIZED_HANDLER_BYTES = _option("materialized-table.refresh-handler-bytes", "text", None,
    "The same for whoever refreshes it, in base64.")
PARTIAL_UPDATE_REMOVE_RECORD = _option("partial-update.remove-record-on-delete", "bool", False,
    "In partial-update tables a -D removes the row.")
PARTIAL_UPDATE_REMOVE_RECORD_GROUP = _option("partial-update.remove-record-on-sequence-group", "names", (),
    "In partial-update tables a -D that is newest in these sequence groups removes the row.")
AGGREGATION_REMOVE_RECORD = _option("aggregation.remove-record-on-delete", "bool", False,
    "In aggregation tables a -D removes the row.")
STREAMING_READ_OVERWRITE = _option("streaming-read-overwrite", "bool", False,
    "Readers of changes see what overwriting commits wrote.")
CHANGE_TRACKING = _option("change-tracking", "bool", True,
    "Commits of this table reach readers of changes and the log.")
UNTRACKED_PARTITIONS = _option("change-tracking.untracked-partitions", "text", None,
    "Partitions whose changes do not, as JSON: `[{\"day\": \"2026-01-31\"}]`; set by `change-tracking` of a partition.")
LOG_SYSTEM = _option("log.system", "choice", None,
    "Where changes are published; kafka if brokers are configured, else filestore.", choices=("kafka", "filestore"))
LOG_KAFKA_BOOTSTRAP_SERVERS = _option("log.kafka.bootstrap.servers", "brokers", None,
    "Kafka brokers, such as localhost:9092.")
LOG_KAFKA_TOPIC = _option("log.kafka.topic", "text", None,
    "Topic of the table; named after the table if unset.")
LOG_SCAN = _option("log.scan", "choice", "full",
    "Where readers of changes begin: with all rows, behind the newest snapshot, or at a time.",
    choices=("full", "latest", "from-timestamp"))
LOG_SCAN_TIMESTAMP = _option("log.scan.timestamp-mills", "int", None,
    "Where log.scan = from-timestamp begins, in milliseconds since the epoch.", minimum=0)
DISCOVERY_INTERVAL = _option("continuous.discovery-interval", "duration", 1_000,
    "How often a reader that follows a table looks for new snapshots.", minimum=1)
LOG_RETENTION = _option("log.retention", "duration", None,
    "How long changes stay in the log; the broker decides if unset.", minimum=1)
LOG_CONSISTENCY = _option("log.consistency", "choice", "transactional",
    "Readers of the log see changes after their snapshot; eventual: rows of keyed tables also while they are written.",
    choices=("transactional", "eventual"))
LOG_CHANGELOG_MODE = _option("log.changelog-mode", "choice", "auto",
    "Whether the log holds -U records; auto means upsert with a primary key and all without.",
    choices=("auto", "upsert", "all"))
LOG_PUBLISHER_SLOTS = _option("tablestore.log.publisher-slots", "int", 1,
    "How many publishers share the work; bucket b belongs to publisher b modulo this.", minimum=1)
LOG_KEY_FORMAT = _option("log.key.format", "choice", "json", "Format of message keys.", choices=("json",))
LOG_FORMAT = _option("log.format", "choice", "debezium-json",
    "Format of messages; json and avro hold no row before an update: not with a primary key and log.changelog-mode = all.",
    choices=("debezium-json", "canal-json", "json", "avro"))
TOMBSTONE_RETENTION = _option("tablestore.tombstone-retention", "duration", None,
    "How long full compactions keep deletes, so that a row that comes late (sequence.field) stays deleted; they drop them at "
    "once if unset.", minimum=1)
PREVIOUS_VERSION_RETAINED = _option("tablestore.previous-version.time-retained", "duration", None,
    "How long a materialized table keeps its version before the last promotion. If unset: until DISCARD.",
    minimum=1)
ORPHAN_AGE = _option("tablestore.orphan-age", "duration", DAY_MS,
    "Files that no snapshot names are removed only when older than this.", minimum=1)
# fmt: on

TABLE_OPTIONS: dict[str, Option] = {
    option.key: option for option in sorted((v for v in list(globals().values()) if isinstance(v, Option)), key=lambda o: o.key)
}

# Truthy values of these change what the files of a table mean.
_UNSUPPORTED_FLAGS = (
    DATA_EVOLUTION_ENABLED,
    SEQUENCE_SNAPSHOT_ORDERING,
    DELETION_VECTORS_BITMAP64,
    PK_CLUSTERING_OVERRIDE,
)
_NEVER_ABSENT = {MERGE_ENGINE.key: MERGE_ENGINE, TYPE.key: TYPE}


class TableOptions(Mapping[str, str]):
    """A table's options: text by key as a mapping, typed values by :meth:`value` and its kin.

    Unknown keys are kept. Values are parsed when asked for, so that a foreign table with an odd value in an option
    that is not needed stays readable.
    """

    __slots__ = ("_texts",)

    def __init__(self, options: Mapping[str, str]) -> None:
        self._texts = dict(options)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "TableOptions":
        """Typed access to stored options."""
        return cls(options)

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"TableOptions({shown_options(self._texts, is_table_option)!r})"

    def get(self, key: str | Option, default: Any = None) -> Any:
        """With an :class:`Option`: its typed value (see :meth:`value`); with a text: what is stored, or ``default``."""
        return self.value(key) if isinstance(key, Option) else self._texts.get(key, default)

    def value(self, option: Option) -> Value:
        """The typed value, or the default if the option is absent."""
        text = self._texts.get(option.key)
        return option.default if text is None else option.parse(text)

    def integer(self, option: Option) -> int:
        """The value of an int, bytes or duration option that has one."""
        value = self.value(option)
        assert isinstance(value, int) and not isinstance(value, bool), f"{option.key} has no number"
        return value

    def flag(self, option: Option) -> bool:
        """The value of a bool option."""
        value = self.value(option)
        assert isinstance(value, bool), f"{option.key} is no flag"
        return value

    def text(self, option: Option) -> str:
        """The value of a text or choice option that has one."""
        value = self.value(option)
        assert isinstance(value, str), f"{option.key} has no text"
        return value

    def names(self, option: Option) -> tuple[str, ...]:
        """The value of an option that lists columns."""
        value = self.value(option)
        assert isinstance(value, tuple), f"{option.key} is no list"
        return value

    def stats_modes(self) -> tuple[int | None, dict[str, int | None]]:
        """The modes of column statistics (see :func:`parse_stats_mode`): of all columns, and of those with one of their own."""
        columns = {
            key.removeprefix(FIELDS_PREFIX).removesuffix(COLUMN_STATS_MODE): self._stats_mode(key)
            for key in self._texts
            if key.startswith(FIELDS_PREFIX) and key.endswith(COLUMN_STATS_MODE)
        }
        return self._stats_mode(METADATA_STATS_MODE.key), columns

    def _stats_mode(self, key: str) -> int | None:
        try:
            return parse_stats_mode(self._texts.get(key, str(METADATA_STATS_MODE.default)))
        except InvalidInputError as error:
            raise InvalidInputError(f"option {key}: {error}", kind="invalid-option") from error


def other_spellings(key: str) -> frozenset[str]:
    """The other keys of the same option."""
    first = SPELLINGS.get(key, key)
    return frozenset((first, *(one for one, meant in SPELLINGS.items() if meant == first))) - {key}


def refuse_two_spellings(keys: Iterable[str], *, kind: str = "invalid-option") -> None:
    """Raises InvalidInputError if two of the keys name one option: nobody could say which of them counts."""
    first_spellings: dict[str, str] = {}
    for key in sorted(keys, key=lambda one: (one in SPELLINGS, one)):
        first = first_spellings.setdefault(SPELLINGS.get(key, key), key)
        if first != key:
            raise InvalidInputError(f"{first} and {key} are one option; give one of them", kind=kind)


def with_options(options: Mapping[str, T], new_options: Mapping[str, T]) -> dict[str, T]:
    """The options with ``new_options``, each in place of all spellings of it."""
    replaced = {other for key in new_options for other in other_spellings(key)}
    return {**{key: value for key, value in options.items() if key not in replaced}, **new_options}


def option_texts(options: Mapping[str, object]) -> dict[str, Any]:
    """The options as they are stored: ``True`` as ``true``, numbers as texts. What else is no text is left to the check."""
    if not isinstance(options, Mapping):
        raise InvalidInputError(f"expected options as a dict such as {{'bucket': 4}}, found {options!r:.80}", kind="invalid-option")
    return {key: option_text(value) for key, value in options.items()}


def option_text(value: object) -> Any:
    """Converts one value as :func:`option_texts` converts a table's options."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def validate_options(options: Mapping[str, str]) -> None:
    """Check the options of a table that tablestore creates.

    Raises InvalidInputError for an unknown key (``kind="unknown-option"``), a value that is no text or does not
    parse, and UnsupportedError for features that tablestore does not have.
    """
    for key, text in options.items():
        if not isinstance(key, str) or not isinstance(text, str):
            shown = repr(text) if isinstance(key, str) and is_table_option(key) else f"a value of type {type(text).__name__}"
            raise InvalidInputError(
                f"expected text as key and value of an option, found {key!r:.100}: {shown:.100}",
                kind="invalid-option",
            )
        if not is_table_option(key):
            raise _refused_key(key)
    refuse_unsupported(options)
    parsed = TableOptions(options)
    for key in options:
        if (option := _parsed_as(key)) is not None:
            option.parse(options[key])
    refuse_two_spellings(options)
    _check_together(parsed)


def _parsed_as(key: str) -> Option | None:
    """The option that says what the values of a key are."""
    option = TABLE_OPTIONS.get(SPELLINGS.get(key, key))
    return None if option is None else replace(option, key=key)


def is_table_option(key: str) -> bool:
    """Tells whether tables have such an option. What they have is stored and shown, so no secret is among it."""
    if key in TABLE_OPTIONS or key in _OWN_NOTES or key.removeprefix(KAFKA_PREFIX) in KAFKA_CLIENT_SETTINGS:
        return True
    if partition_date_column(key) is not None or is_check(key):
        return True
    # A column may be called password; what is said about it may not.
    return key.startswith(_FAMILIES) and not is_telling(key.rpartition(".")[2])


def holds_no_secret(key: str) -> bool:
    """Tells whether the value of an option may be shown, be it one of a table, a connector or a session."""
    return is_table_option(key.removeprefix(SESSION_PREFIX)) or is_harmless(key)


def _refused_key(key: str) -> InvalidInputError:
    if key.startswith(KAFKA_PREFIX):
        name = key.removeprefix(KAFKA_PREFIX)
        return InvalidInputError(
            f"a table may not set this property of the Kafka client: {name:.100}. Whoever may alter a table could reach files and "
            "secrets with it, and all who read the table see it; set "
            f"TABLESTORE_KAFKA_{name.upper().replace('.', '_'):.100} in the environment instead. Tables may set "
            f"{', '.join(sorted(KAFKA_CLIENT_SETTINGS))}",
            kind="invalid-option",
        )
    return InvalidInputError(f"unknown table option {key!r:.100}{did_you_mean(key, TABLE_OPTIONS)}", kind="unknown-option")


def partition_date_column(key: str) -> str | None:
    """The column of an option ``partition.fields.#.date-formatter``; None for another option."""
    before, behind = _PARTITION_DATE_PARTS
    column = key.removeprefix(before).removesuffix(behind)
    return column if column and key == f"{before}{column}{behind}" else None


def is_check(key: str) -> bool:
    """True if an option keeps a condition that every row of the table holds."""
    return key.startswith(CHECK_PREFIX) and key != CHECK_PREFIX


def checks_of(options: Mapping[str, str]) -> dict[str, str]:
    """The conditions that every row of a table holds, as SQL text by their names."""
    return {key.removeprefix(CHECK_PREFIX): text for key, text in options.items() if is_check(key)}


def is_materialized(options: Mapping[str, str]) -> bool:
    """True if a table of these options is a materialized one."""
    return options.get(TYPE.key, "").strip().lower() == MATERIALIZED_TABLE


def combines_rows(key: str) -> bool:
    """True if a ``fields.…`` option says how the versions of a column combine: all others do."""
    return key.startswith(FIELDS_PREFIX) and not key.endswith(COLUMN_STATS_MODE)


def refuse_unsupported(options: Mapping[str, str]) -> None:
    """Raise UnsupportedError if a table uses a feature that changes what its files mean and that we do not have."""
    for option in _UNSUPPORTED_FLAGS:
        text = options.get(option.key, "false").strip()
        if text.lower() not in ("false", ""):
            raise UnsupportedError(
                f"the table has {option.key}={text:.100}, which tablestore does not support; "
                "use an engine that does, or a table without it",
                kind="unsupported-option",
            )
    for key, option in _NEVER_ABSENT.items():
        text = options.get(key, str(option.default)).strip()
        if text.lower() not in option.choices:
            raise UnsupportedError(
                f"the table has {key}={text:.100}; tablestore supports {', '.join(option.choices)}",
                kind="unsupported-option",
            )


def _check_together(options: TableOptions) -> None:
    if options.integer(SNAPSHOT_NUM_RETAINED_MIN) > options.integer(SNAPSHOT_NUM_RETAINED_MAX):
        raise InvalidInputError(
            f"{SNAPSHOT_NUM_RETAINED_MIN.key} ({options.integer(SNAPSHOT_NUM_RETAINED_MIN)}) must not exceed "
            f"{SNAPSHOT_NUM_RETAINED_MAX.key} ({options.integer(SNAPSHOT_NUM_RETAINED_MAX)})",
            kind="invalid-option",
        )
    least, most = (options.value(option) for option in (CHANGELOG_NUM_RETAINED_MIN, CHANGELOG_NUM_RETAINED_MAX))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise InvalidInputError(
            f"{CHANGELOG_NUM_RETAINED_MIN.key} ({least}) must not exceed {CHANGELOG_NUM_RETAINED_MAX.key} ({most})",
            kind="invalid-option",
        )
    if options.integer(FILE_COMPRESSION_ZSTD_LEVEL) > 22:
        raise InvalidInputError(
            f"option {FILE_COMPRESSION_ZSTD_LEVEL.key}: expected 1 to 22, found {options.integer(FILE_COMPRESSION_ZSTD_LEVEL)}",
            kind="invalid-option",
        )
    if options.value(BUCKET) == 0:
        raise InvalidInputError("option bucket: expected a positive number, -1 or -2, found '0'", kind="invalid-option")
    for file_format in parse_level_formats(options.get(FILE_FORMAT_PER_LEVEL.key, "")).values():
        if file_format not in FILE_FORMATS:
            raise InvalidInputError(
                f"option {FILE_FORMAT_PER_LEVEL.key}: expected formats of {', '.join(FILE_FORMATS)}, found {file_format!r:.200}",
                kind="invalid-option",
            )
    for option in (DATA_FILE_PREFIX, CHANGELOG_FILE_PREFIX, PARTITION_DEFAULT_NAME):
        text = options.text(option)
        if not text.strip() or not re.fullmatch(r"[\w.\- ]+", text, re.ASCII) or text in (".", ".."):
            raise InvalidInputError(
                f"option {option.key}: expected letters, digits and . _ - only, found {text!r:.100}",
                kind="invalid-option",
            )
    has_time = options.value(LOG_SCAN_TIMESTAMP) is not None or options.get(LOG_SCAN_TIMESTAMP_ALIAS) is not None
    if options.text(LOG_SCAN) == "from-timestamp" and not has_time:
        raise InvalidInputError(
            f"{LOG_SCAN.key} = from-timestamp needs a time to begin at: set {LOG_SCAN_TIMESTAMP.key}, in milliseconds of the epoch",
            kind="invalid-option",
        )
    options.stats_modes()
