"""Writes the rows of a query over streams into a managed table: what there is now is one commit, then what comes, and so on.

    target says where its last commit ended -> changes of each stream -> the query's rows -> ... -> commit rows + positions -> ...

Exactly once: rows and the positions of all streams are one snapshot of the target, under the name of the stream
(:class:`~tablestore.cdc.deliver.tablesink.TableSink`). A process that goes on under the name begins behind the last one; a second
one that runs beside it is fenced. Memory: the rows of one batch, and what the target's writer keeps until it commits.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore.cdc.deliver.tablesink import SinkNeeds, TableSink, asks_for_pairs, has_topic
from tablestore.clock import Clock
from tablestore.environment.engine import InsertTarget, ManagedRelation
from tablestore.environment.streams.streamedquery import StreamedQuery
from tablestore.environment.streams.streamsource import StreamSource, ends_snapshot
from tablestore.errors import ConflictError, FormatError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.position import LogPlace, parse_position
from tablestore.log.settings import settings_of
from tablestore.sql.incremental.stateless import StreamShape
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext

KIND = "stream"
BATCH_ROWS = 262_144
"""Rows of changes that the engine gets at once."""
COMMIT_ROWS = 2_000_000
"""Rows of changes after which a commit comes, though more are there."""
_SILENT_SNAPSHOTS = 64
_ANEW = "Begin anew: empty the target, and run the statement under another name (SET 'pipeline.name')"
_WAYS_ON = {
    "schema-changed": "Run the statement again: it is planned with the columns of now, and goes on behind its last commit",
    "discontinuity": _ANEW,
    "snapshot-expired": _ANEW,
}
_ABOUT_CALLS = re.compile(r"; (?:call |go on |begin anew )|\. (?:Nothing is lost|A stream begins anew)")


@dataclass(slots=True)
class MicroBatches:
    """A stream into a table, run by whoever waits for it: nothing goes on between two calls of :meth:`wait`."""

    query: StreamedQuery
    target: InsertTarget
    name: str
    interval_ms: int | None = None
    _sink: TableSink = field(init=False)
    _sources: list[StreamSource] = field(init=False)
    _whole_snapshots: bool = field(init=False)
    _steps: Iterator[float] = field(init=False)
    _buffered: list[pa.RecordBatch] = field(default_factory=list)
    _buffered_rows: int = 0
    _pending_rows: int = 0
    _committed_s: float = 0.0

    def __post_init__(self) -> None:
        table = self.target.table
        needs = {name: needs_of_stream(one, table.context, self.query.shape) for name, one in self.query.streams.items()}
        self._whole_snapshots = any(one.whole_snapshots for one in needs.values())
        self._sink = TableSink(
            table,
            self.name,
            removes_first=self._whole_snapshots,
            kind=KIND,
            missing_columns=self.target.missing_columns,
        )
        positions = _positions(self._sink.position(), table.name)
        own = hashlib.sha256(f"{table.context.table_uuid}\0{table.location}\0{self.name}".encode()).hexdigest()[:16]
        self._sources = [
            StreamSource(
                relation=relation,
                needs=needs[name],
                consumer=_consumer(relation) or f"{KIND}-{own}",
                position=positions.get(name),
            )
            for name, relation in self.query.streams.items()
        ]
        self._committed_s = self._clock.steady_s()
        self._steps = self._run()

    @property
    def id(self) -> str:
        """The user of its commits; the same after a restart."""
        return self._sink.user

    def wait(self, timeout_s: float) -> bool:
        """Goes on with the stream for so long; False, since it does not end. Raises what ends it."""
        clock = self._clock
        until = clock.steady_s() + timeout_s
        try:
            while (left := until - clock.steady_s()) > 0:
                if (pause := next(self._steps)) > 0:
                    clock.sleep(min(pause, left))
        except (ConflictError, NotFoundError) as error:
            if error.kind not in _WAYS_ON:
                raise
            raise of_statement(error) from error
        return False

    def stop(self) -> None:
        """Ends it: what was not committed is dropped."""
        self._sink.close()

    @property
    def _clock(self) -> Clock:
        return self.target.table.context.clock

    def _run(self) -> Iterator[float]:
        """The steps of the stream, each with the time in seconds that there is nothing to do behind it."""
        active_s = self._clock.steady_s()
        while True:
            moved = False
            for source in self._sources:
                for batch in source.changes():
                    moved = True
                    self._take(source, batch)
                    yield 0.0
                self._flush(source)
            if self._is_due():
                self._commit()
            now_s = self._clock.steady_s()
            active_s = now_s if moved else active_s
            yield 0.0 if moved else min(source.pause_s(now_s - active_s) for source in self._sources)

    def _take(self, source: StreamSource, batch: ChangeBatch) -> None:
        if batch.rows.num_rows:
            self._buffered.append(batch.rows)
            self._buffered_rows += batch.rows.num_rows
            self._pending_rows += batch.rows.num_rows
        ends = ends_snapshot(batch)
        # A place in a topic is one in each bucket: a commit there tears a snapshot, but not what is known of it.
        may_end = ends or batch.in_frame or isinstance(batch.position.place, LogPlace)
        is_full = self._pending_rows >= COMMIT_ROWS and may_end
        if self._pending_rows and (is_full or (ends and self._whole_snapshots)):
            self._flush(source)
            self._commit()
        elif self._buffered_rows >= BATCH_ROWS:
            self._flush(source)

    def _flush(self, source: StreamSource) -> None:
        """Writes the rows that come from what was taken of a stream."""
        if not self._buffered:
            return
        changes = pa.Table.from_batches(self._buffered)
        self._buffered, self._buffered_rows = [], 0
        rows = self.query.rows(source.relation.name, changes)
        if rows.num_rows:
            self._sink.write(rows)

    def _is_due(self) -> bool:
        if self._pending_rows:
            waited_ms = (self._clock.steady_s() - self._committed_s) * 1000
            return self.interval_ms is None or waited_ms >= self.interval_ms
        return any(source.needed_snapshot - source.kept_snapshot >= _SILENT_SNAPSHOTS for source in self._sources)

    def _commit(self) -> None:
        positions = {one.relation.name: parse_position(one.position).to_json() for one in self._sources if one.position is not None}
        self._sink.commit(json.dumps(positions, separators=(",", ":")))
        for source in self._sources:
            source.keep()
        self._pending_rows, self._committed_s = 0, self._clock.steady_s()


def of_statement(error: TablestoreError) -> TablestoreError:
    """The error that ends a stream, with the way on of a statement in place of that of a call which follows a table."""
    if error.kind not in _WAYS_ON:
        return error
    return type(error)(f"{_ABOUT_CALLS.split(error.message)[0]}. {_WAYS_ON[error.kind]}", kind=error.kind)


def needs_of_stream(relation: ManagedRelation, target: TableContext, shape: StreamShape) -> SinkNeeds:
    """The changes of a stream that the rows of a query need, to be written into a table. Raises UnsupportedError where the table
    cannot take them."""
    source = relation.table.context
    merge, other = target.settings.merge, source.settings.merge
    if other is None:
        return SinkNeeds()
    if merge is None:
        if other.engine == "first-row":
            return SinkNeeds()
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: {relation.name} has a primary key, so its rows change and go, and table "
            f"{target.files.root_uri} has none to find them by: write into a table WITH a PRIMARY KEY",
            kind="streaming",
        )
    names = dict(shape.columns or ())
    origins = {name: origin[1] for name, origin in names.items() if origin is not None and origin[0] == relation.name}
    key = [origins.get(name) for name in target.schema.primary_keys]
    same_key = set(key) == set(source.schema.primary_keys)
    ordered_alike = all(origins.get(one.name) == one.name for one in merge.sequence_fields)
    ordering = other.sequence_fields if ordered_alike else ()
    pairs = not same_key or shape.filters or asks_for_pairs(target, target.schema.primary_keys, ordering)
    whole = not same_key and not merge.computes
    as_written = not pairs or source.changelog_settings.producer != INPUT
    # A topic has the changes of each bucket, not of one snapshot after the other, and an eventual one rows that may never land.
    from_files = has_topic(source) and (whole or settings_of(source).eventual)
    return SinkNeeds(pairs=pairs, as_written=as_written and not from_files, whole_snapshots=whole)


def _consumer(relation: ManagedRelation) -> str | None:
    return None if relation.follows is None else relation.follows.consumer_id


def _positions(text: str | None, table: str) -> Mapping[str, str]:
    """The positions of streams that a commit has stored."""
    if text is None:
        return {}
    try:
        members = JsonObject(parse_json_bounded(text.encode(), table), table)
        return {name: str(parse_position(position)) for name, position in members.content.items()}
    except FormatError as error:
        raise FormatError(
            f"table {table}: expected the positions of streams, found {text!r:.200}; SET 'pipeline.name' to another name",
            kind="source-position",
        ) from error
