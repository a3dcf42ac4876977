"""Changelog files: what a compaction changes for those who follow the table, written down beside the files that it makes.

    frame before:  files whose changes were written down already
    frame after:   the same and the files that the compaction brings into it, rewritten or moved
    changelog:     the difference, for the keys of those files, in (key, sequence) order

See producer for when they are written, and statediff for how differences are found. A changelog file has the columns of a data file
and one row per change.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.producer import LOOKUP
from tablestore.store.scan.lookupcache import PROCESS_CACHE
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.write.runwriter import RunTarget, RunWriter


def compaction_changelog(
    context: TableContext,
    partition: bytes,
    bucket: int,
    *,
    total_buckets: int,
    live: Sequence[DataFileMeta],
    consumed: Sequence[DataFileMeta],
    output_level: int,
    vectors: DeletionVectors | None = None,
) -> tuple[ManifestEntry, ...]:
    """Write what a compaction changes for readers of the changelog; returns the ADD entries of the files, names durable.

    ``live``: the bucket's files before the compaction, ``consumed`` those of them that it takes, rewritten or moved, to
    ``output_level``; ``vectors`` the snapshot's deletion vectors. Nothing is written where the producer is another, or the
    compaction moves nothing into the frame. What is written and not committed is the caller's to remove.
    """
    settings = context.changelog_settings
    values = decode_row(partition, [field.type for field in context.schema.partition_fields])
    if not settings.on_compaction or not context.settings.tracking.includes(values) or not settings.in_frame(output_level):
        return ()
    arriving = tuple(file for file in consumed if not settings.in_frame(file.level))
    if not arriving:
        return ()
    frame = tuple(file for file in live if settings.in_frame(file.level))
    diff = StateDiff(
        reader=SplitReader.of(context, (), None),
        partition=partition,
        bucket=bucket,
        columns=context.schema.field_names,
        deduplicate=settings.deduplicate,
        ignored=settings.ignored,
        # A full compaction leaves hardly a file of the frame as it was.
        cache=PROCESS_CACHE if settings.producer == LOOKUP else None,
    )
    before = BucketState(files=frame, vectors=vectors)
    after = BucketState(files=(*frame, *arriving), vectors=vectors)
    with RunWriter(
        RunTarget.of(context.files, context.schema, context.settings, context.clock, context.ids),
        partition=values,
        bucket=bucket,
        total_buckets=total_buckets,
        level=0,
        source=FileSource.COMPACT,
        prefix=settings.prefix,
    ) as run:
        for changes in diff.changes(before, after, arriving):
            write_changes(run, changes, context.schema.field_names)
        entries = run.close()
        if entries:
            context.files.sync(run.directory)
    return entries


def write_changes(run: RunWriter, changes: pa.Table, names: Sequence[str]) -> None:
    """Write rows that carry their sequence numbers and kinds as columns."""
    run.write(
        changes.select(list(names)),
        np.asarray(changes.column(KIND_COLUMN).to_numpy(), dtype=np.int8),
        np.asarray(changes.column(SEQUENCE_COLUMN).to_numpy(), dtype=np.int64),
    )
