"""Publishes the log of a table whose rows are sent early (``log.consistency = eventual``): before their snapshot, as written.

    write    early rows ───────────────> topic        seen at once; they promise nothing
    commit   the outbox, as ever ──────> topic        the changes of the snapshot, in order, once
    else     a repair ─────────────────> topic        what the table holds for every key whose last record is early

The outbox alone says what the table holds; early rows only run ahead of it. So the last record of a key is right as soon as no
early row is the last of its key, whatever became of the write that sent it: it landed, then its changes follow; it failed, died or
was overtaken, then the next holder of the slot appends the table's own rows, behind everything that has landed.

One slot sends all three, so the broker fences: a writer whose slot was taken over sends nothing more. Its commit is an
ordinary one, which the outbox publishes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from tablestore.errors import NotFoundError, StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.log.early.earlyrepair import repairs
from tablestore.log.logprogress import LogProgress, SlotProgress
from tablestore.log.logstore import LogStore, SlotFenced
from tablestore.log.publish.publisher import LogPublisher, PublishReport
from tablestore.log.publish.slotlocks import SlotLocks, try_lock
from tablestore.log.record import EARLY_SNAPSHOT, FIRST_REPAIR, LogRecords, Mark, Offsets, RawRecords, Tail
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext

# The number of positions whose keys are looked at together: this bounds the memory of a repair.
STRETCH = 200_000
_POLL_S = 1.0
_PATIENCE_S = 60.0
_READ_RECORDS = 10_000
_TRIES = 5


class EarlyPublisher:
    """Publishes a table's snapshots, its early rows, and the repairs of these. Not thread-safe."""

    def __init__(self, context: TableContext, log: LogStore, settings: LogSettings, locks: SlotLocks, *, slot: int = 0) -> None:
        assert settings.slots == 1, "early rows and what takes them back need one order"
        self._context, self._log, self._form = context, log, settings.form
        self._buckets = range(settings.partitions)
        self._ahead = EarlyRowsAhead(log, self._buckets, LogProgress(context.files))
        self._outbox = LogPublisher(context, log, settings, locks, slot=slot, ahead=self._ahead)
        self._session = locks.early_writer(context.table_uuid, log.name)

    def send_early(self, records: Sequence[LogRecords], *, first: bool) -> None:
        """Send rows of a write that has not landed; ``first``: the first ones of this write.

        Raises SlotFenced if another process publishes: then this write sends nothing more, as the other one has begun to take
        back what it sent. Raises StorageError.
        """
        outbox = self._outbox
        if not outbox.try_hold():
            raise SlotFenced(f"another process is publishing to {self._log.name}")
        if first:
            # Early rows of a write before this one are not settled by this one.
            self._ahead.of_this_write = False
        try:
            try:
                self._send_early(records)
            except SlotFenced:
                # Between two writes anybody may have held the slot.
                outbox.close()
                if not first:
                    raise
                self._send_early(records)
        finally:
            outbox.let_go()

    def landed(self) -> None:
        """The write that sent early rows has landed: the outbox settles them."""
        if self._ahead.of_this_write:
            self._ahead.settle()

    def publish(self, *, look: bool = False) -> PublishReport:
        """Publishes as any outbox; then takes early rows back whose write is over and has not landed."""
        outbox, ahead = self._outbox, self._ahead
        report = outbox.publish(look=look)
        if report.busy or (outbox.is_open and ahead.unsettled is None):
            return report
        if not outbox.is_open and not ahead.are_there():
            return report
        if not try_lock(self._session):
            # That write goes on; whatever becomes of it, its writer publishes afterwards.
            return report
        try:
            if outbox.hold():
                try:
                    self._take_back()
                finally:
                    outbox.let_go()
        finally:
            self._session.release()
        return outbox.report()

    def close(self) -> None:
        """Give up the slot."""
        self._outbox.close()

    def _send_early(self, records: Sequence[LogRecords]) -> None:
        self._outbox.open()
        self._ahead.begin(self._outbox.offsets)
        self._outbox.append(records, settles=False)

    def _take_back(self) -> None:
        outbox = self._outbox
        try:
            for _ in range(_TRIES):
                outbox.send()
                snapshot = self._context.snapshots.find(outbox.done) if outbox.done else None
                try:
                    if snapshot is not None or not outbox.done:
                        self._repair(snapshot)
                        return
                except NotFoundError:
                    # Its files expired while they were read, which takes newer snapshots.
                    continue
        except SlotFenced:
            # The present holder of the slot finds the same early rows.
            outbox.close()
        except BaseException:
            outbox.close()
            raise

    def _repair(self, snapshot: Snapshot | None) -> None:
        unsettled = self._ahead.unsettled
        if unsettled is None:
            return
        uuid = (self._context.table_uuid or "").encode()
        ends = self._log.tails(self._buckets, uncommitted=True)
        for bucket in self._buckets:
            # Positions only grow, and every record takes one: numbered by them, repairs ascend from one to the next.
            first = FIRST_REPAIR + ends[bucket].next_offset
            for schema_id, keys in unsettled_keys(self._log, bucket, unsettled.get(bucket, 0), uuid):
                records = repairs(self._context, snapshot, bucket, keys, schema_id, first=first, form=self._form)
                self._outbox.append(records, settles=True)
                first += len(keys)
        self._ahead.settle()


class EarlyRowsAhead:
    """The publisher's state of early rows in a log (:class:`~tablestore.log.publish.publisher.Ahead`).

    ``unsettled``: from where on early rows may be the last of their keys; None if there are none. ``of_this_write``: all of them
    are of the write that is going on in this process.
    """

    def __init__(self, log: LogStore, buckets: Sequence[int], progress: LogProgress) -> None:
        self._log, self._buckets, self._progress = log, buckets, progress
        self._published: Offsets = {}
        self.unsettled: Offsets | None = None
        self.of_this_write = False

    def opening(self, recorded: SlotProgress | None) -> None:
        """Early rows may lie behind what was settled when progress was last recorded."""
        self._published = recorded.offsets if recorded else {}
        self.unsettled, self.of_this_write = _settled(recorded), False

    def last_change(self, bucket: int, tail: Tail) -> Mark | None:
        """An early row at the end does not say how far the outbox is: that is read a little further before."""
        if tail.mark is None or tail.mark.snapshot_id != EARLY_SNAPSHOT:
            return tail.mark
        return _last_change(self._log, bucket, self._published.get(bucket, 0), tail.next_offset)

    def opened(self) -> None:
        """Settles, once the slot is open, whether any early rows are left."""
        if not self.are_there():
            self.unsettled = None

    def are_there(self) -> bool:
        """True if the log goes on behind what was settled when progress was last recorded."""
        settled = _settled(self._progress.read(0, 1))
        tails = self._log.tails(self._buckets, uncommitted=True)
        return any(not tail.empty and tail.next_offset > settled.get(bucket, 0) for bucket, tail in tails.items())

    def begin(self, offsets: Offsets) -> None:
        """Early rows are about to be sent; ``offsets``: where the log ends, unless it ends with others."""
        if self.unsettled is None:
            self.unsettled, self.of_this_write = dict(offsets), True

    def settle(self) -> None:
        """No early row is the last of its key."""
        self.unsettled, self.of_this_write = None, False


def unsettled_keys(
    log: LogStore, bucket: int, start: int, uuid: bytes, *, stretch: int = STRETCH
) -> Iterator[tuple[int, list[bytes]]]:
    """The keys behind position ``start`` whose last record is an early row, by the schema that the row was written with.

    Early rows count also where they were sent in vain, since some readers see them; what settles them must be visible to all.
    So many positions as ``stretch`` says are looked at together: a key that was settled behind them is among those found.
    """
    begin = log.bounds([bucket])[bucket][0]
    start = max(start, begin)
    end = log.tails([bucket], uncommitted=True)[bucket].next_offset
    for low in range(start, end, stretch):
        high = min(low + stretch, end)
        early: dict[bytes, tuple[int, int]] = {}
        for raw in _records(log, bucket, low, high, uncommitted=True):
            chosen = (raw.snapshots == EARLY_SNAPSHOT) & (raw.offsets < high)
            for i in np.flatnonzero(chosen).tolist():
                if (key := raw.keys[i]) is not None and raw.tables[i] == uuid and not _is_repair(raw, i):
                    early[key] = int(raw.offsets[i]), int(raw.ordinals[i])
        if early:
            _leave_out_settled(log, bucket, low, high, uuid, early)
        by_schema: dict[int, list[bytes]] = defaultdict(list)
        for key, (_, schema_id) in early.items():
            by_schema[schema_id].append(key)
        yield from by_schema.items()


def _leave_out_settled(log: LogStore, bucket: int, low: int, high: int, uuid: bytes, early: dict[bytes, tuple[int, int]]) -> None:
    end = min(high, log.tails([bucket])[bucket].next_offset)
    for raw in _records(log, bucket, low, end, uncommitted=False):
        for i in range(len(raw)):
            # The client's own objects, in a stretch that is read once after a failure.
            settles = raw.snapshots[i] > EARLY_SNAPSHOT or _is_repair(raw, i)
            key = raw.keys[i]
            if settles and key is not None and raw.tables[i] == uuid and raw.offsets[i] > early.get(key, (1 << 62, 0))[0]:
                del early[key]


def _last_change(log: LogStore, bucket: int, start: int, end: int) -> Mark | None:
    """The last record from ``start`` on that is not an early row."""
    start = max(start, log.bounds([bucket])[bucket][0])
    mark: Mark | None = None
    for raw in _records(log, bucket, start, end, uncommitted=False):
        for i in np.flatnonzero(raw.snapshots > EARLY_SNAPSHOT)[-1:].tolist():
            mark = Mark(int(raw.snapshots[i]), int(raw.ordinals[i]))
    return mark


def _is_repair(raw: RawRecords, i: int) -> bool:
    return bool(raw.ordinals[i] >= FIRST_REPAIR)


def _records(log: LogStore, bucket: int, start: int, end: int, *, uncommitted: bool) -> Iterator[RawRecords]:
    """The records from ``start`` on, at least up to ``end``, which is at or before the position behind a record."""
    if start >= end:
        return
    cursor = log.open_cursor({bucket: start}, keys=True, uncommitted=uncommitted)
    try:
        silent_s = 0.0
        while start < end:
            polled = cursor.poll(_POLL_S, _READ_RECORDS)
            silent_s = 0.0 if polled else silent_s + _POLL_S
            if silent_s >= _PATIENCE_S:
                raise StorageError(
                    f"bucket {bucket} of {log.name} did not give position {start} within {_PATIENCE_S:.0f} s; check that its "
                    "brokers are up, then repeat it",
                    kind="kafka",
                )
            for raw in polled:
                start = raw.next_offset
                yield raw
    finally:
        cursor.close()


def _settled(recorded: SlotProgress | None) -> Offsets:
    if recorded is None:
        return {}
    return recorded.offsets if recorded.early is None else recorded.early
