"""Follows a table through its log: the rows at a snapshot, then the log from there on, without a gap (hybrid read).

    rows at snapshot N  |  log from the offsets that N noted, records of snapshots up to N left out  |  …
                                     └ truncated: the file store's changes fill the hole, and it is said

Every bucket has its own place: the next position in the log, and the last change (snapshot, ordinal) that was handed out. The place
is what makes the seam exact in both directions: into the log (skip what N holds) and out of it (what the log lost is read from the
snapshots behind that change). Batches are of one bucket; per key the order is that of the table.

Left to the file store: exact ``-U`` rows of an ``upsert`` log, whose old rows the LSM knows (see
:mod:`tablestore.log.follow.consumption`).
"""

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.log.follow.decoding import LogRows, RecordDecoder, runs
from tablestore.log.logprogress import LogProgress, SlotProgress, decode_log_offsets
from tablestore.log.logstore import LogCursor, LogStore, LogTruncated
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import published_changes, rows_behind
from tablestore.log.record import Mark, Offsets, RawRecords
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)

MAX_RECORDS = 10_000


def place_at(
    context: TableContext, log: LogStore, settings: LogSettings, snapshot: Snapshot | None, begins: Mapping[int, int]
) -> LogPlace:
    """The place in the log behind ``snapshot``: the offsets that it noted, or the newest earlier one's, else the beginning.

    ``begins``: positions before which the log holds nothing that comes behind ``snapshot``.
    """
    incarnation = log.incarnation(partitions=settings.partitions)
    noted = noted_offsets(context, snapshot, incarnation)
    offsets = {bucket: max(noted.get(bucket, 0), begins.get(bucket, 0)) for bucket in range(settings.partitions)}
    return LogPlace(incarnation=incarnation, base=snapshot.id if snapshot else 0, offsets=offsets)


def noted_offsets(context: TableContext, snapshot: Snapshot | None, incarnation: str) -> dict[int, int]:
    """Per bucket a position at or before which no record of a later snapshot begins; none where nothing was noted."""
    # A foreign commit notes nothing: an older bound is one too.
    while snapshot is not None:
        text = snapshot.properties.get(LOG_OFFSETS_PROPERTY)
        if text is not None:
            noted_incarnation, offsets = decode_log_offsets(text)
            return offsets if noted_incarnation == incarnation else {}
        snapshot = context.snapshots.find(snapshot.id - 1) if snapshot.id > 1 else None
    return {}


class Reading(Protocol):
    """The strategy of a reader for the records that it hands out: changes that have landed, or also early rows
    (:mod:`tablestore.log.early`)."""

    def open_cursor(self, log: LogStore, offsets: Offsets) -> LogCursor:
        """Opens a cursor for :meth:`rows`."""
        ...

    def begins(self, held: Mapping[int, int]) -> Mapping[int, int]:
        """The position where a new reader begins, per bucket, of a log that still holds the positions from ``held`` on."""
        ...

    @property
    def has_times(self) -> bool:
        """True if records ascend by the time of their snapshot."""
        ...

    def rows(self, raw: RawRecords, place: LogPlace) -> Generator[LogRows, None, LogPlace]:
        """The new rows of some records; returns the place behind the records."""
        ...

    def schema_of(self, snapshot_id: int) -> TableSchema | None:
        """The columns that a snapshot's records have; None if there are none of that snapshot."""
        ...


class LandedChanges:
    """Every change that has landed, in order, once."""

    has_times = True

    def __init__(self, context: TableContext, settings: LogSettings, decoder: RecordDecoder) -> None:
        self._context, self._settings, self._decoder = context, settings, decoder

    def open_cursor(self, log: LogStore, offsets: Offsets) -> LogCursor:
        """A cursor of committed records."""
        # Only new files of plain tables are logged whole; of changelog files -U rows are left out, and values do not say the kind.
        settings = self._settings
        dense = settings.mode == "upsert" and self._context.settings.is_plain and not settings.eventual
        return log.open_cursor(offsets, dense=dense)

    def begins(self, held: Mapping[int, int]) -> Mapping[int, int]:
        """The first position that is there."""
        return held

    def rows(self, raw: RawRecords, place: LogPlace) -> Generator[LogRows, None, LogPlace]:
        """The changes behind ``place``. Raises FormatError (a record that cannot be understood)."""
        decoder = self._decoder
        fresh = decoder.fresh(raw, place.mark(raw.bucket))
        if not len(fresh):
            return place.moved(raw.bucket, raw.next_offset, None)
        for start, stop in runs(self._schema_ids(raw.snapshots[fresh])):
            part = fresh[start:stop]
            first_id = int(raw.snapshots[part[0]])
            written = decoder.schema_of(first_id)
            if written.id > self._context.schema.id:
                # The event of the schema comes before values that may not fit.
                yield LogRows(bucket=raw.bucket, snapshot_id=first_id, rows=decoder.nothing, place=place)
            rows, changes = decoder.decoded(raw, part, written)
            for first, end in runs(raw.snapshots[part]):
                last = int(part[end - 1])
                mark = Mark(int(raw.snapshots[last]), int(raw.ordinals[last]))
                is_last = last == int(fresh[-1])
                place = place.moved(raw.bucket, raw.next_offset if is_last else int(raw.offsets[last]) + 1, mark)
                low, high = np.searchsorted(changes.places, [first, end]).tolist()
                chosen = decoder.selected(rows.slice(low, high - low), changes.kinds[low:high])
                yield LogRows(bucket=raw.bucket, snapshot_id=mark.snapshot_id, rows=chosen, place=place)
        return place

    def schema_of(self, snapshot_id: int) -> TableSchema:
        """The columns that a snapshot's records have."""
        return self._decoder.schema_of(snapshot_id)

    def _schema_ids(self, snapshots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        ids = [np.full(stop - start, self._decoder.schema_of(int(snapshots[start])).id) for start, stop in runs(snapshots)]
        return np.concatenate(ids)


class LogReader:
    """Reads a table's log from a place on."""

    def __init__(
        self, context: TableContext, log: LogStore, settings: LogSettings, decoder: RecordDecoder, reading: Reading
    ) -> None:
        self._context, self._log, self._settings = context, log, settings
        self._decoder, self._reading = decoder, reading
        self._cursor: LogCursor | None = None
        self._reached: dict[int, int] = {}
        self._uuid = (context.table_uuid or "").encode()

    def open(self, place: LogPlace) -> None:
        """Begin at ``place``. Raises LogTruncated if the log no longer goes back so far, NotFoundError if it was replaced."""
        settings, log = self._settings, self._log
        incarnation = log.incarnation(partitions=settings.partitions)
        if incarnation != place.incarnation:
            raise LogTruncated(f"{log.name} was made anew since this position was taken")
        if place.base + 1 < (first := self.first_snapshot(incarnation)):
            raise LogTruncated(f"{log.name} begins with the changes of snapshot {first}, this position is behind {place.base}")
        bounds = log.bounds(sorted(place.offsets))
        for bucket, offset in place.offsets.items():
            if offset < bounds[bucket][0]:
                raise LogTruncated(f"bucket {bucket} of {log.name} begins at {bounds[bucket][0]}, this position is {offset}")
        self.close()
        self._cursor = self._reading.open_cursor(self._log, place.offsets)
        self._reached = dict(place.offsets)

    def begins(self) -> Mapping[int, int]:
        """The position where a new reader begins, per bucket."""
        bounds = self._log.bounds(list(range(self._settings.partitions)))
        return self._reading.begins({bucket: begin for bucket, (begin, _) in bounds.items()})

    def place_since(self, time_millis: int) -> LogPlace | None:
        """Before the changes of the first snapshot at or after a time that the log holds whole; None if there is none, or if its
        records do not say."""
        if not self._reading.has_times:
            return None
        log, settings = self._log, self._settings
        incarnation = log.incarnation(partitions=settings.partitions)
        buckets = list(range(settings.partitions))
        begins = log.since(time_millis, buckets, table=self._uuid)
        while cut := [begin for begin in begins.values() if not begin.whole]:
            # The first snapshot may be cut off too, of a bucket that begins within these changes.
            times = [begin.time_millis for begin in cut if begin.time_millis is not None]
            if len(times) < len(cut):
                return None
            begins = log.since(max(times) + 1, buckets, table=self._uuid)
        marks = [begin.mark for begin in begins.values() if begin.mark is not None]
        if not marks:
            return None
        base = min(mark.snapshot_id for mark in marks) - 1
        return LogPlace(incarnation=incarnation, base=base, offsets={bucket: begin.offset for bucket, begin in begins.items()})

    def from_store(self, snapshot: Snapshot, place: LogPlace) -> Iterator[LogRows]:
        """The changes of one snapshot behind ``place``, in its buckets, as the log would give them, from the file store."""
        context, settings = self._context, self._settings
        plan = published_changes(context, snapshot, settings.mode)
        for bucket in sorted(place.offsets):
            for part in rows_behind(plan, snapshot.id, bucket, place.mark(bucket)):
                place = place.moved(bucket, place.offsets[bucket], Mark(snapshot.id, part.first + part.rows.num_rows - 1))
                rows, kinds = part.rows, part.kinds
                if plan.context.schema.fields != context.schema.fields:
                    snapshot_schema = plan.context.schema
                    rows = self._decoder.fitting(rows, snapshot_schema, snapshot_schema.fields, context.schema.fields)
                if settings.mode == "upsert":
                    mask = kinds != RowKind.UPDATE_BEFORE
                    rows, kinds = rows.filter(pa.array(mask)), kinds[mask]
                yield LogRows(bucket=bucket, snapshot_id=snapshot.id, rows=self._decoder.selected(rows, kinds), place=place)

    def close(self) -> None:
        """Give up the connection."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def poll(self, place: LogPlace, timeout_s: float) -> Iterator[LogRows]:
        """The new rows behind ``place``, bucket by bucket. Raises LogTruncated, StorageError, FormatError (a poison message)."""
        assert self._cursor is not None, "open comes first"
        for raw in self._cursor.poll(timeout_s, MAX_RECORDS):
            place = yield from self._reading.rows(raw, place)
            self._reached[raw.bucket] = raw.next_offset

    def reached(self, bucket: int) -> int:
        """The position up to which the bucket was looked at, also where nothing was handed out."""
        return self._reached[bucket]

    def schema_of(self, snapshot_id: int) -> TableSchema | None:
        """The columns that a snapshot's records have; None if there are none of that snapshot."""
        return self._reading.schema_of(snapshot_id)

    def caught_up(self, place: LogPlace) -> LogPlace:
        """The place with its base raised to the snapshot that all publishers had completed, as far as all of that was read."""
        complete = self._recorded(place.incarnation, (self._settings.slots,))
        if len(complete) < self._settings.slots:
            return place
        base = min(progress.snapshot_id for progress in complete)
        read = all(place.offsets.get(bucket, 0) >= offset for progress in complete for bucket, offset in progress.offsets.items())
        return place.at_base(base) if read and base > place.base else place

    def _recorded(self, incarnation: str, layouts: Iterable[int]) -> list[SlotProgress]:
        """The recorded progress of each slot that has begun."""
        progress = LogProgress(self._context.files)
        recorded = [progress.read(slot, slots) for slots in layouts for slot in range(slots)]
        return [
            slot_progress for slot_progress in recorded if slot_progress is not None and slot_progress.incarnation == incarnation
        ]

    def _ever_recorded(self, incarnation: str) -> list[SlotProgress]:
        return self._recorded(incarnation, LogProgress(self._context.files).layouts())

    def first_snapshot(self, incarnation: str) -> int:
        """The snapshot that the log begins with; while nothing was published, the one that is to come first."""
        recorded = self._ever_recorded(incarnation)
        if recorded:
            return max(progress.begins for progress in recorded)
        registered = RetentionLeases(self._context.files).find(LOG_HOLD)
        return registered.next_snapshot if registered is not None else 1

    def newest_gap(self, place: LogPlace, upto: int) -> int | None:
        """The newest snapshot up to ``upto`` whose changes are not all in the log, as publishers have noted it; 0 if there is
        none, None if they have not come so far."""
        recorded = self._ever_recorded(place.incarnation)
        if not recorded or max(progress.snapshot_id for progress in recorded) < upto:
            return None
        return max(progress.gap for progress in recorded)


def missing_snapshot(context: TableContext, place: LogPlace) -> NotFoundError:
    """The error that neither the log nor the snapshots hold the changes behind ``place``."""
    return NotFoundError(
        f"table {context.files.root_uri}: the log no longer holds what comes behind snapshot {place.base}, and that snapshot's "
        'successor has expired; begin anew with scan="full", and read under a consumer_id so that expiry keeps what is to be read; '
        "`tablestore log rebuild` starts the log anew",
        kind="snapshot-expired",
    )
