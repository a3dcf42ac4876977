"""Runs SELECT in streaming mode: a result without end, of the rows that there are and then of every change.

    for batch in env.execute_sql("SELECT id, v FROM t WHERE id > 1").to_reader():      _row_kind, id, v
        …

It ends when it is canceled (``result.cancel()``), or nobody reads on. With ``consumer-id`` the table keeps how far the reader is: a
batch is done when the next one is asked for. Memory: one batch of changes, and the rows that come from it.
"""

from collections.abc import Iterator
from threading import Event

import pyarrow as pa

from tablestore.cdc.deliver.tablesink import SinkNeeds
from tablestore.environment.engine import ManagedRelation
from tablestore.environment.result import Result
from tablestore.environment.rows.queries import bound_query
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.environment.streams.streamedquery import StreamedQuery, streamed_query
from tablestore.environment.streams.streamsource import StreamSource
from tablestore.errors import UnsupportedError
from tablestore.log.settings import settings_of
from tablestore.sql.incremental.stateless import StreamShape
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.rows import Query
from tablestore.types.rowkind import ROW_KIND_COLUMN

# A request to cancel is seen within this time.
_LOOK_S = 0.1


def select_stream(session: Session, statement: Query, source: Source, parameters: Parameters) -> Result:
    """Makes a query over streams ready: its columns are settled, its rows come when they are read. Raises UnsupportedError for one
    that reads no stream, or has state."""
    if session.restrictions is not None:
        raise UnsupportedError("a restricted environment runs queries that end: not in streaming mode", kind="restricted")
    query = bound_query(session, statement.query, source, parameters)
    rows = StreamRows(streamed_query(session.engine_for("a query"), query))
    return Result(rows, cancel=rows.cancel)


class StreamRows:
    """The rows of a query over streams; each reading begins anew, or where its consumers stand."""

    def __init__(self, query: StreamedQuery) -> None:
        self._query, self._canceled = query, Event()
        self.schema = pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *query.schema])

    def cancel(self) -> None:
        """Ends all readings: they have no further rows."""
        self._canceled.set()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed, without end."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        sources = [
            StreamSource(
                relation=relation,
                needs=_needs(relation, self._query.shape),
                consumer=relation.follows.consumer_id if relation.follows is not None else None,
            )
            for relation in self._query.streams.values()
        ]
        clock = sources[0].relation.table.context.clock
        active_s = clock.steady_s()
        while not self._canceled.is_set():
            moved = False
            for source in sources:
                for batch in source.changes():
                    moved = True
                    if batch.rows.num_rows:
                        rows = self._query.rows(source.relation.name, pa.Table.from_batches([batch.rows]))
                        if rows.num_rows:
                            yield rows
                    source.keep()
                    if self._canceled.is_set():
                        return
            now_s = clock.steady_s()
            active_s = now_s if moved else active_s
            if not moved:
                clock.sleep(min(_LOOK_S, *(source.pause_s(now_s - active_s) for source in sources)))


def _needs(relation: ManagedRelation, shape: StreamShape) -> SinkNeeds:
    """The changes that are shown: those that have landed, with the rows before an update unless a topic that they come from lacks
    them."""
    log = settings_of(relation.table.context)
    return SinkNeeds(pairs=shape.filters or log.system == "filestore" or log.mode == "all", as_written=not log.eventual)
