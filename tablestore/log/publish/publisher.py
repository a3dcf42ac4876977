"""Publishes to the log (the outbox): sends what snapshots have and the log lacks, in order, once.

    commit (never talks to the log) ... publisher:  open the slot (fences a predecessor)
                                                     where is the log?  greater of its tail and the recorded progress
                                                     send what follows, snapshot by snapshot, in transactions
                                                     record progress, move the consumer that expiry honours

The log says itself how far it is: every record carries the snapshot and ordinal of its change, so a publisher that takes over after
any crash resumes behind the last visible record. A crash leaves the log behind, never ahead and never doubled. Where the log has
lost what it had acknowledged, its tail counts, and the rest is sent again.

While a slot stays open and is not fenced, no other process has written to its buckets: what this publisher remembers is true. A
lock per slot keeps the publishers of one user and host from fencing each other; else a fenced one steps back and looks again.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from tablestore.errors import ConflictError, InvalidInputError, NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.htmltext import PrintedInNotebooks
from tablestore.log.identity import Identity
from tablestore.log.logprogress import LogProgress, SlotProgress
from tablestore.log.logstore import LogSlot, LogStore, SlotFenced, cut_into_transactions
from tablestore.log.publish.changerecords import find_published, snapshot_records
from tablestore.log.publish.claim import CLAIM_BUCKET, OPEN_TIMEOUT_S, log_owner
from tablestore.log.publish.ownercheck import check_end, check_history, check_name, owner_here
from tablestore.log.publish.ownerfile import LogOwner, write_log_owner
from tablestore.log.publish.slotlocks import SlotLocks, try_lock
from tablestore.log.record import LogRecords, Mark, Offsets, Tail
from tablestore.log.recordlimit import RecordTooLarge, refused_record, within_limit
from tablestore.log.settings import LogSettings, log_settings
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.store.schemas import table_uuid_of
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)

MAX_RECORDS = 50_000
MAX_BYTES = 64 * 1024 * 1024
# A process that holds the slot's lock and makes no progress for so long is taken for hung.
HOLDER_PATIENCE_S = 5.0
_POLL_S = 0.05
_FENCED_TRIES = 8
_FENCED_WAIT_S = 0.5
_WHOLE = 2**62
# Published snapshots are released to expiry after so many of them, and by a publisher that has just begun.
_RELEASE_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishReport(PrintedInNotebooks):
    """The result of one call. ``snapshot_id``: everything up to it is in the log. ``busy``: another process is at work on the
    slot."""

    slot: int
    snapshot_id: int
    records: int
    transactions: int
    busy: bool = False

    def __str__(self) -> str:
        if self.busy:
            return f"slot {self.slot}: another process is publishing"
        return (
            f"slot {self.slot}: {self.records:,} record(s) in {self.transactions} transaction(s), up to snapshot {self.snapshot_id}"
        )


class Ahead(Protocol):
    """The strategy of a publisher for rows that were sent before their snapshot: there are none, or
    :mod:`tablestore.log.early`."""

    @property
    def unsettled(self) -> Offsets | None:
        """The positions from where on such rows may be the last of their keys, per bucket; None if there are none. Noted with
        the progress."""
        ...

    def opening(self, recorded: SlotProgress | None) -> None:
        """The slot is taken over; ``recorded`` is its progress."""
        ...

    def last_change(self, bucket: int, tail: Tail) -> Mark | None:
        """The last change of a snapshot in a bucket that ends with ``tail``; None if there is none."""
        ...

    def opened(self) -> None:
        """The ends of all buckets were looked at."""
        ...


class NothingAhead:
    """Rows come with their snapshot."""

    unsettled = None

    def opening(self, recorded: SlotProgress | None) -> None:
        """Nothing to look for."""

    def last_change(self, bucket: int, tail: Tail) -> Mark | None:
        """Every record is a change."""
        return tail.mark

    def opened(self) -> None:
        """Nothing to look for."""


class LogPublisher:
    """Publishes the buckets of one slot of one table. Keeps its slot open between calls; not thread-safe."""

    def __init__(
        self,
        context: TableContext,
        log: LogStore,
        settings: LogSettings,
        locks: SlotLocks,
        *,
        slot: int = 0,
        ahead: Ahead | None = None,
    ) -> None:
        self._ahead = ahead or NothingAhead()
        self._context, self._log, self._settings, self._number = context, log, settings, slot
        self._buckets = [b for b in range(settings.partitions) if b % settings.slots == slot]
        self._progress = LogProgress(context.files)
        self._lock = locks.slot(context.table_uuid, log.name, slot)
        self._slot: LogSlot | None = None
        self._incarnation = self._location = ""
        self._marks: dict[int, Mark | None] = {}
        self._offsets: dict[int, int] = {}
        self._done = self._gap = self._newest = 0
        self._begins = 1
        # Up to here expiry may have them.
        self._released = -_RELEASE_EVERY
        self._records = self._transactions = 0

    def publish(self, *, look: bool = False) -> PublishReport:
        """Send everything that snapshots have and the log lacks.

        ``look``: look at the log itself even if all is recorded as sent, and repair it.
        Raises StorageError (the log does not answer; what was sent is kept), SlotFenced (others keep taking the slot),
        ConflictError (the log is not this table's), NotFoundError (snapshots that were to be sent have expired).
        """
        self._records = self._transactions = 0
        if look:
            self.close()
        while look or self._is_behind():
            look = False
            if not self.hold():
                return self.report(busy=True)
            try:
                self._catch_up()
            finally:
                self.let_go()
        return self.report()

    def close(self) -> None:
        """Give up the slot."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None
        self._released = -_RELEASE_EVERY

    def report(self, *, busy: bool = False) -> PublishReport:
        """The work done since :meth:`publish` was called."""
        return PublishReport(
            slot=self._number, snapshot_id=self._done, records=self._records, transactions=self._transactions, busy=busy
        )

    def _is_behind(self) -> bool:
        latest = self._context.snapshots.latest()
        if latest is None:
            return False
        if self._slot is None:
            recorded = self._progress.read(self._number, self._settings.slots)
            self._done = recorded.snapshot_id if recorded else 0
        self._newest = latest.id
        return self._newest > self._done

    @property
    def is_open(self) -> bool:
        """True if the slot is ours, as far as we know."""
        return self._slot is not None

    @property
    def done(self) -> int:
        """Everything up to this snapshot is in the log."""
        return self._done

    @property
    def offsets(self) -> Offsets:
        """The position behind the last change of each bucket."""
        return self._offsets

    def try_hold(self) -> bool:
        """Take the slot's lock, unless another process of this host holds it."""
        return try_lock(self._lock)

    def hold(self) -> bool:
        """Take the slot's lock; False if another process of this host holds it and makes progress."""
        clock, name = self._context.clock, self._log.name
        seen: int | None = None
        deadline_s = clock.steady_s() + HOLDER_PATIENCE_S
        while True:
            if self.try_hold():
                return True
            recorded = self._recorded_snapshot()
            seen = recorded if seen is None else seen
            if recorded != seen or not self._is_behind():
                return False
            if clock.steady_s() >= deadline_s:
                LOG.warning("the publisher of slot %d of %s makes no progress; publishing without its lock", self._number, name)
                return True
            clock.sleep(_POLL_S)

    def let_go(self) -> None:
        """Give back the slot's lock. The slot stays open."""
        self._lock.release()

    def _recorded_snapshot(self) -> int:
        recorded = self._progress.read(self._number, self._settings.slots)
        return recorded.snapshot_id if recorded else 0

    def _catch_up(self) -> None:
        for attempt in range(_FENCED_TRIES):
            try:
                self.send()
                return
            except SlotFenced:
                self.close()
                if attempt == _FENCED_TRIES - 1:
                    raise
                before = self._recorded_snapshot()
                self._context.clock.sleep(_FENCED_WAIT_S * (0.5 + self._context.ids.fraction()) * (attempt + 1))
                if self._recorded_snapshot() > before and not self._is_behind():
                    return
            except BaseException:
                # The visible records are known again only after the slot was opened anew.
                self.close()
                raise

    def open(self) -> None:
        """Take the slot over, unless it is open: its last holder is fenced. Raises what :meth:`publish` raises."""
        if self._slot is not None:
            return
        log, settings = self._log, self._settings
        # Before anybody is fenced: a copy of the table leaves its log alone.
        owner = owner_here(self._context)
        self._incarnation = log.incarnation(partitions=settings.partitions)
        self._slot = log.open_slot(self._number, self._buckets, timeout_s=OPEN_TIMEOUT_S)
        own_progress, recorded = self._progress.read(self._number, settings.slots), self._progress_of_other_layouts()
        self._ahead.opening(own_progress)
        if recorded is None or (own_progress is not None and own_progress.snapshot_id >= recorded.snapshot_id):
            recorded = own_progress
        published_to = recorded.incarnation if recorded is not None else owner.incarnation or self._incarnation
        if published_to != self._incarnation:
            raise ConflictError(
                f"{log.name} is not the log that table {self._context.files.root_uri} was published to: it was deleted and made "
                f"again since snapshot {recorded.snapshot_id if recorded else 0}; `tablestore log rebuild` starts it anew from the "
                "table",
                kind="log-replaced",
            )
        self._done = recorded.snapshot_id if recorded else self._first() - 1
        self._end_other_layouts(own_progress)
        self._begins, self._gap = (recorded.begins, recorded.gap) if recorded else (self._done + 1, 0)
        whole = Mark(self._done, _WHOLE)
        noted = recorded.offsets if recorded else {}
        lost_marks: dict[int, Mark | None] = {}
        for bucket, tail in self._own_tails(owner, recorded).items():
            mark = self._checked(bucket, tail)
            self._offsets[bucket] = tail.next_offset
            self._marks[bucket] = whole if mark is None or mark < whole else mark
            if tail.next_offset < noted.get(bucket, 0):
                lost_marks[bucket] = mark
        if lost_marks:
            self._go_back(lost_marks, noted)
        if own_progress is None:
            # Before anything is sent: a publisher with another number of slots has to find this one.
            self._progress.record(self._number, settings.slots, self._current(self._done, None))
        new_owner = replace(owner, incarnation=owner.incarnation or self._incarnation, record_bytes=self._slot.max_record_bytes)
        if new_owner != owner:
            write_log_owner(self._context.files, new_owner)
        self._location = owner.location
        self._ahead.opened()

    def _own_tails(self, owner: LogOwner, recorded: SlotProgress | None) -> dict[int, Tail]:
        """The ends of the slot's buckets. Raises ConflictError if the log is not this table's, or not of its history."""
        log, context = self._log, self._context
        identity, root = Identity(context), context.files.root_uri
        if recorded is not None and recorded.snapshot_id:
            check_name(identity, root, log.name, recorded.snapshot_id, recorded.snapshot_uuid)
        for bucket, tail in log.tails([CLAIM_BUCKET], uncommitted=True).items():
            check_end(context, log, owner, bucket, tail)
        tails = log.tails(self._buckets)
        latest = context.snapshots.latest()
        for bucket, tail in tails.items():
            check_end(context, log, owner, bucket, tail)
            check_history(context, identity, log, bucket, tail, latest)
        return tails

    def _end_other_layouts(self, own_progress: SlotProgress | None) -> None:
        """Fences the slots of another number of slots, where there was one lately: their buckets are this one's too."""
        mine = self._settings.slots
        layouts = self._progress.layouts()
        recorded = [self._progress.read(slot, slots) for slots in layouts if slots != mine for slot in range(slots)]
        newest = max((progress.snapshot_id for progress in recorded if progress is not None), default=-1)
        if newest < 0 or (own_progress is not None and newest < own_progress.snapshot_id):
            return
        for other in range(max(*layouts, mine)):
            if other != self._number:
                self._log.open_slot(other, (), timeout_s=OPEN_TIMEOUT_S).close()

    def _go_back(self, lost_marks: Mapping[int, Mark | None], noted: Offsets) -> None:
        """Records that were acknowledged are not there: the tails of these buckets count, and the rest is sent again."""
        log, root = self._log, self._context.files.root_uri
        bounds = log.bounds(list(lost_marks))
        for bucket, mark in lost_marks.items():
            begin, end = bounds[bucket]
            # Cut off, not only invisible: positions that snapshots have noted may be given to other records.
            if end < noted[bucket] or (mark is None and begin > 0):
                raise ConflictError(
                    f"partition {bucket} of {log.name} has lost records of {root} that were acknowledged, and where it goes on "
                    "is not known; `tablestore log rebuild` starts it anew from the table",
                    kind="log-lost",
                )
            self._marks[bucket] = mark
        LOG.warning(
            "%s has lost acknowledged records in bucket(s) %s of %s; sending them again", log.name, sorted(lost_marks), root
        )
        ids = self._context.snapshots.live_ids()
        earliest = ids[0] if ids else 1
        self._done = min(self._done, *(mark.snapshot_id - 1 if mark else earliest - 1 for mark in lost_marks.values()))
        self._progress.set_back(self._number, self._settings.slots, self._current(self._done, None))

    def _progress_of_other_layouts(self) -> SlotProgress | None:
        """After a change of the number of slots: what all slots of another layout had completed."""
        best: SlotProgress | None = None
        for slots in self._progress.layouts():
            if slots == self._settings.slots:
                continue
            recorded = [self._progress.read(slot, slots) for slot in range(slots)]
            complete = [progress for progress in recorded if progress is not None]
            if len(complete) < slots:
                continue
            least = min(complete, key=lambda progress: progress.snapshot_id)
            if best is None or least.snapshot_id > best.snapshot_id:
                offsets = {b: o for progress in complete for b, o in progress.offsets.items()}
                gap = max(progress.gap for progress in complete)
                best = replace(least, offsets=offsets, gap=gap)
        return best

    def _first(self) -> int:
        """The first snapshot to send to a new log: what the publisher was registered for, else the earliest there is."""
        registered = RetentionLeases(self._context.files).find(LOG_HOLD)
        ids = self._context.snapshots.live_ids()
        return registered.next_snapshot if registered is not None else (ids[0] if ids else 1)

    def _checked(self, bucket: int, tail: Tail) -> Mark | None:
        """The last change before a tail. Raises ConflictError where strangers write too."""
        if tail.empty:
            return None
        if tail.table is None or tail.mark is None:
            raise ConflictError(
                f"partition {bucket} of {self._log.name} ends with a record that no tablestore has written: somebody else writes "
                f"to it, and how far the log of {self._context.files.root_uri} is, is not known; give the table a topic of its "
                "own (log.kafka.topic), or `tablestore log rebuild`",
                kind="foreign-log",
            )
        return self._ahead.last_change(bucket, tail)

    def append(self, records: Iterable[LogRecords], *, settles: bool) -> None:
        """Send records beside the changes of snapshots. ``settles``: they are reported, and progress lies behind them."""
        assert self._slot is not None, "open comes first"
        for group in cut_into_transactions(records, max_records=MAX_RECORDS, max_bytes=MAX_BYTES):
            offsets = self._slot.publish(group, table=self._context.table_uuid or "", location=self._location)
            if settles:
                self._offsets.update(offsets)
                self._records += sum(map(len, group))
                self._transactions += 1

    def send(self) -> None:
        """Send the changes that the newest snapshots have and the log lacks, and record progress. The lock is held."""
        self.open()
        # Snapshots that have landed since are sent in the next round.
        latest = self._context.snapshots.find(self._newest) or self._context.snapshots.latest()
        assert self._slot is not None, "it was opened above"
        if latest is None:
            return
        self._check_still_its_log()
        uuid = self._context.table_uuid or ""
        too_large: list[RecordTooLarge] = []
        root, limit = self._context.files.root_uri, self._slot.max_record_bytes
        pending = within_limit(self._pending(latest.id, latest), limit, too_large, log=self._log.name, table=root)
        for group in cut_into_transactions(pending, max_records=MAX_RECORDS, max_bytes=MAX_BYTES):
            try:
                self._offsets.update(self._slot.publish(group, table=uuid, location=self._location))
            except InvalidInputError as error:
                if error.kind != RecordTooLarge.default_kind:
                    raise
                # The topic's limit was lowered since the slot was opened, or it may not be asked for.
                raise refused_record(group, log=self._log.name, table=root) from error
            for records in group:
                self._marks[records.bucket] = Mark(records.snapshot_id, int(records.ordinals[-1]))
            self._records += sum(map(len, group))
            self._transactions += 1
            # The last one may go on in the next transaction.
            self._record(group[-1].snapshot_id - 1, None)
        if too_large:
            raise too_large[0]
        self._record(latest.id, latest.uuid)
        self._advance_consumer()

    def _check_still_its_log(self) -> None:
        """The slot is held: a drop or an alteration before that is seen here, a later one fences the slot."""
        context = self._context
        newest = context.schemas.refreshed_latest()
        if table_uuid_of(newest) != context.table_uuid:
            raise ConflictError(
                f"table {context.files.root_uri} was dropped and created again: it was {context.table_uuid}, now it is "
                f"{table_uuid_of(newest)}; open the table again to publish to its log",
                kind="table-replaced",
            )
        if newest.id != context.schema.id and _log_of(newest) != _log_of(context.schema):
            raise ConflictError(
                f"the log of table {context.files.root_uri} was altered by schema {newest.id}; open the table again to publish",
                kind="log-altered",
            )

    def _pending(self, upto: int, latest: Snapshot | None = None) -> Iterator[LogRecords]:
        for snapshot_id in range(self._done + 1, upto + 1):
            try:
                yield from self._changes(snapshot_id, latest)
            except NotFoundError as error:
                # Expiry takes a snapshot only after it was sent, and its files one by one.
                if self._recorded_snapshot() < snapshot_id:
                    raise
                raise SlotFenced(
                    f"slot {self._number} of {self._log.name} was taken over: snapshot {snapshot_id} was sent, and expires"
                ) from error

    def _changes(self, snapshot_id: int, latest: Snapshot | None) -> Iterator[LogRecords]:
        """The changes of one snapshot that the log lacks. Raises NotFoundError where that is gone, or a part of it."""
        snapshot = latest if latest is not None and latest.id == snapshot_id else self._find(snapshot_id)
        mode, form = self._settings.mode, self._settings.form
        records, gap = snapshot_records(self._context, snapshot, self._buckets, mode, self._marks, form)
        if gap is not None:
            LOG.info("%s: %s; that is not published", self._context.files.root_uri, gap.reason)
            self._gap = snapshot.id
        yield from records

    def _find(self, snapshot_id: int) -> Snapshot:
        snapshot = find_published(self._context, snapshot_id, self._settings.mode)
        if snapshot is None:
            raise NotFoundError(
                f"table {self._context.files.root_uri}: snapshot {snapshot_id} has expired before its changes were published to "
                f"{self._log.name}; `tablestore log rebuild` starts the log anew from what is there",
                kind="snapshot-expired",
            )
        return snapshot

    def _record(self, snapshot_id: int, uuid: str | None) -> None:
        if snapshot_id <= self._done:
            return
        # Progress that a power failure could take back releases nothing.
        lasting = snapshot_id - self._released >= _RELEASE_EVERY
        self._progress.record(self._number, self._settings.slots, self._current(snapshot_id, uuid), lasting=lasting)
        self._done = snapshot_id

    def _current(self, snapshot_id: int, uuid: str | None) -> SlotProgress:
        return SlotProgress(
            snapshot_id=snapshot_id,
            snapshot_uuid=uuid,
            incarnation=self._incarnation,
            offsets=dict(self._offsets),
            begins=self._begins,
            gap=self._gap,
            early=self._ahead.unsettled,
        )

    def _advance_consumer(self) -> None:
        """Let expiry have what every slot has sent; every now and then is enough."""
        if self._done - self._released < _RELEASE_EVERY:
            return
        recorded = self._progress.read_lasting(self._settings.slots)
        if len(recorded) == self._settings.slots:
            least = min(progress.snapshot_id for progress in recorded)
            self._release(least + 1)
            self._released = self._done

    def _release(self, next_snapshot: int) -> None:
        holds, owner = RetentionLeases(self._context.files), log_owner(self._log, self._incarnation)
        hold = holds.find(LOG_HOLD)
        if hold is None or not hold.epoch:
            # The hold lacks an epoch in a table of an earlier release, and is missing where it was taken away.
            begin = next_snapshot if hold is None else min(hold.next_snapshot, next_snapshot)
            hold = holds.take(LOG_HOLD, begin, owner=owner, ids=self._context.ids)
        # The hold of another log, that began meanwhile, is not for us to move.
        if hold.owner == owner and hold.next_snapshot < next_snapshot:
            with suppress(ConflictError):
                holds.move(hold, next_snapshot)


def _log_of(schema: TableSchema) -> tuple[object, ...]:
    """The values that publishers of one log must agree on."""
    settings = log_settings(schema, name="")
    return settings.system, settings.topic, settings.mode, settings.form, settings.partitions, settings.slots
