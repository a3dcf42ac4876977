"""What of a table's own upkeep is left undone? What failed and was noted, and what can be counted without a note.

notes            a chore behind a commit failed, and none of its kind has succeeded since (:mod:`tablestore.store.followup`)
log              snapshots whose changes are not in the log yet
expiry           snapshots that are due to go, and what holds them back
"""

from dataclasses import dataclass

from tablestore.errors import TablestoreError
from tablestore.log.changelog import settings_of
from tablestore.log.logprogress import LogProgress
from tablestore.store.context import TableContext
from tablestore.store.followup import Undone, read_undone
from tablestore.store.history.expire import due_snapshots
from tablestore.store.history.retention import snapshot_retention


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """``unpublished``: snapshots that the log lacks, None if the log is the file store or is not known. ``held_by``: what
    keeps snapshots that would be due otherwise."""

    undone: tuple[Undone, ...]
    unpublished: int | None
    due_snapshots: int
    held_by: str | None


def upkeep(context: TableContext) -> Upkeep:
    """What is left undone now. Reads listings, notes and as many snapshots as are due; raises StorageError."""
    try:
        due, held_by = due_snapshots(context, snapshot_retention(context.schema.options))
    except TablestoreError:
        # Options of another engine, or files that go while they are looked at: what failed is in the notes.
        due, held_by = 0, None
    return Upkeep(undone=read_undone(context.files), unpublished=_unpublished(context), due_snapshots=due, held_by=held_by)


def _unpublished(context: TableContext) -> int | None:
    try:
        settings = settings_of(context)
        if settings.system == "filestore":
            return None
        recorded = [LogProgress(context.files).read(slot, settings.slots) for slot in range(settings.slots)]
    except TablestoreError:
        return None
    latest = context.snapshots.latest()
    done = min(one.snapshot_id if one is not None else 0 for one in recorded)
    return max(latest.id - done, 0) if latest is not None else 0
