"""Removes the files that lose their last reference when a tag or a branch goes.

    remove the name (tag file, branch directory) -> files that it referenced, less those that the rest of the table references

The name goes first, so that no reader finds it half removed. After a crash in between the files are orphans.
"""

from collections.abc import Collection
from contextlib import suppress

from tablestore.errors import NotFoundError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.history.expire import metadata_paths, paths_of, produces_changelog
from tablestore.store.history.references import Needs, other_branches, own_branch, reread


def remove_unreferenced(context: TableContext, held: tuple[Snapshot, ...]) -> int:
    """Remove the files that the snapshots ``held`` referenced and nothing in the table does now; returns their number.

    Files that missing metadata of ``held`` named are unknown, and left to the removal of orphans.
    """
    manifests = context.manifests
    files: dict[str, ManifestEntry] = {}
    for snapshot in held:
        with suppress(NotFoundError):
            for entries_of in (manifests.live, manifests.delta, manifests.changelog):
                files.update((entry.file.file_name, entry) for entry in entries_of(snapshot))
    needs = reread(lambda: _needs(context, files.keys()))
    data = [path for name, entry in files.items() if name not in needs.data for path in paths_of(context, entry)]
    return sum(context.files.delete(path) for path in (*data, *metadata_paths(held, needs)))


def _needs(context: TableContext, names: Collection[str]) -> Needs:
    needs = Needs(context.manifests, wanted=names)
    for branch in (this_branch := own_branch(context), *other_branches(this_branch)):
        needs.add_branch(branch, lambda snapshot: produces_changelog(context, snapshot))
    return needs
