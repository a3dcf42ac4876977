"""Finds the files that snapshots, tags, branches and kept changelogs still reference.

    branch   snapshots (an unbroken range of ids) · tags · kept changelogs
               └─ manifest lists -> manifests -> data files     index manifest -> index files     statistics

On one branch a file is live for one unbroken range of snapshots: a deleted file never comes back under its name. So only the
nearest tags of a branch can need what expires on it; of other branches everything is read. Reading here is strict: missing
metadata raises NotFoundError, because the files that it named are unknown.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import NotFoundError
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import BRANCH_DIR, BRANCH_PREFIX, MAIN_BRANCH
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag
from tablestore.io.filestore import FileStore
from tablestore.store.changes.expiredchanges import Changelogs, change_files, changelog_lists
from tablestore.store.context import TableContext
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.expiryintents import ExpiryIntent, digest_of, read_intents
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.store.history.tags import Tags
from tablestore.store.manifests import Manifests, metadata_names
from tablestore.store.schemas import Schemas
from tablestore.store.snapshots import PARENT_PROPERTY, Snapshots, follows, unbroken_tail

T = TypeVar("T")

LOOKS = 5


@dataclass(frozen=True, slots=True)
class BranchMetadata:
    """The metadata of one branch of the table in ``main``."""

    main: FileStore
    name: str

    @property
    def files(self) -> FileStore:
        """The table's files as the branch sees them."""
        return branch_files(self.main, self.name)

    @property
    def snapshots(self) -> Snapshots:
        """Its snapshots."""
        return Snapshots(self.files)

    @property
    def schemas(self) -> Schemas:
        """Its schemas."""
        return Schemas(self.files)

    @property
    def tags(self) -> Tags:
        """Its tags."""
        return Tags(self.files)

    @property
    def changelogs(self) -> Changelogs:
        """Its kept changelogs."""
        return Changelogs(self.files)

    @property
    def consumers(self) -> Consumers:
        """Its consumers."""
        return Consumers(self.files)

    def needed_from(self, alive_since_ms: int | None) -> tuple[int, str] | None:
        """The oldest snapshot that a consumer or hold needs, and its name. Consumers that last moved before then are dead."""
        consumer, hold = self.consumers.floor(alive_since_ms=alive_since_ms), RetentionLeases(self.files).floor()
        needs = [(consumer.next_snapshot, f"consumer {consumer.id!r}")] if consumer is not None else []
        needs += [(hold.next_snapshot, hold.owner)] if hold is not None else []
        return min(needs, default=None)


def branch_directories(main: FileStore) -> tuple[str, ...]:
    """The names of all branch directories, also those of half-made and half-deleted branches."""
    infos = main.list(BRANCH_DIR, prefix=BRANCH_PREFIX)
    return tuple(info.name[len(BRANCH_PREFIX) :] for info in infos if info.is_dir)


def own_branch(context: TableContext) -> BranchMetadata:
    """The branch that ``context`` has open."""
    return BranchMetadata(context.main_files, context.branch)


def other_branches(branch: BranchMetadata) -> tuple[BranchMetadata, ...]:
    """The branches of the same table but this one."""
    names = (MAIN_BRANCH, *branch_directories(branch.main))
    return tuple(BranchMetadata(branch.main, name) for name in names if name != branch.name)


@dataclass(slots=True)
class Needs:
    """Names of referenced files: manifests and lists, index files, statistics, and data files out of ``wanted`` (None: all)."""

    manifests: Manifests
    wanted: Collection[str] | None = None
    metadata: set[str] = field(default_factory=set)
    index: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)
    data: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add_snapshot(self, snapshot: Snapshot, *, changelog: bool = True) -> None:
        """Everything that a snapshot (or tag) references; ``changelog``: its changelog files too."""
        self.add_metadata(snapshot, changelog=changelog)
        self.add_live(snapshot)
        if changelog and snapshot.changelog_manifest_list is not None:
            self._add_entries(snapshot.changelog_manifest_list)

    def add_branch(
        self,
        branch: BranchMetadata,
        produces: Callable[[Snapshot], bool],
        *,
        changelogs: bool = True,
        without_holds: Collection[str] = (),
    ) -> None:
        """Everything that a branch references. ``changelogs``: its kept changelogs too. ``without_holds``: holds of tags to ignore,
        because the tags were never made. ``produces``: whether a snapshot's table writes its changes to changelog files."""
        previous: Snapshot | None = None
        for snapshot in held_snapshots(branch, self.manifests):
            if previous is None or previous.id != snapshot.id - 1 or not _is_chained(snapshot, previous):
                # A tag keeps no changelog, so the first snapshot of a branch may name one that had expired before.
                begins_whole = branch.name == MAIN_BRANCH or has_changelog(snapshot, self.manifests)
                self.add_snapshot(snapshot, changelog=begins_whole)
            else:
                # A file that is live here and was not before was added here.
                self.add_metadata(snapshot)
                self._add_entries(snapshot.delta_manifest_list)
                if snapshot.changelog_manifest_list is not None:
                    self._add_entries(snapshot.changelog_manifest_list)
            previous = snapshot
        for tag in tags_twice(branch.tags, without_holds):
            self.add_snapshot(tag.snapshot, changelog=False)
        if changelogs:
            self.add_changelogs(branch.changelogs.all(), produces)

    def add_changelogs(self, changelogs: Iterable[Snapshot], produces: Callable[[Snapshot], bool]) -> None:
        """Adds the files that readers of kept changelogs need. One whose lists are gone can no longer be read, and its removal is
        under way."""
        for snapshot in changelogs:
            lists = changelog_lists(snapshot, produced=produces(snapshot))
            with suppress(NotFoundError):
                self.metadata.update(lists)
                self.metadata.update(file for name in lists for file in metadata_names(self.manifests.read_list(name)))
                self._keep(change_files(snapshot, self.manifests, produced=produces(snapshot)))

    def add_metadata(self, snapshot: Snapshot, *, changelog: bool = True) -> None:
        """The metadata of one snapshot, index files included."""
        lists = metadata_lists(snapshot) if changelog else metadata_lists(snapshot)[:2]
        self.metadata.update(lists)
        for name in lists:
            self.metadata.update(metadata_names(self.manifests.read_list(name)))
        if snapshot.index_manifest is not None and snapshot.index_manifest not in self.metadata:
            self.metadata.add(snapshot.index_manifest)
            self.index.update(entry.file_name for entry in self.manifests.read_index(snapshot))
        if snapshot.statistics is not None:
            self.statistics.add(snapshot.statistics)

    def add_live(self, snapshot: Snapshot) -> None:
        """The data files that are live in one snapshot."""
        if self.wanted is not None and not self.wanted:
            return
        self._keep_columns(self.manifests.live_columns(snapshot, ("file_name", "extra_files")))

    def _keep_columns(self, files: EntryColumns) -> None:
        names, extra_files = files.column("file_name"), files.column("extra_files")
        if self.wanted is not None:
            wanted = pa.array(self.wanted, pa.string())
            has_wanted = pc.is_in(names, wanted).to_numpy(zero_copy_only=False)
            has_wanted[pc.list_parent_indices(extra_files).filter(pc.is_in(pc.list_flatten(extra_files), wanted))] = True
            names, extra_files = names.filter(pa.array(has_wanted)), extra_files.filter(pa.array(has_wanted))
        self.data.update(names.to_pylist())
        self.data.update(pc.list_flatten(extra_files).to_pylist())

    def _add_entries(self, manifest_list: str) -> None:
        if manifest_list in self._seen or (self.wanted is not None and not self.wanted):
            return
        self._seen.add(manifest_list)
        self._keep_columns(self.manifests.added_columns(manifest_list, ("file_name", "extra_files")))

    def _keep(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            if self._is_wanted(entry):
                self.data.add(entry.file.file_name)
                self.data.update(entry.file.extra_files)

    def _is_wanted(self, entry: ManifestEntry) -> bool:
        if self.wanted is None or entry.file.file_name in self.wanted:
            return True
        return any(name in self.wanted for name in entry.file.extra_files)


def held_snapshots(branch: BranchMetadata, manifests: Manifests) -> tuple[Snapshot, ...]:
    """The snapshots of a branch that reference files, oldest first.

    These are the unbroken range, and what lies from EARLIEST on though a snapshot above it was lost; without snapshots that no
    later one was built on, snapshots that an unfinished expiry removes, and ids below EARLIEST or a gap whose metadata is gone.
    Two signs, because a damaged hint alone must not make a file unreferenced. A committer that has yet to learn that its snapshot
    is not in the history has files too young to be removed.
    """
    snapshots, earliest = branch.snapshots, branch.snapshots.earliest_hint()
    intents = read_intents(branch.files)
    held: list[Snapshot] = []
    tail = snapshots.tail()
    unbroken = unbroken_tail(tuple(snapshot.id for snapshot in tail))
    for snapshot in tail:
        if held and follows(snapshot, held[-1]) is False and held[-1].id == snapshot.id - 1:
            held.clear()
        if (snapshot.id < earliest or snapshot.id < unbroken[0]) and (
            is_expiring(snapshot.id, snapshots, intents) or not _is_whole(snapshot, manifests)
        ):
            continue
        held.append(snapshot)
    return tuple(held)


def is_expiring(snapshot_id: int, snapshots: Snapshots, intents: Collection[ExpiryIntent]) -> bool:
    """True if an expiry has begun to remove this very snapshot."""
    expected = {intent.digests[snapshot_id] for intent in intents if snapshot_id in intent.digests}
    if not expected:
        return False
    try:
        return digest_of(snapshots.read_file(snapshot_id)) in expected
    except NotFoundError:
        return True


def _is_whole(snapshot: Snapshot, manifests: Manifests) -> bool:
    try:
        manifests.read_index(snapshot)
        for name in metadata_lists(snapshot):
            manifests.entries(manifests.read_list(name))
    except NotFoundError:
        return False
    return True


def has_changelog(snapshot: Snapshot, manifests: Manifests) -> bool:
    """True if the changelog that a snapshot names is still listed."""
    if snapshot.changelog_manifest_list is None:
        return False
    try:
        manifests.entries(manifests.read_list(snapshot.changelog_manifest_list))
    except NotFoundError:
        return False
    return True


def _is_chained(snapshot: Snapshot, previous: Snapshot) -> bool:
    is_successor = follows(snapshot, previous)
    # Other engines do not note the parent: a snapshot of theirs above one of ours may have been built on another.
    return is_successor if is_successor is not None else PARENT_PROPERTY not in previous.properties


def reread(read: Callable[[], T]) -> T:
    """The result of ``read``, repeated a few times if metadata goes while it reads: tags are deleted, other branches expire."""
    for _ in range(LOOKS - 1):
        with suppress(NotFoundError):
            return read()
    return read()


def metadata_lists(snapshot: Snapshot) -> tuple[str, ...]:
    """The manifest lists of a snapshot: base, delta, and that of its changelog files if there is one."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    return lists if snapshot.changelog_manifest_list is None else (*lists, snapshot.changelog_manifest_list)


def nearest_tags(tags: Iterable[Tag], first: int, end: int) -> tuple[Tag, ...]:
    """The tags that can need files of the snapshots from ``first`` up to ``end``: the last one at or before ``first``, and those
    in between."""
    below = [tag for tag in tags if tag.snapshot.id <= first]
    highest = max((tag.snapshot.id for tag in below), default=None)
    return tuple(tag for tag in tags if tag.snapshot.id == highest or first < tag.snapshot.id < end)


def tags_twice(tags: Tags, without_holds: Collection[str] = ()) -> tuple[Tag, ...]:
    """The tags and the holds of tags in the making, by two listings: the second has what was made or renamed during the first."""
    tags_by_name: dict[str, Tag] = {}
    for _ in range(2):
        for name in tags.names_and_holds():
            if name not in tags_by_name and name not in without_holds and (tag := tags.find_either(name)) is not None:
                tags_by_name[name] = tag
    return tuple(sorted(tags_by_name.values(), key=lambda tag: (tag.snapshot.id, tag.name)))
