"""Writes the rows of a query as a snapshot, in this process: memory does not grow with their number."""

import pyarrow as pa

from tablestore.distributed.change import prepare_change
from tablestore.environment.engine import ChangeTarget, InsertTarget
from tablestore.format.snapshot import Snapshot
from tablestore.table.write.changetasks import run_changes
from tablestore.table.write.committing import CommitNote, Origin
from tablestore.table.write.overwrite import overwrite


def insert_rows(rows: pa.RecordBatchReader, target: InsertTarget) -> Snapshot | None:
    """Writes rows as they come, and commits them."""
    table = target.table
    if target.overwrite is None and not target.dynamic:
        with table.new_writer(target.commit_user) as writer:
            writer.write(rows, missing_columns=target.missing_columns)
            return writer.commit(target.commit_identifier, note=target.note)
    origin = Origin(
        user=target.commit_user or table.context.ids.uuid(),
        identifier=target.commit_identifier,
        note=target.note or CommitNote(),
    )
    return overwrite(table.context, table.change_log, rows, target.overwrite, dynamic=target.dynamic, origin=origin)


def change_rows(rows: pa.RecordBatchReader, target: ChangeTarget) -> Snapshot | None:
    """Applies rows as changes as they come, and commits them, if no row changed since the pin."""
    table = target.table
    job = prepare_change(table, target.pin, target.change)
    return run_changes(table.context, table.change_log, job, rows, note=target.note)
