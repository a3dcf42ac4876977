"""Plans the changes of one snapshot: which rows they are and which files hold them.

    snapshot      table                          changes
    APPEND        append table                   the rows of its new files
                  keyed, no producer             its level-0 files, each against the rows before it
                  plain, producer input          its changelog files
                  producer on compaction         none yet
    COMPACT       producer on compaction         its changelog files
                  no producer, level 0 hidden    what it brings out of level 0
                  no producer, bucket = -2       the level-0 files that it makes of postponed rows
                  others                         none
    OVERWRITE     streaming-read-overwrite       the frame before against the frame after
                  others                         a discontinuity: they are not recorded
    untracked     all partitions                 a discontinuity
                  some partitions                a discontinuity, and the changes of the others

The *frame* of a table is the state that a reader of its changes has (see ``producer``). A table is *plain* if a new row simply
replaces the one before (``TableSettings.is_plain``). Only there a stored row alone shows the change. In other tables the rows
given are not the rows that readers see, so ``input`` counts as no producer, and level 0 is always compared.

The schema and properties of the snapshot decide, not today's options. The changes of a snapshot have one order, a pure function of
its manifests: partition (as bytes), bucket, file by lowest sequence number and name, row.

``plan_changes`` reads manifests; everything else here is pure. ``changefeed`` reads the rows.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from tablestore import options as opt
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.options import TableOptions
from tablestore.store.changelogproducer import INPUT, NONE, ChangelogSettings, changelog_settings
from tablestore.store.changes.changescope import ChangeScope, Discontinuity, discontinuity
from tablestore.store.context import TableContext
from tablestore.store.manifests import Manifests
from tablestore.store.settings import TableSettings
from tablestore.store.tracking import is_tracked, untracked_text
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema


class ChangeFiles(Enum):
    """The kind of files in which a snapshot's changes are found."""

    NOWHERE = auto()
    CHANGELOG_FILES = auto()
    NEW_FILES = auto()
    LEVEL_ZERO = auto()
    LEFT_LEVEL_ZERO = auto()
    FRAMES = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRule:
    """The rules of a schema for the changes of its snapshots."""

    keyed: bool
    plain: bool
    changelog: ChangelogSettings
    hides_level_zero: bool
    postponed: bool
    reads_overwrite: bool

    @property
    def producer(self) -> str:
        """The changelog producer that the changes come from: rows as they were given are the changes of plain tables only."""
        configured = self.changelog.producer
        return NONE if configured == INPUT and not self.plain else configured

    def in_frame(self, level: int) -> bool:
        """True if files of this level belong to the frame, the state that the changes add up to."""
        return self.changelog.in_frame(level) and not (self.hides_level_zero and level == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChanges:
    """Change rows that lie in a file as they are. ``kind``: that of all rows, None if the file says so row by row."""

    entry: ManifestEntry
    kind: RowKind | None = None

    @property
    def partition(self) -> bytes:
        return self.entry.partition

    @property
    def bucket(self) -> int:
        return self.entry.bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChanges:
    """Changes that have to be found: the rows of ``before`` against those of ``after``, for the keys in ``touched``.

    ``vectors_before`` and ``vectors_after``: the snapshots whose deletion vectors count; None for none.
    """

    partition: bytes
    bucket: int
    before: tuple[DataFileMeta, ...]
    after: tuple[DataFileMeta, ...]
    touched: tuple[DataFileMeta, ...]
    vectors_before: int | None = None
    vectors_after: int | None = None


Step = StoredChanges | FoundChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """The changes of one snapshot in order. ``gap``: it changed more than these."""

    steps: tuple[Step, ...] = ()
    gap: Discontinuity | None = None


def change_rule(context: TableContext) -> ChangeRule:
    """The rules by which the changes of an open table's snapshots are found."""
    return context.once(_change_rule)


def _change_rule(context: TableContext) -> ChangeRule:
    return rule_of(context.schema, context.settings)


def rule_of(schema: TableSchema, settings: TableSettings) -> ChangeRule:
    """The rule of a schema."""
    return ChangeRule(
        keyed=schema.is_keyed,
        plain=settings.is_plain,
        changelog=changelog_settings(schema.options),
        hides_level_zero=settings.skips_level_zero,
        postponed=settings.total_buckets == POSTPONE_BUCKET,
        reads_overwrite=TableOptions(schema.options).flag(opt.STREAMING_READ_OVERWRITE),
    )


def found_rule(rule: ChangeRule) -> ChangeRule:
    """The rule without the changes that writers give (``changelog-producer = input``): they are found as without a producer."""
    return replace(rule, changelog=replace(rule.changelog, producer=NONE)) if rule.changelog.producer == INPUT else rule


def source_of(snapshot: Snapshot, rule: ChangeRule) -> ChangeFiles | Discontinuity:
    """The files in which the changes of a snapshot are found, or the reason why they are not recorded. Pure."""
    has_changelog = snapshot.changelog_manifest_list is not None
    producer = rule.producer
    match snapshot.commit_kind:
        case CommitKind.OVERWRITE if not rule.reads_overwrite:
            return discontinuity(snapshot, "replaced rows without naming them")
        case _ if not is_tracked(snapshot):
            return discontinuity(snapshot, "was written with change-tracking = false")
        case CommitKind.OVERWRITE:
            return ChangeFiles.FRAMES
        case CommitKind.COMPACT if rule.changelog.on_compaction and has_changelog:
            return ChangeFiles.CHANGELOG_FILES
        case CommitKind.COMPACT if producer == NONE and rule.hides_level_zero:
            return ChangeFiles.LEFT_LEVEL_ZERO
        case CommitKind.COMPACT if producer == NONE and rule.postponed:
            return ChangeFiles.LEVEL_ZERO
        case CommitKind.APPEND if not rule.keyed:
            return ChangeFiles.NEW_FILES
        case CommitKind.APPEND if producer != NONE and has_changelog:
            return ChangeFiles.CHANGELOG_FILES
        case CommitKind.APPEND if producer == INPUT and snapshot.delta_record_count and untracked_text(snapshot) is None:
            return discontinuity(snapshot, "has no changelog files, although changelog-producer = input")
        case CommitKind.APPEND if producer == NONE and not rule.hides_level_zero:
            return ChangeFiles.LEVEL_ZERO
    return ChangeFiles.NOWHERE


def looks_back(rule: ChangeRule) -> bool:
    """True if changes may lie in files that a snapshot deletes, so that expiry has to keep the snapshot before a reader's next."""
    return rule.reads_overwrite or (rule.hides_level_zero and rule.producer == NONE)


def plan_changes(snapshot: Snapshot, scope: ChangeScope, rule: ChangeRule, manifests: Manifests, *, pairs: bool) -> ChangePlan:
    """The changes of one snapshot. Without ``pairs`` the stored rows of a plain table are the changes."""
    steps = _steps(snapshot, rule, manifests, pairs=pairs)
    if isinstance(steps, Discontinuity):
        return ChangePlan(gap=steps)
    return ChangePlan(steps=tuple(step for step in steps if scope.includes(step.partition)), gap=scope.gap(snapshot))


def _steps(snapshot: Snapshot, rule: ChangeRule, manifests: Manifests, *, pairs: bool) -> tuple[Step, ...] | Discontinuity:
    source = source_of(snapshot, rule)
    match source:
        case Discontinuity():
            return source
        case ChangeFiles.CHANGELOG_FILES:
            return tuple(StoredChanges(entry=entry) for entry in in_order(manifests.changelog(snapshot)))
        case ChangeFiles.NEW_FILES:
            return tuple(StoredChanges(entry=e, kind=RowKind.INSERT) for e in in_order(_added(manifests.delta(snapshot))))
        case ChangeFiles.LEVEL_ZERO if rule.plain and not pairs:
            return tuple(StoredChanges(entry=e) for e in in_order(_written(manifests.delta(snapshot))))
        case ChangeFiles.LEVEL_ZERO:
            delta = manifests.delta(snapshot)
            new_entries = in_order(_written(delta))
            return file_by_file(_base(snapshot, manifests, delta, new_entries), new_entries)
        case ChangeFiles.LEFT_LEVEL_ZERO | ChangeFiles.FRAMES:
            delta = manifests.delta(snapshot)
            if source is ChangeFiles.FRAMES and _changes_buckets(delta):
                return discontinuity(snapshot, "distributed its rows over another number of buckets")
            if not rule.keyed:
                return _replaced_rows(delta, snapshot)
            return frame_by_frame(
                _base(snapshot, manifests, delta, delta),
                delta,
                rule,
                snapshot_id=snapshot.id,
                compaction=source is ChangeFiles.LEFT_LEVEL_ZERO,
            )
    return ()


def in_order(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Entries in the order in which readers of changes see their rows. Pure."""
    return sorted(entries, key=lambda e: (e.partition, e.bucket, e.file.min_sequence_number, e.file.file_name))


Buckets = dict[tuple[bytes, int], tuple[ManifestEntry, ...]]


def file_by_file(base: Buckets, new_entries: Sequence[ManifestEntry]) -> tuple[FoundChanges, ...]:
    """The changes of each new file, on top of ``base`` and of the new files before it. Pure; ``new_entries`` is in order."""
    files_by_bucket = {place: [entry.file for entry in entries] for place, entries in base.items()}
    steps = []
    for entry in new_entries:
        before = files_by_bucket.setdefault((entry.partition, entry.bucket), [])
        steps.append(
            FoundChanges(
                partition=entry.partition,
                bucket=entry.bucket,
                before=tuple(before),
                after=(*before, entry.file),
                touched=(entry.file,),
            )
        )
        before.append(entry.file)
    return tuple(steps)


def frame_by_frame(
    base: Buckets, delta: Sequence[ManifestEntry], rule: ChangeRule, *, snapshot_id: int, compaction: bool
) -> tuple[FoundChanges, ...]:
    """The change of the frame in each bucket that ``delta`` touches. Pure.

    A compaction changes only keys of files that it takes from outside of the frame.
    """
    steps = []
    touched_buckets = _by_bucket(delta)
    for place in sorted(touched_buckets):
        deleted = [e for e in touched_buckets[place] if e.kind is EntryKind.DELETE]
        deleted_identities = {e.identity for e in deleted}
        added = _added(touched_buckets[place])
        before = base.get(place, ())
        after = [*(e for e in before if e.identity not in deleted_identities), *added]
        if compaction:
            touched = [e.file for e in deleted if not rule.in_frame(e.file.level)]
        else:
            touched = [e.file for e in (*deleted, *added) if rule.in_frame(e.file.level)]
        if touched:
            steps.append(
                FoundChanges(
                    partition=place[0],
                    bucket=place[1],
                    before=tuple(e.file for e in before if rule.in_frame(e.file.level)),
                    after=tuple(e.file for e in after if rule.in_frame(e.file.level)),
                    touched=tuple(touched),
                    vectors_before=snapshot_id - 1 if rule.hides_level_zero else None,
                    vectors_after=snapshot_id if rule.hides_level_zero else None,
                )
            )
    return tuple(steps)


def _replaced_rows(delta: Sequence[ManifestEntry], snapshot: Snapshot) -> tuple[Step, ...] | Discontinuity:
    """The changes of an overwritten append table: deletes of the rows in its old files, inserts of those in its new ones."""
    if snapshot.index_manifest is not None:
        return discontinuity(snapshot, "overwrote rows of an append table with deletion vectors")
    deleted = in_order(entry for entry in delta if entry.kind is EntryKind.DELETE)
    return (
        *(StoredChanges(entry=entry, kind=RowKind.DELETE) for entry in deleted),
        *(StoredChanges(entry=entry, kind=RowKind.INSERT) for entry in in_order(_added(delta))),
    )


def _base(snapshot: Snapshot, manifests: Manifests, delta: Sequence[ManifestEntry], touched: Iterable[ManifestEntry]) -> Buckets:
    """The files that were live before the commit of these entries, of the buckets that it touched."""
    places = {(entry.partition, entry.bucket) for entry in touched}
    live = manifests.live_before(snapshot, delta).values()
    return _by_bucket(entry for entry in live if (entry.partition, entry.bucket) in places)


def _changes_buckets(delta: Iterable[ManifestEntry]) -> bool:
    """True if a partition gets another number of buckets."""
    counts: dict[bytes, set[int]] = defaultdict(set)
    for entry in delta:
        if entry.bucket != POSTPONE_BUCKET:
            counts[entry.partition].add(entry.total_buckets)
    return any(len(bucket_counts) > 1 for bucket_counts in counts.values())


def _by_bucket(entries: Iterable[ManifestEntry]) -> Buckets:
    by_bucket: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        if entry.bucket != POSTPONE_BUCKET:
            by_bucket[entry.partition, entry.bucket].append(entry)
    return {place: tuple(entries) for place, entries in by_bucket.items()}


def _added(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.kind is EntryKind.ADD]


def _written(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """New files of a keyed table's writer. Readers do not see rows in the postponed bucket."""
    return [entry for entry in _added(entries) if entry.file.level == 0 and entry.bucket != POSTPONE_BUCKET]
