"""Runs an ingest whose records are read and written by tasks: round by round, each of them one commit.

    ends of the topic ── ranges ── tasks: read, decode, write files ── commit dead letters, then rows + next offsets ── …

The commits are those of an ingest in one process: the same user, numbers and positions. So the one goes on where the other has
stopped, and of two at once the slower one is fenced. Files of a round that is not committed are removed, or lie there until
``clean`` finds them where the driver died.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tablestore.cdc.ingest.beginning import with_new_partitions
from tablestore.cdc.ingest.deadletters import DeadLetters
from tablestore.cdc.ingest.ingestprogress import Count, IngestProgress
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestRequest
from tablestore.cdc.ingest.topicrows import RowReader, joined
from tablestore.cdc.records.evolving import Found, plan_evolution
from tablestore.cdc.topicsource import Offsets, TopicSource
from tablestore.distributed.ingest.ingesttask import IngestJob, RangeDone
from tablestore.distributed.ingest.topicranges import TopicRange, behind, plan_ranges
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import abort_messages, commit_messages, prepare_write
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, StorageError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.table.table import Table
from tablestore.table.write.committing import Origin, commit_message
from tablestore.table.write.retractions import retraction_needs

RunTasks = Callable[[IngestJob, Sequence[TopicRange]], tuple[list[RangeDone], TablestoreError | None]]
"""Runs ``ingest_range`` for each range, by its place, in tasks of their own. Returns what they have done, in order, and the first
error."""

_WAIT_S = 0.5
# Rounds in a row that meet a change of the table.
_MOST_CONFLICTS = 5


@dataclass(frozen=True, slots=True)
class IngestTarget:
    """A table here, and how the tasks find it."""

    table: Table
    spec: TableSpec


class IngestRounds:
    """One run. ``tasks``: so many can run at once; ``log_of``: the log of the table at its newest, which publishes what has landed.
    Not thread-safe."""

    def __init__(
        self,
        place: IngestTarget,
        open_source: Callable[[], TopicSource],
        request: IngestRequest,
        letters: IngestTarget | None,
        *,
        run: RunTasks,
        tasks: int,
        log_of: Callable[[Table], ChangeLog] = lambda table: table.change_log,
    ) -> None:
        if request.on_error == "dead-letter":
            if letters is None:
                raise InvalidInputError("on_error = dead-letter needs a table for them: name one as dead_letters")
            DeadLetters(letters.table)
        self._place, self._open_source, self._request = place, open_source, request
        self._letters = letters if request.on_error == "dead-letter" else None
        self._run, self._tasks, self._log_of = run, tasks, log_of
        context = place.table.refresh().context
        # Says what can be said against the request here, and not in a task.
        RowReader(context, request)
        self._clock, self._source = context.clock, open_source()
        self._progress = IngestProgress(context, request, self._source)

    def commits(self, stop: Callable[[], bool] = lambda: False) -> Iterator[IngestCommit]:
        """Ingest, commit by commit. ``stop`` is asked between rounds."""
        request, progress = self._request, self._progress
        bounds = self._source.bounds()
        ends = {place: bounds[place][1] for place in progress.committed}
        if not progress.recorded:
            yield self._commit([], progress.committed)
        conflicts, due_s = 0, self._clock.steady_s()
        while not stop():
            offsets = progress.committed
            if request.follow:
                ends, offsets = self._newest(ends)
            left = sum(max(0, end - offsets[place]) for place, end in ends.items())
            if not left and not request.follow:
                return
            if not left or (request.follow and left < request.commit_records and self._clock.steady_s() < due_s):
                self._clock.sleep(_WAIT_S)
                continue
            due_s = self._clock.steady_s() + request.commit_every_s
            try:
                commit = self._round(offsets, plan_ranges(offsets, ends, most=request.commit_records, tasks=self._most_tasks()))
                conflicts = 0
            except ConflictError as error:
                conflicts += 1
                if error.kind == "fenced" or conflicts > _MOST_CONFLICTS:
                    raise
                # The table was altered, say: the records are read again, for the table as it is now.
                continue
            except StorageError as error:
                if not (request.follow and error.kind == "topic-stuck"):
                    raise
                continue
            if commit is not None:
                yield commit

    def _newest(self, ends: Offsets) -> tuple[dict[int, int], dict[int, int]]:
        """The ends of the topic as of now, and where to go on, also in partitions that are new; brokers may come back later."""
        try:
            bounds = self._source.bounds()
        except StorageError:
            return dict(ends), dict(self._progress.committed)
        return {place: end for place, (_, end) in bounds.items()}, with_new_partitions(self._progress.committed, bounds)

    def _most_tasks(self) -> int:
        """One for each partition where deletes take the order of the rows before them, which a task has to see."""
        return 1 if retraction_needs(self._place.table.context).ordering else self._tasks

    def _round(self, offsets: Offsets, ranges: tuple[TopicRange, ...]) -> IngestCommit | None:
        """Runs one round and returns its commit; None if the table was altered instead."""
        table = self._place.table.refresh()
        letters = self._letters
        job = IngestJob(
            request=self._request,
            open_source=self._open_source,
            rows=prepare_write(table, self._place.spec),
            letters=None if letters is None else prepare_write(letters.table.refresh(), letters.spec),
        )
        outcomes, error = self._run(job, ranges)
        column_types: Found = {}
        for outcome in outcomes:
            column_types = joined(column_types, outcome.found)
        changes = plan_evolution(table.table_schema, column_types) if self._request.evolve and error is None else ()
        if error is not None or changes:
            self._abort(outcomes)
        if error is not None:
            raise error
        if changes:
            # Somebody else may have done the same. The records are looked at again.
            with suppress(AlreadyExistsError):
                table.alter(changes)
            return None
        return self._commit(outcomes, behind(offsets, ranges))

    def _commit(self, outcomes: Sequence[RangeDone], offsets: Offsets) -> IngestCommit:
        if self._letters is not None and (letters := [outcome.letters for outcome in outcomes if outcome.letters is not None]):
            commit_messages(self._letters.table.refresh(), letters)
        table = self._place.table.refresh()
        snapshot = _commit_rows(table, self._log_of(table), [outcome.rows for outcome in outcomes], self._progress, offsets)
        count = Count()
        for outcome in outcomes:
            count = Count(count.records + outcome.count.records, count.rows + outcome.count.rows, count.bad + outcome.count.bad)
        return self._progress.landed(snapshot, offsets, count)

    def _abort(self, outcomes: Sequence[RangeDone]) -> None:
        abort_messages(self._place.table, [outcome.rows for outcome in outcomes])
        if self._letters is not None:
            abort_messages(self._letters.table, [outcome.letters for outcome in outcomes if outcome.letters is not None])


def _commit_rows(
    table: Table, log: ChangeLog, messages: Sequence[CommitMessage], progress: IngestProgress, offsets: Offsets
) -> Snapshot | None:
    context, effect = table.context, progress.effect(offsets)
    merged = merge_messages(messages)
    message = merged or context.message(context.snapshots.latest())
    origin = Origin(user=progress.user, identifier=progress.next_identifier, prepared=True)
    return commit_message(context, log, message, effect, origin)
