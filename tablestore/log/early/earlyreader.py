"""Reads a log whose rows come early (``log.consistency = eventual``): the last record of a key counts.

    early row      handed out at once, and remembered: it may come again, or be taken back
    change         left out if the key's early row said the same; else handed out
    repair         the same as a change

Every record behind the place where reading begins is looked at, in the order of the log, also those of transactions that are open
or were given up: a program that applies the rows in this order, the later over the earlier, ends with the table. Of the rows of
a key between two looks only the last one is handed out.

Memory: the rows of one look, and the messages of early rows that have not landed, up to a bound; beyond it a row may come twice.
"""

from collections.abc import Generator, Mapping

import numpy as np

from tablestore.log.follow.decoding import LogRows, RecordDecoder, runs
from tablestore.log.logprogress import LogProgress
from tablestore.log.logstore import LogCursor, LogStore
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import find_changes
from tablestore.log.record import EARLY_SNAPSHOT, FIRST_REPAIR, Mark, Offsets, RawRecords
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.types.arrays import Places
from tablestore.types.schema import TableSchema

_MOST_REMEMBERED = 1_000_000
_BEFORE_ALL = Mark(-1, -1)


class EarlyRowsToo:
    """Everything that the log says, early rows too (:class:`~tablestore.log.follow.topicreader.Reading`)."""

    # An early row has a time of its own, so the log does not say where a snapshot begins.
    has_times = False

    def __init__(self, context: TableContext, log: LogStore, settings: LogSettings, decoder: RecordDecoder) -> None:
        self._context, self._log, self._settings, self._decoder = context, log, settings, decoder
        # Key and message of early rows that were handed out and have not landed.
        self._remembered: dict[bytes, bytes | None] = {}

    def open_cursor(self, log: LogStore, offsets: Offsets) -> LogCursor:
        """A cursor of all records."""
        self._remembered.clear()
        return log.open_cursor(offsets, keys=True, uncommitted=True)

    def begins(self, held: Mapping[int, int]) -> Mapping[int, int]:
        """The position behind the records of the newest snapshot that is published, per bucket."""
        recorded = LogProgress(self._context.files).read(0, self._settings.slots)
        if recorded is None or recorded.incarnation != self._log.incarnation(partitions=self._settings.partitions):
            return held
        return {bucket: max(begin, recorded.offsets.get(bucket, 0)) for bucket, begin in held.items()}

    def rows(self, raw: RawRecords, place: LogPlace) -> Generator[LogRows, None, LogPlace]:
        """The new rows behind ``place``; early rows count to the snapshot that their bucket has come to."""
        decoder = self._decoder
        new_places = self._chosen(raw)
        # Records written with one schema are decoded together: those of a snapshot, or early ones of a schema id.
        origins = np.where(raw.snapshots == EARLY_SNAPSHOT, -1 - raw.ordinals, raw.snapshots)
        for start, stop in runs(origins[new_places]) if len(new_places) else ():
            part = new_places[start:stop]
            last = int(part[-1])
            mark = Mark(int(raw.snapshots[last]), int(raw.ordinals[last])) if raw.snapshots[last] > EARLY_SNAPSHOT else None
            place = place.moved(raw.bucket, int(raw.offsets[last]) + 1, mark)
            rows, changes = decoder.decoded(raw, part, self._written(int(origins[last])))
            chosen = decoder.selected(rows, changes.kinds)
            yield LogRows(bucket=raw.bucket, snapshot_id=place.mark(raw.bucket).snapshot_id, rows=chosen, place=place)
        before, place = place, place.moved(raw.bucket, raw.next_offset, None)
        if place != before:
            # Reading goes on behind records of which nothing was handed out.
            yield LogRows(bucket=raw.bucket, snapshot_id=place.mark(raw.bucket).snapshot_id, rows=decoder.nothing, place=place)
        return place

    def schema_of(self, snapshot_id: int) -> TableSchema | None:
        """The columns that a snapshot's records have; None before the first snapshot, and for one that is gone."""
        snapshot = find_changes(self._context, snapshot_id) if snapshot_id else None
        return None if snapshot is None else self._context.schemas.read(snapshot.schema_id)

    def _written(self, origin: int) -> TableSchema:
        if origin >= 0:
            return self._decoder.schema_of(origin)
        schema_id = -1 - origin
        return self._context.schema if schema_id >= FIRST_REPAIR else self._context.schemas.read(schema_id)

    def _chosen(self, raw: RawRecords) -> Places:
        """The table's own records that say something new: the last one of each key, unless its early row said the same."""
        own_places = self._decoder.fresh(raw, _BEFORE_ALL)
        last = {raw.keys[place]: place for place in own_places.tolist()}
        chosen: Places = np.sort(np.fromiter(last.values(), dtype=np.int64, count=len(last)))
        is_early = raw.snapshots == EARLY_SNAPSHOT
        if not self._remembered and not is_early[chosen].any():
            return chosen
        # Keys and messages are the client's objects: one look into a dict each.
        new = np.fromiter((self._is_new(raw, place, bool(is_early[place])) for place in chosen.tolist()), np.bool_, len(chosen))
        return chosen[new]

    def _is_new(self, raw: RawRecords, place: int, early: bool) -> bool:
        key, value, memo = raw.keys[place], raw.values[place], self._remembered
        if key is None:
            return True
        is_repeated = key in memo and memo[key] == value
        if not early or raw.ordinals[place] >= FIRST_REPAIR:
            memo.pop(key, None)
        elif not is_repeated and (key in memo or len(memo) < _MOST_REMEMBERED):
            memo[key] = value
        return not is_repeated
