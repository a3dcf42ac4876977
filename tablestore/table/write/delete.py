"""Deleting by condition.

In a keyed table the matching rows are written as retractions (``-D``). In an append table the files that hold matching rows
are written again without them, or with deletion vectors the rows are marked (:mod:`~tablestore.table.write.deletemarks`). In all
ways the plan only lands on top of the snapshot that it was made on: if rows have changed meanwhile it is made again, so that an
acknowledged row is never deleted by a stale plan.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import ConflictError, NotFoundError
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.log.port import ChangeLog
from tablestore.lsm.run import Section
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.context import TableContext
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import plan_scan
from tablestore.table.upkeep.compaction import compact_level_zero
from tablestore.table.write.committing import Effect
from tablestore.table.write.deletemarks import MarkingDelete
from tablestore.table.write.writer import TableWriter
from tablestore.types.filter.predicate import Predicate, evaluate


def delete_where(context: TableContext, log: ChangeLog, predicate: Predicate) -> Snapshot | None:
    """Delete the rows for which ``predicate`` is TRUE. Raises ConflictError when others change rows faster than it can plan."""
    if context.settings.merge is not None:
        context.settings.merge.check_removal(f"table {context.files.root_uri}", by_key=False)
    deadline_s = context.clock.steady_s() + context.settings.commit_timeout_s
    attempts = 0
    while True:
        base = context.snapshots.latest()
        context.check_is_there()
        if base is None:
            return None
        with TableWriter(context, log) as writer:
            try:
                if context.schema.is_keyed:
                    return _delete_keyed(context, writer, base, predicate)
                if context.settings.deletion_vectors:
                    return _delete_marking(context, writer, predicate)
                return _delete_rewriting(context, writer, base, predicate)
            except (StalePlan, NotFoundError) as error:
                # Its files expired while they were read, which takes a newer snapshot. Without one a file is missing.
                if isinstance(error, NotFoundError) and not context.snapshots.has_moved_on(base):
                    raise
                attempts += 1
                if context.clock.steady_s() >= deadline_s:
                    raise ConflictError(
                        f"the rows of table {context.files.root_uri} changed under this delete {attempts} times within "
                        f"commit.timeout ({context.settings.commit_timeout_s:.0f} s); repeat it when fewer writers are at work"
                    ) from error


def _delete_keyed(context: TableContext, writer: TableWriter, base: Snapshot, predicate: Predicate) -> Snapshot | None:
    if context.settings.skips_level_zero and any(entry.file.level == 0 for entry in context.manifests.live(base)):
        # Rows of level 0 count although readers skip it: a row must not be deleted because its old version matches.
        compact_level_zero(context)
        raise StalePlan(f"snapshot {base.id} of table {context.files.root_uri} had rows in level 0, which readers skip")
    reader = SplitReader.of(context, context.schema.field_names, predicate)
    for split in plan_scan(context, base, predicate).splits:
        for batch in reader.read(split):
            writer.retract(pa.Table.from_batches([batch]))

    def nothing_to_delete(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        _check_unchanged(context, base, latest)
        return ()

    return writer.commit_as(Effect(operation="DELETE", plan_deletes=nothing_to_delete))


def _delete_rewriting(context: TableContext, writer: TableWriter, base: Snapshot, predicate: Predicate) -> Snapshot | None:
    replaced: list[ManifestEntry] = []
    # Two passes, so that files without a match (the many) are read only in the columns of the condition.
    matching, reader = SplitReader.of(context, (), predicate), SplitReader.of(context, context.schema.field_names, None)
    entries = {entry.file.file_name: entry for entry in context.manifests.live(base)}
    for split in plan_scan(context, base, predicate).splits:
        for file in split.files:
            alone = replace(split, sections=(Section(((file,),)),))
            if not any(batch.num_rows for batch in matching.read(alone)):
                continue
            for batch in reader.read(alone):
                writer.keep(batch.filter(pc.invert(evaluate(predicate, batch))))
            replaced.append(replace(entries[file.file_name], kind=EntryKind.DELETE))
    if not replaced:
        return None

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        _check_unchanged(context, base, latest)
        return replaced

    return writer.commit_as(Effect(kind=CommitKind.OVERWRITE, operation="DELETE", plan_deletes=plan_deletes))


def _delete_marking(context: TableContext, writer: TableWriter, predicate: Predicate) -> Snapshot | None:
    delete = MarkingDelete(context, predicate)
    effect = Effect(kind=CommitKind.OVERWRITE, operation="DELETE", plan_deletes=delete.plan_deletes, plan_index=delete.plan_index)
    return writer.commit_as(effect)


def _check_unchanged(context: TableContext, base: Snapshot, latest: Snapshot | None) -> None:
    """Raise StalePlan if rows were added or taken away since ``base``. A compaction moves rows and changes none."""
    if latest is None or latest.id < base.id:
        raise StalePlan(f"table {context.files.root_uri} lost snapshot {base.id}")
    for snapshot_id in range(base.id + 1, latest.id + 1):
        snapshot = context.snapshots.find(snapshot_id)
        if snapshot is None or snapshot.commit_kind is not CommitKind.COMPACT:
            raise StalePlan(f"snapshot {snapshot_id} of table {context.files.root_uri} came after the plan")
