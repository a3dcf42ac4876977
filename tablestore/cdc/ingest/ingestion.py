"""The loop from a topic into a table: poll, decode, write, commit; the commit says where to go on.

    position ── poll ── decode ── write … ── commit rows + next offsets ── position
                          └ bad records ── dead letters, before the commit

Rows and offsets are one snapshot, so a process that dies anywhere has done each commit whole or not at all, and the next one goes
on behind the last. Of one key the later record wins, within a commit and over commits: a topic keeps a key in one partition, and a
partition its order.

Memory: what the client has fetched ahead (64 MiB), a batch being decoded (:data:`_BATCH_BYTES` of records, a few times over), and
the table's write buffer.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from tablestore.cdc.ingest.beginning import check_landed, find_beginning, user_of, with_new_partitions
from tablestore.cdc.ingest.deadletters import DeadLetter, DeadLetters
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestRequest
from tablestore.cdc.records.evolving import plan_evolution
from tablestore.cdc.records.recordformats import Decoder, open_decoder
from tablestore.cdc.records.target import Decoded, Target
from tablestore.cdc.retractions import needs_whole_rows
from tablestore.cdc.sourceposition import SourcePosition
from tablestore.cdc.topicsource import TopicCursor, TopicRecords, TopicSource
from tablestore.errors import AlreadyExistsError, ConflictError, FormatError, InvalidInputError, StorageError
from tablestore.store.replay import SOURCE_POSITION_PROPERTY
from tablestore.table.table import Table
from tablestore.table.write.committing import Effect
from tablestore.table.write.writer import TableWriter
from tablestore.types.evolution.schemachanges import SchemaChange
from tablestore.types.rowkind import ROW_KIND_COLUMN, symbols_from_kinds

_BATCH_RECORDS, _BATCH_BYTES = 32_768, 32 * 1024 * 1024
# Of a batch so many are parsed at once: if one is bad, these are looked at one by one.
_PARSED_AT_ONCE = 8_192
_IDLE_POLL_S = 0.5
_LOOK_FOR_PARTITIONS_S = 30.0
# Times in a row that nothing comes, though there should be something, of at least this length together.
_MOST_IDLE, _IDLE_S = 3, 60.0
# Commits in a row that meet a change of the table.
_MOST_CONFLICTS = 5


class Ingestion:
    """One run. Not thread-safe."""

    def __init__(self, table: Table, source: TopicSource, request: IngestRequest, dead_letters: DeadLetters | None = None) -> None:
        if request.on_error == "dead-letter" and dead_letters is None:
            raise InvalidInputError("on_error = dead-letter needs a table for them: name one as dead_letters")
        context = table.context
        self._table, self._source, self._request, self._dead_letters = table, source, request, dead_letters
        self._clock, self._run = context.clock, context.ids.uuid()
        self._source_id = source.incarnation()
        self._decoder, self._schema_id = _decoder(table, request), context.schema.id
        self._changes: tuple[SchemaChange, ...] = ()
        beginning = find_beginning(context, request, source, self._source_id)
        self._identifier, self._committed, self._recorded = beginning.identifier, dict(beginning.offsets), beginning.recorded
        self._offsets = dict(self._committed)

    def commits(self, stop: Callable[[], bool] = lambda: False) -> Iterator[IngestCommit]:
        """Ingest, commit by commit. ``stop`` is asked after each batch: True ends it behind one more commit."""
        bounds = self._source.bounds()
        ends = None if self._request.follow else {partition: bounds[partition][1] for partition in self._offsets}
        if not self._recorded:
            with self._table.new_writer(user_of(self._request.name)) as writer:
                yield self._commit(writer, _Count())
        cursor, looked_s, conflicts = self._source.open_cursor(self._offsets), self._clock.steady_s(), 0
        idle, moved_s = 0, looked_s
        try:
            while not (self._is_done(ends) or stop()):
                try:
                    if self._changes:
                        self._alter()
                        cursor = self._reopened(cursor, self._offsets)
                    commit = self._one(cursor, ends, stop)
                    conflicts = 0
                except ConflictError as error:
                    conflicts += 1
                    if error.kind == "fenced" or conflicts > _MOST_CONFLICTS:
                        raise
                    # The table was altered, say: the records are read again, for the table as it is now.
                    cursor = self._reopened(cursor, self._committed)
                    continue
                if commit is not None:
                    yield commit
                idle, moved_s = (0, self._clock.steady_s()) if commit is not None or self._changes else (idle + 1, moved_s)
                if ends is not None and idle >= _MOST_IDLE and self._clock.steady_s() - moved_s >= self._patience_s:
                    raise self._stuck(ends)
                if self._request.follow and self._clock.steady_s() - looked_s >= _LOOK_FOR_PARTITIONS_S:
                    looked_s, all_offsets = self._clock.steady_s(), with_new_partitions(self._offsets, self._source.bounds())
                    if len(all_offsets) > len(self._offsets):
                        cursor = self._reopened(cursor, all_offsets)
        finally:
            cursor.close()

    def _one(self, cursor: TopicCursor, ends: dict[int, int] | None, stop: Callable[[], bool]) -> IngestCommit | None:
        """What is there, until a commit is due; None if there was nothing."""
        request, clock, count = self._request, self._clock, _Count()
        deadline_s = clock.steady_s() + request.commit_every_s
        with self._table.refresh().new_writer(user_of(request.name)) as writer:
            if self._table.table_schema.id != self._schema_id:
                self._decoder, self._schema_id = _decoder(self._table, request), self._table.table_schema.id
            while count.records < request.commit_records and not (self._is_done(ends) or stop()):
                left_s = deadline_s - clock.steady_s()
                if left_s <= 0:
                    break
                wanted = min(_BATCH_RECORDS, request.commit_records - count.records)
                records = cursor.poll(min(left_s, _IDLE_POLL_S), wanted, _BATCH_BYTES)
                if not self._write(writer, records, count):
                    break
                self._offsets.update(records.next_offsets())
                self._offsets.update(
                    {place: offset for place, offset in records.ended.items() if offset > self._offsets.get(place, 0)}
                )
            return self._commit(writer, count) if count.records else None

    def _write(self, writer: TableWriter, records: TopicRecords, count: "_Count") -> bool:
        """Write a batch; False if the table has to be altered first."""
        batch: list[Decoded] = []
        bad: dict[int, str] = {}
        for start in range(0, len(records), _PARSED_AT_ONCE):
            chosen = slice(start, start + _PARSED_AT_ONCE)
            found = self._decoder.decode(records.keys[chosen], records.values[chosen])
            if self._request.evolve and (changes := plan_evolution(self._table.table_schema, found.found)):
                self._changes = changes
                return False
            bad.update({start + place: reason for place, reason in found.faults.items()})
            batch.append(found)
        if bad:
            self._keep_bad(records, bad, count)
        rows = _as_rows(batch)
        if rows is not None:
            writer.write(rows)
            count.rows += rows.num_rows
        count.records += len(records)
        return True

    @property
    def _patience_s(self) -> float:
        return max(_IDLE_S, _MOST_IDLE * self._request.commit_every_s)

    def _stuck(self, ends: dict[int, int]) -> StorageError:
        left = ", ".join(f"{place}: {self._offsets[place]} of {end}" for place, end in ends.items() if self._offsets[place] < end)
        return StorageError(
            f"topic {self._source.name} has given nothing for {self._patience_s:.0f} s, and is not read to its end (partition: "
            f"offset, {left}); check that its brokers are up, then run the ingest again: it goes on behind its last commit",
            kind="topic-stuck",
        )

    def _lag(self) -> int | None:
        try:
            ends = self._source.bounds()
        except StorageError:
            # The commit has landed: what cannot be looked at now is looked at with the next one.
            return None
        return sum(max(0, end - self._committed.get(partition, first)) for partition, (first, end) in ends.items())

    def _alter(self) -> None:
        changes, self._changes = self._changes, ()
        # Somebody else may have done the same. The records are looked at again.
        with suppress(AlreadyExistsError):
            self._table.alter(changes)

    def _keep_bad(self, records: TopicRecords, faults: dict[int, str], count: "_Count") -> None:
        letters = [
            DeadLetter(
                topic=self._source.name,
                partition=int(records.partitions[place]),
                offset=int(records.offsets[place]),
                reason=reason,
                key=records.keys[place],
                value=records.values[place],
            )
            for place, reason in sorted(faults.items())
        ]
        if self._request.on_error == "stop":
            first = letters[0]
            raise FormatError(
                f"the record at offset {first.offset} of partition {first.partition} of topic {first.topic} cannot become a row of "
                f"{self._table.name}: {first.reason}; the ingest has stopped behind its last commit. Correct the table or the "
                "producer, name a table for dead letters, or skip such records (on_error)",
                kind="bad-record",
            )
        if self._dead_letters is not None and self._request.on_error == "dead-letter":
            self._dead_letters.keep(letters)
        count.bad += len(letters)

    def _commit(self, writer: TableWriter, count: "_Count") -> IngestCommit:
        position = SourcePosition(source=self._source.name, source_id=self._source_id, offsets=self._offsets, run=self._run)
        effect = Effect(allow_empty=True, operation="INGEST", properties={SOURCE_POSITION_PROPERTY: position.text()})
        landed = writer.commit_as(effect, self._identifier + 1)
        snapshot = check_landed(landed, position, self._request.name, self._table.name)
        self._identifier += 1
        self._committed = dict(self._offsets)
        return IngestCommit(
            snapshot_id=snapshot.id,
            records=count.records,
            rows=count.rows,
            bad_records=count.bad,
            lag=self._lag(),
            offsets=dict(self._committed),
        )

    def _reopened(self, cursor: TopicCursor, offsets: dict[int, int]) -> TopicCursor:
        cursor.close()
        self._offsets = dict(offsets)
        return self._source.open_cursor(self._offsets)

    def _is_done(self, ends: dict[int, int] | None) -> bool:
        return ends is not None and all(self._offsets[partition] >= end for partition, end in ends.items())


class _Count:
    """What has gone into a commit."""

    def __init__(self) -> None:
        self.records = self.rows = self.bad = 0


def _decoder(table: Table, request: IngestRequest) -> Decoder:
    context = table.context
    if (field := context.settings.rowkind_field) is not None and request.format == "debezium-json":
        raise InvalidInputError(
            f"table {table.name} takes the kind of a row from its column {field!r} (rowkind.field), and {request.format} records "
            "say it themselves: ingest into a table without that option",
            kind="row-kind",
        )
    target = Target(
        fields=context.schema.fields,
        key=context.schema.primary_keys,
        evolves=request.evolve,
        whole_before=needs_whole_rows(context),
    )
    return open_decoder(request.format, target, request.schema)


def _as_rows(batch: Sequence[Decoded]) -> pa.Table | None:
    """The rows for a writer, with their kinds unless all are added."""
    full = [one for one in batch if one.rows.num_rows]
    if not full:
        return None
    rows = pa.concat_tables([one.rows for one in full])
    if all(one.kinds is None for one in full):
        return rows
    kinds = np.concatenate([np.zeros(one.rows.num_rows, dtype=np.int8) if one.kinds is None else one.kinds for one in full])
    return rows.append_column(ROW_KIND_COLUMN, symbols_from_kinds(pa.array(kinds)))
