"""Compacts a table: after a writer's own commit, on demand, by a service.

    plan on the newest snapshot -> run tasks, bucket by bucket -> commit as COMPACT -> plan anew

A compaction changes no row that a query returns. It is committed only while every file that it read is live; otherwise its work
is dropped and planned again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.htmltext import PrintedInNotebooks
from tablestore.inorder import in_order, threads_for
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.compaction.keyedcompaction import WHOLE_REASONS
from tablestore.options import MIB
from tablestore.progress import Progress, no_progress
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.compact.bucketcompaction import BucketFiles, discard, discard_unnamed, run_compaction
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.upkeep.compactplan import BucketId, TaskPicker, newest_buckets, newest_schema_id, written_cost
from tablestore.types.newschema import check_cluster_columns

# The bytes that a writer compacts after its own commit: so many times those that it wrote, within these bounds.
PAY_FACTOR = 8
LEAST_BUDGET_BYTES = 24 * MIB
MOST_BUDGET_BYTES = 1024 * MIB
# After a distributed write the driver alone compacts.
DRIVER_BUDGET_BYTES = 256 * MIB
# Work that is committed together by a compaction on demand.
_BYTES_PER_COMMIT = 1024 * MIB
_TASKS_PER_COMMIT = 64
# The most times that one call plans anew after a lost race, per bucket.
_ATTEMPTS = 10
# No bucket needs more steps than this in one call: each makes fewer runs or fewer bytes above the oldest.
_STEPS = 100
FULL_PROPERTY = "tablestore.full-compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport(PrintedInNotebooks):
    """The work that a compaction did. ``dropped``: tasks whose input files others replaced before they were committed."""

    snapshot_ids: tuple[int, ...] = ()
    tasks: int = 0
    buckets: int = 0
    files_read: int = 0
    files_written: int = 0
    files_moved: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    dropped: int = 0

    def __add__(self, other: "CompactReport") -> "CompactReport":
        return CompactReport(
            snapshot_ids=(*self.snapshot_ids, *other.snapshot_ids),
            tasks=self.tasks + other.tasks,
            buckets=self.buckets + other.buckets,
            files_read=self.files_read + other.files_read,
            files_written=self.files_written + other.files_written,
            files_moved=self.files_moved + other.files_moved,
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_written=self.bytes_written + other.bytes_written,
            dropped=self.dropped + other.dropped,
        )

    def __str__(self) -> str:
        if not self.tasks and not self.dropped:
            return "nothing to compact"
        snapshots = f"snapshot {', '.join(map(str, self.snapshot_ids))}" if self.snapshot_ids else "no snapshot"
        dropped = f"; {self.dropped} task(s) dropped, others were faster" if self.dropped else ""
        read = f"{self.files_read} file(s) of {self.bytes_read:,} bytes"
        written = f"{self.files_written} of {self.bytes_written:,}, {self.files_moved} moved"
        return f"{snapshots}: {self.tasks} task(s) in {self.buckets} bucket(s), {read} became {written}{dropped}"


def compact_table(
    context: TableContext,
    *,
    full: bool = False,
    partitions: Iterable[Mapping[str, Any]] | None = None,
    order_by: ClusterOrder | None = None,
    progress: Progress | None = None,
) -> CompactReport:
    """Compact the buckets that are due, or all into one run per bucket (``full``).

    ``partitions``: only these, each given by some or all of its column values. ``order_by``: all rows of an append table are put in
    this order. ``progress`` gets the bytes of the buckets that are
    done, of all; of the bucket at work the share of its rows that is merged. Raises InvalidInputError for columns that are no
    partition columns, UnsupportedError for tables that are only read, and what reading and committing raise.
    """
    matches = partition_matcher(context, partitions)
    if order_by is not None:
        check_cluster_columns(context.schema, order_by.columns, "argument order_by")
    run = _Run(context, full=full or order_by is not None, order_by=order_by, progress=progress)
    return run.everywhere(lambda place: matches(place[0]))


def compact_after_write(
    context: TableContext,
    written: Sequence[ManifestEntry],
    *,
    landed: Snapshot,
    most_bytes: int = MOST_BUDGET_BYTES,
) -> CompactReport:
    """Compact a share of the buckets that a commit has just written, as snapshot ``landed``.

    Does nothing if the table is ``write-only``. Raises what reading and committing raise.
    """
    if not written:
        return CompactReport()
    settings = TaskPicker(context).settings
    if settings.write_only:
        return CompactReport()
    touched = {(entry.partition, entry.bucket) for entry in written}
    if settings.forced:
        return _Run(context).everywhere(touched.__contains__)
    if full_is_due(context, commits=settings.full_every, interval_ms=settings.full_interval_ms):
        return _Run(context, full=True).everywhere(lambda place: True)
    paid = PAY_FACTOR * written_cost(written, settings.policy.file_cost_bytes)
    budget = min(max(paid, LEAST_BUDGET_BYTES), most_bytes)
    report = _Run(context).one_round(touched.__contains__, budget, landed)
    if report.dropped and context.settings.skips_level_zero:
        # Readers of such a table skip level 0, and the compaction that was faster may not have seen this commit.
        report += _Run(context).everywhere(touched.__contains__)
    return report


def compact_level_zero(context: TableContext) -> CompactReport:
    """Compact all buckets with files in level 0, of a table whose readers skip that level."""
    _, buckets = newest_buckets(context)
    waiting = {place for place, bucket in buckets.items() if any(file.level == 0 for file in bucket.files)}
    return _Run(context).everywhere(waiting.__contains__) if waiting else CompactReport()


def full_is_due(context: TableContext, *, commits: int | None, interval_ms: int | None) -> bool:
    """True if so many commits, or so much time, came after the last full compaction, as far as snapshots are retained."""
    if commits is None and interval_ms is None:
        return False
    snapshot = context.snapshots.latest()
    begin_ms = None if interval_ms is None else context.clock.now_ms() - interval_ms
    commit_count = 0
    while snapshot is not None:
        if begin_ms is not None and snapshot.time_millis <= begin_ms:
            return True
        if snapshot.commit_kind.keeps_rows:
            if snapshot.properties.get(FULL_PROPERTY) == "true":
                return False
        else:
            commit_count += 1
        if commits is not None and commit_count >= commits:
            return True
        snapshot = context.snapshots.find(snapshot.id - 1) if snapshot.id > 1 else None
    return False


@dataclass(slots=True)
class _Done:
    """A task that is done and not committed."""

    place: BucketId
    message: CommitMessage
    whole: bool


class _Run:
    """One call: plans on the newest snapshot, again and again."""

    def __init__(
        self,
        context: TableContext,
        *,
        full: bool = False,
        order_by: ClusterOrder | None = None,
        progress: Progress | None = None,
    ) -> None:
        context.check_writable(new_rows=False)
        self._context, self._full, self._order_by, self._show = context, full, order_by, progress or no_progress
        self._left: dict[BucketId, int] = {}
        # Of the buckets at work, which may be several.
        self._merged_bytes: dict[BucketId, int] = {}
        self._showing = Lock()
        self._total = 0

    def everywhere(self, accepts: Callable[[BucketId], bool]) -> CompactReport:
        """Compact until nothing is due in the wanted buckets."""
        report = CompactReport()
        buckets = newest_buckets(self._context, accepts)[1]
        todo = list(buckets)
        self._left = {place: sum(file.file_size for file in bucket.files) for place, bucket in buckets.items()}
        self._total = sum(self._left.values())
        steps: Counter[BucketId] = Counter()
        dropped_commits: Counter[BucketId] = Counter()
        touched: set[BucketId] = set()
        while todo:
            compactions, waiting = self._batch(todo, alone=any(dropped_commits.values()))
            part = self._commit(compactions)
            report += part
            for compacted in compactions:
                touched.add(compacted.place)
                steps[compacted.place] += 1
                dropped_commits[compacted.place] += 1 if part.dropped else 0
                is_tried_again = dropped_commits[compacted.place] < _ATTEMPTS if part.dropped else not self._full
                if is_tried_again and steps[compacted.place] < _STEPS:
                    waiting.append(compacted.place)
            todo = waiting
        return report + CompactReport(buckets=len(touched))

    def one_round(self, accepts: Callable[[BucketId], bool], budget_bytes: int, landed: Snapshot) -> CompactReport:
        """One task each for the neediest buckets of ``landed``, as far as the budget goes; all in one commit.

        Buckets that are written evenly fall due at the same time, so only some of them are compacted whole in one round.
        """
        latest, buckets_by_id = newest_buckets(self._context, accepts, landed=landed)
        if latest is None:
            return CompactReport()
        picker = TaskPicker(self._context)
        policy = picker.settings.policy
        buckets = list(picker.neediest_first(buckets_by_id.values()))
        left, wholes = budget_bytes, -(-2 * len(buckets) // policy.trigger)
        compactions: list[_Done] = []
        with self._taken_back_on_error(compactions):
            for bucket in buckets:
                if (compacted := self._make(latest, bucket, left, whole=wholes > 0)) is not None:
                    compactions.append(compacted)
                    left = max(left - written_cost(_rewritten(compacted.message), policy.file_cost_bytes), 0)
                    wholes -= compacted.whole
        return self._commit(compactions) + CompactReport(buckets=len(compactions))

    def _batch(self, todo: Sequence[BucketId], *, alone: bool) -> tuple[list[_Done], list[BucketId]]:
        """Run tasks to be committed together; returns them and the buckets that wait.

        ``alone``: only one task, so that after a lost race no task is dropped because of another.
        """
        newest, buckets = newest_buckets(self._context, set(todo))
        assert newest is not None, "a table that has a snapshot keeps one"
        latest = newest
        size = sum(file.file_size for bucket in buckets.values() for file in bucket.files)
        threads = 1 if alone else min(threads_for(size), len(todo))
        done: list[_Done] = []
        compactions: list[_Done] = []
        begun = merged_bytes = 0

        def places() -> Iterator[BucketId]:
            nonlocal begun
            for place in todo:
                if merged_bytes >= _BYTES_PER_COMMIT or len(compactions) >= (1 if alone else _TASKS_PER_COMMIT):
                    return
                begun += 1
                yield place

        def make(place: BucketId) -> _Done | None:
            if (compacted := self._make(latest, buckets.get(place), None, threads=threads)) is not None:
                done.append(compacted)
            self._dealt_with(place)
            return compacted

        with self._taken_back_on_error(done):
            for compacted in map(make, places()) if threads == 1 else in_order(make, places(), threads=threads):
                if compacted is not None:
                    compactions.append(compacted)
                    merged_bytes += sum(entry.file.file_size for entry in compacted.message.compact_before)
        return compactions, list(todo[begun:])

    def _dealt_with(self, place: BucketId) -> None:
        """Count a bucket as done, after its first step. Later steps in the same bucket rewrite less."""
        with self._showing:
            self._left.pop(place, None)
            self._merged_bytes.pop(place, None)
            self._show_done()

    def _merged(self, place: BucketId, rows: int, of_rows: int) -> None:
        """Count a share of a bucket as done, in its first step."""
        with self._showing:
            if of_rows and place in self._left:
                self._merged_bytes[place] = self._left[place] * rows // of_rows
                self._show_done()

    def _show_done(self) -> None:
        done_bytes = self._total - sum(self._left.values()) + sum(self._merged_bytes.values())
        self._show(f"compacting, {len(self._left)} bucket(s) left", done_bytes, self._total)

    @contextmanager
    def _taken_back_on_error(self, compactions: Sequence[_Done]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            for compacted in compactions:
                discard(self._context, compacted.message)
            raise

    def _make(
        self,
        latest: Snapshot,
        bucket: BucketFiles | None,
        budget_bytes: int | None,
        *,
        whole: bool = True,
        threads: int = 1,
    ) -> _Done | None:
        if bucket is None:
            return None
        context = self._context
        if newest_schema_id(bucket.files) > context.schema.id:
            # The table was altered meanwhile: at the old schema the new columns would be lost.
            context = self._context = context.at_newest_schema()
        task = TaskPicker(context, self._order_by).pick(bucket, full=self._full, budget_bytes=budget_bytes, whole=whole)
        if task is None:
            return None
        place = (bucket.partition, bucket.bucket)
        try:
            message = run_compaction(context, latest, bucket, task, partial(self._merged, place), threads=threads)
            return _Done(place, message, task.reason in WHOLE_REASONS)
        except NotFoundError:
            # Its files expired while they were read, which takes a newer snapshot. Without one a file is missing.
            if not context.snapshots.has_moved_on(latest):
                raise
            return None

    def _commit(self, compactions: Sequence[_Done]) -> CompactReport:
        if not compactions:
            return CompactReport()
        messages = [compacted.message for compacted in compactions]
        return commit_compaction(self._context, messages, full=self._full)


def commit_compaction(
    context: TableContext, messages: Sequence[CommitMessage], *, full: bool = False, prepared: bool = False
) -> CompactReport:
    """Commit finished tasks as one COMPACT snapshot; after a lost race they are dropped and counted. ``prepared``: they have
    crossed processes (see :class:`~tablestore.store.commit.committer.CommitRequest`)."""
    try:
        message = merge_messages(messages)
    except TablestoreError:
        for single_message in messages:
            (discard_unnamed if prepared else discard)(context, single_message)
        return CompactReport(dropped=len(messages))
    if message is None:
        return CompactReport()
    request = CommitRequest(
        user=context.ids.uuid(),
        kind=CommitKind.COMPACT,
        operation="COMPACT",
        message=message,
        prepared=prepared,
        properties={FULL_PROPERTY: "true"} if full else {},
    )
    try:
        committed = committer(context).commit_once(request)
    except StalePlan:
        return CompactReport(dropped=len(messages))
    if committed.is_replay:
        return CompactReport(dropped=len(messages))
    snapshot = committed.snapshot
    written = message.rewritten
    read = _rewritten(message)
    return CompactReport(
        snapshot_ids=(snapshot.id,) if snapshot else (),
        tasks=len(messages),
        files_read=len(read),
        files_written=len(written),
        files_moved=len(message.compact_after) - len(written),
        bytes_read=sum(entry.file.file_size for entry in read),
        bytes_written=sum(entry.file.file_size for entry in written),
    )


def _rewritten(message: CommitMessage) -> list[ManifestEntry]:
    """The files that were read, without those that only moved."""
    after = {entry.file.file_name for entry in message.compact_after}
    return [entry for entry in message.compact_before if entry.file.file_name not in after]
