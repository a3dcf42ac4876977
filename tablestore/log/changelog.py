"""Which log does this table have, and who keeps it?

    CREATE   the topic is named, made, and every publisher slot opened once (a publisher of a dropped table is fenced for good)
    commit   the snapshot notes where later records begin; after it has landed this process publishes what the log lacks
    DROP     the topic goes with the table, if it is this table's (:mod:`tablestore.log.publish.ownership`)

A log system is found by the entry point group ``tablestore.log_stores``, so the engine knows no client library. A publish that
fails never fails the write that it follows (:mod:`~tablestore.table.upkeep.aftercommit`): the next publisher catches up.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import entry_points
from threading import Lock

from tablestore import options as opt
from tablestore.errors import InvalidInputError, StorageError, TablestoreError, UnsupportedError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.log.circuitbreaker import LOOK_S, RestingLogs
from tablestore.log.early.earlypublisher import EarlyPublisher
from tablestore.log.follow.consumption import Consumption, FileStoreConsumption
from tablestore.log.follow.hybrid import HybridConsumption
from tablestore.log.logprogress import LogProgress, encode_log_offsets
from tablestore.log.logstore import LogStore
from tablestore.log.ownerfile import LogOwner
from tablestore.log.publish.ownership import adopt_log, fence_slots, foreign_log, log_problem, move_owner, own_log, owner_here
from tablestore.log.publish.publisher import LogPublisher, PublishReport, current_offsets, log_owner
from tablestore.log.settings import LogSettings, log_settings
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.store.followup import LeftAlone
from tablestore.store.history.holds import LOG_HOLD, Holds
from tablestore.store.settings import table_settings
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)

GROUP = "tablestore.log_stores"

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

OpenLogStore = Callable[[str, Mapping[str, str]], LogStore]
"""What an entry point gives: (topic, client properties of the table) -> the log."""


def named_log(schema: TableSchema, name: str) -> TableSchema:
    """The schema of a table that is to be made, with the topic of its log written down. Raises what :func:`log_settings` raises."""
    settings = log_settings(schema, name=name)
    if settings.system == "filestore":
        return schema
    check_early(schema, settings)
    return replace(schema, options={**schema.options, opt.LOG_KAFKA_TOPIC.key: settings.topic})


def check_early(schema: TableSchema, settings: LogSettings) -> None:
    """Whether rows of this table may be sent before their snapshot. Raises UnsupportedError that names the option in the way."""
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
    for what, applies in in_the_way.items():
        if applies:
            raise UnsupportedError(
                f"log.consistency = eventual does not go with {what}: what is written must be what readers see in the end; leave "
                "it out, or log.consistency",
                kind="log-consistency",
            )


def settings_of(context: TableContext) -> LogSettings:
    """The log of an open table. A branch is a history of its own: its changes are in the file store only."""
    return context.once(_settings_of)


def _settings_of(context: TableContext) -> LogSettings:
    settings = log_settings(context.schema, name=context.files.root_uri.rstrip("/").rpartition("/")[2])
    return settings if context.branch == MAIN_BRANCH else replace(settings, system="filestore")


def open_log(settings: LogSettings) -> LogStore:
    """The log store that the settings name. Raises UnsupportedError if its connector is not installed."""
    found = [point for point in entry_points(group=GROUP) if point.name == settings.system]
    if not found:
        raise UnsupportedError(
            f"log.system = {settings.system} needs its connector, which is not installed: pip install "
            f"'tablestore[{settings.system}]'",
            kind="no-log-connector",
        )
    try:
        make: OpenLogStore = found[0].load()
    except ImportError as error:
        raise UnsupportedError(
            f"log.system = {settings.system}: its connector does not load ({error}); pip install 'tablestore[{settings.system}]'",
            kind="no-log-connector",
        ) from error
    return make(settings.topic, settings.properties)


def record_limit(context: TableContext) -> int | None:
    """How large a record of the table's log may be, by its options and what the log said last; nobody is asked. None: not known."""
    return context.once(_record_limit)


def _record_limit(context: TableContext) -> int | None:
    settings = settings_of(context)
    if settings.system == "filestore":
        return None
    try:
        known = (open_log(settings).max_record_bytes, owner_here(context).record_bytes)
    except TablestoreError:
        # A log of which nothing can be said stops no write; what is the matter with it, the publisher says.
        return None
    return min((limit for limit in known if limit is not None), default=None)


def create_log(context: TableContext, *, ignore_if_exists: bool) -> None:
    """Make the log of a new table. Raises AlreadyExistsError, StorageError, InvalidInputError; then there is no log."""
    settings = settings_of(context)
    if settings.system == "filestore":
        return
    log = open_log(settings)
    made = log.create(partitions=settings.partitions, retention_ms=settings.retention_ms, ignore_if_exists=ignore_if_exists)
    if Holds(context.files).find(LOG_HOLD) is not None:
        return
    try:
        own_log(context, log, settings)
        # From the first snapshot on: expiry keeps what is still to be published.
        hold_for_log(context, log, settings, 1)
    except BaseException:
        if made:
            with suppress(TablestoreError):
                log.drop(ignore_if_not_exists=True)
        raise


def hold_for_log(context: TableContext, log: LogStore, settings: LogSettings, next_snapshot: int) -> None:
    """Keep snapshots from ``next_snapshot`` on until the log that was just made has their changes."""
    owner = log_owner(log, log.incarnation(partitions=settings.partitions))
    Holds(context.files).take(LOG_HOLD, next_snapshot, owner=owner, ids=context.ids)


def drop_log(context: TableContext) -> None:
    """Remove the log of a table that is dropped."""
    try:
        settings = settings_of(context)
    except TablestoreError:
        return  # Another engine's options, which name no log of ours.
    if settings.system == "filestore":
        return
    PUBLISHERS.close(context.files.root_uri)
    try:
        remove_log(context, open_log(settings), settings)
    except InvalidInputError as error:
        # Nobody with these settings can reach the log: no reason to keep the table.
        LOG.warning("the log %s of table %s is left behind, delete it by hand: %s", settings.topic, context.files.root_uri, error)


def remove_log(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """Delete the log of a table that will have none; that of another table, or of the one it is a copy of, is left alone."""
    if (found := foreign_log(context, log, settings)) is not None:
        LOG.warning("topic %s is left as it is: %s", log.name, found)
        return
    log.drop(ignore_if_not_exists=True)


def consumption(context: TableContext, request: Consumption) -> FileStoreConsumption | HybridConsumption:
    """How a request to follow the table is served: from its log, or from the file store alone."""
    settings = settings_of(context)
    # An upsert log does not hold the rows before an update; the file store finds them.
    wants_lookup = request.pairs and settings.mode == "upsert" and context.schema.is_keyed
    if settings.system == "filestore" or wants_lookup:
        return FileStoreConsumption(context, request)
    log, silence = open_log(settings), None
    try:
        if (problem := log_problem(context, log, settings)) is not None:
            LOG.warning("%s. Its changes are read from the file store", problem)
            return FileStoreConsumption(context, request)
    except StorageError as error:
        silence = error
    return HybridConsumption(context, request, log, settings, silence=silence)


def log_properties(context: TableContext) -> dict[str, str]:
    """What a snapshot that is about to be committed notes about the log."""
    settings = settings_of(context)
    if settings.system == "filestore":
        return {}
    known = current_offsets(context, settings)
    return {} if known is None else {LOG_OFFSETS_PROPERTY: encode_log_offsets(*known)}


class _Publishers:
    """The open publishers of this process, by log and slot: opening one costs more than a small transaction."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str, str | None, str, int, int], LogPublisher] = {}
        self._lock = Lock()

    @contextmanager
    def use(self, context: TableContext, settings: LogSettings, slot: int) -> Iterator[LogPublisher]:
        """The publisher of a slot, for one thread at a time. One that failed is closed and made anew next time."""
        # A client does not live on in a forked process.
        key = (os.getpid(), context.files.root_uri, context.table_uuid, settings.topic, settings.slots, slot)
        with self._lock:
            make = EarlyPublisher if settings.eventual else LogPublisher
            publisher = self._open.pop(key, None) or make(context, open_log(settings), settings, slot=slot)
        try:
            yield publisher
        except BaseException:
            publisher.close()
            raise
        with self._lock:
            other = self._open.get(key)
            self._open[key] = publisher
        if other is not None:
            other.close()

    def close(self, root_uri: str | None = None) -> None:
        """Close those of one table, or all."""
        with self._lock:
            chosen = [key for key in self._open if root_uri is None or key[1] == root_uri]
            closing = [(key, self._open.pop(key)) for key in chosen]
        for key, publisher in closing:
            if key[0] == os.getpid():
                publisher.close()


PUBLISHERS = _Publishers()
_RESTING = RestingLogs()


def publish_log(context: TableContext, *, slots: tuple[int, ...] | None = None, look: bool = False) -> tuple[PublishReport, ...]:
    """Publish what snapshots have and the log lacks, of all slots or some. Empty for a table whose log is the file store.

    ``look``: look at the log itself even if all is recorded as sent, and repair it.
    """
    settings = settings_of(context)
    if settings.system == "filestore":
        return ()
    reports = []
    for slot in range(settings.slots) if slots is None else slots:
        with PUBLISHERS.use(context, settings, slot) as publisher:
            reports.append(publisher.publish(look=look))
    return tuple(reports)


def publish_after_commit(context: TableContext, publish: Callable[[TableContext], object] = publish_log) -> None:
    """Publish after a write of this process has landed: a follow-up of it. Raises LeftAlone while the log rests."""
    if log_rests(context):
        raise LeftAlone(f"the log of {_address(context)} was silent and is left alone")
    try:
        publish(context)
    except TablestoreError as error:
        leave_alone(context, error)
        raise


def log_rests(context: TableContext) -> bool:
    """Whether writes leave the table's log alone for now, because it has not answered."""
    settings = settings_of(context)
    if settings.system == "filestore":
        return False
    return _RESTING.rests(_address(context), context.clock, lambda timeout_s: open_log(settings).answers(timeout_s))


def leave_alone(context: TableContext, error: Exception) -> None:
    """A write has met this error of its log: if that is silent, the next ones do not wait for it too."""
    if isinstance(error, StorageError) and not open_log(settings_of(context)).answers(LOOK_S):
        _RESTING.begin(_address(context), context.clock)


def _address(context: TableContext) -> str:
    return context.files.root_uri


def rebuild_log(context: TableContext) -> tuple[PublishReport, ...]:
    """Make the log anew and begin it with the earliest retained snapshot. Readers of the old one are told that it was replaced."""
    settings = settings_of(context)
    if settings.system == "filestore":
        raise UnsupportedError(f"the log of {context.files.root_uri} is the file store itself: there is nothing to rebuild")
    log = open_log(settings)
    if (found := foreign_log(context, log, settings)) is not None:
        raise found
    PUBLISHERS.close(context.files.root_uri)
    log.drop(ignore_if_not_exists=True)
    # Nobody who still believes in the old one is to write to the new.
    fence_slots(log, range(max((settings.slots, *LogProgress(context.files).layouts()))))
    LogProgress(context.files).forget()
    Holds(context.files).release(LOG_HOLD)
    log.create(partitions=settings.partitions, retention_ms=settings.retention_ms, ignore_if_exists=False)
    own_log(context, log, settings)
    ids = context.snapshots.live_ids()
    hold_for_log(context, log, settings, ids[0] if ids else 1)
    return publish_log(context)


def adopt(context: TableContext) -> LogOwner:
    """Make this place the owner of the log of a table that was moved here; see
    :func:`~tablestore.log.publish.ownership.adopt_log`."""
    settings = settings_of(context)
    PUBLISHERS.close(context.files.root_uri)
    return adopt_log(context, open_log(settings), settings)


def rename_log(before: TableContext, after: TableContext) -> None:
    """The log of a table that has another name now; the log keeps its own."""
    PUBLISHERS.close(before.files.root_uri)
    move_owner(after, before.files.root_uri)
