"""What a snapshot's metadata becomes: pure choices, and the one function that writes them.

The base list of a new snapshot is the manifests of its parent, with a group of small ones merged now and then. Merging is
size-tiered: a group is merged when it has enough members and none outweighs the younger ones together, so an entry is
rewritten a logarithmic number of times and a commit costs the same however many files are live.
"""

from collections.abc import Sequence

from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.store.manifests import Manifests, WrittenMetadata
from tablestore.store.settings import MergePolicy


def pick_merge(manifests: Sequence[ManifestFile], policy: MergePolicy) -> range | None:
    """The tail of ``manifests`` (positions) to merge into one, or None. Pure."""
    if _holds_many_deletes(manifests, policy):
        # One pass over all takes the deletes out, and makes every later plan cheaper.
        return range(len(manifests))
    weight, start = 0, len(manifests)
    while start > 0:
        older = manifests[start - 1]
        # Weighed in entries: small files are mostly header, their bytes do not add up. Any member that outweighs the younger
        # ones ends the group, however few they are: or the largest would be written again with every group.
        entries = older.num_added + older.num_deleted
        if older.file_size >= policy.target_bytes or (weight and entries > 2 * weight):
            break
        weight += entries
        start -= 1
    return range(start, len(manifests)) if len(manifests) - start >= policy.min_count else None


def _holds_many_deletes(manifests: Sequence[ManifestFile], policy: MergePolicy) -> bool:
    if policy.rewrite_bytes is not None:
        return sum(manifest.file_size for manifest in manifests if manifest.num_deleted) >= policy.rewrite_bytes
    deleted = sum(manifest.num_deleted for manifest in manifests)
    added = sum(manifest.num_added for manifest in manifests)
    return len(manifests) > 1 and deleted > 1_000 and deleted * 3 > added


def merged_base(
    manifests: Sequence[ManifestFile], policy: MergePolicy, store: Manifests, written: WrittenMetadata
) -> tuple[ManifestFile, ...]:
    """The base list of the next snapshot. Order is kept; a merged tail keeps DELETEs whose ADD lies before it."""
    picked = pick_merge(manifests, policy)
    if picked is None:
        return tuple(manifests)
    start = picked.start
    if start > 0 or not _holds_many_deletes(manifests, policy):
        # Entries with many columns fill a manifest that is small on disk. Behind a full one the group ends: or full ones would be
        # merged into as many full ones with every group.
        full = (place for place in reversed(picked) if store.is_full(manifests[place]))
        start = next(full, start - 1) + 1
        if len(manifests) - start < policy.min_count:
            return tuple(manifests)
    entries = cancel_pairs(store.entries(manifests[start:]), keep_deletes=start > 0)
    return (*manifests[:start], *store.write_manifests(entries, written))


def cancel_pairs(entries: Sequence[ManifestEntry], *, keep_deletes: bool) -> list[ManifestEntry]:
    """Entries with each ADD and its later DELETE taken out. Pure.

    ``keep_deletes``: DELETEs without an ADD in ``entries`` belong to older manifests and stay, in front: a file that moves to
    another level is deleted at the old level before it is added at the new one.
    """
    added: dict[object, ManifestEntry] = {}
    deletes: list[ManifestEntry] = []
    for entry in entries:
        if entry.kind is EntryKind.ADD:
            added[entry.identity] = entry
        elif added.pop(entry.identity, None) is None:
            deletes.append(entry)
    return [*(deletes if keep_deletes else ()), *added.values()]


def row_delta(entries: Sequence[ManifestEntry]) -> int:
    """Rows that a delta adds minus rows that it deletes."""
    return sum(entry.file.row_count if entry.kind is EntryKind.ADD else -entry.file.row_count for entry in entries)
