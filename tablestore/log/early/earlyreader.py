"""Reading a log whose rows come early (``log.consistency = eventual``): the last record of a key counts.

    early row      handed out at once, and remembered: it may be told again, or taken back
    change         left out if the key's early row said the same; else handed out
    repair         the same as a change

Every record behind the place where reading begins is looked at, in the order of the log, also those of transactions that are open
or were given up: who applies the rows as they come, the later over the earlier, ends with the table. Between two looks only the
last row of a key is handed out.

Memory: the rows of one look, and the messages of early rows that have not landed, up to a bound; beyond it a row may come twice.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.log.follow.topicreader import MAX_RECORDS, LogReader, LogRows, runs
from tablestore.log.logprogress import LogProgress
from tablestore.log.logstore import LogCursor
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import find_changes
from tablestore.log.record import EARLY_SNAPSHOT, FIRST_REPAIR, Mark, Offsets, RawRecords
from tablestore.types.schema import TableSchema

_MOST_REMEMBERED = 1_000_000
_BEFORE_ALL = Mark(-1, -1)

Places = npt.NDArray[np.int64]


class EarlyReader(LogReader):
    """Reads everything that the log says, early rows too."""

    _remembered: dict[bytes, bytes | None]

    def open(self, place: LogPlace) -> None:
        """As of any log."""
        self._remembered = {}
        super().open(place)

    def begins(self) -> dict[int, int]:
        """The position behind the records of the newest snapshot that is published, per bucket."""
        found = super().begins()
        recorded = LogProgress(self._context.files).read(0, self._settings.slots)
        if recorded is None or recorded.incarnation != self._log.incarnation(partitions=self._settings.partitions):
            return found
        return {bucket: max(begin, recorded.offsets.get(bucket, 0)) for bucket, begin in found.items()}

    def place_since(self, time_millis: int) -> LogPlace | None:
        """None: a row that was sent ahead of its snapshot has a time of its own, so the log does not tell where one begins."""
        return None

    def poll(self, place: LogPlace, timeout_s: float) -> Iterator[LogRows]:
        """What is new behind ``place``, bucket by bucket; rows that are early are of the snapshot that the bucket has come to."""
        assert self._cursor is not None, "open comes first"
        for raw in self._cursor.poll(timeout_s, MAX_RECORDS):
            known = self._chosen(raw)
            schemas = np.where(raw.snapshots == EARLY_SNAPSHOT, -1 - raw.ordinals, raw.snapshots)
            told = replace(raw, snapshots=schemas)
            for start, stop in runs(schemas[known]) if len(known) else ():
                part = known[start:stop]
                last = int(part[-1])
                mark = Mark(int(raw.snapshots[last]), int(raw.ordinals[last])) if raw.snapshots[last] > EARLY_SNAPSHOT else None
                place = place.moved(raw.bucket, int(raw.offsets[last]) + 1, mark)
                rows, changes = self._decoded(told, part)
                chosen = self.selected(rows, changes.kinds)
                yield LogRows(bucket=raw.bucket, snapshot_id=place.mark(raw.bucket).snapshot_id, rows=chosen, place=place)
            before, place = place, place.moved(raw.bucket, raw.next_offset, None)
            if place != before:
                # Reading goes on behind records of which nothing was handed out.
                nothing = pa.RecordBatch.from_pylist([], schema=self._schema)
                yield LogRows(bucket=raw.bucket, snapshot_id=place.mark(raw.bucket).snapshot_id, rows=nothing, place=place)

    def _open_cursor(self, offsets: Offsets) -> LogCursor:
        return self._log.open_cursor(offsets, keys=True, uncommitted=True)

    def _chosen(self, raw: RawRecords) -> Places:
        """The table's own records that tell something new: the last one of each key, unless its early row said the same."""
        own = self._fresh(raw, _BEFORE_ALL)
        last = {raw.keys[place]: place for place in own.tolist()}
        chosen: Places = np.sort(np.fromiter(last.values(), dtype=np.int64, count=len(last)))
        is_early = raw.snapshots == EARLY_SNAPSHOT
        if not self._remembered and not is_early[chosen].any():
            return chosen
        # Keys and messages are the client's objects: one look into a dict each.
        new = np.fromiter((self._is_new(raw, place, bool(is_early[place])) for place in chosen.tolist()), np.bool_, len(chosen))
        return chosen[new]

    def _is_new(self, raw: RawRecords, place: int, early: bool) -> bool:
        key, value, remembered = raw.keys[place], raw.values[place], self._remembered
        if key is None:
            return True
        said = key in remembered and remembered[key] == value
        if not early or raw.ordinals[place] >= FIRST_REPAIR:
            remembered.pop(key, None)
        elif not said and (key in remembered or len(remembered) < _MOST_REMEMBERED):
            remembered[key] = value
        return not said

    def schema_then(self, snapshot_id: int) -> TableSchema | None:
        snapshot = find_changes(self._context, snapshot_id) if snapshot_id else None
        return None if snapshot is None else self._context.schemas.read(snapshot.schema_id)

    def _schema_of(self, snapshot_id: int) -> TableSchema:
        if snapshot_id >= 0:
            return super()._schema_of(snapshot_id)
        schema_id = -1 - snapshot_id
        return self._context.schema if schema_id >= FIRST_REPAIR else self._context.schemas.read(schema_id)
