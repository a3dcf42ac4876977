"""Parses the log options of a table into a frozen value. Pure: a value, or a typed error.

    log.system                filestore without brokers, kafka with them, unless it is named
    log.changelog-mode auto   upsert with a primary key, all without

The messages of combinations that cannot be are those of the seed (FLIP-188).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from tablestore import options as opt
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.log.changemessages import ROW_FORMATS, ChangelogMode, LogFormat
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.store.settings import table_settings
from tablestore.types.schema import TableSchema

LogSystem = Literal["filestore", "kafka"]

# Options that decide whether rows may be sent before their snapshot.
EARLY_CONCERNS = frozenset(
    option.key
    for option in (
        opt.MERGE_ENGINE,
        opt.SEQUENCE_FIELD,
        opt.IGNORE_DELETE,
        opt.DELETION_VECTORS_ENABLED,
        opt.CHANGELOG_PRODUCER,
        opt.CHANGE_TRACKING,
        opt.UNTRACKED_PARTITIONS,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log of one table. ``partitions``: one per bucket. ``properties``: of the client, without their prefix.

    ``eventual``: rows are sent while they are written too, before their snapshot. ``form``: that of the messages.
    """

    system: LogSystem
    mode: ChangelogMode
    eventual: bool = False
    form: LogFormat = "debezium-json"
    topic: str
    partitions: int
    slots: int
    retention_ms: int | None
    properties: Mapping[str, str]


def log_settings(schema: TableSchema, *, name: str) -> LogSettings:
    """The log that the options of a schema ask for; ``name`` names the topic where they do not.

    Raises InvalidInputError, UnsupportedError for what cannot be together.
    """
    options = TableOptions(schema.options)
    keyed = schema.is_keyed
    mode_text = options.text(opt.LOG_CHANGELOG_MODE)
    transactional = options.text(opt.LOG_CONSISTENCY) == "transactional"
    # As it is stored: a table whose brokers nobody can ask is still read, and altered.
    brokers = options.get(opt.LOG_KAFKA_BOOTSTRAP_SERVERS.key)
    system = options.value(opt.LOG_SYSTEM) or ("kafka" if brokers else "filestore")
    if mode_text == "upsert" and not keyed:
        raise _invalid(
            "Can not use upsert changelog mode for non-pk table.", "leave log.changelog-mode out, or give it a primary key"
        )
    if not transactional and not keyed:
        raise _invalid("Can not use EVENTUAL consistency mode for non-pk table.", "leave log.consistency out")
    if not transactional and mode_text == "all":
        raise _invalid(
            "log.changelog-mode = all needs log.consistency = transactional",
            "leave one of the two out: only upserts can be repaired",
        )
    if system == "filestore":
        _check_filestore(options)
    bucket = options.value(opt.BUCKET)
    partitions = bucket if isinstance(bucket, int) and bucket > 0 else 1
    if system == "kafka":
        # There is one format of keys: a value that does not parse is another's.
        options.text(opt.LOG_KEY_FORMAT)
        if not brokers:
            raise _invalid("log.system = kafka needs brokers", "set log.kafka.bootstrap.servers, such as localhost:9092")
        if keyed and (not isinstance(bucket, int) or bucket < 1):
            raise UnsupportedError(
                f"log.system = kafka with bucket = {bucket}: a topic has a fixed partition per bucket; give the table a fixed "
                "number of buckets, or log.system = filestore",
                kind="log-buckets",
            )
        if not transactional and options.integer(opt.LOG_PUBLISHER_SLOTS) != 1:
            raise UnsupportedError(
                "log.consistency = eventual with tablestore.log.publisher-slots above 1: rows that are sent early, and those that "
                "take them back, need one order; leave the slots out, or log.consistency",
                kind="log-consistency",
            )
    mode: ChangelogMode = "all" if mode_text == "all" or (mode_text == "auto" and not keyed) else "upsert"
    # As an engine without a topic has it, it is not looked at.
    form = cast("LogFormat", options.text(opt.LOG_FORMAT)) if system == "kafka" else "debezium-json"
    _check_format(schema, form, mode)
    prefix = "log.kafka."
    properties = {
        key.removeprefix(prefix): value
        for key, value in schema.options.items()
        if key.startswith(prefix) and key != opt.LOG_KAFKA_TOPIC.key
    }
    retention = options.value(opt.LOG_RETENTION)
    topic = options.value(opt.LOG_KAFKA_TOPIC)
    return LogSettings(
        system="kafka" if system == "kafka" else "filestore",
        mode=mode,
        eventual=not transactional,
        form=form,
        topic=topic if isinstance(topic, str) else name,
        partitions=partitions,
        slots=min(options.integer(opt.LOG_PUBLISHER_SLOTS), partitions),
        retention_ms=retention if isinstance(retention, int) else None,
        properties=properties,
    )


def settings_of(context: TableContext) -> LogSettings:
    """The log of an open table. A branch is a history of its own: its changes are in the file store only."""
    settings = log_settings(context.schema, name=context.files.root_uri.rstrip("/").rpartition("/")[2])
    return settings if context.branch == MAIN_BRANCH else replace(settings, system="filestore")


def named_log(schema: TableSchema, name: str) -> TableSchema:
    """The schema of a table that is to be made, with the topic of its log written down. Raises what :func:`log_settings` raises."""
    settings = log_settings(schema, name=name)
    if settings.system == "filestore":
        return schema
    check_early(schema, settings)
    return replace(schema, options={**schema.options, opt.LOG_KAFKA_TOPIC.key: settings.topic})


def check_early(schema: TableSchema, settings: LogSettings) -> None:
    """Raises UnsupportedError, which names the option in the way, where rows of this table may not be sent before their
    snapshot."""
    if not settings.eventual:
        return
    plain = table_settings(schema)
    options = TableOptions(schema.options)
    producer = options.text(opt.CHANGELOG_PRODUCER).lower()
    in_the_way = {
        "merge-engine, sequence.field, ignore-delete or deletion-vectors.enabled": not plain.is_plain,
        f"changelog-producer = {producer}": producer != "none",
        "change-tracking = false, of the table or of a partition": not plain.tracking.is_whole,
    }
    for option_text, applies in in_the_way.items():
        if applies:
            raise UnsupportedError(
                f"log.consistency = eventual does not go with {option_text}: what is written must be what readers see in the end; "
                "leave it out, or log.consistency",
                kind="log-consistency",
            )


def _check_format(schema: TableSchema, form: LogFormat, mode: ChangelogMode) -> None:
    """Refuses a format whose messages cannot hold the table's changes."""
    if form in ROW_FORMATS and mode == "all":
        if schema.is_keyed:
            raise _invalid(
                f"log.format = {form} has no message for a row taken back, which log.changelog-mode = all needs",
                "leave log.changelog-mode out, or set log.format = debezium-json or canal-json",
            )
        if TableOptions(schema.options).flag(opt.STREAMING_READ_OVERWRITE):
            raise _invalid(
                f"log.format = {form} has no message for a row taken back, which streaming-read-overwrite = true needs",
                "leave one of the two out, or set log.format = debezium-json or canal-json",
            )
    if form == "avro":
        from tablestore.format.datafiles.avrowriter import check_avro_columns

        check_avro_columns(schema, "the log", setting="log.format = avro", others="log.format = debezium-json")


def _check_filestore(options: TableOptions) -> None:
    """Refuses options that need a log system, where the file store is the log."""
    if options.text(opt.LOG_CONSISTENCY) == "eventual":
        raise _invalid(
            "File store continuous reading does not support eventual consistency mode.",
            "set log.kafka.bootstrap.servers, or leave log.consistency out",
        )


def _invalid(message: str, way_out: str) -> InvalidInputError:
    return InvalidInputError(f"{message} ({way_out})", kind="log-option")
