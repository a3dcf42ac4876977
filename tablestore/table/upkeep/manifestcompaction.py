"""Compacts the manifests of a table: what its snapshot says of files is said in an order by which plans skip most of it.

A commit of its own kind of compaction publishes them, on demand (`compact`) or after a commit that wrote a large manifest. It
changes no file of rows, and it lands beside the commits of others as long as they leave the manifests in the list that were
rewritten: large ones, which no commit merges.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from tablestore.errors import CommitOutcomeUnknown, StorageError, TablestoreError
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.manifest.sidecar import FEWEST_ENTRIES
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.progress import Progress, no_progress
from tablestore.store.commit.clustering import (
    RewrittenGroup,
    merge_runs,
    pick_groups,
    pick_later_runs,
    pick_runs,
    replace_groups,
    rewrite_group,
)
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.context import TableContext
from tablestore.store.manifests import WrittenMetadata
from tablestore.types.datatypes import DataType

OPERATION = "compact-manifests"
Pick = Callable[[TableContext, Sequence[ManifestFile]], list[range]]
"""Picks positions in the list of manifests, each range to be rewritten by itself."""
Rewrite = Callable[..., RewrittenGroup]
"""Rewrites the manifests of one range."""

_MOST_MERGES = 8


def compact_manifests(context: TableContext, *, sidecars: bool = True, progress: Progress | None = None) -> Snapshot | None:
    """Rewrite the manifests that overlap; returns the snapshot that names the new ones, None if none is due.

    ``sidecars``: also those that have none, as the manifests of other engines. ``progress`` is called with a text, the entries done
    and the entries in all. Raises ConflictError of kind ``stale-plan`` if others rewrote the same manifests meanwhile,
    StorageError. Memory: see :mod:`tablestore.store.commit.clustering`.
    """
    show = progress or no_progress
    context.check_writable(new_rows=False)
    landed = _rewrite(context, partial(_overlapping, sidecars=sidecars), rewrite_group, show)
    # As often as runs become fewer: so many that they do not fit into memory together are merged in turns.
    most = _MOST_MERGES
    while most and (merged := _rewrite(context, _runs, merge_runs, show)) is not None:
        landed, most = merged, most - 1
    return landed


def merge_later_runs(context: TableContext) -> Snapshot | None:
    """Merge the runs of manifests that commits have left, as far as it pays off; returns the snapshot that names the new ones, None
    if none is due. Memory and errors: as :func:`compact_manifests`."""
    context.check_writable(new_rows=False)
    return _rewrite(context, _later_runs, merge_runs, no_progress)


def _overlapping(context: TableContext, listed: Sequence[ManifestFile], *, sidecars: bool) -> list[range]:
    store = context.manifests
    return pick_groups(listed, _partition_types(context), lambda manifest: sidecars and not store.has_sidecar(manifest))


def _runs(context: TableContext, listed: Sequence[ManifestFile]) -> list[range]:
    runs = pick_runs(listed, _partition_types(context))
    return [] if runs is None else [runs]


def _later_runs(context: TableContext, listed: Sequence[ManifestFile]) -> list[range]:
    runs = pick_later_runs(listed, _partition_types(context))
    return [] if runs is None else [runs]


def _partition_types(context: TableContext) -> list[DataType]:
    return [field.type for field in context.schema.partition_fields]


def _rewrite(context: TableContext, pick: Pick, rewrite: Rewrite, show: Progress) -> Snapshot | None:
    """Rewrite what is picked of the manifests of the newest snapshot."""
    store, partition_types = context.manifests, _partition_types(context)
    if (latest := context.snapshots.latest()) is None:
        return None
    listed = list(store.all_manifests(latest))
    # The small ones at the end are merged by the next commits.
    while listed and listed[-1].num_added + listed[-1].num_deleted < FEWEST_ENTRIES:
        listed.pop()
    groups = pick(context, listed)
    counts = [sum(manifest.num_added + manifest.num_deleted for manifest in listed[group.start : group.stop]) for group in groups]
    written, rewritten = WrittenMetadata(), list[RewrittenGroup]()
    try:
        for number, group in enumerate(groups):
            show("rewriting manifests", sum(counts[:number]), sum(counts))
            members = listed[group.start : group.stop]
            rewritten.append(rewrite(members, store, written, partition_types, is_first=group.start == 0))
        if not rewritten:
            return None
        store.sync()
        return committer(context).commit(
            CommitRequest(
                user=context.ids.uuid(),
                kind=CommitKind.COMPACT,
                operation=OPERATION,
                message=context.message(latest),
                allow_empty=True,
                replace_manifests=lambda manifests: replace_groups(manifests, rewritten),
            )
        )
    except CommitOutcomeUnknown:
        raise
    except TablestoreError:
        with suppress(StorageError):
            store.remove(written)
        raise
