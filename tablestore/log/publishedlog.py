"""The change log of a table in a log system (Kafka), behind a :class:`~tablestore.log.logstore.LogStore`.

    CREATE   the log is made, and every publisher slot opened once: a publisher of a dropped table of that name is fenced for good
    commit   the snapshot notes where later records begin; after it has landed this process publishes what the log lacks
    DROP     the log goes with the table, if it is this table's (:mod:`tablestore.log.publish.claim`)

A publish that fails never fails the write that it follows (:mod:`tablestore.store.postcommit`): the next publisher catches up.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

import pyarrow as pa

from tablestore.errors import InvalidInputError, NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.log.alterlog import alter_table
from tablestore.log.connector import open_log_store
from tablestore.log.early.earlypublisher import EarlyPublisher
from tablestore.log.early.earlyreader import EarlyRowsToo
from tablestore.log.early.earlywriter import EarlyRows
from tablestore.log.follow.consumption import ChangeBatch, FileStoreConsumption
from tablestore.log.follow.decoding import RecordDecoder
from tablestore.log.follow.hybrid import HybridConsumption
from tablestore.log.follow.request import Consumption
from tablestore.log.follow.topicreader import LandedChanges, LogReader, Reading
from tablestore.log.logcheck import LogCheck, LogStatus, log_status, verify_log
from tablestore.log.logprogress import LogProgress, encode_log_offsets
from tablestore.log.logstore import LogStore
from tablestore.log.port import ChangeLog, RowsAhead
from tablestore.log.publish.circuitbreaker import PROBE_S
from tablestore.log.publish.claim import adopt_log, fence_slots, hold_for_log, own_log, remove_log
from tablestore.log.publish.ownercheck import foreign_log, log_problem, owner_here
from tablestore.log.publish.ownerfile import LogOwner
from tablestore.log.publish.publisher import LogPublisher, PublishReport
from tablestore.log.publish.publishers import Publishers, SlotPublisher
from tablestore.log.recordlimit import refuse_large_rows
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.store.postcommit import Skipped
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY
from tablestore.telemetry.tracing import traced
from tablestore.types.evolution.schemachanges import SchemaChange
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)


class PublishedLog:
    """Implements :class:`~tablestore.log.port.ChangeLog`. Stores are opened anew for each call, publishers stay open."""

    def __init__(
        self,
        context: TableContext,
        settings: LogSettings,
        publishers: Publishers,
        *,
        publish: Callable[[], object] | None = None,
    ) -> None:
        self._context, self.settings, self._publishers = context, settings, publishers
        self._address = context.files.root_uri
        self._publish = publish or self.publish
        # Worked out at the first write.
        self._record_limit: tuple[int | None] | None = None

    @property
    def slots(self) -> int:
        """The number of publishers that can work at once."""
        return self.settings.slots

    # -- with the table

    def begin(self, *, ignore_if_exists: bool) -> None:
        """Make the log of a new table. Raises AlreadyExistsError, StorageError, InvalidInputError; then there is no log."""
        context, settings, log = self._context, self.settings, self._open()
        created = log.create(partitions=settings.partitions, retention_ms=settings.retention_ms, ignore_if_exists=ignore_if_exists)
        if RetentionLeases(context.files).find(LOG_HOLD) is not None:
            return
        try:
            own_log(context, log, settings)
            # From the first snapshot on: expiry keeps what is still to be published.
            hold_for_log(context, log, settings, 1)
        except BaseException:
            if created:
                with suppress(TablestoreError):
                    log.drop(ignore_if_not_exists=True)
            raise

    def is_there(self) -> bool:
        """True if the log system knows one of that name."""
        try:
            self._open().incarnation(partitions=self.settings.partitions)
        except NotFoundError:
            return False
        except InvalidInputError:
            return True  # of another number of partitions
        return True

    def alter(self, changes: Sequence[SchemaChange] | SchemaChange) -> TableSchema:
        """Alter the table, and its log where options say so."""
        return alter_table(self._context, self._publishers, changes)

    def check_rescale(self) -> None:
        """Raise UnsupportedError: the log has one partition per bucket."""
        raise UnsupportedError(
            f"table {self._address} has topic {self.settings.topic} for its log, with one partition per bucket: set log.system = "
            "filestore, which ends the log and deletes its topic, rescale, and set log.system = kafka again, which begins another",
            kind="immutable-option",
        )

    def drop(self, *, is_new: bool = False) -> None:
        """Remove the log of a table that is dropped, and of a creation that has just begun one (``is_new``)."""
        self.close()
        try:
            remove_log(self._context, self._open(), self.settings, is_new=is_new)
        except InvalidInputError as error:
            # Nobody with these settings can reach the log: no reason to keep the table.
            LOG.warning("the log %s of table %s is left behind, delete it by hand: %s", self.settings.topic, self._address, error)

    # -- with a commit

    def properties(self) -> Mapping[str, str]:
        """The positions where records of later snapshots begin, as far as that is on record."""
        bounds = LogProgress(self._context.files).lower_bounds(self.settings.slots, self.settings.partitions)
        return {} if bounds is None else {LOG_OFFSETS_PROPERTY: encode_log_offsets(*bounds)}

    def check_sizes(self, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None) -> None:
        """Raise RecordTooLarge for a row over the limit that options set or that the log named last. Nobody is asked."""
        if self._record_limit is None:
            self._record_limit = (self._known_record_limit(),)
        (limit,) = self._record_limit
        if limit is not None and rows.num_rows:
            refuse_large_rows(self._context, self.settings, rows, kinds, limit=limit)

    def _known_record_limit(self) -> int | None:
        try:
            limits = (self._open().max_record_bytes, owner_here(self._context).record_bytes)
        except TablestoreError:
            # A log of which nothing is known stops no write; what is wrong with it, the publisher says.
            return None
        return min((limit for limit in limits if limit is not None), default=None)

    def ahead(self) -> RowsAhead | None:
        """The sender of early rows of one write, for ``log.consistency = eventual``."""
        if not self.settings.eventual or not self._context.settings.tracking.is_whole or self._is_silent():
            return None
        return EarlyRows(self._context, self.settings, self, self._publishers.locks)

    def after_commit(self) -> None:
        """Publish, unless the log did not answer a moment ago (:mod:`tablestore.log.publish.circuitbreaker`)."""
        if self._is_silent():
            raise Skipped(f"the log of {self._address} was silent and is left alone")
        try:
            self._publish()
        except TablestoreError as error:
            self.note_error(error)
            raise

    def publishing(self, publish: Callable[[], object]) -> ChangeLog:
        """The same log, whose :meth:`after_commit` calls ``publish``."""
        return PublishedLog(self._context, self.settings, self._publishers, publish=publish)

    def publish(self, *, slots: Sequence[int] | None = None, look: bool = False) -> tuple[PublishReport, ...]:
        """Send the changes that snapshots have and the log lacks, of all slots or some."""
        reports = []
        with traced(self._context.shared.observers.tracer, "publish", self._address) as span:
            for slot in range(self.settings.slots) if slots is None else slots:
                with self.use(slot) as publisher:
                    reports.append(publisher.publish(look=look))
            span.record(rows=sum(report.records for report in reports))
        return tuple(reports)

    def unpublished(self) -> int | None:
        """The number of snapshots that the slot that is furthest behind has not published."""
        published = LogProgress(self._context.files).published(self.settings.slots)
        latest = self._context.snapshots.latest()
        return max(latest.id - published, 0) if latest is not None else 0

    def use(self, slot: int) -> AbstractContextManager[SlotPublisher]:
        """The publisher of a slot, open from one call to the next."""
        context, settings = self._context, self.settings
        make = EarlyPublisher if settings.eventual else LogPublisher
        key = (self._address, context.table_uuid, settings.topic, settings.slots, slot)
        return self._publishers.use(key, lambda: make(context, self._open(), settings, self._publishers.locks, slot=slot))

    def note_error(self, error: Exception) -> None:
        """A write has met this error of its log: if the log is silent, the next writes do not wait for it too."""
        if isinstance(error, StorageError) and not self._open().answers(PROBE_S):
            self._publishers.breaker.open(self._address, self._context.clock)

    def _is_silent(self) -> bool:
        return self._publishers.breaker.is_open(
            self._address, self._context.clock, lambda timeout_s: self._open().answers(timeout_s)
        )

    # -- reading

    def follow(self, request: Consumption) -> Iterator[ChangeBatch]:
        """Follows the log, or the file store alone where the log cannot serve the request or is not this table's."""
        context, settings = self._context, self.settings
        # An upsert log does not hold the rows before an update; the file store finds them.
        store = FileStoreConsumption(context, request)
        if not request.as_written or (request.pairs and settings.mode == "upsert" and context.schema.is_keyed):
            return store.batches()
        # The log holds what rules of a catalog service hide, and not always the row before a change.
        if context.view is not None:
            return store.batches()
        log, silence = self._open(), None
        try:
            if (problem := log_problem(context, log, settings)) is not None:
                LOG.warning("%s. Its changes are read from the file store", problem)
                return store.batches()
        except StorageError as error:
            silence = error
        store.take_tombstones()
        decoder = RecordDecoder(
            context,
            log.name,
            settings,
            columns=request.columns,
            predicate=request.predicate,
            schema=store.schema,
            pairs=request.pairs,
        )
        reading: Reading = LandedChanges(context, settings, decoder)
        if settings.eventual:
            reading = EarlyRowsToo(context, log, settings, decoder)
        reader = LogReader(context, log, settings, decoder, reading)
        return HybridConsumption(context, request, store, log, reader, settings, silence=silence).batches()

    # -- looking after it

    def status(self, *, count_records: bool = True) -> LogStatus:
        """The status of the log: how far it is."""
        return log_status(self._context, self._open(), self.settings, count_records=count_records)

    def verify(self) -> LogCheck:
        """Compare the log with the table."""
        return verify_log(self._context, self._open(), self.settings)

    def rebuild(self) -> tuple[PublishReport, ...]:
        """Make the log anew and begin it with the earliest retained snapshot. Readers of the old one find out."""
        context, settings, log = self._context, self.settings, self._open()
        if (foreign := foreign_log(context, log, settings)) is not None:
            raise foreign
        self.close()
        log.drop(ignore_if_not_exists=True)
        # A process that still has the old log open must not write to the new one.
        fence_slots(log, range(max((settings.slots, *LogProgress(context.files).layouts()))))
        LogProgress(context.files).forget()
        RetentionLeases(context.files).release(LOG_HOLD)
        log.create(partitions=settings.partitions, retention_ms=settings.retention_ms, ignore_if_exists=False)
        own_log(context, log, settings)
        ids = context.snapshots.live_ids()
        hold_for_log(context, log, settings, ids[0] if ids else 1)
        return self.publish()

    def adopt(self) -> LogOwner:
        """Make this place the owner of the log of a table that was moved here."""
        self.close()
        return adopt_log(self._context, self._open(), self.settings)

    def close(self) -> None:
        """Close the table's publishers."""
        self._publishers.close(self._address)

    def _open(self) -> LogStore:
        return open_log_store(self.settings)
