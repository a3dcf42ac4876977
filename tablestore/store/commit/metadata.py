"""Builds the base manifest list of a new snapshot, merging small manifests now and then.

Its base list is the manifests of its parent. Now and then the small ones at the end are merged into one. Merging is size-tiered:
the group has enough members, and none has more than twice the entries of the younger ones together. So an entry is rewritten a
logarithmic number of times, and a commit costs the same however many files are live.

All is pure but :func:`merged_base`, which reads and writes manifests.
"""

from collections.abc import Sequence

from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.store.manifests import Manifests, WrittenMetadata
from tablestore.store.settings import MergePolicy


def pick_merge(manifests: Sequence[ManifestFile], policy: MergePolicy) -> range | None:
    """The positions of the manifests to merge into one: a tail of the list, or all of it. None to merge nothing."""
    if _holds_many_deletes(manifests, policy):
        # Merging all of them cancels the deletes, and makes every later plan cheaper.
        return range(len(manifests))
    weight, start = 0, len(manifests)
    while start > 0:
        older = manifests[start - 1]
        # Weighed in entries, because a small manifest is mostly header. A member that outweighs the younger ones ends the group,
        # however few they are: else the largest manifest would be rewritten with every group.
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
    """The base list of the next snapshot, in the order of ``manifests``; files that are written are noted in ``written``.

    A merged tail keeps each DELETE whose ADD is in an older manifest.
    """
    picked = pick_merge(manifests, policy)
    if picked is None:
        return tuple(manifests)
    start = picked.start
    if start > 0 or not _holds_many_deletes(manifests, policy):
        # Entries with many columns fill a manifest that is small on disk. The group begins behind the last full one: else full ones
        # would be merged into as many full ones each time.
        full = (place for place in reversed(picked) if store.is_full(manifests[place]))
        start = next(full, start - 1) + 1
        if len(manifests) - start < policy.min_count:
            return tuple(manifests)
    entries = cancel_pairs(store.entries(manifests[start:]), keep_deletes=start > 0)
    return (*manifests[:start], *store.write_manifests(entries, written))


def cancel_pairs(entries: Sequence[ManifestEntry], *, keep_deletes: bool) -> list[ManifestEntry]:
    """The entries without the pairs of an ADD and its later DELETE.

    With ``keep_deletes`` a DELETE without its ADD stays, since the ADD is in an older manifest. It comes first: a file that moves
    to another level is deleted at the old one before it is added at the new one.
    """
    added: dict[object, ManifestEntry] = {}
    deletes: list[ManifestEntry] = []
    for entry in entries:
        if entry.kind is EntryKind.ADD:
            added[entry.identity] = entry
        elif added.pop(entry.identity, None) is None:
            deletes.append(entry)
    return [*(deletes if keep_deletes else ()), *added.values()]
