"""Plans compactions of a table: which buckets need one, and which comes first.

    snapshot -> live files by bucket -> per bucket the next task (lsm.compaction)

Pure but for reading manifests, and the store's clock where deletes are kept for a time.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.lazy import lazy
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.compaction.appendcompaction import pick_append
from tablestore.lsm.compaction.clusteringcompaction import pick_clustering
from tablestore.lsm.compaction.compactiontask import CompactionPolicy, CompactionTask
from tablestore.lsm.compaction.deleteratio import pick_by_delete_ratio, with_rewrites
from tablestore.lsm.compaction.keyedcompaction import pick_compaction, pick_full, sorted_runs
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import levels
from tablestore.store.compact.bucketcompaction import BucketFiles
from tablestore.store.compact.compactionsettings import CompactionSettings, compaction_settings
from tablestore.store.context import TableContext
from tablestore.store.history.storeclock import check_clock
from tablestore.store.tombstones import kept_retractions
from tablestore.store.write.runwriter import local_millis
from tablestore.types.schema import POSTPONE_BUCKET

BucketId = tuple[bytes, int]


def live_buckets(
    context: TableContext, snapshot: Snapshot, wanted: Callable[[BucketId], bool] | Collection[BucketId] | None = None
) -> dict[BucketId, BucketFiles]:
    """The buckets of a snapshot that hold files, by partition and number; ``wanted`` chooses among them."""
    accepts = wanted if callable(wanted) else (lambda place: True) if wanted is None else wanted.__contains__
    entries_by_bucket: dict[BucketId, list[ManifestEntry]] = defaultdict(list)
    for entry in context.manifests.live_in(snapshot, lambda place: place[1] != POSTPONE_BUCKET and accepts(place)):
        entries_by_bucket[entry.partition, entry.bucket].append(entry)
    deleted = context.deletion_vectors(snapshot).deleted_counts() if context.settings.deletion_vectors else {}
    return {
        place: BucketFiles(
            partition=place[0],
            bucket=place[1],
            total_buckets=entries[0].total_buckets,
            entries=tuple(entries),
            deleted={e.file.file_name: deleted[e.file.file_name] for e in entries if e.file.file_name in deleted},
        )
        for place, entries in sorted(entries_by_bucket.items())
    }


def newest_buckets(
    context: TableContext,
    wanted: Callable[[BucketId], bool] | Collection[BucketId] | None = None,
    *,
    landed: Snapshot | None = None,
) -> tuple[Snapshot | None, dict[BucketId, BucketFiles]]:
    """The newest snapshot and its buckets; others may commit, and expire it, while it is read. ``landed``: a snapshot that was
    the newest a moment ago, and is looked at without looking for others."""
    if landed is not None:
        with suppress(NotFoundError):
            return landed, live_buckets(context, landed, wanted)
    return context.snapshots.read_newest(lambda latest: live_buckets(context, latest, wanted) if latest is not None else {})


class TaskPicker:
    """Picks tasks for the buckets of one table. ``order_by``: all rows of an append table are put in this order."""

    def __init__(self, context: TableContext, order_by: ClusterOrder | None = None) -> None:
        self._context = context
        self.settings: CompactionSettings = context.once(_compaction_settings)
        self._order_by = order_by
        self._key_of = KeyOrder.of(context.schema.key_fields)

    def pick(
        self, bucket: BucketFiles, *, full: bool = False, budget_bytes: int | None = None, whole: bool = True
    ) -> CompactionTask | None:
        """The next task of a bucket, or all that is left to do in it at once (``full``). ``whole``: see ``pick_compaction``."""
        task = self._pick(bucket, full=full, budget_bytes=budget_bytes, whole=whole)
        if not bucket.deleted or (self._context.schema.is_keyed and not full):
            return task
        share = 0 if full else self.settings.deleted_share
        deleted = pick_by_delete_ratio(bucket.files, bucket.deleted, share=share, budget_bytes=budget_bytes)
        if (self._order_by or self.settings.cluster_by) is not None:
            # Rows of each file keep their order, and it its level.
            same_level = [file for file in deleted if file.level == deleted[0].level]
            return task or with_rewrites(
                None,
                same_level,
                output_level=same_level[0].level if same_level else 0,
                target_bytes=self.settings.policy.target_file_bytes,
            )
        top = max((file.level for file in bucket.files), default=0)
        return with_rewrites(
            task,
            deleted,
            output_level=top if task is None else task.output_level,
            target_bytes=self.settings.policy.target_file_bytes,
        )

    def _pick(self, bucket: BucketFiles, *, full: bool, budget_bytes: int | None, whole: bool) -> CompactionTask | None:
        policy = self.policy
        if (order := self._order_by or self.settings.cluster_by) is not None:
            return pick_clustering(
                bucket.files,
                policy,
                order,
                min_files=self.settings.append_min_files,
                full=full,
                anew=self._order_by is not None,
                budget_bytes=budget_bytes,
            )
        if not self._context.schema.is_keyed:
            return pick_append(
                bucket.files,
                min_files=self.settings.append_min_files,
                target_bytes=policy.target_file_bytes,
                full=full,
                file_cost_bytes=policy.file_cost_bytes,
                budget_bytes=budget_bytes,
            )
        bucket_levels = levels(bucket.files, self._key_of)
        if full:
            return pick_full(bucket_levels, policy, key_of=self._key_of)
        return pick_compaction(bucket_levels, policy, key_of=self._key_of, budget_bytes=budget_bytes, whole=whole)

    @lazy
    def policy(self) -> CompactionPolicy:
        """The compaction policy of the table, and which deletes are kept at this time."""
        policy, retention = self.settings.policy, self._context.settings.tombstone_retention_ms
        if retention is None:
            return policy
        context, latest = self._context, self._context.snapshots.latest()
        retractions = kept_retractions(latest, now_ms=context.clock.now_ms(), retention_ms=retention)
        if retractions.from_sequence:
            # By this host's clock some are old enough to go: that counts only as far as the store's clock agrees.
            try:
                now_ms = check_clock(context.files, context.clock, context.ids)
            except TablestoreError:
                now_ms = 0
            retractions = kept_retractions(latest, now_ms=now_ms, retention_ms=retention)
        # Files have their creation time in local time.
        return replace(policy, kept=replace(retractions, noted_millis=local_millis(retractions.noted_millis)))

    def run_count(self, bucket: BucketFiles) -> int:
        """The sorted runs of a bucket; the files of an append bucket."""
        if not self._context.schema.is_keyed:
            return len(bucket.entries)
        return len(sorted_runs(levels(bucket.files, self._key_of), self._key_of))

    def neediest_first(self, buckets: Iterable[BucketFiles]) -> Iterator[BucketFiles]:
        """The buckets in order of need: those with the most runs first, then those with the most bytes above their oldest run."""

        def need(bucket: BucketFiles) -> tuple[int, int]:
            top = max((file.level for file in bucket.files), default=0)
            newer = sum(file.file_size for file in bucket.files if file.level < top or top == 0)
            return self.run_count(bucket), newer

        yield from sorted(buckets, key=need, reverse=True)


def written_cost(entries: Iterable[ManifestEntry], file_cost_bytes: int) -> int:
    """The bytes that a commit wrote, with the cost of its files."""
    return sum(entry.file.file_size + file_cost_bytes for entry in entries)


def newest_schema_id(files: Iterable[DataFileMeta]) -> int:
    """The newest schema that these files were written with."""
    return max((file.schema_id for file in files), default=0)


def _compaction_settings(context: TableContext) -> CompactionSettings:
    return compaction_settings(context.schema, context.settings)
