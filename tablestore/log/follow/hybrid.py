"""Follows a table whose log is not the file store: its rows at a snapshot, then the log, with no gap at either seam.

    frame of N ── log behind N ── … ── log truncated or silent ── file store up to L ── log behind L ── …

* A *discontinuity* (an overwrite, an untracked write) is not in the log; before a change of a later snapshot is handed out the
  snapshots up to it are looked at, so nobody reads across one unawares. Of those that have expired the publishers have
  noted it.
* A log that does not answer when a reader begins is not waited for: the snapshots serve it.
* The log lags behind when nobody publishes. A reader that sees snapshots and no records for a while takes their changes from the
  file store, and says so; when they are published after all it leaves them out.
"""

import logging
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from tablestore.errors import StorageError
from tablestore.log.follow.consumption import ChangeBatch, FileStoreConsumption
from tablestore.log.follow.request import Consumption
from tablestore.log.follow.topicreader import LogReader, missing_snapshot, place_at
from tablestore.log.logstore import LogStore, LogTruncated
from tablestore.log.position import LogPlace, Place, StorePlace
from tablestore.log.publish.changerecords import find_changes, find_published, published_gap
from tablestore.log.settings import LogSettings
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.context import TableContext

LOG = logging.getLogger(__name__)

POLL_S = 0.2
BOUNDED_POLL_S = 0.3
# Snapshots without records for so long: nobody publishes, or a foreign engine committed and nobody has published since.
SILENCE_S = 5.0
_EXPIRED_GAP = (
    "snapshot {}, which has expired, replaced rows without a record of which, or was written with change-tracking = false, of the "
    "table or of a partition"
)


class HybridConsumption:
    """Reads rows from the file store and changes from the log. ``silence``: the log has just not answered."""

    def __init__(
        self,
        context: TableContext,
        request: Consumption,
        store: FileStoreConsumption,
        log: LogStore,
        reader: LogReader,
        settings: LogSettings,
        *,
        silence: StorageError | None = None,
    ) -> None:
        self._silence = silence
        self._context, self._request, self._log, self._settings = context, request, log, settings
        self._store, self._reader = store, reader
        self._looked_at = self._schema_looked = 0
        self._silent_since: float | None = None

    def batches(self) -> Iterator[ChangeBatch]:
        """The batches, for ever if the request follows. Where to begin is decided now."""
        requested = self._request.start
        is_new = requested.position is None and requested.scan != "from-timestamp"
        if self._silence is not None:
            return self._without_log(self._silence)
        try:
            # Measured before the snapshot is chosen: what the log has lost by now belongs to snapshots that are there by then.
            begins = self._reader.begins() if is_new else {}
        except StorageError as error:
            return self._without_log(error)
        start = self._store.start()
        if self._store.wants_older and (older := self._older(start)) is not None:
            self._store.progress.begin(start := older)
        return self._batches(start, {} if self._store.resumed else begins)

    def _without_log(self, error: StorageError) -> Iterator[ChangeBatch]:
        """The log does not answer: what was not begun in it is read from the snapshots alone."""
        start = self._store.start()
        if not isinstance(start, StorePlace):
            raise error
        self._reader.close()
        LOG.warning(
            "%s; table %s is read from its snapshots instead, until it is consumed anew", error, self._context.files.root_uri
        )
        return self._store.batches_from(start)

    def _older(self, start: Place) -> Place | None:
        """The place where the changes since the time asked for begin in the log, if it goes back further than the table's
        snapshots."""
        since = self._request.start.time_millis
        assert since is not None
        place = self._reader.place_since(since)
        return place if place is not None and place.needed_snapshot < start.needed_snapshot else None

    def _newest(self) -> int:
        latest = self._context.snapshots.latest()
        return latest.id if latest else 0

    def _batches(self, position: Place, begins: Mapping[int, int]) -> Iterator[ChangeBatch]:
        try:
            restart: Place | None = position
            while restart is not None:
                if isinstance(restart, StorePlace):
                    snapshot_id = yield from self._store.finish(restart)
                    place = self._place_behind(snapshot_id, begins)
                    self._store.progress.passed(self._store.place(restart), place)
                else:
                    place = restart
                restart, begins = (yield from self._follow(place)), {}
                if restart is not None:
                    yield self._store.restarted(restart)
        finally:
            self._reader.close()

    def _place_behind(self, snapshot_id: int, begins: Mapping[int, int]) -> LogPlace:
        """The place in the log behind a snapshot that was handed out whole."""
        snapshot = self._context.snapshots.find(snapshot_id) if snapshot_id else None
        return place_at(self._context, self._log, self._settings, snapshot, begins).at_base(snapshot_id)

    def _follow(self, place: LogPlace) -> Generator[ChangeBatch, None, StorePlace | None]:
        """Changes behind ``place``; returns where to begin anew, None at the end."""
        self._looked_at = place.base
        opened = False
        while not self._stopped():
            has_rows = False
            try:
                if not opened:
                    self._reader.open(place)
                    opened = True
                for rows in self._reader.poll(place, POLL_S if self._request.follow else BOUNDED_POLL_S):
                    has_rows = True
                    if (restart := self._look_before(rows.snapshot_id, place)) is not None:
                        return restart
                    if (landed := self._landed(rows.snapshot_id, place)) is not None:
                        yield landed
                    before, place = place, rows.place
                    if rows.rows.num_rows:
                        yield self._store.batch(rows.rows, rows.snapshot_id, place)
                    else:
                        self._store.progress.passed(before, place)
            except LogTruncated as error:
                LOG.warning("%s; the changes behind snapshot %d are read from the file store", error, place.base)
                begins = self._reader.begins()
                filled = yield from self._fill(place)
                if isinstance(filled, StorePlace):
                    return filled
                place = self._place_behind(filled.base, begins)
                self._store.progress.passed(filled, place)
                opened = False
                continue
            if has_rows:
                self._silent_since = None
                if self._request.follow or self._settings.eventual or self._reader.caught_up(place).base < self._newest():
                    continue
            before, place = place, self._reader.caught_up(place)
            if before != place:
                self._store.progress.passed(before, place)
            if (restart := self._look_until(self._newest(), place)) is not None:
                return restart
            if self._is_silent(place):
                filled = yield from self._fill(place)
                if isinstance(filled, StorePlace):
                    return filled
                place = filled
            if not self._request.follow and self._newest() <= place.base:
                return None
        return None

    # -- what the log does not say

    def _landed(self, snapshot_id: int, place: LogPlace) -> ChangeBatch | None:
        """The event that a snapshot's changes may have other columns; handed out once, before the first of them."""
        if snapshot_id <= self._schema_looked:
            return None
        self._schema_looked = snapshot_id
        schema = self._reader.schema_of(snapshot_id)
        return None if schema is None else self._store.schema_landed(snapshot_id, schema, place)

    def _look_before(self, snapshot_id: int, place: LogPlace) -> StorePlace | None:
        """Looks as :meth:`_look_until`, but at a snapshot that has records in the log: it can be left out, unless its changes
        are only partly published."""
        if self._settings.eventual or self._context.schema.partition_keys:
            return self._look_until(snapshot_id, place)
        restart = self._look_until(snapshot_id - 1, place)
        if restart is None:
            self._looked_at = max(self._looked_at, snapshot_id)
        return restart

    def _look_until(self, snapshot_id: int, place: LogPlace) -> StorePlace | None:
        """Look at the snapshots up to one for a discontinuity; where to begin anew if that is asked for."""
        while self._looked_at < snapshot_id:
            snapshot = find_changes(self._context, self._looked_at + 1)
            if snapshot is None:
                upto = min(self._last_expired(), snapshot_id)
                gap = self._reader.newest_gap(place, upto)
                if gap is None:
                    raise missing_snapshot(self._context, place)
                is_crossed = self._looked_at < gap <= upto
                discontinuity = Discontinuity(snapshot_id=gap, reason=_EXPIRED_GAP.format(gap)) if is_crossed else None
            else:
                upto = snapshot.id
                discontinuity = published_gap(self._context, snapshot, self._settings.mode)
            if discontinuity is not None and (restart := self._store.on_discontinuity(discontinuity)) is not None:
                # An expired snapshot cannot be read as it was then.
                restart = restart if snapshot is not None else replace(restart, snapshot_id=self._newest())
                self._looked_at = restart.snapshot_id
                return restart
            self._looked_at = max(upto, self._looked_at + 1)
        return None

    def _last_expired(self) -> int:
        """Behind what was looked at: the last snapshot of which nothing is left."""
        retained_ids = {*self._context.snapshots.live_ids(), *Changelogs(self._context.files).ids()}
        return min((i for i in retained_ids if i > self._looked_at), default=self._newest() + 1) - 1

    def _is_silent(self, place: LogPlace) -> bool:
        """True if there are snapshots whose records do not come. At the end of a bounded read nobody waits for them."""
        if self._looked_at <= place.base:
            self._silent_since = None
            return False
        if not self._request.follow:
            return True
        now_s = self._context.clock.steady_s()
        if self._silent_since is None:
            self._silent_since = now_s
            return False
        if now_s - self._silent_since < SILENCE_S:
            return False
        LOG.warning(
            "%s has no records of the snapshots %d to %d of %s: their changes are read from the file store; `tablestore log "
            "publish` brings the log up to date",
            self._log.name,
            place.base + 1,
            self._looked_at,
            self._context.files.root_uri,
        )
        self._silent_since = None
        return True

    def _fill(self, place: LogPlace) -> Generator[ChangeBatch, None, LogPlace | StorePlace]:
        """Changes behind ``place`` up to the newest snapshot, from the file store.

        Returns the place behind them, or where to begin anew.
        """
        for snapshot_id in range(place.base + 1, self._newest() + 1):
            snapshot = find_published(self._context, snapshot_id, self._settings.mode)
            if snapshot is None:
                raise missing_snapshot(self._context, place)
            if (restart := self._look_until(snapshot_id, place)) is not None:
                return restart
            if (landed := self._landed(snapshot_id, place)) is not None:
                yield landed
            for rows in self._reader.from_store(snapshot, place):
                place = rows.place
                if rows.rows.num_rows:
                    yield self._store.batch(rows.rows, snapshot_id, place)
            before, place = place, place.at_base(snapshot_id)
            self._store.progress.passed(before, place)
        return place

    def _stopped(self) -> bool:
        return self._request.stop is not None and self._request.stop()
