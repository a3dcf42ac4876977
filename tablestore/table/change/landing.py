"""Commits the changed rows of a statement (:mod:`~tablestore.table.write.rowchange`), made in this process, as one snapshot.

What the tasks of an engine do one by one (:mod:`tablestore.distributed.change`), here in one go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.table.write.changecommit import commit_change, matches_in
from tablestore.table.write.changewriter import ChangeWriter
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rewriting import rewrite_without
from tablestore.table.write.rowchange import ChangeColumns, RowChange
from tablestore.table.write.writer import TableWriter
from tablestore.types.arrays import one_chunk, text_scalar
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.rowkind import ROW_BEFORE_COLUMN, ROW_KIND_COLUMN, RowKind
from tablestore.types.rowposition import POSITION_FIELDS


def apply_changes(
    context: TableContext, log: ChangeLog, base: Snapshot | None, change: RowChange, rows: Iterable[pa.Table]
) -> Snapshot | None:
    """Write the rows and commit them; None if there is none. ``base``: the snapshot that they were computed from.

    Raises StalePlan if others changed rows since, InvalidInputError of kind ``second-match`` for a row that is changed twice.
    """
    first_sequence = context.sequence.next_after(base)
    with ChangeWriter(context, log, change, first_sequence=first_sequence) as writer:
        for part in rows:
            if part.num_rows:
                writer.write(part)
        message, removed = _based_on(context, base, writer.prepare()), writer.removed
    try:
        replaced, message = _rewritten(context, log, base, message, removed)
    except BaseException:
        discard_unnamed(context, message)
        raise
    return commit_change(context, log, change, base, message, removed, replaced)


def _rewritten(
    context: TableContext, log: ChangeLog, base: Snapshot | None, message: CommitMessage, removed: RemovedRows
) -> tuple[Sequence[ManifestEntry], CommitMessage]:
    """Writes the files that hold changed rows again without them, where rows are not marked."""
    if base is None or not removed or context.settings.deletion_vectors:
        return (), message
    with TableWriter(context, log, first_sequence=context.sequence.next_after(base)) as writer:
        replaced = rewrite_without(context, writer, base, matches_in(context, base, removed))
        both = merge_messages([message, _based_on(context, base, writer.prepare())])
    assert both is not None, "two messages make one"
    return replaced, both


def _based_on(context: TableContext, base: Snapshot | None, message: CommitMessage) -> CommitMessage:
    """The message on top of the snapshot that was read, whatever others have committed since."""
    signed = context.message(base)
    return replace(message, base_snapshot_id=signed.base_snapshot_id, base_snapshot_uuid=signed.base_snapshot_uuid)


def change_rows(
    context: TableContext, kind: RowKind, columns: Mapping[str, pa.Array], count: int, old: pa.Table | None
) -> pa.Table:
    """Rows of one kind, as :mod:`~tablestore.table.write.rowchange` has them. Columns that are not given are NULL.

    ``old``: the rows that they change, with their positions where the table has such; None for new ones.
    """
    schema, needed = context.schema.arrow_schema, ChangeColumns.of(context)
    made = {field.name: columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema}
    made[ROW_KIND_COLUMN] = pa.repeat(text_scalar(kind.symbol), count)
    if needed.positions:
        for field in to_arrow_schema(POSITION_FIELDS):
            made[field.name] = pa.nulls(count, field.type) if old is None else one_chunk(old.column(field.name))
    if needed.before:
        is_update = kind is RowKind.UPDATE_AFTER and old is not None
        before = [schema.field(name) for name in needed.before]
        made[ROW_BEFORE_COLUMN] = _structs(old, before) if is_update else pa.nulls(count, pa.struct(before))
    return pa.table(made)


def _structs(rows: pa.Table | None, fields: Sequence[pa.Field]) -> pa.Array:
    assert rows is not None, "an update has an old row"
    return pa.StructArray.from_arrays([one_chunk(rows.column(field.name)) for field in fields], fields=list(fields))
