"""Finds the changes of a stream in a log system (Kafka), and the positions to read them from.

The snapshots decide what a batch holds: their files say what it costs, whether it may be read at all, and in which columns. The log
only hands the changes over. So a stream goes on without the log wherever it has to: a batch that the log cannot give comes from the
file store, with the same changes (deletes may then name more than the key).

A stream does not run ahead of the publishers, unless they get nowhere for some seconds. Where positions begin and end is known
from what publishers and commits have noted in the table; the log itself is asked by those who read it.
"""

import logging

from tablestore.errors import StorageError, TablestoreError
from tablestore.log.connector import open_log_store
from tablestore.log.follow.logrange import LogRange
from tablestore.log.follow.topicreader import noted_offsets
from tablestore.log.logprogress import LogProgress, SlotProgress
from tablestore.log.position import LogPlace, Place
from tablestore.log.publish.ownercheck import log_problem
from tablestore.log.settings import LogSettings, settings_of
from tablestore.store.context import TableContext

LOG = logging.getLogger(__name__)

# Publishers that have come no further for so long are not waited for.
SILENCE_S = 5.0


class LoggedChanges:
    """The log of a table as a planner sees it."""

    def __init__(self, context: TableContext, settings: LogSettings) -> None:
        self._context, self._settings = context, settings
        self._published = 0
        self._since_s: float | None = None

    def newest(self, snapshot_id: int) -> int:
        """The newest snapshot for a batch: the newest published one, or ``snapshot_id`` once publishers get nowhere for some
        seconds."""
        if self._published < snapshot_id:
            before, progress = self._published, self._progress()
            self._published = min((slot_progress.snapshot_id for slot_progress in progress), default=0)
            now_s = self._context.clock.steady_s()
            if self._since_s is None or self._published > before:
                self._since_s = now_s
            if self._published < snapshot_id:
                # Once they are not waited for, they are not until they come further.
                return self._published if now_s - self._since_s < SILENCE_S else snapshot_id
        self._since_s = None
        return snapshot_id

    def place(self, base: int, before: Place | None) -> LogPlace | None:
        """The place behind a snapshot, for a reader that came from ``before``; None while nothing is published."""
        progress = self._progress()
        if not progress:
            return None
        incarnation = progress[0].incarnation
        snapshot = self._context.snapshots.find(base) if base else None
        lower_bounds = [noted_offsets(self._context, snapshot, incarnation)]
        lower_bounds += [dict(slot_progress.offsets) for slot_progress in progress if slot_progress.snapshot_id <= base]
        if isinstance(before, LogPlace) and before.incarnation == incarnation and before.base <= base:
            lower_bounds.append(dict(before.offsets))
        offsets = {bucket: max(bounds.get(bucket, 0) for bounds in lower_bounds) for bucket in range(self._settings.partitions)}
        return LogPlace(incarnation=incarnation, base=base, offsets=offsets)

    def ranges(self, begin: Place, *, upto: int) -> list[LogRange] | None:
        """The ranges of the log with the changes behind a place up to a snapshot, bucket by bucket; None if it does not hold
        them."""
        after = begin.needed_snapshot - 1
        progress = self._progress()
        if (
            not progress
            or min(slot_progress.snapshot_id for slot_progress in progress) < upto
            or max(slot_progress.begins for slot_progress in progress) > after + 1
        ):
            return None
        place = self.place(after, begin)
        if place is None or (isinstance(begin, LogPlace) and begin.incarnation != place.incarnation):
            return None
        ends = {bucket: end for slot_progress in progress for bucket, end in slot_progress.offsets.items()}
        return [
            LogRange(
                incarnation=place.incarnation, bucket=bucket, begin=offset, end=ends.get(bucket, offset), after=after, upto=upto
            )
            for bucket, offset in sorted(place.offsets.items())
            if ends.get(bucket, offset) > offset
        ]

    def _progress(self) -> list[SlotProgress]:
        """The progress of the slots; empty unless all have begun, in one log."""
        progress, slots = LogProgress(self._context.files), self._settings.slots
        recorded = [slot_progress for slot in range(slots) if (slot_progress := progress.read(slot, slots)) is not None]
        return recorded if len(recorded) == slots and len({slot_progress.incarnation for slot_progress in recorded}) == 1 else []


def logged_changes(context: TableContext, *, pairs: bool) -> LoggedChanges | None:
    """The log of a table, if it has one that serves a reader with or without ``-U`` rows, and that is its own."""
    settings = settings_of(context)
    if context.view is not None:
        return None
    # An upsert log holds no rows before an update; of an eventual one the rows that landed are in the snapshots.
    if settings.system == "filestore" or settings.eventual or (pairs and settings.mode == "upsert" and context.schema.is_keyed):
        return None
    problem: TablestoreError | None
    try:
        problem = log_problem(context, open_log_store(settings), settings)
    except StorageError as error:
        problem = error
    if problem is None:
        return LoggedChanges(context, settings)
    LOG.warning("%s. Its changes are read from the file store", problem)
    return None
