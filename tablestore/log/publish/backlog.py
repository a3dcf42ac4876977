"""Measures the backlog: the changes of a table's snapshots that its log lacks.

Manifests alone say it; nothing is read that would be sent. It is asked before publisher slots are spread over several processes.
"""

from dataclasses import dataclass

from tablestore.log.logprogress import LogProgress
from tablestore.log.publish.changerecords import published_changes
from tablestore.log.settings import LogSettings
from tablestore.store.changes.changeplan import StoredChanges
from tablestore.store.context import TableContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The changes that the log lacks, as rows and bytes of the data files that hold them: the records may be fewer, or twice
    as many."""

    rows: int = 0
    bytes: int = 0


def log_backlog(context: TableContext, settings: LogSettings, *, enough: Backlog) -> Backlog:
    """The backlog of the slot that is furthest behind; counting ends once either number reaches ``enough``."""
    latest = context.snapshots.latest()
    if latest is None:
        return Backlog()
    rows = size = 0
    for snapshot_id in range(LogProgress(context.files).published(settings.slots) + 1, latest.id + 1):
        snapshot = context.snapshots.find(snapshot_id)
        if snapshot is None:
            # Expired: the publisher says what that means, or reads the changes that were kept.
            continue
        for step in published_changes(context, snapshot, settings.mode).steps:
            files = (step.entry.file,) if isinstance(step, StoredChanges) else step.touched
            rows += sum(file.row_count for file in files)
            size += sum(file.file_size for file in files)
        if rows >= enough.rows or size >= enough.bytes:
            break
    return Backlog(rows=rows, bytes=size)
