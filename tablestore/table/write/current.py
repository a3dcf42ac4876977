"""Runs a read-modify-write so that it lands on what it read: detects changes since (StalePlan), and tries again.

    attempt    newest snapshot -> read it -> work out a change -> commit
    a commit   nothing that was read changed since: it lands
               else StalePlan, nothing is visible: the next attempt, on the newest snapshot

So an acknowledged row is never changed or deleted by a plan that did not see it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tablestore.errors import ConflictError, NotFoundError
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import plan_splits
from tablestore.store.snapshots import follows, same_snapshot
from tablestore.table.upkeep.compaction import compact_level_zero
from tablestore.table.upkeep.postponed import compact_postponed
from tablestore.types.filter.predicate import Predicate, keep_only
from tablestore.types.schema import POSTPONE_BUCKET

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewestSnapshot:
    """The newest snapshot of a table, as it was just looked up; ``snapshot`` None: there is none."""

    snapshot: Snapshot | None


def run_until_current(context: TableContext, attempt: Callable[[Snapshot | None], T], newest: NewestSnapshot | None = None) -> T:
    """Calls ``attempt`` with the newest snapshot (None: there is none) and returns its result, again while it raises StalePlan, for
    ``commit.timeout`` at most. ``newest``: the snapshot of the first attempt, where the caller has just looked it up.

    Raises ConflictError when others change rows faster than it can plan.
    """
    deadline_s = context.clock.steady_s() + context.settings.commit_timeout_s
    attempts = 0
    while True:
        latest = context.snapshots.latest() if newest is None else newest.snapshot
        newest = None
        context.check_is_there()
        try:
            return attempt(latest)
        except (StalePlan, NotFoundError) as error:
            # Its files expired while they were read, which takes a newer snapshot. Without one a file is missing.
            if isinstance(error, NotFoundError) and not context.snapshots.has_moved_on(latest):
                raise
            attempts += 1
            if context.clock.steady_s() >= deadline_s:
                raise ConflictError(
                    f"the rows of table {context.files.root_uri} changed under this statement {attempts} times within "
                    f"commit.timeout ({context.settings.commit_timeout_s:.0f} s); repeat it when fewer writers are at work"
                ) from error


def settled(context: TableContext, latest: Snapshot | None) -> Snapshot | None:
    """The newest snapshot, of which a reader sees all rows. Raises StalePlan if there will be a newer one.

    Rows of level 0 count although readers of some tables skip it, and so do postponed rows: a row must not be changed because its
    old version matches. So they are compacted first.
    """
    live = context.manifests.live_columns
    if context.settings.postpones and (live(latest, ("bucket",)).numbers("bucket") == POSTPONE_BUCKET).any():
        compact_postponed(context)
        raise StalePlan(f"table {context.files.root_uri} had rows without a bucket, which readers do not see")
    if context.settings.skips_level_zero and (live(latest, ("level",)).numbers("level") == 0).any():
        compact_level_zero(context)
        raise StalePlan(f"table {context.files.root_uri} had rows in level 0, which readers skip")
    return latest


def check_unchanged(context: TableContext, base: Snapshot | None, latest: Snapshot | None, reads: Predicate | None = None) -> None:
    """Raise StalePlan if rows were added or taken away since ``base``. A compaction moves rows and changes none.

    ``reads`` holds for all rows that the plan looked at, None: it looked at the whole table. Commits that only added files which
    cannot hold such rows do not matter.
    """
    first = base.id + 1 if base else 1
    newest = latest.id if latest else 0
    stale_plan = StalePlan(f"table {context.files.root_uri} lost snapshot {first - 1}")
    if newest < first - 1 or (base is not None and latest is not None and newest == base.id and not same_snapshot(latest, base)):
        raise stale_plan
    for snapshot_id in range(first, newest + 1):
        snapshot = latest if snapshot_id == newest else context.snapshots.find(snapshot_id)
        if snapshot_id == first and base is not None and snapshot is not None and not _was_built_on(context, snapshot, base):
            raise stale_plan
        if snapshot is None or (not snapshot.commit_kind.keeps_rows and _may_add(context, snapshot, reads)):
            raise StalePlan(f"snapshot {snapshot_id} of table {context.files.root_uri} came after the plan")


def _was_built_on(context: TableContext, snapshot: Snapshot, base: Snapshot) -> bool:
    """True if ``base`` is what the snapshot of the next id followed: it may have been rolled back, and its id used again."""
    if (built := follows(snapshot, base)) is not None:
        return built
    stored = context.snapshots.find(base.id)
    return stored is not None and same_snapshot(stored, base)


def _may_add(context: TableContext, snapshot: Snapshot, reads: Predicate | None) -> bool:
    """True if a commit may have added rows for which ``reads`` is TRUE, or replaced or deleted any."""
    schema, settings = context.schema, context.settings
    if schema.is_keyed and reads is not None:
        # A row of another value may have replaced one that was read: only its key says that it did not.
        reads = keep_only(reads, schema.primary_keys)
    if reads is None or snapshot.commit_kind is not CommitKind.APPEND or settings.skips_level_zero:
        return True
    entries = context.manifests.delta(snapshot)
    if any(entry.kind is EntryKind.DELETE or entry.bucket == POSTPONE_BUCKET for entry in entries):
        return True
    return bool(plan_splits(entries, (), schema, settings, reads, file_fields=context.fields_by_schema()))
