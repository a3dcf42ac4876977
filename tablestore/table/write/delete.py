"""Deletes rows by condition.

In a keyed table the matching rows are written as retractions (``-D``). In an append table the files that hold matching rows
are written again without them, or with deletion vectors the rows are marked (:mod:`~tablestore.table.write.deletemarks`). In all
ways the plan only lands on top of the snapshot that it was made on: if rows have changed meanwhile it is made again
(:mod:`~tablestore.table.write.current`).
"""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.write.committing import Effect
from tablestore.table.write.current import check_unchanged, run_until_current, settled
from tablestore.table.write.deletemarks import MarkingDelete, MatchingRows
from tablestore.table.write.rewriting import rewrite_without
from tablestore.table.write.writer import TableWriter
from tablestore.types.filter.predicate import Predicate


def delete_where(context: TableContext, log: ChangeLog, predicate: Predicate) -> Snapshot | None:
    """Delete the rows for which ``predicate`` is TRUE. Raises ConflictError when others change rows faster than it can plan."""
    context.check_sees_all("DELETE")
    if context.settings.merge is not None:
        context.settings.merge.check_removal(f"table {context.files.root_uri}", by_key=False)
    return run_until_current(context, partial(_delete, context, log, predicate))


def _delete(context: TableContext, log: ChangeLog, predicate: Predicate, base: Snapshot | None) -> Snapshot | None:
    if (base := settled(context, base)) is None:
        return None
    with TableWriter(context, log) as writer:
        if context.schema.is_keyed:
            return _delete_keyed(context, writer, base, predicate)
        if context.settings.deletion_vectors:
            return _delete_marking(context, writer, predicate)
        return _delete_rewriting(context, writer, base, predicate)


def _delete_keyed(context: TableContext, writer: TableWriter, base: Snapshot, predicate: Predicate) -> Snapshot | None:
    reader = SplitReader.whole(context, context.schema.field_names, predicate)
    for split in plan_scan(context, base, predicate).splits:
        for batch in reader.read(split):
            writer.retract(pa.Table.from_batches([batch]))

    def nothing_to_delete(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        check_unchanged(context, base, latest, predicate)
        return ()

    return writer.commit_as(Effect(operation="DELETE", plan_deletes=nothing_to_delete, adds_no_row=True))


def _delete_rewriting(context: TableContext, writer: TableWriter, base: Snapshot, predicate: Predicate) -> Snapshot | None:
    # Two passes, so that files without a match (the many) are read only in the columns of the condition.
    replaced = rewrite_without(context, writer, base, MatchingRows(context, predicate)(base))
    if not replaced:
        return None

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        check_unchanged(context, base, latest, predicate)
        return replaced

    return writer.commit_as(Effect(kind=CommitKind.OVERWRITE, operation="DELETE", plan_deletes=plan_deletes, adds_no_row=True))


def _delete_marking(context: TableContext, writer: TableWriter, predicate: Predicate) -> Snapshot | None:
    delete = MarkingDelete(context, MatchingRows(context, predicate))
    effect = Effect(
        kind=CommitKind.OVERWRITE,
        operation="DELETE",
        plan_deletes=delete.plan_deletes,
        plan_index=delete.plan_index,
        adds_no_row=True,
    )
    return writer.commit_as(effect)
