"""The outbox of a table whose rows are sent early (``log.consistency = eventual``): before their snapshot, while they are written.

    write    early rows ───────────────> topic        seen at once; they promise nothing
    commit   the outbox, as ever ──────> topic        the changes of the snapshot, in order, once
    else     a repair ─────────────────> topic        what the table holds for every key whose last record is early

The outbox alone says what the table holds; early rows only run ahead of it. So the last record of a key is right as soon as no
early row is the last of its key, whatever became of the write that sent it: it landed, then its changes follow; it failed, died or
was overtaken, then whoever holds the slot next appends the table's own rows, behind everything that has landed.

One slot sends all three, so the broker fences: a writer whose slot was taken over sends nothing more. Its commit is an
ordinary one, which the outbox publishes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tablestore.errors import NotFoundError, StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.log.early.earlyrepair import repairs
from tablestore.log.logprogress import SlotProgress
from tablestore.log.logstore import LogStore, SlotFenced, cut_into_transactions
from tablestore.log.publish.publisher import MAX_BYTES, MAX_RECORDS, LogPublisher, PublishReport
from tablestore.log.publish.slotlocks import SlotLocks, try_lock
from tablestore.log.record import EARLY_SNAPSHOT, FIRST_REPAIR, LogRecords, Mark, RawRecords, Tail
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext

# Of so many positions the keys are looked at together: this bounds the memory of a repair.
STRETCH = 200_000
_POLL_S = 1.0
_PATIENCE_S = 60.0
_READ_RECORDS = 10_000
_TRIES = 5


class EarlyPublisher(LogPublisher):
    """Publishes a table's snapshots, its early rows, and what takes these back. Not thread-safe.

    ``_unsettled``: from where on early rows may be the last of their keys; None if there are none. ``_ours``: all of them are of
    the write that is going on in this process.
    """

    def __init__(self, context: TableContext, log: LogStore, settings: LogSettings, locks: SlotLocks, *, slot: int = 0) -> None:
        super().__init__(context, log, settings, locks, slot=slot)
        self._session = locks.early_writer(context.table_uuid, log.name)
        self._unsettled: Mapping[int, int] | None = None
        self._ours = False
        # The tails that are early rows.
        self._behind_early: dict[int, Tail] = {}

    def send_early(self, records: Sequence[LogRecords], *, first: bool) -> None:
        """Send rows of a write that has not landed; ``first``: the first ones of this write.

        Raises SlotFenced if another process publishes: then this write sends nothing more, as the other one has begun to take
        back what it sent. Raises StorageError.
        """
        if not try_lock(self._lock):
            raise SlotFenced(f"another process is publishing to {self._log.name}")
        if first:
            # What a write before this one has left is not settled by this one.
            self._ours = False
        try:
            try:
                self._send_early(records)
            except SlotFenced:
                # Between two writes anybody may have held the slot.
                self.close()
                if not first:
                    raise
                self._send_early(records)
        finally:
            self._lock.release()

    def landed(self) -> None:
        """The write that sent early rows has landed: the outbox settles them."""
        if self._ours:
            self._unsettled, self._ours = None, False

    def publish(self, *, look: bool = False) -> PublishReport:
        """As of any outbox; then early rows of a write that is over, and has not landed, are taken back."""
        report = super().publish(look=look)
        if report.busy or (self._slot is not None and self._unsettled is None):
            return report
        if self._slot is None and not self._finds_early_rows():
            return report
        if not try_lock(self._session):
            # That write goes on; whatever becomes of it, its writer publishes afterwards.
            return report
        try:
            if self._acquire():
                try:
                    self._take_back()
                finally:
                    self._lock.release()
        finally:
            self._session.release()
        return self._report(busy=False)

    # -- what is different from an outbox without early rows

    def _open(self) -> None:
        recorded = self._progress.read(self._number, self._settings.slots)
        self._unsettled, self._ours = _bound(recorded), False
        self._behind_early.clear()
        super()._open()
        for bucket, tail in self._behind_early.items():
            start = recorded.offsets.get(bucket, 0) if recorded else 0
            mark = _last_change(self._log, bucket, start, tail.next_offset)
            if mark is not None:
                self._marks[bucket] = max(mark, self._marks[bucket] or mark)
        if not self._finds_early_rows():
            self._unsettled = None

    def _checked(self, bucket: int, tail: Tail) -> Mark | None:
        if tail.mark is not None and tail.mark.snapshot_id == EARLY_SNAPSHOT:
            # Says nothing of how far the outbox is: that is read a little further before.
            self._behind_early[bucket] = tail
            return None
        return super()._checked(bucket, tail)

    def _current(self, snapshot_id: int, uuid: str | None) -> SlotProgress:
        return replace(super()._current(snapshot_id, uuid), early=self._unsettled)

    # -- early rows and their repair

    def _send_early(self, records: Sequence[LogRecords]) -> None:
        if self._slot is None:
            self._open()
        assert self._slot is not None
        if self._unsettled is None:
            self._unsettled, self._ours = dict(self._offsets), True
        for group in cut_into_transactions(records, max_records=MAX_RECORDS, max_bytes=MAX_BYTES):
            self._slot.publish(group, table=self._context.table_uuid or "", location=self._location)

    def _finds_early_rows(self) -> bool:
        """Whether the log goes on behind what was settled when progress was last recorded."""
        bound = _bound(self._progress.read(self._number, self._settings.slots))
        tails = self._log.tails(self._buckets, uncommitted=True)
        return any(not tail.empty and tail.next_offset > bound.get(bucket, 0) for bucket, tail in tails.items())

    def _take_back(self) -> None:
        try:
            for _ in range(_TRIES):
                if self._slot is None:
                    self._open()
                self._send()
                snapshot = self._context.snapshots.find(self._done) if self._done else None
                try:
                    if snapshot is not None or not self._done:
                        self._repair(snapshot)
                        return
                except NotFoundError:
                    # Its files expired while they were read, which takes newer snapshots.
                    continue
        except SlotFenced:
            # Whoever holds the slot now finds the same early rows.
            self.close()
        except BaseException:
            self.close()
            raise

    def _repair(self, snapshot: Snapshot | None) -> None:
        if self._unsettled is None:
            return
        assert self._slot is not None
        uuid = self._context.table_uuid or ""
        ends = self._log.tails(self._buckets, uncommitted=True)
        for bucket in self._buckets:
            # Positions only grow, and every record takes one: numbered by them, repairs ascend from one to the next.
            first = FIRST_REPAIR + ends[bucket].next_offset
            for schema_id, keys in unsettled_keys(self._log, bucket, self._unsettled.get(bucket, 0), uuid.encode()):
                found = repairs(self._context, snapshot, bucket, keys, schema_id, first=first)
                first += len(keys)
                for group in cut_into_transactions(found, max_records=MAX_RECORDS, max_bytes=MAX_BYTES):
                    self._offsets.update(self._slot.publish(group, table=uuid, location=self._location))
                    self._records += sum(map(len, group))
                    self._transactions += 1
        self._unsettled, self._ours = None, False


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
            found = cursor.poll(_POLL_S, _READ_RECORDS)
            silent_s = 0.0 if found else silent_s + _POLL_S
            if silent_s >= _PATIENCE_S:
                raise StorageError(
                    f"bucket {bucket} of {log.name} did not give position {start} within {_PATIENCE_S:.0f} s; check that its "
                    "brokers are up, then repeat it",
                    kind="kafka",
                )
            for raw in found:
                start = raw.next_offset
                yield raw
    finally:
        cursor.close()


def _bound(recorded: SlotProgress | None) -> Mapping[int, int]:
    if recorded is None:
        return {}
    return recorded.offsets if recorded.early is None else recorded.early
