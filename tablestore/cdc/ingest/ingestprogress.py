"""Tracks what an ingest has committed, and what its next commit says: the state that every way to run one shares.

progress = IngestProgress(context, request, source)      where the last commit of its name ended
snapshot = commit rows with progress.effect(offsets)     the rows, and the offsets behind them
progress.landed(snapshot, offsets, count)                checks that it was this process that committed
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.cdc.ingest.beginning import check_landed, find_beginning, user_of
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestRequest
from tablestore.cdc.sourceposition import SourcePosition
from tablestore.cdc.topicsource import Offsets, TopicSource
from tablestore.errors import StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.replay import SOURCE_POSITION_PROPERTY
from tablestore.table.write.committing import Effect


@dataclass(slots=True)
class Count:
    """Counts what has gone into a commit."""

    records: int = 0
    rows: int = 0
    bad: int = 0


class IngestProgress:
    """The progress of one run. ``committed``: the offsets behind its last commit; ``recorded``: the table says the same."""

    def __init__(self, context: TableContext, request: IngestRequest, source: TopicSource) -> None:
        self._source, self._source_id, self._request = source, source.incarnation(), request
        self._run, self._table = context.ids.uuid(), context.files.root_uri
        beginning = find_beginning(context, request, source, self._source_id)
        self._identifier = beginning.identifier
        self.committed: Mapping[int, int] = dict(beginning.offsets)
        self.recorded = beginning.recorded

    @property
    def user(self) -> str:
        """The commit user."""
        return user_of(self._request.name)

    @property
    def next_identifier(self) -> int:
        """The identifier of the next commit."""
        return self._identifier + 1

    def effect(self, offsets: Offsets) -> Effect:
        """The effect of the commit of the rows up to these offsets."""
        text = self._position(offsets).text()
        return Effect(allow_empty=True, operation="INGEST", properties={SOURCE_POSITION_PROPERTY: text})

    def landed(self, snapshot: Snapshot | None, offsets: Offsets, count: Count) -> IngestCommit:
        """Goes on behind a commit. Raises ConflictError (``fenced``) if another process has committed in its place."""
        own_snapshot = check_landed(snapshot, self._position(offsets), self._request.name, self._table)
        self._identifier += 1
        self.committed, self.recorded = dict(offsets), True
        return IngestCommit(
            snapshot_id=own_snapshot.id,
            records=count.records,
            rows=count.rows,
            bad_records=count.bad,
            lag=self._lag(),
            offsets=self.committed,
        )

    def _position(self, offsets: Offsets) -> SourcePosition:
        return SourcePosition(source=self._source.name, source_id=self._source_id, offsets=offsets, run=self._run)

    def _lag(self) -> int | None:
        try:
            ends = self._source.bounds()
        except StorageError:
            # The commit has landed: what cannot be looked at now is looked at with the next one.
            return None
        return sum(max(0, end - self.committed.get(partition, first)) for partition, (first, end) in ends.items())
