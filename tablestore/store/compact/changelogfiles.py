"""Writes the changelog files of a compaction: the changes that it makes for readers of the changelog.

    frame before:  files whose changes the changelog has (see ``producer``)
    frame after:   the same and the files that the compaction brings in, rewritten or moved
    changelog:     the difference, for the keys of those files, in (key, sequence) order

``statediff`` finds the difference. A changelog file has the columns of a data file and one row per change.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.store.changelogproducer import LOOKUP
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.scan.lookupcache import LookupCache
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
    """Write the changelog of a compaction; returns the ADD entries of the files, names durable.

    ``live``: the bucket's files before the compaction, ``consumed`` those that it rewrites or moves to ``output_level``;
    ``vectors``: the snapshot's deletion vectors. Writes nothing if the table has another producer, or the compaction moves nothing
    into the frame. The caller removes the files if they are not committed.
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
        reader=SplitReader.whole(context, (), None),
        partition=partition,
        bucket=bucket,
        columns=context.schema.field_names,
        deduplicate=settings.deduplicate,
        ignored=settings.ignored,
        # A full compaction leaves hardly a file of the frame as it was.
        cache=context.shared.once(LookupCache) if settings.producer == LOOKUP else None,
    )
    before = BucketState(files=frame, vectors=vectors)
    after = BucketState(files=(*frame, *arriving), vectors=vectors)
    with RunWriter(
        RunTarget.of(context),
        partition=values,
        bucket=bucket,
        total_buckets=total_buckets,
        level=0,
        source=FileSource.COMPACT,
        changelog=True,
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
