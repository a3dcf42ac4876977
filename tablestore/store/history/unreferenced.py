"""Files that lost their last reference, when a tag or a branch goes.

    name (tag file, branch directory) away -> what did it lead to, and what does the rest of the table lead to? -> the difference

The name goes first: a reader finds it gone rather than half. If we die in between, what is left is an orphan.
"""

from collections.abc import Callable
from contextlib import suppress

from tablestore.errors import NotFoundError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import STATISTICS_DIR, index_path, manifest_path
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.history.expire import LOOKS, add_what_is_left, paths_of, produces_changelog
from tablestore.store.history.references import Needs, metadata_lists, other_lines, own_line


def release(context: TableContext, held: tuple[Snapshot, ...]) -> int:
    """Remove what ``held`` led to and nothing in the table needs any more; returns how many files went.

    A missing piece of ``held`` means that its files are not known, and stay for the removal of orphans.
    """
    manifests = context.manifests
    files: dict[str, ManifestEntry] = {}
    own = Needs(manifests)
    for snapshot in held:
        with suppress(NotFoundError):
            files.update((e.file.file_name, e) for e in manifests.live(snapshot))
            files.update((e.file.file_name, e) for e in manifests.delta(snapshot))
            if snapshot.changelog_manifest_list is not None:
                entries = manifests.entries(manifests.read_list(snapshot.changelog_manifest_list))
                files.update((e.file.file_name, e) for e in entries)
        add_what_is_left(own, snapshot)
    needs = _needs(context, files, lambda snapshot: produces_changelog(context, snapshot))
    paths: list[str] = []
    for name, entry in files.items():
        if name not in needs.data:
            paths.extend(paths_of(context, entry))
    lists = {name for snapshot in held for name in metadata_lists(snapshot)}
    paths += [index_path(name) for name in sorted(own.index - needs.index)]
    paths += [f"{STATISTICS_DIR}/{name}" for name in sorted(own.statistics - needs.statistics)]
    paths += [manifest_path(name) for name in sorted(own.metadata - needs.metadata - lists)]
    paths += [manifest_path(name) for name in sorted(lists - needs.metadata)]
    return sum(context.files.delete(path) for path in paths)


def _needs(context: TableContext, files: dict[str, ManifestEntry], produces: Callable[[Snapshot], bool]) -> Needs:
    for look in range(LOOKS):
        needs = Needs(context.manifests, wanted=files.keys())
        try:
            for line in (own := own_line(context), *other_lines(own)):
                needs.add_line(line, produces)
            return needs
        except NotFoundError:
            # Others expire or delete what we read: then it needs nothing any more.
            if look == LOOKS - 1:
                raise
    raise AssertionError("the loop returns or raises")
