"""Runs the loop from a topic into a table: poll, decode, write, commit; the commit says where to go on.

    position ── poll ── decode ── write … ── commit rows + next offsets ── position
                          └ bad records ── dead letters, before the commit

Rows and offsets are one snapshot, so a process that dies anywhere has done each commit whole or not at all, and the next one goes
on behind the last. Of one key the later record wins, within a commit and over commits: a topic keeps a key in one partition, and a
partition its order.

Memory: what the client has fetched ahead (64 MiB), a batch being decoded (32 MiB of records, a few times over), and the table's
write buffer.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from tablestore.cdc.ingest.beginning import with_new_partitions
from tablestore.cdc.ingest.deadletters import DeadLetters
from tablestore.cdc.ingest.ingestprogress import Count, IngestProgress
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestRequest
from tablestore.cdc.ingest.topicrows import BATCH_BYTES, BATCH_RECORDS, RowReader, bad_record, letters_of
from tablestore.cdc.records.evolving import plan_evolution
from tablestore.cdc.records.faults import Faults
from tablestore.cdc.topicsource import TopicCursor, TopicRecords, TopicSource
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, StorageError
from tablestore.table.table import Table
from tablestore.table.write.writer import TableWriter
from tablestore.types.evolution.schemachanges import SchemaChange

_IDLE_POLL_S = 0.5
_LOOK_FOR_PARTITIONS_S = 30.0
# Times in a row that nothing comes, though there should be something, of at least this length together.
_MOST_IDLE, _IDLE_S = 3, 60.0
# Commits in a row that meet a change of the table.
_MOST_CONFLICTS = 5


class Ingestion:
    """One run of an ingest. Not thread-safe."""

    def __init__(self, table: Table, source: TopicSource, request: IngestRequest, dead_letters: DeadLetters | None = None) -> None:
        if request.on_error == "dead-letter" and dead_letters is None:
            raise InvalidInputError("on_error = dead-letter needs a table for them: name one as dead_letters")
        context = table.context
        self._table, self._source, self._request, self._dead_letters = table, source, request, dead_letters
        self._clock = context.clock
        self._reader, self._schema_id = RowReader(context, request), context.schema.id
        self._changes: tuple[SchemaChange, ...] = ()
        self._progress = IngestProgress(context, request, source)
        self._offsets = dict(self._progress.committed)

    def commits(self, stop: Callable[[], bool] = lambda: False) -> Iterator[IngestCommit]:
        """Ingests, commit by commit. ``stop`` is asked after each batch: True ends it behind one more commit."""
        bounds = self._source.bounds()
        ends = None if self._request.follow else {partition: bounds[partition][1] for partition in self._offsets}
        if not self._progress.recorded:
            with self._table.new_writer(self._progress.user) as writer:
                yield self._commit(writer, Count())
        cursor, looked_s, conflicts = self._source.open_cursor(self._offsets), self._clock.steady_s(), 0
        idle, moved_s = 0, looked_s
        try:
            while not (self._is_done(ends) or stop()):
                try:
                    if self._changes:
                        self._alter()
                        cursor = self._reopened(cursor, self._offsets)
                    commit = self._one_commit(cursor, ends, stop)
                    conflicts = 0
                except ConflictError as error:
                    conflicts += 1
                    if error.kind == "fenced" or conflicts > _MOST_CONFLICTS:
                        raise
                    # The table was altered, say: the records are read again, for the table as it is now.
                    cursor = self._reopened(cursor, dict(self._progress.committed))
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

    def _one_commit(self, cursor: TopicCursor, ends: dict[int, int] | None, stop: Callable[[], bool]) -> IngestCommit | None:
        """Ingests the records that are there until a commit is due, and commits; None if there were none."""
        request, clock, count = self._request, self._clock, Count()
        deadline_s = clock.steady_s() + request.commit_every_s
        with self._table.refresh().new_writer(self._progress.user) as writer:
            if self._table.table_schema.id != self._schema_id:
                self._reader, self._schema_id = RowReader(self._table.context, request), self._table.table_schema.id
            while count.records < request.commit_records and not (self._is_done(ends) or stop()):
                left_s = deadline_s - clock.steady_s()
                if left_s <= 0:
                    break
                batch_size = min(BATCH_RECORDS, request.commit_records - count.records)
                records = cursor.poll(min(left_s, _IDLE_POLL_S), batch_size, BATCH_BYTES)
                if not self._write(writer, records, count):
                    break
                self._offsets.update(records.next_offsets())
                self._offsets.update(
                    {place: offset for place, offset in records.ended.items() if offset > self._offsets.get(place, 0)}
                )
            return self._commit(writer, count) if count.records else None

    def _write(self, writer: TableWriter, records: TopicRecords, count: Count) -> bool:
        """Writes a batch; False if the table has to be altered first."""
        read = self._reader.read(records)
        if self._request.evolve and (changes := plan_evolution(self._table.table_schema, read.found)):
            self._changes = changes
            return False
        if read.faults:
            self._keep_bad(records, read.faults, count)
        if read.rows is not None:
            writer.write(read.rows)
            count.rows += read.rows.num_rows
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

    def _alter(self) -> None:
        changes, self._changes = self._changes, ()
        # Somebody else may have done the same. The records are looked at again.
        with suppress(AlreadyExistsError):
            self._table.alter(changes)

    def _keep_bad(self, records: TopicRecords, faults: Faults, count: Count) -> None:
        letters = letters_of(self._source.name, records, faults)
        if self._request.on_error == "stop":
            raise bad_record(letters[0], self._table.name)
        if self._dead_letters is not None and self._request.on_error == "dead-letter":
            self._dead_letters.keep(letters)
        count.bad += len(letters)

    def _commit(self, writer: TableWriter, count: Count) -> IngestCommit:
        landed = writer.commit_as(self._progress.effect(self._offsets), self._progress.next_identifier)
        return self._progress.landed(landed, self._offsets, count)

    def _reopened(self, cursor: TopicCursor, offsets: dict[int, int]) -> TopicCursor:
        cursor.close()
        self._offsets = dict(offsets)
        return self._source.open_cursor(self._offsets)

    def _is_done(self, ends: dict[int, int] | None) -> bool:
        return ends is not None and all(self._offsets[partition] >= end for partition, end in ends.items())
