"""Builds the data writer of an open table, and the checks by which a commit revises its files.

Rows are written with what one snapshot says (buckets by hash index, stored values of columns that rows lack). A commit on top of
a newer snapshot checks that again (``keep_commit``, ``dynamic_commit``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import postponed_prefix
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.bucketmap import BucketMap
from tablestore.lsm.write.writebuffer import AssignBuckets
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.store.message import KeptColumns, Revise
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.sequence import HEADROOM
from tablestore.store.settings import TableSettings
from tablestore.store.write.datawriter import DataWriter
from tablestore.store.write.dynamicbuckets import Assigner, DynamicCommit, HashIndex
from tablestore.store.write.rowconstraints import RowConstraints
from tablestore.store.write.runwriter import RunTarget
from tablestore.store.write.storedvalues import KeepCommit, StoredValueFiller
from tablestore.types.evolution.fieldpaths import Path


def data_writer(
    context: TableContext,
    first_sequence: int,
    *,
    assign: AssignBuckets | None = None,
    replaces: bool = False,
    changelog: bool = True,
    filler: StoredValueFiller | None = None,
    own_before: Sequence[ManifestEntry] = (),
    once: bool = False,
    alone: bool = False,
) -> DataWriter:
    """A writer of data files. Raises UnsupportedError for tables that are only read.

    ``replaces``: its rows replace those of their partitions, without a changelog. ``assign``: gives the buckets of a table with
    dynamic buckets, in place of its hash indexes. ``changelog`` False: the rows were written before, with their changelog.
    ``filler``: looks up missing columns, in place of the newest snapshot. ``own_before``, ``once`` as in :class:`DataWriter`.
    ``alone``: its rows will be all of those of their partitions.
    """
    context.check_writable()
    if context.settings.dynamic_buckets is not None and assign is None:
        load = _no_buckets if replaces else partial(_buckets_now, context)
        assign = Assigner(context.schema, context.settings.dynamic_buckets, load)
    postpones, ranges = context.settings.postpones, context.settings.ranges
    if ranges is not None and not (alone or replaces):
        # New files, which compactions order with those that are there.
        ranges = replace(ranges, level=0)
    return DataWriter(
        RunTarget.of(context, _postponed(context) if postpones else None),
        first_sequence=first_sequence,
        assign=assign,
        changelog=context.settings.tracking
        if changelog and not replaces and context.changelog_settings.producer == INPUT
        else None,
        # What is stored of a postponed row is not known before the compaction.
        filler=None if replaces or postpones else filler or _filler(context, None),
        own_before=own_before,
        once=once,
        ranges=ranges,
        constraints=RowConstraints.of(context) if context.settings.constrained else None,
    )


def _postponed(context: TableContext) -> TableSettings:
    """The settings of files in postponed buckets: nobody plans by their statistics, and they have the format of the table. Other
    engines write Avro there, and read every format."""
    settings = context.settings
    return replace(settings, data_file_prefix=postponed_prefix(settings.data_file_prefix), stats_mode=None, column_stats_modes={})


def keep_commit(context: TableContext, kept: tuple[KeptColumns, ...], move: Revise | None) -> KeepCommit:
    """The revision of files for which values were looked up; ``move`` gives the files other buckets first."""
    return KeepCommit(
        reader=SplitReader.whole(context, (), None),
        snapshots=context.snapshots,
        manifests=context.manifests,
        first_sequence=lambda latest, attempt: context.sequence.next_after(latest) + HEADROOM * (attempt + 1),
        rewrite=partial(_keep_again, context),
        kept=kept,
        move=move,
    )


def _filler(context: TableContext, pinned: Snapshot | None) -> StoredValueFiller:
    return StoredValueFiller(
        reader=SplitReader.whole(context, (), None),
        snapshots=context.snapshots,
        manifests=context.manifests,
        vectors_of=context.deletion_vectors,
        check_may_look=partial(context.check_sees_all, "a row that keeps stored values"),
        pinned=pinned,
    )


def dynamic_commit(context: TableContext, replaces: Callable[[bytes], bool] | None = None) -> DynamicCommit | None:
    """The commit plan of a table with dynamic buckets; None for other tables. ``replaces``: the partitions that it replaces."""
    if context.settings.dynamic_buckets is None:
        return None
    return DynamicCommit(
        reader=SplitReader.whole(context, (), None),
        policy=context.settings.dynamic_buckets,
        index_of=partial(_hash_index, context),
        first_sequence=lambda latest, attempt: context.sequence.next_after(latest) + HEADROOM * (attempt + 1),
        rewrite=partial(_write_again, context),
        replaces=replaces,
    )


def _hash_index(context: TableContext, snapshot: Snapshot | None) -> HashIndex:
    return HashIndex.of(context.index_files, context.manifests.read_index(snapshot) if snapshot else ())


def _buckets_now(context: TableContext, partition: bytes) -> BucketMap:
    return context.snapshots.read_newest(lambda latest: _hash_index(context, latest).partition(partition))[1]


def _write_again(
    context: TableContext, first_sequence: int, assigner: Assigner, rows: Iterator[tuple[pa.Table, pa.Array]]
) -> tuple[ManifestEntry, ...]:
    with data_writer(context, first_sequence, assign=assigner, changelog=False) as writer:
        for part, kinds in rows:
            writer.write(part, kinds)
        return writer.finish()


def _keep_again(
    context: TableContext,
    first_sequence: int,
    bucket: tuple[bytes, int],
    snapshot: Snapshot | None,
    own_before: Sequence[ManifestEntry],
    rows: Iterator[tuple[pa.Table, pa.Array, tuple[Path, ...]]],
) -> tuple[tuple[ManifestEntry, ...], tuple[KeptColumns, ...]]:
    def stay(part: pa.Table, _partitions: object, _partition_of: object) -> npt.NDArray[np.int32]:
        return np.full(part.num_rows, bucket[1], dtype=np.int32)

    writer = data_writer(
        context,
        first_sequence,
        # Where buckets are fixed, the key gives the same one again.
        assign=stay if context.settings.dynamic_buckets is not None else None,
        changelog=False,
        filler=_filler(context, snapshot),
        own_before=own_before,
    )
    with writer:
        for part, kinds, lacks in rows:
            writer.write(part, kinds, lacks=lacks)
        return writer.finish(), writer.take_kept()


def _no_buckets(_partition: bytes) -> BucketMap:
    return BucketMap()
