"""Runs a table's own upkeep once a commit has landed: one order, one place, and no error of it reaches the writer.

    write        end early rows ── publish ── compact a share ── tag ── expire ── publish the changelog of the compaction
                                                                               └─ merge large manifests, if it wrote one
    compaction                                                   publish ── tag ── expire ── compact all manifests

:mod:`tablestore.store.postcommit` says what a failure leaves behind.
"""

from collections.abc import Callable, Sequence
from functools import partial

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog, RowsAhead
from tablestore.store.commit.committer import Committed
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.context import TableContext
from tablestore.store.history.autotags import tag_automatically
from tablestore.store.postcommit import PostCommit, PostCommitTask, Skipped
from tablestore.table.upkeep.compaction import DRIVER_BUDGET_BYTES, MOST_BUDGET_BYTES, compact_after_write, compact_level_zero
from tablestore.table.upkeep.expiry import expire_after_commit, is_write_only
from tablestore.table.upkeep.manifestcompaction import compact_manifests, merge_later_runs
from tablestore.telemetry.tracing import traced


def after_write(
    context: TableContext,
    log: ChangeLog,
    snapshot: Snapshot,
    committed: Committed,
    *,
    prepared: bool = False,
    early: RowsAhead | None = None,
) -> None:
    """Follow up a write whose commit gave ``snapshot``. A replay is not compacted again, except where readers skip level 0.
    ``prepared``: one process follows up for all tasks of a distributed write, and compacts less."""
    context = _of_today(context, committed)
    tasks = PostCommit(context.files, context.clock, snapshot.id)
    if early is not None:
        # A replay returns what landed the first time: these rows are not in it.
        tasks.do(PostCommitTask.EARLY, lambda: early.ended(landed=not committed.is_replay))
    # Readers wait for the changes, so they go first. Those of the compaction follow below.
    published = tasks.do(PostCommitTask.PUBLISH, log.after_commit)

    def compact() -> None:
        is_waiting = committed.is_replay and context.settings.skips_level_zero
        if not (committed.entries or is_waiting):
            raise Skipped
        _whose_turn(context, snapshot)
        try:
            context.check_writable(new_rows=False)
        except UnsupportedError as error:
            # A rollback of files that only others write: they compact them too.
            raise Skipped from error
        most_bytes = DRIVER_BUDGET_BYTES if prepared else MOST_BUDGET_BYTES
        tracer = context.shared.observers.tracer
        with traced(tracer, "compact", context.files.root_uri) as span:
            if is_waiting:
                report = compact_level_zero(context)
            else:
                report = compact_after_write(context, committed.entries, landed=snapshot, most_bytes=most_bytes)
            if tracer is not None:
                span.record(files=report.files_written, size_bytes=report.bytes_written)

    tasks.do(PostCommitTask.SHOW if context.settings.skips_level_zero else PostCommitTask.COMPACT, compact)
    _keep_house(tasks, context, snapshot)
    if published:
        tasks.do(PostCommitTask.PUBLISH, log.after_commit)
    if committed.wrote_large_manifest:
        # Also of a write-only table, whose commits merge small manifests too.
        tasks.do(PostCommitTask.MERGE, partial(_merge_manifests, merge_later_runs, context))
    tasks.clear_notes()


def after_client_commit(context: TableContext, log: Callable[[], ChangeLog], snapshot: Snapshot) -> None:
    """Follow up the commit of a client, which keeps house itself: publishes what the log lacks. Raises nothing.

    ``log`` opens the log here, because a table whose log is unknown can be committed to: that fails as a task, with a warning.
    """
    tasks = PostCommit(context.files, context.clock, snapshot.id)
    tasks.do(PostCommitTask.PUBLISH, lambda: log().after_commit())
    tasks.clear_notes()


def after_compaction(context: TableContext, log: Callable[[], ChangeLog], committed: Sequence[int]) -> None:
    """Follow up a compaction on demand, which alone expires the snapshots of a ``write-only`` table.

    ``log`` opens the log here, because a table with an unknown log can be compacted too: that fails as a task, with a warning.
    """
    if not committed:
        return
    tasks = PostCommit(context.files, context.clock, committed[-1])
    # With some changelog producers it is the compaction that writes the changes.
    tasks.do(PostCommitTask.PUBLISH, lambda: log().after_commit())
    _keep_house(tasks, context, None)
    # Compacting on demand also does what a writer's failed compaction left undone.
    tasks.do(PostCommitTask.COMPACT, partial(_merge_manifests, partial(compact_manifests, sidecars=False), context))
    tasks.clear_notes()


def _merge_manifests(merge: Callable[[TableContext], Snapshot | None], context: TableContext) -> None:
    try:
        merge(context)
    except (StalePlan, UnsupportedError) as error:
        # Others do it at this moment, or they alone write such a table.
        raise Skipped from error


def _keep_house(tasks: PostCommit, context: TableContext, written: Snapshot | None) -> None:
    """Tag and expire after the snapshot of a writer, or (None) after a compaction on demand."""
    tagged: list[str] = []

    def tag() -> None:
        snapshot = _whose_turn(context, written) or context.snapshots.latest()
        if snapshot is not None and (name := tag_automatically(context, snapshot)) is not None:
            tagged.append(name)

    def expire() -> None:
        expire_after_commit(context, _whose_turn(context, written), tagged=bool(tagged))

    tasks.do(PostCommitTask.TAG, tag)
    tasks.do(PostCommitTask.EXPIRE, expire)


def _of_today(context: TableContext, committed: Committed) -> TableContext:
    """The table keeps house by the options that it has when a write lands, whatever the writer began with."""
    if committed.schema is None or committed.schema.id == context.schema.id:
        return context
    try:
        return context.at_schema(committed.schema)
    except TablestoreError:
        # Another engine has set them to something that only the tasks that need them can complain about.
        return context


def _whose_turn(context: TableContext, written: Snapshot | None) -> Snapshot | None:
    if written is not None and context.once(is_write_only):
        raise Skipped
    return written
