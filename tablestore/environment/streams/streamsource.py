"""Reads a managed table as a stream: what there is now, round by round, from where the last round ended.

A round ends behind the newest snapshot that was there when it began, also where nothing of it was read: a place in a topic would
be left at the last record that was handed out, to be read from again and again.

A stream is a named consumer of its table, from before its first row on, so that expiry keeps what it has still to read: under the
``consumer-id`` of the reference, else under a name of its own. Memory: two batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tablestore.cdc.deliver.tablesink import SinkNeeds
from tablestore.environment.engine import ManagedRelation
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.identity import Identity
from tablestore.log.position import POSITION_KEY, LogPlace, Place, StorePlace, done, parse_position
from tablestore.options import DISCOVERY_INTERVAL, TableOptions
from tablestore.store.history.consumers import Consumers

_SOON_S = 0.005
_SHARE = 10


@dataclass(slots=True, kw_only=True)
class StreamSource:
    """One stream. ``consumer``: the name that expiry knows it by, None for one that is not kept; ``position``: where it goes on,
    None at its beginning."""

    relation: ManagedRelation
    needs: SinkNeeds
    consumer: str | None
    position: str | None = None
    kept_snapshot: int = 1
    _looked_at: int | None = None

    def __post_init__(self) -> None:
        table, follows = self.relation.table, self.relation.follows
        assert follows is not None, "it is a stream"
        is_new = self.consumer is None or Consumers(table.context.files).find(self.consumer) is None
        if self.position is None and follows.scan == "latest" and is_new:
            # What lands from now on is part of it, not only what lands behind the first look.
            latest = table.context.snapshots.latest()
            self.position = str(table.position_after(0 if latest is None else latest.id))
        if self.position is not None:
            self.keep()

    def changes(self) -> Iterator[ChangeBatch]:
        """The changes that are there now. Raises as ``table.consume``."""
        relation, follows = self.relation, self.relation.follows
        assert follows is not None, "it is a stream"
        latest = relation.table.context.snapshots.latest()
        newest = 0 if latest is None else latest.id
        if newest == self._looked_at:
            return
        begins = self.position is None
        batches = relation.table.consume(
            follows.scan if begins else None,
            timestamp=follows.time_millis if begins else None,
            consumer_id=self.consumer if begins else None,
            position=self.position,
            # The columns of the statement, whatever columns the table gets; of a query that uses none of them any.
            columns=relation.columns or relation.schema.field_names,
            filter=relation.filter,
            pairs=self.needs.pairs,
            as_written=self.needs.as_written,
            follow=False,
        )
        for batch in batches:
            self.position = str(batch.position)
            yield batch
        if newest:
            self.position = self._behind(newest)
        self._looked_at = newest

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that going on needs."""
        return 1 if self.position is None else max(1, self._place().needed_snapshot)

    def keep(self) -> None:
        """Lets expiry have what lies before the position."""
        if self.consumer is not None:
            self.kept_snapshot = self.needed_snapshot
            # Of a snapshot in a topic some buckets may be done.
            is_inside = self.position is not None and isinstance(self._place(), LogPlace)
            extra = {POSITION_KEY: parse_position(self.position).to_json()} if is_inside else {}
            Consumers(self.relation.table.context.files).write(self.consumer, self.kept_snapshot, extra)

    def _behind(self, snapshot_id: int) -> str:
        """The position, all up to a snapshot being done."""
        table, place = self.relation.table, self._place() if self.position is not None else done(0)
        if isinstance(place, LogPlace) and place.newest > snapshot_id:
            # Of a later one some buckets are done.
            return str(Identity(table.context).position(place.at_base(max(place.base, snapshot_id))))
        return str(table.position_after(max(place.needed_snapshot - 1, snapshot_id)))

    def _place(self) -> Place:
        return parse_position(self.position).place

    def pause_s(self, idle_s: float) -> float:
        """The time to wait where nothing came for some time: a part of that, and no longer than the table says."""
        table = self.relation.table
        most = TableOptions(table.context.schema.options).integer(DISCOVERY_INTERVAL) / 1000
        return min(max(idle_s / _SHARE, _SOON_S), most)


def ends_snapshot(batch: ChangeBatch) -> bool:
    """True if a batch is the last one of its snapshot."""
    place = batch.position.place
    return isinstance(place, StorePlace) and place.phase == "changes" and not place.rows
