"""Applies an ALTER to the log of a table: begins, ends or moves it, or refuses the change by name.

    file store -> kafka     BEGIN   the topic is made and its slots fenced, as by CREATE; then the schema lands. What snapshots
                                    changed before is not in it: readers find that in the file store
    kafka -> file store     END     the schema lands, then the topic is deleted. That needs no broker: one that does not answer
                                    leaves a topic behind, and that is said
    other brokers           MOVE    the topic there must be this one
    log.retention, log.kafka.message.max.bytes      the topic hears of it first
    topic, log.changelog-mode, log.format, log.consistency, bucket     refused, what was published depends on them: end the log and
                                    begin another

Deciding (:func:`pick_step`) is pure. A round of the alteration that finds another log than the one decided on gives up.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto

from tablestore import options as opt
from tablestore.errors import CommitOutcomeUnknown, ConflictError, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.log.connector import open_log_store
from tablestore.log.logprogress import LogProgress
from tablestore.log.publish.claim import forget_record_limit, hold_for_log, own_log, remove_log
from tablestore.log.publish.publishers import Publishers
from tablestore.log.settings import EARLY_CONCERNS, LogSettings, named_log, settings_of
from tablestore.options import TableOptions
from tablestore.store.commit.alterschema import alter_schema
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.store.postcommit import PostCommitTask, attempt
from tablestore.types.evolution.optionchanges import with_option
from tablestore.types.evolution.schemachanges import RemoveOption, SchemaChange, SetOption
from tablestore.types.schema import TableSchema

WAY_OUT = (
    "set log.system = filestore, which ends the log and deletes its topic, then the new value, and log.system = kafka again, which "
    "begins another"
)
_SERVERS = "bootstrap.servers"
_LARGEST = "message.max.bytes"


class LogStep(Enum):
    """The step that an alteration takes with the log."""

    KEEP = auto()
    BEGIN = auto()
    MOVE = auto()
    END = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChoice:
    """The log that a schema asks for. ``consistency`` as it is written."""

    settings: LogSettings
    consistency: str


def pick_step(before: LogChoice, after: LogChoice, *, table: str) -> LogStep:
    """The step of an alteration from one choice to another. Pure. Raises UnsupportedError for what a log cannot become."""
    old, new = before.settings, after.settings
    if new.system == "filestore":
        return LogStep.KEEP if old.system == "filestore" else LogStep.END
    if old.system == "filestore":
        return LogStep.BEGIN
    fixed = {
        opt.LOG_KAFKA_TOPIC.key: (old.topic, new.topic),
        opt.LOG_CHANGELOG_MODE.key: (old.mode, new.mode),
        opt.LOG_FORMAT.key: (old.form, new.form),
        opt.LOG_CONSISTENCY.key: (before.consistency, after.consistency),
        opt.BUCKET.key: (old.partitions, new.partitions),
    }
    for key, (was, becomes) in fixed.items():
        if was != becomes:
            raise UnsupportedError(
                f"the option {key!r} of table {table} cannot be altered from {was!r} to {becomes!r} while its log is topic "
                f"{old.topic}: what was published depends on it; {WAY_OUT}",
                kind="immutable-option",
            )
    return LogStep.KEEP if old.properties.get(_SERVERS) == new.properties.get(_SERVERS) else LogStep.MOVE


def alter_table(context: TableContext, publishers: Publishers, changes: Sequence[SchemaChange] | SchemaChange) -> TableSchema:
    """Alter a table, and its log where its options say so; returns the schema that then is the newest.

    Raises what :func:`~tablestore.store.commit.alterschema.alter_schema` raises, and for the log UnsupportedError,
    InvalidInputError, AlreadyExistsError (a topic of that name is there) and StorageError: nothing was altered then.
    """
    change_list = [changes] if isinstance(changes, SchemaChange) else changes
    if not isinstance(change_list, (list, tuple)) or not any(_is_about_the_log(change) for change in change_list):
        return alter_schema(context, changes)
    base = context.schemas.refreshed_latest()
    altered_schema = named_log(replace(base, options=_options_after(base, change_list)), _default_topic(context))
    if (topic := altered_schema.options.get(opt.LOG_KAFKA_TOPIC.key)) is not None:
        change_list = [*change_list, SetOption(opt.LOG_KAFKA_TOPIC.key, topic)]
    before, after = _choice(context, base), _choice(context, altered_schema)
    step = pick_step(before, after, table=context.files.root_uri)
    if after.settings.system == "filestore" and step is LogStep.KEEP:
        return alter_schema(context, changes)

    def check(older: TableSchema, newer: TableSchema) -> None:
        if (_choice(context, older), _choice(context, newer)) != (before, after):
            raise ConflictError(
                f"the log of table {context.files.root_uri} was altered by somebody else meanwhile; look at its options and repeat",
                kind="log-altered",
            )

    def land() -> TableSchema:
        return alter_schema(context, change_list, check=check)

    if step is LogStep.END:
        return _end(context, publishers, before.settings, land)
    if step is LogStep.BEGIN:
        return _begin(context, after.settings, land)
    if step is LogStep.MOVE:
        _check_moved(context, before.settings, after.settings)
    return _retain(context, publishers, before.settings, after.settings, land)


def _begin(context: TableContext, settings: LogSettings, land: Callable[[], TableSchema]) -> TableSchema:
    log = open_log_store(settings)
    log.create(partitions=settings.partitions, retention_ms=settings.retention_ms, ignore_if_exists=False)
    try:
        # The progress is that of a log that the table had before.
        LogProgress(context.files).forget()
        own_log(context, log, settings)
        latest = context.snapshots.latest()
        hold_for_log(context, log, settings, latest.id + 1 if latest else 1)
        return land()
    except CommitOutcomeUnknown:
        raise
    except BaseException:
        # The topic is ours: it was made above. It is of no use to a table that has no such log.
        with suppress(TablestoreError):
            if _choice(context, context.schemas.refreshed_latest()).settings.system == "filestore":
                RetentionLeases(context.files).release(LOG_HOLD)
                LogProgress(context.files).forget()
                log.drop(ignore_if_not_exists=True)
        raise


def _end(context: TableContext, publishers: Publishers, settings: LogSettings, land: Callable[[], TableSchema]) -> TableSchema:
    new_schema = land()
    where = f"schema {new_schema.id} of table {context.files.root_uri}, whose log was topic {settings.topic},"
    attempt(PostCommitTask.END_LOG, lambda: publishers.close(context.files.root_uri), where=where)
    # Whose log it is, is known before the table forgets it.
    attempt(PostCommitTask.DROP_LOG, lambda: remove_log(context, open_log_store(settings), settings), where=where)
    attempt(PostCommitTask.END_LOG, LogProgress(context.files).forget, where=where)
    attempt(PostCommitTask.END_LOG, lambda: RetentionLeases(context.files).release(LOG_HOLD), where=where)
    return new_schema


def _check_moved(context: TableContext, old: LogSettings, new: LogSettings) -> None:
    """The topic at the new address must be the one that the table was published to."""
    recorded = [LogProgress(context.files).read(slot, old.slots) for slot in range(old.slots)]
    old_incarnation = next((progress.incarnation for progress in recorded if progress is not None), None)
    if old_incarnation is None:
        old_incarnation = open_log_store(old).incarnation(partitions=old.partitions)
    new_incarnation = open_log_store(new).incarnation(partitions=new.partitions)
    if new_incarnation != old_incarnation:
        raise InvalidInputError(
            f"topic {new.topic} at {new.properties[_SERVERS]} is not the log of table {context.files.root_uri}: it has the id "
            f"{new_incarnation}, expected {old_incarnation}. For a log in another cluster {WAY_OUT}",
            kind="log-replaced",
        )


def _retain(
    context: TableContext, publishers: Publishers, old: LogSettings, new: LogSettings, land: Callable[[], TableSchema]
) -> TableSchema:
    log = open_log_store(new)
    if (old.retention_ms, old.properties.get(_LARGEST)) == (new.retention_ms, new.properties.get(_LARGEST)):
        return land()
    log.retain(new.retention_ms)
    try:
        forget_record_limit(context)
        new_schema = land()
        # They go by the old limit.
        publishers.close(context.files.root_uri)
        return new_schema
    except CommitOutcomeUnknown:
        raise
    except TablestoreError:
        with suppress(TablestoreError):
            open_log_store(old).retain(old.retention_ms)
        raise


def _choice(context: TableContext, schema: TableSchema) -> LogChoice:
    consistency = TableOptions(schema.options).text(opt.LOG_CONSISTENCY)
    return LogChoice(settings=settings_of(context.at_schema(schema)), consistency=consistency)


def _is_about_the_log(change: object) -> bool:
    key = change.key if isinstance(change, (SetOption, RemoveOption)) else ""
    return isinstance(key, str) and (key.startswith(("log.", "tablestore.log.", opt.BUCKET.key)) or key in EARLY_CONCERNS)


def _options_after(schema: TableSchema, changes: Sequence[object]) -> Mapping[str, str]:
    for change in changes:
        if isinstance(change, SetOption):
            schema = replace(schema, options=with_option(schema, change))
        elif isinstance(change, RemoveOption):
            schema = replace(schema, options={key: value for key, value in schema.options.items() if key != change.key})
    return schema.options


def _default_topic(context: TableContext) -> str:
    """``database.table``, as CREATE names it."""
    *_, database, table = ("", *context.files.root_uri.rstrip("/").split("/"))
    return f"{database.removesuffix('.db')}.{table}" if database.endswith(".db") else table
