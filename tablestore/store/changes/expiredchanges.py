"""Changelogs of expired snapshots that are kept: ``changelog/changelog-<N>``.

Where changes are kept for longer than snapshots (``changelog.num-retained.*``, ``changelog.time-retained``), expiry copies a
snapshot to ``changelog/changelog-N`` before it removes it, and keeps the files of its changes: the changelog files and their
manifests if the table has a producer, else the level-0 files that its delta added.
"""

from dataclasses import dataclass

from tablestore.errors import NotFoundError
from tablestore.format.manifest.datafile import FileSource
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import CHANGELOG_DIR, EARLIEST_HINT, LATEST_HINT, changelog_path, encode_hint, parse_changelog_id
from tablestore.format.snapshot import Snapshot, decode_snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.manifests import Manifests


@dataclass(frozen=True, slots=True)
class Changelogs:
    """The changelog directory in ``files`` (rooted at the table, or a branch's view of it)."""

    files: FileStore

    def ids(self) -> tuple[int, ...]:
        """The ids of all kept changelogs, ascending."""
        changelog_ids = map(parse_changelog_id, self.files.names(CHANGELOG_DIR, prefix="changelog-"))
        return tuple(sorted(snapshot_id for snapshot_id in changelog_ids if snapshot_id is not None))

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The expired snapshot ``snapshot_id``, of which only the changes can be read. None if they were not kept."""
        path = changelog_path(snapshot_id)
        try:
            data = self.files.read(path)
        except NotFoundError:
            return None
        return decode_snapshot(data, f"{self.files.root_uri}/{path}")

    def all(self) -> tuple[Snapshot, ...]:
        """The kept changelogs, oldest first."""
        changelogs = (self.find(snapshot_id) for snapshot_id in self.ids())
        return tuple(snapshot for snapshot in changelogs if snapshot is not None)

    def keep(self, snapshot_id: int, snapshot_file: bytes) -> None:
        """Keep the changes of a snapshot that is about to go. Nothing happens if that was done before."""
        self.files.publish_if_absent(changelog_path(snapshot_id), snapshot_file)

    def remove(self, snapshot_id: int) -> bool:
        """Remove the file of one changelog; False if it was gone."""
        return self.files.delete(changelog_path(snapshot_id))

    def write_hints(self, *, earliest: int | None = None, latest: int | None = None) -> None:
        """Write the hints that other engines read first."""
        for name, value in ((EARLIEST_HINT, earliest), (LATEST_HINT, latest)):
            if value is not None:
                self.files.overwrite(f"{CHANGELOG_DIR}/{name}", encode_hint(value))


def changelog_lists(snapshot: Snapshot, *, produced: bool) -> tuple[str, ...]:
    """The manifest lists that readers of a snapshot's changes need; ``produced``: the table's changes are changelog files."""
    if snapshot.changelog_manifest_list is not None:
        return (snapshot.changelog_manifest_list,)
    return () if produced else (snapshot.delta_manifest_list,)


def change_files(snapshot: Snapshot, manifests: Manifests, *, produced: bool) -> list[ManifestEntry]:
    """The files that hold a snapshot's changes."""
    lists = changelog_lists(snapshot, produced=produced)
    entries = manifests.entries(manifest for name in lists for manifest in manifests.read_list(name))
    if snapshot.changelog_manifest_list is not None:
        return entries
    # As others do: without a producer the changes are what a writer (not a compaction) added. Unknown counts as written.
    return [e for e in entries if e.kind is EntryKind.ADD and e.file.file_source in (None, FileSource.APPEND)]
