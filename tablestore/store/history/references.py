"""What is still needed, by whom?

A table is a set of lines, one per branch, and each line holds on to files in three ways:

    line   snapshots (an unbroken range of ids) · tags · kept changelogs
             └─ manifest lists -> manifests -> data files     index manifest -> index files     statistics

Along a line a file is live for one unbroken range of snapshots: what was deleted never comes back under its name. So of a line's
own tags only the nearest ones can need what expires; of other lines everything is looked at. Reading here is strict: if anything
that must be there is missing, NotFoundError ends the work, because what it would have named is unknown.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from tablestore.errors import NotFoundError
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import BRANCH_DIR, BRANCH_PREFIX, MAIN_BRANCH
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag
from tablestore.io.filestore import FileStore
from tablestore.store.changes.expiredchanges import Changelogs, change_files, changelog_lists
from tablestore.store.context import TableContext
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.expiryintents import ExpiryIntent, digest_of, read_intents
from tablestore.store.history.holds import Holds
from tablestore.store.history.tags import Tags
from tablestore.store.manifests import Manifests
from tablestore.store.schemas import Schemas
from tablestore.store.snapshots import PARENT_PROPERTY, Snapshots, follows


@dataclass(frozen=True, slots=True)
class Line:
    """One branch of the table in ``main``, by what it holds on to."""

    main: FileStore
    branch: str

    @property
    def files(self) -> FileStore:
        """The table's files as the branch sees them."""
        return branch_files(self.main, self.branch)

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
        """The oldest snapshot that somebody still has to read, and who; consumers that last moved before that time are dead."""
        consumer, hold = self.consumers.floor(alive_since_ms=alive_since_ms), Holds(self.files).floor()
        needs = [(consumer.next_snapshot, f"consumer {consumer.id!r}")] if consumer is not None else []
        needs += [(hold.next_snapshot, hold.owner)] if hold is not None else []
        return min(needs, default=None)


def branch_directories(main: FileStore) -> tuple[str, ...]:
    """The names of all branch directories, those of branches that are half made or half deleted too."""
    found = main.list(BRANCH_DIR, prefix=BRANCH_PREFIX)
    return tuple(info.name[len(BRANCH_PREFIX) :] for info in found if info.is_dir)


def own_line(context: TableContext) -> Line:
    """The line of an open table."""
    return Line(context.main_files, context.branch)


def other_lines(own: Line) -> tuple[Line, ...]:
    """All lines of the same table but this one."""
    names = (MAIN_BRANCH, *branch_directories(own.main))
    return tuple(Line(own.main, name) for name in names if name != own.branch)


@dataclass(slots=True)
class Needs:
    """Names of files that must stay: manifests and lists, index files, statistics; and of ``wanted`` data files those in use.

    ``wanted`` None: of all data files.
    """

    manifests: Manifests
    wanted: Collection[str] | None = None
    metadata: set[str] = field(default_factory=set)
    index: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)
    data: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add_snapshot(self, snapshot: Snapshot, *, changelog: bool = True) -> None:
        """Everything that a snapshot (or tag) leads to; ``changelog``: its changes too."""
        self.add_metadata(snapshot, changelog=changelog)
        self.add_live(snapshot)
        if changelog and snapshot.changelog_manifest_list is not None:
            self._add_entries(snapshot.changelog_manifest_list)

    def add_line(
        self,
        line: Line,
        produces: Callable[[Snapshot], bool],
        *,
        changelogs: bool = True,
        without_holds: Collection[str] = (),
    ) -> None:
        """Everything that a line leads to, with its kept ``changelogs`` or not, and without some holds of tags that were never
        made. ``produces``: whether a snapshot's table writes its changes to changelog files."""
        previous: Snapshot | None = None
        for snapshot in held_snapshots(line, self.manifests):
            if previous is None or previous.id != snapshot.id - 1 or not _is_chained(snapshot, previous):
                # A tag keeps no changelog: a branch that began at one may name a changelog that had expired before.
                begins_whole = line.branch == MAIN_BRANCH or has_changelog(snapshot, self.manifests)
                self.add_snapshot(snapshot, changelog=begins_whole)
            else:
                # What is live here and was not before was added here.
                self.add_metadata(snapshot)
                self._add_entries(snapshot.delta_manifest_list)
                if snapshot.changelog_manifest_list is not None:
                    self._add_entries(snapshot.changelog_manifest_list)
            previous = snapshot
        for tag in tags_twice(line.tags, without_holds):
            self.add_snapshot(tag.snapshot, changelog=False)
        if changelogs:
            self.add_changelogs(line.changelogs.all(), produces)

    def add_changelogs(self, changelogs: Iterable[Snapshot], produces: Callable[[Snapshot], bool]) -> None:
        """What readers of kept changes need. One whose lists are gone is about to go itself, and can be read by nobody."""
        for snapshot in changelogs:
            lists = changelog_lists(snapshot, produced=produces(snapshot))
            with suppress(NotFoundError):
                self.metadata.update(lists)
                self.metadata.update(manifest.file_name for name in lists for manifest in self.manifests.read_list(name))
                self._keep(change_files(snapshot, self.manifests, produced=produces(snapshot)))

    def add_metadata(self, snapshot: Snapshot, *, changelog: bool = True) -> None:
        """The metadata of one snapshot, index files included."""
        lists = metadata_lists(snapshot) if changelog else metadata_lists(snapshot)[:2]
        self.metadata.update(lists)
        for name in lists:
            self.metadata.update(manifest.file_name for manifest in self.manifests.read_list(name))
        if snapshot.index_manifest is not None and snapshot.index_manifest not in self.metadata:
            self.metadata.add(snapshot.index_manifest)
            self.index.update(entry.file_name for entry in self.manifests.read_index(snapshot))
        if snapshot.statistics is not None:
            self.statistics.add(snapshot.statistics)

    def add_live(self, snapshot: Snapshot) -> None:
        """The data files that are live in one snapshot."""
        if self.wanted is not None and not self.wanted:
            return
        groups = (
            (entry for entry in self.manifests.read_manifest(manifest.file_name) if self._asked(entry))
            for manifest in self.manifests.all_manifests(snapshot)
        )
        self._keep(live_entries(groups).values())

    def _add_entries(self, manifest_list: str) -> None:
        if manifest_list in self._seen or (self.wanted is not None and not self.wanted):
            return
        self._seen.add(manifest_list)
        self._keep(e for e in self.manifests.entries(self.manifests.read_list(manifest_list)) if e.kind is EntryKind.ADD)

    def _keep(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            if self._asked(entry):
                self.data.add(entry.file.file_name)
                self.data.update(entry.file.extra_files)

    def _asked(self, entry: ManifestEntry) -> bool:
        if self.wanted is None or entry.file.file_name in self.wanted:
            return True
        return any(name in self.wanted for name in entry.file.extra_files)


def held_snapshots(line: Line, manifests: Manifests) -> tuple[Snapshot, ...]:
    """The snapshots of a line that hold on to files, oldest first.

    All of the unbroken range counts, except what is nobody's parent, what an unfinished expiry intends to remove, and ids
    below EARLIEST whose metadata is gone: two signs, because a damaged hint alone must not give anything up. Files of a committer
    who is still to hear that his snapshot is nobody's parent are young.
    """
    snapshots, earliest = line.snapshots, line.snapshots.earliest_hint()
    intents = read_intents(line.files)
    held: list[Snapshot] = []
    for snapshot in snapshots.tail():
        if held and follows(snapshot, held[-1]) is False and held[-1].id == snapshot.id - 1:
            held.clear()
        if snapshot.id < earliest and (is_expiring(snapshot.id, snapshots, intents) or not _is_whole(snapshot, manifests)):
            continue
        held.append(snapshot)
    return tuple(held)


def is_expiring(snapshot_id: int, snapshots: Snapshots, intents: Collection[ExpiryIntent]) -> bool:
    """Whether an expiry has begun to remove this very snapshot."""
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
    """Whether the changelog that a snapshot names is still listed."""
    if snapshot.changelog_manifest_list is None:
        return False
    try:
        manifests.entries(manifests.read_list(snapshot.changelog_manifest_list))
    except NotFoundError:
        return False
    return True


def _is_chained(snapshot: Snapshot, previous: Snapshot) -> bool:
    known = follows(snapshot, previous)
    # Others do not say. One of theirs on top of one of ours may have a dead one of ours below it.
    return known if known is not None else PARENT_PROPERTY not in previous.properties


def metadata_lists(snapshot: Snapshot) -> tuple[str, ...]:
    """The manifest lists of a snapshot: base, delta, and that of its changelog files if there is one."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    return lists if snapshot.changelog_manifest_list is None else (*lists, snapshot.changelog_manifest_list)


def nearest_tags(tags: Iterable[Tag], first: int, end: int) -> tuple[Tag, ...]:
    """The tags that can need what goes when the snapshots from ``first`` up to ``end`` expire: the last one at or before
    ``first`` and those in between."""
    below = [tag for tag in tags if tag.snapshot.id <= first]
    highest = max((tag.snapshot.id for tag in below), default=None)
    return tuple(tag for tag in tags if tag.snapshot.id == highest or first < tag.snapshot.id < end)


def tags_twice(tags: Tags, without_holds: Collection[str] = ()) -> tuple[Tag, ...]:
    """All tags, and all that are being made, by two listings: what becomes a tag, or gets another name, during the first is in
    the second."""
    found: dict[str, Tag] = {}
    for _ in range(2):
        for name in tags.names_and_holds():
            if name not in found and name not in without_holds and (tag := tags.find_either(name)) is not None:
                found[name] = tag
    return tuple(sorted(found.values(), key=lambda tag: (tag.snapshot.id, tag.name)))
