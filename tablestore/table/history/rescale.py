"""Rescales a table to another number of buckets: the option first, then partition by partition.

    ALTER … SET bucket = n         new partitions, and writes to rescaled ones, have n buckets from now on
    for each other partition       overwrite it with its own rows            files of the old buckets -> n buckets

Before that a partition keeps its old number and is readable (the number is in its files' metadata), but a write to it is refused.
Overwriting is a compare-and-set on the partition: if anything else landed in it since it was read (a compaction, marks of deleted
rows), it is read again. So no row is lost, and an interrupted rescale continues when it is called again.

If the first partition fails, because the caller may not commit or the store gives no answer, one more schema takes the option back:
the table is what it was. Once a partition has been rescaled the option stays, since either number is wrong for some of them.
"""

from collections.abc import Sequence
from dataclasses import replace

from tablestore.errors import CommitOutcomeUnknown, ConflictError, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import NO_ROWS
from tablestore.log.opening import ChangeLogs
from tablestore.log.port import ChangeLog
from tablestore.options import BUCKET
from tablestore.progress import Progress, no_progress
from tablestore.store.commit.alterschema import alter_schema, take_back_schema
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import WantedFiles, plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.write.committing import overwriting
from tablestore.table.write.writer import TableWriter
from tablestore.types.evolution.schemachanges import SetOption
from tablestore.types.schema import TableSchema

_Seen = tuple[frozenset[object], tuple[IndexEntry, ...]]


def rescale(context: TableContext, logs: ChangeLogs, buckets: int, *, progress: Progress | None = None) -> TableContext:
    """Give a table of fixed buckets ``buckets`` of them; the table at its new schema.

    Memory is that of a writer. ``progress`` gets the bytes of the partitions that are done, and of all. Raises
    InvalidInputError, UnsupportedError (the table has no fixed buckets, or rows that only a compaction shows), and what altering
    and overwriting raise.
    """
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1:
        raise InvalidInputError(f"expected a positive number of buckets, found {buckets!r:.80}")
    bucket_count = context.settings.total_buckets
    if bucket_count < 1:
        raise UnsupportedError(
            f"table {context.files.root_uri} has bucket = {bucket_count}: only a fixed number of buckets can be changed to another "
            "one; create a table with a fixed number and copy the rows into it",
            kind="no-fixed-buckets",
        )
    context.check_sees_all("rescaling")
    logs.of(context).check_rescale()
    bases: list[TableSchema] = []
    changes = [SetOption(BUCKET.key, str(buckets))]
    new_schema = alter_schema(context, changes, rescaling=True, check=lambda base, _: bases.append(base))
    context = context.at_schema(new_schema)
    try:
        _rescale_partitions(context, logs, buckets, progress or no_progress)
    except CommitOutcomeUnknown:
        raise
    except TablestoreError as error:
        # Without a base this call has altered nothing: it goes on with another one, which was interrupted.
        if bases and not _has_begun(context, buckets):
            _take_back(context, bases[-1], error)
        raise
    return context


def _rescale_partitions(context: TableContext, logs: ChangeLogs, buckets: int, progress: Progress) -> None:
    live = context.manifests.live(context.snapshots.latest())
    left = dict.fromkeys(sorted({entry.partition for entry in live if entry.total_buckets != buckets}), 0)
    for entry in live:
        if entry.partition in left:
            left[entry.partition] += entry.file.file_size
    done_bytes, total = 0, sum(left.values())
    for number, (partition, size) in enumerate(left.items(), start=1):
        _rescale_partition(context, logs.of(context), partition)
        done_bytes += size
        progress(f"rescaling, {len(left) - number} partition(s) left", done_bytes, total)


def _has_begun(context: TableContext, buckets: int) -> bool:
    """True if a partition has the new number of buckets, or nobody can say."""
    try:
        return any(entry.total_buckets == buckets for entry in context.manifests.live(context.snapshots.latest()))
    except TablestoreError:
        return True


def _take_back(context: TableContext, base: TableSchema, error: TablestoreError) -> None:
    try:
        take_back_schema(context, context.schema, base)
    except ConflictError:
        pass  # altered on top of it: there is nothing to take back
    except TablestoreError as left:
        raise CommitOutcomeUnknown(
            f"table {context.files.root_uri} was not rescaled ({error}), and its option bucket could not be taken back ({left}): "
            f"readers see what they saw, and writers are refused until table.rescale({context.settings.total_buckets}) ends"
        ) from error


def _rescale_partition(context: TableContext, log: ChangeLog, partition: bytes) -> None:
    deadline_s = context.clock.steady_s() + context.settings.commit_timeout_s
    while True:
        try:
            _rewrite(context, log, partition)
            return
        except StalePlan as error:
            if context.clock.steady_s() >= deadline_s:
                raise ConflictError(
                    f"a partition of table {context.files.root_uri} changed each time that it was read to be rescaled: {error}; "
                    "stop compacting it and call rescale again, which goes on where it stopped",
                    kind="commit-timeout",
                ) from error


def _rewrite(context: TableContext, log: ChangeLog, partition: bytes) -> None:
    snapshot = context.snapshots.latest()
    entries, seen = _look(context, snapshot, partition)
    bucket_count = context.settings.total_buckets
    if all(entry.total_buckets == bucket_count for entry in entries):
        return
    if context.settings.skips_level_zero and any(entry.file.level == 0 for entry in entries):
        raise UnsupportedError(
            f"table {context.files.root_uri} has rows in level 0, which its readers see only after a compaction; run "
            "table.compact(full=True) and call rescale again",
            kind="outside-frame",
        )

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        live_entries, current = _look(context, latest, partition)
        if current != seen:
            raise StalePlan(f"files of the partition changed by snapshot {latest.id if latest else 0}")
        return [replace(entry, kind=EntryKind.DELETE) for entry in live_entries]

    plan = plan_scan(context, snapshot, wanted=WantedFiles(in_place=lambda place: place[0] == partition))
    reader = SplitReader.whole(context, context.schema.field_names, None)
    effect = overwriting(
        plan_deletes=plan_deletes, replaces=lambda candidate: candidate == partition, keeps_rows=True, rows=NO_ROWS
    )
    with TableWriter(context, log, replaces=True) as writer:
        for split in plan.splits:
            for batch in reader.read(split):
                writer.keep(batch)
        writer.commit_as(effect)


def _look(context: TableContext, snapshot: Snapshot | None, partition: bytes) -> tuple[list[ManifestEntry], _Seen]:
    """The live files of a partition, and what must be the same when they are replaced."""
    entries = context.manifests.live_in(snapshot, lambda place: place[0] == partition)
    index = context.manifests.read_index(snapshot) if snapshot is not None else ()
    marks = tuple(sorted((entry for entry in index if entry.partition == partition), key=lambda entry: entry.file_name))
    return entries, (frozenset(entry.identity for entry in entries), marks)
