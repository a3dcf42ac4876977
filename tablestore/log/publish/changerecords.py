"""Turns the changes of one snapshot into records of the log: pure in its manifests, so every publisher makes the same ones.

A change's ordinal counts the changes of its snapshot in its bucket, before ``-U`` rows are dropped for an ``upsert`` log. The rules
(which rows, which mode) are those of the snapshot's own schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.bounds import TEXT_BYTES
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.snapshot import Snapshot
from tablestore.json.jsontext import text_bytes
from tablestore.log.changemessages import ChangelogMode, LogFormat, encode_changes
from tablestore.log.identity import snapshot_name
from tablestore.log.record import LogRecords, Mark
from tablestore.store.changes.changefeed import ChangeFeed, SnapshotChanges
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.context import TableContext
from tablestore.types.rebatch import slices_of


def snapshot_records(
    context: TableContext,
    snapshot: Snapshot,
    buckets: Sequence[int],
    mode: ChangelogMode,
    marks: Mapping[int, Mark | None],
    form: LogFormat = "debezium-json",
) -> tuple[Iterator[LogRecords], Discontinuity | None]:
    """The records of ``snapshot`` in these buckets that lie behind ``marks``; and the discontinuity, if they leave changes
    out."""
    plan = published_changes(context, snapshot, mode)
    return _records(plan, snapshot, buckets, mode, marks, form), plan.gap


def published_changes(context: TableContext, snapshot: Snapshot, mode: ChangelogMode) -> SnapshotChanges:
    """The changes of a snapshot that its log has: all columns, as its own schema has them."""
    return _feed(context, snapshot, mode).plan(snapshot)


def published_gap(context: TableContext, snapshot: Snapshot, mode: ChangelogMode) -> Discontinuity | None:
    """The discontinuity that its log has where it leaves out some of a snapshot's changes."""
    return _feed(context, snapshot, mode).gap(snapshot)


def _feed(context: TableContext, snapshot: Snapshot, mode: ChangelogMode) -> ChangeFeed:
    snapshot_context = context.at_schema(context.schemas.read(snapshot.schema_id))
    pairs = mode == "all" or not snapshot_context.settings.is_plain
    return ChangeFeed(context=snapshot_context, columns=snapshot_context.schema.field_names, pairs=pairs, whole=True)


def find_changes(context: TableContext, snapshot_id: int) -> Snapshot | None:
    """A snapshot, or the changelog kept of one that has expired; None if there is neither."""
    return context.snapshots.find(snapshot_id) or Changelogs(context.files).find(snapshot_id)


def find_published(context: TableContext, snapshot_id: int, mode: ChangelogMode) -> Snapshot | None:
    """Finds as :func:`find_changes`; None, too, if rows before the changes are gone that the log has."""
    if (snapshot := context.snapshots.find(snapshot_id)) is not None:
        return snapshot
    changelog = Changelogs(context.files).find(snapshot_id)
    return None if changelog is None or _feed(context, changelog, mode).looks_up(changelog) else changelog


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalRows:
    """Changes of one bucket and snapshot: row i has the ordinal ``first + i``."""

    first: int
    kinds: npt.NDArray[np.int8]
    rows: pa.RecordBatch


def rows_behind(plan: SnapshotChanges, snapshot_id: int, bucket: int, mark: Mark | None) -> Iterator[OrdinalRows]:
    """The changes of a snapshot in one bucket that lie behind ``mark``, at the snapshot's own schema."""
    if mark is not None and mark.snapshot_id > snapshot_id:
        return
    done_rows = mark.ordinal + 1 if mark is not None and mark.snapshot_id == snapshot_id else 0
    ordinal = 0
    for batch in replace(plan, steps=[step for step in plan.steps if step.bucket == bucket]).batches():
        start, ordinal = ordinal, ordinal + batch.num_rows
        if ordinal <= done_rows:
            continue
        skipped = max(done_rows - start, 0)
        batch = batch.slice(skipped)
        kinds = np.asarray(batch.column(KIND_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int8)
        yield OrdinalRows(first=start + skipped, kinds=kinds, rows=batch.drop_columns([KIND_COLUMN]))


def _records(
    plan: SnapshotChanges,
    snapshot: Snapshot,
    buckets: Sequence[int],
    mode: ChangelogMode,
    marks: Mapping[int, Mark | None],
    form: LogFormat,
) -> Iterator[LogRecords]:
    key = plan.context.schema.primary_keys
    for bucket in buckets:
        for part in _in_stretches(rows_behind(plan, snapshot.id, bucket, marks.get(bucket))):
            messages = encode_changes(pa.Table.from_batches([part.rows]), part.kinds, key=key, mode=mode, form=form)
            if messages.values:
                yield LogRecords(
                    bucket=bucket,
                    snapshot_id=snapshot.id,
                    time_millis=snapshot.time_millis,
                    ordinals=messages.places + part.first,
                    kinds=messages.kinds,
                    keys=messages.keys,
                    values=messages.values,
                    snapshot_uuid=snapshot_name(snapshot),
                )


def _in_stretches(changes: Iterator[OrdinalRows]) -> Iterator[OrdinalRows]:
    """The same changes, so few at a time that their text is bounded."""
    for part in changes:
        start = 0
        for rows in slices_of(part.rows, max_rows=part.rows.num_rows, max_bytes=TEXT_BYTES, size_of=text_bytes):
            stop = start + rows.num_rows
            yield OrdinalRows(first=part.first + start, kinds=part.kinds[start:stop], rows=rows)
            start = stop
