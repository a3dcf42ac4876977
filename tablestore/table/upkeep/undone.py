"""Reports pending and failed upkeep of a table: what failed and was noted, and what can be counted without a note.

notes            a task behind a commit failed, and none of its kind has succeeded since (:mod:`tablestore.store.postcommit`)
log              snapshots whose changes are not in the log yet
expiry           snapshots that are due to go, and what holds them back
"""

from collections.abc import Callable
from dataclasses import dataclass

from tablestore.errors import TablestoreError
from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext
from tablestore.store.history.expire import due_snapshots
from tablestore.store.history.retention import snapshot_retention
from tablestore.store.postcommit import Undone, read_undone


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepReport:
    """The upkeep that is pending or has failed. ``unpublished``: snapshots that the log lacks, None if the log is the file
    store or is not known. ``held_by``: what keeps snapshots that would be due otherwise."""

    undone: tuple[Undone, ...]
    unpublished: int | None
    due_snapshots: int
    held_by: str | None


def upkeep(context: TableContext, log: Callable[[], ChangeLog]) -> UpkeepReport:
    """The upkeep that is left undone now; ``log`` chooses the table's log.

    Reads listings, notes and as many snapshots as are due; raises StorageError.
    """
    try:
        due, held_by = due_snapshots(context, snapshot_retention(context.schema.options))
    except TablestoreError:
        # Options of another engine, or files that go while they are looked at: what failed is in the notes.
        due, held_by = 0, None
    return UpkeepReport(undone=read_undone(context.files), unpublished=_unpublished(log), due_snapshots=due, held_by=held_by)


def _unpublished(log: Callable[[], ChangeLog]) -> int | None:
    try:
        return log().unpublished()
    except TablestoreError:
        return None
